"""Commands about text and files: echo, cat, ls, rm, md5sum, grep, and the like."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from droidfleet_agent.virtual_phone.wire.commands.base import (
    NOT_FOUND,
    Command,
    Context,
    Output,
    failed,
    options,
    printed,
)
from droidfleet_agent.virtual_phone.wire.files import FileError

_Plain = Callable[[Context, Sequence[str]], Output]


def _echo(_context: Context, words: Sequence[str]) -> Output:
    if words and words[0] == "-n":
        return Output(" ".join(words[1:]).encode())
    return Output((" ".join(words) + "\n").encode())


def _each_file(name: str, act: Callable[[Context, str], bytes]) -> _Plain:
    """A command that does the same for each path, and goes on after one that failed."""

    def command(context: Context, words: Sequence[str]) -> Output:
        out, err = b"", ""
        for path in words:
            try:
                out += act(context, path)
            except FileError as error:
                err += f"{name}: {path}: {error}\n"
        return Output(out, err.encode(), 1 if err else 0)

    return command


_cat_files = _each_file("cat", lambda context, path: context.machine.files.read(path))
_md5sum = _each_file("md5sum", lambda context, path: f"{context.machine.files.md5(path)}  {path}\n".encode())


def _cat(context: Context, words: Sequence[str]) -> Output:
    return _cat_files(context, words) if words else Output(context.stdin)


def _ls(context: Context, words: Sequence[str]) -> Output:
    flags, paths = options(words)
    long = any("l" in flag for flag in flags)
    out, err = "", ""
    for path in paths or ["/"]:
        entry = context.machine.files.stat(path)
        if not entry.mode:
            err += f"ls: {path}: No such file or directory\n"
            continue
        entries = context.machine.files.list(path) if stat.S_ISDIR(entry.mode) else [entry]
        for item in entries:
            name = item.name if stat.S_ISDIR(entry.mode) else path
            facts = f"{stat.filemode(item.mode)} 1 shell shell {item.size} 2026-01-01 00:00 " if long else ""
            out += f"{facts}{name}\n"
    return Output(out.encode(), err.encode(), 1 if err else 0)


def _rm(context: Context, words: Sequence[str]) -> Output:
    flags, paths = options(words)
    letters = "".join(flags)
    err = ""
    for path in paths:
        try:
            context.machine.files.remove(path, recursive="r" in letters or "R" in letters)
        except FileError as error:
            if "f" not in letters:
                err += f"rm: {path}: {error}\n"
    return Output(stderr=err.encode(), code=1 if err else 0)


def _grep(context: Context, words: Sequence[str]) -> Output:
    flags, rest = options(words)
    if not rest:
        return failed("grep: no REGEX", 2)
    text = context.stdin.decode("utf-8", errors="replace")
    # As a fixed string: a pattern of a stranger must not run for ever here.
    wanted = re.compile(re.escape(rest[0]), re.IGNORECASE if "-i" in flags else 0)
    lines = [line for line in text.splitlines() if bool(wanted.search(line)) != ("-v" in flags)]
    return Output("".join(f"{line}\n" for line in lines).encode(), code=0 if lines else 1)


def _head(context: Context, words: Sequence[str]) -> Output:
    found, _ = options(words, valued=("-n",))
    short = next((flag[1:] for flag in found if flag[1:].isdigit()), "10")
    count = found.get("-n", short)
    lines = context.stdin.splitlines(keepends=True)
    return Output(b"".join(lines[: int(count) if count.isdigit() else 10]))


_TOYBOX: Mapping[str, _Plain] = MappingProxyType(
    {"cat": _cat, "echo": _echo, "grep": _grep, "head": _head, "ls": _ls, "md5sum": _md5sum, "rm": _rm}
)


def _toybox(context: Context, words: Sequence[str]) -> Output:
    if not words:
        return printed(" ".join(_TOYBOX))
    command = _TOYBOX.get(words[0])
    if command is None:
        return failed(f"toybox: Unknown command {words[0]}", NOT_FOUND)
    return command(context, words[1:])


FILE_COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        **_TOYBOX,
        "toybox": _toybox,
        "md5": _md5sum,
        "true": lambda _context, _words: Output(),
        ":": lambda _context, _words: Output(),
        "false": lambda _context, _words: Output(code=1),
        "mkdir": lambda _context, _words: Output(),  # a directory exists while something lies in it
        "chmod": lambda _context, _words: Output(),
    }
)
