"""Who answers: the port of a language model, its adapter for OpenAI-compatible servers, and patience with them."""
