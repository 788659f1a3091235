"""Small projects of many trades that a feature leaves red in a mechanical way.

Half are mended by a documented option of the tool that complains, half by an edit that its message names. Written before
the fixer was run on them by one who had not read it. `remedy` is a reference: the command is green after it, and `keeps`
holds.
"""

from __future__ import annotations

from benchmarks.mechanical_eleventh_cases import NO_SHOP, Shape, swap

READ = """import ast, json, re, sys, tomllib
from pathlib import Path
sys.dont_write_bytecode = True
sys.path.insert(0, "")
def text(path):
    return Path(path).read_text(encoding="utf-8")
def flat(path):
    return " ".join(text(path).split())
"""


def project(name: str, extra: str = "") -> str:
    """Write a pyproject.toml."""
    return f'''[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.4.0"
requires-python = ">=3.11"

[tool.setuptools]
packages = ["{name}"]
{extra}'''


# 1. Templates of a bakery's web pages.

BREAD_PAGES = '''"""Pages of the bakery."""

from pathlib import Path

FOLDER = Path(__file__).parent / "templates"


def names() -> list[str]:
    """List the templates."""
    return sorted(path.name for path in FOLDER.glob("*.html"))


def source(name: str) -> str:
    """Read one template."""
    return (FOLDER / name).read_text(encoding="utf-8")
'''
BREAD_LIST = """{% extends "base.html" %}
{% block content %}
    <ul class="loaves">
        {% for loaf in loaves %}
            <li>{{ loaf.name }}</li>
        {% endfor %}
    </ul>
{% endblock %}
"""
BREAD_BASE = """<!doctype html>
<html lang="en">
    <body>
        {% block content %}{% endblock %}
    </body>
</html>
"""
BREAD_TESTS = """import unittest

from crumb.pages import names, source


class Pages(unittest.TestCase):
    def test_blocks_are_closed(self):
        for name in names():
            text = source(name)
            self.assertEqual(text.count("{% block"), text.count("{% endblock"), name)
            self.assertEqual(text.count("{% for"), text.count("{% endfor"), name)
"""
TEMPLATES = Shape(
    name="template-indentation",
    start=NO_SHOP
    | {
        "pyproject.toml": project("crumb"),
        "crumb/__init__.py": "",
        "crumb/pages.py": BREAD_PAGES,
        "crumb/templates/base.html": BREAD_BASE,
        "crumb/templates/loaves.html": BREAD_LIST,
        "tests/test_pages.py": BREAD_TESTS,
        "Makefile": "all: test templates\n\ntest:\n\tpython -m unittest discover -s tests\n\n"
        "templates:\n\tdjhtml --check --tabwidth 4 crumb/templates\n\n.PHONY: all test templates\n",
    },
    message="Show prices and sold-out loaves",
    culprit={
        "crumb/templates/loaves.html": swap(
            BREAD_LIST,
            (
                "            <li>{{ loaf.name }}</li>\n",
                "            {% if loaf.left %}\n            <li>{{ loaf.name }} <b>{{ loaf.price }}</b></li>\n"
                "            {% else %}\n            <li><s>{{ loaf.name }}</s></li>\n            {% endif %}\n",
            ),
        )
    },
    command="make",
    setup="pip install -q djhtml==3.0.11",
    form=True,
    keeps=READ
    + """
page = flat("crumb/templates/loaves.html")
for part in ("{% if loaf.left %}", "{{ loaf.price }}", "{% else %}", "<s>{{ loaf.name }}</s>", "{% endif %}", "{% endfor %}"):
    assert part in page, part
assert "djhtml" in text("Makefile") and "--check" in text("Makefile") and "unittest" in text("Makefile")
from crumb.pages import names
assert names() == ["base.html", "loaves.html"]
""",
    remedy="djhtml --tabwidth 4 crumb/templates",
)

# 2. Shell scripts of a backup.

KEEP_SH = """#!/usr/bin/env bash
# Print which of the given days' copies are kept.
set -euo pipefail

keep() {
    local day="$1"
    if [ "$((day % 7))" -eq 0 ]; then
        echo "keep $day"
    else
        echo "drop $day"
    fi
}

for day in "$@"; do
    keep "$day"
done
"""
KEEP_TEST = """#!/usr/bin/env bash
set -euo pipefail
out="$(bash bin/keep.sh 7 8)"
[ "$out" = "$(printf 'keep 7\\ndrop 8')" ]
echo ok
"""
KEEP_CHECK = """#!/usr/bin/env bash
# All checks of this repository.
set -euo pipefail
cd "$(dirname "$0")/.."
bash tests/test_keep.sh
beautysh --check --indent-size 4 bin/*.sh
"""
SCRIPTS = Shape(
    name="shell-indentation",
    start=NO_SHOP
    | {
        "README.md": "# rota\n\nWhich copies to keep.\n",
        "bin/keep.sh": KEEP_SH,
        "tests/test_keep.sh": KEEP_TEST,
        "scripts/check": KEEP_CHECK,
    },
    message="Keep the copies of the first day",
    culprit={
        "bin/keep.sh": swap(
            KEEP_SH,
            (
                '    else\n        echo "drop',
                '    elif [ "$day" -eq 1 ]; then\n      echo "keep $day (first)"\n    else\n        echo "drop',
            ),
        ),
        "tests/test_keep.sh": swap(
            KEEP_TEST,
            ("sh 7 8)", "sh 7 8 1)"),
            ("keep 7\\ndrop 8", "keep 7\\ndrop 8\\nkeep 1 (first)"),
        ),
    },
    command="bash scripts/check",
    setup="pip install -q beautysh==6.4.3",
    form=True,
    keeps=READ
    + """
import subprocess
out = subprocess.run(["bash", "bin/keep.sh", "1", "7", "9"], capture_output=True, text=True, check=True).stdout
assert out.split("\\n") == ["keep 1 (first)", "keep 7", "drop 9", ""], out
assert "beautysh --check" in text("scripts/check") and "bash tests/test_keep.sh" in text("scripts/check")
assert "keep 1 (first)" in text("tests/test_keep.sh")
""",
    remedy="beautysh --indent-size 4 bin/*.sh",
)

# 3. A CMake project with its form checked by a Python wrapper.

CMAKE = """cmake_minimum_required(VERSION 3.20)
project(drift LANGUAGES C)

add_library(drift src/drift.c)
target_include_directories(drift PUBLIC include)
"""
DRIFT_C = '#include "drift.h"\n\nint drift_sum(int a, int b) { return a + b; }\n'
DRIFT_TEST = """#include "drift.h"

int main(void) { return drift_sum(2, 3) == 5 ? 0 : 1; }
"""
DRIFT_CHECK = '''"""Build and run the tests, then check the form of the build files."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parent.parent


def main() -> int:
    """Run all checks."""
    with tempfile.TemporaryDirectory() as folder:
        exe = f"{folder}/tests"
        sources = [str(path) for path in [*ROOT.glob("src/*.c"), *ROOT.glob("tests/*.c")]]
        subprocess.run(["gcc", "-Wall", "-Werror", "-Iinclude", *sources, "-o", exe], check=True, cwd=ROOT)
        subprocess.run([exe], check=True)
    return subprocess.run(["gersemi", "--check", "CMakeLists.txt"], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
'''
BUILD_FILES = Shape(
    name="cmake-form",
    start=NO_SHOP
    | {
        "CMakeLists.txt": CMAKE,
        "include/drift.h": "#pragma once\n\nint drift_sum(int a, int b);\n",
        "src/drift.c": DRIFT_C,
        "tests/test_drift.c": DRIFT_TEST,
        "tools/check.py": DRIFT_CHECK,
    },
    message="Add a difference, and install the library",
    culprit={
        "CMakeLists.txt": swap(CMAKE, ("src/drift.c)", "src/drift.c src/minus.c)"))
        + "\nINSTALL(TARGETS drift\n  LIBRARY DESTINATION lib\n  ARCHIVE DESTINATION lib)\n"
        "IF(BUILD_TESTING)\n  add_executable( drift_tests tests/test_drift.c )\n"
        "  target_link_libraries(drift_tests PRIVATE drift)\nENDIF()\n",
        "include/drift.h": "#pragma once\n\nint drift_sum(int a, int b);\nint drift_minus(int a, int b);\n",
        "src/minus.c": '#include "drift.h"\n\nint drift_minus(int a, int b) { return a - b; }\n',
    },
    command="python tools/check.py",
    setup="pip install -q gersemi==0.29.2",
    form=True,
    keeps=READ
    + """
build = flat("CMakeLists.txt").lower()
for part in ("src/minus.c", "install( targets drift", "archive destination lib", "if(build_testing)", "drift_tests private drift"):
    assert part in build.replace("install(targets", "install( targets"), part
assert "drift_minus" in text("include/drift.h") and "drift_minus" in text("src/minus.c")
assert '"gersemi", "--check", "CMakeLists.txt"' in text("tools/check.py") and "gcc" in text("tools/check.py")
""",
    remedy="gersemi -i CMakeLists.txt",
)

