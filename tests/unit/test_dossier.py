"""What a reader of a change is shown: the change, and what one has to know to judge it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from regreen.adapters.git.repository import GitRepository
from regreen.code.diff import parse
from regreen.domain.models import Cost, ModelAnswer, ModelRequest, SentPart
from regreen.domain.repo_config import RepoConfig, ReviewConfig
from regreen.domain.text_limits import shorten_text
from regreen.reviewers.context import EarlierFinding, ReviewContext
from regreen.reviewers.model.change_listing import make_portions
from regreen.reviewers.model.claims import ModelClaim
from regreen.reviewers.model.model_reviewer import brings_harmful_code
from regreen.reviewers.model.related_code import find_related_code
from regreen.reviewers.model.verify import ask_verifier
from tests.checkout import Checkout

Shown = Callable[..., tuple[ReviewContext, str]]

FILLER = "".join(f"\n\ndef filler_{n}():\n    return {n}\n" for n in range(60))


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    """What is shown of a change from some files to others."""
    checkout = Checkout(tmp_path / "r")

    def made(before: dict[str, str], after: dict[str, str | None]) -> tuple[ReviewContext, str]:
        base = checkout.commit("one", **before)
        head = checkout.commit("two", **after)
        git = GitRepository.open(checkout.root, home=tmp_path / "home")
        change = parse(git.diff(base, head))
        context = ReviewContext(
            change, change.files, base, head, base, git=git, title="T", body="one\r\ntwo"
        )
        (portion,), _ = make_portions(context, find_related_code)
        return context, portion.text

    return made


def test_each_text_of_a_prompt_is_named_among_what_was_sent(shown: Shown) -> None:
    context, _ = shown({"shop_py": "x = 1\n"}, {"shop_py": "x = 2\n"})
    config = RepoConfig(review=ReviewConfig(instructions="Mind the prices."))
    (portion,), _ = make_portions(replace(context, config=config, linked_issues=(3, 5)), None)
    about = ("title and text of issue #3", "title and text of issue #5", "the instructions")
    assert all(what in str(portion.sent) for what in about)
    asked: list[ModelRequest] = []

    class Reader:
        def ask(self, request: ModelRequest) -> ModelAnswer:
            asked.append(request)
            return ModelAnswer("", (), "refusal", Cost(), "scripted")

    known = EarlierFinding("f" * 64, "shop.py", "Prices are wrong", "x=1")
    claim = ModelClaim("shop.py", 1, "t", "i", "h", "s", "", None, "wrong-result", "usual", 0.9)
    ask_verifier(Reader(), portion, [claim], known=[known])
    assert SentPart("the code of an earlier finding", "shop.py") in asked[0].messages[0].sent


BAR = """class Bar:
    def __init__(self, total):
        self.total = total
        self.rate = None
"""
SHOW = """
    def show(self):
        return self.total
