"""Commands that show the screen: screencap and the stock `uiautomator dump`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from droidfleet_agent.virtual_phone.wire.commands.base import KILLED, Command, Context, Output, failed, options, printed
from droidfleet_agent.virtual_phone.wire.files import FileError

DEFAULT_DUMP_PATH = "/sdcard/window_dump.xml"


async def _screencap(context: Context, words: Sequence[str]) -> Output:
    _, rest = options(words, valued=("-d",))
    async with context.machine.lock:
        context.phone.tick()
        # Painted in a thread: tens of milliseconds in which other phones go on.
        picture = await asyncio.to_thread(lambda: context.phone.screenshot(media="PNG"))
    if not rest:
        return Output(picture)
    try:
        context.machine.files.write(rest[0], picture)
    except FileError as error:
        return failed(f"Error opening file: {rest[0]} ({error})")
    return Output()


def _uiautomator(context: Context, words: Sequence[str]) -> Output:
    if not words or words[0] != "dump":
        return failed("Usage: uiautomator <subcommand> [options]")
    if context.machine.automation.running:
        # Android has one UiAutomation connection, and the automation server holds it.
        return Output(stderr=b"Killed\n", code=KILLED)
    _, rest = options(words[1:])
    path = rest[0] if rest else DEFAULT_DUMP_PATH
    try:
        context.machine.files.write(path, context.phone.dump_stock().encode())
    except FileError as error:
        return failed(f"ERROR: could not write {path}: {error}")
    return printed(f"UI hierchary dumped to: {path}")  # the phone's own spelling


SCREEN_COMMANDS: Mapping[str, Command] = MappingProxyType({"screencap": _screencap, "uiautomator": _uiautomator})
