"""Finds every place of a picture that looks like another one, in any of several sizes.

A coarse search over all sizes on small grey copies proposes places; each is then judged in colour at full size and at
sizes near by. The judge alone decides, so that the proposals may be generous.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cv2
import numpy

from droidfleet_agent.vision.port import UnreadablePictureError
from droidfleet_shared.screen.node import Bounds
from droidfleet_shared.screen.sights import Sighting

SCALES = tuple(1.1**step for step in range(-7, 9))
"""From half to about double: phones with the same app differ by no more in pixels for a dp. 10 % apart, because the
likeness of a usual icon falls by less than the coarse search allows for within 5 %."""

FINE = (0.94, 0.97, 1.0, 1.03, 1.06)
"""Sizes around a proposal at which it is judged."""

COARSE_SIDE = 640
"""Pixels of the longer side in the coarse search: twice as many take four times as long."""

LEAST_COARSE_SIDE = 8
"""A picture that is smaller than this in the coarse search is compared at a finer one: too little is left of it."""

COARSE_ALLOWANCE = 0.25
"""How much less alike a place may look in the coarse search."""

MAX_PROPOSALS = 40
"""The likeliest places that are judged for each size."""

MAX_FOUND = 50
LEAST_SIDE = 8
LEAST_CONTRAST = 4.0
"""Standard deviation of the brightness: a picture of one colour is found everywhere and nowhere."""

OVERLAP = 0.3
"""Part of the smaller of two rectangles that they share when they are the same find."""

Image = numpy.ndarray[Any, numpy.dtype[numpy.uint8]]


def find_template(image: Image, wanted: Image, *, threshold: float) -> tuple[Sighting, ...]:
    """Every place in reading order, at most `MAX_FOUND`.

    Raises:
        UnreadablePictureError: ``wanted`` is too small or too plain to be told from anything.
    """
    height, width = wanted.shape[:2]
    if min(height, width) < LEAST_SIDE or float(wanted.std(axis=(0, 1)).max()) < LEAST_CONTRAST:
        raise UnreadablePictureError(
            "PICTURE_TOO_PLAIN",
            f"a picture of {width} x {height} pixels with so little in it would be found anywhere.",
            hint=f"Cut out a part with edges or letters, at least {LEAST_SIDE} pixels each way.",
        )
    judged = [
        found
        for place, scale in _proposals(image, wanted, threshold)
        if (found := _judge(image, wanted, place, scale, threshold))
    ]
    best: list[Sighting] = []
    for found in sorted(judged, key=lambda each: -each.score):
        if all(not _same(found.bounds, other.bounds) for other in best):
            best.append(found)
        if len(best) == MAX_FOUND:
            break
    return tuple(sorted(best, key=lambda each: (each.bounds.top, each.bounds.left)))


def _proposals(image: Image, wanted: Image, threshold: float) -> Iterator[tuple[tuple[int, int], float]]:
    """Left upper corners in the full picture, and the size at which the place looked like it."""
    for scale in SCALES:
        height, width = (round(side * scale) for side in wanted.shape[:2])
        if height > image.shape[0] or width > image.shape[1] or min(height, width) < LEAST_SIDE:
            continue
        shrink = min(1.0, max(COARSE_SIDE / max(image.shape[:2]), LEAST_COARSE_SIDE / min(height, width)))
        small = _grey(_resized(image, shrink))
        likeness = cv2.matchTemplate(small, _grey(_resized(wanted, scale * shrink)), cv2.TM_CCOEFF_NORMED)
        # The middle of each hill: what is at least as alike as all around it.
        hills = (likeness == cv2.dilate(likeness, numpy.ones((5, 5), numpy.uint8))) & (
            likeness >= threshold - COARSE_ALLOWANCE
        )
        rows, columns = numpy.nonzero(hills)
        order = numpy.argsort(-likeness[rows, columns])[:MAX_PROPOSALS]
        for place in order:
            yield (round(columns[place] / shrink), round(rows[place] / shrink)), scale


def _judge(image: Image, wanted: Image, place: tuple[int, int], scale: float, threshold: float) -> Sighting | None:
    best: Sighting | None = None
    left, top = place
    for fine in FINE:
        template = _resized(wanted, scale * fine)
        height, width = template.shape[:2]
        # As far around as one pixel of the coarse search, and the finer sizes, can be off.
        slack = max(6, round(0.08 * max(height, width)), round(2 * max(image.shape[:2]) / COARSE_SIDE))
        x0, y0 = max(0, left - slack), max(0, top - slack)
        part = image[y0 : top + height + slack, x0 : left + width + slack]
        if part.shape[0] < height or part.shape[1] < width:
            continue
        likeness = cv2.matchTemplate(part, template, cv2.TM_CCOEFF_NORMED)
        _, score, _, (x, y) = cv2.minMaxLoc(likeness)
        if numpy.isfinite(score) and score >= threshold and (best is None or score > best.score):
            best = Sighting(Bounds(x0 + x, y0 + y, x0 + x + width, y0 + y + height), min(1.0, float(score)))
    return best


def _resized(image: Image, factor: float) -> Image:
    if factor == 1.0:
        return image
    size = max(1, round(image.shape[1] * factor)), max(1, round(image.shape[0] * factor))
    how = cv2.INTER_AREA if factor < 1.0 else cv2.INTER_LINEAR
    return numpy.asarray(cv2.resize(image, size, interpolation=how), dtype=numpy.uint8)


def _grey(image: Image) -> Image:
    return numpy.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), dtype=numpy.uint8)


def _same(one: Bounds, other: Bounds) -> bool:
    return one.clipped(other).area >= OVERLAP * min(one.area, other.area)
