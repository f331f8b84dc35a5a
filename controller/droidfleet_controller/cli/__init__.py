"""The command line `droidfleet`: words in, one gRPC call or stream, words out.

Owns arguments, texts for people, output for programs and exit codes. Talks to the controller through `client` alone
(`serve`, which starts one, excepted) and decides nothing about the fleet. Data passes
``commands -> client -> documents (json, yaml) or tables (people)``; `failures` turns errors into text and exit codes.
"""

from __future__ import annotations

import gc
import os
import sys

EXTRA_MISSING = "EXTRA_MISSING: the library '{name}' is not installed.\nhint: pip install 'droidfleet[controller]'\n"
EXIT_UNAVAILABLE = 3
EXIT_INTERRUPTED = 130


def entry() -> None:
    """The console script: runs the command in ``sys.argv`` and exits with the documented code."""
    # Its C core writes to standard error by itself what we say in our own words; it reads this when it is loaded.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        # The base install (the agent's) lacks these libraries; loading them here lets us say so.
        # What is loaded stays: searching it for rubbish meanwhile takes a tenth of a short command's time.
        gc.disable()
        from droidfleet_controller.cli.app import main  # noqa: PLC0415

        gc.freeze()
        gc.enable()
        main()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing.startswith("droidfleet") or not missing:
            raise
        sys.stderr.write(EXTRA_MISSING.format(name=missing))
        sys.exit(EXIT_UNAVAILABLE)
    except KeyboardInterrupt:
        # Before the program was loaded; afterwards it says something about what goes on.
        sys.exit(EXIT_INTERRUPTED)
