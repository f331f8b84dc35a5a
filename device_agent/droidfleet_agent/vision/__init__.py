"""Sight on the picture of the screen, for screens without nodes: reads texts, finds pictures.

`port` says what can be asked; `rapid` answers with RapidOCR and OpenCV and is the only module that imports them. They
come with the extra ``droidfleet[vision]``; an agent without it refuses tasks that need them before anything runs.
"""

from __future__ import annotations

import importlib.util

from droidfleet_agent.vision.port import Vision, VisionMissingError

_NEEDS = ("cv2", "rapidocr", "onnxruntime")


def vision_installed() -> bool:
    """Whether the extra is installed. Imports nothing of it."""
    return all(importlib.util.find_spec(name) is not None for name in _NEEDS)


def load_vision() -> Vision:
    """The one `Vision` of this process; takes a second the first time, and some 250 MB once it has read a text.

    Raises:
        VisionMissingError: the extra is not installed.
    """
    if not vision_installed():
        raise VisionMissingError(
            "VISION_MISSING",
            "`ocrText` and `image` selectors need the extra `vision`, which is not installed here.",
            hint="Install it beside the agent: pip install 'droidfleet[vision]'.",
        )
    from droidfleet_agent.vision.rapid import shared_vision  # noqa: PLC0415 - only with the extra, and slow

    return shared_vision()
