"""The embedded nats-server: found, configured, started, watched, stopped. Knows nothing of what is sent over it."""
