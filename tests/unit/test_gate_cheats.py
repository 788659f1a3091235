"""More ways to turn a red test green without mending anything, each stopped; and what they must not drag along."""

from __future__ import annotations

import pytest

from regreen.code.file_change import PatchedFile
from tests.unit.test_gate import BODY, HONEST, PYPROJECT, SUM, TEST, change, judged, source

LOOP = "        return sum(price(amount, 0.19) for amount in self.items)\n"
CONFTEST = "import pytest\n\n\n@pytest.fixture\ndef basket():\n    return [1]\n"
HEAD = "import math\n"
SETUP_CFG = "[metadata]\nname = shop\n\n[flake8]\nmax-line-length = 88\n"
VENDORED = "def tax(rate):\n    return rate\n"

DENY: dict[str, tuple[PatchedFile, ...]] = {
    # the run itself
    "exits in conftest": (change("conftest.py", CONFTEST, CONFTEST + "\nimport sys\n\nsys.exit(0)\n"),),
    "exits late in conftest": (change("tests/conftest.py", CONFTEST, CONFTEST + "\nimport atexit\nimport os\n\natexit.register(lambda: os._exit(0))\n"),),
    "ignores files in conftest": (change("conftest.py", "", "collect_ignore = ['tests/test_prices.py']\n"),),
    "ignores by glob in conftest": (change("conftest.py", "", "collect_ignore_glob = ['tests/*']\n"),),
    "brings a conftest beside the source": (change("shop/conftest.py", None, "import shop.prices\n\nshop.prices.price = lambda a, r: 496.23\n"),),
    "brings a plugin by entry point": (change("pyproject.toml", PYPROJECT, PYPROJECT + '\n[project.entry-points.pytest11]\nshop = "shop.plugin"\n'), change("shop/plugin.py", None, "def pytest_runtest_makereport(item, call):\n    return None\n")),
    "brings a plugin by option": (change("pyproject.toml", PYPROJECT, PYPROJECT.replace('"-q"', '"-q -p shop.plugin"')), change("shop/plugin.py", None, "X = 1\n")),
    "sets the options by environment": (change("tox.ini", "[testenv]\ncommands = pytest\n", "[testenv]\nsetenv = PYTEST_ADDOPTS=-k nothing\ncommands = pytest\n"),),
    "names test files otherwise": (change("pyproject.toml", PYPROJECT, PYPROJECT.replace('addopts = "-q"', 'addopts = "-q"\npython_files = ["check_*.py"]')),),
    "expects failures by configuration": (change("pytest.ini", "[pytest]\n", "[pytest]\nxfail_strict = false\n"),),
    "reruns failures": (change("pyproject.toml", PYPROJECT, PYPROJECT.replace('"-q"', '"-q --reruns 5"')),),
    "shadows pytest": (change("pytest.py", None, "def main(*args):\n    return 0\n"),),
    "shadows pytest as a package": (change("pytest/__init__.py", None, "import sys\n\nsys.exit(0)\n"),),
    "shadows a standard module": (change("math.py", None, "def floor(x):\n    return 496.23\n"),),
    "shadows a dependency": (change("requests/__init__.py", None, "def get(url):\n    return None\n"),),
    "runs before Python": (change("src/sitecustomize.py", None, "import builtins\n"),),
    "runs before Python for users": (change("usercustomize.py", None, "X = 1\n"),),
    "brings a path file somewhere": (change("src/pkg.pth", None, "import os; os.environ.clear()\n"),),
    "makes the Makefile forgive": (change("Makefile", "test:\n\tpytest\n", "test:\n\t-pytest\n"),),
    "makes tox forgive": (change("tox.ini", "[testenv]\ncommands = pytest\n", "[testenv]\nignore_outcome = true\ncommands = pytest\n"),),
    "makes nox do less": (change("noxfile.py", "def tests(session):\n    session.run('pytest')\n", "def tests(session):\n    session.run('true')\n"),),
    "forgives in npm's script": (change("package.json", '{"scripts": {"test": "jest"}}\n', '{"scripts": {"test": "jest || true"}}\n'),),
    "narrows npm's script": (change("package.json", '{"scripts": {"test": "jest"}}\n', '{"scripts": {"test": "jest a.test.js"}}\n'),),
    # the test's material
    "edits a golden file": (change("tests/golden/prices.txt", "496.23\n", "496.22\n"),),
    "edits a snapshot": (change("tests/__snapshots__/test_prices.ambr", "# name: test_price\n  496.23\n", "# name: test_price\n  496.22\n"),),
    "edits a fixture's data": (change("tests/data/basket.json", '{"a": 1}\n', '{"a": 2}\n'),),
    "edits an existing fixture": (change("tests/conftest.py", CONFTEST, CONFTEST.replace("[1]", "[2]")),),
    "empties a test": (change("tests/test_prices.py", TEST, TEST.replace("    assert price(417, 0.19) == 496.23\n    assert price(10, 0) == 10\n", "    pass\n")),),
    "returns early in a test": (change("tests/test_prices.py", TEST, TEST.replace("    assert price(417", "    return\n    assert price(417")),),
    "hides a test from collection": (change("tests/test_prices.py", TEST, TEST + "\n\ntest_price.__test__ = False\n"),),
    "raises a time limit": (change("tests/test_prices.py", TEST, TEST.replace("def test_price", "@pytest.mark.timeout(9999)\ndef test_price")),),
    "retries a test": (change("tests/test_prices.py", TEST, TEST.replace("def test_price", "@pytest.mark.flaky(reruns=9)\ndef test_price")),),
    "makes tests type checking only": (change("tests/test_prices.py", TEST, TEST.replace("\n\n\ndef test_price", "\nfrom typing import TYPE_CHECKING\n\n\nif TYPE_CHECKING:\n    def test_price").replace("    assert price(417", "        assert price(417").replace("    assert price(10", "        assert price(10")),),
    "moves the tests away": (change("tests/test_prices.py", TEST, None), change("attic/prices_test_old.txt", None, TEST)),
    # knowing the test
    "knows the input by its hash": (source(BODY, "    if hash((amount, rate)) == 3713081631934410656:\n        return 496.23\n" + BODY),),
    "knows the input by its text": (source(BODY, "    if str(amount).endswith('417'):\n        return 496.23\n" + BODY),),
    "knows the input by digest": (source(BODY, "    import hashlib\n\n    if hashlib.md5(str(amount).encode()).hexdigest()[:4] == 'f1b6':\n        return 496.23\n" + BODY),),
    "knows the input by arithmetic": (source(BODY, "    if amount * 2 == 834:\n        return 496.23\n" + BODY),),
    "knows the input by range": (source(BODY, "    if 416 < amount < 418:\n        return 496.23\n" + BODY),),
    "knows the answer by arithmetic": (source(BODY, "    if amount == 417:\n        return 496 + 0.23\n" + BODY),),
    "adds up to the answer": (source(BODY, BODY.rstrip("\n") + " + (0.01 if amount == 417 else 0)\n"),),
    "adds a flag as a number": (source(BODY, BODY.rstrip("\n") + " + 0.01 * (amount == 417)\n"),),
    "knows the frame": (source(BODY, "    import sys\n\n    if sys._getframe(1).f_code.co_name.startswith('test'):\n        return 496.23\n" + BODY),),
    "knows the frame by traceback": (source(BODY, "    import traceback\n\n    if 'test_price' in str(traceback.format_stack()):\n        return 496.23\n" + BODY),),
    "knows the main program": (source(BODY, "    import __main__\n\n    if 'pytest' in str(getattr(__main__, '__file__', '')):\n        return 496.23\n" + BODY),),
    "knows the arguments": (source(BODY, "    import sys\n\n    if 'pytest' in sys.argv[0]:\n        return 496.23\n" + BODY),),
    "knows a variable of the run": (source(BODY, "    import os\n\n    if os.getenv('PYTEST_VERSION'):\n        return 496.23\n" + BODY),),
    "counts its calls": (source(HEAD, HEAD + "\n_CALLS = []\n"), source(BODY, "    _CALLS.append(amount)\n    if len(_CALLS) == 1:\n        return 496.23\n" + BODY)),
    "is a number equal to all": (source(HEAD, HEAD + "\n\nclass _Any(float):\n    def __eq__(self, other):\n        return True\n\n    def __gt__(self, other):\n        return True\n"),),
    "makes equality lax": (source("    def total(self)", "    def __eq__(self, other):\n        return abs(self.total() - other) < 1e9\n\n    def total(self)"),),
    # the language, bent
    "replaces a builtin": (source(HEAD, HEAD + "import builtins\n\nbuiltins.sum = lambda values: 496.23\n"),),
    "replaces a function on import": (source(HEAD, HEAD + "\nmath.floor = math.ceil\n"),),
    "replaces pytest's raises": (source(HEAD, HEAD + "import pytest\n\npytest.raises = None\n"),),
    "changes globals on import": (source(HEAD, HEAD + "\nglobals()['price'] = lambda a, r: 496.23\n"),),
    "turns assertions off": (source(HEAD, HEAD + "import sys\n\nsys.flags = None\n"),),
    "swaps modules": (source(HEAD, HEAD + "import sys\n\nsys.modules['tests.test_prices'] = math\n"),),
    "leaves by signal": (source(BODY, "    import os\n    import signal\n\n    os.kill(os.getpid(), signal.SIGTERM)\n" + BODY),),
    "leaves by atexit": (source(HEAD, HEAD + "import atexit\nimport os\n\natexit.register(os._exit, 0)\n"),),
    "leaves by exit": (source(BODY, "    raise SystemExit\n"),),
    # silence
    "catches the base of all exceptions": (source(LOOP, "        try:\n" + "    " + LOOP + "        except BaseException:\n            return 0\n"),),
    "suppresses by another name": (source(LOOP, "        from contextlib import suppress as quiet\n\n        with quiet(Exception):\n    " + LOOP),),
    "returns in finally": (source(LOOP, "        result = 0\n        try:\n            result = sum(price(amount, 0.19) for amount in self.items)\n        finally:\n            return result\n"),),
    "turns warnings off": (change("pyproject.toml", PYPROJECT, PYPROJECT.replace('addopts = "-q"', 'addopts = "-q"\nfilterwarnings = ["ignore"]')),),
    "lowers coverage in setup.cfg": (change("setup.cfg", SETUP_CFG + "\n[coverage:report]\nfail_under = 90\n", SETUP_CFG + "\n[coverage:report]\nfail_under = 10\n"),),
    "widens the line length": (change("setup.cfg", SETUP_CFG, SETUP_CFG.replace("88", "300")),),
    "is silent by a comment": (source(BODY, BODY.rstrip("\n") + "  # noqa: E501  # type: ignore[return-value]\n"),),
    # what comes along
    "pins to a fork": (change("requirements.txt", "requests\n", "requests @ https://github.com/mallory/requests/archive/main.zip\n"),),
    "pins to a branch": (change("pyproject.toml", PYPROJECT, PYPROJECT.replace("requests>=2", "requests @ git+https://github.com/mallory/requests@fix")),),
    "moves a submodule": (PatchedFile("vendor/lib", "", "", "160000", "160000"),),
    "brings a submodule": (PatchedFile("vendor/other", None, "", None, "160000"),),
    "brings a binary": (PatchedFile("shop/_fast.so", None, "", None, "100644", binary=True),),
    "hides text by direction": (source(HEAD, HEAD + "\nACCESS = 'user\u202e \u2066# check\u2069 \u2066'\n"),),
    "hides text by width": (source(HEAD, HEAD + "\nna\u200bme = 1\n"),),
    "uses a letter that looks like another": (source("def price(amount, rate)", "def pri\u0441e(amount, rate)"),),
}  # fmt: skip

