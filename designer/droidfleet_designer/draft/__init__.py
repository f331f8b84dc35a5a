"""What is proposed: the draft, and what a person set beforehand."""
