"""When, how often, how long, and on which phones: what a description says beside what is to be done. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from droidfleet_designer.practice.quotes import MARK, Hidden
from droidfleet_designer.practice.wishes import Again

SOMETIMES = 30
"""Percent: what "sometimes" and "randomly" mean here."""

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
"""In milliseconds."""

MAX_TIMES = 1_000
"""Rounds of a REPEAT (protocol, section 2)."""

MAX_MS = 23 * HOUR
"""With what is done before it, less than the day that a task may take."""

MAX_PAUSE_MS = 600_000
"""Of a DELAY."""

_COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_HAN = "一二三四五六七八九十"
_NUMBER = rf"(?:\d+|an?|{'|'.join(_COUNTS)}|[{_HAN}两])"
_EN_UNIT = r"(?:seconds?|secs?|minutes?|mins?|hours?)"
_ZH_UNIT = r"(?:秒钟?|分钟|个?小时)"
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_ZH_DAYS = "日一二三四五六"
_TIME = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?:\s*(?P<half>am|pm)\b|\s*o'clock)?"

_EVERY = (
    re.compile(
        rf"\b(?:every|each)\s+(?P<day>day|morning|evening|weekday|{'|'.join(_DAYS)})(?:\s+at\s+{_TIME})\b", re.I
    ),
    re.compile(rf"\b(?P<day>daily)\s+at\s+{_TIME}", re.I),
    re.compile(rf"\bat\s+{_TIME}\s+(?:every|each)\s+(?P<day>day|weekday|morning|evening|{'|'.join(_DAYS)})\b", re.I),
    re.compile(
        r"(?P<day>每天|每日|每个?工作日|每周[一二三四五六日天])\s*(?:的)?\s*(?P<part>早上|上午|中午|下午|晚上|凌晨)?\s*"
        r"(?P<hour>\d{1,2}|[一二三四五六七八九十]{1,2})\s*(?:点钟?|[:时])\s*(?:(?P<minute>\d{1,2})\s*分?|(?P<zhhalf>半))?"
    ),
)
_HOURLY = re.compile(r"\b(?:every hour|hourly)\b|每个?小时", re.I)

_ALL = re.compile(
    r"\b(?:on|for|with)\s+(?:all|every)\s+(?:the\s+|of the\s+)?(?:phones?|devices?)\b|\bon each phone\b"
    r"|在?所有的?(?:手机|设备)上?|在?全部(?:手机|设备)上?",
    re.I,
)
_GROUP = (
    re.compile(rf"\bon\s+(?:the\s+)?(?:phones\s+(?:of|in)\s+(?:the\s+)?)?group\s+(?P<group>{MARK}|[\w.\-]+)", re.I),
    re.compile(
        rf"在?(?:分组|群组|组)\s*(?P<group>{MARK}|[A-Za-z0-9_.\-]+)\s*(?:的|里的?|中的?)?(?:所有)?(?:手机|设备)?上?"
    ),
    re.compile(rf"在\s*(?P<group>{MARK}|[A-Za-z0-9_.\-]+)\s*组(?:的|里的?|中的?)?(?:所有)?(?:手机|设备)?上?"),
)

_FOR = rf"for\s+(?P<long>{_NUMBER})\s+(?P<unit>{_EN_UNIT})"
_ZH_FOR = rf"(?:持续|连续)?\s*(?P<long>{_NUMBER})\s*(?P<unit>{_ZH_UNIT})"
_AFTER = (
    re.compile(rf"\s+{_FOR}$", re.I),
    re.compile(rf"\s+(?P<times>{_NUMBER})\s+times$", re.I),
    re.compile(r"\s+(?P<once>twice)$", re.I),
    re.compile(r"\s+(?P<chance>randomly|at random|sometimes|now and then)$", re.I),
    re.compile(rf"\s+every\s+(?P<least>\d+)(?:\s*(?:to|-|\u2013)\s*(?P<most>\d+))?\s+(?P<of>{_EN_UNIT})$", re.I),
    re.compile(r"\s+(?P<bare>again and again|repeatedly|over and over)$", re.I),
    re.compile(rf"\s*(?:持续|连续)\s*(?P<long>{_NUMBER})\s*(?P<unit>{_ZH_UNIT})$"),
    re.compile(rf"\s*(?:重复)?\s*(?P<times>{_NUMBER})\s*(?:次|遍)$"),
)
_BEFORE = (
    re.compile(rf"^(?P<rest>{_FOR})\s*[,:]?\s+", re.I),
    re.compile(r"^(?P<chance>randomly|at random|sometimes|now and then)\s+", re.I),
    re.compile(r"^(?P<bare>repeatedly|again and again|keep)\s+", re.I),
    re.compile(rf"^(?:在)?(?P<rest>{_ZH_FOR})(?:内|里|之内)?\s*"),
    re.compile(r"^(?P<chance>随机地?|偶尔|有时)\s*"),
    re.compile(r"^(?P<bare>反复|不断地?|不停地?)\s*"),
    re.compile(rf"^每隔?\s*(?P<least>\d+)(?:\s*(?:到|至|-|~)\s*(?P<most>\d+))?\s*(?P<of>{_ZH_UNIT})\s*(?:就)?\s*"),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a description says of time and phones, and the description ``without`` that."""

    without: str
    schedule: Mapping[str, JsonValue] | None
    target: Mapping[str, JsonValue] | None


