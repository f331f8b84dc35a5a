"""The `shell:` and `exec:` services: runs a command line and sends back what it prints; a small prompt without one.

One stream is one shell process: closing the stream kills what runs in it, as on a phone. With shell protocol 2 stdout,
stderr and the exit status come apart; with version 1 they are merged and the status is lost.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from enum import IntEnum
from inspect import isawaitable

import structlog

from droidfleet_agent.virtual_phone import calls
from droidfleet_agent.virtual_phone.calls import CallKind
from droidfleet_agent.virtual_phone.faults import Fault, FaultKind
from droidfleet_agent.virtual_phone.wire.adbd import Service, Stream
from droidfleet_agent.virtual_phone.wire.commandline import (
    CommandLineError,
    Invocation,
    Joint,
    parse,
    with_status,
)
from droidfleet_agent.virtual_phone.wire.commands import COMMANDS
from droidfleet_agent.virtual_phone.wire.commands.base import NOT_FOUND, Command, Context, Machine, Output
from droidfleet_agent.virtual_phone.wire.files import FileError
from droidfleet_agent.virtual_phone.wire.tasks import Spawn

MAX_BACKGROUND = 16
"""Commands of one phone left running with `&`."""

MAX_LEVELS = 10
"""Shells within shells: a script that runs itself ends here."""

MAX_LINE_BYTES = 64 * 1024
"""Typed at the prompt without a line break; more ends the stream."""

_PACKET = struct.Struct("<BI")
_SYNTAX = 2
_CRASHED = 1

log = structlog.get_logger(__name__)

Write = Callable[[bytes], None]


class Packet(IntEnum):
    """Ids of shell protocol 2. Source: AOSP ``shell_protocol.h``."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    EXIT = 3
    CLOSE_STDIN = 4
    WINDOW_SIZE = 5


class Shell:
    """One phone's shell: runs command lines. ``go_offline`` and ``spawn`` are the phone's."""

    def __init__(self, machine: Machine, *, spawn: Spawn, go_offline: Callable[[float], None]) -> None:
        self.machine = machine
        self.spawn = spawn
        self.go_offline = go_offline
        self._background = 0

    async def run(self, line: str, *, out: Write, err: Write, level: int = 0) -> int:
        """Runs a command line to its end; returns the status of its last command. ``level``: shells around this one."""
        if level > MAX_LEVELS:
            err(b"sh: too many levels\n")
            return _CRASHED
        try:
            invocations = parse(line.replace("\0", ""))
        except CommandLineError as error:
            err(f"{error}\n".encode())
            return _SYNTAX
        status = 0
        piped = b""
        for position, invocation in enumerate(invocations):
            if (invocation.joint is Joint.AND and status) or (invocation.joint is Joint.OR and not status):
                continue
            into_pipe = position + 1 < len(invocations) and invocations[position + 1].joint is Joint.PIPE
            if invocation.background:
                self._leave_running(invocation)
                status = 0
                continue
            kept: list[bytes] = []
            context = Context(
                self.machine,
                kept.append if into_pipe or invocation.write_to else out,
                piped if invocation.joint is Joint.PIPE else b"",
                invocation.environment,
                level,
            )
            output = await self._run_one(context, invocation, status)
            status = output.code
            context.write(output.stdout)
            if output.stderr:
                err(output.stderr)
            piped = b"".join(kept)
            if invocation.write_to:
                status = self._write_file(invocation.write_to, piped, err) or status
        return status

    async def output_of(self, line: str) -> str:
        """Everything a command line prints."""
        printed: list[bytes] = []
        await self.run(line, out=printed.append, err=printed.append)
        return b"".join(printed).decode("utf-8", errors="replace")

    async def _run_one(self, context: Context, invocation: Invocation, status: int) -> Output:
        words = [with_status(word, status) for word in invocation.words]
        if words[0] in {"nohup", "exec", "setsid"} and len(words) > 1:
            words = words[1:]
        if words[0] == "sh":
            return await self._sub_shell(context, words)
        command = COMMANDS.get(words[0].removeprefix("/system/bin/"))
        if command is None:
            return Output(stderr=f"/system/bin/sh: {words[0]}: inaccessible or not found\n".encode(), code=NOT_FOUND)
        try:
            return await self._call(command, context, words[1:])
        except Exception as error:  # a defect of a command must look like one, not like a hang
            log.exception("command_failed", command=words[0])
            return Output(stderr=f"{words[0]}: {error!r}\n".encode(), code=_CRASHED)

    async def _call(self, command: Command, context: Context, words: list[str]) -> Output:
        if asyncio.iscoroutinefunction(command):
            return await _awaited(command(context, words))
        async with self.machine.lock:
            self.machine.phone.tick()
            return await _awaited(command(context, words))

    async def _sub_shell(self, context: Context, words: list[str]) -> Output:
        line = words[2] if len(words) > 2 and words[1] == "-c" else context.stdin.decode("utf-8", errors="replace")
        errors: list[bytes] = []
        status = await self.run(line, out=context.write, err=errors.append, level=context.level + 1)
        return Output(stderr=b"".join(errors), code=status)

    def _leave_running(self, invocation: Invocation) -> None:
        if self._background >= MAX_BACKGROUND:
            log.warning("too_many_background_commands", commands=MAX_BACKGROUND)
            return
        self._background += 1
        self.spawn(self._run_background(invocation), f"background-{invocation.words[0]}")

    async def _run_background(self, invocation: Invocation) -> None:
        try:
            await self._run_one(Context(self.machine, lambda _: None, b"", invocation.environment), invocation, 0)
        finally:
            self._background -= 1

    def _write_file(self, path: str, content: bytes, err: Write) -> int:
        try:
            self.machine.files.write(path, content)
        except FileError as error:
            err(f"/system/bin/sh: can't create {path}: {error}\n".encode())
            return 1
        return 0


