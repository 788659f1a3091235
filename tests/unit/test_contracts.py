from __future__ import annotations

from pathlib import Path

import pytest

from regreen.code.python_calls import PassedArguments, parse_python, read_module
from regreen.languages.python.imports import ModuleMap
from regreen.reviewers.analyzers.python_contracts import PythonContracts
from regreen.reviewers.context import Claim
from tests.unit.changes import Files, Story

CORE = "def fetch(url, retries=3):\n    return url, retries\n\n\nclass Box:\n    def __init__(self, size):\n        self.size = size\n\n    def fill(self, what):\n        return what\n\n    def twice(self):\n        return self.fill(1), self.fill(2)\n"
CALLER = "from pkg.core import Box, fetch\n\n\ndef go():\n    return fetch('u', 5), Box(3)\n"
PACKAGE: Files = {"pkg/__init__.py": "", "pkg/core.py": CORE, "app/use.py": CALLER}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "repo")


def claims(story: Story, before: Files, after: Files) -> list[Claim]:
    story.change(before, after)
    return list(PythonContracts().run(story.context()).claims)


def test_a_caller_elsewhere_that_still_passes_what_the_old_signature_took(story: Story) -> None:
    (found,) = claims(story, PACKAGE, {"pkg/core.py": CORE.replace("url, retries=3", "url")})
    assert found.rule == "contracts/broken-caller"
    assert (found.path, found.line) == ("pkg/core.py", 1)
    assert "app/use.py:5" in found.evidence[0].excerpt
    assert "takes 1 positional arguments and is given 2" in found.body


@pytest.mark.parametrize(
    "signature",
    ["url, tries=3", "url, retries=3, timeout=9", "url, retries, *rest", "*args, **kwargs"],
)
def test_a_signature_that_all_callers_satisfy_is_no_news(story: Story, signature: str) -> None:
    assert claims(story, PACKAGE, {"pkg/core.py": CORE.replace("url, retries=3", signature)}) == []


def test_a_new_required_argument_breaks_a_class_and_a_method(story: Story) -> None:
    after = CORE.replace("self, size", "self, size, colour").replace(
        "self, what", "self, what, how"
    )
    box, fill = sorted(claims(story, PACKAGE, {"pkg/core.py": after}), key=lambda c: c.line)
    assert "`Box` no longer accepts" in box.title
    assert "`Box.fill` no longer accepts 2 of its callers" in fill.title


def test_callers_that_the_change_itself_adapts_are_fine(story: Story) -> None:
    after = {
        "pkg/core.py": CORE.replace("url, retries=3", "url"),
        "app/use.py": CALLER.replace(", 5", ""),
    }
    assert claims(story, PACKAGE, after) == []


@pytest.mark.parametrize(
    "caller",
    [
        "from pkg.core import fetch\nfetch = print\nfetch('u', 5)\n",
        "from other import fetch\nfetch('u', 5)\n",
        "from pkg.core import fetch\ndef go(fetch):\n    return fetch('u', 5)\n",
        "from pkg.core import fetch\nargs = ('u', 5)\nfetch(*args)\n",
        "try:\n    from pkg.core import fetch\n    fetch('u', 5)\nexcept TypeError:\n    pass\n",
        "import pkg.core as c\nc = object()\nc.fetch('u', 5)\n",
    ],
)
def test_a_call_that_may_mean_something_else_is_left_alone(story: Story, caller: str) -> None:
    before = {**PACKAGE, "app/use.py": caller}
    assert claims(story, before, {"pkg/core.py": CORE.replace("url, retries=3", "url")}) == []


@pytest.mark.parametrize(
    "caller",
    [
        "import pkg.core\npkg.core.fetch('u', 5)\n",
        "import pkg.core as c\nc.fetch('u', 5)\n",
        "from pkg import core\ncore.fetch('u', 5)\n",
        "from pkg.core import fetch as get\nget('u', 5)\n",
    ],
)
def test_every_way_to_import_is_followed(story: Story, caller: str) -> None:
    before = {**PACKAGE, "app/use.py": caller}
    assert len(claims(story, before, {"pkg/core.py": CORE.replace("url, retries=3", "url")})) == 1


