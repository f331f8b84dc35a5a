"""A planner by rules that can take a language model's place where there is none. It says so, and is one for nobody."""
