"""What a commit did elsewhere and left undone in one place: an old name, a field in data, an entry in a list."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from regreen.fixers.ladder import fix_failure
from regreen.fixers.recipes.left_places import fill_left_places
from regreen.fixers.recipes.renamed_definitions import follow_change
from tests.unit.repairs import Repository, job, sandbox_or_skip

LEFT_OUT = {
    "a keyword": ("ask(wait=3)\n", "ask(delay=3)\n", "b.py", "x = ask(wait=9)\n", "x = ask(delay=9)\n", "unexpected keyword argument 'wait'", {1}),
    "a call of what is a property now": ("a = box.size()\n", "a = box.size\n", "b.py", "b = box.size() + 1\n", "b = box.size + 1\n", "b = box.size() + 1\nTypeError: 'int' object is not callable", {1}),
    "a key of data": ('row["mail"]\n', 'row["address"]\n', "people.json", '[{"mail": 1}]\n', '[{"address": 1}]\n', "KeyError: 'address'", None),
    "a field of a template": ('put(mail=1)\n', 'put(address=1)\n', "note.txt", "To {mail}\n", "To {address}\n", "KeyError: 'mail'", None),
    "a name of two words": ('url("plot-detail")\n', 'url("show-plot")\n', "page.html", "<a href={{ url 'plot-detail' }}>plot</a>\n", "<a href={{ url 'show-plot' }}>plot</a>\n", "NoReverseMatch: 'plot-detail' is not found", None),
    "a function, and no member of its name": ("import { length } from './b.js'\nlength(x)\n", "import { distance } from './b.js'\ndistance(x)\n", "c.js", "length(x.length)\n", "distance(x.length)\n", "SyntaxError: './b.js' does not provide an export named 'length'", None),
    "a word with more behind it": ("with pytest.raises(KeyError):\n", 'with pytest.raises(Unknown, match="zoo: not one of bot, geo, or of another"):\n', "b.py", "with pytest.raises(KeyError):\n    use()\nclass Unknown: pass\n", "with pytest.raises(Unknown):\n    use()\nclass Unknown: pass\n", "E   box.Unknown: not found", {1}),
    "a name in a dotted text": ("from b import send\nsend(x)\n", "from b import deliver\ndeliver(x)\n", "c.py", "@patch('a.send')\ndef f(x):\n    x.send()\n", "@patch('a.deliver')\ndef f(x):\n    x.send()\n", "AttributeError: 'a' does not have the attribute 'send'", {1}),
    "a line that became two": ("a = 1\npath('loans/', name='loan-list'),\n", "a = 1\npath('loans/', name='loans'),\npath('returns/', name='returns'),\n", "c.html", "{% url 'loan-list' %}\n", "{% url 'loans' %}\n", "NoReverseMatch: Reverse for 'loan-list' not found", None),
    "an option": ('add("--dest")\n', 'add("--to")\n', "Makefile", "all:\n\tbox --dest Oslo\n", "all:\n\tbox --to Oslo\n", "error: the following arguments are required: --to", None),
    "a version": ('RELEASE = "1.2.0"\n', 'RELEASE = "1.3.0"\n', "setup.cfg", "version = 1.2.0\n", "version = 1.3.0\n", "E   AssertionError: '1.2.0' != '1.3.0'", None),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_a_commit_wrote_elsewhere_is_written_where_it_left_the_old(
    tmp_path: Path, name: str
) -> None:
    before, after, path, old, new, said, lines = LEFT_OUT[name]
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"a.py": before, path: old, "docs/use.md": old})
    culprit = repository.commit("name it", {"a.py": after})
    rev = repository.commit("note", {"later.txt": ""})
    places = {path: lines} if lines else {}
    is_asserted = "AssertionError" in said
    found = fill_left_places(repository.open(), rev, None, said, places, is_asserted=is_asserted)
    first = found[0]
    assert (first.culprit, first.is_guess) == (culprit, True)
    assert first.texts == {path: new}, "documents stay, which nothing names"


def test_a_file_that_moved_is_named_where_it_is_now(tmp_path: Path) -> None:
    script = "print('all')\nprint('is')\nprint('well')\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"bin/run.py": script, "Makefile": "all:\n\tpython bin/run.py\n"})
    rev = repository.commit("move it", {"bin/run.py": None, "bin/check_all.py": script})
    said = "python: can't open file '/work/bin/run.py': [Errno 2] No such file or directory"
    (found,) = fill_left_places(repository.open(), rev, None, said, {}, is_asserted=False)
    assert found.texts == {"Makefile": "all:\n\tpython bin/check_all.py\n"}


def test_a_module_that_moved_is_named_where_it_is_now(tmp_path: Path) -> None:
    lid = "class Lid:\n    def open(self):\n        return 1\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"src/box/lid.py": lid, "log.json": '{"class": "box.lid.Lid"}\n'})
    rev = repository.commit("move it", {"src/box/lid.py": None, "src/box/parts/top.py": lid})
    said = "ValueError: Cannot resolve 'box.lid.Lid': No module named 'box.lid'"
    found = fill_left_places(repository.open(), rev, None, said, {}, is_asserted=False)
    assert found[0].texts == {"log.json": '{"class": "box.parts.top.Lid"}\n'}


def test_a_folder_that_moved_is_named_where_it_is_now(tmp_path: Path) -> None:
    demo = "print('all')\nprint('is')\nprint('well')\n"
    settings = '[scripts]\n"scripts/*.py" = ["T20"]\n'
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"scripts/demo.py": demo, "lint.toml": settings})
    rev = repository.commit("move it", {"scripts/demo.py": None, "examples/demo.py": demo})
    said = "examples/demo.py:1:1: T201 `print` found: it is not allowed"
    found = fill_left_places(repository.open(), rev, None, said, {}, is_asserted=False)
    now = settings.replace('"scripts/', '"examples/')
    assert {"lint.toml": now} in [one.texts for one in found]


def test_links_follow_a_page_that_moved_and_so_do_its_own(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    there = {
        "docs/index.md": "[Use](usage.md) it, and see <https://box.example/usage.md>.\n",
        "docs/usage.md": "[Back](./index.md#top)\n",
        "tool.py": "x = usage.md\n",
    }
    repository.commit("start", there)
    rev = repository.commit(
        "move it", {"docs/usage.md": None, "docs/guide/usage.md": there["docs/usage.md"]}
    )
    said = "WARNING - 'index.md' contains a link 'usage.md', but the target is not found"
    found = fill_left_places(repository.open(), rev, None, said, {}, is_asserted=False)
    assert found[0].texts == {
        "docs/index.md": "[Use](guide/usage.md) it, and see <https://box.example/usage.md>.\n",
        "docs/guide/usage.md": "[Back](../index.md#top)\n",
    }


def test_an_anchor_follows_its_heading_in_a_document_that_is_named(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    link = "First [cool](fire.md#cool-down) it.\n"
    repository.commit("start", {"docs/fire.md": "## Cool down\n\nSlowly.\n", "docs/index.md": link})
    rev = repository.commit("say more", {"docs/fire.md": "## Cooling\n\nShut it.\n\nSlowly.\n"})
    said = "WARNING - 'index.md' has a link 'fire.md#cool-down', but there is not the anchor '#cool-down'"
    found = fill_left_places(repository.open(), rev, None, said, {}, is_asserted=False)
    assert found[0].texts == {"docs/index.md": "First [cool](fire.md#cooling) it.\n"}


def test_a_new_name_is_imported_where_it_is_written(tmp_path: Path) -> None:
    errors = "class TooHeavy(Exception):\n    pass\n"
    use = "import box\n\n\ndef weigh():\n    try:\n        box.lift()\n    except ValueError:\n        return 0\n"
    repository = Repository(tmp_path / "repo")
    box = "def lift():\n    raise ValueError\n"
    repository.commit("start", {"errors.py": errors, "box.py": box, "use.py": use})
    rev = repository.commit(
        "name it",
        {"box.py": f"from errors import TooHeavy\n\n\n{box.replace('ValueError', 'TooHeavy')}"},
    )
    said = "errors.TooHeavy: not lifted"
    found = fill_left_places(repository.open(), rev, None, said, {"use.py": {6}}, is_asserted=False)
    lines = use.replace("ValueError", "TooHeavy")
    after = lines.replace("import box\n", "import box\nfrom errors import TooHeavy\n")
    assert found[0].texts == {"use.py": after}


def test_the_text_of_a_definition_that_is_named_follows_its_parameter(tmp_path: Path) -> None:
    text = 'def f({0}):\n    """Take one.\n\n    limit: the most\n    """\n    return {0}\n\n\nlimit = 1\n'
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"a.py": text.format("limit")})
    rev = repository.commit("name it", {"a.py": text.format("threshold")})
    said = "a.py:1: DOC103: arguments are not the same: threshold"
    found = fill_left_places(repository.open(), rev, None, said, {"a.py": {1}}, is_asserted=False)
    assert found[0].texts["a.py"].split("\n")[3:9] == [
        "    threshold: the most",
        '    """',
        "    return threshold",
        "",
        "",
        "limit = 1",
    ]


