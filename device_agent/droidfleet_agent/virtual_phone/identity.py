"""Who a virtual phone says it is: the facts that `getprop`, `deviceInfo` and `wm size` answer from."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_DENSITY_DPI = 420
"""The density bucket of most 1080-pixel-wide phones; 1 dp is then 2.625 pixels."""

BASELINE_DPI = 160
"""Android defines 1 dp as one pixel at 160 dpi."""


@dataclass(frozen=True, slots=True)
class PhoneIdentity:
    """Facts of one phone. Width and height are pixels in the natural (portrait) orientation.

    ``manufacturer`` and ``device`` are what `ro.product.manufacturer` and `ro.product.device` answer; ``model`` may
    hold spaces (the wire replaces them where adb does not welcome them).
    """

    serial: str = "VP00000001"
    model: str = "Pixel 7"
    brand: str = "google"
    manufacturer: str = "Google"
    device: str = "panther"
    product: str = "panther"
    android: str = "14"
    sdk: int = 34
    abi: str = "arm64-v8a"
    width: int = 1080
    height: int = 2400
    density_dpi: int = DEFAULT_DENSITY_DPI
    battery_percent: int = 85

    @property
    def pixels_per_dp(self) -> float:
        """Pixels in one density-independent pixel."""
        return self.density_dpi / BASELINE_DPI
