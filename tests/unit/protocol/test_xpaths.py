import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_shared.protocol.xpaths import xpath_problem


@pytest.mark.parametrize(
    "expression",
    [
        "//node[@text='OK']",
        '//android.widget.Button[@text="It\'s"]/..',
        "//*[.//*[@text='a']]",
        "//a | //b",
        "(//node)[last()]",
        "/hierarchy/node[1]/node[2]",
        "//node[@text='Wi-Fi']/following-sibling::node[1]",
        "//node[contains(@text, '$5 [a] // ..') and not(@enabled='false')]",
        "//*[@resource-id='list']//node[starts-with(normalize-space(@text), 'a')][2]",
        "//node[node/node[@text='a']]",
    ],
)
def test_expression_over_the_window_is_accepted(expression: str) -> None:
    assert xpath_problem(expression) == ""


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("//*[@text", "not XPath 1.0"),
        ("", "not XPath 1.0"),
        ("//a\x00", "not XPath 1.0"),
        ("(" * 1000, "not XPath 1.0"),
        ("count(//a)", "must give nodes"),
        ("'text'", "must give nodes"),
        ("//a/@text", "must give nodes"),
        ("//a/attribute::text", "must give nodes"),
        ("//a/text()", "must give nodes"),
        ("document('file:///etc/passwd')", "function `document`"),
        ("//a[id('x')]", "function `id`"),
        ("//a[matches(@text, 'x')]", "function `matches`"),
        ("re:test(//a, 'x')", "prefix `re:`"),
        ("//a[contains(@text, $x)]", "variable"),
        ("//*[.//*[.//*]]", "too long"),
        ("//*[../*[../*]]", "too long"),
        ("//*/following::*[preceding::*]", "too long"),
        ("//*[a[b[c]]]", "too long"),
        ("//a" * 9, "too long"),
    ],
)
def test_expression_is_refused_with_the_reason(expression: str, reason: str) -> None:
    assert reason in xpath_problem(expression)


WORDS = st.sampled_from(
    [
        "//",
        "/",
        "*",
        "node",
        "[",
        "]",
        "(",
        ")",
        "@text",
        "=",
        "'a'",
        "..",
        ".",
        "::",
        "following",
        "count",
        "|",
        "$",
        "1",
        " ",
    ]
)


@given(st.lists(WORDS, max_size=15).map("".join))
def test_any_expression_is_answered(expression: str) -> None:
    assert isinstance(xpath_problem(expression), str)
