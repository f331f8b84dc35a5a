"""Looks at small screens, as the API returns them: made by the agent's own code from nodes."""

from __future__ import annotations

from droidfleet.v1 import device_pb2
from droidfleet_agent.session.seen import seen_tree
from droidfleet_controller.api.convert_screen import tree_to_pb
from droidfleet_shared.bus.messages import MAX_MESSAGE_BYTES
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Node
from support.screens import screen


def look(*nodes: Node, xml: str = "") -> device_pb2.GetTreeResponse:
    """What a device whose window holds these nodes answers."""
    return tree_to_pb(seen_tree(Matcher(screen(*nodes)), max_bytes=MAX_MESSAGE_BYTES, xml=xml))
