"""JSON-RPC answers: whatever comes, a result or an error that says what is certain."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_agent.driver.http import Answer
from droidfleet_agent.driver.rpc import RpcError, decode_result, encode_call

CALL_ID = 7


def answer(**fields: object) -> Answer:
    return Answer(200, json.dumps({"jsonrpc": "2.0", "id": CALL_ID} | fields).encode())


def failure(given_answer: Answer) -> RpcError:
    with pytest.raises(RpcError) as caught:
        decode_result(CALL_ID, given_answer)
    return caught.value


@pytest.mark.parametrize("result", [None, True, 0, "text", {"a": [1]}])
def test_result_is_given(result: object) -> None:
    assert decode_result(CALL_ID, answer(result=result)) == result


def test_a_result_beside_an_empty_error_is_a_result() -> None:
    assert decode_result(CALL_ID, answer(result=True, error=None)) is True


def test_a_result_under_another_http_status_is_not_taken() -> None:
    assert not failure(Answer(500, answer(result=True).body)).not_done


@pytest.mark.parametrize("other", [None, CALL_ID - 1, str(CALL_ID)])
def test_the_error_of_another_call_says_nothing_certain_about_this_one(other: object) -> None:
    error = {"code": -32601, "message": "method not found"}
    assert not failure(answer(error=error, id=other)).not_done


def test_call_is_ascii_with_its_id() -> None:
    body = encode_call(CALL_ID, "setText", [{"mask": 1}, "早 👍"])
    assert body.isascii()
    assert json.loads(body) == {"jsonrpc": "2.0", "id": CALL_ID, "method": "setText", "params": [{"mask": 1}, "早 👍"]}


@pytest.mark.parametrize(
    ("error", "not_done", "broken"),
    [
        ({"code": -32001, "message": "androidx.test.uiautomator.UiObjectNotFoundException"}, True, False),
        ({"code": -32001, "message": "androidx.test.uiautomator.StaleObjectException"}, True, False),
        (
            {"code": -32001, "message": "java.lang.IllegalStateException", "data": "UiAutomation not connected!"},
            True,
            True,
        ),
        ({"code": -32601, "message": "method not found"}, True, False),
        ({"code": -32001, "message": "android.os.DeadObjectException"}, False, True),
        ({"code": -32001, "message": "java.lang.NullPointerException"}, False, False),
        ({"code": -32001, "message": None, "data": None}, False, False),
        ("just text", False, False),
        (None, False, False),
    ],
)
def test_error_tells_whether_the_action_certainly_did_not_happen(error: object, not_done: bool, broken: bool) -> None:
    caught = failure(answer(error=error))
    assert (caught.not_done, caught.broken) == (not_done, broken)


@pytest.mark.parametrize(
    "bad",
    [
        Answer(500, b"oops"),
        Answer(200, b""),
        Answer(200, b"[" * 100_000),
        Answer(200, b"[]"),
        Answer(200, b'{"jsonrpc": "2.0", "id": 7}'),
        Answer(200, b'{"jsonrpc": "2.0", "id": 8, "result": true}'),
    ],
    ids=["HTTP 500", "empty", "deep", "a list", "neither", "another call's"],
)
def test_what_is_no_answer_makes_nothing_certain(bad: Answer) -> None:
    assert not failure(bad).not_done


@given(
    st.binary()
    | st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["id", "result", "error", "message", "data"]), inner)
        ),
    ).map(lambda document: json.dumps(document).encode())
)
def test_no_answer_raises_anything_else(body: bytes) -> None:
    with contextlib.suppress(RpcError):
        decode_result(CALL_ID, Answer(200, body))