def test_what_the_failure_quotes_is_changed_where_it_stands_in_quotes(tmp_path: Path) -> None:
    app = 'ROUTES = []\n\n\ndef {0}():\n    return "hours.html"\n'
    page = "<a href={{ url_for('site.hours') }}>hours</a>\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"app.py": app.format("hours"), "base.html": page})
    rev = repository.commit("name it", {"app.py": app.format("opening_hours")})
    said = "BuildError: Could not build url for endpoint 'site.hours'.\nE   assert 500 == 200\n"
    (found,) = fill_left_places(repository.open(), rev, None, said, {}, is_asserted=True)
    assert found.texts == {"base.html": page.replace("site.hours", "site.opening_hours")}


def test_of_a_file_that_the_commit_changed_each_quotation_is_tried(tmp_path: Path) -> None:
    text = (
        '{0} = relationship(back="keeper")\nname = "trees"\nkeeper = relationship(back="trees")\n'
    )
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"tables.py": text.format("trees")})
    rev = repository.commit("name it", {"tables.py": text.format("plants")})
    said = "InvalidRequestError: Mapper[Keeper] has no property 'trees', is it missing?"
    found = fill_left_places(repository.open(), rev, None, said, {}, is_asserted=False)
    now = text.format("plants").replace('back="trees"', 'back="plants"')
    assert [one.texts for one in found][1] == {"tables.py": now}, "one line after the other"


