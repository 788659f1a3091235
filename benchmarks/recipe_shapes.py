"""More of the recipe class, in the shapes in which projects are really set up; half of them as a failed job with its log."""

from __future__ import annotations

from functools import partial

from benchmarks.recipe_cases import (
    DUMP,
    DUMPED,
    NPM,
    TEST,
    TIDY,
    UGLY,
    Files,
    RecipeCase,
    package,
    project,
)

WRAPPED = "import sys\nfrom collections import abc, OrderedDict, defaultdict, namedtuple, ChainMap, Counter, deque\nimport abc as b\n\nprint(sys, abc, b, OrderedDict, defaultdict, namedtuple, ChainMap, Counter, deque)\n"
LONGISH = "def call(one, two):\n    return [one, two, one, two, one, two, one, two, one, two, one, two, one, two, one]\n\n\ndef  ugly( a ):\n    return a\n"
BASE: Files = {"pkg/__init__.py": "", "pkg/calc.py": TIDY}
TST: Files = {**BASE, "tests/test_calc.py": TEST}
in_ci = partial(RecipeCase, ci=True)


def plain(
    name: str, kind: str, files: Files, setup: str, command: str, *, person: bool = False
) -> RecipeCase:
    """A case that is handed over as a command."""
    return RecipeCase(name, kind, files, command, setup, person=person)


def job(
    name: str,
    kind: str,
    files: Files,
    setup: str,
    command: str,
    *,
    person: bool = False,
    folder: str = ".",
) -> RecipeCase:
    """A case that is handed over as a workflow and its log."""
    return RecipeCase(name, kind, files, command, setup, person=person, ci=True, folder=folder)