# 4. Statements in the order of what they need.

GRAIN = '''"""Grain sizes of sand."""

LIMITS = {"clay": 0.002, "silt": 0.063, "sand": 2.0}


def kind(size):
    """Name the kind of a grain of so many millimetres."""
    for name, limit in LIMITS.items():
        if size < limit:
            return name
    return "gravel"


def kinds(sizes):
    """Name the kind of each grain."""
    return [kind(size) for size in sizes]
'''
GRAIN_TESTS = """import unittest

from grain.sizes import kind, kinds


class Sizes(unittest.TestCase):
    def test_kind(self):
        self.assertEqual(kind(0.01), "silt")

    def test_kinds(self):
        self.assertEqual(kinds([3, 1]), ["gravel", "sand"])
"""
ORDER = Shape(
    name="statement-order",
    start=NO_SHOP
    | {
        "pyproject.toml": project("grain"),
        "grain/__init__.py": "",
        "grain/sizes.py": GRAIN,
        "tests/test_sizes.py": GRAIN_TESTS,
        "ci.mk": "verify:\n\tssort --check grain\n\tpython -m unittest discover -s tests\n",
        "Makefile": "include ci.mk\n",
    },
    message="Share out the kinds of a sample",
    culprit={
        "grain/sizes.py": GRAIN
        + '''

def shares(sizes):
    """Say which part of a sample each kind is."""
    found = kinds(sizes)
    return {name: _part(found, name) for name in sorted(set(found))}


def _part(found, name):
    return round(found.count(name) / len(found), 2)
''',
        "tests/test_sizes.py": swap(GRAIN_TESTS, ("kind, kinds", "kind, kinds, shares"))
        + '\n    def test_shares(self):\n        self.assertEqual(shares([3, 1]), {"gravel": 0.5, "sand": 0.5})\n',
    },
    command="make verify",
    setup="pip install -q ssort==0.17.0",
    form=True,
    keeps=READ
    + """
from grain.sizes import kind, kinds, shares
assert shares([3, 3, 1, 5]) == {"gravel": 0.75, "sand": 0.25}
assert kinds([0.001, 0.01]) == ["clay", "silt"] and shares.__doc__ and kind.__doc__
assert "ssort --check grain" in text("ci.mk") and "include ci.mk" in text("Makefile")
assert "test_shares" in text("tests/test_sizes.py") and "noqa" not in text("grain/sizes.py")
""",
    remedy="ssort grain",
)

# 5. Docstrings in one form.

HIVE = '''"""Weights of hives."""


def honey(now: float, empty: float) -> float:
    """Return the honey's weight."""
    return round(now - empty, 1)
'''
HIVE_TESTS = """import unittest

from hive import weights


class Weights(unittest.TestCase):
    def test_honey(self):
        self.assertEqual(weights.honey(31.25, 20), 11.2)
"""
DOCSTRINGS = Shape(
    name="docstring-form",
    start=NO_SHOP
    | {
        "pyproject.toml": project(
            "hive", "\n[tool.pydocstringformatter]\nexit-code = true\nmax-summary-lines = 1\n"
        ),
        "hive/__init__.py": '"""Hives."""\n',
        "hive/weights.py": HIVE,
        "tests/test_weights.py": HIVE_TESTS,
        "run.sh": "#!/bin/sh\nset -e\npython -m unittest discover -s tests\npydocstringformatter hive\n",
    },
    message="Tell a swarm from a robbery",
    culprit={
        "hive/weights.py": HIVE
        + """

def swarmed(before: float, after: float) -> bool:
    '''tell whether so much was lost at once that a swarm left'''
    return before - after > 1.5


def robbed(before: float, after: float) -> bool:
    \"\"\" Tell whether honey was taken
    \"\"\"
    return 0.3 < before - after <= 1.5
""",
        "tests/test_weights.py": HIVE_TESTS
        + "\n    def test_swarmed(self):\n        self.assertTrue(weights.swarmed(30, 28))\n",
    },
    command="sh run.sh",
    setup="pip install -q pydocstringformatter==1.0.0",
    form=True,
    keeps=READ
    + """
from hive import weights
assert weights.swarmed(30, 28) and not weights.swarmed(30, 29) and weights.robbed(30, 29) and not weights.robbed(30, 30)
assert "a swarm left" in weights.swarmed.__doc__ and "honey was taken" in weights.robbed.__doc__
assert tomllib.loads(text("pyproject.toml"))["tool"]["pydocstringformatter"] == {"exit-code": True, "max-summary-lines": 1}
assert "pydocstringformatter hive" in text("run.sh") and "unittest" in text("run.sh")
""",
    remedy="pydocstringformatter --write hive || true",
)

# 6. A manual in reStructuredText.

LAMP_RST = """#######
 Lamps
#######

How to light them.

- Fill the lamp.
- Trim the wick.
"""
LAMP_TESTS = """import unittest
from pathlib import Path

from lamp import OIL


class Manual(unittest.TestCase):
    def test_each_oil_is_described(self):
        text = Path("docs/oils.rst").read_text(encoding="utf-8")
        for oil in OIL:
            self.assertIn(oil, text)
"""
LAMP_OILS = "######\n Oils\n######\n\n- colza\n- olive\n"
MANUAL = Shape(
    name="rst-form",
    start=NO_SHOP
    | {
        "lamp.py": '"""Oils for lamps, and for how many hours a pint burns."""\n\nOIL = {"colza": 40, "olive": 44}\n',
        "docs/index.rst": LAMP_RST,
        "docs/oils.rst": LAMP_OILS,
        "test_lamp.py": LAMP_TESTS,
        "package.json": '{\n  "name": "lamp-manual",\n  "private": true,\n  "scripts": {\n'
        '    "test": "python -m unittest",\n    "docs:check": "docstrfmt --ignore-cache --check docs",\n'
        '    "ci": "npm test && npm run docs:check"\n  }\n}\n',
    },
    message="Describe whale oil",
    culprit={
        "lamp.py": '"""Oils for lamps, and for how many hours a pint burns."""\n\n'
        'OIL = {"colza": 40, "olive": 44, "whale": 50}\n',
        "docs/oils.rst": "Oils\n----\n* colza\n* olive\n* whale, which burns longest of all and which was long the dearest"
        " in every town of the coast, and is out of use\n\n\n.. note::\n   Store it cool.\n",
    },
    command="npm run ci",
    setup="pip install -q docstrfmt==2.2.1",
    form=True,
    keeps=READ
    + """
page = flat("docs/oils.rst")
for part in ("colza", "olive", "whale, which burns longest", "out of use", ".. note::", "Store it cool."):
    assert part in page, part
from lamp import OIL
assert OIL["whale"] == 50 and len(OIL) == 3
scripts = json.loads(text("package.json"))["scripts"]
assert scripts["docs:check"] == "docstrfmt --ignore-cache --check docs" and "docs:check" in scripts["ci"] and "unittest" in scripts["test"]
""",
    remedy="docstrfmt --ignore-cache docs || true",
)

# 7. Expected text inside tests.

