"""The report of a rollout: what it says, and that what phones say stays data in every form."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest

from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.rollouts.report import html_form, material
from droidfleet_controller.rollouts.report.service import PIECE_BYTES, ReportForm, Reports
from droidfleet_controller.rollouts.report.words import WORDS, Language
from droidfleet_shared.bus.messages import Event
from droidfleet_shared.errors import NotFoundError
from droidfleet_shared.protocol.codes import StepCode
from unit.controller.said import accepted, artifact, finished, started
from unit.rollouts.rolling import Rolling, phones, rolling, spec

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)>\"'{{ 7 * 7 }}"
FORMULAS = ("=1+1", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1+1", "\r=1+1", " =1+1", "＝1+1")  # noqa: RUF001


def reports(fleet: Rolling, folder: Path) -> Reports:
    return Reports(
        database=fleet.dispatch.database,
        clock=fleet.dispatch.clock,
        files=ArtifactFiles(folder / "artifacts"),
        rollouts=fleet.rollouts,
    )


async def written(fleet: Rolling, folder: Path, rollout_id: str, form: ReportForm, language: Language = "en") -> str:
    pieces = [piece async for piece in reports(fleet, folder).write(rollout_id, form, language=language)]
    return b"".join(pieces).decode()


async def ended(
    fleet: Rolling,
    execution: Execution,
    *,
    outputs: Mapping[str, str] | None = None,
    code: StepCode = StepCode.OK,
    message: str = "",
    screen: str = "",
    picture: bytes = b"",
    media_type: str = "image/png",
) -> None:
    """An agent ends an execution with these words."""
    mine, agent = execution.execution_id, execution.device
    said = finished(mine, code=code, sequence=9, agent=agent)
    result = said.result.model_copy(
        update={
            "outputs": dict(outputs or {}),
            "message": message or said.result.message,
            "failed_screen": screen,
            "failed_step_id": None if code is StepCode.OK else "back-1",
        }
    )
    shot = artifact(mine, picture, sequence=5, name="failure", agent=agent)
    shot = shot.model_copy(update={"artifact": shot.artifact.model_copy(update={"media_type": media_type})})
    events: list[Event] = [accepted(mine, agent=agent), started(mine, agent=agent)]
    if picture:
        events.append(shot)
    await fleet.dispatch.deliver(*events, said.model_copy(update={"result": result}))
    await fleet.settle()


class Page(HTMLParser):
    """What a browser would make of a page: its elements, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for found, attributes in self.elements if found == tag]


async def mixed(fleet: Rolling) -> str:
    """A rollout of four phones in two waves: one fails, and the second wave succeeds."""
    waves = [{"size": 2, "gate": {"minSuccessPercent": "50%"}}, {}]
    rollout_id = (await fleet.start(spec(*phones(4), waves=waves, name="Tea everywhere"))).rollout.rollout_id
    live = await fleet.live(rollout_id)
    await ended(fleet, live["phone-01"], outputs={"price": "4.20", "shop": "Tea & Co"})
    await ended(
        fleet,
        live["phone-02"],
        code=StepCode.TARGET_NOT_FOUND,
        message="no button",
        screen="shop/.Cart",
        picture=b"PNG",
    )
    await fleet.run_all(rollout_id)
    return rollout_id


async def test_the_json_report_holds_everything(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(4)) as fleet:
        rollout_id = await mixed(fleet)
        report = json.loads(await written(fleet, tmp_path, rollout_id, ReportForm.JSON))
        assert (report["rollout"]["rolloutId"], report["rollout"]["state"]) == (rollout_id, "SUCCEEDED")
        assert [wave["outcomes"] for wave in report["waves"]] == [{"SUCCEEDED": 1, "FAILED": 1}, {"SUCCEEDED": 2}]
        assert [(member["device"], member["outcome"]) for member in report["members"]] == [
            ("phone-01", "SUCCEEDED"),
            ("phone-02", "FAILED"),
            ("phone-03", "SUCCEEDED"),
            ("phone-04", "SUCCEEDED"),
        ]
        assert report["members"][0]["outputs"] == {"price": "4.20", "shop": "Tea & Co"}
        [failure] = report["failures"]
        assert (failure["code"], failure["stepId"], failure["screen"]) == ("TARGET_NOT_FOUND", "back-1", "shop/.Cart")
        assert (failure["phones"], failure["examples"][0]["device"]) == (1, "phone-02")
        assert len(failure["examples"][0]["pictureSha256"]) == 64
        rules = [decision["rule"] for decision in report["decisions"]]
        assert (rules[0], rules[-1]) == ("CREATED", "FINISH")
        assert report["membership"] == []


