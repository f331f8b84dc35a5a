"""The wire of the virtual phone: what a real adb server and the real uiautomator2 client meet.

Data passes down in this order: bytes from TCP -> `frames` (adb messages) -> `adbd` (one adb connection, its streams) ->
`services` (which service a stream asks for) -> `sync`, `shell` or `http` -> `rpc` -> the `VirtualPhone` model.
It owns protocols, timing (latency, waits) and the effects of faults. It never decides what a phone shows or what a tap
does: that is the model's. The model is touched from the event loop's thread only.
"""
