import contextlib
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from droidfleet_shared.protocol import regexes
from droidfleet_shared.protocol.regex_syntax import MAX_SIZE, parse
from droidfleet_shared.protocol.regexes import MAX_TEXT_LENGTH, BadPatternError, Pattern, compile_pattern
from unit.protocol.strategies import unhurried


def accepts(pattern: str, text: str) -> bool:
    return compile_pattern(pattern).fullmatch(text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"Order #\d+", "Order #4711"),
        (r"^Order #\d+$", "Order #4711"),
        ("(?i)log ?in", "LogIn"),
        ("(?:Mon|Tues)day", "Tuesday"),
        ("(?P<day>Mon|Tues)day", "Monday"),
        (r"\$\{name\}", "${name}"),
        (r"\u20ac \d+\.\d{2}", "€ 12.50"),
        ("[^a-c]+?", "xyz"),
        ("[]x]", "]"),
        ("a{2,}", "aaaa"),
        ("a{,2}b{}", "ab{}"),
        ("x|", ""),
        ("cafe\u0301", "café"),
        ("a\u00a0b", "a b"),
        ("👍+ .*", "👍👍 yes"),
        ("👍+", "...."),
        (r"\👍", ".."),
    ],
)
def test_pattern_matches_the_whole_text(pattern: str, text: str) -> None:
    assert accepts(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("Order", "Order 1"),
        ("rder", "Order"),
        ("a{2,3}", "aaaa"),
        ("a.c", "ac"),
        ("👍", "."),
        ("[a-c]", "d"),
        ("a", "A"),
    ],
)
def test_pattern_does_not_match_a_part_of_the_text(pattern: str, text: str) -> None:
    assert not accepts(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "position", "reason"),
    [
        ("ab(", 2, "not closed"),
        ("a)", 1, "closes no group"),
        ("[a", 0, "class is not closed"),
        ("*a", 0, "nothing before it"),
        ("a|{2}", 2, "nothing before it"),
        ("a**", 1, "repeat of a repeat"),
        ("a++", 2, "possessive"),
        ("a{3,2}", 1, "larger than its maximum"),
        ("a{5000}", 1, "counts to 1000"),
        ("a{" + "9" * 400 + "}", 1, "counts to 1000"),
        ("((a{50}){50}){50}", 12, "too large"),
        ("(" * 30 + "a" + ")" * 30, 20, "nest 20 deep"),
        ("(){900}(){900}", 14, "too large"),
        (r"(a)\1", 3, "back-references"),
        ("(?P<n>a)(?P=n)", 8, "back-references"),
        ("x(?=a)", 1, "look-ahead"),
        ("x(?<!a)", 1, "look-behind"),
        ("(?>a)", 0, "atomic"),
        ("(?(1)a|b)", 0, "conditional"),
        ("(?#note)", 0, "comments"),
        ("a(?i)b", 1, "very beginning"),
        (r"\bOK", 0, "whole text"),
        (r"\AOK", 0, "whole text"),
        ("a^b", 1, "beginning"),
        ("a$b", 1, "end"),
        (r"\q", 0, "bad escape"),
        ("x[z-a]", 2, "bad character range"),
        ("[[]", 0, "backslash"),
        ("[a&&b]", 0, "backslash"),
        ("[👍]", 0, "emoji"),
        ("a\\", 1, "needs a character"),
    ],
)
def test_refused_pattern_is_explained_at_its_position(pattern: str, position: int, reason: str) -> None:
    with pytest.raises(BadPatternError) as refused:
        compile_pattern(pattern)
    assert reason in refused.value.reason
    assert refused.value.position == position


def test_text_longer_than_the_bound_matches_nothing() -> None:
    assert accepts(".*", "a" * MAX_TEXT_LENGTH)
    assert not accepts(".*", "a" * (MAX_TEXT_LENGTH + 1))


EXPLODING = ["(a+)+b", "(a|a)*b", "(a?){60}a{60}", "(.*)*x", "(a|aa)+b", "(?:(?:a*)*)*b", ".*.*.*.*.*.*.*.*b"]


@pytest.mark.parametrize("pattern", EXPLODING)
def test_pattern_that_explodes_elsewhere_reads_each_character_once(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = count_steps(monkeypatch)
    Pattern(parse(pattern)).fullmatch("a" * MAX_TEXT_LENGTH)
    assert len(steps) <= MAX_TEXT_LENGTH


def test_what_a_pattern_remembers_is_bounded() -> None:
    pattern = compile_pattern(".*[ab].{300}")
    for seed in range(2):
        pattern.fullmatch("".join("abx"[(seed + i * i) % 3] for i in range(MAX_TEXT_LENGTH)))
        assert pattern._remembered <= regexes._MAX_REMEMBERED + MAX_SIZE + 1


def test_pattern_still_matches_after_its_memory_was_full() -> None:
    pattern = compile_pattern("(?:[ab]*[ab].{40})")
    texts = ["".join("ab"[(i * seed >> 2) % 2] for i in range(400)) for seed in range(1, 60)]
    assert all(pattern.fullmatch(text) for text in texts)
    assert not pattern.fullmatch("x" * 50)


# Patterns over a small alphabet, so that they often match ------------------------------------------------------------

ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", "c"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    repeats = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?"])
    return (
        st.builds("(?:{}){}".format, inner, repeats)
        | st.builds("{}{}".format, inner, inner)
        | st.builds("({}|{})".format, inner, inner)
    )


PATTERNS = st.recursive(ATOMS, _larger, max_leaves=8)


@unhurried
@given(PATTERNS, st.text("abc", max_size=10))
@example("(?:a|ab)(?:c|bcd)", "abcd")
def test_accepted_pattern_means_what_re_means(pattern: str, text: str) -> None:
    assert accepts(pattern, text) == (re.fullmatch(pattern, text) is not None)


@unhurried
@given(
    st.text(st.sampled_from(list("ab()[]{}*+?|\\.^$,-0123<>:=!P&iwd👍 ")), max_size=30), st.text("ab👍. ", max_size=40)
)
def test_any_pattern_is_refused_or_matched_in_bounded_steps(pattern: str, text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        steps = count_steps(patch)
        with contextlib.suppress(BadPatternError):
            compile_pattern(pattern).fullmatch(text)
        assert len(steps) <= len(text)


def count_steps(patch: pytest.MonkeyPatch) -> list[int]:
    """Collects the size of the automaton's state at each character that it reads anew."""
    steps: list[int] = []
    step = regexes._Program.step

    def counted(program: regexes._Program, states: frozenset[int], char: str) -> frozenset[int]:
        assert len(states) <= len(program.tests) <= 4 * MAX_SIZE
        steps.append(len(states))
        return step(program, states, char)

    patch.setattr(regexes._Program, "step", counted)
    return steps
