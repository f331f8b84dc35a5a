"""The console script `droidfleet-phone`: its start alone, so that Ctrl-C ends it quietly from the first moment.

`program` is the command; loading it takes most of a second.
"""

from __future__ import annotations

import sys

from droidfleet_shared.exit_codes import ExitCode


def entry() -> None:
    """Runs the command in ``sys.argv`` and exits with a documented code."""
    try:
        from droidfleet_agent.virtual_phone.program import main  # noqa: PLC0415 - see above

        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    entry()
