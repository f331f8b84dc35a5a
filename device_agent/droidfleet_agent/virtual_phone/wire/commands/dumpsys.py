"""`dumpsys`: the parts of its output that clients read, in the form of Android 14."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from droidfleet_agent.virtual_phone.phone import VirtualPhone
from droidfleet_agent.virtual_phone.wire.commands.base import Context, Output, failed, printed

DISPLAY_ID = 4_619_827_259_835_644_672
"""The physical display's id as SurfaceFlinger prints it (EDID based, the same on every phone here)."""

_TASK = 12
_BATTERY_FULL = 5
_BATTERY_DISCHARGING = 3
_FULL_PERCENT = 100


def process_id(package: str) -> int:
    """The pid of an app's process: always the same for a name, and apart from the small ones of the system."""
    return 2_000 + zlib.crc32(package.encode()) % 28_000


def _hash(text: str) -> str:
    return f"{zlib.crc32(text.encode()):07x}"


def _component(phone: VirtualPhone) -> str:
    focus = phone.focus()
    return f"{focus.package}/{focus.activity}" if focus.activity else ""


def _window(context: Context, _words: Sequence[str]) -> Output:
    phone = context.phone
    focus = phone.focus()
    component = _component(phone)
    window = component or focus.package or "NotificationShade"
    record = f"ActivityRecord{{{_hash(component)} u0 {component} t{_TASK}}}" if component else "null"
    policy = (
        f"    mAwake={str(phone.screen_on).lower()}\n    KeyguardServiceDelegate\n"
        f"      showing={str(phone.locked).lower()}\n      secure={str(phone.secure_lock).lower()}"
    )
    return printed(
        "WINDOW MANAGER WINDOWS (dumpsys window windows)\n"
        f"  Window #0 Window{{{_hash(window)} u0 {window}}}:\n"
        f"    mDisplayId=0 rootTaskId={_TASK}\n"
        f"{policy}\n"
        f"  mCurrentFocus=Window{{{_hash(window)} u0 {window}}}\n"
        f"  mFocusedApp={record}\n"
        f"  mRotation={phone.rotation}"
    )


def _activity(context: Context, words: Sequence[str]) -> Output:
    phone = context.phone
    front = phone.front_activity()
    component = f"{front.package}/{front.activity}"
    if words and words[0] == "top":
        pid = process_id(front.package)
        return printed(f"TASK {front.package} id={_TASK}\n  ACTIVITY {component} {_hash(component)} pid={pid}")
    # Under a shade an activity goes on; under the lock screen it is stopped.
    resumed = phone.screen_on and not phone.locked
    record = f"ActivityRecord{{{_hash(component)} u0 {component} t{_TASK}}}" if resumed else "null"
    return printed(
        "ACTIVITY MANAGER ACTIVITIES (dumpsys activity activities)\n"
        "Display #0 (activities from top to bottom):\n"
        f"  topResumedActivity={record}\n"
        f"    mResumedActivity: {record}"
    )


def _display(context: Context, _words: Sequence[str]) -> Output:
    phone = context.phone
    width, height = phone.identity.width, phone.identity.height
    shown_width, shown_height = phone.display_size
    return printed(
        "DISPLAY MANAGER (dumpsys display)\n"
        "  mViewports=[DisplayViewport{type=INTERNAL, valid=true, isActive=true, displayId=0, "
        f"uniqueId='local:{DISPLAY_ID}', physicalPort=0, orientation={phone.rotation}, "
        f"logicalFrame=Rect(0, 0 - {shown_width}, {shown_height}), "
        f"physicalFrame=Rect(0, 0 - {shown_width}, {shown_height}), deviceWidth={width}, deviceHeight={height}}}]\n"
        f"  mScreenState={'ON' if phone.screen_on else 'OFF'}"
    )


def _input_method(context: Context, _words: Sequence[str]) -> Output:
    phone = context.phone
    shown = str(phone.keyboard_shown).lower()
    return printed(
        "Current Input Method Manager state:\n"
        f"  Input Methods: mMethodMapUpdateCount=1\n"
        f"  mCurMethodId={phone.default_input_method}\n"
        f"  mShowRequested={shown} mShowExplicitlyRequested=false mShowForced=false mInputShown={shown}\n"
        f"  mIsInputViewShown={shown}"
    )


def _battery(context: Context, _words: Sequence[str]) -> Output:
    level = context.phone.battery_percent
    return printed(
        "Current Battery Service state:\n"
        "  AC powered: false\n  USB powered: false\n  Wireless powered: false\n  Dock powered: false\n"
        "  Max charging current: 0\n  Max charging voltage: 0\n  Charge counter: 3000000\n"
        f"  status: {_BATTERY_FULL if level >= _FULL_PERCENT else _BATTERY_DISCHARGING}\n  health: 2\n  present: true\n"
        f"  level: {level}\n  scale: 100\n  voltage: 4100\n  temperature: 270\n  technology: Li-ion"
    )


def _power(context: Context, _words: Sequence[str]) -> Output:
    on = context.phone.screen_on
    return printed(
        "POWER MANAGER (dumpsys power)\n"
        f"  mWakefulness={'Awake' if on else 'Asleep'}\n"
        f"  mHoldingDisplaySuspendBlocker={str(on).lower()}\n"
        f"Display Power: state={'ON' if on else 'OFF'}"
    )


def _package(context: Context, words: Sequence[str]) -> Output:
    name = words[0] if words else ""
    package = next((package for package in context.phone.packages() if package.package == name), None)
    if package is None:
        return printed(f"Unable to find package: {name}")
    flags = "SYSTEM HAS_CODE" if package.system else "HAS_CODE ALLOW_CLEAR_USER_DATA"
    return printed(
        f"Packages:\n  Package [{name}] ({_hash(name)}):\n    appId={10_000 + zlib.crc32(name.encode()) % 1_000}\n"
        f"    codePath={package.path.rpartition('/')[0]}\n"
        f"    versionCode={package.version_code} minSdk=24 targetSdk={context.phone.identity.sdk}\n"
        f"    versionName={package.version_name}\n    pkgFlags=[ {flags} ]\n"
        "    firstInstallTime=2026-01-01 00:00:00\n    lastUpdateTime=2026-01-01 00:00:00\n"
        f"    signatures=PackageSignatures{{{_hash(name)} version:3, signatures:[{_hash(name)}], past signatures:[]}}"
    )


def _surface_flinger(_context: Context, words: Sequence[str]) -> Output:
    if "--display-id" not in words:
        return Output()
    return printed(f'Display {DISPLAY_ID} (HWC display 0): port=0 pnpId=GGL displayName="VIRTUAL"')


_SERVICES: Mapping[str, Callable[[Context, Sequence[str]], Output]] = MappingProxyType(
    {
        "window": _window,
        "activity": _activity,
        "display": _display,
        "input_method": _input_method,
        "battery": _battery,
        "power": _power,
        "package": _package,
        "SurfaceFlinger": _surface_flinger,
    }
)


def dumpsys(context: Context, words: Sequence[str]) -> Output:
    """`dumpsys SERVICE ...`."""
    if not words or words[0] == "-l":
        return printed("Currently running services:\n" + "\n".join(f"  {name}" for name in sorted(_SERVICES)))
    service = _SERVICES.get(words[0])
    return failed(f"Can't find service: {words[0]}") if service is None else service(context, words[1:])
