from __future__ import annotations

import ast
from pathlib import Path

import pytest

from regreen.reviewers.analyzers.vacuous_tests import VacuousTests, explain_hollow
from tests.unit.changes import Story

BEFORE = "def test_sum():\n    total = sum([1, 2])\n    assert total == 3\n"


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "repo")


def titles(story: Story, after: str, before: str = BEFORE) -> list[str]:
    story.change({"tests/test_it.py": before}, {"tests/test_it.py": after})
    context = story.context()
    found = VacuousTests().run(context).claims
    assert all(context.change.can_anchor(c.path, c.start_line, c.line, c.side) for c in found)
    return [c.title for c in found]


@pytest.mark.parametrize(
    ("after", "title"),
    [
        ("def test_sum():\n    total = sum([1, 2])\n    print(total)\n", "no longer asserts anything"),
        ("def test_sum():\n    total = sum([1, 2])\n", "no longer asserts anything"),
        ("def test_sum():\n    return\n    total = sum([1, 2])\n    assert total == 3\n", "never reached"),
        ("def test_sum():\n    total = sum([1, 2])\n    assert total == 3 or True\n", "cannot fail"),
        ("def test_sum():\n    total = sum([1, 2])\n    assert total == total\n", "cannot fail"),
        (
            "def test_sum():\n    total = sum([1, 2])\n    try:\n        assert total == 3\n    except Exception:\n        pass\n",
            "cannot fail",
        ),
    ],
)  # fmt: skip
def test_a_test_that_lost_its_power(story: Story, after: str, title: str) -> None:
    (found,) = titles(story, after)
    assert title in found


@pytest.mark.parametrize(
    "after",
    [
        "def test_sum():\n    total = sum([1, 2, 3])\n    assert total == 6\n",
        "def test_sum():\n    check_total(sum([1, 2]), 3)\n",
        "def test_sum():\n    with pytest.raises(TypeError):\n        sum(1)\n",
        "def test_sum():\n    if sum([1, 2]) != 3:\n        raise ValueError\n",
        "def test_sum():\n    total = sum([1, 2])\n    assert total == 3 or total == 4\n",
        "def test_sum():\n    assert next(it) == next(it)\n",
        "def test_kept():\n    meta = read()\n    assert meta.version is meta.version\n",
        "def test_smoke():\n    main()\n",
        "def test_sum():\n    try:\n        assert sum([1]) == 1\n    except Exception:\n        raise\n",
        "def test_sum(\n",
    ],
)
def test_a_test_that_can_still_fail(story: Story, after: str) -> None:
    assert titles(story, after) == []


def test_what_was_hollow_before_is_not_news(story: Story) -> None:
    before = "def test_a():\n    run()\n\n\ndef test_b():\n    return\n    assert 1\n"
    assert (
        titles(story, before.replace("run()", "run(1)").replace("assert 1", "assert 2"), before)
        == []
    )


RAISES = "import pytest\n\n\ndef test_bad():\n    with pytest.raises(ValueError) as caught:\n        int('x')\n"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (RAISES, RAISES + "        assert 'literal' in str(caught.value)\n", "This assertion of `test_bad` cannot fail"),
        (RAISES, RAISES.replace("with ", "").replace(" as caught:\n        int('x')", ""), "This assertion of `test_bad` cannot fail"),
        (BEFORE, BEFORE.replace("test_sum", "check_sum"), "`test_sum` is called `check_sum` now, and is no longer run"),
    ],
)  # fmt: skip
def test_what_no_run_reaches(story: Story, before: str, after: str, said: str) -> None:
    assert titles(story, after, before)[-1] == said


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (RAISES, RAISES + "    assert 'literal' in str(caught.value)\n"),
        (RAISES, RAISES.replace("ValueError", "AssertionError") + "        assert int('1') == 2\n"),
        (RAISES, RAISES + "    pytest.raises(ValueError, int, 'x')\n"),
        (BEFORE, BEFORE.replace("test_sum", "check_sum") + "\n\ndef test_all():\n    check_sum()\n"),
        (BEFORE, BEFORE + "\n\ndef check_more():\n    assert 1\n"),
    ],
)  # fmt: skip
def test_what_a_run_reaches(story: Story, before: str, after: str) -> None:
    assert titles(story, after, before) == []


@pytest.mark.parametrize(
    ("body", "cannot_fail"),
    [
        ("x = f(1)\n    expected = x\n    assert x == expected", True),
        ("x = f(1)\n    before = x\n    x = g(x)\n    assert x == before", False),
        ("x = 1\n    print('hi')\n    assert x == 1", True),
        ("x = 1\n    for i in range(3):\n        pass\n    assert x == 1", True),
        ("x = 1\n    for x in f():\n        pass\n    assert x == 1", False),
        ("x = 1\n    x += f()\n    assert x == 1", False),
        ("x = f(1)\n    run()\n    assert x == f(1)", False),
    ],
)
def test_a_value_under_two_names_is_one_value(body: str, cannot_fail: bool) -> None:
    function = ast.parse(f"def test_it():\n    {body}\n").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert bool(explain_hollow(function, ())) is cannot_fail


SCRIPT = 'import {{ test, expect }} from "vitest";\ntest("adds", () => {{ {} }});\n'
GO = "package a\n\nfunc TestAdds(t *testing.T) {{\n\t{}\n}}\n"


@pytest.mark.parametrize(
    ("path", "before", "after", "count"),
    [
        ("test/a.test.ts", "expect(add(1, 2)).toBe(3);", "add(1, 2);", 1),
        ("test/a.test.ts", "expect(add(1, 2)).toBe(3);", "assert.equal(add(1, 2), 3);", 0),
        ("test/a.test.ts", "expect(add(1, 2)).toBe(3);", "checkSum(add);", 0),
        ("test/a.test.ts", "add(1, 2);", "add(2, 2);", 0),
        ("a_test.go", "if Add(1, 2) != 3 { t.Fatal() }", "_ = Add(1, 2)", 1),
        ("a_test.go", "if Add(1, 2) != 3 { t.Fatal() }", "compare(t, Add(1, 2), 3)", 0),
    ],
)
def test_a_test_of_another_language_that_lost_all_its_assertions(
    story: Story, path: str, before: str, after: str, count: int
) -> None:
    file = GO if path.endswith(".go") else SCRIPT
    story.change({path: file.format(before)}, {path: file.format(after)})
    found = VacuousTests().run(story.context()).claims
    assert [claim.title.partition("` ")[2] for claim in found] == [
        "no longer asserts anything"
    ] * count
