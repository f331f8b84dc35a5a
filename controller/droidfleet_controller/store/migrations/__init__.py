"""The history of the schema, one file for each change, in order of their numbers. Never edited once released."""
