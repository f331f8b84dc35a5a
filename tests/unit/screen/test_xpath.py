"""XPath selectors stand on the same tree, and never break it."""

from __future__ import annotations

import pytest

from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.screen.matching import MAX_XPATH_NODES, Ambiguous, Matched, Matcher, NotFound
from droidfleet_shared.screen.xpath import element_name
from support.screens import node, screen


@pytest.mark.parametrize(
    ("class_name", "name"),
    [
        ("android.widget.Button", "android.widget.Button"),
        ("com.a.Outer$Inner", "com.a.Outer.Inner"),
        ("  android.view.View ", "android.view.View"),
        ("", "node"),
        ("   ", "node"),
        ("a b", "node"),
        ("1abc", "node"),
        ("a/b", "node"),
    ],
)
def test_elements_are_named_by_class_as_uiautomator2_does(class_name: str, name: str) -> None:
    assert element_name(class_name) == name


@pytest.mark.parametrize("class_name", ["  ", "a b", "1abc", "a/b", "x\x01 y"])
def test_an_odd_class_name_does_not_break_xpath(class_name: str) -> None:
    where = screen(node("Pay", (0, 0, 9, 9), class_name=class_name), node("Wait", (0, 10, 9, 19)))
    for expression in ("//*[@text='Pay']", "//node[@text='Pay']", "/hierarchy/*/*[1]"):
        outcome = Matcher(where).match(Selector(xpath=expression), touch=True)
        assert isinstance(outcome, Matched)
        assert outcome.node.text == "Pay"


def test_xpath_obeys_the_rules_of_candidates() -> None:
    where = screen(node("Open", (0, 0, 0, 0)), node("Open", (0, 10, 9, 19)), node("Shut", (0, 20, 9, 29)))
    one = Matcher(where).match(Selector(xpath="//*[@text='Open']"), touch=True)
    assert isinstance(one, Matched)
    assert one.node.bounds.top == 10
    assert isinstance(Matcher(where).match(Selector(xpath="//android.widget.TextView"), touch=True), Ambiguous)


@pytest.mark.parametrize(
    "expression", ["//*/@text", "count(//*)", "'text'", "//[", "/hierarchy", "//*[@text=$x]", "//no"]
)
def test_an_expression_without_nodes_finds_nothing(expression: str) -> None:
    outcome = Matcher(screen(node("Pay", (0, 0, 9, 9)))).match(Selector(xpath=expression), touch=True)
    assert isinstance(outcome, NotFound)


def test_a_window_beyond_any_bound_is_not_searched_by_xpath() -> None:
    huge = screen(*(node("", (0, 0, 9, 9)) for _ in range(MAX_XPATH_NODES)))
    outcome = Matcher(huge).match(Selector(xpath="//*[@text='Pay']"), touch=True)
    assert isinstance(outcome, NotFound)
    assert "nodes" in outcome.reason
