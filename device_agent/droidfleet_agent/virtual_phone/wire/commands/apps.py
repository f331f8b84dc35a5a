"""Commands about apps: pm, am, monkey, cmd package. The phone runs the apps of its scenario and no others."""

from __future__ import annotations

import base64
import binascii
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from droidfleet_agent.virtual_phone.phone import InstalledPackage
from droidfleet_agent.virtual_phone.wire.commands.base import Command, Context, Output, failed, options, printed
from droidfleet_agent.virtual_phone.wire.files import FileError

ADB_KEYBOARD = "com.github.uiautomator/.AdbKeyboard"
"""The input method of uiautomator2's own apk, which its client installs to type text."""

MAX_MANIFEST_BYTES = 1_000_000
"""A manifest is some kilobytes; more is no manifest but a trap."""

_MONKEY_ABORTED = 252
_ENTER = 66
_ESCAPE = 111


def _package(context: Context, name: str) -> InstalledPackage | None:
    return next((package for package in context.phone.packages() if package.package == name), None)


def _pm_list(context: Context, words: Sequence[str]) -> Output:
    found, rest = options(words, valued=("--user",))
    if rest[:1] != ["packages"]:
        return failed("Error: unknown list type")
    packages = context.phone.packages(third_party_only="-3" in found)
    if "-s" in found:
        packages = tuple(package for package in packages if package.system)
    wanted = rest[1] if len(rest) > 1 else ""
    return printed("\n".join(f"package:{package.package}" for package in packages if wanted in package.package))


def _pm_path(context: Context, words: Sequence[str]) -> Output:
    package = _package(context, words[-1]) if words else None
    return Output(code=1) if package is None else printed(f"package:{package.path}")


def _pm_clear(context: Context, words: Sequence[str]) -> Output:
    _, rest = options(words, valued=("--user",))
    return printed("Success") if rest and context.phone.clear_app(rest[0]) else failed("Failed")


def _pm_install(context: Context, words: Sequence[str]) -> Output:
    _, rest = options(words, valued=("-i", "-S", "--user", "--abi"))
    if not rest:
        return failed("Error: must specify an apk file")
    try:
        manifest = _manifest(context.machine.files.read(rest[0]))
    except FileError:
        return failed(f"Error: Unable to open file: {rest[0]}")
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, EOFError):
        return failed("Failure [INSTALL_PARSE_FAILED_NOT_APK: Failed to parse the file]")
    # A manifest is binary; its strings are UTF-16 or UTF-8.
    package = ADB_KEYBOARD.partition("/")[0]
    if package.encode("utf-16-le") not in manifest and package.encode() not in manifest:
        return failed("Failure [INSTALL_FAILED_REJECTED_BY_SCENARIO: a virtual phone runs the apps of its scenario]")
    context.phone.install_input_method(ADB_KEYBOARD)
    return printed("Success")


def _manifest(apk: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(apk)) as archive:
        entry = archive.getinfo("AndroidManifest.xml")
        if entry.file_size > MAX_MANIFEST_BYTES:
            raise ValueError("manifest too large")
        return archive.read(entry)


def _pm_uninstall(context: Context, words: Sequence[str]) -> Output:
    name = words[-1] if words else ""
    known = _package(context, name) is not None
    return failed(f"Failure [{'DELETE_FAILED_REJECTED_BY_SCENARIO' if known else 'not installed for 0'}]")


def _resolve_activity(context: Context, words: Sequence[str]) -> Output:
    _, rest = options(words, valued=("--user", "-a", "-c"))
    package = _package(context, rest[-1]) if rest else None
    if package is None:
        return printed("No activity found")
    return printed(
        f"priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=false\n"
        f"{package.package}/{package.main_activity}"
    )


def _ok(_context: Context, _words: Sequence[str]) -> Output:
    return Output()


_PM: Mapping[str, Callable[[Context, Sequence[str]], Output]] = MappingProxyType(
    {
        "list": _pm_list,
        "path": _pm_path,
        "clear": _pm_clear,
        "install": _pm_install,
        "uninstall": _pm_uninstall,
        "resolve-activity": _resolve_activity,
        "grant": _ok,
        "revoke": _ok,
    }
)


def _pm(context: Context, words: Sequence[str]) -> Output:
    command = _PM.get(words[0]) if words else None
    if command is None:
        return failed(f"Unknown command: {words[0] if words else ''}")
    return command(context, words[1:])


def _cmd(context: Context, words: Sequence[str]) -> Output:
    if words and words[0] == "package":
        return _pm(context, words[1:])
    return failed(f"cmd: Can't find service: {words[0] if words else ''}", 20)


