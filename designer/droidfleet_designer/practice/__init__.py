"""A small rule-based planner behind an OpenAI-compatible server, to try everything without a key. No language model."""