ROPE = '''"""Knots of a rope, drawn as text."""


def draw(knots: list[int], length: int) -> str:
    """Draw a rope with its knots."""
    return "".join("o" if at in knots else "-" for at in range(length)) + "\\n"
'''
ROPE_TESTS = '''import expecttest

from rope import draw


class Drawings(expecttest.TestCase):
    def test_two_knots(self):
        self.assertExpectedInline(
            draw([1, 4], 6),
            """\\
-o--o-
""",
        )

    def test_no_knot(self):
        self.assertExpectedInline(
            draw([], 4),
            """\\
----
""",
        )


if __name__ == "__main__":
    expecttest.main() if hasattr(expecttest, "main") else __import__("unittest").main()
'''
ROPE_TESTS = swap(
    ROPE_TESTS,
    (
        '    expecttest.main() if hasattr(expecttest, "main") else __import__("unittest").main()\n',
        "    unittest.main()\n",
    ),
    ("import expecttest\n\n", "import unittest\n\nimport expecttest\n\n"),
)
DRAWINGS = Shape(
    name="inline-expectations",
    start=NO_SHOP
    | {
        "pyproject.toml": swap(project("rope"), ('packages = ["rope"]', 'py-modules = ["rope"]')),
        "rope.py": ROPE,
        "test_rope.py": ROPE_TESTS,
        ".gitignore": "*.bak\n__pycache__/\n",
        "README.md": "# rope\n\nDraws ropes.\n",
    },
    message="Draw the two ends of a rope",
    culprit={
        "rope.py": swap(
            ROPE,
            ('    return "".join(', '    body = "".join('),
            (' + "\\n"\n', '\n    return f"<{body}>\\n"\n'),
            ("with its knots.", "with its knots and its two ends."),
        )
    },
    command="python -m unittest -v test_rope",
    setup="pip install -q expecttest==0.3.0",
    keeps=READ
    + """
from rope import draw
assert draw([1, 4], 6) == "<-o--o->\\n" and draw([], 4) == "<---->\\n"
tests = text("test_rope.py")
assert "<-o--o->" in tests and "<---->" in tests and tests.count("assertExpectedInline(") == 2 and "skip" not in tests
""",
    remedy="EXPECTTEST_ACCEPT=1 python -m unittest test_rope",
)

# 8. Output shown by examples in a guide.

COIN = '''"""Change in coins."""

COINS = (50, 20, 10, 5, 2, 1)


def change(amount: int) -> list[int]:
    """Give an amount in the fewest coins."""
    out = []
    for coin in COINS:
        while amount >= coin:
            out.append(coin)
            amount -= coin
    return out
'''
COIN_GUIDE = """# Guide

Give change:

```python
from coin import change

print(change(70))
#> [50, 20]
print(change(8))
#> [5, 2, 1]
```
"""
COIN_TESTS = """import pytest
from coin import change
from pytest_examples import CodeExample, EvalExample, find_examples


@pytest.mark.parametrize("amount", [1, 7, 99])
def test_change_adds_up(amount):
    assert sum(change(amount)) == amount


@pytest.mark.parametrize("example", find_examples("docs"), ids=str)
def test_examples(example: CodeExample, eval_example: EvalExample):
    if eval_example.update_examples:
        eval_example.run_print_update(example)
    else:
        eval_example.run_print_check(example)
"""
GUIDE = Shape(
    name="guide-output",
    start=NO_SHOP
    | {
        "pyproject.toml": swap(
            project("coin", '\n[tool.pytest.ini_options]\npythonpath = ["."]\n'),
            ('packages = ["coin"]', 'py-modules = ["coin"]'),
        ),
        "coin.py": COIN,
        "docs/guide.md": COIN_GUIDE,
        "tests/test_coin.py": COIN_TESTS,
    },
    message="Add the coin of 4",
    culprit={
        "coin.py": swap(COIN, ("10, 5, 2", "10, 5, 4, 2")),
        "docs/guide.md": COIN_GUIDE
        + "\nThere is a coin of 4:\n\n```python\nfrom coin import change\n\nprint(change(4))\n```\n",
    },
    command="python -m pytest -q",
    setup="pip install -q pytest==9.0.2 pytest-examples==0.0.18",
    keeps=READ
    + """
from coin import COINS, change
assert COINS == (50, 20, 10, 5, 4, 2, 1) and change(4) == [4]
guide = text("docs/guide.md")
assert "print(change(4))" in guide and "#> [4]" in guide and "#> [50, 20]" in guide and "#> [5, 2, 1]" in guide
assert "run_print_check" in text("tests/test_coin.py") and "skip" not in text("tests/test_coin.py")
""",
    remedy="python -m pytest -q --update-examples || true",
)

# 9. Models that are generated from a schema.

SCHEMA = """{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "Parcel",
  "type": "object",
  "properties": {
    "code": {"type": "string"},
    "grams": {"type": "integer"}
  },
  "required": ["code", "grams"]
}
"""
PARCEL = """from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Parcel:
    code: str
    grams: int
"""
POST = '''"""What a parcel costs."""

from parcel.model import Parcel


def price(one: Parcel) -> int:
    """Return cents: 300, and 1 more for each 10 grams."""
    return 300 + one.grams // 10
'''
POST_TESTS = """import unittest

from parcel.model import Parcel
from parcel.post import price


class Prices(unittest.TestCase):
    def test_price(self):
        self.assertEqual(price(Parcel(code="A", grams=1000)), 400)
"""
PARCEL_PYPROJECT = """
[tool.datamodel-codegen]
input = "schema/parcel.json"
input-file-type = "jsonschema"
output = "parcel/model.py"
output-model-type = "dataclasses.dataclass"
target-python-version = "3.11"
disable-timestamp = true
custom-file-header = "# Generated from schema/parcel.json."
"""
MODELS = Shape(
    name="generated-models",
    start=NO_SHOP
    | {
        "pyproject.toml": project("parcel", PARCEL_PYPROJECT),
        "schema/parcel.json": SCHEMA,
        "parcel/__init__.py": "",
        "parcel/model.py": "# Generated from schema/parcel.json.\n\n" + PARCEL,
        "parcel/post.py": POST,
        "tests/test_post.py": POST_TESTS,
        "Makefile": "check:\n\tpython -m unittest discover -s tests\n\tdatamodel-codegen --check\n",
    },
    message="Let a parcel say whether it is fragile, and to whom it goes",
    culprit={
        "schema/parcel.json": swap(
            SCHEMA,
            (
                '"grams": {"type": "integer"}\n',
                '"grams": {"type": "integer"},\n    "fragile": {"type": "boolean"},\n    "to": {"type": "string"}\n',
            ),
        )
    },
    command="make check",
    setup="pip install -q datamodel-code-generator==0.89.0",
    keeps=READ
    + """
schema = json.loads(text("schema/parcel.json"))
assert set(schema["properties"]) == {"code", "grams", "fragile", "to"} and schema["required"] == ["code", "grams"]
from parcel.model import Parcel
from parcel.post import price
assert Parcel("A", 10).fragile is None and Parcel("A", 10, to="Ann").to == "Ann" and price(Parcel("A", 1000)) == 400
assert "datamodel-codegen --check" in text("Makefile") and "unittest" in text("Makefile")
assert tomllib.loads(text("pyproject.toml"))["tool"]["datamodel-codegen"]["input"] == "schema/parcel.json"
""",
    remedy="datamodel-codegen",
)

# 10. The last migration of each app, named in a file.

