"""What a second reader is shown beside the change: the code that the claims rest on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from regreen.adapters.git.repository import GitRepository
from regreen.code.diff import parse
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.model.claims import read_claims
from regreen.reviewers.model.verify import verification_code
from tests.checkout import Checkout
from tests.unit.test_readers import finding

Code = Callable[..., str]

LIB = """def fetch(url):
    return connect(url)


class Marker:
    def __init__(self, text):
        self._limit = parse_limit(text)

    def reduce(self, other):
        if self._limit > other:
            return None
        return self

    def text(self):
        return 'a marker'


class Other:
    def reduce(self, other):
        return 'of another class'


def item(value):
    return 'an item'


def _walk_all(nodes):
    \"\"\"Walk.

    Many words.
    \"\"\"
"""
LIB += "".join(f"    step_{n}(nodes)\n" for n in range(60)) + "    return 'walked'\n"


TESTS = "def make_sample():\n    return 'a sample'\n"


@pytest.fixture
def code(tmp_path: Path) -> Code:
    """What is shown for a claim about a change of `a.py`, beside its library."""
    checkout = Checkout(tmp_path / "r")

    def made(after: str, *, shown: str = "", budget: int = 2000, **said: object) -> str:
        base = checkout.commit("one", lib_py=LIB, test_lib_py=TESTS, a_py="x = 1\n")
        head = checkout.commit("two", lib_py=LIB, test_lib_py=TESTS, a_py=after)
        git = GitRepository.open(checkout.root, home=tmp_path / "home")
        change = parse(git.diff(base, head))
        context = ReviewContext(change, change.files, base, head, base, git=git)
        given = {"path": "a.py", "title": "it fails", "input": "1", "happens": "no", "mend": "no"}
        row = finding(**(given | {"should": "yes"} | said))
        claims = read_claims({"findings": [row]}, change.files, context.head_text)
        return "\n\n".join(verification_code(context, claims, shown, budget))

    return made


def test_what_the_line_at_fault_calls_is_shown_whatever_the_claim_says(code: Code) -> None:
    after = "from lib import fetch\n\n\ndef go(url):\n    return fetch(url)\n"
    found = code(after, line=5, quote="    return fetch(url)")
    assert "return connect(url)" in found
    assert code(after, line=5, quote="    return fetch(url)", shown=LIB + after) == ""


def test_where_an_attribute_that_the_line_reads_is_made_is_shown(code: Code) -> None:
    after = LIB.replace("class Marker", "class Mark").replace("> other", ">= other")
    found = code(after, line=10, quote="        if self._limit >= other:")
    assert "self._limit = parse_limit(text)" in found


def test_a_long_function_is_shown_with_its_body_and_without_its_documentation(code: Code) -> None:
    said = {"line": 2, "quote": "x = 2", "happens": "it is handed to _walk_all as nodes"}
    found = code("from lib import *\nx = 2\n", **said)
    assert "return 'walked'" in found
    assert "Many words." not in found
    assert code("from lib import *\nx = 3\n", budget=100, **(said | {"quote": "x = 3"})) == ""


def test_a_class_that_the_change_shows_in_good_part_is_not_shown_again(code: Code) -> None:
    said = {"line": 2, "quote": "x = 2", "happens": "`Marker` keeps it"}
    after = "from lib import *\nx = 2\n"
    half = LIB[LIB.index("class Marker") : LIB.index("    def text")]
    assert "class Marker" in code(after, **said)
    assert code(after.replace("2", "4"), shown=half, **(said | {"quote": "x = 4"})) == ""


def test_code_of_tests_is_no_ground_of_a_claim_about_the_program(code: Code) -> None:
    assert code("x = 2\n", line=1, quote="x = 2", happens="`make_sample` makes it") == ""


def test_a_word_in_a_text_is_no_name(code: Code) -> None:
    assert code("import lib\nx = ['_walk_all']\n", line=2, quote="x = ['_walk_all']") == ""
    assert "walked" in code(
        "import lib\nx = [lib._walk_all]\n", line=2, quote="x = [lib._walk_all]"
    )


@pytest.mark.parametrize(
    ("words", "there"),
    [
        ("an item(1) of the list", False),
        ("`item` of the list", True),
        ("text and datetime, list or open", False),
        ("`Marker.reduce` gives None", True),
    ],
)
def test_a_common_word_is_not_looked_for_and_a_name_in_backticks_is(
    code: Code, words: str, there: bool
) -> None:
    found = code("from lib import *\nx = 2\n", line=2, quote="x = 2", happens=words)
    assert bool(found) is there
    assert "of another class" not in found
