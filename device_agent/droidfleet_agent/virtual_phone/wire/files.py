"""The phone's files: a small file system in memory with a quota. No directories of its own: a directory exists while a
path lies below it, and a few always exist. Never touches the machine's disk, but to read the u2.jar that it lists.
"""

from __future__ import annotations

import hashlib
import importlib.util
import stat
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

QUOTA_BYTES = 64 * 1024 * 1024
"""All files of one phone together: room for the jar, the input method's apk and a few app packages."""

MAX_FILES = 1_000
MAX_PATH_BYTES = 1_024
"""As in AOSP's sync service."""

JAR_PATH = "/data/local/tmp/u2.jar"

_STANDING_DIRECTORIES = ("/", "/data", "/data/local", "/data/local/tmp", "/sdcard", "/sdcard/Download")
_DIRECTORY_MODE = stat.S_IFDIR | 0o771
_DIRECTORY_BYTES = 4_096


class FileError(Exception):
    """What a phone would answer: the text of errno, as the clients print it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What STAT and LIST tell. ``mode`` has the type bits; all three are 0 for a path that does not exist."""

    name: str
    mode: int
    size: int
    mtime: int


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes | Path
    mode: int
    size: int
    mtime: int


@cache
def _md5_of(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


@cache
def installed_jar() -> Path | None:
    """The automation server's jar as the installed uiautomator2 package has it; None when that is not installed."""
    spec = importlib.util.find_spec("uiautomator2")  # found without importing it: the client is not ours to load
    if spec is None or spec.origin is None:
        return None
    jar = Path(spec.origin).parent / "assets" / "u2.jar"
    return jar if jar.is_file() else None


def normal_path(path: str) -> str:
    """An absolute path without ``.``, ``..``, doubled or trailing slashes."""
    parts: list[str] = []
    for part in PurePosixPath("/", path).parts[1:]:
        if part == "..":
            if parts:
                parts.pop()
        else:
            parts.append(part)
    return "/" + "/".join(parts)


class PhoneFiles:
    """One phone's files."""

    def __init__(self, *, quota_bytes: int = QUOTA_BYTES, with_jar: bool = True) -> None:
        self._quota_bytes = quota_bytes
        self._files: dict[str, _File] = {}
        self._used_bytes = 0
        jar = installed_jar() if with_jar else None
        if jar is not None:
            # A path, not bytes: a thousand phones share the one copy on the disk.
            self._files[JAR_PATH] = _File(jar, stat.S_IFREG | 0o755, jar.stat().st_size, int(jar.stat().st_mtime))

    @property
    def free_bytes(self) -> int:
        """Bytes that may still be written."""
        return self._quota_bytes - self._used_bytes

    def stat(self, path: str) -> Entry:
        """Facts about a path; all zero when it does not exist."""
        path = normal_path(path)
        name = path.rsplit("/", 1)[1]
        file = self._files.get(path)
        if file is not None:
            return Entry(name, file.mode, file.size, file.mtime)
        if self._is_directory(path):
            return Entry(name, _DIRECTORY_MODE, _DIRECTORY_BYTES, 1)
        return Entry(name, 0, 0, 0)

    def list(self, path: str) -> list[Entry]:
        """What lies directly in a directory, by name; empty for anything else, as adbd answers."""
        base = normal_path(path).rstrip("/") + "/"
        names = {
            other[len(base) :].split("/", 1)[0]
            for other in (*self._files, *_STANDING_DIRECTORIES)
            if other.startswith(base) and other != base
        }
        return [self.stat(base + name) for name in sorted(names)]

    def read(self, path: str) -> bytes:
        """The whole content. Raises `FileError`."""
        path = normal_path(path)
        file = self._files.get(path)
        if file is None:
            raise FileError("Is a directory" if self._is_directory(path) else "No such file or directory")
        return file.content.read_bytes() if isinstance(file.content, Path) else file.content

    def md5(self, path: str) -> str:
        """The content's md5 in hexadecimal. Raises `FileError`."""
        file = self._files.get(normal_path(path))
        if file is not None and isinstance(file.content, Path):
            return _md5_of(file.content)
        return hashlib.md5(self.read(path), usedforsecurity=False).hexdigest()

    def write(self, path: str, content: bytes, *, mode: int = 0o644, mtime: int = 0) -> None:
        """Creates or replaces a file. Raises `FileError` when the quota or a limit is passed; then nothing changes."""
        path = normal_path(path)
        if len(path.encode()) > MAX_PATH_BYTES:
            raise FileError("File name too long")
        if self._is_directory(path):
            raise FileError("Is a directory")
        old = self._files.get(path)
        old_bytes = len(old.content) if old is not None and isinstance(old.content, bytes) else 0
        if self._used_bytes - old_bytes + len(content) > self._quota_bytes:
            raise FileError("No space left on device")
        if old is None and len(self._files) >= MAX_FILES:
            raise FileError("No space left on device")
        self._files[path] = _File(content, stat.S_IFREG | stat.S_IMODE(mode), len(content), mtime)
        self._used_bytes += len(content) - old_bytes

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file, or a directory with everything in it. Raises `FileError`."""
        path = normal_path(path)
        if path in self._files:
            self._forget(path)
            return
        inside = [other for other in self._files if other.startswith(path.rstrip("/") + "/")]
        if not inside:
            raise FileError("No such file or directory")
        if not recursive:
            raise FileError("Is a directory")
        for other in inside:
            self._forget(other)

    def _forget(self, path: str) -> None:
        file = self._files.pop(path)
        if isinstance(file.content, bytes):
            self._used_bytes -= len(file.content)

    def _is_directory(self, path: str) -> bool:
        if path in _STANDING_DIRECTORIES:
            return True
        return path not in self._files and any(other.startswith(path + "/") for other in self._files)