def test_a_test_follows_what_a_commit_says_that_it_means(tmp_path: Path) -> None:
    test = "def test_word():\n    assert word() == '{0}'\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"a.py": "WORD = 'left'\n", "test_a.py": test.format("left")})
    rev = repository.commit("Turn right", {"a.py": "WORD = 'right'\n"})
    said = "E   AssertionError: assert 'right' == 'left'"
    places = {"test_a.py": {2}}
    (found,) = fill_left_places(repository.open(), rev, None, said, places, is_asserted=True)
    assert found.texts == {"test_a.py": test.format("right")}


def test_a_test_is_not_made_to_ask_for_what_a_commit_writes_now(tmp_path: Path) -> None:
    test = "def test_word():\n    assert word() == 'left'\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"a.py": "WORD = 'left'\n", "tests/test_a.py": test})
    rev = repository.commit("turn", {"a.py": "WORD = 'right'\n"})
    said = "E   AssertionError: assert 'right' == 'left'"
    places = {"tests/test_a.py": {2}}
    assert fill_left_places(repository.open(), rev, None, said, places, is_asserted=True) == []


def test_an_assertion_that_shows_one_of_two_values_names_no_exchange(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"a.py": 'RELEASE = "1.2.0"\n', "setup.cfg": "version = 1.2.0\n"})
    rev = repository.commit("raise it", {"a.py": 'RELEASE = "1.3.0"\n'})
    said = "E   AssertionError: '1.3.0' is not what the server answers"
    assert fill_left_places(repository.open(), rev, None, said, {}, is_asserted=True) == []