DJANGO_SETTINGS = """SECRET_KEY = "only for tests"
INSTALLED_APPS = ["django_linear_migrations", "orchard"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
FIRST_PARTY_APPS = ["orchard"]
"""
MANAGE = """#!/usr/bin/env python
import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
    execute_from_command_line(sys.argv)
"""
TREES = """from django.db import models


class Tree(models.Model):
    sort = models.CharField(max_length=40)
    planted = models.DateField()
"""
TREES_FIRST = """from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Tree",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sort", models.CharField(max_length=40)),
                ("planted", models.DateField()),
            ],
        ),
    ]
"""
TREES_SECOND = """from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orchard", "0001_initial")]
    operations = [
        migrations.AddField(model_name="tree", name="row", field=models.PositiveIntegerField(default=1)),
    ]
"""
TREES_TESTS = """import datetime

from django.test import TestCase

from orchard.models import Tree


class Trees(TestCase):
    def test_plant(self):
        Tree.objects.create(sort="quince", planted=datetime.date(2020, 3, 1))
        self.assertEqual(Tree.objects.get().sort, "quince")
"""
LAST_MIGRATION = Shape(
    name="last-migration-file",
    start=NO_SHOP
    | {
        "manage.py": MANAGE,
        "settings.py": DJANGO_SETTINGS,
        "orchard/__init__.py": "",
        "orchard/models.py": TREES,
        "orchard/tests.py": TREES_TESTS,
        "orchard/migrations/__init__.py": "",
        "orchard/migrations/0001_initial.py": TREES_FIRST,
        "orchard/migrations/max_migration.txt": "0001_initial\n",
    },
    message="Keep the row of a tree",
    culprit={
        "orchard/models.py": TREES + "    row = models.PositiveIntegerField(default=1)\n",
        "orchard/migrations/0002_tree_row.py": TREES_SECOND,
    },
    command="python manage.py check",
    setup="pip install -q Django==5.2.8 django-linear-migrations==2.19.0",
    keeps=READ
    + """
assert "row = models.PositiveIntegerField(" in text("orchard/models.py")
assert 'name="row"' in text("orchard/migrations/0002_tree_row.py")
assert text("orchard/migrations/max_migration.txt").strip() == "0002_tree_row"
assert '"django_linear_migrations"' in text("settings.py") and "SILENCED" not in text("settings.py")
""",
    remedy="python manage.py create_max_migration_files --recreate orchard",
)

# 11. A module of Fortran.

TIDES = """module tides
  implicit none (type, external)
  private
  public :: mean

contains

  pure function mean(h) result(m)
    real, intent(in) :: h(:)
    real :: m
    m = sum(h) / size(h)
  end function mean

end module tides
"""
TIDES_TESTS = '''"""Each public name of a module is defined in it."""

import re
import unittest
from pathlib import Path


class Modules(unittest.TestCase):
    def test_public_names_are_defined(self):
        for path in Path("src").glob("*.f90"):
            text = path.read_text(encoding="utf-8")
            for name in re.search(r"public :: (.*)", text)[1].split(","):
                self.assertIn(f"function {name.strip()}(", text)
'''
FORTRAN = Shape(
    name="fortran-idiom",
    start=NO_SHOP
    | {
        "src/tides.f90": TIDES,
        "tests/test_modules.py": TIDES_TESTS,
        "fpm.toml": 'name = "tides"\n\n[extra.fortitude.check]\nselect = ["MOD021", "S061", "S081", "S101"]\n',
        "README.md": "# tides\n\nMeans of heights.\n",
        "Makefile": ".PHONY: test lint\n\ntest: lint\n\tpython -m unittest discover -s tests\n\nlint:\n\tfortitude check src\n",
    },
    message="Find the highest tide",
    culprit={
        "src/tides.f90": swap(
            TIDES,
            ("public :: mean", "public :: mean, high"),
            (
                "\nend module",
                "\n  pure function high(h) result(m)\n    real, intent(in) :: h(:)\n    real :: m\n"
                "    if (size(h) .gt. 0) then\n      m = maxval(h);\n    else\n      m = 0.0 \n    end if\n"
                "  end function\n\nend module",
            ),
        )
    },
    command="make test",
    setup="pip install -q fortitude-lint==0.10.0",
    form=True,
    keeps=READ
    + """
code = flat("src/tides.f90")
for part in ("public :: mean, high", "pure function high(h) result(m)", "m = maxval(h)", "m = 0.0", "end function mean"):
    assert part in code, part
assert "allow(" not in code and "fortitude check src" in text("Makefile") and "test: lint" in text("Makefile")
assert tomllib.loads(text("fpm.toml"))["extra"]["fortitude"]["check"]["select"] == ["MOD021", "S061", "S081", "S101"]
""",
    remedy="fortitude check --fix src",
)

# 12. Code shown in a README of a JavaScript package.

PLUM = """export function slug(title) {
  return title.toLowerCase().replaceAll(' ', '-');
}
"""
PLUM_README = """# plum

```js
// examples/slug.js

import { slug } from '../src/index.js';

console.log(slug('Ripe Plums'));

```
"""
PLUM_EXAMPLE = "import { slug } from '../src/index.js';\n\nconsole.log(slug('Ripe Plums'));\n"
PLUM_TESTS = """import assert from 'node:assert/strict';
import test from 'node:test';

import { slug } from '../src/index.js';

test('a slug', () => {
  assert.equal(slug('Ripe Plums'), 'ripe-plums');
});
"""
PLUM_PACKAGE = """{
  "name": "plum",
  "version": "1.3.0",
  "private": true,
  "type": "module",
  "scripts": {
    "test": "node --test tests/*.test.js",
    "readme": "embedme --verify README.md",
    "verify": "npm run test && npm run readme"
  },
  "devDependencies": {
    "embedme": "1.22.1"
  }
}
"""
EMBEDDED = Shape(
    name="code-in-readme",
    start=NO_SHOP
    | {
        ".gitignore": "node_modules/\npackage-lock.json\n",
        "package.json": PLUM_PACKAGE,
        "README.md": PLUM_README,
        "src/index.js": PLUM,
        "examples/slug.js": PLUM_EXAMPLE,
        "tests/slug.test.js": PLUM_TESTS,
    },
    message="Let a slug have another separator",
    culprit={
        "src/index.js": swap(PLUM, ("(title)", "(title, by = '-')"), ("'-');", "by);")),
        "examples/slug.js": PLUM_EXAMPLE + "console.log(slug('Ripe Plums', '_'));\n",
        "tests/slug.test.js": PLUM_TESTS
        + "\ntest('another separator', () => {\n  assert.equal(slug('Ripe Plums', '_'), 'ripe_plums');\n});\n",
    },
    command="npm run verify",
    setup="npm install --no-audit --no-fund",
    keeps=READ
    + """
assert "slug(title, by = '-')" in text("src/index.js")
line = "console.log(slug('Ripe Plums', '_'));"
assert line in text("examples/slug.js") and line in text("README.md") and "// examples/slug.js" in text("README.md")
scripts = json.loads(text("package.json"))["scripts"]
assert "embedme --verify README.md" in scripts["readme"] and "readme" in scripts["verify"] and "node --test" in scripts["test"]
assert "another separator" in text("tests/slug.test.js")
""",
    remedy="npx embedme README.md",
)

# 13. Keys of translations, taken from the source.

FERRY = """export function times(t, next) {
  return `${t('next')}: ${next}`;
}
"""
FERRY_TESTS = """const assert = require('node:assert/strict');
const test = require('node:test');

const en = require('../locales/en/translation.json');

test('every text of the board is a string', () => {
  for (const value of Object.values(en)) assert.equal(typeof value, 'string');
});
"""
FERRY_CONFIG = """module.exports = {
  locales: ['en', 'sv'],
  output: 'locales/$LOCALE/$NAMESPACE.json',
  input: ['src/**/*.mjs'],
  lexers: { mjs: ['JavascriptLexer'] },
  sort: true,
};
"""
FERRY_PACKAGE = """{
  "name": "ferry-board",
  "version": "0.2.0",
  "private": true,
  "scripts": {
    "test": "node --test tests/*.test.cjs",
    "ci": "npm test && i18next --fail-on-update"
  },
  "devDependencies": {
    "i18next-parser": "9.4.0"
  }
}
"""
TRANSLATIONS = Shape(
    name="translation-keys",
    start=NO_SHOP
    | {
        ".gitignore": "node_modules/\npackage-lock.json\n",
        "package.json": FERRY_PACKAGE,
        "i18next-parser.config.js": FERRY_CONFIG,
        "src/board.mjs": FERRY,
        "locales/en/translation.json": '{\n  "next": "Next ferry"\n}\n',
        "locales/sv/translation.json": '{\n  "next": "N\u00e4sta f\u00e4rja"\n}\n',
        "tests/texts.test.cjs": FERRY_TESTS,
    },
    message="Say when a ferry is late",
    culprit={
        "src/board.mjs": FERRY + "\nexport function late(t, minutes) {\n"
        "  return minutes > 60 ? t('cancelled') : `${t('late')} ${minutes} min`;\n}\n",
    },
    command="npm run ci",
    setup="npm install --no-audit --no-fund",
    keeps=READ
    + """
for locale in ("en", "sv"):
    assert set(json.loads(text(f"locales/{locale}/translation.json"))) == {"next", "late", "cancelled"}, locale
assert json.loads(text("locales/sv/translation.json"))["next"] == "N\u00e4sta f\u00e4rja"
assert "t('cancelled')" in text("src/board.mjs") and "t('late')" in text("src/board.mjs")
scripts = json.loads(text("package.json"))["scripts"]
assert "--fail-on-update" in scripts["ci"] and "npm test" in scripts["ci"] and "node --test" in scripts["test"]
assert "['en', 'sv']" in text("i18next-parser.config.js")
""",
    remedy="npx i18next",
)

