"""The fleet for AI clients, by the Model Context Protocol: a client of the gRPC API like any other."""
