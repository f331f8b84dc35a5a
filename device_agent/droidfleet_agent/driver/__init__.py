"""The phone, as the engine sees it: the port `Phone`, its uiautomator2-over-adb adapter, and the memory phone.

The only package that imports ``adbutils`` and ``uiautomator2``.
"""