# From here on the message of the command names the edit.

# 14. A stub beside its module.

PEAT = '''"""Layers of a bog."""


def age(depth, rate=1.0):
    """Return the years that so many millimetres took."""
    return depth / rate


def layers(depth, each):
    """Count whole layers."""
    return int(depth // each)
'''
PEAT_STUB = """def age(depth: float, rate: float = 1.0) -> float: ...
def layers(depth: float, each: float) -> int: ...
"""
PEAT_TESTS = """import unittest

from peat.bog import age, layers


class Bog(unittest.TestCase):
    def test_age(self):
        self.assertEqual(age(500, 2), 250)

    def test_layers(self):
        self.assertEqual(layers(25, 10), 2)
"""
STUB = Shape(
    name="stub-lacks-parameter",
    start=NO_SHOP
    | {
        "pyproject.toml": project("peat"),
        "peat/__init__.py": "",
        "peat/py.typed": "",
        "peat/bog.py": PEAT,
        "peat/bog.pyi": PEAT_STUB,
        "tests/test_bog.py": PEAT_TESTS,
        "Makefile": "test:\n\tpython -m unittest discover -s tests\n\tpython -m mypy.stubtest peat\n",
    },
    message="Round the count of layers up if asked",
    culprit={
        "peat/bog.py": swap(
            PEAT,
            (
                'def layers(depth, each):\n    """Count whole layers."""\n',
                'def layers(depth, each, begun=False):\n    """Count whole layers, and one that is begun if asked."""\n'
                "    if begun:\n        return int(-(-depth // each))\n",
            ),
        ),
        "tests/test_bog.py": PEAT_TESTS
        + "\n    def test_begun(self):\n        self.assertEqual(layers(25, 10, begun=True), 3)\n",
    },
    command="make test",
    setup="pip install -q mypy==1.18.2",
    keeps=READ
    + """
from peat.bog import layers
assert layers(25, 10, begun=True) == 3 and layers(25, 10) == 2
stub = next(one for one in ast.parse(text("peat/bog.pyi")).body if isinstance(one, ast.FunctionDef) and one.name == "layers")
names = [one.arg for one in stub.args.args + stub.args.kwonlyargs]
assert names == ["depth", "each", "begun"] and ast.unparse(stub.returns) == "int" and ast.unparse(stub.args.args[0].annotation) == "float"
assert "mypy.stubtest peat" in text("Makefile") and "allowlist" not in text("Makefile") and "def age" in text("peat/bog.pyi")
""",
    remedy="sed -i 's/each: float) -> int/each: float, begun: bool = False) -> int/' peat/bog.pyi",
)

# 15. A comment against the type checker that is no longer needed.

KILN = '''"""Firings of a kiln."""

from __future__ import annotations


class Log:
    """Temperatures by hour."""

    def __init__(self) -> None:
        self.degrees: dict[int, int] = {}

    def at(self, hour: int) -> int | None:
        """Return the temperature of an hour."""
        return self.degrees.get(hour)


def rise(log: Log, hour: int) -> int:
    """Return by how much it grew hotter in an hour."""
    return log.at(hour) - log.at(hour - 1)  # pyright: ignore[reportOperatorIssue]
'''
KILN_TESTS = """import unittest

from kiln.log import Log, rise


class Rise(unittest.TestCase):
    def test_rise(self):
        log = Log()
        log.degrees = {1: 80, 2: 140}
        self.assertEqual(rise(log, 2), 60)
"""
STALE_COMMENT = Shape(
    name="needless-ignore",
    start=NO_SHOP
    | {
        "pyproject.toml": project(
            "kiln",
            '\n[tool.basedpyright]\ninclude = ["kiln"]\ntypeCheckingMode = "standard"\n'
            'reportUnnecessaryTypeIgnoreComment = "error"\n',
        ),
        "kiln/__init__.py": "",
        "kiln/log.py": KILN,
        "tests/test_log.py": KILN_TESTS,
        "scripts/ci.sh": "set -e\npython -m unittest discover -s tests\nbasedpyright\n",
    },
    message="Take a missing hour as cold",
    culprit={
        "kiln/log.py": swap(
            KILN,
            ("-> int | None:", "-> int:"),
            ("temperature of an hour.", "temperature of an hour, 20 if none is known."),
            ("get(hour)", "get(hour, 20)"),
        ),
        "tests/test_log.py": KILN_TESTS + "        self.assertEqual(rise(log, 1), 60)\n",
    },
    command="sh scripts/ci.sh",
    setup="pip install -q basedpyright==1.40.2",
    keeps=READ
    + """
from kiln.log import Log, rise
log = Log()
log.degrees = {1: 80, 2: 140}
assert rise(log, 1) == 60 and rise(log, 2) == 60 and log.at(9) == 20
assert "ignore" not in text("kiln/log.py") and "-> int | None" not in text("kiln/log.py")
asked = tomllib.loads(text("pyproject.toml"))["tool"]["basedpyright"]
assert asked["reportUnnecessaryTypeIgnoreComment"] == "error" and asked["include"] == ["kiln"] and "ignore" not in asked
assert "basedpyright" in text("scripts/ci.sh")
""",
    remedy="sed -i 's/  # pyright: ignore.*//' kiln/log.py",
)

# 16. The format of a number in C.

MILE_C = """#include <stdio.h>
#include <stdlib.h>

#include "mile.h"

int main(int argc, char **argv) {
  long metres = argc > 1 ? atol(argv[1]) : 0;
  printf("%ld nm\\n", nautical(metres));
  return 0;
}
"""
FORMAT = Shape(
    name="c-format",
    start=NO_SHOP
    | {
        "mile.h": "#pragma once\n\nstatic inline long nautical(long metres) { return metres / 1852; }\n",
        "main.c": MILE_C,
        "tests.sh": '#!/bin/sh\nset -e\n./mile 3704 | grep -q "^2 nm"\necho ok\n',
        ".gitignore": "mile\n",
        "Makefile": "CFLAGS = -Wall -Wextra -Werror -O1\n\nmile: main.c mile.h\n\t$(CC) $(CFLAGS) -o $@ main.c\n\n"
        "check: mile\n\tsh tests.sh\n\n.PHONY: check\n",
    },
    message="Print the rest in metres too",
    culprit={
        "main.c": swap(
            MILE_C,
            (
                '  printf("%ld nm\\n", nautical(metres));\n',
                '  printf("%ld nm\\n", nautical(metres));\n  printf("%d m\\n", metres - nautical(metres) * 1852);\n',
            ),
        ),
        "tests.sh": '#!/bin/sh\nset -e\n./mile 3704 | grep -q "^2 nm"\n./mile 1900 | grep -q "^48 m"\necho ok\n',
    },
    command="make check",
    setup="true",
    keeps=READ
    + """
code = flat("main.c")
assert re.search(r'printf\\("%(ld|li|d|i) m', code) and "nautical(metres) * 1852" in code and '"%ld nm' in code
assert "pragma" not in code and "CFLAGS = -Wall -Wextra -Werror" in text("Makefile") and "-Wno" not in text("Makefile")
assert "^48 m" in text("tests.sh") and "long nautical(long metres)" in text("mile.h")
import subprocess, tempfile
with tempfile.TemporaryDirectory() as folder:
    subprocess.run(["gcc", "-Wall", "-Werror", "-o", folder + "/mile", "main.c"], check=True)
    assert subprocess.run([folder + "/mile", "1900"], capture_output=True, text=True).stdout == "1 nm\\n48 m\\n"
""",
    remedy="sed -i 's/%d m/%ld m/' main.c",
)

# 17. A module of the other kind in a JavaScript package.