"""


def test_where_the_attributes_that_a_method_reads_are_set_is_shown(shown: Shown) -> None:
    reset = "\n    def reset(self):\n        self.rate = -1\n        return self\n"
    start = f"{BAR}{FILLER.replace(chr(10), chr(10) + '    ')}{reset}"
    _, text = shown(
        {"bar_py": start + SHOW}, {"bar_py": start + SHOW.replace("self.total", "self.rate + 1")}
    )
    assert "self.rate = None" in text
    assert "self.rate = -1" in text
    assert "def reset(self):" in text
    assert "filler_30" not in text


def test_what_the_added_lines_call_is_shown_from_this_file_and_from_others(shown: Shown) -> None:
    lib = "def clamp(value):\n    return max(0, value)\n" + FILLER
    use = "from lib import clamp\n\n\ndef near(x):\n    return -x\n" + FILLER
    tail = "\n\ndef far(x):\n    return {}\n"
    _, text = shown(
        {"lib_py": lib, "use_py": use + tail.format("x")},
        {"use_py": use + tail.format("clamp(near(x))")},
    )
    assert "return -x" in text
    assert "return max(0, value)" in text
    assert "(the change calls it)" in text
    assert "filler_30" not in text


def test_callers_of_what_is_changed_are_shown_and_methods_of_the_built_in_types_are_not(
    shown: Shown,
) -> None:
    _, text = shown(
        {
            "lib_py": "def parse_size(x):\n    return x\n\n\ndef update(x):\n    return x\n",
            "app_py": "from lib import parse_size\n\n\ndef main(a):\n    return parse_size(a) + 1\n",
            "other_py": "def other(d):\n    d.update(a=1)\n",
        },
        {"lib_py": "def parse_size(x):\n    return None\n\n\ndef update(x):\n    return None\n"},
    )
    assert "return parse_size(a) + 1" in text
    assert "d.update" not in text


def test_a_call_on_self_leads_to_no_method_of_that_name_in_another_file(shown: Shown) -> None:
    stop = "class Stop:\n    def go(self, state):\n        return state.stopped\n\n    def ask(self):\n        return self.again(1)\n\n    def again(self, n):\n        return n - 1\n"
    use = "from stop import Stop\n\n\nclass Retry:\n    def go(self, f):\n        return f()\n\n    def again(self, f):\n        return {}\n"
    _, text = shown(
        {"stop_py": stop, "use_py": use.format("f()")},
        {"stop_py": stop, "use_py": use.format("self.go(f)")},
    )
    assert "state.stopped" not in text
    assert "(calls again)" not in text


def test_a_function_that_calls_what_is_changed_twice_is_shown_once(shown: Shown) -> None:
    lib = "def parse_size(x):\n    return {}\n"
    rest = "".join(f"    b{n} = a\n" for n in range(20))
    twice = f"from lib import parse_size\n\n\ndef main(a):\n    a = parse_size(a)\n{rest}    return parse_size(a)\n"
    _, text = shown(
        {
            "lib_py": lib.format("x"),
            "app_py": twice,
            "stop_py": "from lib import parse_size\n\n\ndef other(a):\n    return parse_size(a)\n",
        },
        {"lib_py": lib.format("None")},
    )
    assert text.count("(calls parse_size)") == 2


def test_who_still_names_what_is_gone_is_shown(shown: Shown) -> None:
    lines = "import os\nimport sys\n\n\ndef one():\n    return sys.path\n" + FILLER
    late = "\n\ndef late():\n    return os.sep\n"
    _, text = shown(
        {"lib_py": lines + late, "app_py": "from lib import one\n"},
        {"lib_py": lines.replace("import os\n", "").replace("def one", "def two") + late},
    )
    assert "return os.sep" in text


def test_the_versions_that_a_project_supports_are_said(shown: Shown) -> None:
    setup = "from setuptools import setup\nsetup(name='x', python_requires='>=3.8', install_requires=['attrs>=20', 'rich'])\n"
    _, text = shown(
        {"setup_py": setup, "a_py": "import attrs\n"}, {"a_py": "import attrs\nX = 1\n"}
    )
    assert "Python that the project allows: >=3.8" in text
    assert "attrs >=20" in text


def test_line_ends_as_forms_send_them_are_no_hidden_characters(shown: Shown) -> None:
    _, text = shown({"a_py": "x = 1\r\ny = 2\r\n"}, {"a_py": "x = 1\r\ny = 3\r\n"})
    assert "\\u000d" not in text
    assert "one\ntwo" in text


def test_a_line_end_that_the_change_brings_is_seen(shown: Shown) -> None:
    _, text = shown({"a_py": "x = 1\ny = 2\n"}, {"a_py": "x = 1\ny = 2\r\n"})
    assert "y = 2\\u000d" in text


def test_lasting_harm_is_looked_for_where_the_change_brings_what_can_do_it(shown: Shown) -> None:
    context, _ = shown({"a_py": "x = 1\n"}, {"a_py": "import os\nos.system('ls')\n"})
    assert brings_harmful_code(make_portions(context, None)[0][0])


def test_who_defines_open_or_opens_a_page_brings_no_lasting_harm(shown: Shown) -> None:
    context, _ = shown(
        {"a_py": "x = 1\n"},
        {"a_py": "import webbrowser\n\n\ndef open(url):\n    webbrowser.open(url)\n"},
    )
    assert not brings_harmful_code(make_portions(context, None)[0][0])


def test_a_dangerous_call_that_only_moves_calls_for_no_reading_of_its_own(shown: Shown) -> None:
    context, _ = shown(
        {"a_py": "import os\nos.system('ls')\nx = 1\n"},
        {"a_py": "import os\nx = 1\nos.system('ls')\n"},
    )
    assert not brings_harmful_code(make_portions(context, None)[0][0])


def test_a_file_that_was_empty_before_is_shown_as_added(shown: Shown) -> None:
    _, text = shown({"a_py": "", "b_py": "x = 1\ny = 2\n"}, {"a_py": "z = 1\n", "b_py": "x = 1\n"})
    assert "## a.py (added)" in text
    assert "## b.py (modified)" in text


def test_a_line_that_is_too_wide_is_seen_to_be_cut(shown: Shown) -> None:
    _, text = shown({"a_py": "x = 1\n"}, {"a_py": f"x = '{'y' * 900}'\n"})
    assert "yyy ...(the line goes on)" in text


def test_a_long_description_is_cut_after_a_sentence_and_seen_to_be_cut() -> None:
    text = "Say what it is. " * 400
    cut = shorten_text(text, 100)
    assert len(cut) <= 100
    assert cut.endswith("Say what it is. ...")
    assert shorten_text("x" * 300, 100) == "x" * 96 + " ..."
    assert shorten_text("one two three four", 16) == "one two ..."
    assert shorten_text("short", 100) == "short"


def test_what_a_removed_comment_only_names_is_shown_where_it_is_now_called(shown: Shown) -> None:
    close = "\n    def close(self):\n        self.file.write('done')\n"
    run = "\n    def run(self):\n        # Note: does not call self.close() for speed\n        self.file.write('x')\n"
    start = f"class Bar:\n    pass\n{run}{FILLER.replace(chr(10), chr(10) + '    ')}{close}"
    now = start.replace("        # Note: does not call self.close() for speed\n", "").replace(
        "write('x')", "write('x')\n        self.close()"
    )
    _, text = shown({"bar_py": start}, {"bar_py": now})
    assert "self.file.write('done')" in text


def test_of_a_very_long_function_the_lines_that_use_what_the_change_sets_are_shown(
    shown: Shown,
) -> None:
    body = "".join(f"    other_{n} = {n}\n" for n in range(200))
    before = (
        f"def meter(n, total):\n{body}    left = (total - n) / 2\n{body}    return left\n{FILLER}"
    )
    after = before.replace("    other_3 = 3\n", "    other_3 = 3\n    n *= 10\n", 1)
    _, text = shown({"m_py": before}, {"m_py": after})
    assert "left = (total - n) / 2" in text
    assert "other_90" not in text


def test_of_a_long_callee_its_code_is_shown_and_not_its_documentation(shown: Shown) -> None:
    pages = "".join(f"    Page {n} of what it says.\n" for n in range(60))
    lib = f'def clamp(value, low=0):\n    """Hold a value.\n\n{pages}    """\n    return max(low, value)\n'
    _, text = shown(
        {"lib_py": lib, "use_py": "from lib import clamp\nX = 1\n"},
        {"use_py": "from lib import clamp\nX = clamp(1)\n"},
    )
    assert "def clamp(value, low=0):" in text
    assert "Hold a value." in text
    assert "return max(low, value)" in text
    assert "Page 30" not in text


def test_only_imports_that_bind_something_for_the_change_are_shown(shown: Shown) -> None:
    start = (
        '"""Tools.\n\nimport time of this module matters\n"""\ntry:\n    import json\nexcept ImportError:\n'
        "    json = None\n"
    )
    local = "\n\ndef local():\n    from os import sep as time\n    return time\n"
    _, text = shown(
        {"a_py": f"{start}{FILLER}{local}{FILLER}\nX = 1\n"},
        {"a_py": f"{start}{FILLER}{local}{FILLER}\nX = json.loads(time)\n"},
    )
    assert "import json" in text
    assert "from os import sep" not in text
    assert "matters" not in text


def test_the_name_and_parameters_of_a_long_decorated_function_are_shown(shown: Shown) -> None:
    many = "".join(f"    argument_{n}=None,\n" for n in range(14))
    body = "".join(f"    step_{n}()\n" for n in range(200))
    text = f"@cached\ndef layout(\n{many}):\n{body}"
    _, told = shown({"a_py": text}, {"a_py": text.replace("step_150()", "other()")})
    assert "def layout(" in told
    assert "argument_13=None" in told
