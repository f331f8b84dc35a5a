"""`Reports`: the report of a rollout in the form that is asked for, as bytes in pieces. The door of the package."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.rollouts.report import csv_form, html_form, json_form
from droidfleet_controller.rollouts.report.material import Material
from droidfleet_controller.rollouts.report.words import Language
from droidfleet_controller.rollouts.service import Rollouts
from droidfleet_controller.store.database import Database
from droidfleet_shared.clock import Clock

PIECE_BYTES = 64 * 1024
"""Of one message to the reader; a picture may make one larger."""


class ReportForm(StrEnum):
    """For whom a report is."""

    JSON = "JSON"
    CSV = "CSV"
    HTML = "HTML"


@dataclass(frozen=True, slots=True)
class Reports:
    """Writes reports, of rollouts that have ended and of those that go on."""

    database: Database
    clock: Clock
    files: ArtifactFiles
    rollouts: Rollouts

    async def write(self, rollout_id: str, form: ReportForm, *, language: Language = "en") -> AsyncIterator[bytes]:
        """The report in UTF-8. ``language``: of the page's own words.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``, before the first piece.
        """
        view = await self.rollouts.get(rollout_id)
        held: list[str] = []
        size = 0
        async for piece in self._pieces(Material(view, self.database, self.files), form, language):
            held.append(piece)
            size += len(piece)
            if size >= PIECE_BYTES:
                yield "".join(held).encode()
                held.clear()
                size = 0
        yield "".join(held).encode()

    def _pieces(self, material: Material, form: ReportForm, language: Language) -> AsyncIterator[str]:
        now = self.clock.now()
        match form:
            case ReportForm.JSON:
                return json_form.write(material, now)
            case ReportForm.CSV:
                return csv_form.write(material)
            case ReportForm.HTML:
                return html_form.write(material, now, language=language)
            case _:
                assert_never(form)