def test_data_are_tried_before_code_that_has_the_same_word(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    others = {"a.py": "def send(mail):\n    return mail\n", "people.json": '{"mail": 1}\n'}
    repository.commit("start", {"read.py": 'row["mail"]\n', **others})
    rev = repository.commit("name it", {"read.py": 'row["address"]\n'})
    found = fill_left_places(
        repository.open(), rev, None, "KeyError: 'address'", {}, is_asserted=False
    )
    tried = [set(one.texts) for one in found]
    assert tried == [{"people.json"}, {"a.py"}, {"a.py", "people.json"}]


def test_a_word_far_from_the_error_names_no_exchange_and_other_encodings_are_left_alone(
    tmp_path: Path,
) -> None:
    repository = Repository(tmp_path / "repo")
    (repository.path / "b.csv").write_bytes("mail,stra\xdfe\n".encode("latin-1"))
    repository.commit("start", {"a.py": 'row["mail"]\n', "b.py": "x = mail\n"})
    rev = repository.commit("name it", {"a.py": 'row["address"]\n'})
    git, ask = repository.open(), partial(fill_left_places, base=None, is_asserted=False)
    assert ask(git, rev, output="sending mail\nValueError: no port", places={}) == []
    (found,) = ask(git, rev, output="KeyError: 'address'", places={})
    assert found.texts == {"b.py": "x = address\n"}


def test_of_a_file_that_the_commit_changed_the_named_lines_alone_are(tmp_path: Path) -> None:
    text = "def ask({0}=1):\n    return {0}\n\n\ndef wait(wait=2):\n    return {1}(wait=wait)\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"a.py": text.format("wait", "ask")})
    rev = repository.commit("name it", {"a.py": text.format("delay", "ask")})
    said = "TypeError: ask() got an unexpected keyword argument 'wait'"
    found = fill_left_places(repository.open(), rev, None, said, {"a.py": {6}}, is_asserted=False)
    lines = text.format("delay", "ask").split("\n")
    assert [x.texts["a.py"].split("\n")[:5] for x in found] == [lines[:5]]


@pytest.mark.sandbox
def test_a_place_that_a_commit_forgot_is_proposed_to_a_person_in_its_name(tmp_path: Path) -> None:
    reads = "import json\n\n\ndef read():\n    return json.load(open('box.json'))['{0}']\n"
    test = "import unittest, box\n\n\nclass B(unittest.TestCase):\n    def test_b(self):\n        box.read()\n"
    repository = Repository(tmp_path / "repo")
    data = '{"mail": 1, "mailed": 2}\n'
    repository.commit(
        "start", {"box.py": reads.format("mail"), "box.json": data, "test_b.py": test}
    )
    rev = repository.commit("Say address", {"box.py": reads.format("address")})
    asked = job(rev, "python3", "-m", "unittest", "-q", "test_b", setup=None, reruns=1, rungs=("recipe",))  # fmt: skip
    found = fix_failure(asked, git=repository.open(), sandbox=sandbox_or_skip(), model=None)
    assert (found.outcome, found.cause) == (
        "needs_human",
        f"{rev[:12]} (Say address) left places as they were",
    )
    assert found.culprit is not None
    assert found.culprit.sha == rev
    assert '+{"address": 1, "mailed": 2}\n' in (found.patch or "")
    assert "+++ b/box.py" not in (found.patch or "")


# What is there, what a commit adds, what the failure says, the list, and the list with the addition.
LISTS = {
    "a package in the settings": (
        {"box/__init__.py": "", "box/cli/__init__.py": ""},
        {"box/web/__init__.py": "W = 1\n"},
        "ModuleNotFoundError: No module named 'box.web'",
        ("pyproject.toml", 'name = "box"\npackages = ["box", "box.cli"]\n', 'name = "box"\npackages = ["box", "box.cli", "box.web"]\n'),
    ),
    "a package of the only one": (
        {"box/__init__.py": "", "box/core.py": ""},
        {"box/web/__init__.py": "W = 1\n"},
        "box/web/__init__.py is not in the wheel",
        ("pyproject.toml", '[tool]\npackages = ["box"]\n', '[tool]\npackages = ["box", "box.web"]\n'),
    ),
    "a page in a table of contents": (
        {"docs/intro.md": "", "docs/usage.md": "", "docs/index.rst": ""},
        {"docs/tuning.md": "Tune\n"},
        "/work/docs/tuning.md: WARNING: document isn't included in any toctree",
        ("docs/index.rst", "Box\n\n   intro\n   usage\n", "Box\n\n   intro\n   tuning\n   usage\n"),
    ),
    "a page beside the only one": (
        {"docs/spans.rst": ""},
        {"docs/thrust.rst": "Thrust\n"},
        "/work/docs/thrust.rst: WARNING: document isn't included in any toctree",
        ("docs/index.rst", "Arches\n\n.. toctree::\n   :maxdepth: 1\n\n   spans\n\nStones.\n", "Arches\n\n.. toctree::\n   :maxdepth: 1\n\n   spans\n   thrust\n\nStones.\n"),
    ),
    "a page in a menu": (
        {"docs/start.md": "", "docs/apples.md": ""},
        {"docs/tuning.md": "Tune\n"},
        "pages exist that are not in the menu:\n  - tuning.md",
        ("menu.json", '[\n  "start.md",\n  "apples.md"\n]\n', '[\n  "start.md",\n  "apples.md",\n  "tuning.md"\n]\n'),
    ),
    "a function that the package brings": (
        {"box/core.py": "def open_box():\n    pass\n\n\ndef lift():\n    pass\n"},
        {"box/core.py": "def open_box():\n    pass\n\n\ndef lift():\n    pass\n\n\ndef weigh():\n    pass\n"},
        "ImportError: cannot import name 'weigh' from 'box' (/work/box/__init__.py)",
        ("box/__init__.py", 'from box.core import lift, open_box\n\n__all__ = [\n    "lift",\n    "open_box",\n]\n', 'from box.core import lift, open_box, weigh\n\n__all__ = [\n    "lift",\n    "open_box",\n    "weigh",\n]\n'),
    ),
    "a value beside others": (
        {"box/send.py": 'def send(way):\n    assert way in ("road", "rail")\n'},
        {"box/send.py": 'def send(way):\n    assert way in ("road", "rail", "sea")\n'},
        """error: Argument 1 has incompatible type "Literal['sea']"; expected "Literal['road', 'rail']" """,
        ("box/ways.py", 'Way = Literal["road", "rail"]\n', 'Way = Literal["road", "rail", "sea"]\n'),
    ),
    "a line beside others": (
        {"box/fields.txt": "name: text\nsize: text\nweight: text\n"},
        {"box/fields.txt": "name: text\nsize: text\nprice: text\nweight: text\n"},
        "KeyError: 'price'",
        ("box/form.yml", "fields:\n- name\n- size\n- weight\n", "fields:\n- name\n- price\n- size\n- weight\n"),
    ),
    "a test file in a list": (
        {"checks/a_test.js": "", "checks/c_test.js": ""},
        {"checks/b_test.js": "ok\n"},
        "checks/b_test.js is run by no target",
        ("Makefile", "all:\n\tnode checks/a_test.js\n\tnode checks/c_test.js\n", "all:\n\tnode checks/a_test.js\n\tnode checks/b_test.js\n\tnode checks/c_test.js\n"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_what_a_commit_added_is_listed_where_its_siblings_are(tmp_path: Path, name: str) -> None:
    there, added, said, (path, before, after) = LISTS[name]
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {**there, path: before, "README.md": "A box.\n"})
    culprit = repository.commit("add it", added)
    rev = repository.commit("note", {"later.txt": ""})
    found = fill_left_places(repository.open(), rev, None, said, {}, is_asserted=False)
    assert found[0].culprit == culprit
    assert {path: after} in [one.texts for one in found]


def test_a_new_file_gets_the_first_lines_that_all_others_have(tmp_path: Path) -> None:
    head = "# Copyright The Box Authors\n# SPDX-License-Identifier: MIT\n"
    repository = Repository(tmp_path / "repo")
    others = {"box/a.py": f"{head}\nA = 1\n", "box/b.py": f"{head}\nB = 1\n", "README.md": "Box\n"}
    repository.commit("start", others)
    rev = repository.commit("add it", {"box/c.py": "C = 1\n"})
    said = "box/c.py: no licence in the first lines"
    found = fill_left_places(repository.open(), rev, None, said, {}, is_asserted=False)
    assert found[0].texts == {"box/c.py": f"{head}\nC = 1\n"}
    assert found[0].summary == "wrote the comments that the other files begin with"


@pytest.mark.parametrize(
    ("first", "after"),
    [
        ("#!/bin/sh\n", "#!/bin/sh\n# Copyright The Box Authors\necho c\n"),
        ("# Copyright The Box Authors\n", None),  # it has them
    ],
)
def test_first_lines_come_below_a_shebang_and_once(
    tmp_path: Path, first: str, after: str | None
) -> None:
    head = "# Copyright The Box Authors\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"a.sh": f"#!/bin/sh\n{head}echo a\n", "b.sh": f"{head}echo b\n"})
    rev = repository.commit("add it", {"c.sh": f"{first}echo c\n"})
    found = fill_left_places(
        repository.open(), rev, None, "c.sh: no licence", {}, is_asserted=False
    )
    assert [x.texts for x in found] == ([{"c.sh": after}] if after else [])


def test_names_that_are_no_list_of_code_are_not_made_longer(tmp_path: Path) -> None:
    texts = (
        "for cli, core in x:\n    pass\n",
        "def f(cli, core):\n    pass\n",
        "x = s[cli:core]\n",
        "x = cli | core\n",
    )
    repository = Repository(tmp_path / "repo")
    code = {f"use{at}.py": text for at, text in enumerate(texts)}
    repository.commit("start", {"box/cli.py": "", "box/core.py": "", **code})
    rev = repository.commit("add it", {"box/web.py": "W = 1\n"})
    said = "box/web.py: it is not there"
    assert fill_left_places(repository.open(), rev, None, said, {}, is_asserted=False) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from __future__ import annotations\n\nx = wait\n", "from __future__ import annotations\nfrom box import delay\n\nx = delay\n"),
        ("from os import (\n    path,\n)\n\nx = wait\n", "from box import delay\nfrom os import (\n    path,\n)\n\nx = delay\n"),
        ("from a import (\n    path,\n)\n\nx = wait\n", "from a import (\n    path,\n)\nfrom box import delay\n\nx = delay\n"),
        ('"""A use."""\n\nx = wait\n', '"""A use."""\nfrom box import delay\n\nx = delay\n'),
    ],
)  # fmt: skip
def test_an_import_comes_where_the_module_allows_it(
    tmp_path: Path, before: str, after: str
) -> None:
    repository = Repository(tmp_path / "repo")
    text = "from box import {0}\n\n{0}()\n"
    repository.commit("start", {"a.py": text.format("wait"), "use.py": before})
    rev = repository.commit("name it", {"a.py": text.format("delay")})
    said = "NameError: name 'wait' is not defined"
    found = fill_left_places(repository.open(), rev, None, said, {"use.py": {3}}, is_asserted=False)
    assert {"use.py": after} in [one.texts for one in found]


def test_lines_keep_their_ends(tmp_path: Path) -> None:
    head = "# Copyright The Box Authors\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"a.sh": f"{head}echo a\n", "b.sh": f"{head}echo b\n"})
    rev = repository.commit("add it", {"c.sh": "echo c\r\n"})
    (found,) = fill_left_places(
        repository.open(), rev, None, "c.sh: no licence", {}, is_asserted=False
    )
    assert found.texts == {"c.sh": "# Copyright The Box Authors\r\necho c\r\n"}


def test_what_a_text_could_not_hold_is_not_written_into_it(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"a.txt": "send old now\n", "b.json": '{"old": 1}\n'})
    rev = repository.commit("name it", {"a.txt": 'send n"w now\n'})
    said = "KeyError: 'old' not found"
    found = fill_left_places(repository.open(), rev, None, said, {}, is_asserted=True)
    assert [one.texts for one in found] == []


