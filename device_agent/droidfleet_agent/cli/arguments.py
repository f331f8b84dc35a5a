"""Kinds of values on the command line that several commands take."""

from __future__ import annotations

import argparse


def adb_address(text: str) -> tuple[str, int]:
    """``host:port`` of an adb server, for argparse."""
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isascii() and port.isdecimal() and 0 < int(port) < 65_536):
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:5037")
    return host, int(port)
