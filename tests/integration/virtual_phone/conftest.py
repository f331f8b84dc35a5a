"""Phones that run the workbench scenario, and the stock clients connected to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import adbutils
import pytest
import uiautomator2

from droidfleet_agent.virtual_phone.faults import Fault
from droidfleet_agent.virtual_phone.server import PhoneOptions
from support.adb import AdbServer, ConnectedPhones, RunningPhone

WORKBENCH = Path(__file__).with_name("workbench.yaml")
BENCH = "com.example.bench"

MakePhone: TypeAlias = Callable[..., RunningPhone]


def fault(on: str, do: str, **more: object) -> Fault:
    """A fault, written short."""
    return Fault.model_validate({"on": on, "do": do, **more})


@pytest.fixture
def phone(phones: ConnectedPhones) -> RunningPhone:
    """One connected phone."""
    return phones(PhoneOptions(scenario=WORKBENCH))


@pytest.fixture
def adb_device(phone: RunningPhone, adb_server: AdbServer) -> adbutils.AdbDevice:
    """The stock adbutils on that phone."""
    assert adbutils.adb.server_version() >= 41
    return adbutils.adb.device(phone.address)


@pytest.fixture
def device(phone: RunningPhone) -> Iterator[uiautomator2.Device]:
    """The stock uiautomator2 client on that phone. Its automation server is stopped at the end."""
    device = uiautomator2.connect(phone.address)
    device.settings["wait_timeout"] = 5.0
    yield device
    device.stop_uiautomator(wait=False)