SHAPES = (
 job("hooks-own-envs","python",{".pre-commit-config.yaml":"""repos:
  - repo: local
    hooks:
      - id: isort
        name: isort
        entry: isort --profile black
        language: python
        types: [python]
        additional_dependencies: [isort]
      - id: black
        name: black
        entry: black
        language: python
        types: [python]
        additional_dependencies: [black]
""","src/thing/a.py":WRAPPED+"\n\ndef  ugly( a ):\n    return a\n"},"pip install pre-commit\npre-commit install-hooks","pre-commit run --all-files --show-diff-on-failure --color=always"),
 job("hooks-check-only","python",{".pre-commit-config.yaml":"""repos:
  - repo: local
    hooks:
      - id: ruff
        name: ruff
        entry: ruff check --select I,F
        language: system
        types: [python]
""","src/a.py":"import sys\nimport abc\n\nprint(sys, abc)\n"},"pip install pre-commit ruff","python -m pre_commit run -a"),
 plain("nox-line-length","python",{"noxfile.py":"import nox\n\n\n@nox.session\ndef lint(session):\n    session.install('black')\n    session.run('black', '--check', '--line-length', '100', 'src')\n","src/a.py":LONGISH},"pip install -q nox && nox -s lint --install-only","nox -s lint -R"),
 plain("hatch-scripts","python",{"pyproject.toml":"""[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "thing"
version = "1.0"

[tool.hatch.envs.lint]
detached = true
dependencies = ["black", "isort"]

[tool.hatch.envs.lint.scripts]
check = ["black --check -S -l 100 {args:src}", "isort --check-only --profile black {args:src}"]
""","src/thing/__init__.py":"","src/thing/a.py":"import sys\nimport abc\n\n"+LONGISH+"\n\nprint(sys, abc, 'x')\n"},"pip install -q hatch && hatch env create lint","hatch run lint:check"),
 job("poe-task","python",{"pyproject.toml":'[tool.poe.tasks]\nlint = "ruff check --select I --line-length 100 pkg"\n',"pkg/a.py":"import sys\nimport abc\n\nprint(sys, abc)\n"},"pip install poethepoet ruff","poe lint"),
 job("just-recipe","python",{"justfile":"src := 'pkg'\n\n# look at the layout\nlint:\n    ruff format --check --line-length 120 {{src}}\n","pkg/a.py":LONGISH},"pip install rust-just ruff","just lint"),
 plain("shell-loop-quiet","python",{"pkg/a.py":UGLY,"pkg/b.py":TIDY},"pip install -q black",'for f in $(git ls-files "*.py"); do black --check --quiet "$f" || exit 1; done'),
 job("xargs-isort","python",{"pkg/a.py":WRAPPED},"pip install isort","git ls-files -- '*.py' | xargs isort --check-only --profile black"),
 plain("tox-posargs","python",{"tox.ini":"[tox]\nno_package = true\nenv_list = py, style\n\n[testenv]\ndeps = pytest\ncommands = pytest\n\n[testenv:style]\ndeps =\n    black\n    isort\ncommands =\n    isort --check -l 100 {posargs:src tests}\n    black --check -l 100 {posargs:src tests}\n","src/a.py":"import sys\nimport abc\n\n"+LONGISH+"\n\nprint(sys, abc)\n","tests/test_a.py":"def test_a( ):\n    assert True\n"},"pip install -q tox && tox -q -e style --notest","tox -e style"),
 job("nested-ruff-toml","python",{"services/api/ruff.toml":"line-length = 100\n\n[lint]\nselect = ['E', 'F', 'I']\n","services/api/app/a.py":"import sys\nimport abc\n\n"+LONGISH+"\n\nprint(sys, abc)\n","other/b.py":UGLY},"pip install ruff","ruff check .\nruff format --check .",folder="services/api"),
 plain("ruff-only-unsafe","python",{"src/a.py":"def f(values):\n    total = 0\n    best = max(values)\n    for value in values:\n        total += value\n    return total\n"},"pip install -q ruff","ruff check src",person=True),
 plain("pylint-simple","python",{"pkg/__init__.py":"","pkg/a.py":'"""Sums."""\nimport os\nimport sys\n\nfrom pkg import b\nimport abc\n\n\ndef add(one, two):\n    """The sum."""   \n    return one + two + b.X + len(sys.argv) + len(abc.__name__)\n\n\n',"pkg/b.py":'"""B."""\nX = 1'},"pip install -q pylint","pylint pkg"),
 job("typos","python",{"README.md":"# Thing\n\nRecieve the adress of the server.\n","src/a.py":'"""Recieve things."""\n'},"pip install typos","typos",person=True),
 plain("mdformat","python",{"README.md":"Thing\n=====\n\n* a\n* b\n","docs/a.md":"# A\n\ntext   \n"},"pip install -q mdformat","mdformat --check README.md docs"),
 job("pyproject-fmt","python",{"pyproject.toml":'[project]\nversion = "1.0"\nname = "thing"\ndependencies = ["idna>=3","click"]\n'},"pip install pyproject-fmt","pyproject-fmt pyproject.toml"),
 plain("djlint","python",{"templates/a.html":"<div><p>hello</p>\n<ul><li>a</li></ul></div>\n"},"pip install -q djlint","djlint templates --check"),
 in_ci("black-action","python",{"src/a.py":UGLY},"black --check --verbose ./src","pip install black",uses="psf/black@stable\n        with:\n          options: '--check --verbose'\n          src: './src'"),
 in_ci("ruff-action","python",{"src/a.py":UGLY},"ruff format --check src","pip install ruff",uses="astral-sh/ruff-action@v3\n        with:\n          args: 'format --check'\n          src: './src'"),
 plain("requirements-fixer","python",{"requirements.txt":"requests\nidna\nclick\n"},"pip install -q pre-commit-hooks","requirements-txt-fixer requirements.txt"),
 plain("check-flag-untold","python",{"scripts/sync_names.py":"import pathlib, sys\nwant = '# Names\\n\\n' + ''.join(f'- {n}\\n' for n in sorted(pathlib.Path('names.txt').read_text().split()))\nhave = pathlib.Path('NAMES.md')\nif '--check' in sys.argv:\n    if have.read_text() != want:\n        print('NAMES.md differs')\n        sys.exit(1)\nelse:\n    have.write_text(want)\n","names.txt":"b\na\nc\n","NAMES.md":"# Names\n\n- a\n- b\n"},"pip install -q idna","python scripts/sync_names.py --check"),
 job("django-migrations","python",{"manage.py":"import os, sys\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'site_settings')\nfrom django.core.management import execute_from_command_line\nexecute_from_command_line(sys.argv)\n","site_settings.py":"SECRET_KEY = 'x'\nINSTALLED_APPS = ['shop']\nDATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}}\nDEFAULT_AUTO_FIELD = 'django.db.models.BigAutoField'\n","shop/__init__.py":"","shop/migrations/__init__.py":"","shop/migrations/0001_initial.py":"from django.db import migrations, models\n\n\nclass Migration(migrations.Migration):\n    initial = True\n    dependencies = []\n    operations = [\n        migrations.CreateModel(\n            name='Item',\n            fields=[('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')), ('name', models.CharField(max_length=20))],\n        ),\n    ]\n","shop/models.py":"from django.db import models\n\n\nclass Item(models.Model):\n    name = models.CharField(max_length=40)\n","requirements.txt":"django>=4.2\n"},"pip install -r requirements.txt","python manage.py makemigrations --check --dry-run",person=True),
 plain("hashed-requirements","locks",{**TST,"requirements.in":"jinja2\npytest\n","requirements.txt":"#\n# This file is autogenerated by pip-compile with Python 3.12\n# by the following command:\n#\n#    pip-compile --generate-hashes requirements.in\n#\njinja2==3.1.4 \\\n    --hash=sha256:4a3aee7acbbe7303aede8e9648d13b8bf88a429282aa6122a993f0ac800cb369 \\\n    --hash=sha256:bc5dd2abb727a5319567b7a813e6a2e7318c39f4f487cfe6c89c6f9c7d25197d\n    # via -r requirements.in\n"},"pip install -q --require-hashes -r requirements.txt","python -m pytest -q",person=True),
 # missing
 plain("uv-locked-missing","missing",{"pyproject.toml":'[project]\nname = "thing"\nversion = "1.0"\nrequires-python = ">=3.9"\ndependencies = []\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n',"uv.lock":'version = 1\nrevision = 3\nrequires-python = ">=3.9"\n\n[[package]]\nname = "thing"\nversion = "1.0"\nsource = { virtual = "." }\n',"pkg/__init__.py":"","pkg/dump.py":DUMP,"tests/test_dump.py":DUMPED},"pip install -q uv && uv sync -q --locked && uv pip install -q --python .venv pytest","uv run --no-sync python -m pytest -q",person=True),
 plain("poetry-missing","missing",{"pyproject.toml":'[tool.poetry]\nname = "thing"\nversion = "1.0"\ndescription = ""\nauthors = ["A <a@example.org>"]\npackages = [{ include = "pkg" }]\n\n[tool.poetry.dependencies]\npython = "^3.9"\nidna = "*"\n\n[tool.poetry.group.test.dependencies]\npytest = "*"\n\n[build-system]\nrequires = ["poetry-core"]\nbuild-backend = "poetry.core.masonry.api"\n',"pkg/__init__.py":"","pkg/dump.py":DUMP,"tests/test_dump.py":DUMPED},"pip install -q pytest .","python -m pytest -q",person=True),
 job("pipfile-missing","missing",{"Pipfile":'[packages]\nidna = "*"\n\n[dev-packages]\npytest = "*"\n',"pkg/__init__.py":"","pkg/dump.py":DUMP,"tests/test_dump.py":DUMPED},"pip install pipenv\npipenv install --system --dev --skip-lock","python -m pytest -q",person=True),
 job("setup-cfg-extra","missing",{**BASE,"tests/test_calc.py":"def test_it(mocker):\n    assert mocker.stub() is not None\n","setup.py":"from setuptools import setup\n\nsetup()\n","setup.cfg":"[metadata]\nname = pkg\nversion = 1.0\n\n[options]\npackages = pkg\ninstall_requires =\n    idna\n\n[options.extras_require]\ntest =\n    pytest\ndocs =\n    mkdocs\n"},"pip install -e .[test]","pytest",person=True),
 plain("setup-py-extra","missing",{**BASE,"tests/test_calc.py":"from freezegun import freeze_time\n\n\n@freeze_time('2020-01-01')\ndef test_it():\n    import datetime\n    assert datetime.date.today().year == 2020\n","setup.py":"from setuptools import setup\n\nsetup(\n    name='pkg',\n    version='1.0',\n    packages=['pkg'],\n    install_requires=['idna'],\n    extras_require={\n        'dev': ['pytest>=7'],\n    },\n)\n"},"pip install -q -e '.[dev]'","pytest -q",person=True),
 job("xdist-short-option","missing",{**TST,"pytest.ini":"[pytest]\naddopts = -n 2 --maxfail=3\n","requirements-test.txt":"pytest>=7\n"},"pip install -r requirements-test.txt","python -m pytest",person=True),
 plain("required-plugins","missing",{**TST,"pyproject.toml":'[project]\nname = "thing"\nversion = "1.0"\n\n[dependency-groups]\ntest = ["pytest>=8"]\n\n[tool.setuptools]\npackages = ["pkg"]\n\n[tool.pytest.ini_options]\nrequired_plugins = ["pytest-mock>=3"]\npythonpath = ["."]\n'},"pip install -q 'pip>=25.1' && pip install -q --group test","pytest -q",person=True),
 job("other-name-dns","missing",{"pkg/__init__.py":"","pkg/look.py":"import dns.rdatatype\n\n\ndef number(name):\n    return int(dns.rdatatype.from_text(name))\n","tests/test_look.py":"from pkg.look import number\n\n\ndef test_number():\n    assert number('A') == 1\n","requirements.txt":"idna>=3\n","dev-requirements.txt":"-r requirements.txt\npytest\n"},"python -m pip install --upgrade pip\npip install -r dev-requirements.txt","python -m pytest",person=True),
 plain("other-name-markdown-it","missing",{"pkg/__init__.py":"","pkg/look.py":"from markdown_it import MarkdownIt\n\n\ndef html(text):\n    return MarkdownIt().render(text)\n","tests/test_look.py":"from pkg.look import html\n\n\ndef test_html():\n    assert html('a') == '<p>a</p>\\n'\n","setup.py":"import pathlib\n\nfrom setuptools import setup\n\nsetup(name='pkg', version='1.0', packages=['pkg'], install_requires=pathlib.Path('requirements.txt').read_text().splitlines())\n","requirements.txt":"idna>=3\n"},"pip install -q pytest .","python -m pytest -q",person=True),
 plain("stubs-group","missing",{"pkg/__init__.py":"","pkg/get.py":"import tabulate\n\n\ndef rows(text: str) -> str:\n    return str(tabulate.tabulate([[text]]))\n","pyproject.toml":project('"tabulate>=0.9"','\n[dependency-groups]\nlint = ["mypy"]\ntest = ["pytest"]\n\n[tool.mypy]\nstrict = true\n')},"pip install -q 'pip>=25.1' && pip install -q --group lint .","mypy pkg",person=True),
 job("pkg-resources","missing",{"pkg/__init__.py":"import pkg_resources\n\n\ndef version(name):\n    return pkg_resources.get_distribution(name).version\n","tests/test_it.py":"import pkg\n\n\ndef test_it():\n    assert pkg.version('pytest')\n","requirements.txt":"pytest\n"},"pip install -r requirements.txt","python -m pytest -q",person=True),
 # pins
 plain("werkzeug-3","pins",{"app.py":"import flask\n\napp = flask.Flask(__name__)\n\n\n@app.get('/')\ndef index():\n    return 'hello'\n","tests/test_app.py":"from app import app\n\n\ndef test_index():\n    assert app.test_client().get('/').data == b'hello'\n","requirements.txt":"flask==2.2.5\npytest\n"},"pip install -q -r requirements.txt","python -m pytest -q",person=True),
 job("marshmallow-4","pins",{"pkg/__init__.py":"","pkg/user.py":"from marshmallow import Schema, fields\n\n\nclass User(Schema):\n    name = fields.String(missing='nobody')\n","tests/test_user.py":"from pkg.user import User\n\n\ndef test_default():\n    assert User().load({}) == {'name': 'nobody'}\n","pyproject.toml":project('"marshmallow"','[project.optional-dependencies]\ntest = ["pytest"]')},"pip install .[test]","python -m pytest",person=True),
 plain("pydantic-2","pins",{"pkg/__init__.py":"","pkg/conf.py":"from pydantic import BaseSettings\n\n\nclass Conf(BaseSettings):\n    name: str = 'a'\n","tests/test_conf.py":"from pkg.conf import Conf\n\n\ndef test_conf():\n    assert Conf().name == 'a'\n","setup.cfg":"[metadata]\nname = pkg\nversion = 1.0\n\n[options]\npackages = pkg\npython_requires = >=3.8\ninstall_requires =\n    pydantic >=1.8\n","setup.py":"from setuptools import setup\n\nsetup()\n"},"pip install -q pytest .","python -m pytest -q",person=True),
 job("numpy-2","pins",{"pkg/__init__.py":"","pkg/stats.py":"import numpy as np\n\n\ndef mean(values):\n    return float(np.array(values, dtype=np.float_).mean())\n","tests/test_stats.py":"from pkg.stats import mean\n\n\ndef test_mean():\n    assert mean([1, 2, 3]) == 2\n","requirements.txt":"# numbers\nnumpy>=1.20\n","requirements-dev.txt":"-r requirements.txt\npytest\n"},"pip install -r requirements-dev.txt","python -m pytest",person=True),
 # locks
 job("npm-nested","locks",{"web/package.json":package('"test": "node a.js"',"",'"ms": "^2.1.3"'),"web/package-lock.json":'{\n  "name": "thing",\n  "version": "1.0.0",\n  "lockfileVersion": 3,\n  "requires": true,\n  "packages": {\n    "": {\n      "name": "thing",\n      "version": "1.0.0"\n    }\n  }\n}\n',"web/a.js":"require('ms')\n","README.md":"x\n"},"npm ci","npm test",folder="web"),
 plain("yarn-classic","locks",{"package.json":package("","",'"ms": "^2.1.3"'),"yarn.lock":"# THIS IS AN AUTOGENERATED FILE. DO NOT EDIT THIS FILE DIRECTLY.\n# yarn lockfile v1\n\n\n","a.js":"require('ms')\n"},"npx --yes yarn@1 install --frozen-lockfile","node a.js"),
 job("poetry2-stale","locks",{"pyproject.toml":'[project]\nname = "thing"\nversion = "1.0"\nrequires-python = ">=3.9"\ndependencies = []\n\n[tool.poetry]\npackage-mode = false\n',"poetry.lock":'# This file is automatically @generated by Poetry 2.1.1 and should not be changed by hand.\npackage = []\n\n[metadata]\nlock-version = "2.1"\npython-versions = ">=3.8"\ncontent-hash = "0000000000000000000000000000000000000000000000000000000000000000"\n',"a.py":"print(1)\n"},"pip install poetry\npoetry install --no-interaction","poetry run python a.py"),
 plain("pdm-stale","locks",{"pyproject.toml":'[project]\nname = "thing"\nversion = "1.0"\nrequires-python = ">=3.9"\ndependencies = []\n\n[tool.pdm]\ndistribution = false\n',"pdm.lock":'# This file is @generated by PDM.\n# It is not intended for manual editing.\n\n[metadata]\ngroups = ["default"]\nstrategy = ["inherit_metadata"]\nlock_version = "4.5.0"\ncontent_hash = "sha256:0000000000000000000000000000000000000000000000000000000000000000"\n\n[[metadata.targets]]\nrequires_python = ">=3.9"\n',"a.py":"print(1)\n"},"pip install -q pdm","pdm lock --check"),
 # snapshots and golden files
 plain("pytest-snapshot","snapshots",{"tests/test_a.py":"def test_a(snapshot):\n    snapshot.snapshot_dir = 'tests/snapshots'\n    snapshot.assert_match('three\\n', 'a.txt')\n","tests/snapshots/a.txt":"two\n"},"pip install -q pytest pytest-snapshot","pytest -q",person=True),
 job("golden-option","snapshots",{"pkg/__init__.py":"","pkg/show.py":"def show(n):\n    return f'number {n}\\n'\n","tests/conftest.py":"import pathlib\n\nimport pytest\n\n\ndef pytest_addoption(parser):\n    parser.addoption('--update-golden', action='store_true')\n\n\n@pytest.fixture\ndef golden(request):\n    def check(name, text):\n        path = pathlib.Path(__file__).parent / 'golden' / name\n        if request.config.getoption('--update-golden'):\n            path.write_text(text)\n        assert path.read_text() == text, f'{name} differs; run pytest with --update-golden to accept'\n    return check\n","tests/golden/one.txt":"no 1\n","tests/test_show.py":"from pkg.show import show\n\n\ndef test_show(golden):\n    golden('one.txt', show(1))\n"},"pip install pytest","python -m pytest -q",person=True),
 job("jest-nested","snapshots",{"ui/package.json":package('"test": "jest --ci"','"jest": "29.7.0"'),"ui/a.test.js":"test('a', () => { expect([1, 2]).toMatchSnapshot(); });\n","ui/__snapshots__/a.test.js.snap":"// Jest Snapshot v1, https://goo.gl/fbAQLP\n\nexports[`a 1`] = `\n[\n  1,\n]\n`;\n"},NPM,"npm test",person=True,folder="ui"),
 # script
 plain("npm-prefix","script",{"web/package.json":package('"lint": "eslint src"','"eslint": "9.12.0"'),"web/eslint.config.mjs":'export default [{ rules: { "prefer-const": "error" } }];\n',"web/src/a.js":"let a = 1;\nconsole.log(a);\n"},"npm --prefix web install --no-audit --no-fund --loglevel=error","npm --prefix web run lint"),
 job("npm-run-all","script",{"package.json":package('"check": "run-s check:*", "check:format": "prettier --check --print-width 100 src", "check:lint": "eslint src"','"prettier": "3.3.3", "eslint": "9.12.0", "npm-run-all": "4.1.5"'),"eslint.config.mjs":'export default [{ rules: { "prefer-const": "error" } }];\n',"src/a.js":"let a   = 1\nconsole.log( a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a )\n"},NPM,"npm run check"),
)  # fmt: skip

