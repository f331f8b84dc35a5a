"""What belongs to the whole process of a controller: signals, open files, tasks, and files read at the start."""

from __future__ import annotations

import asyncio
import resource
import signal
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import grpc

from droidfleet_shared.errors import InvalidInputError


@contextmanager
def stop_signals() -> Iterator[asyncio.Future[signal.Signals]]:
    """A future of the signal that ends the process: SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[signal.Signals] = loop.create_future()

    def end(number: signal.Signals) -> None:
        if not stop.done():
            stop.set_result(number)

    numbers = (signal.SIGTERM, signal.SIGINT)
    # Outside the main thread there are no signals to take.
    with suppress(RuntimeError, ValueError):
        for number in numbers:
            loop.add_signal_handler(number, end, number)
    try:
        yield stop
    finally:
        with suppress(RuntimeError, ValueError):
            for number in numbers:
                loop.remove_signal_handler(number)


@asynccontextmanager
async def running(group: asyncio.TaskGroup, work: Coroutine[object, object, None], name: str) -> AsyncIterator[None]:
    """Runs the work in a task of the group while the block lasts."""
    task = group.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def allow_many_files() -> None:
    """Each agent is a connection of the broker, which inherits our limit of open files: often 1,024 at first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def read_token(file: Path | None) -> str | None:
    """The bearer token in a file; None: there is no file.

    Raises:
        InvalidInputError: ``BAD_SETTING``.
    """
    if file is None:
        return None
    try:
        token = file.read_text().strip()
    except OSError as error:
        raise InvalidInputError("BAD_SETTING", f"api_token_file: {file} cannot be read: {error.strerror}.") from error
    if not token:
        raise InvalidInputError("BAD_SETTING", f"api_token_file: {file} is empty.")
    return token


def server_credentials(tls: tuple[Path, Path] | None) -> grpc.ServerCredentials | None:
    """Of a certificate chain and its key; None: there are none.

    Raises:
        InvalidInputError: ``BAD_SETTING``.
    """
    if tls is None:
        return None
    try:
        chain, key = (file.read_bytes() for file in tls)
    except OSError as error:
        raise InvalidInputError("BAD_SETTING", f"tls_cert, tls_key: {error.filename}: {error.strerror}.") from error
    return grpc.ssl_server_credentials([(key, chain)])
