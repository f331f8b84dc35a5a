"""What is proposed: the draft, what a person set beforehand, and what is done to a draft before a person sees it."""
