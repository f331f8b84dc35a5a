"""What an agent host keeps on disk: who it is, which names and phones it uses, its journals. Private to its user.

``$XDG_STATE_HOME/droidfleet`` (else ``~/.local/state/droidfleet``), or ``DROIDFLEET_STATE``.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from droidfleet_agent.journal.sqlite import SqliteJournal
from droidfleet_agent.link.heartbeat import name_taken
from droidfleet_shared.errors import ConflictError, PreconditionError

STATE_ENV = "DROIDFLEET_STATE"

FOLDER_MODE = 0o700
FILE_MODE = 0o600


class StateError(PreconditionError):
    """The state folder cannot be used."""


def default_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's state folder."""
    if environ.get(STATE_ENV):
        return Path(environ[STATE_ENV])
    base = environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "droidfleet"


class PhoneTakenError(ConflictError):
    """Another agent of this host drives the phone."""


class StateFolder:
    """The state folder of this host, made when it does not exist.

    Raises:
        StateError: it cannot be made or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            # Also when it was there before, with the rights that some umask gave it.
            path.chmod(FOLDER_MODE)
            for folder in ("names", "phones", "journals"):
                (path / folder).mkdir(mode=FOLDER_MODE, exist_ok=True)

    def host_id(self) -> str:
        """The host's random id, drawn once.

        Raises:
            StateError: it can neither be read nor written.
        """
        file = self.path / "host-id"
        with self._explained():
            # A file that is written under another name first is never seen half-written by a second agent.
            fresh = self.path / f"host-id.{os.getpid()}.{secrets.token_hex(4)}"
            if not file.exists():
                _write(fresh, secrets.token_hex(16))
                try:
                    os.link(fresh, file)
                except FileExistsError:
                    pass
                finally:
                    fresh.unlink()
            return file.read_text(encoding="ascii").strip()

    @contextmanager
    def name_lock(self, name: str) -> Iterator[None]:
        """Holds an agent's name on this host. The lock ends with the process, however it ends.

        Raises:
            NameTakenError: another process of this host holds it.
            StateError: the lock file cannot be written.
        """
        with self._lock(
            self.path / "names" / _file_name(name), taken=lambda holder: name_taken(name, f"{holder} on this host")
        ):
            yield

    @contextmanager
    def phone_lock(self, serial: str, *, adb: str) -> Iterator[None]:
        """Holds a phone, by serial and address of its adb server: two agents of other names would both touch it.

        Raises:
            PhoneTakenError: another agent of this host holds it.
            StateError: the lock file cannot be written.
        """
        with self._lock(
            self.path / "phones" / _file_name(f"{adb} {serial}"), taken=lambda holder: _phone_taken(serial, holder)
        ):
            yield

    @contextmanager
    def _lock(self, file: Path, *, taken: Callable[[str], ConflictError]) -> Iterator[None]:
        with self._explained():
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT, FILE_MODE)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
                raise taken(f"pid {holder or 'unknown'}") from None
            with self._explained():
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(descriptor)

    def journal(self, name: str) -> SqliteJournal:
        """The journal of the agent of this name on this host. Hold the name's lock.

        Raises:
            JournalUnusableError: it can be neither read nor written.
        """
        return SqliteJournal(self.path / "journals" / _file_name(name))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StateError(
                "STATE_FOLDER_UNUSABLE",
                f"the state folder {self.path} cannot be used: {error.strerror or error}.",
                hint=f"Make it writable, or name another one with {STATE_ENV}.",
            ) from error


def _phone_taken(serial: str, holder: str) -> PhoneTakenError:
    return PhoneTakenError(
        "PHONE_TAKEN",
        f"the phone {serial} is driven by another agent: {holder} on this host.",
        hint="Stop that agent, or leave the phone to it; `supervise` drives every attached phone.",
        details={"serial": serial, "holder": holder},
    )


def _file_name(name: str) -> str:
    # A digest, since a name may be longer than a file's name.
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _write(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
