"""`Vision` by RapidOCR (ONNX models that come with its package, no network) and OpenCV's template matching."""

from __future__ import annotations

import logging
import threading
from functools import lru_cache
from typing import Any

import cv2
import numpy
from rapidocr import RapidOCR
from rapidocr.utils.output import RapidOCROutput

from droidfleet_agent.vision.port import LEAST_READING, PictureSize, UnreadablePictureError, Vision
from droidfleet_agent.vision.templates import find_template
from droidfleet_shared.screen.node import Bounds
from droidfleet_shared.screen.sights import Sighting

THREADS = 2
"""Of one reading. More speed it up little, and the host has other phones to serve."""

MAX_PIXELS = 40_000_000
"""Larger than any display; keeps a hostile picture from filling the memory."""

Image = numpy.ndarray[Any, numpy.dtype[numpy.uint8]]
"""Height x width x 3 (blue, green, red)."""


class RapidVision(Vision):
    """Blocks; one reading at a time whatever the callers do."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._reader: RapidOCR | None = None

    def size(self, picture: bytes) -> PictureSize:
        height, width = _decode(picture).shape[:2]
        return PictureSize(width, height)

    def prepare(self) -> None:
        self._read(numpy.zeros((64, 64, 3), dtype=numpy.uint8))

    def texts(self, picture: bytes) -> tuple[Sighting, ...]:
        read = self._read(_decode(picture))
        if read.boxes is None or read.txts is None or read.scores is None:
            return ()
        return tuple(
            Sighting(_around(box), float(score), text)
            for box, text, score in zip(read.boxes, read.txts, read.scores, strict=True)
            if score >= LEAST_READING and text.strip()
        )

    def find(self, picture: bytes, wanted: bytes, *, threshold: float) -> tuple[Sighting, ...]:
        return find_template(_decode(picture), _decode(wanted), threshold=threshold)

    def _read(self, image: Image) -> RapidOCROutput:
        with self._one_at_a_time:
            if self._reader is None:
                self._reader = _reader()
            read = self._reader(image)
        assert isinstance(read, RapidOCROutput)  # both parts of the reading were asked for
        return read


@lru_cache
def shared_vision() -> RapidVision:
    """The one of this process: its models take their memory once, however many phones it serves."""
    return RapidVision()


def _reader() -> RapidOCR:
    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    return RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.text_score": LEAST_READING,
            "Global.use_cls": False,  # texts upside down do not occur on a screen; saves a model
            "EngineConfig.onnxruntime.intra_op_num_threads": THREADS,
        }
    )


def _decode(picture: bytes) -> Image:
    # The colours alone: a screenshot's transparency means nothing.
    image = cv2.imdecode(numpy.frombuffer(picture, dtype=numpy.uint8), cv2.IMREAD_COLOR) if picture else None
    if image is None:
        raise UnreadablePictureError("UNREADABLE_PICTURE", "the bytes are not a PNG or JPEG that can be read.")
    height, width = image.shape[:2]
    if width * height > MAX_PIXELS:
        raise UnreadablePictureError("UNREADABLE_PICTURE", f"the picture has {width} x {height} pixels; too many.")
    return numpy.asarray(image, dtype=numpy.uint8)


def _around(box: Any) -> Bounds:
    xs, ys = [float(point[0]) for point in box], [float(point[1]) for point in box]
    return Bounds(round(min(xs)), round(min(ys)), round(max(xs)), round(max(ys)))