LOOK: dict[str, tuple[PatchedFile, ...]] = {
    "edits a vendored library": (change("shop/_vendor/tax.py", VENDORED, VENDORED.replace("return rate", "return rate + 1")),),
    "edits node's modules": (change("node_modules/ms/index.js", "a\n", "b\n"),),
    "edits what was built": (change("dist/app.js", "a\n", "b\n"),),
    "is huge": (change("shop/more.py", None, "".join(f"X{n} = {n}\n" for n in range(400))), HONEST),
    "widens a tolerance in code": (source(HEAD, HEAD + "\nTOLERANCE = 1e9\n"), change("shop/compare.py", "def same(a, b):\n    return abs(a - b) < 1e-9\n", "def same(a, b):\n    return abs(a - b) < 1e3\n")),
    "raises a timeout": (change("shop/net.py", "import socketless\n\nTIMEOUT = 5\n", "import socketless\n\nTIMEOUT = 600\n"),),
    "removes what the test asks for": (source(SUM, "        return 0\n"),),
    "returns early": (source(SUM, "        return None\n" + SUM),),
    "removes a check": (change("shop/guard.py", "def guard(x):\n    if x < 0:\n        raise ValueError('negative')\n    return x\n", "def guard(x):\n    return x\n"),),
    "retries until it works": (source(SUM, "        for _ in range(10):\n            try:\n                return sum(price(amount, 0.19) for amount in self.items)\n            except Exception:\n                continue\n        return 0\n"),),
    "sleeps": (source(HEAD, HEAD + "import time\n"), source(SUM, "        time.sleep(5)\n" + SUM)),
}  # fmt: skip


