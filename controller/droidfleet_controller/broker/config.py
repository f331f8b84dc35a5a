"""The configuration of the embedded broker. Pure."""

from __future__ import annotations

import json
from pathlib import Path

from droidfleet_shared.net import Endpoint


def config_text(endpoint: Endpoint, *, store: Path) -> str:
    """The configuration file: one node, JetStream on disk in ``store``. Port 0 becomes "any"."""
    return f"""\
# Written by droidfleet serve at every start; changes are lost.
server_name: droidfleet
host: {json.dumps(endpoint.host)}
port: {endpoint.port or -1}
jetstream {{
  store_dir: {json.dumps(str(store))}
  # After a power cut the database makes the documents again and the agents send their results again, so what the broker
  # confirmed a moment before need not have been on disk (docs/decisions/0014).
  sync_interval: "1s"
  # Left out, it is three quarters of what is free at each start: on a disk that has filled up the streams, whose bounds
  # are their own, would not be there again after a restart.
  max_file_store: 64GB
}}
feature_flags {{
  # nats-py reads fixed positions of acknowledgement subjects, which this would move.
  js_ack_fc_v2: false
}}
"""
