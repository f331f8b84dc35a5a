"""Who answers: the port of a language model, and whether a tool call of one is whole."""
