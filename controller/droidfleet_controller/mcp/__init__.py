"""The fleet for other AI clients, over the Model Context Protocol.

``client -> serving (stdio, HTTP) -> server (the protocol) -> leases (phones), fleet (the rest) -> the gRPC API``.
A client of that API and of nothing else; only `server` and `serving` import the library.
"""
