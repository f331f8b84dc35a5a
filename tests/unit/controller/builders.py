"""Records for tests of the controller, with everything that a test does not care about filled in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from droidfleet_controller.dispatch.execution import Execution, TaskText
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.fleet.device import Device, Holder
from droidfleet_shared.bus.messages import ExecutionRef, Heartbeat, PhoneState

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
EXPIRES = NOW + timedelta(hours=1)


def execution(  # a builder
    state: ExecutionState = ExecutionState.ASSIGNED,
    *,
    execution_id: str = "x-1",
    device: str = "phone-01",
    sha256: str = "a" * 64,
    bound_s: float = 10.0,
    accepted_at: datetime | None = None,
    started_at: datetime | None = None,
    check_at: datetime | None = None,
    cancel_requested: bool = False,
    add_name: bool = True,
    add_revision: bool = False,
    revision: int = 1,
) -> Execution:
    """An execution in a state."""
    return Execution(
        execution_id=execution_id,
        run_id="r-1",
        device=device,
        task_id="tea",
        revision=revision,
        text=TaskText(sha256=sha256, add_name=add_name, add_revision=add_revision),
        step_count=2,
        bound_s=bound_s,
        state=state,
        created_at=NOW,
        updated_at=NOW,
        expires_at=EXPIRES,
        accepted_at=accepted_at,
        started_at=started_at,
        check_at=check_at,
        cancel_requested=cancel_requested,
    )


def beat(  # a builder
    *,
    agent: str = "phone-01",
    instance: str = "i-1",
    host_id: str = "h-1",
    hello: bool = False,
    phone: PhoneState = PhoneState.ONLINE,
    running: ExecutionRef | None = None,
    epoch: str = "",
    generation: int = 0,
) -> Heartbeat:
    """A heartbeat."""
    return Heartbeat(
        agent=agent,
        instance=instance,
        host_id=host_id,
        host="lab-1",
        pid=4711,
        hello=hello,
        serial="emulator-5554",
        phone=phone,
        version="0.1.0",
        capabilities=("protocol.v1",),
        model="Pixel 8",
        android="14",
        battery_percent=55,
        foreground_package="com.example.shop",
        running=running,
        epoch=epoch,
        generation=generation,
        sent_at=NOW,
    )


def device(heartbeat: Heartbeat | None = None, *, last_seen_at: datetime = NOW) -> Device:
    """A device whose holder sent this heartbeat."""
    heartbeat = heartbeat or beat()
    holder = Holder(heartbeat.instance, heartbeat.host_id, heartbeat.host, heartbeat.pid, NOW)
    return Device(heartbeat.agent, holder, heartbeat, last_seen_at)
