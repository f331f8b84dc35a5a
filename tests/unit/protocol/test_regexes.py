import contextlib
import re
import warnings

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from droidfleet_shared.protocol.regexes import MAX_REMEMBERED, MAX_TEXT_LENGTH, BadPatternError, compile_pattern
from droidfleet_shared.protocol.text import normalise

_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")


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
        (r"\x{20ac} \d+\.\d{2}", "€ 12.50"),
        (r"\pL+", "Zoë"),
        (r".*\bOK\b.*", "that is OK."),
        ("[^a-c]+?", "xyz"),
        ("[]x]", "]"),
        ("a{2,}", "aaaa"),
        ("ab{}", "ab{}"),
        ("x|", ""),
        ("cafe\u0301", "café"),
        ("a\u00a0b", "a b"),
        ("👍+ .*", "👍👍 yes"),
        ("👍+", "...."),
        (r"\👍", ".."),
        ("[👍👎]+!", "..👎!"),
        (r"\[👍]", "[..]"),
        (r"\Q(👍", "(👍"),
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
        ("[👍]", "."),
        ("[^👍]", ".."),
        ("a.c", "a\nc"),
        ("[a-c]", "d"),
        ("a", "A"),
    ],
)
def test_pattern_does_not_match_a_part_of_the_text(pattern: str, text: str) -> None:
    assert not accepts(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("ab(", "a group is not closed; a literal parenthesis is written `\\(`"),
        ("a)", "a `)` closes no group; a literal one is written `\\)`"),
        ("[a", "a class is not closed; a literal bracket is written `\\[`"),
        ("*a", "`*` has nothing before it to repeat"),
        ("a|{2}", "`{2}` has nothing before it to repeat"),
        ("a**", "`**` repeats a repeat; write it as `(?:a+)*`"),
        ("a++", "possessive repeats are not supported"),
        ("a{3,2}", "`{3,2}` is refused: a count goes from the smaller number to the larger"),
        ("a{5000}", "to 1000 at most"),
        ("((a{50}){50}){50}", "repeats within repeats multiplied"),
        ("a{,2}", "`{,2}` would be literal text; write `{0,2}`"),
        (r"\pL{1,200}", "too large with its repeats written out"),
        (r"(a)\1", "back-references are not supported; repeat what is meant"),
        (r"(?P<n>a)\k<n>", "back-references are not supported"),
        ("(?P<n>a)(?P=n)", "only `(?P<name>...)` is supported; back-references are not"),
        ("x(?=a)", "look-ahead is not supported; write what follows as well"),
        ("x(?!a)", "look-ahead is not supported; write what is wanted"),
        ("(?<=a)x", "look-behind is not supported; write what comes before as well"),
        ("x(?<!a)", "look-behind is not supported; write what is wanted"),
        ("(?>a)", "atomic groups are not supported; write `(?:...)`"),
        ("(a)?(?(1)a|b)", "conditional groups are not supported; write both cases"),
        ("(?#note)", "comments are not supported"),
        ("(?x)a", "`(?x` is no group"),
        ("(?P<a-b>x)", "`(?P<a-b>` is no name of a group"),
        (r"OK\Z", "`\\Z` is not supported and not needed"),
        (r"\u20ac", "write the character itself, or its code in hexadecimal as `\\x{20ac}`"),
        (r"\x4", "`\\x4` is no character"),
        (r"\q", "`\\q` means nothing here; a literal backslash is written `\\\\`"),
        (r"\p{Foo}", "`\\p{Foo}` is no class of characters"),
        ("x[z-a]", "`z-a` is no class of characters; a range goes upwards"),
        ("a\\", "a backslash needs a character after it"),
    ],
)
def test_refused_pattern_is_explained(pattern: str, reason: str) -> None:
    with pytest.raises(BadPatternError) as refused:
        compile_pattern(pattern)
    assert reason in refused.value.reason


def test_refused_pattern_writes_nothing_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadPatternError):
        compile_pattern("(never closed")
    assert capfd.readouterr() == ("", "")


def test_text_longer_than_the_bound_matches_nothing() -> None:
    assert accepts(".*", "a" * MAX_TEXT_LENGTH)
    assert not accepts(".*", "a" * (MAX_TEXT_LENGTH + 1))


EXPLODING = ["(a+)+b", "(a|a)*b", "(a?){60}a{60}", "(.*)*x", "(a|aa)+b", "(?:(?:a*)*)*b", ".*.*.*.*.*.*.*.*b"]


@pytest.mark.parametrize("pattern", EXPLODING)
def test_pattern_that_explodes_elsewhere_ends(pattern: str) -> None:
    # Where it explodes, the sun does not last long enough: no need to look at a clock.
    compile_pattern(pattern).fullmatch("a" * MAX_TEXT_LENGTH)


def test_patterns_kept_are_bounded() -> None:
    for number in range(2 * MAX_REMEMBERED):
        compile_pattern(f"bounded {number}")
    assert compile_pattern.cache_info().currsize <= MAX_REMEMBERED
    assert re2._Regexp._make.cache_info().currsize == 0


def test_pattern_still_matches_after_its_memory_was_full() -> None:
    pattern = compile_pattern(".*[ab].{300}")
    texts = ["".join("abc"[(i * i * seed >> 2) % 3] for i in range(3_000)) for seed in range(1, 10)]
    assert all(pattern.fullmatch(f"{text}a{'c' * 300}") for text in texts)
    assert not pattern.fullmatch("c" * MAX_TEXT_LENGTH)


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


@given(PATTERNS, st.text("abc", max_size=10))
@example("(?:a|ab)(?:c|bcd)", "abcd")
def test_accepted_pattern_means_what_re_means(pattern: str, text: str) -> None:
    assert accepts(pattern, text) == (re.fullmatch(pattern, text) is not None)


SIGNS = st.sampled_from([*"ab()[]{}*+?|\\.^$,-0123<>:=!P&iwd ", "(?:", "(?i)", "[^", "{2,"])


@given(st.lists(SIGNS, max_size=20).map("".join), st.text("abAB-.0 ", max_size=10))
@example("[]a]{2}", "]a")
def test_pattern_that_both_accept_means_what_re_means(pattern: str, text: str) -> None:
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of sets in classes, some day
        try:
            expected = re.fullmatch(pattern, text) is not None
            assert accepts(pattern, text) == expected
        except (re.error, BadPatternError):
            return


@given(st.text(max_size=30), st.text(max_size=40))
@example("\ud800", "\udfff")
def test_any_pattern_is_refused_or_matched(pattern: str, text: str) -> None:
    with contextlib.suppress(BadPatternError):
        compile_pattern(pattern).fullmatch(text)


@given(st.text(min_size=1, max_size=20).filter(lambda text: normalise(text) == text))
def test_escaped_text_matches_itself_as_it_is_and_as_a_dump_shows_it(text: str) -> None:
    pattern = "".join(f"\\{char}" if char in r"\.[]{}()*+?|^$" else char for char in text)
    assert accepts(pattern, text)
    assert accepts(pattern, _BEYOND_BMP.sub("..", text))
