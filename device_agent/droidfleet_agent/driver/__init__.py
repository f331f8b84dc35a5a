"""The phone, as the engine sees it: the port `Phone`, its uiautomator2-over-adb adapter, and the memory phone.

From the outside in: `port` (the contract), `phone` (reads and actions), `link` (the way to the phone's automation
server, and its repair), `automation_server` (its launch), `http` and `rpc` (one call), `adb` (the adb server). The only
package that knows of adbutils and uiautomator2; it uses their files (adb binary, server jar) without importing them.
"""
