"""Turn by turn: ask the model, carry out what it calls, within budgets, until there is a draft or an end. Resumable."""
