"""Starting and stopping apps, and the lock screen, in the words of Android's shell. Pure.

Names are checked before they become part of a command line. Sources of what Android prints: AOSP's
ActivityManagerShellCommand, Monkey, PackageManagerShellCommand, PowerManagerService, KeyguardServiceDelegate.
"""

from __future__ import annotations

import re

from droidfleet_agent.driver.port import ActionRefusedError, ScreenState

APP_NOT_FOUND = "APP_NOT_FOUND"
"""Code of an `ActionRefusedError`: there is no such app or activity, and trying again will not change that."""

_PACKAGE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_ACTIVITY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)*")
"""With the dollar of inner classes, so it stands in quotes."""

LAUNCHER = "-a android.intent.action.MAIN -c android.intent.category.LAUNCHER"
LAUNCHER_FLAGS = "0x10200000"
"""NEW_TASK and RESET_TASK_IF_NEEDED, as a launcher sets them: an app that runs comes to the front as it is."""

DISMISS_COMMAND = "wm dismiss-keyguard"

SCREEN_STATE_COMMAND = "dumpsys power; dumpsys window policy; dumpsys window windows; dumpsys trust"
"""One shell for all: which of them tells what differs between releases."""

_AWAKE = (re.compile(r"mWakefulness=(\w+)"), re.compile(r"Display Power: state=(\w+)"), re.compile(r"mAwake=(\w+)"))
_AWAKE_WORDS = frozenset({"Awake", "ON", "true", "Dreaming"})
_LOCKED = (
    re.compile(r"mIsShowing=(true|false)"),
    re.compile(r"(?:isStatusBarKeyguard|mShowingLockscreen|mDreamingLockscreen|keyguardShowing)=(true|false)"),
    re.compile(r"KeyguardServiceDelegate\s+showing=(true|false)"),
    re.compile(r"\bshowing=(true|false)"),
)
_SECURE = (
    re.compile(r"KeyguardServiceDelegate[\s\S]{0,200}?\bsecure=(true|false)"),
    re.compile(r"\bsecure=(true|false)"),
    re.compile(r"deviceLocked=(1|0)"),
)

_MISSING = ("does not exist", "No activities found", "unable to resolve Intent", "Unable to find", "not found")


def component_of(package: str, activity: str) -> str:
    """``package/activity`` for `am`; the activity may be short (``.Main``) or whole."""
    whole = f"{package}{activity}" if activity.startswith(".") else activity
    return f"{package}/{whole}"


def resolve_command(package: str) -> str:
    """Asks for the activity that a launcher would start."""
    return f"cmd package resolve-activity --brief {LAUNCHER} {_checked(package)}"


def parse_launcher(output: str, package: str) -> str:
    """The component in the answer to `resolve_command`; empty when it names none of the package's own (older Android
    does not know the command, and an app with two launcher activities is answered with a dialog)."""
    for line in output.splitlines():
        named, slash, activity = line.strip().partition("/")
        if slash and named == package and _ACTIVITY.fullmatch(activity.lstrip(".")):
            return component_of(named, activity)
    return ""


def start_command(package: str, component: str) -> str:
    """Starts a component, or with none whatever Android's monkey finds to start."""
    if not component:
        return f"monkey -p {_checked(package)} -c android.intent.category.LAUNCHER 1"
    name, _, activity = component.partition("/")
    return f"am start {LAUNCHER} -f {LAUNCHER_FLAGS} -n '{_checked(name)}/{_checked(activity, _ACTIVITY)}'"


def stop_command(package: str) -> str:
    """Stops an app's processes; prints nothing, also when there are none."""
    return f"am force-stop {_checked(package)}"


def raise_not_started(output: str, package: str) -> None:
    """Reads what a start printed.

    Raises:
        ActionRefusedError: it was not started; ``APP_NOT_FOUND`` when there is nothing to start.
    """
    if any(word in output for word in _MISSING):
        raise ActionRefusedError(
            APP_NOT_FOUND,
            f"the phone has nothing of {package} to start: {_short(output)}",
            hint="Install the app, or correct `packageName` and `activityName`.",
        )
    if "Permission Denial" in output or "SecurityException" in output:
        raise ActionRefusedError(
            APP_NOT_FOUND,
            f"the activity of {package} may not be started from outside: {_short(output)}",
            hint="Leave `activityName` out, or name one that the app exports.",
        )
    if re.search(r"^Error", output, re.MULTILINE):
        raise ActionRefusedError("ACTION_REFUSED", f"{package} was not started: {_short(output)}")


def parse_screen_state(output: str) -> ScreenState | None:
    """The answer to `SCREEN_STATE_COMMAND`; None when it does not even tell whether the display is on."""
    awake = _first(_AWAKE, output)
    if awake is None:
        return None
    locked = _first(_LOCKED, output) == "true"
    return ScreenState(on=awake in _AWAKE_WORDS, locked=locked, secure=_first(_SECURE, output) in ("true", "1"))


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> str | None:
    return next((found[1] for pattern in patterns if (found := pattern.search(text))), None)


def _checked(name: str, form: re.Pattern[str] = _PACKAGE) -> str:
    """The name, which can be nothing but a name: it becomes part of a command line."""
    if not form.fullmatch(name):
        raise ActionRefusedError(APP_NOT_FOUND, f"{name!r} is not the name of an app or an activity.")
    return name


def _short(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return (lines[-1] if lines else "no reason was given")[:200]