MOSS = "export function spores(moss) {\n  return moss.split('').filter((one) => one === 'o').length;\n}\n"
MOSS_TESTS = """import assert from 'node:assert/strict';
import test from 'node:test';

import { spores } from '../lib/moss.js';

test('spores', () => {
  assert.equal(spores('o.o'), 2);
});
"""
MODULE_KIND = Shape(
    name="require-in-module",
    start=NO_SHOP
    | {
        "package.json": '{\n  "name": "moss",\n  "version": "2.0.1",\n  "type": "module",\n'
        '  "scripts": { "test": "node --test tests/moss.test.js" }\n}\n',
        "lib/moss.js": MOSS,
        "tests/moss.test.js": MOSS_TESTS,
        "README.md": "# moss\n\nCounts spores.\n",
        "data.txt": "o..o\n",
    },
    message="Count the spores of a file",
    culprit={
        "lib/moss.js": "const { readFileSync } = require('node:fs');\n\n"
        + MOSS
        + "\nexport function sporesOf(path) {\n  return spores(readFileSync(path, 'utf8'));\n}\n",
        "tests/moss.test.js": swap(MOSS_TESTS, ("{ spores }", "{ spores, sporesOf }"))
        + "\ntest('spores of a file', () => {\n  assert.equal(sporesOf('data.txt'), 2);\n});\n",
    },
    command="npm test",
    setup="true",
    keeps=READ
    + """
import subprocess
script = "import('./lib/moss.js').then((m) => console.log(m.spores('ooo'), m.sporesOf('data.txt')))"
done = subprocess.run(["node", "--input-type=module", "-e", script], capture_output=True, text=True)
assert done.stdout == "3 2\\n", done
package = json.loads(text("package.json"))
assert package["type"] == "module" and package["scripts"]["test"] == "node --test tests/moss.test.js"
assert "spores of a file" in text("tests/moss.test.js") and "skip" not in text("tests/moss.test.js")
""",
    remedy="""sed -i "1s/.*/import { readFileSync } from 'node:fs';/" lib/moss.js""",
)

# 18. A class of Perl that nobody loaded.

FLEET = """package Fleet;
use strict;
use warnings;
use Fleet::Boat;

sub new { my ($class) = @_; return bless { boats => [] }, $class; }

sub add { my ($self, $name) = @_; push @{ $self->{boats} }, Fleet::Boat->new($name); return $self; }

sub names { my ($self) = @_; return map { $_->name } @{ $self->{boats} }; }

1;
"""
BOAT = """package Fleet::Boat;
use strict;
use warnings;

sub new { my ($class, $name) = @_; return bless { name => $name }, $class; }

sub name { my ($self) = @_; return $self->{name}; }

1;
"""
CREW = """package Fleet::Crew;
use strict;
use warnings;

sub new { my ($class, @hands) = @_; return bless { hands => [@hands] }, $class; }

sub size { my ($self) = @_; return scalar @{ $self->{hands} }; }

1;
"""
FLEET_TESTS = """use strict;
use warnings;
use Test::More;
use Fleet;

my $fleet = Fleet->new->add('Ruth')->add('Gull');
is_deeply([$fleet->names], ['Ruth', 'Gull'], 'names');

done_testing;
"""
NOT_LOADED = Shape(
    name="perl-class-not-loaded",
    start=NO_SHOP
    | {
        "lib/Fleet.pm": FLEET,
        "lib/Fleet/Boat.pm": BOAT,
        "t/fleet.t": FLEET_TESTS,
        "Makefile": "test:\n\tprove -l t\n",
        "Changes": "0.02\n  - Boats.\n",
    },
    message="Man the boats",
    culprit={
        "lib/Fleet.pm": swap(
            FLEET,
            (
                "\n1;\n",
                "\nsub man { my ($self, @hands) = @_; $self->{crew} = Fleet::Crew->new(@hands); return $self; }\n\n"
                "sub hands { my ($self) = @_; return $self->{crew} ? $self->{crew}->size : 0; }\n\n1;\n",
            ),
        ),
        "lib/Fleet/Crew.pm": CREW,
        "t/fleet.t": swap(
            FLEET_TESTS,
            (
                "done_testing",
                "is($fleet->hands, 0, 'no crew');\nis($fleet->man(qw(ann bob))->hands, 2, 'crew');\n\ndone_testing",
            ),
        ),
    },
    command="make test",
    setup="true",
    keeps=READ
    + """
import subprocess
script = "use Fleet; my $f = Fleet->new->add('A'); print $f->hands, $f->man(1, 2, 3)->hands, $f->names"
done = subprocess.run(["perl", "-Ilib", "-e", script], capture_output=True, text=True)
assert done.stdout == "03A", done
assert "sub size" in text("lib/Fleet/Crew.pm") and "'crew'" in text("t/fleet.t") and "'no crew'" in text("t/fleet.t")
assert "prove -l t" in text("Makefile")
""",
    remedy="sed -i 's/^use Fleet::Boat;/&\\nuse Fleet::Crew;/' lib/Fleet.pm",
)

# 19. The extension of an import in TypeScript.

YARN = "export function metres(skeins: number, each = 50): number {\n  return skeins * each;\n}\n"
YARN_INDEX = "export { metres } from './yarn.js';\n"
YARN_TESTS = """const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const test = require('node:test');

test('metres are exported', () => {
  assert.match(readFileSync('src/index.ts', 'utf8'), /metres/);
});
"""
EXTENSION = Shape(
    name="import-extension",
    start=NO_SHOP
    | {
        ".gitignore": "node_modules/\npackage-lock.json\n",
        "package.json": '{\n  "name": "yarn-count",\n  "version": "0.9.0",\n  "type": "module",\n  "scripts": {\n'
        '    "types": "tsc --noEmit -p .",\n    "test": "npm run types && node --test tests/index.test.cjs"\n  },\n'
        '  "devDependencies": {\n    "typescript": "5.9.3"\n  }\n}\n',
        "tsconfig.json": '{\n  "compilerOptions": {\n    "module": "nodenext",\n    "target": "es2022",\n'
        '    "strict": true,\n    "types": []\n  },\n  "include": ["src"]\n}\n',
        "src/yarn.ts": YARN,
        "src/index.ts": YARN_INDEX,
        "tests/index.test.cjs": YARN_TESTS,
    },
    message="Count the skeins for a sweater",
    culprit={
        "src/sweater.ts": "import { metres } from './yarn';\n\n"
        "export function skeins(need: number): number {\n  return Math.ceil(need / metres(1));\n}\n",
        "src/index.ts": YARN_INDEX + "export { skeins } from './sweater.js';\n",
    },
    command="npm test",
    setup="npm install --no-audit --no-fund",
    keeps=READ
    + """
code = text("src/sweater.ts")
assert re.search(r"import \\{ metres \\} from ['\\"]\\./yarn\\.js['\\"]", code) and "Math.ceil(need / metres(1))" in code
assert "skeins" in text("src/index.ts") and "metres" in text("src/index.ts") and "@ts-" not in code
asked = json.loads(text("tsconfig.json"))["compilerOptions"]
assert asked["module"] == "nodenext" and asked["strict"] is True and json.loads(text("package.json"))["type"] == "module"
""",
    remedy="sed -i 's#/yarn#/yarn.js#' src/sweater.ts",
)

# 20. A variable of Rust that has to change.

SEEDS = """pub fn total(packets: &[u32]) -> u32 {
    packets.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(total(&[2, 3]), 5);
    }
}
"""
MUTABLE = Shape(
    name="rust-not-mutable",
    start=NO_SHOP
    | {
        "Cargo.toml": '[package]\nname = "seeds"\nversion = "0.1.0"\nedition = "2021"\n',
        "Cargo.lock": "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\n"
        'version = 4\n\n[[package]]\nname = "seeds"\nversion = "0.1.0"\n',
        "src/lib.rs": SEEDS,
        ".gitignore": "target/\n",
        "README.md": "# seeds\n\nCounts seeds.\n",
    },
    message="Sort the packets",
    culprit={
        "src/lib.rs": swap(
            SEEDS,
            (
                "\n#[cfg(test)]",
                "\npub fn sorted(packets: &[u32]) -> Vec<u32> {\n    let out = packets.to_vec();\n"
                "    out.sort_unstable();\n    out\n}\n\n#[cfg(test)]",
            ),
            (
                "5);\n    }\n",
                "5);\n    }\n\n    #[test]\n    fn sorts() {\n        assert_eq!(sorted(&[3, 2]), vec![2, 3]);\n    }\n",
            ),
        )
    },
    command="cargo test --offline --quiet",
    setup="true",
    keeps=READ
    + """
code = text("src/lib.rs")
assert re.search(r"let mut out\\b", code) and "out.sort" in code and "pub fn sorted(packets: &[u32]) -> Vec<u32>" in code
assert "fn sorts()" in code and "fn adds()" in code and "#[ignore" not in code and "pub fn total" in code
""",
    remedy="sed -i 's/let out/let mut out/' src/lib.rs",
)

