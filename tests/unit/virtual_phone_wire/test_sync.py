"""Files of a phone, and how they are pushed and pulled."""

from __future__ import annotations

import stat
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_agent.virtual_phone.wire.files import JAR_PATH, FileError, PhoneFiles, normal_path
from droidfleet_agent.virtual_phone.wire.sync import DATA_BYTES, SyncService

from .wires import PlainStream


def request(name: bytes, body: bytes) -> bytes:
    return struct.pack("<4sI", name, len(body)) + body


def upload(path: str, content: bytes, *, mode: int = 0o644, mtime: int = 7) -> bytes:
    pieces = [content[start : start + DATA_BYTES] for start in range(0, len(content), DATA_BYTES)]
    head = request(b"SEND", f"{path},{stat.S_IFREG | mode}".encode())
    return head + b"".join(request(b"DATA", piece) for piece in pieces) + struct.pack("<4sI", b"DONE", mtime)


def session(files: PhoneFiles, *, max_payload: int = 1 << 20) -> PlainStream:
    stream = PlainStream(max_payload=max_payload)
    stream.attach(SyncService(stream.stream, files))
    return stream


async def test_pushed_file_is_pulled_as_it_was() -> None:
    files = PhoneFiles(with_jar=False)
    content = bytes(range(256)) * 1_000
    assert session(files).send(upload("/sdcard/a.bin", content))[:4] == b"OKAY"
    answer = session(files).send(request(b"RECV", b"/sdcard/a.bin"))
    pulled = b""
    while answer[:4] == b"DATA":
        length = struct.unpack_from("<I", answer, 4)[0]
        pulled += answer[8 : 8 + length]
        answer = answer[8 + length :]
    assert pulled == content
    assert answer[:4] == b"DONE"


async def test_stat_tells_type_size_and_time() -> None:
    files = PhoneFiles(with_jar=False)
    session(files).send(upload("/sdcard/a", b"12345", mode=0o755, mtime=99))
    answer = session(files).send(request(b"STAT", b"/sdcard/a"))
    assert struct.unpack("<4sIII", answer) == (b"STAT", stat.S_IFREG | 0o755, 5, 99)


async def test_stat_of_a_missing_path_is_all_zero() -> None:
    answer = session(PhoneFiles(with_jar=False)).send(request(b"STAT", b"/nowhere"))
    assert struct.unpack("<4sIII", answer) == (b"STAT", 0, 0, 0)


async def test_list_names_files_and_folders() -> None:
    files = PhoneFiles(with_jar=False)
    files.write("/sdcard/pictures/one.png", b"1")
    files.write("/sdcard/note.txt", b"2")
    answer = session(files).send(request(b"LIST", b"/sdcard"))
    assert [name in answer for name in (b"pictures", b"note.txt", b"Download", b"one.png")] == [True, True, True, False]


async def test_pull_of_a_missing_file_fails_and_the_session_goes_on() -> None:
    stream = session(PhoneFiles(with_jar=False))
    assert stream.send(request(b"RECV", b"/nowhere"))[:4] == b"FAIL"
    assert stream.send(request(b"STAT", b"/sdcard"))[:4] == b"STAT"


async def test_push_over_the_quota_fails_and_keeps_the_old_file() -> None:
    files = PhoneFiles(quota_bytes=1_000, with_jar=False)
    files.write("/sdcard/a", b"old")
    assert b"No space left" in session(files).send(upload("/sdcard/a", bytes(2_000)))
    assert files.read("/sdcard/a") == b"old"


async def test_a_request_behind_a_running_pull_is_answered_after_it() -> None:
    files = PhoneFiles(with_jar=False)
    files.write("/sdcard/big", bytes(DATA_BYTES * 3))
    stream = session(files)
    answer = stream.send(request(b"RECV", b"/sdcard/big") + request(b"STAT", b"/sdcard/big"))
    assert answer[-16:-12] == b"STAT"


async def test_quit_closes_the_stream() -> None:
    stream = session(PhoneFiles(with_jar=False))
    stream.send(struct.pack("<4sI", b"QUIT", 0))
    assert stream.closed


@pytest.mark.parametrize(
    "garbage", [b"NOPE\x00\x00\x00\x00", b"STAT\xff\xff\xff\xff", upload("/a", b"x")[:20] + b"STATSTAT"]
)
async def test_garbage_ends_the_session_with_a_reason(garbage: bytes) -> None:
    stream = session(PhoneFiles(with_jar=False))
    stream.send(garbage + bytes(64))
    assert stream.output[:4] == b"FAIL"
    assert stream.closed


@given(st.binary(max_size=400), st.integers(min_value=1, max_value=50))
def test_random_bytes_never_crash_a_session(data: bytes, step: int) -> None:
    import asyncio

    async def feed() -> None:
        stream = session(PhoneFiles(with_jar=False))
        for start in range(0, len(data), step):
            if not stream.closed:
                stream.send(data[start : start + step])

    asyncio.run(feed())


def test_the_jar_is_there_from_the_start_and_takes_no_quota() -> None:
    files = PhoneFiles()
    assert files.stat(JAR_PATH).size > 1_000_000
    assert files.free_bytes == PhoneFiles(with_jar=False).free_bytes
    assert len(files.md5(JAR_PATH)) == 32


def test_a_removed_file_gives_its_space_back() -> None:
    files = PhoneFiles(with_jar=False)
    before = files.free_bytes
    files.write("/sdcard/a/b", b"1234")
    files.remove("/sdcard/a", recursive=True)
    assert files.free_bytes == before


def test_a_folder_is_no_file() -> None:
    files = PhoneFiles(with_jar=False)
    files.write("/sdcard/a/b", b"1")
    with pytest.raises(FileError, match="directory"):
        files.read("/sdcard/a")
    with pytest.raises(FileError, match="directory"):
        files.write("/sdcard", b"1")


@pytest.mark.parametrize(
    ("path", "normal"),
    [("/a//b/", "/a/b"), ("a", "/a"), ("/a/../b/./c", "/b/c"), ("/../..", "/"), ("/", "/")],
)
def test_paths_have_one_form(path: str, normal: str) -> None:
    assert normal_path(path) == normal
