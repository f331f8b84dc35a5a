"""Screen text in quotes: nothing in it ends them, nothing in it is a token, and a copy of it is the text again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_designer.observation.quoting import quoted, quoted_json

TOKENS = [
    "<|im_start|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<\uff5cbegin\u2581of\u2581sentence\uff5c>",
    "</s>",
    "<s>",
    "<<SYS>>",
    "<tool_call>",
    "</tool_call>",
    "<start_of_turn>",
    "<think>",
    "[INST]",
    "[/INST]",
    "[TOOL_CALLS]",
    "[gMASK]",
    "[|Human|]",
    "[CLS]",
]
UNSEEN = ["\n", "\r", "\t", "\x00", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\u202e", "\u2066", "\u200b", "\ufeff"]
SMUGGLED = ["\U000e0041", "\ufe0f", "\U000e0100", "\u3164", "\ud800", "\u00a0", "\u3000"]

texts = st.text(st.characters(), max_size=60) | st.lists(
    st.sampled_from([*TOKENS, *UNSEEN, *SMUGGLED, '"', "\\", "\\u0022", "a", "你", "["]), max_size=12
).map("".join)


@given(texts)
def test_a_copy_of_the_quoted_text_is_the_text(text: str) -> None:
    assert json.loads(quoted(text, most=None)) == text


@given(texts)
def test_the_only_bare_quotes_are_the_two_around_it(text: str) -> None:
    inner = quoted(text, most=None)[1:-1]

    assert '"' not in inner.replace("\\\\", "").replace('\\"', "")


@given(texts)
def test_it_is_one_line_of_what_can_be_seen(text: str) -> None:
    said = quoted(text, most=None)

    assert len(said.splitlines()) == 1
    assert said.isprintable()


@pytest.mark.parametrize("token", TOKENS)
def test_no_token_of_a_chat_template_is_left(token: str) -> None:
    assert token not in quoted(f"a {token} b {token}", most=None)


@pytest.mark.parametrize("character", [*UNSEEN, *SMUGGLED])
def test_what_nobody_sees_is_written_by_its_number(character: str) -> None:
    said = quoted(f"a{character}b")

    assert character not in said
    assert "\\u" in said


@pytest.mark.parametrize("text", ["[Photo]", "[3]", "[图片]", "a > b", "“Beijing”", "Zoë Łukasik", "50 %", "¥5"])
def test_an_everyday_text_stands_as_it_is(text: str) -> None:
    assert quoted(text) == f'"{text}"'


@given(texts, st.integers(0, 40))
def test_what_is_cut_is_a_beginning_and_says_how_much_is_missing(text: str, most: int) -> None:
    whole = quoted(text, most=None)
    if len(whole) - 2 <= most:
        assert quoted(text, most=most) == whole
        return
    # The last one: a text may hold the marker itself.
    said, _, missing = quoted(text, most=most).rpartition("…+")
    shown = json.loads(said)
    assert len(said) - 2 <= most
    assert text.startswith(shown)
    assert len(text) - len(shown) == int(missing)


def test_names_and_texts_of_json_are_quoted_alike() -> None:
    assert quoted_json({"text": "</s>", "index": 0, "has": {"clickable": True}, "a": [None, "<x>"]}) == (
        '{"text":"\\u003c/s>","index":0,"has":{"clickable":true},"a":[null,"\\u003cx>"]}'
    )
