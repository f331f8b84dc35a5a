"""The port `Vision`: what can be asked of a picture of the screen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from droidfleet_shared.errors import DroidfleetError, PreconditionError
from droidfleet_shared.screen.sights import Sighting


class VisionMissingError(PreconditionError):
    """The libraries that see are not installed."""


class UnreadablePictureError(DroidfleetError):
    """Bytes that are no picture, or a picture in which nothing could ever be told apart."""


@dataclass(frozen=True, slots=True)
class PictureSize:
    """Pixels."""

    width: int
    height: int


class Vision(ABC):
    """Sight. Both calls block for up to seconds and hold the processor: call them in a thread, one at a time.

    Raises (both):
        UnreadablePictureError.
    """

    @abstractmethod
    def size(self, picture: bytes) -> PictureSize:
        """The size of a PNG or JPEG."""

    def prepare(self) -> None:  # noqa: B027 - not every sight has something to load
        """Loads what reading needs, so that the first reading takes no longer than the next."""

    @abstractmethod
    def texts(self, picture: bytes) -> tuple[Sighting, ...]:
        """Every line of text, as read. What is read with less certainty than `LEAST_READING` is left out."""

    @abstractmethod
    def find(self, picture: bytes, wanted: bytes, *, threshold: float) -> tuple[Sighting, ...]:
        """Every place that looks like ``wanted`` (PNG or JPEG), in any of several sizes; each place once.

        ``threshold``: how alike, from 0 to 1, as normalised correlation of the colours.
        """


LEAST_READING = 0.5
"""A reading below this is as often wrong as right (RapidOCR's own default)."""
