"""The query language: what each condition means, and where a query is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.fleet.query import (
    MAX_QUERY,
    Compares,
    Condition,
    Equals,
    Facts,
    Has,
    OneOf,
    Query,
    parse,
)
from droidfleet_shared.errors import InvalidInputError

PHONE = {"site": "berlin", "android": "13", "version": "1.4.0rc2", "retired": "", "model": 'Pixel "8"', "rack": "b-3"}


@pytest.mark.parametrize(
    "text",
    [
        "site",
        "retired",
        "!broken",
        "site=berlin",
        "site = berlin",
        "site!=paris",
        "broken!=yes",
        'retired=""',
        "site in (paris berlin)",
        "site in(paris,berlin)",
        "site  in ( paris , berlin )",
        'model="Pixel \\"8\\""',
        'model in ("Pixel \\"8\\"")',
        "android>=13",
        "android >= 13.0",
        "android>12.9",
        "android<13.0.1",
        "android<=13",
        "version>=1.4",
        "version<1.10",
        "site=berlin, android>=13, !broken",
        "rack=b-3",
    ],
)
def test_it_holds(text: str) -> None:
    assert parse(text).matches(PHONE)


@pytest.mark.parametrize(
    "text",
    [
        "broken",
        "!site",
        "!retired",
        "site=Berlin",
        "site!=berlin",
        "site in (paris, rome)",
        "broken in (yes)",
        "android>13",
        "android<13",
        "android>=14",
        "broken>=0",
        "site>=0",
        "rack>=0",
        "version>=1.10",
        "site=berlin, android>=14",
    ],
)
def test_it_does_not_hold(text: str) -> None:
    assert not parse(text).matches(PHONE)


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("", "[HERE]", "a key"),
        ("site=berlin,", "site=berlin,[HERE]", "a key"),
        ("site=", "site=[HERE]", "a value"),
        ("site=berlin, android>=, !retired", "site=berlin, android>=[HERE], !retired", "a value"),
        ("android>=new", "android>=[HERE]new", "a number"),
        ("site==berlin", "site=[HERE]=berlin", "a value"),
        ("site berlin", "site [HERE]berlin", "a comma or the end"),
        ("!retired=no", "!retired[HERE]=no", "a comma or the end"),
        ("14>13", "[HERE]14>13", "a key"),
        ("site in berlin", "site in [HERE]berlin", "( behind in"),
        ("site in ()", "site in ([HERE])", "a value"),
        ("site in (berlin", "site in (berlin[HERE]", ")"),
        ('site="berlin', 'site=[HERE]"berlin', "a value"),
        ("site='new york'", "site=[HERE]'new york'", "a value"),
        ("site=berlin; rack=3", "site=berlin; [HERE]rack=3", "a comma or the end"),
    ],
)
def test_an_error_shows_where_and_what_was_expected(text: str, place: str, expected: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse(text)
    assert caught.value.code == "BAD_QUERY"
    assert f": expected {expected}" in caught.value.message
    assert caught.value.message.endswith(f": {place}")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("site==berlin", "one ="),
        ("!retired=no", "retired!=value"),
        ("site not in (a)", "site!=one"),
        ("site=new york", 'site="New York"'),
        ("site='new york'", "double quotes"),
        ("site=berlin\uff0crack=3", "write ,"),
        ("site\uff1dberlin", "write ="),
        ("site=", '""'),
    ],
)
def test_the_hint_says_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse(text)
    assert hint in caught.value.hint


def test_all_that_is_wrong_is_listed() -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse("site=, android>=13, 5, !retired=no")
    assert [getattr(issue, "path", "") for issue in caught.value.issues] == [
        "character 6",
        "character 21",
        "character 32",
    ]


def test_a_comma_in_a_list_or_in_quotes_does_not_begin_a_condition() -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse('site in (a = b, c), model="x,y" z')
    assert len(caught.value.issues) == 2


@pytest.mark.parametrize(
    "text",
    ["a" * (MAX_QUERY + 1), f"{'k' * 65}=1", f"site={'v' * 257}", "android>=1.2.3.4.5.6.7", f"android>={'9' * 19}"],
    ids=["text", "key", "value", "parts", "digits"],
)
def test_what_is_too_long_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="BAD_QUERY"):
        parse(text)


def test_a_query_knows_what_it_asks_for() -> None:
    assert parse("site=berlin, !retired, site!=x").keys == {"site", "retired"}


# Properties.

KEYS = st.from_regex(r"[A-Za-z][A-Za-z0-9_./-]{0,5}", fullmatch=True)
VALUES = st.text(max_size=8) | st.sampled_from(["13", "12.10", "13.0", "", '"', "\\", "a,b", "(x)", "1-2"])
NUMBERS = st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,2}", fullmatch=True)
CONDITIONS: st.SearchStrategy[Condition] = st.one_of(
    st.builds(Has, KEYS, st.booleans()),
    st.builds(Equals, KEYS, VALUES, st.booleans()),
    st.builds(Compares, KEYS, st.sampled_from([">", ">=", "<", "<="]), NUMBERS),
    st.builds(OneOf, KEYS, st.lists(VALUES, min_size=1, max_size=3).map(tuple)),
)
QUERIES = st.lists(CONDITIONS, min_size=1, max_size=5).map(lambda found: Query(tuple(found)))
NEARLY = st.text(alphabet='ab1 ,=<>!()"\\in.\uff0c', max_size=30)


def read(text: str) -> Query | InvalidInputError:
    """What a text is answered with."""
    try:
        return parse(text)
    except InvalidInputError as error:
        return error


@given(QUERIES)
def test_a_query_written_out_is_read_as_the_same(query: Query) -> None:
    assert parse(str(query)) == query


@given(st.text(max_size=60) | NEARLY)
def test_any_text_is_answered(text: str) -> None:
    answer = read(text)
    if isinstance(answer, Query):
        assert parse(str(answer)) == answer
    else:
        assert "[HERE]" in answer.message


@given(NUMBERS, NUMBERS)
def test_of_two_numbers_one_relation_holds(one: str, other: str) -> None:
    found = [relation for relation in (">", "<") if parse(f"k{relation}{other}").matches({"k": one})]
    equal = parse(f"k>={other}, k<={other}").matches({"k": one})
    assert len(found) + equal == 1


@given(CONDITIONS, st.dictionaries(KEYS, VALUES, max_size=3))
def test_a_condition_and_its_denial_never_agree(condition: Condition, facts: Facts) -> None:
    match condition:
        case Has(key, negated):
            assert Has(key, not negated).holds(facts) is not condition.holds(facts)
        case Equals(key, value, negated):
            assert Equals(key, value, not negated).holds(facts) is not condition.holds(facts)
        case Compares(key, relation, number):
            denial = {">": "<=", "<=": ">", "<": ">=", ">=": "<"}[relation]
            assert not (Compares(key, denial, number).holds(facts) and condition.holds(facts))
        case OneOf(key, values):
            assert condition.holds(facts) is any(Equals(key, value).holds(facts) for value in values)
