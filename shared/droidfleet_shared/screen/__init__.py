"""What is seen: parsing of window dumps, choice of the active window, matching of selectors. Pure."""