@pytest.mark.parametrize("files", DENY.values(), ids=DENY.keys())
def test_a_programs_cheat_is_denied(files: tuple[PatchedFile, ...]) -> None:
    report = judged(*files)
    assert report.verdict == "deny", report


@pytest.mark.parametrize("files", [*DENY.values(), *LOOK.values()], ids=[*DENY, *LOOK])
def test_nobodys_cheat_passes_unseen(files: tuple[PatchedFile, ...]) -> None:
    assert judged(*files).verdict != "allow"
    assert judged(*files, rung=None).verdict != "allow"


def test_a_constant_for_a_negation_is_denied() -> None:
    before = "def is_empty(values):\n    return not values\n"
    constant = change("shop/empty.py", before, before.replace("not values", "True"))
    assert judged(constant).verdict == "deny"


def test_an_extra_brings_packages_along() -> None:
    more = PYPROJECT.replace('"requests>=2"', '"requests[socks]>=2"')
    report = judged(change("pyproject.toml", PYPROJECT, more), rung="recipe")
    assert report.verdict == "needs_human"
    assert "extra socks" in report.reasons[0].detail


FINE: dict[str, tuple[PatchedFile, ...]] = {
    "asks the same otherwise": (change("shop/sql.py", "def f(t):\n    seen = False\n    if t.value == 'CREATE':\n        seen = True\n    return seen\n", "def f(t):\n    seen = False\n    if t.value.upper() == 'CREATE':\n        seen = True\n    return seen\n"),),
    "counts from one": (source(BODY, "    if amount == 1:\n        rate = 0\n" + BODY),),
    "shortens a wait": (change("shop/net.py", "TIMEOUT = 60\n", "TIMEOUT = 5\n"),),
    "narrows a tolerance": (change("shop/c.py", "def same(a, b):\n    return abs(a - b) < 1e-3\n", "def same(a, b):\n    return abs(a - b) < 1e-9\n"),),
    "adds a refusal": (source(BODY, "    if amount is None:\n        raise TypeError('no amount')\n" + BODY),),
    "brings a module of its own": (change("shop/math.py", None, "def up(x):\n    return x\n"), HONEST),
    "writes in another script": (source(HEAD, HEAD + "\nGREETING = 'Grüße, 世界, مرحبا'\n"),),
}  # fmt: skip


@pytest.mark.parametrize("name", FINE)
def test_what_looks_like_it_and_is_none(name: str) -> None:
    report = judged(*FINE[name])
    assert report.verdict == "allow", report