async def test_the_csv_report_has_a_row_for_each_phone_and_a_column_for_each_output(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(4)) as fleet:
        text = await written(fleet, tmp_path, await mixed(fleet), ReportForm.CSV)
        assert text.startswith("\ufeffdevice,")
        rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
        assert [(row["device"], row["wave"], row["outcome"]) for row in rows] == [
            ("phone-01", "1", "SUCCEEDED"),
            ("phone-02", "1", "FAILED"),
            ("phone-03", "2", "SUCCEEDED"),
            ("phone-04", "2", "SUCCEEDED"),
        ]
        assert [row["output.price"] for row in rows] == ["4.20", "", "", ""]
        assert rows[1]["reason"].endswith("no button")


async def test_the_page_says_how_it_went_and_shows_the_failure(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(4)) as fleet:
        page = Page(await written(fleet, tmp_path, await mixed(fleet), ReportForm.HTML))
        assert "Tea everywhere" in page.text
        assert "TARGET_NOT_FOUND · step back-1 · screen shop/.Cart" in page.text
        assert "4 Phones 3 Succeeded 1 Failed" in page.text
        assert "price 4.20" in page.text
        assert [image["src"] for image in page.all("img")] == ["data:image/png;base64,UE5H"]


async def test_the_page_needs_nothing_beside_itself(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(4)) as fleet:
        text = await written(fleet, tmp_path, await mixed(fleet), ReportForm.HTML)
        page = Page(text)
        assert "http:" not in text
        assert "https:" not in text
        assert not {tag for tag, _ in page.elements} & {"script", "link", "iframe", "object", "base", "form"}
        assert any("default-src 'none'" in (meta.get("content") or "") for meta in page.all("meta"))
        assert {"prefers-color-scheme: dark", "width=device-width"} <= {
            word for word in ("prefers-color-scheme: dark", "width=device-width") if word in text
        }


async def test_what_phones_and_people_say_is_never_markup(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        started_rollout = await fleet.start(spec(*phones(2), name=HOSTILE[:150]))
        rollout_id = started_rollout.rollout.rollout_id
        live = await fleet.live(rollout_id)
        await ended(fleet, live["phone-01"], outputs={"shop": HOSTILE})
        await ended(
            fleet,
            live["phone-02"],
            code=StepCode.TARGET_NOT_FOUND,
            message=HOSTILE,
            screen=HOSTILE,
            picture=b"<svg onload=alert(3)>",
            media_type='image/png"onerror="alert(4)',
        )
        page = Page(await written(fleet, tmp_path, rollout_id, ReportForm.HTML))
        assert not page.all("script")
        assert not page.all("img")
        assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
        assert page.text.count("<script>alert(1)</script>") >= 4
        assert "{{ 7 * 7 }}" in page.text
        json.loads(await written(fleet, tmp_path, rollout_id, ReportForm.JSON))


@pytest.mark.parametrize("formula", FORMULAS)
async def test_what_phones_say_is_never_a_formula(tmp_path: Path, formula: str) -> None:
    async with rolling(tmp_path, "phone-01") as fleet:
        rollout_id = (await fleet.start(spec("phone-01"))).rollout.rollout_id
        await ended(fleet, (await fleet.live(rollout_id))["phone-01"], outputs={"price": formula})
        text = await written(fleet, tmp_path, rollout_id, ReportForm.CSV)
        [row] = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
        assert row["output.price"] == f"'{formula}"


@pytest.mark.parametrize("number", ["-5", "+49", "-1,50", "3.20"])
async def test_numbers_with_a_sign_stay_numbers(tmp_path: Path, number: str) -> None:
    async with rolling(tmp_path, "phone-01") as fleet:
        rollout_id = (await fleet.start(spec("phone-01"))).rollout.rollout_id
        await ended(fleet, (await fleet.live(rollout_id))["phone-01"], outputs={"price": number})
        text = await written(fleet, tmp_path, rollout_id, ReportForm.CSV)
        [row] = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
        assert row["output.price"] == number


@pytest.mark.parametrize("form", list(ReportForm))
async def test_a_rollout_that_goes_on_has_a_report_as_well(tmp_path: Path, form: ReportForm) -> None:
    async with rolling(tmp_path, *phones(3)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(3), dryRun={"device": "phone-01"}))).rollout.rollout_id
        assert "phone-03" in await written(fleet, tmp_path, rollout_id, form)


