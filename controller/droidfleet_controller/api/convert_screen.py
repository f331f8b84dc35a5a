"""What live requests return, as protobuf messages; the one place that knows both."""

from __future__ import annotations

import base64

from droidfleet.v1 import device_pb2, execution_pb2
from droidfleet_shared.bus.session import SeenNode, SeenPicture, SeenTree
from droidfleet_shared.protocol.result import BoundsModel


def tree_to_pb(tree: SeenTree) -> device_pb2.GetTreeResponse:
    """One look."""
    return device_pb2.GetTreeResponse(
        package_name=tree.package_name,
        activity_name=tree.activity_name,
        display=_bounds(tree.display) if tree.display is not None else None,
        rotation=tree.rotation,
        keyboard=_bounds(tree.keyboard) if tree.keyboard is not None else None,
        nodes=[node_to_pb(node) for node in tree.nodes],
        omitted=tree.omitted,
        fewer_selectors=tree.fewer_selectors,
        xml=tree.xml,
    )


def node_to_pb(node: SeenNode) -> device_pb2.TreeNode:
    """A node with its selectors."""
    return device_pb2.TreeNode(
        parent=node.parent,
        text=node.text,
        description=node.description,
        hint=node.hint,
        resource_id=node.resource_id,
        class_name=node.class_name,
        package_name=node.package_name,
        bounds=_bounds(node.bounds),
        flags=node.flags,
        offered=[device_pb2.OfferedSelector(selector_json=each.selector, note=each.note) for each in node.offered],
        rejected=[device_pb2.RejectedSelector(selector_json=each.selector, why=each.why) for each in node.rejected],
    )


def picture_to_pb(picture: SeenPicture) -> device_pb2.GetScreenshotResponse:
    """A picture."""
    return device_pb2.GetScreenshotResponse(
        media_type=picture.media_type,
        data=base64.b64decode(picture.data),
        width=picture.width,
        height=picture.height,
        scale_percent=picture.scale_percent,
    )


def _bounds(bounds: BoundsModel) -> execution_pb2.Bounds:
    return execution_pb2.Bounds(left=bounds.left, top=bounds.top, right=bounds.right, bottom=bounds.bottom)
