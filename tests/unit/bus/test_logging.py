"""Logs are events with fields, and hold no secrets."""

from __future__ import annotations

import io
import json

import structlog

from droidfleet_shared.logging import configure_logging


def test_off_a_terminal_each_event_is_one_json_line() -> None:
    stream = io.StringIO()
    configure_logging(stream=stream)
    structlog.get_logger("test").info("execution_finished", execution_id="e1")
    event = json.loads(stream.getvalue())
    assert (event["event"], event["execution_id"], event["level"]) == ("execution_finished", "e1", "info")


def test_fields_that_are_called_like_secrets_are_masked() -> None:
    stream = io.StringIO()
    configure_logging(stream=stream)
    structlog.get_logger("test").info("connecting", password="hush", Token="hush")
    assert "hush" not in stream.getvalue()


def test_events_below_the_level_are_left_out() -> None:
    stream = io.StringIO()
    configure_logging("warning", stream=stream)
    structlog.get_logger("test").info("quiet")
    assert stream.getvalue() == ""
