"""The words that the model is told, as files: one for each purpose and language. No prompt stands in code."""
