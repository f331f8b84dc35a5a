"""The `sync:` service, version 1: how files are pushed and pulled.

Requests and answers are a four-letter id and a little-endian 32-bit number, mostly a length. Source: AOSP
``packages/modules/adb/SYNC.TXT``. Version 2 (STA2, LST2, SND2, RCV2) is not advertised, so no client asks for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from droidfleet_agent.virtual_phone.wire.adbd import Service, Stream
from droidfleet_agent.virtual_phone.wire.files import MAX_PATH_BYTES, FileError, PhoneFiles

DATA_BYTES = 64 * 1024
"""The most that one DATA may carry, either way."""

_MAX_BUFFERED_BYTES = 4 * DATA_BYTES
"""Requests that may wait while a file goes out. No client sends a second request before it has the first answer."""

_HEAD = struct.Struct("<4sI")
_DEFAULT_MODE = 0o644


class SyncService(Service):
    """One sync session: many requests after one another on one stream."""

    def __init__(self, stream: Stream, files: PhoneFiles) -> None:
        self._stream = stream
        self._files = files
        self._buffer = bytearray()
        self._upload: _Upload | None = None
        self._download: Iterator[bytes] | None = None
        self._requests: dict[bytes, Callable[[bytes], None]] = {
            b"STAT": self._on_stat,
            b"LIST": self._on_list,
            b"SEND": self._on_send,
            b"RECV": self._on_receive,
        }

    def received(self, data: bytes) -> None:
        self._buffer += data
        if self._download is None:
            self._work()
        elif len(self._buffer) > _MAX_BUFFERED_BYTES:
            self._stream.abort()

    def drained(self) -> None:
        if self._download is not None:
            self._send_more(self._download)
        if self._download is None:
            self._work()

    def closed(self) -> None:
        self._upload = None
        self._download = None
        self._buffer.clear()

    def _work(self) -> None:
        while self._stream.alive and self._download is None and len(self._buffer) >= _HEAD.size:
            request, value = _HEAD.unpack_from(self._buffer)
            # DONE carries a time where the others carry a length.
            length = 0 if request in (b"DONE", b"QUIT") else value
            if length > (DATA_BYTES if request == b"DATA" else MAX_PATH_BYTES):
                self._fail(f"{request!r} of {length} bytes is too long")
                self._stream.close()
                return
            if len(self._buffer) < _HEAD.size + length:
                return
            body = bytes(self._buffer[_HEAD.size : _HEAD.size + length])
            del self._buffer[: _HEAD.size + length]
            self._on_request(request, value, body)

    def _on_request(self, request: bytes, value: int, body: bytes) -> None:
        if self._upload is not None:
            self._on_upload(self._upload, request, value, body)
        elif request == b"QUIT":
            self._stream.close()
        elif (handler := self._requests.get(request)) is not None:
            handler(body)
        else:
            self._fail(f"unknown command {request!r}")
            self._stream.close()

    def _on_stat(self, body: bytes) -> None:
        entry = self._files.stat(_path(body))
        self._stream.write(struct.pack("<4sIII", b"STAT", entry.mode, entry.size, entry.mtime))

    def _on_list(self, body: bytes) -> None:
        answer = bytearray()
        for entry in self._files.list(_path(body)):
            name = entry.name.encode()
            answer += struct.pack("<4sIIII", b"DENT", entry.mode, entry.size, entry.mtime, len(name)) + name
        self._stream.write(bytes(answer) + struct.pack("<4sIIII", b"DONE", 0, 0, 0, 0))

    def _on_send(self, body: bytes) -> None:
        path, _, mode = _path(body).rpartition(",")
        if not path:
            path, mode = mode, ""
        self._upload = _Upload(path, int(mode) if mode.isdecimal() else _DEFAULT_MODE, self._files.free_bytes)

    def _on_upload(self, upload: _Upload, request: bytes, value: int, body: bytes) -> None:
        if request == b"DATA":
            upload.add(body)
            return
        self._upload = None
        if request != b"DONE":
            self._fail(f"{request!r} within SEND")
            self._stream.close()
            return
        try:
            self._files.write(upload.path, upload.content(), mode=upload.mode, mtime=value)
        except FileError as error:
            self._fail(f"couldn't create file {upload.path}: {error}")
        else:
            self._stream.write(_HEAD.pack(b"OKAY", 0))

    def _on_receive(self, body: bytes) -> None:
        try:
            content = self._files.read(_path(body))
        except FileError as error:
            self._fail(f"open failed: {error}")
            return
        self._send_more(_pieces(content))

    def _send_more(self, pieces: Iterator[bytes]) -> None:
        piece = next(pieces, None)
        self._download = None if piece is None else pieces
        self._stream.write(_HEAD.pack(b"DONE", 0) if piece is None else _HEAD.pack(b"DATA", len(piece)) + piece)

    def _fail(self, reason: str) -> None:
        text = reason.encode()
        self._stream.write(_HEAD.pack(b"FAIL", len(text)) + text)


class _Upload:
    """A file on its way in. Past the free space it is no longer kept, only counted: the host hears of it at DONE."""

    def __init__(self, path: str, mode: int, free_bytes: int) -> None:
        self.path = path
        self.mode = mode
        self._free_bytes = free_bytes
        self._content = bytearray()
        self._full = False

    def add(self, data: bytes) -> None:
        if len(self._content) + len(data) > self._free_bytes:
            self._full = True
            self._content.clear()
        elif not self._full:
            self._content += data

    def content(self) -> bytes:
        """The whole file. Raises `FileError` when it did not fit."""
        if self._full:
            raise FileError("No space left on device")
        return bytes(self._content)


def _path(body: bytes) -> str:
    return body.decode("utf-8", errors="replace")


def _pieces(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), DATA_BYTES):
        yield content[start : start + DATA_BYTES]
