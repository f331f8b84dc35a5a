"""adb messages as bytes and back. Pure: no sockets, no state beyond the bytes not yet complete.

A message is a 24-byte little-endian header (command, arg0, arg1, length, checksum, magic) and its payload. Source: AOSP
``packages/modules/adb/protocol.txt``, and what adb 29.0.6 and 36.0.0 were seen to send.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

VERSION_WITH_CHECKSUM = 0x01000000
VERSION_SKIP_CHECKSUM = 0x01000001
"""From this version on, both sides leave the checksum 0 after the first CNXN."""

MAX_PAYLOAD = 256 * 1024
"""Bytes of one payload that this side takes. adb offers 1 MiB; a quarter is as fast here and bounds the memory."""

_HEADER = struct.Struct("<6I")
HEADER_BYTES = _HEADER.size
_U32 = 0xFFFFFFFF


class Command(IntEnum):
    """Commands of the adb protocol: four ASCII letters, little-endian."""

    CNXN = 0x4E584E43
    AUTH = 0x48545541
    OPEN = 0x4E45504F
    OKAY = 0x59414B4F
    WRTE = 0x45545257
    CLSE = 0x45534C43
    STLS = 0x534C5453


_COMMANDS = {int(command): command for command in Command}


class FrameError(Exception):
    """The bytes are no adb message. The only answer is to close the connection, as adbd does."""


class Frame(NamedTuple):
    """One message. ``arg0`` and ``arg1`` mean different things for each command; both are unsigned 32 bit."""

    command: Command
    arg0: int
    arg1: int
    payload: bytes = b""


def encode(command: Command, arg0: int, arg1: int, payload: bytes = b"", *, checksum: bool = False) -> bytes:
    """The bytes of one message. The checksum is a plain byte sum and costs time, so it is asked for."""
    total = sum(payload) & _U32 if checksum else 0
    return _HEADER.pack(command, arg0, arg1, len(payload), total, command ^ _U32) + payload


class FrameReader:
    """Cuts a byte stream into messages, whatever the chunking."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.verify_checksum = False
        """True once both sides agreed on a version with checksums. Not before: an adb server that connects for the
        second time still leaves the checksum of its CNXN 0, as agreed the first time."""

    def feed(self, data: bytes) -> list[Frame]:
        """The messages that ``data`` completes, in order. Raises `FrameError` on garbage; then discard the reader."""
        buffer = self._buffer
        buffer += data
        frames: list[Frame] = []
        start = 0
        available = len(buffer)
        while available - start >= HEADER_BYTES:
            code, arg0, arg1, length, checksum, magic = _HEADER.unpack_from(buffer, start)
            command = _COMMANDS.get(code)
            if command is None or magic != code ^ _U32:
                raise FrameError(f"not an adb message: command 0x{code:08x}, magic 0x{magic:08x}")
            if length > MAX_PAYLOAD:
                raise FrameError(f"payload of {length} bytes, at most {MAX_PAYLOAD}")
            end = start + HEADER_BYTES + length
            if end > available:
                break
            payload = bytes(buffer[start + HEADER_BYTES : end])
            if self.verify_checksum and sum(payload) & _U32 != checksum:
                raise FrameError(f"checksum of {command.name} does not match its payload")
            frames.append(Frame(command, arg0, arg1, payload))
            start = end
        if start:
            del buffer[:start]
        return frames
