"""The shell commands that a virtual phone knows, by name. Any other is `not found`, as in a real shell."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from droidfleet_agent.virtual_phone.wire.commands.apps import APP_COMMANDS
from droidfleet_agent.virtual_phone.wire.commands.base import Command
from droidfleet_agent.virtual_phone.wire.commands.dumpsys import dumpsys
from droidfleet_agent.virtual_phone.wire.commands.files import FILE_COMMANDS
from droidfleet_agent.virtual_phone.wire.commands.input import INPUT_COMMANDS
from droidfleet_agent.virtual_phone.wire.commands.processes import PROCESS_COMMANDS
from droidfleet_agent.virtual_phone.wire.commands.screen import SCREEN_COMMANDS
from droidfleet_agent.virtual_phone.wire.commands.system import SYSTEM_COMMANDS

COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        **APP_COMMANDS,
        **FILE_COMMANDS,
        **INPUT_COMMANDS,
        **PROCESS_COMMANDS,
        **SCREEN_COMMANDS,
        **SYSTEM_COMMANDS,
        "dumpsys": dumpsys,
    }
)
