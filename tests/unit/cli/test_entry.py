"""The console script: what it loads, and what it says when it cannot."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASK_FOR_HELP = "import sys; sys.argv = ['droidfleet', '--help']; from droidfleet_controller.cli import entry; "


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_base_install_says_which_extra_is_missing() -> None:
    ran = run(f"import sys; sys.modules['typer'] = None; {ASK_FOR_HELP} entry()")
    assert ran.returncode == 3
    assert ran.stderr == (
        "EXTRA_MISSING: the library 'typer' is not installed.\nhint: pip install 'droidfleet[controller]'\n"
    )


@pytest.mark.parametrize(
    ("script", "loaded"),
    [
        ("droidfleet_controller.cli", "droidfleet_controller.cli.app"),
        ("droidfleet_agent.cli", "droidfleet_agent.cli.exec"),
        ("droidfleet_agent.virtual_phone.cli", "droidfleet_agent.virtual_phone.program"),
    ],
)
def test_interrupt_while_a_program_loads_ends_it_quietly(script: str, loaded: str) -> None:
    interrupt = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *rest):\n"
        f"        if name == {loaded!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting()); sys.argv = ['x', 'exec']\n"
    )
    ran = run(f"{interrupt}from {script} import entry; entry()")
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


def test_help_loads_neither_database_nor_bus_nor_validator() -> None:
    check = "assert not {'sqlalchemy', 'nats', 'uvicorn', 'droidfleet_shared.protocol.validate'} & set(sys.modules)"
    ran = run(f"import atexit; {ASK_FOR_HELP} atexit.register(lambda: exec({check!r})); entry()")
    assert (ran.returncode, "Usage: droidfleet" in ran.stdout, ran.stderr) == (0, True, "")
