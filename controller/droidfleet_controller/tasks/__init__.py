"""The library of task templates: saved by revision, exactly as written, after the one validator accepted them."""
