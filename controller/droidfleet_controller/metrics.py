"""What the controller counts for Prometheus. Labels have few values: never a device, a task or an execution.

Names follow Prometheus' conventions (base units, ``_total`` for counters); `docs/operations.md` lists them, and a test
keeps the two in step.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds, for what takes milliseconds when all is well."""

_PATIENT = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0, 3_600.0, 86_400.0)
"""Seconds, for what waits for a phone."""


class Metrics:
    """The instruments, in a registry of their own: two controllers in one test process do not share them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.info = Gauge(
            "droidfleet_controller_info", "The running version; always 1.", ["version"], registry=self.registry
        )
        self.executions = Counter(
            "droidfleet_executions", "Executions that ended, by how.", ["result"], registry=self.registry
        )
        self.live = Gauge(
            "droidfleet_executions_live", "Executions that have not ended, by state.", ["state"], registry=self.registry
        )
        self.devices = Gauge("droidfleet_devices", "Known devices, by state.", ["state"], registry=self.registry)
        self.clocks_wrong = Gauge(
            "droidfleet_agent_clocks_wrong",
            "Agents whose host's clock is more than two seconds off.",
            registry=self.registry,
        )
        self.accept_seconds = Histogram(
            "droidfleet_accept_seconds",
            "From the creation of an execution to its agent's acceptance, seen by the controller.",
            buckets=_PATIENT,
            registry=self.registry,
        )
        self.events = Counter(
            "droidfleet_events_ingested",
            "Events from agents, by what became of them.",
            ["outcome"],
            registry=self.registry,
        )
        self.ingest_seconds = Histogram(
            "droidfleet_ingest_batch_seconds",
            "Recording one batch of events, up to its acknowledgement.",
            buckets=_FAST,
            registry=self.registry,
        )
        self.documents = Counter(
            "droidfleet_documents",
            "Attempts to publish a desired-state document, by outcome.",
            ["outcome"],
            registry=self.registry,
        )
        self.publish_seconds = Histogram(
            "droidfleet_publish_seconds",
            "Publishing one document, up to the broker's confirmation.",
            buckets=_FAST,
            registry=self.registry,
        )
        self.transaction_seconds = Histogram(
            "droidfleet_database_transaction_seconds",
            "One database transaction, waiting included.",
            buckets=_FAST,
            registry=self.registry,
        )
        self.rollouts = Gauge(
            "droidfleet_rollouts", "Rollouts that go on, by state.", ["state"], registry=self.registry
        )
        self.rollout_members = Counter(
            "droidfleet_rollout_members",
            "Phones of rollouts that ended, by how.",
            ["outcome"],
            registry=self.registry,
        )
        self.rollout_decisions = Counter(
            "droidfleet_rollout_decisions", "Decisions about rollouts, by rule.", ["rule"], registry=self.registry
        )
        self.rollout_retries = Counter(
            "droidfleet_rollout_retries", "Executions that try again what failed before.", registry=self.registry
        )
        self.rollout_tick_seconds = Histogram(
            "droidfleet_rollout_tick_seconds",
            "Deciding once what follows in a rollout, and writing it.",
            buckets=_FAST,
            registry=self.registry,
        )
        self.schedule_occurrences = Counter(
            "droidfleet_schedule_occurrences",
            "Occurrences of schedules, by what became of them.",
            ["state"],
            registry=self.registry,
        )
        self.requests = Counter(
            "droidfleet_api_requests",
            "API calls, by method and gRPC status.",
            ["method", "status"],
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "droidfleet_api_request_seconds",
            "Unary API calls, by method.",
            ["method"],
            buckets=_FAST,
            registry=self.registry,
        )
        self.broker_connected = Gauge(
            "droidfleet_broker_connected", "1 while the broker is connected.", registry=self.registry
        )
        self.broker_restarts = Counter(
            "droidfleet_broker_restarts",
            "Times that the embedded broker had to be started again.",
            registry=self.registry,
        )
