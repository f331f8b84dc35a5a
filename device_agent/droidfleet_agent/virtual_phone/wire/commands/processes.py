"""Commands about processes: ps, pidof, kill, sleep, and `app_process`, which starts the automation server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from droidfleet_agent.virtual_phone import calls
from droidfleet_agent.virtual_phone.calls import CallKind
from droidfleet_agent.virtual_phone.faults import FaultKind
from droidfleet_agent.virtual_phone.wire.commands.base import Command, Context, Output, failed, options, printed
from droidfleet_agent.virtual_phone.wire.commands.dumpsys import process_id
from droidfleet_agent.virtual_phone.wire.files import JAR_PATH

AUTOMATION_CLASS = "com.wetest.uia2.Main"
DEFAULT_PORT = 9008
MAX_SLEEP_S = 3_600.0

_AUTOMATION_PROCESS = "app_process"
_STARTING = b"[server] INFO: [UiAutomator2Server] Starting Server\n"
_READY = (
    b'SLF4J: Failed to load class "org.slf4j.impl.StaticLoggerBinder".\n'
    b"SLF4J: Defaulting to no-operation (NOP) logger implementation\n"
)
_REGISTERED = (
    b"java.lang.IllegalStateException: UiAutomationService "
    b"android.accessibilityservice.IAccessibilityServiceClient$Stub$Proxy@5deffd5already registered!\n"
)


async def _app_process(context: Context, words: Sequence[str]) -> Output:
    machine = context.machine
    found, rest = options(words, valued=("-p",))
    port = found.get("-p", str(DEFAULT_PORT))
    if AUTOMATION_CLASS not in rest or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        return failed("Error: Could not find or load main class", 1)
    class_path = context.environment.get("CLASSPATH", JAR_PATH)
    if not machine.files.stat(class_path).size:
        return failed(f"Error: Could not find or load main class {AUTOMATION_CLASS}", 1)
    fault = machine.faults.take(calls.SERVER_START)
    context.write(_STARTING)
    if machine.automation.running or (fault is not None and fault.do is FaultKind.ALREADY_REGISTERED):
        return Output(stderr=_REGISTERED, code=1)
    start_s = machine.latency.seconds(CallKind.SERVER_START)
    if fault is not None and fault.do is FaultKind.SLOW:
        start_s += fault.seconds or 0.0
    context.write(_READY)
    await machine.automation.run(int(port), start_s=start_s)
    return Output(stderr=b"Killed\n", code=137)


def _processes(context: Context) -> list[tuple[str, int, str]]:
    """User, pid and name of what runs."""
    found = [("root", 1, "init"), ("system", 1_200, "system_server")]
    found += [("u0_a123", process_id(package), package) for package in context.phone.running_packages()]
    if context.machine.automation.running:
        found.append(("shell", process_id(_AUTOMATION_PROCESS), _AUTOMATION_PROCESS))
    return found


def _ps(context: Context, _words: Sequence[str]) -> Output:
    rows = ["USER           PID  PPID        VSZ    RSS WCHAN            ADDR S NAME"]
    rows += [
        f"{user:<12} {pid:>5} {0 if pid == 1 else 1:>5} {12_000_000:>10} {150_000:>6} do_epoll_wait       0 S {name}"
        for user, pid, name in _processes(context)
    ]
    return printed("\n".join(rows))


def _pidof(context: Context, words: Sequence[str]) -> Output:
    pids = [str(pid) for _, pid, name in _processes(context) if name in words]
    return printed(" ".join(pids)) if pids else Output(code=1)


def _kill(context: Context, words: Sequence[str]) -> Output:
    _, rest = options(words, valued=("-s",))
    for word in rest:
        name = next((name for _, pid, name in _processes(context) if str(pid) == word), None)
        if name is None:
            return failed(f"/system/bin/sh: kill: {word}: No such process")
        _end(context, name)
    return Output()


def _pkill(context: Context, words: Sequence[str]) -> Output:
    _, rest = options(words, valued=("-s", "-u"))
    pattern = rest[-1] if rest else ""
    hit = [name for _, _, name in _processes(context) if pattern and pattern in name]
    if pattern in AUTOMATION_CLASS and context.machine.automation.running:
        hit.append(_AUTOMATION_PROCESS)
    for name in hit:
        _end(context, name)
    return Output(code=0 if hit else 1)


def _end(context: Context, name: str) -> None:
    if name == _AUTOMATION_PROCESS:
        context.machine.automation.kill()
    else:
        context.phone.stop_app(name)


async def _sleep(context: Context, words: Sequence[str]) -> Output:
    try:
        seconds = float(words[0])
    except (IndexError, ValueError):
        return failed("sleep: Needs 1 argument")
    await context.phone.clock.sleep(max(0.0, min(seconds, MAX_SLEEP_S)))
    return Output()


PROCESS_COMMANDS: Mapping[str, Command] = MappingProxyType(
    {"app_process": _app_process, "ps": _ps, "pidof": _pidof, "kill": _kill, "pkill": _pkill, "sleep": _sleep}
)