def test_many_quotations_and_long_headings_are_read_in_time(tmp_path: Path) -> None:
    long = "#" + " " * 20_000 + "x" * 300
    repository = Repository(tmp_path / "repo")
    there = {"a.md": f"{long}\n", "b.yml": "x: 'old_name'\n" * 12_000, "c.py": "old_name = 1\n"}
    repository.commit("start", there)
    rev = repository.commit("name it", {"a.md": f"{long}y\n", "c.py": "new_name = 1\n"})
    said = "KeyError: 'old_name' not found"
    found = fill_left_places(repository.open(), rev, None, said, {}, is_asserted=True)
    assert found == [], "so many are no place that was left"


def test_a_word_of_prose_is_no_link(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    there = {
        "docs/usage.md": "Use\n",
        "docs/a.md": "1.0 wrote usage.md\n",
        "docs/changes.md": "(usage.md)\n",
    }
    repository.commit("start", there)
    rev = repository.commit("move it", {"docs/usage.md": None, "docs/guide/usage.md": "Use\n"})
    said = "the link 'usage.md' is not found"
    assert fill_left_places(repository.open(), rev, None, said, {}, is_asserted=False) == []


def test_a_test_is_not_turned_round_with_a_value(tmp_path: Path) -> None:
    test = "def test_open():\n    assert is_open() is True\n"
    repository = Repository(tmp_path / "repo")
    code = "A = {0}\n\n\nB = {0}\n"
    repository.commit("start", {"a.py": code.format("True"), "test_a.py": test})
    rev = repository.commit("Cache what is False", {"a.py": code.format("False")})
    said = "E   AssertionError: assert False is True"
    places = {"test_a.py": {2}}
    assert fill_left_places(repository.open(), rev, None, said, places, is_asserted=True) == []


def test_a_file_that_only_shares_its_head_did_not_move(tmp_path: Path) -> None:
    head = "/* Licence */\n'use strict'\n"
    repository = Repository(tmp_path / "repo")
    use = "const auth = require('./lib/auth.js')\n"
    repository.commit(
        "start", {"lib/auth.js": f"{head}exports.check = (x) => x.ok\n", "use.js": use}
    )
    rev = repository.commit(
        "change", {"lib/auth.js": None, "lib/noop.js": f"{head}exports.nothing = 1\n"}
    )
    said = "Error: Cannot find module './lib/auth.js'"
    assert follow_change(repository.open(), rev, None, said, {"use.js": {1}}) is None


def test_rows_of_blanks_are_read_in_time(tmp_path: Path) -> None:
    rows = [f"{name}{' ' * 40_000}x" for name in ("cli", "core")]
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"b/cli.py": "", "b/core.py": "", "list.txt": "\n".join(rows)})
    rev = repository.commit("add it", {"b/web.py": "W = 1\n"})
    found = fill_left_places(
        repository.open(), rev, None, "web is not there", {}, is_asserted=False
    )
    assert found == [], "rows so long are left alone"


