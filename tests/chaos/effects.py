"""What the phones felt: one append-only file for each phone, a line for each effect, written in the same instant.

A line is one write to a file that is opened for appending: it is in the system's hands before the phone answers, and
whoever is killed then takes nothing of it along.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Felt:
    """An effect. ``word`` names the request that it came from."""

    device: str
    word: str
    kind: str
    at: datetime


def effects_file(folder: Path, device: str) -> Path:
    """The log of a phone, light or not."""
    return folder / f"{device}.effects.jsonl"


class EffectFile:
    """The log of one phone; what an earlier process wrote stays."""

    def __init__(self, file: Path, device: str) -> None:
        self._device = device
        self._descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, kind: str, word: str) -> None:
        """Appends one effect."""
        line = {"at": datetime.now(UTC).isoformat(), "kind": kind, "details": {"word": word}}
        os.write(self._descriptor, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        """Ends the writing."""
        os.close(self._descriptor)


def read_effects(file: Path, device: str) -> Iterator[Felt]:
    """The effects in a phone's log, those of a virtual phone included, that name a word; in order."""
    if not file.exists():
        return
    for line in file.read_text().splitlines():
        effect = json.loads(line)
        word = effect["details"].get("word")
        if isinstance(word, str):
            yield Felt(device, word, effect["kind"], datetime.fromisoformat(effect["at"]))
