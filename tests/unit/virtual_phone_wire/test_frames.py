"""adb messages survive any chunking, and garbage never does more than end the connection."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_agent.virtual_phone.wire.frames import (
    HEADER_BYTES,
    MAX_PAYLOAD,
    Command,
    Frame,
    FrameError,
    FrameReader,
    encode,
)

U32 = st.integers(min_value=0, max_value=0xFFFFFFFF)
FRAMES = st.builds(Frame, st.sampled_from(Command), U32, U32, st.binary(max_size=300))


def chunks_of(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


@given(st.lists(FRAMES, max_size=8), st.lists(st.integers(min_value=0, max_value=3_000), max_size=20), st.booleans())
def test_any_chunking_gives_the_same_messages(frames: list[Frame], cuts: list[int], checksum: bool) -> None:
    data = b"".join(encode(*frame, checksum=checksum) for frame in frames)
    reader = FrameReader()
    reader.verify_checksum = checksum
    assert [frame for chunk in chunks_of(data, cuts) for frame in reader.feed(chunk)] == frames


@given(st.binary(max_size=2_000), st.lists(st.integers(min_value=0, max_value=2_000), max_size=5))
def test_garbage_is_refused_or_awaited_and_never_crashes(data: bytes, cuts: list[int]) -> None:
    reader = FrameReader()
    try:
        frames = [frame for chunk in chunks_of(data, cuts) for frame in reader.feed(chunk)]
    except FrameError:
        return
    assert sum(HEADER_BYTES + len(frame.payload) for frame in frames) <= len(data)


@given(FRAMES.filter(lambda frame: bool(frame.payload)), st.data())
def test_a_flipped_payload_bit_fails_the_checksum(frame: Frame, data: st.DataObject) -> None:
    encoded = bytearray(encode(*frame, checksum=True))
    position = data.draw(st.integers(min_value=HEADER_BYTES, max_value=len(encoded) - 1))
    encoded[position] ^= 1 << data.draw(st.integers(min_value=0, max_value=7))
    reader = FrameReader()
    reader.verify_checksum = True
    with pytest.raises(FrameError, match="checksum"):
        reader.feed(bytes(encoded))


def test_a_payload_over_the_limit_is_refused_before_it_arrives() -> None:
    header = encode(Command.WRTE, 1, 1, b"")[:12] + (MAX_PAYLOAD + 1).to_bytes(4, "little")
    header += b"\0\0\0\0" + (Command.WRTE ^ 0xFFFFFFFF).to_bytes(4, "little")
    with pytest.raises(FrameError, match="at most"):
        FrameReader().feed(header)