async def test_secrets_are_in_no_report(tmp_path: Path) -> None:
    task = json.dumps({
        "schemaVersion": 1,
        "taskId": "tea",
        "inputs": {"pin": {"type": "secret"}},
        "steps": [{"id": "type", "action": "INPUT", "selector": {"text": "PIN"}, "value": "${inputs.pin}"}],
    })  # fmt: skip
    async with rolling(tmp_path, *phones(2), task=task) as fleet:
        text = spec(*phones(2), deviceInputs={name: {"pin": f"hush-{name}"} for name in phones(2)})
        rollout_id = (await fleet.start(text)).rollout.rollout_id
        for form in ReportForm:
            assert "hush-" not in await written(fleet, tmp_path, rollout_id, form)


async def test_pictures_that_do_not_fit_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(material, "MAX_PICTURES_BYTES", 5)
    async with rolling(tmp_path, *phones(3)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(3)))).rollout.rollout_id
        for number, execution in enumerate((await fleet.live(rollout_id)).values()):
            picture = bytes([number] * 3)
            await ended(fleet, execution, code=StepCode.TARGET_NOT_FOUND, picture=picture)
        page = Page(await written(fleet, tmp_path, rollout_id, ReportForm.HTML))
        assert len(page.all("img")) == 1
        assert page.text.count("no picture") == 2


async def test_lists_longer_than_a_page_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(material, "PAGE", 2)
    async with rolling(tmp_path, *phones(6)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(6)))).rollout.rollout_id
        await fleet.run_all(rollout_id)
        report = json.loads(await written(fleet, tmp_path, rollout_id, ReportForm.JSON))
        assert [member["device"] for member in report["members"]] == list(phones(6))
        text = await written(fleet, tmp_path, rollout_id, ReportForm.HTML)
        assert Page(text).text.count("phone-06") == 2  # the table of all, and the document


async def test_a_page_of_many_decisions_says_where_the_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_form, "MAX_DECISIONS", 1)
    async with rolling(tmp_path, *phones(2)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(2)))).rollout.rollout_id
        assert WORDS["en"]["left_out"] in await written(fleet, tmp_path, rollout_id, ReportForm.HTML)


async def test_the_page_comes_in_chinese(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(2)))).rollout.rollout_id
        page = Page(await written(fleet, tmp_path, rollout_id, ReportForm.HTML, "zh"))
        assert page.all("html") == [{"lang": "zh"}]
        assert "发布报告" in page.text


def test_both_languages_have_the_same_words() -> None:
    assert WORDS["en"].keys() == WORDS["zh"].keys()


async def test_a_report_comes_in_pieces(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(2)))).rollout.rollout_id
        for execution in (await fleet.live(rollout_id)).values():
            await ended(fleet, execution, outputs={"page": "x" * PIECE_BYTES})
        pieces = [piece async for piece in reports(fleet, tmp_path).write(rollout_id, ReportForm.JSON)]
        assert len(pieces) >= 3


async def test_a_rollout_that_is_none_has_no_report(tmp_path: Path) -> None:
    async with rolling(tmp_path, "phone-01") as fleet:
        with pytest.raises(NotFoundError):
            await written(fleet, tmp_path, "ro-none", ReportForm.HTML)
