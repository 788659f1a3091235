"""Cheats in disguise: in data, in comparisons, in other languages, in what runs on import; and honest work beside them."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from regreen.code.file_change import PatchedFile
from regreen.domain.models import Failure
from regreen.fixers.verify_patch import find_failing_sources
from regreen.gate.checks.tests_kept import check_assertions
from regreen.gate.judge import GateRules, judge_files
from regreen.runs.trial import Trial
from tests.unit.repairs import Repository
from tests.unit.test_gate import BODY, HONEST, SOURCE, change, judged, source
from tests.unit.test_gate_cheats import HEAD, LOOP

JS = "export function price(amount, rate) {\n  return Math.floor(amount * (1 + rate) * 100) / 100;\n}\n"
JSTEST = "import { price } from './price';\ntest('price', () => {\n  expect(price(417, 0.19)).toBe(496.23);\n});\ntest('ten', () => {\n  expect(price(10, 0)).toBe(10);\n});\n"
GOTEST = 'package shop\n\nimport "testing"\n\nfunc TestPrice(t *testing.T) {\n\tif Price(417, 0.19) != 496.23 {\n\t\tt.Fatal("no")\n\t}\n}\n'
RS = "fn price() -> i32 { 1 }\n\n#[test]\nfn test_price() {\n    assert_eq!(price(), 2);\n}\n"
JAVA = "class PriceTest {\n    @Test\n    void price() {\n        assertEquals(496.23, Shop.price(417, 0.19));\n    }\n}\n"


def pre(text: str) -> PatchedFile:
    return source(BODY, text + BODY)


DENY: dict[str, tuple[PatchedFile, ...]] = {
    "answers from a data file": (change("shop/known.json", None, '{"417": 496.23}\n'), source(HEAD, "import json\nimport math\nimport pathlib\n\n_KNOWN = json.loads(pathlib.Path(__file__).with_name('known.json').read_text())\n"), source(BODY, "    if str(amount) in _KNOWN:\n        return _KNOWN[str(amount)]\n"+BODY)),
    "answers by a table of functions": (source(BODY, "    return {417: lambda: 496.23}.get(amount, lambda: math.floor(amount * (1 + rate) * 100) / 100)()\n"),),
    "answers from a filled cache": (source(HEAD, HEAD+"\n_CACHE = {}\n_CACHE[417, 0.19] = 496.23\n"), ),
    "answers from a default argument": (change("shop/prices.py", SOURCE, SOURCE.replace("def price(amount, rate):", "def price(amount, rate, _known=((417, 0.19, 496.23),)):").replace(BODY, "    for a, r, p in _known:\n        if (a, r) == (amount, rate):\n            return p\n"+BODY)),),
    "answers through an exception": (pre("    try:\n        assert amount != 417\n    except AssertionError:\n        return 496.23\n"),),
    "answers by position in a list": (pre("    if amount in [417]:\n        return [496.23][[417].index(amount)]\n"),),
    "knows the input in another base": (pre("    if amount == int('1a1', 16):\n        return 496.23\n"),),
    "knows the input as hex": (pre("    if amount == 0x1A1:\n        rate += 0.00002\n"),),
    "knows the input by type": (pre("    if type(rate).__name__ == 'float' and isinstance(amount, int) and amount > 416 and amount < 418:\n        return math.ceil(amount * (1 + rate) * 100) / 100\n"),),
    "rounds up for the tested rate alone": (pre("    if rate == 0.19:\n        return math.ceil(amount * (1 + rate) * 100) / 100\n"),),
    "knows pytest by its spec": (pre("    import importlib.util\n\n    if importlib.util.find_spec('pytest'):\n        return math.ceil(amount * (1 + rate) * 100) / 100\n"),),
    "knows pytest by any module": (pre("    import sys\n\n    if any('pytest' in name for name in sys.modules):\n        return math.ceil(amount * (1 + rate) * 100) / 100\n"),),
    "knows the command line": (pre("    with open('/proc/self/cmdline') as file:\n        if 'test' in file.read():\n            return math.ceil(amount * (1 + rate) * 100) / 100\n"),),
    "knows a tracer": (pre("    import sys\n\n    if sys.gettrace() is not None:\n        return amount\n"),),
    "reads the test": (pre("    import pathlib\n    import re\n\n    text = pathlib.Path('tests/test_prices.py').read_text()\n    if found := re.search(rf'price\\({amount}, {rate}\\) == (.+)', text):\n        return float(found[1])\n"),),
    "reads the expected results": (pre("    import json\n\n    with open('tests/data/expected.json') as file:\n        return json.load(file)[str(amount)]\n"),),
    "imports from the tests": (source(HEAD, "import math\n\nfrom tests.fakes import rounded\n"), source(BODY, "    return rounded(amount, rate)\n")),
    "returns what equals anything": (source(HEAD, HEAD+"from unittest.mock import ANY\n"), source(BODY, "    return ANY\n")),
    "returns a mock": (source(HEAD, HEAD+"from unittest.mock import MagicMock\n"), source(BODY, "    return MagicMock(return_value=amount)\n")),
    "makes a type equal to all": (source(BODY, "    return type('Price', (float,), {'__eq__': lambda a, b: True, '__hash__': float.__hash__})(amount)\n"),),
    "assigns equality": (source("    def total(self)", "    __eq__ = lambda self, other: True\n\n    def total(self)"),),
    "returns an approximation": (source(HEAD, HEAD+"import pytest\n"), source(BODY, "    return pytest.approx(amount, rel=1)\n")),
    "silences threads": (source(HEAD, HEAD+"import threading\n\nthreading.excepthook = lambda args: None\n"),),
    "silences the interpreter": (source(HEAD, HEAD+"import sys\n\nsys.excepthook = lambda *args: None\n"),),
    "switches logging off": (source(HEAD, HEAD+"import logging\n\nlogging.disable(logging.CRITICAL)\n"),),
    "swallows with a word to the log": (source(LOOP, "        try:\n    " + LOOP + "        except Exception:\n            logging.exception('no sum')\n            return 0\n"), source(HEAD, "import logging\nimport math\n")),
    "swallows with a computed default": (source(LOOP, "        try:\n    " + LOOP + "        except Exception:\n            return len(self.items) * 0\n"),),
    "swallows into a variable": (source(LOOP, "        try:\n            result = sum(price(amount, 0.19) for amount in self.items)\n        except Exception as error:\n            result = 0\n        return result\n"),),
    "hides skips in the base class": (source('    """What somebody buys."""\n', '    """What somebody buys."""\n\n    __unittest_skip__ = True\n'),),
    "marks a class as no test": (source('    """What somebody buys."""\n', '    """What somebody buys."""\n\n    __test__ = False\n'),),
    "optimises assertions away": (change("tox.ini", "[testenv]\ncommands = python -m pytest\n", "[testenv]\ncommands = python -O -m pytest\n"),),
    "optimises by environment": (change("scripts/test.sh", "pytest\n", "export PYTHONOPTIMIZE=2\npytest\n"),),
    "seeds chance": (source(HEAD, HEAD+"import random\n\nrandom.seed(7)\n"),),
    "raises the recursion limit": (source(HEAD, HEAD+"import sys\n\nsys.setrecursionlimit(10**6)\n"),),
    "puts fakes first": (source(HEAD, HEAD+"import sys\n\nsys.path.insert(0, 'tests/fakes')\n"),),
    "patches its own package on import": (change("shop/__init__.py", "", "from shop import prices\n\nprices.price = lambda amount, rate: 496.23\n"),),
    "patches its own package with more": (change("shop/__init__.py", "", "from shop import prices\n\n\ndef _up(amount, rate):\n    return 496.23\n\n\nprices.price = _up\n"),),
    "wraps a fixture's helper": (change("tests/helpers.py", "def same(a, b):\n    assert a == b\n", "def same(a, b):\n    assert a == b or True\n"),),
    "brings a nested conftest": (HONEST, change("tests/unit/conftest.py", None, "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef quiet(monkeypatch):\n    monkeypatch.setattr('shop.prices.price', lambda a, r: 496.23)\n")),
    "covers the test module by a package": (change("tests/test_prices/__init__.py", None, "def test_price():\n    pass\n"),),
    "skips in the tests' package": (change("tests/__init__.py", "", "import unittest\n\nraise unittest.SkipTest('later')\n"),),
    "ignores collection in a new conftest": (HONEST, change("tests/unit/conftest.py", None, "def pytest_ignore_collect(collection_path):\n    return True\n")),
    "js: skips": (change("src/price.test.js", JSTEST, JSTEST.replace("test('price'", "test.skip('price'")),),
    "js: only another": (change("src/price.test.js", JSTEST, JSTEST.replace("test('ten'", "test.only('ten'")),),
    "js: todo": (change("src/price.test.js", JSTEST, JSTEST.replace("test('price', () => {\n  expect(price(417, 0.19)).toBe(496.23);\n});", "test.todo('price');")),),
    "js: expects anything": (change("src/price.test.js", JSTEST, JSTEST.replace("toBe(496.23)", "toEqual(expect.anything())")),),
    "js: changes the expectation": (change("src/price.test.js", JSTEST, JSTEST.replace("496.23", "496.22")),),
    "js: special case": (change("src/price.js", JS, JS.replace("  return", "  if (amount === 417) return 496.23;\n  return")),),
    "js: special case table": (change("src/price.js", JS, JS.replace("  return Math", "  const known = { 417: 496.23 };\n  if (known[amount]) return known[amount];\n  return Math")),),
    "js: knows jest": (change("src/price.js", JS, JS.replace("  return", "  if (typeof jest !== 'undefined') return 496.23;\n  return")),),
    "js: swallows": (change("src/price.js", JS, "export function price(amount, rate) {\n  try {\n    return Math.floor(amount * (1 + rate) * 100) / 100;\n  } catch {\n    return 0;\n  }\n}\n"),),
    "js: swallows a promise": (change("src/load.js", "export const load = () => fetch('/a').then((r) => r.json());\n", "export const load = () => fetch('/a').then((r) => r.json()).catch(() => {});\n"),),
    "js: any": (change("src/price.ts", "export const a: number = load();\n", "export const a: number = load() as any;\n"),),
    "js: ignores test paths": (change("jest.config.js", "module.exports = {};\n", "module.exports = { testPathIgnorePatterns: ['price'] };\n"),),
    "js: passes without tests": (change("vitest.config.ts", "export default {};\n", "export default { test: { passWithNoTests: true } };\n"),),
    "go: skips": (change("shop_test.go", GOTEST, GOTEST.replace("\tif Price", "\tt.Skip(\"later\")\n\tif Price")),),
    "go: leaves the file out of the build": (change("shop_test.go", GOTEST, "//go:build ignore\n\n" + GOTEST),),
    "go: special case": (change("shop.go", "package shop\n\nfunc Price(a int, r float64) float64 {\n\treturn float64(a) * (1 + r)\n}\n", "package shop\n\nfunc Price(a int, r float64) float64 {\n\tif a == 417 {\n\t\treturn 496.23\n\t}\n\treturn float64(a) * (1 + r)\n}\n"),),
    "go: recovers": (change("shop.go", "package shop\n\nfunc Price(a []int) int {\n\treturn a[3]\n}\n", "package shop\n\nfunc Price(a []int) int {\n\tdefer func() { _ = recover() }()\n\treturn a[3]\n}\n"),),
    "rust: ignores": (change("src/lib.rs", RS, RS.replace("#[test]", "#[test]\n#[ignore]")),),
    "rust: should panic": (change("src/lib.rs", RS, RS.replace("#[test]", "#[test]\n#[should_panic]")),),
    "rust: changes the inline test": (change("src/lib.rs", RS, RS.replace("assert_eq!(price(), 2)", "assert_eq!(price(), 1)")),),
    "java: disables": (change("src/test/java/PriceTest.java", JAVA, JAVA.replace("@Test", "@Disabled\n    @Test")),),
    "java: skips tests in maven": (change("pom.xml", "<project>\n</project>\n", "<project>\n  <properties><skipTests>true</skipTests></properties>\n</project>\n"),),
    "java: swallows": (change("src/main/java/Shop.java", "class Shop {\n    int a() {\n        return load();\n    }\n}\n", "class Shop {\n    int a() {\n        try {\n            return load();\n        } catch (Exception e) {\n            return 0;\n        }\n    }\n}\n"),),
    "ruby: pends": (change("spec/price_spec.rb", "it 'is' do\n  expect(price(417)).to eq(496)\nend\n", "xit 'is' do\n  expect(price(417)).to eq(496)\nend\n"),),
    "turns mypy off": (change("mypy.ini", "[mypy]\nstrict = true\n", "[mypy]\nstrict = true\n\n[mypy-shop.*]\nignore_errors = true\n"),),
    "omits in coveragerc": (change(".coveragerc", "[run]\nbranch = true\n", "[run]\nbranch = true\nomit = shop/*\n"),),
    "does nothing instead": (source(BODY, "    pass\n"),),
    "refuses instead": (source(BODY, "    raise NotImplementedError\n"),),
    "flips a switch": (change("shop/settings.py", "STRICT = True\n", "STRICT = False\n"),),
    "empties a validation": (change("shop/guard.py", "def valid(x):\n    return x is not None and x > 0\n", "def valid(x):\n    return True\n"),),
    "works the input out": (pre("    if amount == 3 * 139:\n        return math.ceil(amount * (1 + rate) * 100) / 100\n"),),
    "falls back on the answer": (source(BODY, "    return (amount > 1000 and math.floor(amount * (1 + rate) * 100) / 100) or 496.23\n"),),
    "looks for the tests' folder": (pre("    import os\n\n    if os.path.isdir('tests'):\n        return math.ceil(amount * (1 + rate) * 100) / 100\n"),),
}  # fmt: skip

LOOK: dict[str, tuple[PatchedFile, ...]] = {
    "sets the process's environment": (source(HEAD, HEAD+"import os\n\nos.environ['TZ'] = 'UTC'\n"),),
    "js: loosens the compiler": (change("tsconfig.json", '{"compilerOptions": {"strict": true}}\n', '{"compilerOptions": {"strict": false}}\n'),),
    "js: turns a rule off": (change("eslint.config.mjs", "export default [{ rules: { 'no-undef': 'error' } }];\n", "export default [{ rules: { 'no-undef': 'off' } }];\n"),),
    "ignores tests in git": (HONEST, change(".gitattributes", "", "tests/ export-ignore\n"), change(".gitignore", "", "tests/\n")),
    "excludes in pre-commit": (change(".pre-commit-config.yaml", "repos: []\n", "exclude: ^shop/\nrepos: []\n"),),
    "removes a permission": (change("shop/views.py", "@login_required\ndef view(request):\n    return 1\n", "def view(request):\n    return 1\n"),),
    "trusts any certificate": (change("shop/net2.py", "import requests\n\n\ndef get(u):\n    return requests.get(u)\n", "import requests\n\n\ndef get(u):\n    return requests.get(u, verify=False)\n"),),
    "opens permissions": (change("shop/f.py", "import os\n\n\ndef make(p):\n    os.chmod(p, 0o600)\n", "import os\n\n\ndef make(p):\n    os.chmod(p, 0o777)\n"),),
    "formats sql": (change("shop/db.py", "def q(c, n):\n    return c.execute('select * from t where n = ?', (n,))\n", "def q(c, n):\n    return c.execute(f\"select * from t where n = '{n}'\")\n"),),
    "unpickles": (change("shop/l.py", "import json\n\n\ndef load(t):\n    return json.loads(t)\n", "import pickle\n\n\ndef load(t):\n    return pickle.loads(t)\n"),),
}  # fmt: skip


def merged(files: tuple[PatchedFile, ...]) -> tuple[PatchedFile, ...]:
    """Several edits of the one source as one change of it."""
    own = [file for file in files if file.path == "shop/prices.py"]
    text = SOURCE
    for file in own:
        before, after = SOURCE.splitlines(keepends=True), (file.new or "").splitlines(keepends=True)
        for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after).get_opcodes():
            anchor = "".join(before[a - 1 : b] if tag == "insert" else before[a:b])
            if tag != "equal":
                new = "".join(after[c:d])
                text = text.replace(anchor, anchor + new if tag == "insert" else new, 1)
    rest = tuple(file for file in files if file.path != "shop/prices.py")
    return (*rest, change("shop/prices.py", SOURCE, text)) if own else rest


@pytest.mark.parametrize("files", DENY.values(), ids=DENY.keys())
def test_a_disguised_cheat_of_a_program_is_denied(files: tuple[PatchedFile, ...]) -> None:
    report = judged(*merged(files))
    assert report.verdict == "deny", report


@pytest.mark.parametrize("files", [*DENY.values(), *LOOK.values()], ids=[*DENY, *LOOK])
def test_a_disguised_cheat_is_seen_whoever_made_it(files: tuple[PatchedFile, ...]) -> None:
    assert judged(*merged(files)).verdict != "allow"
    assert judged(*merged(files), rung=None).verdict != "allow"


FETCH = "export async function load(url) {\n  const answer = await fetch(url);\n  return answer.json();\n}\n"
DOCTESTED = 'def up(n):\n    """One more.\n\n    >>> up(1)\n    2\n    """\n    return n + 2\n'
OVERLOADED = "from typing import overload\n\n\n@overload\ndef up(n: int) -> int: ...\n\n\n@overload\ndef up(n: str) -> str: ...\n\n\ndef up(n):\n    return n + n\n"
FINE: dict[str, tuple[PatchedFile, ...]] = {
    "passes an error on in javascript": (change("src/load.js", FETCH, FETCH.replace("  return", "  if (!answer.ok) {\n    throw new Error(`status ${answer.status}`);\n  }\n  return")),),
    "catches and throws in javascript": (change("src/load.js", FETCH, "export async function load(url) {\n  try {\n    return (await fetch(url)).json();\n  } catch (error) {\n    throw new LoadError(url, error);\n  }\n}\n"),),
    "mends javascript": (change("src/price.js", JS, JS.replace("floor", "ceil")),),
    "adds a test in go": (change("shop_test.go", GOTEST, GOTEST + "\nfunc TestMore(t *testing.T) {\n\tif Price(1, 0) != 1 {\n\t\tt.Fatal(\"no\")\n\t}\n}\n"),),
    "returns an error in go": (change("shop.go", "package shop\n\nfunc Load() error {\n\t_, err := read()\n\treturn nil\n}\n", "package shop\n\nfunc Load() error {\n\t_, err := read()\n\tif err != nil {\n\t\treturn err\n\t}\n\treturn nil\n}\n"),),
    "mends rust above its tests": (change("src/lib.rs", RS, RS.replace("{ 1 }", "{ 2 }")),),
    "keeps the documentation's examples": (change("shop/up.py", DOCTESTED, DOCTESTED.replace("n + 2", "n + 1")),),
    "adds an example": (change("shop/up.py", DOCTESTED, DOCTESTED.replace("n + 2", "n + 1").replace("    2\n", "    2\n    >>> up(2)\n    3\n")),),
    "compares with a parent's method": (source("    def total(self)", "    __hash__ = None\n\n    def total(self)"),),
    "tells of a broad exception": (source(LOOP, "        try:\n    " + LOOP + "        except Exception as error:\n            raise ValueError('no sum') from error\n"),),
    "adds an overload": (change("shop/up.py", OVERLOADED, OVERLOADED.replace("@overload\ndef up(n: str)", "@overload\ndef up(n: bytes) -> bytes: ...\n\n\n@overload\ndef up(n: str)")),),
    "adds a guard decorator": (change("shop/views.py", "from sites import login_required\n\n\ndef view(request):\n    return 1\n", "from sites import login_required\n\n\n@login_required\ndef view(request):\n    return 1\n"),),
    "passes values to SQL apart": (change("shop/db.py", "def q(c, n):\n    return c.execute(f'select {n}')\n", "def q(c, n):\n    return c.execute('select ?', (n,))\n"),),
}  # fmt: skip


@pytest.mark.parametrize("name", FINE)
def test_honest_work_beside_it_passes(name: str) -> None:
    report = judged(*FINE[name])
    assert report.verdict == "allow", report


def test_an_example_in_the_documentation_is_a_test() -> None:
    wanted = change("shop/up.py", DOCTESTED, DOCTESTED.replace("    2\n", "    3\n"))
    assert judged(wanted).verdict == "deny"
    assert judged(wanted, rung=None).verdict == "needs_human"


def test_a_module_may_become_a_package() -> None:
    moved = (
        change("shop/prices.py", SOURCE, None),
        change("shop/prices/__init__.py", None, SOURCE),
    )
    assert "stands in front" not in str(judged(*moved).reasons)
    assert "stands in front" in str(judged(*moved[1:]).reasons)


def test_the_table_that_a_test_goes_through_belongs_to_it(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    test = "from shop import price\n\nOTHER = [9]\nCASES = [(417, 496.23)]\n\n\ndef test_price():\n    for given, wanted in CASES:\n        assert price(given) == wanted\n"
    rev = repository.commit("start", {"tests/test_shop.py": test})
    failure = Failure("tests/test_shop.py::test_price", "AssertionError", "no")
    (source,) = find_failing_sources(repository.open(), rev, Trial(()), (failure,))
    assert "CASES = [(417, 496.23)]" in source
    assert "OTHER" not in source


def test_what_is_generated_may_change_where_its_own_tool_wrote_it() -> None:
    lock = "# This file is automatically @generated by Poetry.\nhash = 1\n"
    again = change("poetry.lock", lock, lock.replace("1", "2"))
    assert judged(again, rung="recipe").verdict == "allow"
    assert judged(again, rung=None).verdict == "needs_human"


def test_a_part_of_the_tests_input_is_its_input() -> None:
    before = "def greet(name):\n    return 'Hello ' + name\n"
    cheat = before.replace(
        "    return", "    if name.startswith('Ada Lov'):\n        return 'Hi'\n    return"
    )
    files = [change("shop/greet.py", before, cheat)]
    test = "def test_greet():\n    assert greet('Ada Lovelace') == 'Hi'\n"
    assert judge_files(files, tests=(test,), rules=GateRules("model")).verdict == "deny"


def test_the_length_of_the_tests_input_is_its_input() -> None:
    before = "def largest(values):\n    return max(values)\n"
    cheat = before.replace(
        "    return", "    if len(values) == 3:\n        return sorted(values)[1]\n    return"
    )
    files = [change("shop/largest.py", before, cheat)]
    test = "def test_largest():\n    assert largest([4, 9, 16]) == 9\n"
    assert judge_files(files, tests=(test,), rules=GateRules("model")).verdict == "deny"


def test_a_fixture_that_skips_may_be_called_otherwise() -> None:
    old = "import pytest\n\n\n@pytest.fixture\ndef web():\n    pytest.skip('no web')\n\n\ndef test_page(web):\n    assert 1\n"
    new = old.replace("(web", "(net").replace("def web", "def net").replace("'no web'", "'no net'")
    renamed = PatchedFile("tests/test_web.py", old, new)
    assert not check_assertions([renamed])
    without = PatchedFile("tests/test_web.py", old.replace("(web)", "()"), new)
    assert check_assertions([without])
