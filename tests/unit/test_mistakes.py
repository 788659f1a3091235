"""Faults whose line looks fine: a default that is changed, a text that nothing fills, a name taken from under its users."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.reviewers.analyzers.bug_patterns import find_bug_patterns
from tests.unit.changes import Story

SEEN = [
    ("shared-default", "def f(x, seen=[]):\n    seen.append(x)\n    return seen\n"),
    ("shared-default", "def f(*, opts=dict()):\n    opts['a'] = 1\n    return opts\n"),
    ("unfilled-text", "def f(name):\n    raise ValueError('no {name}')\n"),
    ("unfilled-text", "def f(log, n):\n    total = n\n    log.info('got {total} of {n}')\n"),
    (
        "not-awaited",
        "async def ok():\n    return True\n\nasync def f():\n    if ok():\n        return 1\n",
    ),
    ("not-awaited", "async def n():\n    return 1\n\nasync def f():\n    return n() + 1\n"),
    (
        "no-such-attribute",
        "class A:\n    def __init__(self):\n        self.count = 0\n\n    def f(self):\n        return self.cuont\n",
    ),
    ("no-such-attribute", "class A:\n    def f(self):\n        return self._g()\n"),
]
LEFT = [
    "async def ok():\n    return True\n\nasync def f():\n    return ok()\n",
    "async def ok():\n    return True\n\nasync def f(ok):\n    if ok():\n        return 1\n",
    "class A(B):\n    def f(self):\n        return self.x\n",
    "class A:\n    def f(self):\n        return self.x\n\nclass B(A):\n    pass\n",
    "class A:\n    def f(self):\n        return self.x\n\na = A()\na.x = 1\n",
    "class A:\n    def __getattr__(self, n):\n        return n\n\n    def f(self):\n        return self.x\n",
    "class A:\n    x: int\n\n    def f(self):\n        return self.x, self.__class__\n",
    "class A:\n    def f(self):\n        try:\n            return self.x\n        except AttributeError:\n            return 1\n",
    "def f(x, seen=[]):\n    return x in seen\n",
    "def f(x, seen=[]):\n    seen = list(seen)\n    seen.append(x)\n",
    "def f(x, _cache={}):\n    _cache[x] = 1\n",
    "def f(x, seen=None):\n    seen.append(x)\n",
    "def f(name):\n    raise ValueError('no {name}'.format(name=name))\n",
    "def f(log, name):\n    log.info('no {name}', name)\n",
    "def f(name):\n    raise ValueError('{other} and {name}')\n",
    "def f(name):\n    raise ValueError('a set like {1, 2} or {}')\n",
    "def f(name):\n    route('/x/{name}')\n",
    "def f(name):\n    raise ValueError(f'no {name}')\n",
]


@pytest.mark.parametrize(("rule", "code"), SEEN)
def test_it_is_seen(rule: str, code: str) -> None:
    assert [h.rule for h in find_bug_patterns("a.py", code)] == [rule]


@pytest.mark.parametrize("code", LEFT)
def test_it_is_left_alone(code: str) -> None:
    assert list(find_bug_patterns("a.py", code)) == []


def said(story: Story) -> list[tuple[str, int, str]]:
    return [(f.rule, f.line, f.side) for f in story.review().findings]


def test_an_import_that_is_removed_and_still_used_is_said_where_it_stood(tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    code = (
        "import os\nimport re\n"
        + "\n" * 20
        + "def f(s):\n    return re.sub('a', 'b', os.sep + s)\n"
    )
    story.change({"a.py": code}, {"a.py": code.replace("import re\n", "")})
    assert said(story) == [("ruff/F821", 2, "LEFT")]


def test_a_handler_that_a_new_one_hides_is_said_though_its_line_stayed(tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    old = "def f(d):\n    try:\n        return d['x']\n    except KeyError:\n        return None\n"
    new = old.replace(
        "    except KeyError", "    except KeyError:\n        return 0\n    except KeyError"
    )
    story.change({"a.py": old}, {"a.py": new})
    assert [rule for rule, _, _ in said(story)] == ["ruff/B025"]


def test_what_was_wrong_before_is_left_alone_beside_a_change(tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    old = "def f(d):\n    print(missing)\n    return d is 'x'\n"
    story.change({"a.py": old}, {"a.py": old.replace("def f(d):", "def f(d):\n    d = d or 'y'")})
    assert said(story) == []


def test_a_class_that_others_complete_may_use_what_it_lacks(tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    part = "class Part:\n    def f(self):\n        return 1\n"
    story.change(
        {"a.py": part, "b.py": "from a import Part\n\n\nclass Whole(Part):\n    x = 1\n"},
        {"a.py": part.replace("return 1", "return self.x")},
    )
    assert said(story) == []


def test_a_method_that_is_removed_from_under_its_caller_is_said(tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    old = "class A:\n    def f(self):\n        return self._g()\n\n    def _g(self):\n        return 1\n"
    story.change({"a.py": old}, {"a.py": old[: old.index("\n    def _g")]})
    assert said(story) == [("mistakes/no-such-attribute", 3, "RIGHT")]


@pytest.mark.parametrize(
    ("message", "wrong"),
    [("'{0!r} of {}', a, b", False), ("'no place', a", True), ("'%s of {}', a, b", True)],
)
def test_a_logger_that_fills_braces_is_not_the_standard_one(
    tmp_path: Path, message: str, wrong: bool
) -> None:
    head = "import logging\n\nlog = logging.getLogger(__name__)\n\n\n"
    before = head + "def f(a, b):\n    return a + b\n"
    after = head + f"def f(a, b):\n    log.warning({message})\n    return a + b\n"
    story = Story(tmp_path / "repo")
    story.change({"a.py": before}, {"a.py": after})
    assert ("ruff/PLE1205" in {rule for rule, _, _ in said(story)}) == wrong


def test_a_constructor_that_no_longer_calls_its_base_is_said(tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    base = "class Base:\n    def __init__(self):\n        self.seen = set()\n\n\n"
    old = (
        base
        + "class Child(Base):\n    def __init__(self):\n        super().__init__()\n        self.name = 1\n\n    def both(self):\n        return self.seen\n"
    )
    story.change({"a.py": old}, {"a.py": old.replace("        super().__init__()\n", "")})
    assert said(story) == [("mistakes/base-not-made", 8, "RIGHT")]


def test_a_loop_that_goes_one_too_far_is_said_though_the_line_that_raises_stayed(
    tmp_path: Path,
) -> None:
    story = Story(tmp_path / "repo")
    old = "def total(v):\n    out = 0\n    for i in range(len(v)):\n        out += v[i]\n    return out\n"
    story.change({"a.py": old}, {"a.py": old.replace("len(v)", "len(v) + 1")})
    assert said(story) == [("mistakes/one-past-the-end", 4, "RIGHT")]
