import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_shared.protocol.text import dump_form, normalise

ANY_TEXT = st.text(st.characters() | st.sampled_from(list("\u200b\u200d\ufe0f\u00a0\u202f\u0301e \t\n\ud83d")))


@pytest.mark.parametrize(
    ("written", "compared"),
    [
        ("  Add  to\tcart \n", "Add to cart"),
        ("12\u00a0000\u202f€", "12 000 €"),
        ("cafe\u0301", "caf\u00e9"),
        ("e\u200b\u0301", "\u00e9"),
        ("\u200eOK\u200f", "OK"),
        ("\u2066name\u2069", "name"),
        ("re\u00adset", "reset"),
        ("\u2764\ufe0f", "\u2764"),
        ("\ufeff", ""),
        ("50%", "50%"),
        ("^_^", "^_^"),
    ],
)
def test_texts_that_look_equal_have_one_form(written: str, compared: str) -> None:
    assert normalise(written) == compared


@given(ANY_TEXT)
def test_normal_form_of_a_normal_form_is_itself(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert once == once.strip()
    assert unicodedata.is_normalized("NFC", once)


@pytest.mark.parametrize(
    ("text", "dumped"),
    [
        ("Nice 👍", "Nice .."),
        ("👨\u200d👩", "..\u200d.."),
        ("\ud83d", "."),
        ("bell\x07", "bell."),
        ("line\nbreak\t", "line\nbreak\t"),
        ("Größe 漢字", "Größe 漢字"),
    ],
)
def test_a_dump_writes_a_dot_for_each_half_of_an_emoji(text: str, dumped: str) -> None:
    assert dump_form(text) == dumped


@given(ANY_TEXT)
def test_dump_form_has_one_character_for_each_utf16_unit(text: str) -> None:
    assert len(dump_form(text)) == len(text.encode("utf-16-le", "surrogatepass")) // 2
