"""The gRPC door: messages in, use case, messages out. Protobuf types stop here; errors are mapped once, in `errors`."""
