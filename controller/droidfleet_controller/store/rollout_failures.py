"""Phones that failed in the same way, for reports."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, and_, select

from droidfleet_controller.rollouts.rollout import Signature
from droidfleet_controller.store.rollout_counts import FAILURE_PICTURE
from droidfleet_controller.store.rollouts import signature_text
from droidfleet_controller.store.schema import artifact_files, artifacts, rollout_members


@dataclass(frozen=True, slots=True)
class FailedPhone:
    """A phone whose last failure was of some kind; the picture's fields are empty where there is none (any more)."""

    device: str
    wave: int
    execution_id: str
    reason: str
    picture_sha256: str = ""
    picture_type: str = ""
    picture_bytes: int = 0


def failed_so(connection: Connection, rollout_id: str, signature: Signature, *, limit: int) -> list[FailedPhone]:
    """Phones whose last failure was of this kind, those with a picture first, then by place."""
    members = rollout_members
    picture = and_(artifacts.c.execution_id == members.c.execution_id, artifacts.c.name == FAILURE_PICTURE)
    query = (
        select(
            members.c.device,
            members.c.wave,
            members.c.execution_id,
            members.c.reason,
            artifact_files.c.sha256,
            artifacts.c.media_type,
            artifacts.c.size_bytes,
        )
        .select_from(
            members.outerjoin(artifacts, picture).outerjoin(
                artifact_files, artifact_files.c.sha256 == artifacts.c.sha256
            )
        )
        .where(members.c.rollout_id == rollout_id, members.c.signature == signature_text(signature))
        .order_by(artifact_files.c.sha256.is_(None), members.c.place, artifacts.c.number.desc())
    )
    found: dict[str, FailedPhone] = {}
    for device, wave, execution_id, reason, digest, media_type, size in connection.execute(query):
        # An execution that was tried by two agents may have two pictures: the newest is its last failure's.
        if device not in found and len(found) < limit:
            kept = (digest, media_type, size) if digest else ("", "", 0)
            found[device] = FailedPhone(device, wave, execution_id, reason, *kept)
    return list(found.values())
