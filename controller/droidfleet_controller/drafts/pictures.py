"""The pictures of drafts. Their contents are files among those of artifacts, under the same quota; who has which is in
the database."""

from __future__ import annotations

import asyncio
from hashlib import sha256

import structlog
from sqlalchemy import Connection

from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.drafts.bounds import require_room
from droidfleet_controller.store import artifacts, drafts
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.drafts import KeptPicture
from droidfleet_designer.ports import LogBounds, Shot
from droidfleet_shared.clock import Clock

log = structlog.get_logger(__name__)


class Pictures:
    """The pictures. ``quota_bytes``: of the files of artifacts and pictures together."""

    def __init__(self, *, database: Database, files: ArtifactFiles, quota_bytes: int, clock: Clock) -> None:
        self._database = database
        self._files = files
        self._quota_bytes = quota_bytes
        self._clock = clock

    async def keep(self, draft_id: str, shot: Shot, *, bounds: LogBounds) -> str:
        """Keeps a picture of a draft; its digest. One that finds no room on the disk is noted as gone.

        Raises:
            ExhaustedError: ``EXPLORATION_FULL``.
        """
        picture = KeptPicture(
            sha256=await asyncio.to_thread(lambda: sha256(shot.data).hexdigest()),
            media_type=shot.media_type,
            width=shot.width,
            height=shot.height,
            size_bytes=len(shot.data),
        )
        await self._database.run(lambda connection: _require_room(connection, draft_id, picture, bounds))
        written = await self._write(picture.sha256, shot.data)
        now = self._clock.now()

        def record(connection: Connection) -> list[str]:
            _require_room(connection, draft_id, picture, bounds)
            drafts.keep_picture(connection, draft_id, picture)
            if not written:
                return []
            artifacts.use_files(connection, {picture.sha256: picture.size_bytes}, now=now)
            return artifacts.make_room(connection, quota_bytes=self._quota_bytes)

        crowded_out = await self._database.run(record)
        if crowded_out:
            await asyncio.to_thread(self._files.remove, crowded_out)
        return picture.sha256

    async def read(self, draft_id: str, digest: str) -> Shot | None:
        """A picture of a draft; None: it has none such, or the file had to make room."""
        found = await self._database.run(lambda connection: drafts.picture(connection, draft_id, digest))
        data = await asyncio.to_thread(self._files.read, digest) if found is not None and found.available else None
        if found is None or data is None:
            return None
        return Shot(found.media_type, data, found.width, found.height)

    async def _write(self, digest: str, data: bytes) -> bool:
        """Writes the file before anything refers to it. False: it is not there."""
        if len(data) > self._quota_bytes:
            # It would crowd out everything else, and then itself.
            return False
        try:
            await asyncio.to_thread(self._files.keep, {digest: data})
        except OSError as error:
            log.warning("picture_unwritten", reason=error.strerror)
            return False
        return True


def _require_room(connection: Connection, draft_id: str, picture: KeptPicture, bounds: LogBounds) -> None:
    others = drafts.other_pictures(connection, draft_id, picture.sha256)
    require_room("pictures", others.count + 1, bounds.pictures)
    require_room("bytes of pictures", others.size_bytes + picture.size_bytes, bounds.picture_bytes)