async def _awaited(output: object) -> Output:
    if isawaitable(output):
        output = await output
    assert isinstance(output, Output)
    return output


class ShellService(Service):
    """One shell stream. ``line`` empty: runs each line that comes in, at a prompt that echoes when ``terminal``.

    ``packets``: shell protocol 2.
    """

    def __init__(self, stream: Stream, shell: Shell, line: str, *, packets: bool, terminal: bool) -> None:
        self._stream = stream
        self._shell = shell
        self._packets = packets
        self._is_terminal = terminal
        self._typed = bytearray()
        self._input = bytearray()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(maxsize=MAX_LINE_BYTES)
        work = self._one_command(line) if line else self._prompt()
        self._task = shell.spawn(work, "shell")

    def received(self, data: bytes) -> None:
        if not self._packets:
            self._type(data)
            return
        self._input += data
        while len(self._input) >= _PACKET.size and self._stream.alive:
            kind, length = _PACKET.unpack_from(self._input)
            if length > MAX_LINE_BYTES:
                self._stream.abort()
            if len(self._input) < _PACKET.size + length:
                return
            body = bytes(self._input[_PACKET.size : _PACKET.size + length])
            del self._input[: _PACKET.size + length]
            if kind == Packet.STDIN:
                self._type(body)
            elif kind == Packet.CLOSE_STDIN:
                self._end_of_input()

    def closed(self) -> None:
        self._task.cancel()

    # -- output

    def _out(self, data: bytes) -> None:
        self._send(Packet.STDOUT, data)

    def _err(self, data: bytes) -> None:
        self._send(Packet.STDERR, data)

    def _send(self, packet: Packet, data: bytes) -> None:
        if data:
            self._stream.write(_packed(packet, data) if self._packets else data)

    def _exit(self, status: int) -> None:
        if self._packets:
            self._stream.write(_packed(Packet.EXIT, bytes([status & 0xFF])))
        self._stream.close()

    # -- running

    async def _one_command(self, line: str) -> None:
        machine = self._shell.machine
        fault = machine.faults.take(calls.SHELL, line) if machine.faults.active else None
        delay_s = machine.latency.seconds(CallKind.SHELL)
        if fault is not None:
            delay_s += fault.seconds or 0.0 if fault.do is FaultKind.SLOW else 0.0
        if delay_s:
            await machine.phone.clock.sleep(delay_s)
        if fault is not None and not fault.after and self._strike(fault):
            return
        if fault is not None and fault.after:
            await self._shell.output_of(line)  # done, and nobody hears of it
            if self._strike(fault):
                return
        self._exit(await self._shell.run(line, out=self._out, err=self._err))

    def _strike(self, fault: Fault) -> bool:
        """Carries out a fault. True: the command is not run, or its output is lost."""
        match fault.do:
            case FaultKind.HANG:
                pass
            case FaultKind.DROP:
                self._stream.abort()
            case FaultKind.OFFLINE:
                self._shell.go_offline(fault.seconds or 0.0)
            case _:
                return False
        return True

    async def _prompt(self) -> None:
        status = 0
        while True:
            self._echo(f"{self._shell.machine.phone.identity.device}:/ $ ".encode())
            line = await self._lines.get()
            if line is None or line.split()[:1] == ["exit"]:
                break
            status = await self._shell.run(line, out=self._terminal, err=self._terminal)
        self._exit(status)

    def _terminal(self, data: bytes) -> None:
        # The host has put its terminal into raw mode: a line break needs its carriage return.
        self._out(data.replace(b"\n", b"\r\n") if self._is_terminal else data)

    def _echo(self, data: bytes) -> None:
        if self._is_terminal:
            self._out(data)

    # -- input

    def _type(self, data: bytes) -> None:
        for byte in data:
            if byte in b"\r\n":
                self._echo(b"\r\n")
                self._enter()
            elif byte == 4 and not self._typed:  # Ctrl+D
                self._end_of_input()
            elif byte in (8, 127) and self._typed:  # backspace
                self._typed.pop()
                self._echo(b"\b \b")
            elif byte >= 32:
                self._typed.append(byte)
                self._echo(bytes([byte]))
        if len(self._typed) > MAX_LINE_BYTES:
            self._stream.abort()

    def _enter(self) -> None:
        line = self._typed.decode("utf-8", errors="replace")
        self._typed.clear()
        if not self._lines.full():
            self._lines.put_nowait(line)

    def _end_of_input(self) -> None:
        if self._typed:
            self._enter()  # a last line without its break
        if not self._lines.full():
            self._lines.put_nowait(None)


def _packed(packet: Packet, data: bytes) -> bytes:
    return _PACKET.pack(packet, len(data)) + data
