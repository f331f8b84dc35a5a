"""The commands, one module a noun. Each reads its arguments, calls the client, and writes the answer."""
