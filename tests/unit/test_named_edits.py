"""Edits that the error names, in the lines that it names first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from regreen.domain.models import Failure
from regreen.fixers.case import Proposal
from regreen.fixers.ladder import fix_failure
from regreen.fixers.recipes.named_edits import propose_named_edits
from regreen.fixers.rungs import recipe_rung
from regreen.fixers.rungs.recipe_rung import RecipeRung
from regreen.languages.python.dependencies import make_search_script, move_imports
from tests.unit.repairs import Repository, job, sandbox_or_skip


@pytest.mark.parametrize(
    ("said", "line", "after", "is_guess"),
    [
        ("AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead.", "x(np.float_)", "x(np.float64)", False),
        ("AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead.", "x(numpy.float_)", "x(numpy.float64)", False),
        ("DeprecationWarning: `in1d` is deprecated. Use `np.isin` instead.", "numpy.in1d(a)", "numpy.isin(a)", False),
        ("AttributeError: module 'numpy' has no attribute 'bool'.\nE   `np.bool` was a deprecated alias for the builtin `bool`.", "x(np.bool)", "x(bool)", False),
        ("size_of() has been replaced by count()", "x.size_of()", "x.count()", False),
        ("PytestDeprecationWarning: @pytest.yield_fixture is deprecated.\nE   Use @pytest.fixture instead; they are the same.", "@pytest.yield_fixture", "@pytest.fixture", False),
        ("DeprecationWarning: Please use assertEqual instead.", "self.assertEquals(1, 1)", "self.assertEqual(1, 1)", False),
        ("The `dict` method is deprecated; use `model_dump` instead.", "dict(x.dict())", "dict(x.model_dump())", False),
        ("FutureWarning: applymap() is deprecated, please use map instead", "t.applymap(str)", "t.map(str)", False),
        ("AttributeError: 'Store' object has no attribute 'titlex'. Did you mean: 'title'?", "assert store.titlex == titlex", "assert store.title == titlex", True),
        ("The ``base()`` function is now available as lib.orm.base().", "from lib.ext import base", "from lib.orm import base", False),
    ],
)  # fmt: skip
def test_the_name_that_the_error_gives_is_written(
    said: str, line: str, after: str, *, is_guess: bool
) -> None:
    texts = {"a.py": f"{line}\npass\n"}
    found = list(propose_named_edits(f"a.py:1: in f\nE  {said}\n", (), texts, texts.get))
    assert [dict(one.texts) for one in found] == [{"a.py": f"{after}\npass\n"}]
    assert all(bool(one.asks) == is_guess for one in found[0].edits)


OCTAL = '  File "/work/a.py", line 1\n    m = 0644\n        ^\nSyntaxError: leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers'
BLOCK = "all:\n    if x; then \\\n        echo a; \\\n    fi\n  foo = 1\n"
DIRECTIVES = "all:\n    a\n    ifdef X\n    if [ x ]; then \\\n    a; \\\n    else \\\n    a; \\\n    fi\n    else\n    b\n    endif\n"
WARNED = 'a.py:1: SyntaxWarning: "{}" with \'int\' literal. Did you mean "=="?'
SYNTAX = '  File "/work/a.py", line 1\n    x\n    ^\nSyntaxError: {}'
EXCEPTIONS = SYNTAX.format("multiple exception types must be parenthesized")
NODE = "file:///work/a.mjs:1\nx\n^\n\n"
INDENT = '  File "/work/a.py", line 3\n    y = 2\nIndentationError: unexpected indent'
GUESSED = ("parenthesized", "default for", "require")
WARNED_TWICE = "".join(
    f"a.py:2: SyntaxWarning: invalid escape sequence '\\{one}'\n" for one in "dw"
)
LONG = "x = '''\"\n\\d\\w'''\n"
BLANK = '  File "/work/a.py", line 1\n    x = 1\n     ^\nSyntaxError: invalid non-printable character U+00A0'


@pytest.mark.parametrize(
    ("said", "path", "text", "after"),
    [
        ("Makefile:2: *** missing separator (did you mean TAB instead of 8 spaces?).  Stop.", "sub/Makefile", "all:\n        a\n        b\n\nx = 1\n", "all:\n\ta\n\tb\n\nx = 1\n"),
        ('a.py:1: SyntaxWarning: "is" with \'int\' literal. Did you mean "=="?', "a.py", "x = y is 1 and z is None\n", "x = y == 1 and z is None\n"),
        ('a.py:1: SyntaxWarning: "is not" with a literal. Did you mean "!="?', "a.py", "x = y is not 1\n", "x = y != 1\n"),
        ("a.py:1: SyntaxWarning: invalid escape sequence '\\d'", "a.py", "x = '\\d\\n'\n", "x = '\\\\d\\n'\n"),
        ('a.py:1: SyntaxWarning: "\\d" is an invalid escape sequence. Did you mean "\\\\d"?', "a.py", "x = '\\d'\n", "x = '\\\\d'\n"),
        (OCTAL, "a.py", "m = 0644\n", "m = 0o644\n"),
        (BLANK, "a.py", "x\u00a0= 1\n", "x = 1\n"),
        (OCTAL, "a.py", "d(2024, 01) + f('1-05') + 1e-05  # 05\n", "d(2024, 0o1) + f('1-05') + 1e-05  # 05\n"),
        (BLANK, "a.py", "x\u00a0= '\u00a0'\n", "x = '\u00a0'\n"),
        (BLANK.replace("00A0", "200B"), "a.py", "x\u200b = '\u200b'\n", "x = '\u200b'\n"),
        (BLANK.replace("00A0", "FEFF"), "a.py", "\ufeffx = 1\n", "x = 1\n"),
        ('a.py:1: SyntaxWarning: "is" with \'str\' literal. Did you mean "=="?', "a.py", "assert x is 'a', \"it is 'a'\"\n", "assert x == 'a', \"it is 'a'\"\n"),
        ("a.py:1: SyntaxWarning: invalid escape sequence '\\d'", "a.py", "c('\\d' + r'\\d+' + f'\\d')\n", "c('\\\\d' + r'\\d+' + f'\\\\d')\n"),
        (WARNED_TWICE, "a.py", LONG, LONG.replace("\\", "\\\\")),
        (WARNED.format("is"), "a.py", "x = 1 is y and 'a' is z and x1 is y\n", "x = 1 == y and 'a' == z and x1 is y\n"),
        (WARNED.format("is"), "a.py", "x = y is -1 and y is -z and y is (z)\n", "x = y == -1 and y is -z and y is (z)\n"),
        (WARNED.format("is"), "a.py", "x = y is () or y is (1, 2) or y is b'a' or y is []\n", "x = y == () or y == (1, 2) or y == b'a' or y is []\n"),
        (WARNED.format("is"), "a.py", "x = 1 is not y or y is 1\n", "x = 1 is not y or y == 1\n"),
        (WARNED.format("is not").replace("==", "!="), "a.py", "x = 200 is not y or y is not -x or y is not r'a'\n", "x = 200 != y or y is not -x or y != r'a'\n"),
        (SYNTAX.format("expected ':'"), "a.py", "if 1  # one\n", "if 1:  # one\n"),
        (SYNTAX.format("expected ':'"), "a.py", "class A", "class A:"),
        ("./a.go:1:4: syntax error: unexpected newline in composite literal; possibly missing comma or }", "a.go", "\t\t1 // one\n", "\t\t1, // one\n"),
        ('a.py:1: error: Function is missing a return type annotation\na.py:1: note: Use "-> None" if function does not return a value', "a.py", "def f(x=g()):\n", "def f(x=g()) -> None:\n"),
        ("Can't use 'defined(@array)' (Maybe you should just omit the defined()?) at a.pl line 1.", "a.pl", "if (defined(@rows)) {\n", "if (@rows) {\n"),
        (EXCEPTIONS, "a.py", "except A, b.B:\n", "except (A, b.B):\n"),
        ("Scalar value @x[0] better written as $x[0] at a.pl line 1.", "a.pl", "print @x[0], @y[0];\n", "print $x[0], @y[0];\n"),
        (SYNTAX.format("invalid character '“' (U+201C)"), "a.py", "x = “a”  # “b”\n", 'x = "a"  # “b”\n'),
        (INDENT.replace("IndentationError: unexpected indent", "TabError: inconsistent use of tabs and spaces in indentation"), "a.py", "if x:\n    if y:\n\ty = '\t'\n\t\tz\n", "if x:\n    if y:\n        y = '\t'\n                z\n"),
        ("A.java:1: error: ';' expected", "src/A.java", "    return a // b\n", "    return a; // b\n"),
        ('a.py:1: error: Incompatible default for parameter "x" (default has type "None", parameter has type "dict[str, int]")', "a.py", "def f(y: int, x: dict[str, int] = None, *z):\n", "def f(y: int, x: dict[str, int] | None = None, *z):\n"),
        (NODE + "ReferenceError: require is not defined in ES module scope, you can use import instead\n", "a.mjs", "const { a } = require('b');\n", "import { a } from 'b';\n"),
        (NODE + "SyntaxError: Named export 'a' not found. The requested module './b.cjs' is a CommonJS module\nCommonJS modules can be imported, for example using:\n\nimport pkg from './b.cjs';\nconst { a } = pkg;\n\n", "a.mjs", "import { a } from './b.cjs';\n", "import pkg from './b.cjs';\nconst { a } = pkg;\n"),
        ("Makefile:2: *** missing separator.  Stop.", "Makefile", DIRECTIVES, DIRECTIVES.replace("    a", "\ta").replace("    if [", "\tif [").replace("    else \\", "\telse \\").replace("    fi", "\tfi").replace("    b", "\tb")),
        ("Makefile:2: *** missing separator.  Stop.", "Makefile", BLOCK, BLOCK.replace("    if", "\tif").replace("        echo", "\t    echo").replace("    fi", "\tfi")),
    ],
)  # fmt: skip
def test_the_line_is_written_as_the_error_says(said: str, path: str, text: str, after: str) -> None:
    texts = {path: text, "b.py": text if path == "a.py" else ""}
    found = propose_named_edits(said, (), texts, texts.get)
    assert dict(found[0].texts) == {path: after}
    causes = {one.cause for one in found[0].edits}
    assert len(causes) == 1
    assert "name" not in causes.pop()  # each row says its own
    assert any(one.asks for one in found[0].edits) == any(one in said for one in GUESSED)


@pytest.mark.parametrize(("more", "kept"), [("", ""), ("\ny = flask.g", "import flask\n")])
def test_a_name_that_is_written_with_its_module_is_imported(more: str, kept: str) -> None:
    texts = {"a.py": f"import flask\nimport zlib\n\nx = flask.Markup(zlib){more}\n"}
    said = "a.py:4: DeprecationWarning: 'flask.Markup' is deprecated and will be removed in Flask 2.4. Import 'markupsafe.Markup' instead."
    found = propose_named_edits(said, (), texts, texts.get)
    assert dict(found[0].texts) == {
        "a.py": f"{kept}import markupsafe\nimport zlib\n\nx = markupsafe.Markup(zlib){more}\n"
    }


@pytest.mark.parametrize(
    "binding",
    ["def f(pkg): pass", "pkg = 1", "class pkg: pass", "from a import b as pkg", "import pkg.sub"],
)
def test_a_name_that_the_file_binds_is_not_imported(binding: str) -> None:
    texts = {"a.py": f"import zlib\n{binding}\npkg.close_all(zlib)\n"}
    said = "a.py:3: pkg.close_all is deprecated, use pkg.close_every instead"
    found = [one.texts["a.py"] for one in propose_named_edits(said, (), texts, texts.get)]
    assert found == [f"import zlib\n{binding}\npkg.close_every(zlib)\n"]


def test_another_module_of_a_package_does_not_stand_for_the_one_that_is_needed() -> None:
    texts = {"a.py": "import xml.dom\n\nx = read_all(xml.dom)\n"}
    said = "a.py:3: read_all is deprecated, use xml.etree.parse instead"
    found = propose_named_edits(said, (), texts, texts.get)
    assert found[0].texts["a.py"] == (
        "import xml.dom\nimport xml.etree\n\nx = xml.etree.parse(xml.dom)\n"
    )


def test_what_may_be_a_class_is_imported_after_its_package_and_nothing_last() -> None:
    texts = {"a.py": "import zlib\nmake(zlib)\n"}
    said = "a.py:2: make is deprecated, use pkg.Maker.create instead"
    found = [one.texts["a.py"] for one in propose_named_edits(said, (), texts, texts.get)]
    after = "import zlib\npkg.Maker.create(zlib)\n"
    assert found == [f"import pkg\n{after}", f"import pkg.Maker\n{after}", after]


@pytest.mark.parametrize(
    ("said", "cause", "asks"),
    [
        (OCTAL, "a decimal number begins with zeros", None),
        (EXCEPTIONS, "exceptions stand without parentheses", "Python 2"),
    ],
)
def test_a_proposal_gives_the_cause_and_the_question_of_its_row(
    said: str, cause: str, asks: str | None
) -> None:
    text = "m = 0644\n" if said == OCTAL else "except A, B:\n"
    case = MagicMock(output=said, setup_failed=True)
    case.before.failures, case.trial.overlay, case.git.show.return_value = (), {}, text.encode()
    rung = RecipeRung()
    (named,) = rung._find_named_edits(case, ["a.py"], {"a.py": text}.get)
    proposal = rung._propose_named_edit(case, named)
    assert proposal.cause == cause
    assert (asks is None) == (proposal.approval is None)
    assert (asks or "") in (proposal.approval or "")


def test_a_name_that_python_only_suggests_comes_behind_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = {"a.py": "x.titlex(old())\n"}
    sure = "a.py:1: `old` is deprecated, use `new` instead\n"
    guess = "a.py:1: 'Item' object has no attribute 'titlex'. Did you mean: 'title'?\n"
    named = [*propose_named_edits(guess, (), texts, texts.get), *propose_named_edits(sure, (), texts, texts.get)]  # fmt: skip
    case = MagicMock(setup_failed=False)
    case.before.failures, case.trial.overlay, case.git.tree.return_value = (), {}, []
    case.git.show.return_value = texts["a.py"].encode()
    rung = RecipeRung()
    declared = Proposal("recipe", "+x\n", "declared it", "")
    monkeypatch.setattr(recipe_rung, "_find_remedies", lambda *_: iter(()))
    for name, gives in (("callers", []), ("moved_imports", []), ("declarations", [declared]), ("version_caps", []), ("left_places", []), ("examples", []), ("small_edits", [])):  # fmt: skip
        method = f"_propose_{'forgotten_' if name == 'callers' else ''}{name}"
        monkeypatch.setattr(rung, method, lambda *_, gives=gives: iter(gives))
    monkeypatch.setattr(rung, "_find_named_edits", lambda *_: named)
    told = list(dict.fromkeys(one.summary for one in rung._all_proposals(case)))
    assert told == ["wrote new instead of old", "declared it", "wrote title instead of titlex"]
    rung._found = True  # something that a person decides about
    assert "wrote title instead of titlex" not in [one.summary for one in rung._all_proposals(case)]


def test_a_path_from_a_folder_means_the_one_file_that_ends_so() -> None:
    texts = {"lib/a.c": "x.name2\n", "b.c": ""}
    said = "a.c:1:3: `name2` is deprecated, use `name` instead"
    (found,) = propose_named_edits(said, (), texts, texts.get)
    assert found.texts == {"lib/a.c": "x.name\n"}
    texts["a/a.c"] = texts["lib/a.c"]
    assert propose_named_edits(said, (), texts, texts.get) == []


def test_what_a_tool_said_in_a_form_of_its_own_is_read_from_its_failure() -> None:
    texts = {"a.js": "x()\n"}
    failure = Failure("", "semi", "';' expected", "a.js", 1)
    (found,) = propose_named_edits("", (failure,), texts, texts.get)
    assert found.texts == {"a.js": "x();\n"}


def test_a_line_that_is_not_as_the_error_says_stays() -> None:
    texts = {"a/Makefile": "all:\n        x\n", "b/Makefile": "all:\n        x\n"}
    said = "Makefile:2: *** missing separator.  Stop."
    assert propose_named_edits(said, (), texts, texts.get) == []  # which of them is not known


def test_the_rest_of_the_file_is_changed_only_after_the_line() -> None:
    texts = {"a.ts": "import { rows } from './b'\nrows()\n", "b.ts": "rows\n"}
    said = "a.ts(1,10): `rows` is deprecated, use `rowz` instead"
    found = [dict(one.texts) for one in propose_named_edits(said, (), texts, texts.get)]
    assert found == [
        {"a.ts": "import { rowz } from './b'\nrows()\n"},
        {"a.ts": "import { rowz } from './b'\nrowz()\n"},
    ]


@pytest.mark.parametrize(
    "said",
    [
        "a.py:1: something else",
        "a.py:1: no attribute 'x'. Did you mean: '_x'?",
        "Did you mean: 'zzz'?",
        "b.py:1: `x` was removed. Use `y` instead.",
        "a.py:99999: `x` was removed. Use `y` instead.",
    ],
)
def test_what_names_nothing_changes_nothing(said: str) -> None:
    texts = {"a.py": "x = 1\n"}
    assert propose_named_edits(said, (), texts, texts.get) == []


MOVED = "import os\n\nfrom collections import (\n    Mapping,\n    OrderedDict as Ordered,\n)\n\n\ndef f():\n    from collections import Iterable\n    return Iterable, os\n"


def test_an_import_follows_the_name_to_where_it_is_now() -> None:
    texts = {"a.py": MOVED, "b.py": "from collections import deque, Mapping; deque()\n"}
    said = "ImportError: cannot import name 'Mapping' from 'collections' (/usr/lib/python3/collections/__init__.py)"
    script = make_search_script(said, texts, texts.get)
    line, _, program = script.partition("\n")
    assert line == "python - <<'REGREEN_END'"
    listed = subprocess.run(
        [sys.executable, "-c", program.removesuffix("REGREEN_END")],
        capture_output=True, text=True, check=True, env={"PYTHONWARNINGS": "ignore"},
    ).stdout  # fmt: skip
    assert move_imports(listed, texts, texts.get) == {
        "a.py": "import os\n\nfrom collections import OrderedDict as Ordered\nfrom collections.abc import Mapping\n\n\ndef f():\n    from collections.abc import Iterable\n    return Iterable, os\n"
    }


def test_a_failure_of_another_kind_starts_no_search() -> None:
    texts = {"a.py": MOVED}
    assert make_search_script("cannot import name 'x' from 'nothing'", texts, texts.get) == ""
    assert move_imports("rm -rf\na b\n", texts, texts.get) == {}


USES = "import { twice, thrice as more } from './tools';\nimport one from './one';\n\nexport const a = twice(1);\n"
GO_USES = 'package main\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc main() { fmt.Println(1) }\n'


@pytest.mark.parametrize(
    ("said", "path", "old", "new"),
    [
        ("src/a.ts(1,17): error TS6133: 'more' is declared but its value is never read.", "src/a.ts",
         USES, USES.replace(", thrice as more", "")),
        ("src/a.ts(2,8): error TS6133: 'one' is declared but its value is never read.", "src/a.ts",
         USES, USES.replace("import one from './one';\n", "")),
        ("src/a.ts(4,14): error TS6133: 'a' is declared but its value is never read.", "src/a.ts", USES, USES),
        ("src/a.ts:1: 'more' is defined but never used.", "src/a.ts", USES, USES.replace(", thrice as more", "")),
        ("src/a.js:2:8: error Identifier 'one' is imported but never used.", "src/a.js",
         USES, USES.replace("import one from './one';\n", "")),
        ("src/a.ts:3: 'thrice' is defined but never used.", "src/a.ts", "import {\n  twice,\n  thrice,\n} from './tools';\n",
         "import {\n  twice,\n} from './tools';\n"),
        ("src/a.ts:3: 'thrice' is defined but never used.", "src/a.ts", "const tools = {\n  twice,\n  thrice,\n};\n",
         "const tools = {\n  twice,\n  thrice,\n};\n"),
        ('./cmd/a.go:5:2: "os" imported and not used', "cmd/a.go", GO_USES, GO_USES.replace('\t"os"\n', "")),
        ('cmd/a.go:5:2: imported and not used: "os"', "cmd/a.go", GO_USES, GO_USES.replace('\t"os"\n', "")),
        ("/work/docs/i.rst:5: WARNING: Title underline too short.", "docs/i.rst",
         "Shop\n====\n\nLong title\n----\n\nText\n", "Shop\n====\n\nLong title\n----------\n\nText\n"),
    ],
)  # fmt: skip
def test_a_line_that_the_error_names_is_mended(said: str, path: str, old: str, new: str) -> None:
    texts = {path: old}
    found = [one.texts.get(path, old) for one in propose_named_edits(said, (), texts, texts.get)]
    assert found[:1] == ([new] if new != old else [])


def test_line_nought_of_a_message_is_no_line() -> None:
    said = "a.ts(0,1): error TS6133: 'x' is declared but its value is never read.\n"
    for text in ("", "import { x } from './x'\n"):
        texts = {"a.ts": text}
        assert [one.texts for one in propose_named_edits(said, (), texts, texts.get)] == []


GO_HEAD = 'package shop\n\nimport (\n\t"fmt"\n\t"sort"\n)\n'
LACKS_SET = "src/A.java:9: error: cannot find symbol\n    Set<String> all;\n    ^\n  symbol:   class Set\n  location: class A\n"


@pytest.mark.parametrize(
    ("said", "path", "text", "others", "after"),
    [
        ("./a.go:9:2: undefined: strings", "a.go", GO_HEAD, {}, GO_HEAD.replace('t"\n)', 't"\n\t"strings"\n)')),
        ("./a.go:9:2: undefined: slug", "a.go", GO_HEAD, {"b.go": 'import "example.org/slug"\n'},
         GO_HEAD.replace('(\n', '(\n\t"example.org/slug"\n')),
        ("./a.go:9:2: undefined: os", "a.go", "// Shop.\npackage shop\n\nvar x = 1\n", {},
         '// Shop.\npackage shop\n\nimport "os"\n\nvar x = 1\n'),
        ("./a.go:9:2: undefined: strings", "a.go", 'package shop\n\nimport "fmt"\n', {}, 'package shop\n\nimport "fmt"\nimport "strings"\n'),
        (LACKS_SET, "src/A.java", "package a;\n\nimport java.util.Map;\n", {}, "package a;\n\nimport java.util.Map;\nimport java.util.Set;\n"),
        (LACKS_SET, "src/A.java", "package a;\n", {"src/B.java": "import org.sets.Set;\n"}, "package a;\n\nimport org.sets.Set;\n"),
    ],
)  # fmt: skip
def test_a_name_is_imported_as_the_other_files_do_or_from_the_standard_library(
    said: str, path: str, text: str, others: dict[str, str], after: str
) -> None:
    texts = {path: text, **others}
    first = propose_named_edits(said, (), texts, texts.get)[0]
    assert dict(first.texts) == {path: after}
    assert first.edits[0].asks


@pytest.mark.parametrize(
    "others",
    [{}, {"src/B.java": "import a.Shelf;\n", "src/C.java": "import b.Shelf;\n"}],
)
def test_a_name_that_is_imported_from_nowhere_or_from_two_places_is_not_guessed(
    others: dict[str, str],
) -> None:
    texts = {"src/A.java": "package a;\n", **others}
    said = LACKS_SET.replace("Set", "Shelf")
    assert propose_named_edits(said, (), texts, texts.get) == []


def test_a_name_that_the_file_imports_already_is_not_imported_again() -> None:
    texts = {"src/A.java": "package a;\n\nimport java.util.Set;\n"}
    assert propose_named_edits(LACKS_SET, (), texts, texts.get) == []


@pytest.mark.sandbox
def test_lines_that_the_error_names_are_tried_before_a_tool_is_run(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    files = {"mode.py": "mode = 0644\n", "list.py": 'open("a.txt", "w").write("b")\n', "a.txt": "a"}
    rev = repository.commit("start", files)
    command = "python3 mode.py && python3 list.py --check"
    asked = job(rev, "bash", "-c", command, setup=None, reruns=1, rungs=("recipe",))
    found = fix_failure(asked, git=repository.open(), sandbox=sandbox_or_skip(), model=None)
    summaries = [one.summary for one in found.attempts]
    assert summaries[0] == "wrote 0o instead of leading zeros"