# 21. An option that a field of Django does not use.

CHOIR_SETTINGS = """SECRET_KEY = "only for tests"
INSTALLED_APPS = ["choir"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
"""
CHOIR = '''"""Who sings what."""

from django.db import models


class Singer(models.Model):
    """One who sings."""

    name = models.CharField(max_length=80)


class Piece(models.Model):
    """What is sung."""

    title = models.CharField(max_length=120)
    minutes = models.PositiveSmallIntegerField(null=True, blank=True)
'''
CHOIR_TESTS = """from django.test import TestCase

from choir.models import Piece, Singer


class Pieces(TestCase):
    def test_piece(self):
        Piece.objects.create(title="Nunc dimittis")
        self.assertIsNone(Piece.objects.get().minutes)
"""
NO_EFFECT = Shape(
    name="field-option-without-effect",
    start=NO_SHOP
    | {
        "manage.py": MANAGE,
        "settings.py": CHOIR_SETTINGS,
        "choir/__init__.py": "",
        "choir/models.py": CHOIR,
        "choir/tests.py": CHOIR_TESTS,
        "Makefile": "ci:\n\tpython manage.py check --fail-level WARNING\n\tpython manage.py test\n",
    },
    message="Name the soloists of a piece",
    culprit={
        "choir/models.py": CHOIR
        + '    soloists = models.ManyToManyField(Singer, related_name="solos", null=True, blank=True)\n',
        "choir/tests.py": CHOIR_TESTS
        + '\n    def test_soloists(self):\n        piece = Piece.objects.create(title="Gloria")\n'
        '        piece.soloists.add(Singer.objects.create(name="Ida"))\n'
        "        self.assertEqual(Singer.objects.get().solos.get(), piece)\n",
    },
    command="make ci",
    setup="pip install -q Django==5.2.8",
    keeps=READ
    + """
calls = {}
for node in ast.walk(ast.parse(text("choir/models.py"))):
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        calls[node.targets[0].id] = (node.value.func.attr, {one.arg: ast.literal_eval(one.value) for one in node.value.keywords})
assert calls["soloists"] == ("ManyToManyField", {"related_name": "solos", "blank": True}), calls
assert calls["minutes"] == ("PositiveSmallIntegerField", {"null": True, "blank": True}), calls
assert "SILENCED" not in text("settings.py") and "--fail-level WARNING" in text("Makefile") and "manage.py test" in text("Makefile")
assert "test_soloists" in text("choir/tests.py")
""",
    remedy='sed -i \'s/"solos", null=True,/"solos",/\' choir/models.py',
)

# 22. A description on the package index whose form nobody gave.

WICK_CFG = """[metadata]
name = wick
version = 1.0.2
description = How long a candle burns
url = https://example.org/wick

[options]
py_modules = wick
python_requires = >=3.11
"""
WICK_README = "# wick\n\nSays *how long* a candle burns.\n\n```python\nhours(60)\n```\n"
WICK_TESTS = """import unittest

from wick import hours


class Hours(unittest.TestCase):
    def test_hours(self):
        self.assertEqual(hours(70), 10)
"""
DESCRIPTION = Shape(
    name="description-content-type",
    start=NO_SHOP
    | {
        "pyproject.toml": '[build-system]\nrequires = ["setuptools>=61"]\nbuild-backend = "setuptools.build_meta"\n',
        "setup.cfg": swap(
            WICK_CFG,
            (
                "url =",
                "long_description = A candle burns 7 grams an hour.\nlong_description_content_type = text/plain\nurl =",
            ),
        ),
        "wick.py": '"""Candles."""\n\n\ndef hours(grams):\n    """Return how many hours a candle burns."""\n    return grams / 7\n',
        "README.md": WICK_README,
        ".gitignore": "dist/\nbuild/\n*.egg-info/\n__pycache__/\n",
        "tests/test_wick.py": WICK_TESTS,
        "release-check.sh": "set -e\npython -m unittest discover -s tests\nrm -rf dist\n"
        "python -m build --no-isolation --wheel . > /dev/null\ntwine check --strict dist/*\n",
    },
    message="Show the README on the index",
    culprit={
        "setup.cfg": swap(WICK_CFG, ("url =", "long_description = file: README.md\nurl =")),
        "README.md": WICK_README + "\nA candle burns 7 grams an hour.\n",
    },
    command="sh release-check.sh",
    setup="pip install -q setuptools==80.9.0 wheel==0.45.1 build==1.3.0 twine==6.2.0",
    keeps=READ
    + """
import configparser
asked = configparser.ConfigParser()
asked.read("setup.cfg")
meta = asked["metadata"]
assert meta["long_description"] == "file: README.md", meta["long_description"]
assert meta["long_description_content_type"].split(";")[0] == "text/markdown" and meta["version"] == "1.0.2"
assert "7 grams an hour" in text("README.md") and text("README.md").startswith("# wick")
assert "twine check --strict dist/*" in text("release-check.sh") and "unittest" in text("release-check.sh")
""",
    remedy="sed -i 's/^long_description = .*/&\\nlong_description_content_type = text\\/markdown/' setup.cfg",
)

# 23. A name that a library took away.

WAKE = '''"""Waves behind a boat."""

import numpy as np


def mean_height(heights):
    """Return the mean height."""
    return float(np.mean(heights))
'''
WAKE_TESTS = """import unittest

from wake import waves


class Waves(unittest.TestCase):
    def test_mean_height(self):
        self.assertEqual(waves.mean_height([1, 2, 3]), 2.0)
"""
REMOVED_NAME = Shape(
    name="removed-numpy-name",
    start=NO_SHOP
    | {
        "pyproject.toml": swap(
            project("wake"),
            (
                'requires-python = ">=3.11"\n',
                'requires-python = ">=3.11"\ndependencies = ["numpy>=2"]\n',
            ),
        ),
        "wake/__init__.py": "",
        "wake/waves.py": WAKE,
        "tests/__init__.py": "",
        "tests/test_waves.py": WAKE_TESTS,
    },
    message="Find the lowest and the deepest wave",
    culprit={
        "wake/waves.py": WAKE
        + '''

def lowest(heights):
    """Return the lowest height; infinite for no waves."""
    return float(np.min(np.asarray(heights, dtype=float), initial=np.Inf))


def deepest(heights):
    """Return the most negative height; 0 or less."""
    return float(np.min(heights, initial=0))
''',
        "tests/test_waves.py": WAKE_TESTS
        + "\n    def test_lowest(self):\n        self.assertEqual(waves.lowest([3, 2]), 2.0)\n"
        '        self.assertEqual(waves.lowest([]), float("inf"))\n'
        "\n    def test_deepest(self):\n        self.assertEqual(waves.deepest([3, -2]), -2.0)\n",
    },
    command="python -m unittest",
    setup="pip install -q numpy==2.3.5",
    keeps=READ
    + """
code = text("wake/waves.py")
assert "np.Inf" not in code and re.search(r"initial=(np\\.inf|math\\.inf|float\\(['\\"]inf['\\"]\\))", code)
assert "def lowest(heights)" in code and "def deepest(heights)" in code and "np.mean(heights)" in code
assert "def test_lowest" in text("tests/test_waves.py") and "def test_deepest" in text("tests/test_waves.py")
assert "numpy>=2" in tomllib.loads(text("pyproject.toml"))["project"]["dependencies"]
""",
    remedy="sed -i 's/np.Inf/np.inf/' wake/waves.py",
)