def test_a_relative_import_in_a_src_layout_is_followed(story: Story) -> None:
    before: Files = {
        "src/pkg/__init__.py": "",
        "src/pkg/core.py": CORE,
        "src/pkg/sub/__init__.py": "",
        "src/pkg/sub/use.py": "from ..core import fetch\nfetch('u', 5)\n",
        "tests/test_it.py": "from pkg.core import fetch\n\n\ndef test_it():\n    assert fetch('u', 4)\n",
    }
    (found,) = claims(story, before, {"src/pkg/core.py": CORE.replace("url, retries=3", "url")})
    assert "2 of its callers" in found.title


def test_a_removed_function_that_is_still_imported(story: Story) -> None:
    removed = CORE[CORE.index("class Box") :]
    (found,) = claims(story, PACKAGE, {"pkg/core.py": removed})
    assert found.rule == "contracts/removed-still-used"
    assert (found.side, found.line) == ("LEFT", 1)
    assert "app/use.py" in found.title


@pytest.mark.parametrize(
    "replacement",
    [
        "from pkg.other import fetch\n",
        "from pkg.other import *\n",
        "fetch = print\n",
        "def __getattr__(name):\n    return print\n",
        "if 1:\n    def fetch(u, r=3): pass\n",
        "try:\n    from a import fetch\nexcept ImportError:\n    fetch = None\n",
    ],
)
def test_a_name_that_the_module_still_offers_is_not_removed(story: Story, replacement: str) -> None:
    after = replacement + CORE[CORE.index("class Box") :]
    assert claims(story, PACKAGE, {"pkg/core.py": after}) == []


def test_a_deleted_module_that_is_still_imported(story: Story) -> None:
    found = claims(story, PACKAGE, {"pkg/core.py": None})
    assert {c.symbol for c in found} == {"fetch", "Box"}


def test_a_module_that_became_a_package_is_not_deleted(story: Story) -> None:
    assert (
        claims(
            story, PACKAGE, {"pkg/core.py": None, "pkg/core/__init__.py": CORE + "\n# moved\n" * 30}
        )
        == []
    )


def test_the_claim_stands_in_the_diff(story: Story) -> None:
    story.change(PACKAGE, {"pkg/core.py": CORE.replace("url, retries=3", "url")})
    (finding,) = [f for f in story.review().findings if f.rule.startswith("contracts/")]
    assert story.context().change.can_anchor(
        finding.path, finding.start_line, finding.line, finding.side
    )


@pytest.mark.parametrize(
    ("signature", "passed", "why"),
    [
        ("a, b", PassedArguments(2, ()), None),
        ("a, b", PassedArguments(1, ()), "`b` is missing"),
        ("a, b", PassedArguments(3, ()), "takes 2"),
        ("a, b", PassedArguments(1, ("a",)), "given twice"),
        ("a, /, b", PassedArguments(0, ("a", "b")), "no parameter named `a`"),
        ("a, *, b", PassedArguments(1, ()), "`b` is missing"),
        ("a, *, b=1", PassedArguments(1, ()), None),
        ("a=1, *args, **kw", PassedArguments(9, ("z",)), None),
        ("a, b=2", PassedArguments(0, ("b",)), "`a` is missing"),
    ],
)
def test_what_a_signature_accepts(signature: str, passed: PassedArguments, why: str | None) -> None:
    tree = parse_python(f"def f({signature}): pass\n")
    assert tree is not None
    said = read_module(tree).callables["f"].parameters.explain_refusal(passed)
    assert (said is None) if why is None else (said is not None and why in said)


def test_two_files_that_could_be_meant_are_none() -> None:
    modules = ModuleMap.from_paths(
        ["a/x.py", "b/x.py", "src/p/__init__.py", "src/p/m.py", "tools/json.py"]
    )
    assert modules.find_path("x") is None
    assert modules.find_path("a.x") == "a/x.py"
    assert modules.find_path("p.m") == "src/p/m.py"
    assert modules.find_path("json") is None
