import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import MAX_ISSUES
from droidfleet_shared.protocol.jsonscan import BrokenJsonError, scan
from droidfleet_shared.protocol.jsontext import Parsed, parse
from droidfleet_shared.protocol.pointers import Json

LIMIT = 10_000


def read(text: str | bytes) -> Parsed:
    return parse(text, max_bytes=LIMIT)


def only_message(text: str | bytes) -> str:
    (finding,) = read(text).findings
    return f"{finding.message} | {finding.hint}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line 1, column 1: the document is empty"),
        (' {"a": 1,\n}', "line 2, column 1: expected a key in double quotes, found `}`"),
        ('{"a": 1,}', "Remove the comma after the last value."),
        ("[1, 2,]", "Remove the comma after the last value."),
        ("[1,, 2]", "column 4: expected a value, found `,`"),
        ('{"a" 1}', "expected `:` after the key `a`, found `1`"),
        ('{"a": 1 "b": 2}', "expected `,` or `}` after the value of `a`"),
        ("[1 2]", "expected `,` or `]` after the value, found `2`"),
        ("{'a': 1}", "straight double quotes only"),
        ("{“a”: 1}", "straight double quotes only"),
        ("{a: 1}", "Keys stand in double quotes."),
        ('{"a": yes}', "Texts stand in double quotes."),
        ('{"a": True}', "Write `true` instead of `True`."),
        ('{"a": None}', "Write `null` instead of `None`."),
        ('{"a": 01}', "no leading zero"),
        ('{"a": +1}', "A number looks like"),
        ('{"a": .5}', "A number looks like"),
        ('{"a": 1.}', "A number looks like"),
        ('{"a": 0x1F}', "A number looks like"),
        ("// note\n{}", "JSON has no comments"),
        ("{} # note", "JSON has no comments"),
        ("```json\n{}\n```", "without a Markdown fence"),
        ('{"a": 1}}', "expected the end, found `}`"),
        ("{} {}", "A document is one JSON value"),
        ('{"a":\u00a01}', "U+00A0 looks like a space"),
        ('{"a": "x\ny"}', "holds the control character `\\u000a`"),
        ('{"a": "\\d"}', "A backslash is written"),
        ('{"a": "\\u12"}', "expected an escape"),
        ('{"a": "b', "a text that begins here is not closed"),
        ('{"a": [{"b": 1', "`}]}` is missing at the end"),
        ('{"a":', "the document ends where a value was expected"),
        ("[" * 101, "nested more than 100 levels deep"),
        (b'{"a": "\xe9"}', "not UTF-8: byte 0xe9 at offset 7"),
        ("{}".encode("utf-16"), "the document is UTF-16"),
        ('{"a": "\ud83d"}', "character 7 of the text is half of a character"),
    ],
)
def test_broken_text_is_explained_where_it_breaks(text: str | bytes, expected: str) -> None:
    parsed = read(text)
    assert expected.removeprefix("a text") in only_message(text)
    assert not parsed.readable
    assert parsed.findings[0].code is ValidationCode.BAD_JSON
    assert parsed.findings[0].place == ()


def test_error_shows_the_text_around_its_place() -> None:
    assert 'near `"id": "a" »"action": "BACK"}`' in only_message('{"steps": [],\n"id": "a" "action": "BACK"}')


def test_document_at_the_size_limit_is_read_and_one_byte_more_is_refused() -> None:
    text = '"' + "a" * (LIMIT - 2) + '"'
    assert read(text).findings == ()
    assert read(text.encode() + b" ").findings[0].code is ValidationCode.TOO_LARGE
    assert read(text[:-2] + 'é"').findings[0].code is ValidationCode.TOO_LARGE


def test_ten_megabytes_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_text: str) -> None:
        raise AssertionError("the text was read")

    monkeypatch.setattr("droidfleet_shared.protocol.jsontext._read_fast", never)
    monkeypatch.setattr("droidfleet_shared.protocol.jsontext.scan", never)
    huge = "[" * 10_000_000
    assert [read(text).findings[0].code for text in (huge, huge.encode())] == [ValidationCode.TOO_LARGE] * 2