@pytest.mark.parametrize(
    ("said", "listing"),
    [
        ("box/web.py: something else", 'NAMES = ["cli"]\n'),  # one of three siblings
        (
            "the web is down",
            "run(cli)\nstop(core)\nwait(jobs)\n",
        ),  # lines that say different things
        ("nothing is said of it", "cli\ncore\njobs\n"),
        ("box/web.py: it is there", "cli\ncore\njobs\nweb\n"),
    ],
)
def test_what_is_no_list_of_siblings_or_has_the_addition_stays(
    tmp_path: Path, said: str, listing: str
) -> None:
    repository = Repository(tmp_path / "repo")
    there = {"box/cli.py": "", "box/core.py": "", "box/jobs.py": "", "names.txt": listing}
    repository.commit("start", there)
    rev = repository.commit("add it", {"box/web.py": "W = 1\n"})
    assert fill_left_places(repository.open(), rev, None, said, {}, is_asserted=False) == []


@pytest.mark.sandbox
def test_an_addition_that_a_list_lacks_is_proposed_to_a_person(tmp_path: Path) -> None:
    check = "import pathlib, sys\nlisted = open('modules.txt').read().split()\nlost = [p.name for p in pathlib.Path('box').glob('*.py') if p.stem not in listed]\nsys.exit(f'not in modules.txt: {lost}' if lost else 0)\n"
    repository = Repository(tmp_path / "repo")
    there = {"box/cli.py": "C = 1\n", "box/jobs.py": "J = 1\n", "modules.txt": "cli\njobs\n"}
    repository.commit("start", {**there, "check.py": check})
    rev = repository.commit("Serve it", {"box/web.py": "W = 1\n"})
    asked = job(rev, "python3", "check.py", setup=None, reruns=1, rungs=("recipe",))
    found = fix_failure(asked, git=repository.open(), sandbox=sandbox_or_skip(), model=None)
    cause = f"{rev[:12]} (Serve it) left places as they were"
    assert (found.outcome, found.cause) == ("needs_human", cause)
    assert found.attempts[0].summary == "listed box/web.py there too"
    assert "+web\n" in (found.patch or "")
