"""The console script: what it loads, and what it says when it cannot."""

from __future__ import annotations

import subprocess
import sys

ASK_FOR_HELP = "import sys; sys.argv = ['droidfleet', '--help']; from droidfleet_controller.cli import entry; "


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_base_install_says_which_extra_is_missing() -> None:
    ran = run(f"import sys; sys.modules['typer'] = None; {ASK_FOR_HELP} entry()")
    assert ran.returncode == 3
    assert ran.stderr == (
        "EXTRA_MISSING: the library 'typer' is not installed.\nhint: pip install 'droidfleet[controller]'\n"
    )


def test_help_loads_neither_database_nor_bus_nor_validator() -> None:
    check = "assert not {'sqlalchemy', 'nats', 'uvicorn', 'droidfleet_shared.protocol.validate'} & set(sys.modules)"
    ran = run(f"import atexit; {ASK_FOR_HELP} atexit.register(lambda: exec({check!r})); entry()")
    assert (ran.returncode, "Usage: droidfleet" in ran.stdout, ran.stderr) == (0, True, "")
