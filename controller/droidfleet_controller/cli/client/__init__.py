"""The one gRPC client of the command line: every call has a deadline, every failure leaves as a domain error.

Owns the channel, deadlines, pages and the resumption of streams; knows nothing of terminals. Messages are passed on as
they are: the command line is one of the doors at which protobuf types may stop. One module a service.
"""

from __future__ import annotations

from droidfleet_controller.cli.client.admin import AdminCalls
from droidfleet_controller.cli.client.devices import DeviceCalls
from droidfleet_controller.cli.client.drafts import DraftCalls
from droidfleet_controller.cli.client.executions import ExecutionCalls
from droidfleet_controller.cli.client.fleet import FleetCalls
from droidfleet_controller.cli.client.rollouts import RolloutCalls
from droidfleet_controller.cli.client.schedules import ScheduleCalls
from droidfleet_controller.cli.client.tasks import TaskCalls


class ControllerClient(
    FleetCalls, DeviceCalls, TaskCalls, ExecutionCalls, RolloutCalls, ScheduleCalls, DraftCalls, AdminCalls
):
    """All calls, on one channel."""
