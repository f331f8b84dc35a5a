"""What a screen says to a model: numbered lines, quoted, small; and how an element is named again."""