def plan_in(text: Hidden) -> Plan:
    """Takes time and phones out of a description. What is said twice stays in it the second time."""
    without, schedule = _schedule(text.text)
    without, target = _target(without, text)
    return Plan(without, schedule, target)


def repeated(part: str) -> tuple[str, Again | None] | None:
    """A part without what it says of repeating, and that; None: that cannot be done as it is said."""
    said: dict[str, str] = {}
    rest = part.strip()
    for patterns in (_BEFORE, _AFTER):
        while (found := next((each for pattern in patterns if (each := pattern.search(rest))), None)) is not None:
            new = {key: value for key, value in found.groupdict().items() if value}
            if new.keys() & said.keys():
                return None
            said |= new
            rest = (rest[: found.start()] + rest[found.end() :]).strip()
    if not said:
        return rest, None
    again = _again(said)
    return None if again is None else (rest, again)


def milliseconds(count: str, unit: str) -> int:
    """A time that was said."""
    lower = unit.lower()
    each = HOUR if "hour" in lower or "小时" in lower else MINUTE if "min" in lower or "分" in lower else SECOND
    return counted(count) * each


def counted(word: str) -> int:
    """A number in digits or as a word."""
    word = word.lower()
    if word.isdecimal():
        return int(word)
    if word in _COUNTS:
        return _COUNTS.index(word) + 1
    if word in _HAN:
        return _HAN.index(word) + 1
    return 2 if word == "两" else 1


def _again(said: Mapping[str, str]) -> Again | None:
    times = 2 if "once" in said else counted(said["times"]) if "times" in said else None
    long = milliseconds(said["long"], said["unit"]) if "long" in said else None
    chance = SOMETIMES if "chance" in said else None
    pause = None
    if "least" in said:
        least = milliseconds(said["least"], said["of"])
        pause = (least, milliseconds(said["most"], said["of"]) if "most" in said else least)
    bounded = times is not None or long is not None
    if not bounded and (pause is not None or "bare" in said):
        return None
    if times is not None and long is not None:
        return None
    too_much = (times or 1) > MAX_TIMES or (long or 0) > MAX_MS or (pause is not None and max(pause) > MAX_PAUSE_MS)
    wrong = times == 0 or long == 0 or (pause is not None and pause[0] > pause[1])
    return None if too_much or wrong else Again(times, long, chance, "rest" in said, pause)


def _schedule(text: str) -> tuple[str, Mapping[str, JsonValue] | None]:
    for pattern in _EVERY:
        found = pattern.search(text)
        if found is not None and (cron := _cron(found.groupdict())) is not None:
            return _cut(text, found), {"cron": cron}
    found = _HOURLY.search(text)
    return (_cut(text, found), {"cron": "0 * * * *"}) if found is not None else (text, None)


def _cron(said: Mapping[str, str | None]) -> str | None:
    day, part = (said["day"] or "").lower(), said.get("part") or ""
    hour, minute = _hour(said["hour"] or ""), int(said.get("minute") or 0)
    half = (said.get("half") or "").lower()
    minute = 30 if said.get("zhhalf") else minute
    # As clocks of twelve hours are read: 12 am is midnight.
    if half == "pm" or part in ("下午", "晚上", "中午") or (day == "evening" and not half):
        hour += 12 if hour < 12 and not (part == "中午" and hour > 10) else 0
    elif half == "am" or part == "凌晨":
        hour = 0 if hour == 12 else hour
    if hour > 23 or minute > 59:
        return None
    if day in _DAYS:
        return f"{minute} {hour} * * {_DAYS.index(day)}"
    if day.startswith("每周"):
        return f"{minute} {hour} * * {_ZH_DAYS.index(day[-1].replace('天', '日'))}"
    return f"{minute} {hour} * * {'1-5' if day == 'weekday' or '工作日' in day else '*'}"


def _hour(word: str) -> int:
    if word.isdecimal():
        return int(word)
    if len(word) == 2 and word[0] == "十":
        return 10 + counted(word[1])
    return counted(word)


def _target(text: str, whole: Hidden) -> tuple[str, Mapping[str, JsonValue] | None]:
    for pattern in _GROUP:
        found = pattern.search(text)
        if found is not None:
            return _cut(text, found), {"group": whole.literal(found["group"])}
    found = _ALL.search(text)
    return (_cut(text, found), {"all": True}) if found is not None else (text, None)


def _cut(text: str, found: re.Match[str]) -> str:
    # A comma stays between the parts on both sides: they were two.
    return f"{text[: found.start()].rstrip()}, {text[found.end() :].lstrip()}"