# Written before the first run of those above was over, and run once after what they showed was mended.
FRESH = (
 in_ci("make-python-m","python",{"Makefile":"PYTHON ?= python\nSRC := pkg tests\n\n.PHONY: check\ncheck:\n\t$(PYTHON) -m black --check --quiet --line-length=100 $(SRC)\n\t$(PYTHON) -m isort --quiet -c --profile=black $(SRC)\n","pkg/a.py":"import sys\nimport abc\n\nVALUES = ['aaaaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbbbbbbbbbb', 'cccccccccccccccccccc', sys, abc]\n","tests/test_a.py":"def test_a( ):\n    assert True\n"},"make check","pip install black isort"),
 RecipeCase("tox-pyproject","python",{"pyproject.toml":'[tool.tox]\nno_package = true\nenv_list = ["fmt"]\n\n[tool.tox.env.fmt]\nskip_install = true\ndeps = ["ruff"]\ncommands = [["ruff", "format", "--diff", "--line-length", "120", "pkg"]]\n',"pkg/a.py":UGLY},"tox -q -e fmt","pip install -q tox && tox -q -e fmt --notest"),
 in_ci("flake8-quotes","python",{"setup.cfg":"[flake8]\nmax-line-length = 100\n","pkg/a.py":"NAMES = [\n    'a',\n    'b'\n]\n"},"python -m flake8","pip install flake8 flake8-quotes flake8-commas"),
 in_ci("yamllint-blanks","python",{".yamllint":"extends: default\nrules: {document-start: disable}\n","conf/a.yml":"a: 1   \nb:\n  - 2\n\n\n\n","conf/b.yaml":"c: 3"},"yamllint conf","pip install yamllint"),
 in_ci("strict-config-timeout","missing",{**BASE,"tests/test_calc.py":TEST,"pyproject.toml":"[tool.pytest.ini_options]\naddopts = '--strict-config'\ntimeout = 30\npythonpath = ['.']\n","requirements/tests.txt":"pytest >= 8\n"},"python -m pytest","pip install -r requirements/tests.txt",person=True),
 RecipeCase("nested-requirements","missing",{"pkg/__init__.py":"","pkg/names.py":"from slugify import slugify\n\n\ndef name(text):\n    return slugify(text)\n","tests/test_names.py":"from pkg.names import name\n\n\ndef test_name():\n    assert name('A b') == 'a-b'\n","requirements/base.txt":"# the product\nidna>=3\n","requirements/dev.txt":"-r ./base.txt\npytest>=7\n"},"python -m pytest -q","pip install -q -r requirements/dev.txt",person=True),
 RecipeCase("pytest-asyncio-1","pins",{"tests/test_loop.py":"import asyncio\n\n\nasync def one():\n    return 1\n\n\ndef test_one(event_loop):\n    assert event_loop.run_until_complete(one()) == 1\n","requirements-dev.txt":"pytest\npytest-asyncio>=0.18\n"},"python -m pytest -q","pip install -q -r requirements-dev.txt",person=True),
 in_ci("sqlalchemy-2","pins",{"pkg/__init__.py":"","pkg/db.py":"from sqlalchemy import create_engine\n\n\ndef one():\n    engine = create_engine('sqlite://')\n    return engine.execute('select 1').scalar()\n","tests/test_db.py":"from pkg.db import one\n\n\ndef test_one():\n    assert one() == 1\n","pyproject.toml":project('"SQLAlchemy>=1.3"','[project.optional-dependencies]\ndev = ["pytest"]\n')},"python -m pytest","pip install -e .[dev]",person=True),
 RecipeCase("uv-export","locks",{"pyproject.toml":'[project]\nname = "thing"\nversion = "1.0"\nrequires-python = ">=3.9"\ndependencies = []\n',"uv.lock":'version = 1\nrevision = 3\nrequires-python = ">=3.9"\n\n[[package]]\nname = "thing"\nversion = "1.0"\nsource = { virtual = "." }\n',"requirements.txt":"# This file was autogenerated by uv via the following command:\n#    uv export --locked -o requirements.txt\nidna==3.10\n"},"uv export --quiet --locked -o requirements.txt && git diff --exit-code requirements.txt","pip install -q uv"),
 RecipeCase("nox-inline","snapshots",{"noxfile.py":"import nox\n\n\n@nox.session\ndef tests(session):\n    session.install('pytest', 'inline-snapshot')\n    session.run('pytest', '-q', *session.posargs)\n","tests/test_a.py":"from inline_snapshot import snapshot\n\n\ndef test_a():\n    assert {'a': 1} == snapshot({'a': 2})\n"},"nox -s tests -R","pip install -q nox && nox -s tests --install-only",person=True),
 in_ci("stylelint","script",{"package.json":package('"lint:css": "stylelint \'src/**/*.css\'"','"stylelint": "16.10.0"'),".stylelintrc.json":'{"rules": {"color-hex-length": "short", "selector-pseudo-element-colon-notation": "double"}}\n',"src/a.css":"a::before { color: #ffffff; }\na:after { color: #aabbcc; }\n"},"npm run lint:css",NPM),
 in_ci("workspace-vitest","snapshots",{"package.json":'{\n  "name": "root",\n  "private": true,\n  "workspaces": ["packages/app"],\n  "devDependencies": {"vitest": "2.1.3"}\n}\n',"packages/app/package.json":'{\n  "name": "app",\n  "version": "1.0.0",\n  "scripts": {"test": "vitest run"}\n}\n',"packages/app/a.test.js":"import { expect, test } from 'vitest';\ntest('a', () => { expect([1, 2]).toMatchSnapshot(); });\n","packages/app/__snapshots__/a.test.js.snap":"// Vitest Snapshot v1, https://vitest.dev/guide/snapshot.html\n\nexports[`a 1`] = `\n[\n  1,\n]\n`;\n"},"npm test -w packages/app",NPM,person=True),
)  # fmt: skip
