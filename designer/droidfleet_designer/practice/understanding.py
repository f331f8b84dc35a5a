"""Takes a description apart by rules, in English and Chinese. Pure.

What is not understood whole is not understood: a part that says more than its rule can hold ends the reading, and what
stands after it is left too, for it may depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from droidfleet_designer.practice.quotes import MARK, Hidden, hidden
from droidfleet_designer.practice.times import MAX_PAUSE_MS, counted, milliseconds, plan_in, repeated
from droidfleet_designer.practice.wishes import (
    Back,
    Check,
    Clause,
    LongPress,
    Open,
    Pause,
    Read,
    ScrollTo,
    Search,
    Tap,
    Turn,
    Type,
    Understood,
    Wish,
)
from droidfleet_shared.protocol.text import normalise

MAX_CLAUSES = 30
"""More is no simple task."""

_VERBS = (
    r"open|start|launch|go|tap|press|click|choose|pick|select|hit|long|hold|type|enter|write|fill|search|look|scroll"
    r"|check|verify|make|ensure|wait|read|tell|note|turn|switch|enable|disable|report|sometimes|randomly|repeatedly|for"
)
_ZH_VERBS = (
    r"打开|启动|进入|点|按|单击|轻触|选|长按|输入|在|搜|查找|滚动|滑|返回|后退|等|确认|检查|确保|验证"
    r"|读|告诉|记|获取|提取|开启|关闭|随机|反复|持续"
)
_SPLIT = re.compile(
    r"[;。!?\n,]+|\.(?=\s|$)"
    rf"|\s+(?:and\s+)?then\s+|\s+and\s+(?=(?:{_VERBS})\b)"
    r"|(?:(?<=里)|(?<=中))(?=打开|点|选|搜|开启|关闭|长按|滚动)"
    rf"|(?:然后|接着|随后|之后|最后|并且|而后)|(?:并|再|后)(?=(?:{_ZH_VERBS}))",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"^(?:(?:please|now|first|next|finally|then|and|also|i want(?: you)? to|can you|could you)\b\s*)+"
    r"|^(?:请|首先|先|再|最后|然后|接着|并|帮我|麻烦你?|我想(?:要)?|你?)+",
    re.IGNORECASE,
)
_POLITE_AFTER = re.compile(r"\s+(?:please|now|for me|again)$", re.IGNORECASE)
_SAYS_MORE = re.compile(
    r"\b(?:if|unless|except|without|instead|not|never|or|until there|maybe|otherwise|only|don't|doesn't|isn't|else)\b"
    r"|如果|假如|除非|不要|别|否则|或者?|除了|不|没|仅|只",
    re.IGNORECASE,
)
_SECRET = re.compile(r"password|passcode|\bpin\b|secret|密码|口令|验证码", re.IGNORECASE)
"""Fields whose text is written down nowhere; others that hide theirs are found out on the screen."""

_IT = ("it", "this", "that", "它", "这个")
_NOTHING = re.compile(r"[\s.…~—-]*(?:thanks?|thank you|谢谢)?[\s.…~—-]*", re.IGNORECASE)

_X = r"(?P<x>.+?)"
_SHOWN = r"(?:is|are|'s)\s+(?:there|shown|visible|displayed|seen|on (?:the )?screen)|appears|shows(?: up)?"
_ZH_SHOWN = r"(?:已经?|能|是否|可以)?(?:显示|出现|可见|存在|看到|在屏幕上)(?:出来|在屏幕上|了)?"

Make = Callable[[re.Match[str], Hidden], Wish | None]


def _named(make: Callable[..., Wish], **more: object) -> Make:
    def made(found: re.Match[str], text: Hidden) -> Wish | None:
        name = text.name(_said(found, "x", "y"))
        return None if name is None else make(name=name, **more)

    return made


def _said(found: re.Match[str], *groups: str) -> str:
    """What one of the groups found; a rule has some for its ways to say it."""
    said = found.groupdict()
    return next((each for group in groups if (each := said.get(group))), "")


def _typed(found: re.Match[str], text: Hidden) -> Wish | None:
    typed = text.literal(found["text"])
    said = _said(found, "x")
    field = text.name(said) if said else None
    return None if typed is None or (said and field is None) else Type(typed, field)


def _searched(found: re.Match[str], text: Hidden) -> Wish | None:
    typed = text.literal(_said(found, "text", "other"))
    return None if typed is None else Search(typed)


def _paused(found: re.Match[str], _: Hidden) -> Wish | None:
    length = milliseconds(found["count"], found["unit"])
    return Pause(length) if counted(found["count"]) and length <= MAX_PAUSE_MS else None


_RULES: Sequence[tuple[str, Make]] = (
    (
        r"(?:wait|pause)(?:\s+for)?\s+(?P<count>\d+|an?|one|two|three|five|ten)\s+(?P<unit>(?:second|sec|minute|min)s?)",
        _paused,
    ),
    (r"等待?\s*(?P<count>\d+|[一二三四五六七八九十两])\s*(?P<unit>秒钟?|分钟)", _paused),
    (r"(?:go|press|navigate)\s+back(?:\s+(?:once|one page))?", lambda _found, _text: Back()),
    (r"(?:按|点)?(?:返回|后退)(?:键|上一?页)?(?:一次)?", lambda _found, _text: Back()),
    (r"(?:open|start|launch|go to)\s+(?:the\s+)?" + _X + r"\s+app(?:lication)?", _named(Open, app=True)),
    (r"(?:open|start|launch)\s+(?:the\s+)?app(?:lication)?\s+" + _X, _named(Open, app=True)),
    (r"(?:start|launch)\s+" + _X, _named(Open, app=True)),
    (r"(?:open|go to)\s+" + _X, _named(Open)),
    (r"in\s+(?:the\s+)?(?:app\s+)?(?P<x>.+?)(?:\s+app)?", _named(Open)),
    (rf"(?:打开|启动|进入)\s*{_X}\s*(?:这个)?(?:应用程序|应用|APP|软件|程序)", _named(Open, app=True)),
    (rf"(?:打开|启动|进入)\s*(?:应用程序|应用|APP|软件|程序)\s*{_X}", _named(Open, app=True)),
    (rf"(?:打开|开启)\s*{_X}\s*(?:的)?开关", _named(Turn, on=True)),
    (rf"关闭\s*{_X}\s*(?:的)?开关", _named(Turn, on=False)),
    (rf"开启\s*{_X}", _named(Turn, on=True)),
    (rf"(?:打开|启动|进入)\s*{_X}", _named(Open)),
    (rf"在\s*{_X}\s*(?:应用|APP)?(?:里|中)", _named(Open)),
    (rf"(?:long[ -]press|press and hold|hold(?: down)?|tap and hold)\s+{_X}", _named(LongPress)),
    (rf"长按\s*{_X}", _named(LongPress)),
    (rf"(?:turn|switch)\s+on\s+{_X}|enable\s+(?P<y>.+)", _named(Turn, on=True)),
    (rf"(?:turn|switch)\s+{_X}\s+on", _named(Turn, on=True)),
    (rf"(?:turn|switch)\s+off\s+{_X}|disable\s+(?P<y>.+)", _named(Turn, on=False)),
    (rf"(?:turn|switch)\s+{_X}\s+off", _named(Turn, on=False)),
    (rf"(?:type|enter|write)\s+(?P<text>.+?)\s+(?:into|in|to)\s+{_X}", _typed),
    (rf"fill\s+(?:in\s+)?{_X}\s+with\s+(?P<text>.+)", _typed),
    (r"(?:type|enter|write)\s+(?P<text>.+)", _typed),
    (rf"在\s*{_X}\s*(?:里面|里|中|内|处|上)?\s*(?:输入|填写|填入|键入)\s*(?P<text>{MARK}|.+)", _typed),
    (r"(?:输入|填写|键入)\s*(?P<text>.+)", _typed),
    (r"(?:search|look)\s+for\s+(?P<text>.+)|search\s+(?P<other>.+)", _searched),
    (r"(?:搜索一下|搜索|搜一下|搜|查找)\s*(?P<text>.+)", _searched),
    (rf"scroll\s+(?:down\s+)?(?:until\s+{_X}\s+(?:{_SHOWN})|(?:to|until)\s+(?P<y>.+))", _named(ScrollTo)),
    (rf"(?:向下)?(?:滚动|滑动|下滑|翻)到\s*{_X}(?:{_ZH_SHOWN})?", _named(ScrollTo)),
    (rf"wait\s+(?:until|for|till)\s+{_X}(?:\s+(?:{_SHOWN}|to appear|to be shown))?", _named(Check, waiting=True)),
    (rf"等待?(?:到|直到)?\s*{_X}\s*{_ZH_SHOWN}", _named(Check, waiting=True)),
    (
        rf"(?:check|verify|make sure|ensure|see|confirm)\s+(?:that\s+|whether\s+)?{_X}\s*(?:{_SHOWN})",
        _named(Check),
    ),
    (rf"check\s+for\s+{_X}", _named(Check)),
    (rf"(?:确认|检查|确保|验证|看看?)(?:一下)?\s*(?:屏幕上?)?{_X}\s*{_ZH_SHOWN}", _named(Check)),
    (rf"(?:确认|检查|确保|验证)(?:一下)?\s*(?:屏幕上?)?{_ZH_SHOWN}\s*{_X}", _named(Check)),
    (rf"(?:read|tell me|note(?: down)?|report)\s+(?:me\s+)?{_X}", _named(Read)),
    (rf"(?:读取|读出|读一下|读|告诉我|记录|记下|获取|提取)\s*{_X}", _named(Read)),
    (rf"(?:tap|press|click|choose|pick|select|hit)\s+(?:on\s+)?{_X}", _named(Tap)),
    (rf"(?:点击|单击|点一下|轻触|点|按下|按一下|按|选择|选中|选)\s*{_X}", _named(Tap)),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), make) for pattern, make in _RULES)


def understood(description: str) -> Understood:
    """What a description asks for."""
    text = hidden(normalise(description.replace("\n", "; ")))
    plan = plan_in(text)
    parts = [each for part in _SPLIT.split(plan.without) if not _NOTHING.fullmatch(each := (part or "").strip())]
    clauses: list[Clause] = []
    for place, part in enumerate(parts):
        clause = _meant(_clause(part, text), clauses) if len(clauses) < MAX_CLAUSES else None
        if clause is None:
            rest = ", ".join(text.shown(each) for each in parts[place:])
            return Understood(tuple(clauses), rest, plan.schedule, plan.target)
        clauses.append(clause)
    return Understood(tuple(clauses), "", plan.schedule, plan.target)


def _meant(clause: Clause | None, before: Sequence[Clause]) -> Clause | None:
    """The clause with the thing before it in place of an "it"; None: there is none."""
    name = getattr(clause.wish, "name", None) if clause is not None else None
    if clause is None or name is None or name.quoted or name.text.casefold() not in _IT:
        return clause
    last = getattr(before[-1].wish, "name", None) if before else None
    return None if last is None else replace(clause, wish=replace(clause.wish, name=last))


def _clause(part: str, text: Hidden) -> Clause | None:
    said = text.shown(part)
    if _SAYS_MORE.search(part):
        return None
    bare = _POLITE_AFTER.sub("", _POLITE.sub("", part)).strip()
    if (wish := _wish(bare, text, only=(Pause,))) is not None:
        return Clause(said, wish)
    taken = repeated(bare)
    if taken is None:
        return None
    rest, again = taken
    wish = _wish(_POLITE.sub("", rest), text)
    if wish is None:
        return None
    secret = isinstance(wish, Type) and wish.field is not None and _SECRET.search(wish.field.text)
    clause = Clause(said, wish, again)
    return clause.hidden() if secret else clause


def _wish(part: str, text: Hidden, *, only: tuple[type, ...] = ()) -> Wish | None:
    for pattern, make in _COMPILED:
        found = pattern.fullmatch(part)
        if found is None:
            continue
        wish = make(found, text)
        if wish is not None and (not only or isinstance(wish, only)):
            return wish
    return None