def test_byte_order_mark_is_ignored() -> None:
    assert read("\ufeff{}").value == {}
    assert read(b"\xef\xbb\xbf{}").value == {}


def test_every_repeated_key_is_found_with_its_place() -> None:
    parsed = read('{"a": {"b": [{"c": 1,\n"c": 2}]}, "a": 3, "a": 4}')
    assert [(finding.place, finding.code) for finding in parsed.findings] == [
        (("a", "b", 0, "c"), ValidationCode.BAD_JSON),
        (("a",), ValidationCode.BAD_JSON),
        (("a",), ValidationCode.BAD_JSON),
    ]
    assert "line 1 and line 2" in parsed.findings[0].message
    assert parsed.value == {"a": 4}


def test_keys_that_differ_only_in_how_they_are_written_are_the_same_key() -> None:
    assert read('{"a": 1, "\\u0061": 2}').findings[0].place == ("a",)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_refused_in_its_place(word: str) -> None:
    (finding,) = read(f'{{"a": [1, {word}]}}').findings
    assert (finding.place, finding.code) == (("a", 1), ValidationCode.BAD_JSON)


@pytest.mark.parametrize("digits", ["1e999999", "-1e400", "9" * 401, "1." + "0" * 500, "-" + "9" * 9000])
def test_number_without_end_is_refused_in_its_place(digits: str) -> None:
    (finding,) = read(f'{{"a": {digits}}}').findings
    assert (finding.place, finding.code) == (("a",), ValidationCode.OUT_OF_RANGE)


def test_lone_surrogates_are_refused_and_replaced_in_the_tree() -> None:
    parsed = read('{"a": "x\\ud83d", "\\ude00": 1, "b": "\\ud83d\\ude00"}')
    assert [finding.place for finding in parsed.findings] == [("a",), ("\ufffd",)]
    assert parsed.value == {"a": "x\ufffd", "\ufffd": 1, "b": "😀"}


def test_nesting_of_exactly_100_levels_is_read() -> None:
    assert read("[" * 100 + "]" * 100).findings == ()
    assert read('{"a":' * 99 + "[]" + "}" * 99).findings == ()
    assert not read("[" * 101 + "]" * 101).readable


def test_brackets_in_texts_are_no_nesting() -> None:
    assert read(json.dumps(["[" * 300])).findings == ()


def test_findings_are_bounded() -> None:
    assert len(read("[" + "NaN," * 2000 + "1]").findings) == MAX_ISSUES + 1


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


@given(JSON_VALUES, st.booleans(), st.sampled_from([None, 0, 2]))
def test_what_python_writes_is_read_back(value: Json, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).replace("\\ud", "\\uD")
    has_halves = any("\ud800" <= char <= "\udfff" for char in json.dumps(value, ensure_ascii=False))
    if not has_halves:
        assert parse(text, max_bytes=10**6) == Parsed(value)
        assert scan(text) == (value, [])


ALMOST_JSON = st.lists(
    st.sampled_from([*'{}[]:,"', "{", "[", '"a"', '"a":', "1", "-", "0", ".5", "e9", "true", "null", "NaN", " ", "\n"])
    | st.sampled_from(['"\\ud800"', "\\", "'", "\u00a0", "\x00", "é", "1e999", "9" * 401])
).map("".join)


def read_slowly(text: str) -> Parsed:
    try:
        value, findings = scan(text)
    except BrokenJsonError as error:
        return Parsed(None, tuple(error.findings), readable=False)
    return Parsed(value, tuple(findings))


@given(ALMOST_JSON)
def test_both_readers_accept_the_same_documents(text: str) -> None:
    assert read(text) == read_slowly(text)


@given(ALMOST_JSON)
def test_what_python_refuses_is_refused(text: str) -> None:
    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        assert read(text).findings


def refuse(word: str) -> None:
    raise ValueError(word)


@given(st.binary(max_size=200))
def test_any_bytes_are_answered(data: bytes) -> None:
    parsed = read(data)
    for finding in parsed.findings:
        assert len(finding.message) < 500
        finding.message.encode()