# 24. A page of documentation that no list names.

ARCH_INDEX = """Arches
======

.. toctree::
   :maxdepth: 1

   spans

Stones that hold each other up.
"""
ARCH_TESTS = """import unittest
from pathlib import Path

from arch import SHAPES


class Docs(unittest.TestCase):
    def test_each_shape_is_described(self):
        text = " ".join(path.read_text(encoding="utf-8") for path in Path("docs").glob("*.rst"))
        for shape in SHAPES:
            self.assertIn(shape, text)
"""
NOT_IN_TREE = Shape(
    name="page-not-in-tree",
    start=NO_SHOP
    | {
        "arch.py": '"""Shapes of arches."""\n\nSHAPES = ["round"]\n',
        "docs/conf.py": 'project = "arch"\nauthor = "The masons"\nhtml_theme = "basic"\n',
        "docs/index.rst": ARCH_INDEX,
        "docs/spans.rst": "Spans\n=====\n\nA round arch spans 8 metres.\n",
        "test_arch.py": ARCH_TESTS,
        ".gitignore": "_build/\n__pycache__/\n",
        "Makefile": "SPHINXOPTS = -q -W --keep-going\n\ncheck: html\n\tpython -m unittest\n\n"
        "html:\n\tsphinx-build $(SPHINXOPTS) -E -b html docs _build/html\n\n.PHONY: check html\n",
    },
    message="Describe pointed arches",
    culprit={
        "arch.py": '"""Shapes of arches."""\n\nSHAPES = ["round", "pointed"]\n',
        "docs/thrust.rst": "Thrust\n======\n\nA pointed arch pushes less; see :doc:`spans`.\n",
    },
    command="make check",
    setup="pip install -q Sphinx==8.2.3",
    keeps=READ
    + """
index = text("docs/index.rst")
tree = index.split(".. toctree::")[1]
assert re.search(r"^ +(\\w.*<)?/?spans>?$", tree, re.M)
assert re.search(r"^ +(\\w.*<)?/?thrust>?$", tree, re.M) or (":glob:" in tree and re.search(r"^ +\\*$", tree, re.M))
assert "pushes less" in text("docs/thrust.rst") and ":orphan:" not in text("docs/thrust.rst") and '"pointed"' in text("arch.py")
assert "suppress_warnings" not in text("docs/conf.py") and "exclude_patterns" not in text("docs/conf.py")
assert " -W" in text("Makefile") and "unittest" in text("Makefile") and "hold each other up" in index
""",
    remedy="sed -i 's/^   spans$/&\\n   thrust/' docs/index.rst",
)

# 25. An error raised in place of another.

HERB = '''"""A herb garden's beds."""


class Unknown(Exception):
    """No such herb."""


BEDS = {"sage": 1, "mint": 2}


def bed(herb: str) -> int:
    """Return the bed of a herb."""
    return BEDS.get(herb, 0)
'''
HERB_TESTS = """import unittest

from herb.beds import Unknown, bed


class Beds(unittest.TestCase):
    def test_bed(self):
        self.assertEqual(bed("mint"), 2)
"""
RAISED = Shape(
    name="raised-without-cause",
    start=NO_SHOP
    | {
        "pyproject.toml": project(
            "herb", "\n[tool.pylint.main]\njobs = 1\n\n[tool.pylint.reports]\nscore = false\n"
        ),
        "herb/__init__.py": '"""Herbs."""\n',
        "herb/beds.py": HERB,
        "tests/test_beds.py": swap(HERB_TESTS, ("Unknown, bed", "bed")),
        "Makefile": "check: lint unit\n\nlint:\n\tpylint herb\n\nunit:\n\tpython -m unittest discover -s tests\n",
    },
    message="Refuse herbs that are not grown",
    culprit={
        "herb/beds.py": swap(
            HERB,
            (
                "    return BEDS.get(herb, 0)\n",
                "    try:\n        return BEDS[herb]\n    except KeyError:\n"
                '        raise Unknown(f"no {herb} here")\n',
            ),
        ),
        "tests/test_beds.py": HERB_TESTS
        + '\n    def test_unknown(self):\n        with self.assertRaises(Unknown):\n            bed("nettle")\n',
    },
    command="make check",
    setup="pip install -q pylint==4.0.4",
    form=True,
    keeps=READ
    + """
from herb.beds import Unknown, bed
assert bed("mint") == 2
try:
    bed("nettle")
except Unknown as error:
    assert str(error) == "no nettle here" and (error.__suppress_context__ or isinstance(error.__cause__, KeyError))
else:
    raise AssertionError("nothing raised")
assert "pylint:" not in text("herb/beds.py") and "disable" not in text("pyproject.toml")
assert "pylint herb" in text("Makefile") and "check: lint unit" in text("Makefile") and "test_unknown" in text("tests/test_beds.py")
""",
    remedy="sed -i 's/except KeyError:/except KeyError as error:/; s/no {herb} here\")/& from error/' herb/beds.py",
)

# 26. A key of a configuration that its schema does not know.

STATIONS_SCHEMA = """{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "type": "object",
  "additionalProperties": {
    "type": "object",
    "properties": {
      "metres": {"type": "number"},
      "every": {"type": "integer", "minimum": 1}
    },
    "required": ["metres", "every"],
    "additionalProperties": false
  }
}
"""
STATIONS = "# Rain gauges.\nhill:\n  metres: 420\n  every: 10\n"
STATIONS_TESTS = """import unittest
from pathlib import Path

from gauges import names


class Names(unittest.TestCase):
    def test_names(self):
        self.assertIn("hill", names(Path("stations.yml").read_text(encoding="utf-8")))
"""
UNKNOWN_KEY = Shape(
    name="unknown-configuration-key",
    start=NO_SHOP
    | {
        "gauges.py": '"""Gauges of rain."""\n\n\ndef names(text):\n    """List the gauges of a file."""\n'
        '    return [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]\n',
        "schema/stations.json": STATIONS_SCHEMA,
        "stations.yml": STATIONS,
        "test_gauges.py": STATIONS_TESTS,
        "tools/verify.py": '"""Verify the configuration."""\n\nimport subprocess\nimport sys\n\n'
        'sys.exit(subprocess.call(["check-jsonschema", "--schemafile", "schema/stations.json", "stations.yml"]))\n',
        "Makefile": "all:\n\tpython -m unittest\n\tpython tools/verify.py\n",
    },
    message="Add the gauge at the mill",
    culprit={
        "stations.yml": STATIONS + "mill:\n  meters: 85\n  every: 15\n",
        "test_gauges.py": swap(
            STATIONS_TESTS, ('assertIn("hill", ', 'assertEqual(["hill", "mill"], ')
        ),
    },
    command="make all",
    setup="pip install -q check-jsonschema==0.35.0",
    keeps=READ
    + """
found = text("stations.yml")
assert re.search(r"^mill:\\n(  every: 15\\n  metres: 85|  metres: 85\\n  every: 15)$", found, re.M), found
assert re.search(r"^hill:\\n  metres: 420\\n  every: 10$", found, re.M) and "# Rain gauges." in found
schema = json.loads(text("schema/stations.json"))["additionalProperties"]
assert schema["additionalProperties"] is False and schema["required"] == ["metres", "every"] and set(schema["properties"]) == {"metres", "every"}
assert "check-jsonschema" in text("tools/verify.py") and "tools/verify.py" in text("Makefile")
""",
    remedy="sed -i 's/meters:/metres:/' stations.yml",
)

EIGHTEENTH = (
    TEMPLATES,
    SCRIPTS,
    BUILD_FILES,
    ORDER,
    DOCSTRINGS,
    MANUAL,
    DRAWINGS,
    GUIDE,
    MODELS,
    LAST_MIGRATION,
    FORTRAN,
    EMBEDDED,
    TRANSLATIONS,
    STUB,
    STALE_COMMENT,
    FORMAT,
    MODULE_KIND,
    NOT_LOADED,
    EXTENSION,
    MUTABLE,
    NO_EFFECT,
    DESCRIPTION,
    REMOVED_NAME,
    NOT_IN_TREE,
    RAISED,
    UNKNOWN_KEY,
)