def _monkey(context: Context, words: Sequence[str]) -> Output:
    found, _ = options(words, valued=("-p", "-c", "-s", "--pct-syskeys", "--throttle"))
    name = found.get("-p", "")
    if not context.phone.start_app(name):
        return failed("** No activities found to run, monkey aborted.", _MONKEY_ABORTED)
    return printed(f"  bash arg: -p\n  bash arg: {name}\nEvents injected: 1\n## Network stats: elapsed time=12ms")


_START_VALUED = ("-a", "-c", "-n", "-d", "-t", "-f", "--user", "--es", "--ei", "--ez", "--display")


def _am_start(context: Context, words: Sequence[str]) -> Output:
    found, rest = options(words, valued=_START_VALUED)
    component = found.get("-n") or (rest[0] if rest and "/" in rest[0] else "")
    package, slash, activity = component.partition("/")
    if not component:
        # A page for an address needs a browser, which no scenario has.
        return failed(f"Error: Activity not started, unable to resolve Intent {{ act={found.get('-a', '')} }}")
    if "-S" in found:
        context.phone.stop_app(package)
    if activity.startswith("."):
        activity = package + activity
    if not slash or not context.phone.start_app(package, activity or None):
        return failed(f"Error type 3\nError: Activity class {{{component}}} does not exist.")
    started = f"Starting: Intent {{ cmp={component} }}"
    return printed(f"{started}\nStatus: ok\nActivity: {component}\nComplete" if "-W" in found else started)


def _am_force_stop(context: Context, words: Sequence[str]) -> Output:
    _, rest = options(words, valued=("--user",))
    if not rest:
        return failed("Error: no package specified")
    context.phone.stop_app(rest[0])
    return Output()


def _am_broadcast(context: Context, words: Sequence[str]) -> Output:
    action = ""
    extras: dict[str, str] = {}
    remaining = iter(words)
    for word in remaining:
        if word == "-a":
            action = next(remaining, "")
        elif word in ("--es", "--ei", "--ez"):
            name = next(remaining, "")
            extras[name] = next(remaining, "")
    head = f"Broadcasting: Intent {{ act={action} flg=0x400000 }}\n"
    handler = _KEYBOARD_ACTIONS.get(action)
    # Only the selected keyboard hears its broadcasts; a real one is not even running otherwise.
    if handler is None or context.phone.default_input_method != ADB_KEYBOARD:
        return printed(f"{head}Broadcast completed: result=0")
    try:
        done = handler(context, extras)
    except (ValueError, binascii.Error):
        return printed(f'{head}Broadcast completed: result=0, data="bad input"')
    return printed(f'{head}Broadcast completed: result={-1 if done else 0}, data="{"success" if done else "failed"}"')


def _keyboard_input(context: Context, extras: Mapping[str, str]) -> bool:
    return context.phone.type_text(base64.b64decode(extras.get("text", ""), validate=True).decode("utf-8"))


def _keyboard_hide(context: Context, _extras: Mapping[str, str]) -> bool:
    context.phone.press_key_code(_ESCAPE)
    return True


def _keyboard_clear(context: Context, _extras: Mapping[str, str]) -> bool:
    context.phone.clear_focused_text()
    return True


def _keyboard_enter(context: Context, _extras: Mapping[str, str]) -> bool:
    return context.phone.press_key_code(_ENTER)


_KEYBOARD_ACTIONS: Mapping[str, Callable[[Context, Mapping[str, str]], bool]] = MappingProxyType(
    {
        "ADB_KEYBOARD_INPUT_TEXT": _keyboard_input,
        "ADB_KEYBOARD_CLEAR_TEXT": _keyboard_clear,
        "ADB_KEYBOARD_HIDE": _keyboard_hide,
        "ADB_KEYBOARD_EDITOR_CODE": _keyboard_enter,
        "ADB_KEYBOARD_SMART_ENTER": _keyboard_enter,
    }
)

_AM: Mapping[str, Callable[[Context, Sequence[str]], Output]] = MappingProxyType(
    {
        "start": _am_start,
        "start-activity": _am_start,
        "force-stop": _am_force_stop,
        "kill": _am_force_stop,
        "broadcast": _am_broadcast,
    }
)


def _am(context: Context, words: Sequence[str]) -> Output:
    command = _AM.get(words[0]) if words else None
    if command is None:
        return failed(f"Unknown command: {words[0] if words else ''}")
    return command(context, words[1:])


APP_COMMANDS: Mapping[str, Command] = MappingProxyType({"pm": _pm, "cmd": _cmd, "monkey": _monkey, "am": _am})
