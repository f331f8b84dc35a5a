"""Where captured dumps of real phones are, when they are at hand: a folder beside the checkout, or the one named."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(os.environ.get("DROIDFLEET_DUMPS", Path(__file__).resolve().parents[2].parent / "shared" / "dumps"))
DUMPS = sorted(FOLDER.glob("*.xml"))
