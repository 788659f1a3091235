"""GitHub's expressions, by its documented semantics."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regreen.actions.expressions.evaluation import (
    UNKNOWN,
    Context,
    ExpressionError,
    LiteralValue,
    Value,
    evaluate_expression,
    evaluate_scalar,
    fill_template,
    format_node,
    parse,
    reduce_condition,
)

CONTEXT: Context = {
    "github": {
        "event_name": "push",
        "ref": "refs/heads/main",
        "event": {"commits": [{"id": "a"}, {"id": "b"}, {"x": "c"}]},
    },
    "matrix": {"os": "ubuntu-latest", "python": 3.1, "extra": True, "list": ["a", "B"]},
    "env": {"Name": "value", "EMPTY": ""},
    "secrets": {"*": UNKNOWN},
    "steps": {"x": {"outputs": {"*": UNKNOWN}}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None), ("true", True), ("711", 711.0), ("-9.2", -9.2), ("0xff", 255.0), ("-2.99e-2", -0.0299), ("'It''s'", "It's"),
        ("'A' == 'a'", True), ("1 == true", True), ("null == 0", True), ("null == ''", True), ("'' == 0", True), ("'x' == 0", False),
        ("'1' == 1", True), ("'abc' < 'ABD'", True), ("NaN == NaN", False), ("github == github", True), ("matrix.list == matrix.list", True),
        ("!''", True), ("!'0'", False), ("!null", True), ("'a' && 'b'", "b"), ("'' && 'b'", ""), ("'' || 'b'", "b"), ("0 || null", None),
        ("1 < 2 == true", True), ("false || true && false", False), ("!true == false", True), ("(false || true) && true", True),
        ("github.EVENT_NAME", "push"), ("env.name", "value"), ("github['event_name']", "push"), ("github.nothing.at.all", None),
        ("matrix.list[1]", "B"), ("matrix.list[5]", None), ("matrix.list[-1]", None),
        ("contains('Hello World', 'WORLD')", True), ("contains(matrix.list, 'b')", True), ("contains(matrix.list, 'c')", False),
        ("startsWith(github.ref, 'REFS/heads')", True), ("endsWith('abc', 'BC')", True),
        ("format('{0} {{1}} {1}', 'a', 2)", "a {1} 2"), ("join(matrix.list, '-')", "a-B"), ("join('x')", "x"),
        ("join(github.event.commits.*.id, ' ')", "a b"), ("toJSON(matrix.list)", '[\n  "a",\n  "B"\n]'),
        ("fromJSON('[1, 2]')[1]", 2.0), ("fromJSON('{\"a\": {\"b\": true}}').a.b", True),
        ("case(false, 'a', true, 'b', 'c')", "b"), ("hashFiles('**/x') != ''", True),
    ],
)  # fmt: skip
def test_github_says_so(text: str, value: Value) -> None:
    assert evaluate_expression(text, CONTEXT) == value


def test_not_a_number_is_false() -> None:
    assert evaluate_expression("NaN || 'x'", CONTEXT) == "x"
    assert isinstance(number := evaluate_expression("fromJSON('1') && NaN", CONTEXT), float)
    assert math.isnan(number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.",
        "nosuch.thing",
        '"double"',
        "'open",
        "1 +",
        "f()",
        "contains('a')",
        "a b",
        "((1)",
        "case(true, 1)",
        "'a'.b[",
        "!" * 60 + "1",
        "1 = 2",
        "-0xff",
    ],
)
def test_what_github_refuses_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate_expression(text, {"a": {}})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("secrets.TOKEN", UNKNOWN), ("secrets.TOKEN == 'x'", UNKNOWN), ("false && secrets.T", False), ("true || secrets.T", True),
        ("secrets.T && false", False), ("secrets.T || true", True), ("format('{0}', secrets.T)", UNKNOWN), ("!secrets.T", UNKNOWN),
    ],
)  # fmt: skip
def test_the_unknown_stays_unknown_unless_it_cannot_matter(text: str, value: Value) -> None:
    assert evaluate_expression(text, CONTEXT) == value


def test_text_keeps_what_is_left_for_the_run() -> None:
    parts = fill_template("a ${{ env.Name }} b ${{ steps.x.outputs.y }}", CONTEXT)
    assert parts[0] == "a value b "
    assert not isinstance(parts[1], str)
    assert format_node(parts[1]) == "steps.x.outputs.y"


def test_a_lone_expression_keeps_its_type() -> None:
    assert evaluate_scalar("${{ matrix.extra }}", CONTEXT) is True
    assert evaluate_scalar("v${{ matrix.extra }}", CONTEXT) == "vtrue"
    assert evaluate_scalar("${{ format('}}{{0}}', 1) }}", CONTEXT) == "}{0}"


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        ("github.event_name == 'push'", True), ("${{ github.event_name == 'tag' }}", False), ("${{ false }} == true", True),
        (True, True), (False, False), ("matrix.nothing", False), ("always() && false", False), ("!cancelled()", True),
    ],
)  # fmt: skip
def test_conditions(asked: str | bool, holds: bool) -> None:
    context = {**CONTEXT, "success()": True, "always()": True, "cancelled()": False}
    assert reduce_condition(asked, context) == LiteralValue(holds)


def test_success_is_asked_for_unless_another_status_is() -> None:
    assert (
        format_node(reduce_condition("steps.x.outputs.y == 'z'", CONTEXT))
        == "success() && (steps.x.outputs.y == 'z')"
    )
    assert (
        format_node(reduce_condition("failure() || steps.x.outputs.y", CONTEXT))
        == "failure() || steps.x.outputs.y"
    )
    assert format_node(reduce_condition(None, CONTEXT)) == "success()"


@settings(max_examples=150, deadline=2000)
@given(st.text(alphabet="ab.[]*()!<>=&|,'01 -_exNI{}$", max_size=60))
def test_no_text_crashes_it(text: str) -> None:
    try:
        node = parse(text)
        evaluate_expression(node, {"a": {"b": [1.0, "x"]}, "b": UNKNOWN, "ab": {}})
    except ExpressionError:
        return
    assert parse(format_node(node)) is not None
