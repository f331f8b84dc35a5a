"""The keys under which an error's code, hint and issues travel in gRPC's trailing metadata: both ends of it.

Keys that end in ``-bin`` carry bytes (UTF-8 here), the others ASCII.
"""

from __future__ import annotations

CODE_KEY = "droidfleet-code"
HINT_KEY = "droidfleet-hint"
HINT_BYTES_KEY = "droidfleet-hint-bin"
ISSUES_KEY = "droidfleet-issues-bin"
