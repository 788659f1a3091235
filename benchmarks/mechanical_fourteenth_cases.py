"""Small projects in many frameworks whose default branch a feature leaves red in a mechanical way.

Written before the fixer was run on them by one who had not read it. `remedy` is a reference: the command is green after
it, and `keeps` holds. `keeps` needs only the standard library.
"""

from __future__ import annotations

from benchmarks.mechanical_eleventh_cases import NO_SHOP, Shape, swap
from benchmarks.repair_choice_cases import Files

READ = "from pathlib import Path\nread = lambda name: Path(name).read_text(encoding='utf-8')\n"


# A seed bank on Django.

DJANGO = "pip install -q django==4.2.16"
MANAGE = '''"""Run a command of the site."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "seedbank.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
'''
SETTINGS = '''"""Settings of the site."""

SECRET_KEY = "only-for-tests"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "catalog",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
'''
VARIETY = '''"""What the bank holds."""

from django.db import models


class Variety(models.Model):
    """A variety of a plant."""

    name = models.CharField(max_length=80)
    sown_in = models.PositiveSmallIntegerField(default=4)

    def label(self):
        """Say what to write on the bag."""
        return f"{self.name} (month {self.sown_in})"
'''
FIRST_MIGRATION = """from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Variety",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("sown_in", models.PositiveSmallIntegerField(default=4)),
            ],
        ),
    ]
"""
ADMIN = '''"""The bank's back office."""

from django.contrib import admin

from catalog.models import Variety


@admin.register(Variety)
class VarietyAdmin(admin.ModelAdmin):
    """A table of varieties."""

    list_display = ("name", "sown_in")
    list_filter = ("sown_in",)
'''
T_VARIETY = """from django.test import TestCase

from catalog.models import Variety


class VarietyTests(TestCase):
    def test_label(self):
        one = Variety.objects.create(name="Leek", sown_in=3)
        self.assertEqual(one.label(), "Leek (month 3)")

    def test_usual_month(self):
        self.assertEqual(Variety(name="Kale").sown_in, 4)
"""
SEEDBANK: Files = {
    **NO_SHOP,
    "manage.py": MANAGE,
    "seedbank/__init__.py": "",
    "seedbank/settings.py": SETTINGS,
    "catalog/__init__.py": "",
    "catalog/models.py": VARIETY,
    "catalog/migrations/__init__.py": "",
    "catalog/migrations/0001_initial.py": FIRST_MIGRATION,
    "catalog/tests.py": T_VARIETY,
}
RENAME_MONTH = """from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalog", "0001_initial")]

    operations = [
        migrations.RenameField(model_name="variety", old_name="sown_in", new_name="sowing_month"),
    ]
"""
RENAME_NAME = swap(RENAME_MONTH, ('"sown_in"', '"name"'), ('"sowing_month"', '"common_name"'))
STARTER = """[
  {
    "model": "catalog.variety",
    "pk": 1,
    "fields": {
      "name": "Broad bean",
      "sown_in": 2
    }
  },
  {
    "model": "catalog.variety",
    "pk": 2,
    "fields": {
      "name": "Chard",
      "sown_in": 5
    }
  }
]
"""
T_STARTER = """from django.test import TestCase

from catalog.models import Variety


class StarterTests(TestCase):
    fixtures = ["starter"]

    def test_both_are_there(self):
        self.assertEqual(Variety.objects.count(), 2)

    def test_first_label(self):
        self.assertEqual(Variety.objects.get(pk=1).label(), "Broad bean (month 2)")
"""

# A larder's tables under Alembic.

LARDER_INI = """[alembic]
script_location = migrations
sqlalchemy.url = sqlite://
"""
LARDER_ENV = """from alembic import context
from sqlalchemy import create_engine

from larder.tables import metadata

engine = create_engine(context.config.get_main_option("sqlalchemy.url"))
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=metadata)
    with context.begin_transaction():
        context.run_migrations()
"""
LARDER_MAKO = '''"""${message}"""

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade():
    ${upgrades if upgrades else "pass"}


def downgrade():
    ${downgrades if downgrades else "pass"}
'''
LARDER_TABLES = '''"""What the larder's database looks like."""

from sqlalchemy import Column, Integer, MetaData, String, Table

metadata = MetaData()
jars = Table(
    "jars",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("holds", String(40), nullable=False),
)
'''
LARDER_1 = '''"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "3a10"
down_revision = None


def upgrade():
    op.create_table(
        "jars",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("holds", sa.String(40), nullable=False),
    )


def downgrade():
    op.drop_table("jars")
'''
LARDER_2 = '''"""Say when a jar was filled."""

import sqlalchemy as sa
from alembic import op

revision = "5c27"
down_revision = "3a10"


def upgrade():
    op.add_column("jars", sa.Column("filled_on", sa.Date))


def downgrade():
    op.drop_column("jars", "filled_on")
'''
LARDER_3 = swap(
    LARDER_2,
    ("Say when a jar was filled.", "Say on which shelf a jar is."),
    ("5c27", "7d4e"),
    ("filled_on", "shelf"),
    ("sa.Date", "sa.Integer"),
)
LARDER_TABLES_2 = swap(
    LARDER_TABLES,
    ("import Column, Integer", "import Column, Date, Integer"),
    ("nullable=False),\n)", 'nullable=False),\n    Column("filled_on", Date),\n)'),
)
LARDER_TABLES_3 = swap(
    LARDER_TABLES_2,
    ('"filled_on", Date),\n', '"filled_on", Date),\n    Column("shelf", Integer),\n'),
)
T_LARDER = """import unittest

from larder.tables import jars


class JarTests(unittest.TestCase):
    def test_has_a_key(self):
        self.assertTrue(jars.c.id.primary_key)

    def test_holds_something(self):
        self.assertFalse(jars.c.holds.nullable)
"""

# A guide to trails in MkDocs.

TRAIL_YML = """site_name: Trails
nav:
  - Home: index.md
  - Setting up: setup.md
  - Routes: routes.md
"""
TRAIL_INDEX = """# Trails

Grades of hills, and how steep they are. Begin with [setting up](setup.md).
"""
TRAIL_SETUP = """# Setting up

Install the package.

## Maps

Put the maps in `maps/`.
"""
TRAIL_ROUTES = """# Routes

Each route needs [its map](setup.md#maps). The grade is in per cent.
"""
TRAIL_GRADE = '''"""How steep it is."""


def grade(rise: float, run: float) -> float:
    """Say in per cent how steep a slope is."""
    return round(100 * rise / run, 1)
'''
T_TRAIL = """import unittest

from trails.grade import grade


class GradeTests(unittest.TestCase):
    def test_grade(self):
        self.assertEqual(grade(12, 100), 12.0)
"""
TRAIL: Files = {
    **NO_SHOP,
    ".gitignore": "site/\n__pycache__/\n",
    "mkdocs.yml": TRAIL_YML,
    "docs/index.md": TRAIL_INDEX,
    "docs/setup.md": TRAIL_SETUP,
    "docs/routes.md": TRAIL_ROUTES,
    "trails/__init__.py": "",
    "trails/grade.py": TRAIL_GRADE,
    "tests/__init__.py": "",
    "tests/test_grade.py": T_TRAIL,
}

# A cook's scale in Sphinx.

SCALE = '''"""Scale a recipe."""


def scale(grams: int, factor: float) -> int:
    """Scale a weight."""
    return round(grams * factor)
'''
T_SCALE = """import unittest

from spoon.scale import scale


class ScaleTests(unittest.TestCase):
    def test_scale(self):
        self.assertEqual(scale(200, 1.5), 300)
"""
SPOON_INDEX = """Spoon
=====

Recipes for more people, or for fewer.

.. toctree::
   :maxdepth: 1

   intro
   weights
"""
SPOON: Files = {
    **NO_SHOP,
    ".gitignore": "docs/_build/\n__pycache__/\n",
    "docs/conf.py": 'project = "Spoon"\nauthor = "The cooks"\nexclude_patterns = ["_build"]\n',
    "docs/index.rst": SPOON_INDEX,
    "docs/intro.rst": "Introduction\n============\n\nA recipe is a list of weights.\n",
    "docs/weights.rst": "Weights\n=======\n\nWeights are whole grams.\n",
    "spoon/__init__.py": "",
    "spoon/scale.py": SCALE,
    "tests/__init__.py": "",
    "tests/test_scale.py": T_SCALE,
}

# A rain gauge that writes its news with towncrier.

GAUGE_TOML = """[project]
name = "raingauge"
version = "1.3.0"

[tool.towncrier]
package = "raingauge"
directory = "news"
filename = "NEWS.md"
ignore = [".gitignore"]

[[tool.towncrier.type]]
directory = "feature"
name = "Features"
showcontent = true

[[tool.towncrier.type]]
directory = "bugfix"
name = "Bugs mended"
showcontent = true
"""
GAUGE = '''"""What fell."""


def total(tips: int, per_tip: float = 0.2) -> float:
    """Say how many millimetres so many tips of the bucket are."""
    return round(tips * per_tip, 1)
'''
GAUGE_MORE = (
    GAUGE
    + '''

def per_hour(tips: int, minutes: int) -> float:
    """Say how hard it rained."""
    return round(total(tips) * 60 / minutes, 1)
'''
)
T_GAUGE = """import unittest

from raingauge.fall import total


class FallTests(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total(12), 2.4)
"""
RAINGAUGE: Files = {
    **NO_SHOP,
    "pyproject.toml": GAUGE_TOML,
    "NEWS.md": "# News\n\n<!-- towncrier release notes start -->\n",
    "news/.gitignore": "!.gitignore\n",
    "news/17.bugfix.md": "A stuck bucket no longer counts twice.\n",
    "raingauge/__init__.py": "",
    "raingauge/fall.py": GAUGE,
    "tests/__init__.py": "",
    "tests/test_fall.py": T_GAUGE,
}

# Parcels in pydantic.

PARCEL = '''"""What is sent."""

from pydantic import BaseModel, ConfigDict, Field


class Parcel(BaseModel):
    """A parcel as the depot takes it."""

    model_config = ConfigDict(extra="forbid")

    code: str
    weight: int = Field(gt=0)
    fragile: bool = False

    def heavy(self) -> bool:
        """Say whether it takes two people."""
        return self.weight > 20_000
'''
PARCEL_CHECK = '''"""Check that each example is a parcel."""

import sys
from pathlib import Path

from pydantic import ValidationError

sys.path.insert(0, str(Path(__file__).parent.parent))

from depot.parcel import Parcel  # noqa: E402

bad = 0
for path in sorted(Path("examples").glob("*.json")):
    try:
        Parcel.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        print(f"{path}: {error}")
        bad += 1
sys.exit(bad > 0)
'''
T_PARCEL = """import unittest

from depot.parcel import Parcel


class ParcelTests(unittest.TestCase):
    def test_heavy(self):
        self.assertTrue(Parcel(code="A1", weight=25_000).heavy())

    def test_light(self):
        self.assertFalse(Parcel(code="A2", weight=900).heavy())
"""
DEPOT: Files = {
    **NO_SHOP,
    "depot/__init__.py": "",
    "depot/parcel.py": PARCEL,
    "examples/books.json": '{\n  "code": "B7",\n  "weight": 4200\n}\n',
    "examples/vase.json": '{\n  "code": "V2",\n  "weight": 1800,\n  "fragile": true\n}\n',
    "scripts/check_examples.py": PARCEL_CHECK,
    "tests/__init__.py": "",
    "tests/test_parcel.py": T_PARCEL,
}

# Lamps behind FastAPI.

LAMPS = '''"""The lamps of a house."""

from fastapi import FastAPI

app = FastAPI()
STATE = {"hall": False, "porch": True}


@app.get("/lamps")
def list_lamps() -> dict[str, bool]:
    """Say which lamps are on."""
    return STATE


@app.put("/lamps/{name}")
def switch_lamp(name: str, on: bool) -> dict[str, bool]:
    """Switch a lamp."""
    return STATE | {name: on}
'''
LAMPS_MORE = (
    LAMPS
    + '''

@app.get("/lamps/{name}/hours")
def lamp_hours(name: str) -> int:
    """Say how many hours a lamp may burn."""
    return 1000 if name in STATE else 0
'''
)
LAMP_ROUTES = '''"""Write docs/routes.txt, the list of what the service answers.

python -m scripts.routes [--check]
"""

import argparse
import sys
from pathlib import Path

from lamps.main import app

PATH = Path("docs/routes.txt")


def table() -> str:
    """Lay out the routes, one a line."""
    spec = app.openapi()["paths"]
    rows = [f"{verb.upper():<6}{path}  {call['summary']}" for path, verbs in spec.items() for verb, call in verbs.items()]
    return "\\n".join(sorted(rows)) + "\\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true", help="only say whether the list is up to date")
    if parser.parse_args().check:
        if PATH.read_text(encoding="utf-8") != table():
            sys.exit(f"{PATH} is out of date. Run: python -m scripts.routes")
    else:
        PATH.write_text(table(), encoding="utf-8")
'''
T_LAMPS = """import unittest

from lamps.main import list_lamps, switch_lamp


class LampTests(unittest.TestCase):
    def test_list(self):
        self.assertTrue(list_lamps()["porch"])

    def test_switch(self):
        self.assertTrue(switch_lamp("hall", on=True)["hall"])
"""

# Pollen from the web.

POLLEN_TOML = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "pollen"
version = "0.4.0"
requires-python = ">=3.10"
dependencies = [
    "packaging>=23",
    "requests>=2.31",
]

[tool.setuptools]
packages = ["pollen"]
"""
POLLEN = '''"""Ask the station."""

import requests
from packaging.version import Version

OLDEST = Version("2.0")


def fetch(url: str, get=requests.get) -> dict:
    """Read the counts of a day."""
    counts = get(url, timeout=10).json()
    if Version(counts.pop("version")) < OLDEST:
        raise ValueError("an old station")
    return counts
'''
T_POLLEN = """import unittest

from pollen.station import fetch


class Answer:
    def __init__(self, version):
        self.version = version

    def json(self):
        return {"version": self.version, "birch": 12}


class FetchTests(unittest.TestCase):
    def test_counts(self):
        self.assertEqual(fetch("x", get=lambda *_, **__: Answer("2.1")), {"birch": 12})

    def test_old(self):
        with self.assertRaises(ValueError):
            fetch("x", get=lambda *_, **__: Answer("1.9"))
"""

# A clock built with Hatch.

CLOCK_TOML = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "clockface"
dynamic = ["version"]
requires-python = ">=3.10"

[tool.hatch.version]
path = "src/clockface/__about__.py"

[tool.hatch.build.targets.wheel]
packages = ["src/clockface"]
"""
CLOCK_HANDS = '''"""Where the hands are."""


def hour_hand(hours: int, minutes: int) -> float:
    """Say at how many degrees the short hand is."""
    return (hours % 12) * 30 + minutes / 2
'''
T_CLOCK = """import sys
import unittest

sys.path.insert(0, "src")

from clockface.hands import hour_hand


class HandTests(unittest.TestCase):
    def test_half_past_three(self):
        self.assertEqual(hour_hand(15, 30), 105)
"""

BATCH_1 = (
    Shape(
        name="model-field-without-a-migration",
        command="python manage.py makemigrations --check --dry-run",
        setup=DJANGO,
        start=SEEDBANK,
        message="Say which varieties are organic",
        culprit={
            "catalog/models.py": swap(
                VARIETY,
                (
                    "(default=4)\n",
                    "(default=4)\n    organic = models.BooleanField(default=False)\n",
                ),
                (
                    'return f"{self.name} (month {self.sown_in})"',
                    "return f\"{self.name}{' organic' * self.organic} (month {self.sown_in})\"",
                ),
            ),
        },
        keeps=READ
        + """
assert "organic = models.BooleanField(default=False)" in read("catalog/models.py")
assert "' organic' * self.organic" in read("catalog/models.py")
assert "organic" not in read("catalog/migrations/0001_initial.py")
new = [p.read_text() for p in Path("catalog/migrations").glob("*.py") if "organic" in p.read_text()]
assert len(new) == 1 and "AddField" in new[0] and "BooleanField" in new[0] and "0001_initial" in new[0]
assert "catalog" in read("seedbank/settings.py")
""",
        remedy="python manage.py makemigrations",
    ),
    Shape(
        name="admin-table-of-a-renamed-field",
        command="python manage.py check",
        setup=DJANGO,
        start={**SEEDBANK, "catalog/admin.py": ADMIN},
        message="Rename sown_in to sowing_month",
        culprit={
            "catalog/models.py": swap(VARIETY, ("sown_in", "sowing_month")),
            "catalog/migrations/0002_sowing_month.py": RENAME_MONTH,
            "catalog/tests.py": swap(T_VARIETY, ("sown_in", "sowing_month")),
        },
        keeps=READ
        + """
admin = read("catalog/admin.py")
assert '"name", "sowing_month"' in admin and 'list_filter = ("sowing_month",)' in admin and "sown_in" not in admin
assert "sowing_month = models" in read("catalog/models.py") and "RenameField" in read("catalog/migrations/0002_sowing_month.py")
assert '"django.contrib.admin"' in read("seedbank/settings.py") and "SILENCED" not in read("seedbank/settings.py")
""",
        remedy="sed -i s/sown_in/sowing_month/ catalog/admin.py",
    ),
    Shape(
        name="data-file-of-a-renamed-field",
        command="python manage.py test",
        setup=DJANGO,
        start={
            **SEEDBANK,
            "catalog/tests.py": None,
            "catalog/fixtures/starter.json": STARTER,
            "catalog/tests/__init__.py": "",
            "catalog/tests/test_starter.py": T_STARTER,
            "catalog/tests/test_variety.py": T_VARIETY,
        },
        message="Call a variety's name its common name",
        culprit={
            "catalog/models.py": swap(
                VARIETY, ("    name =", "    common_name ="), ("self.name", "self.common_name")
            ),
            "catalog/migrations/0002_common_name.py": RENAME_NAME,
            "catalog/tests/test_variety.py": swap(T_VARIETY, ("name=", "common_name=")),
        },
        keeps=READ
        + """
import json
rows = [row["fields"] for row in json.loads(read("catalog/fixtures/starter.json"))]
assert rows == [{"common_name": "Broad bean", "sown_in": 2}, {"common_name": "Chard", "sown_in": 5}], rows
assert "common_name = models" in read("catalog/models.py") and "common_name" in read("catalog/migrations/0002_common_name.py")
assert "Broad bean (month 2)" in read("catalog/tests/test_starter.py") and 'fixtures = ["starter"]' in read("catalog/tests/test_starter.py")
""",
        remedy="""sed -i 's/"name"/"common_name"/' catalog/fixtures/starter.json""",
    ),
    Shape(
        name="two-heads-of-migrations",
        command="alembic upgrade head",
        setup="pip install -q alembic==1.13.2 sqlalchemy==2.0.32",
        start={
            **NO_SHOP,
            "alembic.ini": LARDER_INI,
            "migrations/env.py": swap(
                LARDER_ENV,
                ("from alembic", 'import sys\n\nsys.path.insert(0, ".")\n\nfrom alembic'),
            ),
            "migrations/script.py.mako": LARDER_MAKO,
            "migrations/versions/3a10_first.py": LARDER_1,
            "larder/__init__.py": "",
            "larder/tables.py": LARDER_TABLES,
            "tests/__init__.py": "",
            "tests/test_tables.py": T_LARDER,
        },
        history=(
            (
                "Say when a jar was filled",
                {
                    "migrations/versions/5c27_filled_on.py": LARDER_2,
                    "larder/tables.py": LARDER_TABLES_2,
                },
            ),
        ),
        message="Say on which shelf a jar is",
        culprit={
            "migrations/versions/7d4e_shelf.py": LARDER_3,
            "larder/tables.py": LARDER_TABLES_3,
        },
        keeps=READ
        + """
import runpy, sys, types
for name in ("alembic", "sqlalchemy"):
    sys.modules[name] = types.SimpleNamespace(op=None)
parents = {}
for path in Path("migrations/versions").glob("*.py"):
    given = runpy.run_path(str(path))
    down = given["down_revision"]
    parents[given["revision"]] = set(down) if isinstance(down, tuple | list) else {down} - {None}
assert {"3a10", "5c27", "7d4e"} <= set(parents), parents
assert parents["5c27"] == {"3a10"} and not parents["3a10"]
assert len(set(parents) - set().union(*parents.values())) == 1, parents
assert 'add_column("jars", sa.Column("shelf", sa.Integer))' in read("migrations/versions/7d4e_shelf.py")
assert 'Column("shelf", Integer)' in read("larder/tables.py")
""",
        remedy="""sed -i 's/^down_revision = "3a10"/down_revision = "5c27"/' migrations/versions/7d4e_shelf.py""",
    ),
    Shape(
        name="links-to-a-page-that-moved",
        command="mkdocs build --strict",
        setup="pip install -q mkdocs==1.6.1",
        start=TRAIL,
        message="Turn the page on setting up into one on installing",
        culprit={
            "docs/setup.md": None,
            "docs/install.md": swap(
                TRAIL_SETUP,
                ("# Setting up\n", "# Installing\n"),
                ("Install the package.", "Install the package, with `trails[gps]` for a receiver."),
            ),
            "mkdocs.yml": swap(TRAIL_YML, ("Setting up: setup.md", "Installing: install.md")),
        },
        keeps=READ
        + """
assert "trails[gps]" in read("docs/install.md") and "## Maps" in read("docs/install.md")
assert not Path("docs/setup.md").exists()
assert "(install.md#maps)" in read("docs/routes.md") and "(install.md)" in read("docs/index.md")
assert "install.md" in read("mkdocs.yml") and "validation" not in read("mkdocs.yml")
""",
        remedy="sed -i 's/(setup.md/(install.md/' docs/index.md docs/routes.md",
    ),
    Shape(
        name="page-outside-every-table-of-contents",
        command="sphinx-build -W -b html docs docs/_build",
        setup="pip install -q sphinx==7.4.7",
        start=SPOON,
        message="Scale for a number of people",
        culprit={
            "docs/people.rst": "People\n======\n\n``for_people`` scales a weight meant for four.\n",
            "spoon/scale.py": SCALE
            + '\n\ndef for_people(grams: int, people: int) -> int:\n    """Scale a weight that was meant for four."""\n'
            + "    return scale(grams, people / 4)\n",
        },
        keeps=READ
        + """
from spoon.scale import for_people
assert for_people(100, 6) == 150
index = read("docs/index.rst").split("toctree::")[1].split()
assert {"intro", "weights", "people"} <= set(index), index
assert "for_people" in read("docs/people.rst") and ":orphan:" not in read("docs/people.rst")
assert "suppress" not in read("docs/conf.py") and "people" not in read("docs/conf.py")
""",
        remedy="sed -i 's/^   weights$/   weights\\n   people/' docs/index.rst",
    ),
    Shape(
        name="news-of-an-unknown-kind",
        command="towncrier build --draft --version 1.4.0 --date 2024-05-01",
        setup="pip install -q towncrier==24.8.0",
        start=RAINGAUGE,
        message="Say how hard it rains (#23)",
        culprit={
            "news/23.feat.md": "`per_hour` says how hard it rained.\n",
            "raingauge/fall.py": GAUGE_MORE,
            "tests/test_fall.py": swap(T_GAUGE, ("import total", "import per_hour, total"))
            + "\n    def test_per_hour(self):\n        self.assertEqual(per_hour(10, 30), 4.0)\n",
        },
        keeps=READ
        + """
from raingauge.fall import per_hour
assert per_hour(10, 30) == 4.0
assert "per_hour" in read("news/23.feature.md") and not Path("news/23.feat.md").exists()
assert Path("news/17.bugfix.md").exists() and "feat." not in read("pyproject.toml")
""",
        remedy="git mv news/23.feat.md news/23.feature.md",
    ),
    Shape(
        name="example-with-the-old-key",
        command="python scripts/check_examples.py",
        setup="pip install -q pydantic==2.8.2",
        start=DEPOT,
        message="Name the unit of a weight",
        culprit={
            "depot/parcel.py": swap(
                PARCEL, ("weight: int", "weight_g: int"), ("self.weight", "self.weight_g")
            ),
            "tests/test_parcel.py": swap(T_PARCEL, ("weight=", "weight_g=")),
            "examples/books.json": '{\n  "code": "B7",\n  "weight_g": 4200\n}\n',
        },
        keeps=READ
        + """
import json
assert json.loads(read("examples/vase.json")) == {"code": "V2", "weight_g": 1800, "fragile": True}
assert json.loads(read("examples/books.json")) == {"code": "B7", "weight_g": 4200}
assert "weight_g: int = Field(gt=0)" in read("depot/parcel.py") and 'extra="forbid"' in read("depot/parcel.py")
assert "alias" not in read("depot/parcel.py")
""",
        remedy="""sed -i 's/"weight"/"weight_g"/' examples/vase.json""",
    ),
    Shape(
        name="list-of-routes-out-of-date",
        command="python -m scripts.routes --check",
        setup="pip install -q fastapi==0.112.0",
        start={
            **NO_SHOP,
            "lamps/__init__.py": "",
            "lamps/main.py": LAMPS,
            "docs/routes.txt": "GET   /lamps  List Lamps\nPUT   /lamps/{name}  Switch Lamp\n",
            "scripts/__init__.py": "",
            "scripts/routes.py": LAMP_ROUTES,
            "tests/__init__.py": "",
            "tests/test_lamps.py": T_LAMPS,
        },
        message="Say how long a lamp may burn",
        culprit={"lamps/main.py": LAMPS_MORE},
        keeps=READ
        + """
rows = read("docs/routes.txt").splitlines()
assert rows == ["GET   /lamps  List Lamps", "GET   /lamps/{name}/hours  Lamp Hours", "PUT   /lamps/{name}  Switch Lamp"], rows
assert "def lamp_hours" in read("lamps/main.py") and "include_in_schema" not in read("lamps/main.py")
assert "out of date" in read("scripts/routes.py")
""",
        remedy="python -m scripts.routes",
    ),
    Shape(
        name="one-library-for-another",
        command="deptry .",
        setup="pip install -q deptry==0.20.0 requests==2.32.3 httpx==0.27.2 packaging==24.1",
        start={
            **NO_SHOP,
            "pyproject.toml": POLLEN_TOML,
            "pollen/__init__.py": "",
            "pollen/station.py": POLLEN,
            "tests/__init__.py": "",
            "tests/test_station.py": T_POLLEN,
        },
        message="Ask the station with httpx, which can follow redirects on request",
        culprit={
            "pollen/station.py": swap(
                POLLEN,
                ("import requests\nfrom packaging", "import httpx\nfrom packaging"),
                ("requests.get", "httpx.get"),
                ("timeout=10", "timeout=10, follow_redirects=True"),
            )
        },
        keeps=READ
        + """
import re, tomllib
given = tomllib.loads(read("pyproject.toml"))
names = sorted(re.match("[a-z]+", one)[0] for one in given["project"]["dependencies"])
assert names == ["httpx", "packaging"], names
assert "deptry" not in given.get("tool", {})
assert "httpx.get" in read("pollen/station.py") and "follow_redirects=True" in read("pollen/station.py")
""",
        remedy="""sed -i 's/"requests>=2.31"/"httpx"/' pyproject.toml""",
    ),
    Shape(
        name="version-file-moved",
        command="hatchling version",
        setup="pip install -q hatchling==1.25.0",
        start={
            **NO_SHOP,
            "pyproject.toml": CLOCK_TOML,
            "src/clockface/__init__.py": 'from clockface.__about__ import __version__\n\n__all__ = ["__version__"]\n',
            "src/clockface/__about__.py": '__version__ = "2.1.0"\n',
            "src/clockface/hands.py": CLOCK_HANDS,
            "tests/__init__.py": "",
            "tests/test_hands.py": T_CLOCK,
        },
        message="Name each release",
        culprit={
            "src/clockface/__about__.py": None,
            "src/clockface/_release.py": '__version__ = "2.1.0"\nRELEASE = "Big Ben"\n',
            "src/clockface/__init__.py": "from clockface._release import RELEASE, __version__\n\n"
            '__all__ = ["RELEASE", "__version__"]\n',
        },
        keeps=READ
        + """
import sys, tomllib
sys.path.insert(0, "src")
import clockface
assert clockface.RELEASE == "Big Ben" and clockface.__version__ == "2.1.0"
given = tomllib.loads(read("pyproject.toml"))
assert given["tool"]["hatch"]["version"]["path"] == "src/clockface/_release.py"
assert given["project"]["dynamic"] == ["version"]
assert not Path("src/clockface/__about__.py").exists()
""",
        remedy="sed -i s/__about__/_release/ pyproject.toml",
    ),
)


# A choir's seats with nox.

CHOIR_NOX = '''"""Sessions of the choir."""

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["everything"]


@nox.session
def everything(session):
    """Run whatever a release needs."""
    session.notify("compile")
    session.notify("unit")


@nox.session(name="compile")
def compile_all(session):
    """Compile each file."""
    session.run("python", "-m", "compileall", "-q", "choir")


@nox.session
def unit(session):
    """Run the tests."""
    session.run("python", "-m", "unittest", "-q")
'''
CHOIR = '''"""Who stands where."""


def rows(singers: int, wide: int) -> int:
    """Say how many rows a choir takes."""
    return -(-singers // wide)
'''
T_CHOIR = """import unittest

from choir.seats import rows


class RowTests(unittest.TestCase):
    def test_rows(self):
        self.assertEqual(rows(25, 8), 4)
"""

# Layers of a bike hire under import-linter.

HIRE_INI = """[importlinter]
root_package = hire

[importlinter:contract:layers]
name = The desk is above the rules, the rules are above the store
type = layers
layers =
    hire.desk
    hire.rules
    hire.store
"""
HIRE_STORE = '''"""Which bikes there are."""

BIKES = {"B1": "town", "B2": "cargo"}


def kind(code: str) -> str:
    """Look a bike up."""
    return BIKES[code]
'''
HIRE_RULES = '''"""What a bike costs."""

from hire.store import kind

RATES = {"town": 3, "cargo": 7}


def fee(code: str, hours: int) -> int:
    """Say what so many hours cost."""
    return RATES[kind(code)] * hours
'''
HIRE_DESK = '''"""What the desk says."""

from hire.rules import fee


def quote(code: str, hours: int) -> str:
    """Say a price aloud."""
    return f"{code}: {fee(code, hours)} euro"
'''
T_HIRE = """import unittest

from hire.desk import quote


class QuoteTests(unittest.TestCase):
    def test_quote(self):
        self.assertEqual(quote("B2", 2), "B2: 14 euro")
"""

# A reader of walks in Node.

WALK_PACKAGE = """{
  "name": "walk-reader",
  "version": "1.2.0",
  "type": "module",
  "exports": {
    ".": "./src/index.js",
    "./parse": "./src/parse.js"
  }
}
"""
WALK_PARSE = """// Read one line of a walk: a name, a colon and metres.
export function parse(line) {
  const [name, metres] = line.split(':');
  return { name: name.trim(), metres: Number(metres) };
}
"""
WALK_INDEX = """import { parse } from './parse.js';

// Add up the metres of a walk.
export function length(lines) {
  return lines.map(parse).reduce((sum, one) => sum + one.metres, 0);
}
"""
WALK_TEST = """import test from 'node:test';
import assert from 'node:assert/strict';
import { length } from 'walk-reader';

test('adds up', () => {
  assert.equal(length(['Mill: 400', 'Ford: 250']), 650);
});
"""
WALK_PARSE_TEST = """import test from 'node:test';
import assert from 'node:assert/strict';
import { parse } from 'walk-reader/parse';

test('reads a line', () => {
  assert.deepEqual(parse('Mill: 400'), { name: 'Mill', metres: 400 });
});
"""

# The words of a shop front in Node.

FRONT_PACKAGE = '{\n  "name": "front",\n  "version": "0.3.0",\n  "type": "module"\n}\n'
FRONT_SAY = """import { readFileSync } from 'node:fs';

// Say a phrase in a language.
export function say(language, key) {
  const file = new URL(`../locales/${language}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8'))[key];
}

export const button = (language) => say(language, 'cart.buy');
"""
FRONT_CHECK = """import { readFileSync, readdirSync } from 'node:fs';

const read = (name) => JSON.parse(readFileSync(`locales/${name}`, 'utf8'));
const wanted = Object.keys(read('en.json'));
let bad = 0;
for (const name of readdirSync('locales').sort()) {
  const keys = Object.keys(read(name));
  for (const key of wanted.filter((one) => !keys.includes(one))) {
    console.error(`locales/${name}: no ${key}`);
    bad += 1;
  }
  for (const key of keys.filter((one) => !wanted.includes(one))) {
    console.error(`locales/${name}: ${key} is not in en.json`);
    bad += 1;
  }
}
process.exit(bad ? 1 : 0);
"""
FRONT_EN = '{\n  "cart.buy": "Buy",\n  "cart.empty": "Your cart is empty"\n}\n'
FRONT_FI = '{\n  "cart.buy": "Osta",\n  "cart.empty": "Ostoskori on tyhjä"\n}\n'
FRONT_SV = '{\n  "cart.buy": "Köp",\n  "cart.empty": "Varukorgen är tom"\n}\n'
FRONT_TEST = """import test from 'node:test';
import assert from 'node:assert/strict';
import { button, say } from '../src/say.js';

test('the button', () => {
  assert.equal(button('en'), 'Buy');
});

test('an empty cart', () => {
  assert.equal(say('sv', 'cart.empty'), 'Varukorgen är tom');
});
"""

# A knot tool in Node whose README shows its options.

KNOT_PACKAGE = """{
  "name": "knots",
  "version": "2.0.0",
  "type": "module",
  "scripts": {
    "usage": "node scripts/usage.mjs --write",
    "usage:check": "node scripts/usage.mjs"
  }
}
"""
KNOT_OPTIONS = """// What the command takes.
export const OPTIONS = [
  { flag: '--rope', help: 'how thick the rope is, in mm' },
  { flag: '--wet', help: 'the rope is wet' },
];
"""
KNOT_STRENGTH = """// How much of a rope's strength is left with a knot.
export function strength(knot, { wet = false } = {}) {
  const left = { bowline: 65, eight: 75 }[knot];
  return wet ? left - 10 : left;
}
"""
KNOT_USAGE = """import { readFileSync, writeFileSync } from 'node:fs';
import { OPTIONS } from '../src/options.js';

const rows = OPTIONS.map(({ flag, help }) => `- \\`${flag}\\`: ${help}`).join('\\n');
const old = readFileSync('README.md', 'utf8');
const fresh = old.replace(/(<!-- usage -->\\n)[^]*(\\n<!-- end -->)/, (_, start, end) => start + rows + end);
if (process.argv.includes('--write')) {
  writeFileSync('README.md', fresh);
} else if (fresh !== old) {
  console.error('README.md is behind src/options.js; run `npm run usage`');
  process.exit(1);
}
"""
KNOT_README = """# Knots

<!-- usage -->
- `--rope`: how thick the rope is, in mm
- `--wet`: the rope is wet
<!-- end -->

Never trust a knot that you cannot name.
"""
KNOT_TEST = """import test from 'node:test';
import assert from 'node:assert/strict';
import { strength } from '../src/strength.js';

test('a wet rope is weaker', () => {
  assert.equal(strength('bowline', { wet: true }), 55);
});
"""

# A museum on Flask.

MUSEUM_APP = '''"""The museum's pages."""

from flask import Blueprint, Flask, render_template

site = Blueprint("site", __name__)
HOURS = {"monday": "closed", "tuesday": "10 to 17"}


@site.route("/")
def home():
    """Show the front page."""
    return render_template("home.html")


@site.route("/hours")
def hours():
    """Say when the museum is open."""
    return render_template("hours.html", hours=HOURS)


def create_app():
    """Make the application."""
    app = Flask(__name__)
    app.register_blueprint(site)
    return app
'''
MUSEUM_BASE = """<!doctype html>
<title>Museum</title>
<nav>
  <a href="{{ url_for('site.home') }}">Home</a>
  <a href="{{ url_for('site.hours') }}">Hours</a>
</nav>
{% block body %}{% endblock %}
"""
MUSEUM_HOME = '{% extends "base.html" %}\n{% block body %}<p>Welcome.</p>{% endblock %}\n'
MUSEUM_HOURS = """{% extends "base.html" %}
{% block body %}
{% for day, span in hours.items() %}<p>{{ day }}: {{ span }}</p>{% endfor %}
{% endblock %}
"""
T_MUSEUM = """import pytest

from museum.app import create_app


@pytest.fixture
def client():
    return create_app().test_client()


def test_home(client):
    page = client.get("/")
    assert page.status_code == 200
    assert "Welcome" in page.text


def test_hours(client):
    assert "tuesday: 10 to 17" in client.get("/hours").text
"""
PYTEST_HERE = '[tool.pytest.ini_options]\npythonpath = ["."]\n'

# Trees and their owners in SQLAlchemy.

ORCHARD = '''"""Who looks after which tree."""

from sqlalchemy import ForeignKey
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    """What all tables share."""


class Keeper(Base):
    """One who looks after trees."""

    __tablename__ = "keepers"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    trees: Mapped[list["Tree"]] = relationship(back_populates="keeper")


class Tree(Base):
    """A tree."""

    __tablename__ = "trees"

    id: Mapped[int] = mapped_column(primary_key=True)
    sort: Mapped[str]
    keeper_id: Mapped[int] = mapped_column(ForeignKey("keepers.id"))
    keeper: Mapped["Keeper"] = relationship(back_populates="trees")
'''
ORCHARD_STORE = '''"""Put trees away and find them."""

from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session

from orchard.tables import Base, Keeper, Tree


def opened(url: str = "sqlite://") -> Session:
    """Open a store."""
    engine = create_engine(url)
    Base.metadata.create_all(engine)
    return Session(engine)


def sorts_of(session: Session, name: str) -> list[str]:
    """Say which sorts a keeper has."""
    return sorted(session.scalars(select(Tree.sort).join(Tree.keeper).where(Keeper.name == name)))
'''
T_ORCHARD = """from orchard.store import opened, sorts_of
from orchard.tables import Keeper, Tree


def test_sorts():
    with opened() as session:
        session.add(Keeper(name="Ada", trees=[Tree(sort="plum"), Tree(sort="fig")]))
        session.commit()
        assert sorts_of(session, "Ada") == ["fig", "plum"]


def test_nobody():
    with opened() as session:
        assert sorts_of(session, "Bo") == []
"""

# A kiln's command in click.

KILN = '''"""Fire a kiln."""

import click


def plan(top: int, steps: int) -> list[int]:
    """Say how hot each step is."""
    return [top * step // steps for step in range(1, steps + 1)]


@click.command()
@click.option("--max", "top", type=int, required=True, help="How hot, in degrees.")
@click.option("--steps", type=int, default=4, show_default=True, help="In how many steps.")
def main(top: int, steps: int) -> None:
    """Print a plan."""
    for heat in plan(top, steps):
        click.echo(heat)
'''
T_KILN = """import unittest

from click.testing import CliRunner

from kiln.cli import main


class MainTests(unittest.TestCase):
    def run_it(self, *words):
        result = CliRunner().invoke(main, words)
        self.assertEqual(result.exit_code, 0, result.output)
        return result.output.split()

    def test_plan(self):
        self.assertEqual(self.run_it("--max", "1000"), ["250", "500", "750", "1000"])

    def test_two_steps(self):
        self.assertEqual(self.run_it("--max", "900", "--steps", "2"), ["450", "900"])
"""

# A sky chart in attrs.

STAR = '''"""Stars."""

import attrs


@attrs.frozen
class Star:
    """A star, where it is and how bright."""

    name: str
    height: float
    bearing: float
    magnitude: float = 6.0

    def visible(self) -> bool:
        """Say whether one sees it without a glass."""
        return self.height > 0 and self.magnitude <= 6
'''
CHART = '''"""Charts of the sky."""

from sky.star import Star

GUIDES = [
    Star("Vega", 51.0, 120.5, 0.0),
    Star("Mizar", 33.5, 310.0, 2.2),
]


def brightest(stars=GUIDES) -> Star:
    """Find the brightest star that is up."""
    return min((one for one in stars if one.visible()), key=lambda one: one.magnitude)
'''
T_SKY = """import unittest

from sky.chart import GUIDES, brightest
from sky.star import Star


class ChartTests(unittest.TestCase):
    def test_brightest(self):
        self.assertEqual(brightest().name, "Vega")

    def test_where(self):
        self.assertEqual([(one.height, one.bearing) for one in GUIDES], [(51.0, 120.5), (33.5, 310.0)])


class StarTests(unittest.TestCase):
    def test_below(self):
        self.assertFalse(Star("Acrux", -12.0, 180.0, 0.8).visible())
"""

# A tide of pages with a fault that was known.

PAGES = '''"""Cut a list into pages."""


def count(items: int, size: int) -> int:
    """Say how many pages there are."""
    return items // size + 1


def page(items: list, number: int, size: int = 10) -> list:
    """Give one page, from 1."""
    return items[(number - 1) * size : number * size]
'''
T_PAGES = """import pytest

from pager.pages import count, page


def test_count():
    assert count(25, 10) == 3


@pytest.mark.xfail(reason="#12: a full last page is followed by an empty one")
def test_full_last_page():
    assert count(20, 10) == 2


@pytest.mark.xfail(reason="#15: a page before the first gives the end of the list", raises=AssertionError)
def test_page_before_the_first():
    assert page([1, 2, 3], -1, size=1) == []


def test_second_page():
    assert page(list(range(25)), 2)[0] == 10
"""
PAGES_TOML = '[tool.pytest.ini_options]\npythonpath = ["."]\nxfail_strict = true\n'

# A courier whose sender moves.

SENDER = '''"""Send a line to the depot."""


def send(line: str) -> bool:
    """Send a line; say whether it came."""
    raise OSError("no depot")
'''
ROUND = '''"""A courier's round."""

from courier.sender import send


def report(stops: list[str]) -> int:
    """Tell the depot of each stop; say how many it knows of."""
    return sum(send(f"at {stop}") for stop in stops)
'''
ALARM = '''"""Call for help."""

from courier import sender


def call(where: str) -> str:
    """Call the depot."""
    return "heard" if sender.send(f"help at {where}") else "not heard"
'''
T_COURIER = """import unittest
from unittest import mock

from courier.alarm import call
from courier.round import report


class RoundTests(unittest.TestCase):
    def test_report(self):
        with mock.patch("courier.round.send", return_value=True) as send:
            self.assertEqual(report(["mill", "inn"]), 2)
        self.assertEqual(send.call_count, 2)


class AlarmTests(unittest.TestCase):
    @mock.patch("courier.sender.send", return_value=True)
    def test_heard(self, send):
        self.assertEqual(call("ford"), "heard")
        send.assert_called_once_with("help at ford")

    @mock.patch("courier.sender.send", return_value=False)
    def test_not_heard(self, send):
        self.assertEqual(call("ford"), "not heard")
"""

BATCH_2 = (
    Shape(
        name="session-told-by-its-old-name",
        command="nox",
        setup="pip install -q nox==2024.4.15",
        start={
            **NO_SHOP,
            "noxfile.py": CHOIR_NOX,
            "choir/__init__.py": "",
            "choir/seats.py": CHOIR,
            "tests/__init__.py": "",
            "tests/test_seats.py": T_CHOIR,
        },
        message="Let the session of tests take words for the runner",
        culprit={
            "noxfile.py": swap(
                CHOIR_NOX,
                ("def unit(session):", "def tests(session):"),
                (
                    '    """Run the tests."""',
                    '    """Run the tests; words after -- go to the runner."""',
                ),
                ('"unittest", "-q")', '"unittest", "-q", *session.posargs)'),
            )
        },
        keeps=READ
        + """
text = read("noxfile.py")
assert "def tests(session)" in text and "*session.posargs" in text and "def unit(" not in text
assert 'notify("tests")' in text and 'notify("compile")' in text and 'notify("unit")' not in text
assert '["everything"]' in text
""",
        remedy="""sed -i 's/notify("unit")/notify("tests")/' noxfile.py""",
    ),
    Shape(
        name="contract-that-names-a-moved-module",
        command="lint-imports",
        setup="pip install -q import-linter==2.0",
        start={
            **NO_SHOP,
            ".importlinter": HIRE_INI,
            "hire/__init__.py": "",
            "hire/store.py": HIRE_STORE,
            "hire/rules.py": HIRE_RULES,
            "hire/desk.py": HIRE_DESK,
            "tests/__init__.py": "",
            "tests/test_desk.py": T_HIRE,
        },
        message="Keep bikes in a garage, with trailers",
        culprit={
            "hire/store.py": None,
            "hire/garage.py": swap(HIRE_STORE, ('"B2": "cargo"', '"B2": "cargo", "T1": "trailer"')),
            "hire/rules.py": swap(
                HIRE_RULES,
                ("hire.store", "hire.garage"),
                ('"cargo": 7', '"cargo": 7, "trailer": 2'),
            ),
        },
        keeps=READ
        + """
from hire.rules import fee
assert fee("T1", 3) == 6 and fee("B1", 1) == 3
layers = read(".importlinter").split("layers =")[1].split()
assert layers == ["hire.desk", "hire.rules", "hire.garage"], layers
assert not Path("hire/store.py").exists() and "ignore" not in read(".importlinter")
""",
        remedy="sed -i s/hire.store/hire.garage/ .importlinter",
    ),
    Shape(
        name="exports-map-of-a-moved-file",
        command="node --test",
        setup="true",
        start={
            **NO_SHOP,
            "package.json": WALK_PACKAGE,
            "src/index.js": WALK_INDEX,
            "src/parse.js": WALK_PARSE,
            "test/length.test.js": WALK_TEST,
            "test/parse.test.js": WALK_PARSE_TEST,
        },
        message="Read walks in miles too",
        culprit={
            "src/parse.js": None,
            "src/read/line.js": swap(
                WALK_PARSE,
                ("and metres.", "and metres, or miles with `mi`."),
                (
                    "metres: Number(metres) }",
                    "metres: metres.endsWith('mi') ? parseFloat(metres) * 1609 : Number(metres) }",
                ),
            ),
            "src/index.js": swap(WALK_INDEX, ("./parse.js", "./read/line.js")),
        },
        keeps=READ
        + """
import json
given = json.loads(read("package.json"))
assert given["exports"] == {".": "./src/index.js", "./parse": "./src/read/line.js"}, given
assert "* 1609" in read("src/read/line.js") and not Path("src/parse.js").exists()
assert "walk-reader/parse" in read("test/parse.test.js") and "walk-reader'" in read("test/length.test.js")
""",
        remedy="sed -i s,./src/parse.js,./src/read/line.js, package.json",
    ),
    Shape(
        name="translation-under-the-old-key",
        command="node scripts/locales.mjs",
        setup="true",
        start={
            **NO_SHOP,
            "package.json": FRONT_PACKAGE,
            "src/say.js": FRONT_SAY,
            "locales/en.json": FRONT_EN,
            "locales/fi.json": FRONT_FI,
            "locales/sv.json": FRONT_SV,
            "scripts/locales.mjs": FRONT_CHECK,
            "test/say.test.js": FRONT_TEST,
        },
        message="Name the button after what it does: cart.checkout",
        culprit={
            "src/say.js": swap(FRONT_SAY, ("cart.buy", "cart.checkout")),
            "locales/en.json": swap(FRONT_EN, ("cart.buy", "cart.checkout")),
            "locales/sv.json": swap(FRONT_SV, ("cart.buy", "cart.checkout")),
        },
        keeps=READ
        + """
import json
words = {name: json.loads(read(f"locales/{name}.json")) for name in ("en", "fi", "sv")}
assert {name: one["cart.checkout"] for name, one in words.items()} == {"en": "Buy", "fi": "Osta", "sv": "Köp"}, words
assert all(set(one) == {"cart.checkout", "cart.empty"} for one in words.values())
assert "cart.checkout" in read("src/say.js") and "is not in en.json" in read("scripts/locales.mjs")
""",
        remedy="sed -i s/cart.buy/cart.checkout/ locales/fi.json",
    ),
    Shape(
        name="usage-in-the-readme-out-of-date",
        command="npm run usage:check",
        setup="true",
        start={
            **NO_SHOP,
            "package.json": KNOT_PACKAGE,
            "README.md": KNOT_README,
            "src/options.js": KNOT_OPTIONS,
            "src/strength.js": KNOT_STRENGTH,
            "scripts/usage.mjs": KNOT_USAGE,
            "test/strength.test.js": KNOT_TEST,
        },
        message="Take the age of a rope into account",
        culprit={
            "src/options.js": swap(
                KNOT_OPTIONS,
                (
                    "help: 'the rope is wet' },\n",
                    "help: 'the rope is wet' },\n  { flag: '--years', help: 'how old the rope is' },\n",
                ),
            ),
            "src/strength.js": swap(
                KNOT_STRENGTH,
                ("{ wet = false } = {}", "{ wet = false, years = 0 } = {}"),
                ("[knot];", "[knot] - 2 * years;"),
            ),
        },
        keeps=READ
        + """
assert "- `--wet`: the rope is wet\\n- `--years`: how old the rope is\\n<!-- end -->" in read("README.md")
assert "Never trust a knot" in read("README.md") and "--rope" in read("README.md")
assert "--years" in read("src/options.js") and "2 * years" in read("src/strength.js")
assert "process.exit(1)" in read("scripts/usage.mjs")
""",
        remedy="npm run usage",
    ),
    Shape(
        name="endpoint-renamed-under-a-template",
        command="python -m pytest -q",
        setup="pip install -q flask==3.0.3 pytest==8.3.2",
        start={
            **NO_SHOP,
            "pyproject.toml": PYTEST_HERE,
            "museum/__init__.py": "",
            "museum/app.py": MUSEUM_APP,
            "museum/templates/base.html": MUSEUM_BASE,
            "museum/templates/home.html": MUSEUM_HOME,
            "museum/templates/hours.html": MUSEUM_HOURS,
            "tests/test_pages.py": T_MUSEUM,
        },
        message="Say the hours of one day",
        culprit={
            "museum/app.py": swap(
                MUSEUM_APP,
                ('def hours():\n    """Say', 'def opening_hours():\n    """Say'),
                (
                    "\n\ndef create_app",
                    '\n\n@site.route("/hours/<day>")\ndef hours_of_day(day):\n    """Say the hours of one day."""\n'
                    '    return HOURS.get(day, "ask us")\n\n\ndef create_app',
                ),
            ),
            "tests/test_pages.py": T_MUSEUM
            + '\n\ndef test_one_day(client):\n    assert client.get("/hours/monday").text == "closed"\n',
        },
        keeps=READ
        + """
app = read("museum/app.py")
assert "def opening_hours():" in app and "def hours_of_day(day):" in app and "endpoint=" not in app
base = read("museum/templates/base.html")
assert "url_for('site.opening_hours')" in base and "url_for('site.home')" in base and ">Hours<" in base
assert "test_one_day" in read("tests/test_pages.py")
""",
        remedy="sed -i s/site.hours/site.opening_hours/ museum/templates/base.html",
    ),
    Shape(
        name="back-reference-to-a-renamed-relation",
        command="python -m pytest -q",
        setup="pip install -q sqlalchemy==2.0.32 pytest==8.3.2",
        start={
            **NO_SHOP,
            "pyproject.toml": PYTEST_HERE,
            "orchard/__init__.py": "",
            "orchard/tables.py": ORCHARD,
            "orchard/store.py": ORCHARD_STORE,
            "tests/test_store.py": T_ORCHARD,
        },
        message="Let a keeper keep more than trees: rename trees to plants",
        culprit={
            "orchard/tables.py": swap(ORCHARD, ("    trees: Mapped", "    plants: Mapped")),
            "tests/test_store.py": swap(T_ORCHARD, ("trees=", "plants=")),
        },
        keeps=READ
        + """
text = read("orchard/tables.py")
assert 'plants: Mapped[list["Tree"]] = relationship(back_populates="keeper")' in text
assert 'keeper: Mapped["Keeper"] = relationship(back_populates="plants")' in text
assert '__tablename__ = "trees"' in text and "plants=[" in read("tests/test_store.py")
""",
        remedy="""sed -i 's/back_populates="trees"/back_populates="plants"/' orchard/tables.py""",
    ),
    Shape(
        name="runner-gives-an-old-option",
        command="python -m unittest",
        setup="pip install -q click==8.1.7",
        start={
            **NO_SHOP,
            "kiln/__init__.py": "",
            "kiln/cli.py": KILN,
            "tests/__init__.py": "",
            "tests/test_cli.py": T_KILN,
        },
        message="Call the heat --max-heat and add --hold",
        culprit={
            "kiln/cli.py": swap(
                KILN,
                ('"--max", "top"', '"--max-heat", "top"'),
                (
                    'help="In how many steps.")\n',
                    'help="In how many steps.")\n@click.option("--hold", type=int, default=0, help="How often to repeat the top.")\n',
                ),
                ("def main(top: int, steps: int)", "def main(top: int, steps: int, hold: int)"),
                ("in plan(top, steps):", "in plan(top, steps) + [top] * hold:"),
            )
        },
        keeps=READ
        + """
text = read("kiln/cli.py")
assert '"--max-heat"' in text and '"--max",' not in text and '"--hold"' in text and "[top] * hold" in text
tests = read("tests/test_cli.py")
assert '"--max-heat", "1000"' in tests and '"--max-heat", "900", "--steps", "2"' in tests
assert 'exit_code, 0' in tests and '["250", "500", "750", "1000"]' in tests and "skip" not in tests
""",
        remedy='sed -i \'s/"--max"/"--max-heat"/\' tests/test_cli.py',
    ),
    Shape(
        name="records-that-take-only-keywords",
        command="python -m unittest",
        setup="pip install -q attrs==24.2.0",
        start={
            **NO_SHOP,
            "sky/__init__.py": "",
            "sky/star.py": STAR,
            "sky/chart.py": CHART,
            "tests/__init__.py": "",
            "tests/test_sky.py": T_SKY,
        },
        message="Make a star by names, for height and bearing were mixed up",
        culprit={"sky/star.py": swap(STAR, ("@attrs.frozen\n", "@attrs.frozen(kw_only=True)\n"))},
        keeps=READ
        + """
import ast
assert "@attrs.frozen(kw_only=True)" in read("sky/star.py")
made = {}
for name in ("sky/chart.py", "tests/test_sky.py"):
    for node in ast.walk(ast.parse(read(name))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Star":
            assert not node.args, ast.unparse(node)
            given = {one.arg: ast.literal_eval(one.value) for one in node.keywords}
            made[given.pop("name")] = given
assert made == {
    "Vega": {"height": 51.0, "bearing": 120.5, "magnitude": 0.0},
    "Mizar": {"height": 33.5, "bearing": 310.0, "magnitude": 2.2},
    "Acrux": {"height": -12.0, "bearing": 180.0, "magnitude": 0.8},
}, made
""",
        remedy=r"""sed -i -E 's/Star\(("[A-Za-z]+"), ([-0-9.]+), ([-0-9.]+), ([-0-9.]+)\)/Star(name=\1, height=\2, bearing=\3, magnitude=\4)/' sky/chart.py tests/test_sky.py""",
    ),
    Shape(
        name="mark-of-a-mended-fault",
        command="python -m pytest -q",
        setup="pip install -q pytest==8.3.2",
        start={
            **NO_SHOP,
            "pyproject.toml": PAGES_TOML,
            "pager/__init__.py": "",
            "pager/pages.py": PAGES,
            "tests/test_pages.py": T_PAGES,
        },
        message="Do not count an empty last page (#12)",
        culprit={"pager/pages.py": swap(PAGES, ("items // size + 1", "-(-items // size)"))},
        keeps=READ
        + """
from pager.pages import count
assert count(20, 10) == 2 and count(25, 10) == 3 and count(0, 10) == 0
tests = read("tests/test_pages.py")
assert "def test_full_last_page():\\n    assert count(20, 10) == 2" in tests and "#12" not in tests
assert "#15: a page before" in tests and tests.count("xfail") == 1 and "skip" not in tests
assert "xfail_strict = true" in read("pyproject.toml")
""",
        remedy="sed -i '/#12/d' tests/test_pages.py",
    ),
    Shape(
        name="patch-of-a-moved-module",
        command="python -m unittest",
        setup="true",
        start={
            **NO_SHOP,
            "courier/__init__.py": "",
            "courier/sender.py": SENDER,
            "courier/round.py": ROUND,
            "courier/alarm.py": ALARM,
            "tests/__init__.py": "",
            "tests/test_courier.py": T_COURIER,
        },
        message="Keep what sends in courier.wire, beside what is urgent",
        culprit={
            "courier/sender.py": None,
            "courier/wire.py": SENDER
            + '\n\ndef urgent(line: str) -> str:\n    """Mark a line as urgent."""\n    return line.upper() + "!"\n',
            "courier/round.py": swap(ROUND, ("courier.sender", "courier.wire")),
            "courier/alarm.py": swap(
                ALARM, ("import sender", "import wire"), ("sender.send", "wire.send")
            ),
        },
        keeps=READ
        + """
from courier.wire import urgent
from courier import alarm
assert urgent("help") == "HELP!" and alarm.wire.send
assert not Path("courier/sender.py").exists()
tests = read("tests/test_courier.py")
assert tests.count('mock.patch("courier.wire.send"') == 2 and tests.count('mock.patch("courier.round.send"') == 1
assert "assert_called_once_with" in tests and "skip" not in tests
""",
        remedy="sed -i s/courier.sender.send/courier.wire.send/ tests/test_courier.py",
    ),
)


# Filters of a sound desk under mypy.

DESK_TOML = '[tool.mypy]\nfiles = ["desk"]\nstrict = true\n'
DESK_BASE = '''"""What all filters share."""


class Filter:
    """A filter that changes nothing."""

    def apply(self, samples: list[float]) -> list[float]:
        """Give the samples as they are to be heard."""
        return list(samples)
'''
DESK_GAIN = '''"""Louder, softer."""

from typing_extensions import override

from desk.base import Filter


class Gain(Filter):
    """Make all of it louder."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @override
    def apply(self, samples: list[float]) -> list[float]:
        return [one * self.factor for one in samples]
'''
DESK_CLIP = '''"""Cut off peaks."""

from typing_extensions import override

from desk.base import Filter


class Clip(Filter):
    """Keep all of it within a limit."""

    def __init__(self, limit: float = 1.0) -> None:
        self.limit = limit

    @override
    def apply(self, samples: list[float]) -> list[float]:
        return [max(-self.limit, min(self.limit, one)) for one in samples]
'''
DESK_CHAIN = '''"""One filter after another."""

from desk.base import Filter


def through(filters: list[Filter], samples: list[float]) -> list[float]:
    """Send samples through filters."""
    for one in filters:
        samples = one.apply(samples)
    return samples
'''
T_DESK = """import unittest

from desk.base import Filter
from desk.chain import through
from desk.gain import Gain


class ChainTests(unittest.TestCase):
    def test_gain(self):
        self.assertEqual(through([Gain(2)], [0.5, 0.1]), [1.0, 0.2])

    def test_nothing(self):
        self.assertEqual(Filter().apply([0.5]), [0.5])
"""

# A shed's log under pydoclint.

SHED_TOML = """[tool.pydoclint]
style = "google"
arg-type-hints-in-docstring = false
check-return-types = false
"""
SHED = '''"""The log of a shed."""


def newest(entries: list[str], count: int) -> list[str]:
    """Give the last entries, the newest first.

    Args:
        entries: All entries, the oldest first.
        count: How many to give at most.

    Returns:
        The entries.
    """
    return entries[::-1][:count]


def with_word(entries: list[str], word: str) -> list[str]:
    """Find entries by a word.

    Args:
        entries: All entries.
        word: What to look for.

    Returns:
        The entries that hold the word.
    """
    return [one for one in entries if word in one]
'''
T_SHED = """import unittest

from shed.log import newest, with_word


class LogTests(unittest.TestCase):
    def test_newest(self):
        self.assertEqual(newest(["rake", "hose", "saw"], count=2), ["saw", "hose"])

    def test_with_word(self):
        self.assertEqual(with_word(["red rake", "hose"], "rake"), ["red rake"])
"""

# A ticket machine that speaks German, with Babel.

TICKET = '''"""What the machine says."""

from gettext import NullTranslations

LINES = NullTranslations()
_ = LINES.gettext


def greeting() -> str:
    """Greet."""
    return _("Where to?")


def goodbye() -> str:
    """Part."""
    return _("Have a good journey")
'''
TICKET_POT = """# Translations template for ticket.
msgid ""
msgstr ""
"Project-Id-Version: ticket 1.0\\n"
"POT-Creation-Date: 2024-03-01 09:00+0000\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"

#: ticket/lines.py:11
msgid "Where to?"
msgstr ""

#: ticket/lines.py:16
msgid "Have a good journey"
msgstr ""

"""
TICKET_PO = """# German translations for ticket.
msgid ""
msgstr ""
"Project-Id-Version: ticket 1.0\\n"
"Report-Msgid-Bugs-To: EMAIL@ADDRESS\\n"
"POT-Creation-Date: 2024-03-01 09:00+0000\\n"
"PO-Revision-Date: YEAR-MO-DA HO:MI+ZONE\\n"
"Last-Translator: FULL NAME <EMAIL@ADDRESS>\\n"
"Language: de\\n"
"Language-Team: de\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Generated-By: Babel 2.16.0\\n"

#: ticket/lines.py:11
msgid "Where to?"
msgstr "Wohin?"

#: ticket/lines.py:16
msgid "Have a good journey"
msgstr "Gute Reise"

"""
T_TICKET = """import unittest

from ticket.lines import goodbye, greeting


class LineTests(unittest.TestCase):
    def test_greeting(self):
        self.assertEqual(greeting(), "Where to?")

    def test_goodbye(self):
        self.assertEqual(goodbye(), "Have a good journey")
"""

# A honey ledger whose script may print.

HONEY_TOML = """[tool.ruff]
line-length = 100

[tool.ruff.lint]
select = ["E", "F", "I", "T20"]

[tool.ruff.lint.per-file-ignores]
"scripts/dump.py" = ["T201"]
"""
HONEY = '''"""Honey by the year."""

YEARS = {2021: 14.5, 2022: 9.0, 2023: 17.25}


def best() -> int:
    """Say which year was best."""
    return max(YEARS, key=lambda year: YEARS[year])
'''
HONEY_DUMP = '''"""Print the ledger."""

import sys

sys.path.insert(0, ".")


def main() -> None:
    """Print a line a year."""
    from honey.ledger import YEARS

    for year, kilos in sorted(YEARS.items()):
        print(f"{year}: {kilos} kg")


if __name__ == "__main__":
    main()
'''
T_HONEY = """import unittest

from honey.ledger import best


class LedgerTests(unittest.TestCase):
    def test_best(self):
        self.assertEqual(best(), 2023)
"""

# A loom of which a part runs only on Windows.

LOOM_TOML = """[tool.pytest.ini_options]
pythonpath = ["."]

[tool.coverage.run]
source = ["loom"]
omit = ["loom/windows.py"]

[tool.coverage.report]
fail_under = 100
show_missing = true
"""
LOOM = '''"""Weave."""


def row(pattern: str, width: int) -> str:
    """Weave one row."""
    return (pattern * width)[:width]
'''
LOOM_WINDOWS = '''"""Colours for a Windows console."""

import ctypes


def switch_on() -> bool:
    """Let the console show colours."""
    kernel = ctypes.windll.kernel32
    return bool(kernel.SetConsoleMode(kernel.GetStdHandle(-11), 7))
'''
LOOM_START = '''"""Start the loom."""

import sys


def colours(platform: str = sys.platform) -> bool:
    """Say whether there are colours, and switch them on."""
    if platform == "win32":  # pragma: no cover
        from loom.windows import switch_on

        return switch_on()
    return True
'''
T_LOOM = """from loom.start import colours
from loom.weave import row


def test_row():
    assert row("/\\\\", 5) == "/\\\\/\\\\/"


def test_colours():
    assert colours("linux")
"""

# A cache of maps under bandit.

TILES = '''"""Tiles of a map, kept for a while."""


def key(zoom: int, x: int, y: int) -> str:
    """Name a tile."""
    return f"{zoom}/{x}/{y}"
'''
TILES_MORE = '''"""Tiles of a map, kept for a while."""

import hashlib


def key(zoom: int, x: int, y: int) -> str:
    """Name a tile."""
    return f"{zoom}/{x}/{y}"


def etag(picture: bytes) -> str:
    """Name what a tile shows, so that nobody fetches it twice."""
    return hashlib.md5(picture).hexdigest()
'''
T_TILES = """import unittest

from tiles.cache import key


class KeyTests(unittest.TestCase):
    def test_key(self):
        self.assertEqual(key(3, 1, 2), "3/1/2")
"""

# A boat's log with recorded data.

BOAT = '''"""What a voyage came to."""


def summary(legs: list[tuple[str, float, float]]) -> dict[str, object]:
    """Sum up legs: a port, miles and hours."""
    miles = sum(leg[1] for leg in legs)
    return {"ports": [leg[0] for leg in legs], "miles": miles}
'''
BOAT_MORE = swap(
    BOAT,
    (
        "for leg in legs)\n    return",
        "for leg in legs)\n    hours = sum(leg[2] for leg in legs)\n    return",
    ),
    ('"miles": miles}', '"miles": miles, "knots": round(miles / hours, 1)}'),
)
T_BOAT = """from boat.log import summary


def test_voyage(data_regression):
    data_regression.check(summary([("Hven", 12.5, 2.5), ("Ystad", 41.0, 8.0)]))


def test_short(data_regression):
    data_regression.check(summary([("Hven", 12.5, 2.5)]))


def test_ports():
    assert summary([("Hven", 12.5, 2.5)])["ports"] == ["Hven"]
"""

# A well's package that says in three places which Pythons it takes.

WELL_TOML = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "well"
version = "1.1.0"
requires-python = ">=3.10"
classifiers = [
    "Programming Language :: Python :: 3.10",
    "Programming Language :: Python :: 3.11",
]

[tool.setuptools]
packages = ["well"]
"""
WELL_TOX = "[tox]\nenvlist = py310, py311\n\n[testenv]\ncommands = python -m unittest\n"
WELL_CI = """name: tests
on: [push]
jobs:
  tests:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        python-version: ["3.10", "3.11"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: ${{ matrix.python-version }}
      - run: python -m unittest
"""
WELL = '''"""How deep the water is."""


def depth(seconds: float) -> float:
    """Say how many metres a stone fell."""
    return round(9.81 * seconds**2 / 2, 1)
'''
T_WELL = """import unittest

from well.depth import depth


class DepthTests(unittest.TestCase):
    def test_depth(self):
        self.assertEqual(depth(2), 19.6)
"""

BATCH_3 = (
    Shape(
        name="override-of-a-renamed-method",
        command="mypy",
        setup="pip install -q mypy==1.11.2 typing_extensions==4.12.2",
        start={
            **NO_SHOP,
            "pyproject.toml": DESK_TOML,
            "desk/__init__.py": "",
            "desk/base.py": DESK_BASE,
            "desk/gain.py": DESK_GAIN,
            "desk/clip.py": DESK_CLIP,
            "desk/chain.py": DESK_CHAIN,
            "tests/__init__.py": "",
            "tests/test_desk.py": T_DESK,
        },
        message="Say that a filter makes a new list: apply becomes filtered",
        culprit={
            "desk/base.py": swap(DESK_BASE, ("def apply", "def filtered")),
            "desk/gain.py": swap(DESK_GAIN, ("def apply", "def filtered")),
            "desk/chain.py": swap(DESK_CHAIN, ("one.apply", "one.filtered")),
            "tests/test_desk.py": swap(T_DESK, (".apply(", ".filtered(")),
        },
        keeps=READ
        + """
clip = read("desk/clip.py")
assert "    @override\\n    def filtered(self, samples: list[float]) -> list[float]:\\n        return [max(" in clip
assert "def apply" not in clip and "type: ignore" not in clip
assert all("def filtered" in read(f"desk/{name}.py") and "def apply" not in read(f"desk/{name}.py") for name in ("base", "gain"))
assert "strict = true" in read("pyproject.toml") and "exclude" not in read("pyproject.toml")
""",
        remedy="sed -i 's/def apply/def filtered/' desk/clip.py",
    ),
    Shape(
        name="docstring-of-a-renamed-parameter",
        command="pydoclint shed",
        setup="pip install -q pydoclint==0.5.6",
        start={
            **NO_SHOP,
            "pyproject.toml": SHED_TOML,
            "shed/__init__.py": "",
            "shed/log.py": SHED,
            "tests/__init__.py": "",
            "tests/test_log.py": T_SHED,
        },
        message="Call the most entries that one wants at_most",
        culprit={
            "shed/log.py": swap(SHED, ("count: int)", "at_most: int)"), ("[:count]", "[:at_most]")),
            "tests/test_log.py": swap(T_SHED, ("count=2", "at_most=2")),
        },
        keeps=READ
        + """
from shed.log import newest
assert newest(["a", "b", "c"], at_most=1) == ["c"]
assert "        at_most: How many to give at most.\\n" in newest.__doc__ and "count" not in newest.__doc__
assert "Returns:" in newest.__doc__ and "noqa" not in read("shed/log.py")
assert 'style = "google"' in read("pyproject.toml") and "skip" not in read("pyproject.toml")
""",
        remedy="sed -i 's/^        count: /        at_most: /' shed/log.py",
    ),
    Shape(
        name="catalogue-behind-its-template",
        command="pybabel update --check -i locales/messages.pot -d locales",
        setup="pip install -q babel==2.16.0",
        start={
            **NO_SHOP,
            "ticket/__init__.py": "",
            "ticket/lines.py": TICKET,
            "locales/messages.pot": TICKET_POT,
            "locales/de/LC_MESSAGES/messages.po": TICKET_PO,
            "tests/__init__.py": "",
            "tests/test_lines.py": T_TICKET,
        },
        message="Ask whether somebody comes back too",
        culprit={
            "ticket/lines.py": TICKET
            + '\n\ndef ask_return() -> str:\n    """Ask for a way back."""\n    return _("And back again?")\n',
            "locales/messages.pot": TICKET_POT
            + '#: ticket/lines.py:21\nmsgid "And back again?"\nmsgstr ""\n\n',
        },
        keeps=READ
        + """
from ticket.lines import ask_return
assert ask_return() == "And back again?"
po = read("locales/de/LC_MESSAGES/messages.po")
assert 'msgid "And back again?"' in po and 'msgstr "Wohin?"' in po and 'msgstr "Gute Reise"' in po
assert 'msgid "And back again?"' in read("locales/messages.pot")
""",
        remedy="pybabel update -i locales/messages.pot -d locales",
    ),
    Shape(
        name="exemption-of-a-moved-script",
        command="ruff check .",
        setup="pip install -q ruff==0.6.4",
        start={
            **NO_SHOP,
            "pyproject.toml": HONEY_TOML,
            "honey/__init__.py": "",
            "honey/ledger.py": HONEY,
            "scripts/dump.py": HONEY_DUMP,
            "tests/__init__.py": "",
            "tests/test_ledger.py": T_HONEY,
        },
        message="Keep scripts for people in tools, and print a total",
        culprit={
            "scripts/dump.py": None,
            "tools/dump.py": swap(
                HONEY_DUMP,
                (
                    'print(f"{year}: {kilos} kg")\n',
                    'print(f"{year}: {kilos} kg")\n    print(f"in all: {sum(YEARS.values())} kg")\n',
                ),
            ),
        },
        keeps=READ
        + """
import subprocess, sys, tomllib
out = subprocess.run([sys.executable, "tools/dump.py"], capture_output=True, text=True, check=True).stdout.splitlines()
assert out == ["2021: 14.5 kg", "2022: 9.0 kg", "2023: 17.25 kg", "in all: 40.75 kg"], out
given = tomllib.loads(read("pyproject.toml"))["tool"]["ruff"]["lint"]
assert given["select"] == ["E", "F", "I", "T20"] and "ignore" not in given and "extend-ignore" not in given
ignores = given["per-file-ignores"]
assert len(ignores) == 1 and list(ignores)[0].startswith("tools/") and list(ignores.values()) == [["T201"]], ignores
assert "noqa" not in read("tools/dump.py") and "print(" in read("tools/dump.py")
""",
        remedy="sed -i s,scripts/dump.py,tools/dump.py, pyproject.toml",
    ),
    Shape(
        name="omission-of-a-moved-file",
        command="python -m pytest -q --cov",
        setup="pip install -q pytest==8.3.2 pytest-cov==5.0.0",
        start={
            **NO_SHOP,
            ".gitignore": ".coverage\n__pycache__/\n",
            "pyproject.toml": LOOM_TOML,
            "loom/__init__.py": "",
            "loom/weave.py": LOOM,
            "loom/windows.py": LOOM_WINDOWS,
            "loom/start.py": LOOM_START,
            "tests/test_loom.py": T_LOOM,
        },
        message="Keep what is of one system together, and name the system",
        culprit={
            "loom/windows.py": None,
            "loom/systems/__init__.py": "",
            "loom/systems/windows.py": LOOM_WINDOWS,
            "loom/start.py": swap(LOOM_START, ("loom.windows", "loom.systems.windows"))
            + '\n\ndef system(platform: str = sys.platform) -> str:\n    """Name the system."""\n'
            + '    return {"win32": "Windows", "darwin": "macOS"}.get(platform, platform)\n',
            "tests/test_loom.py": swap(T_LOOM, ("import colours", "import colours, system"))
            + '\n\ndef test_system():\n    assert system("darwin") == "macOS"\n',
        },
        keeps=READ
        + """
import tomllib
from fnmatch import fnmatch
from loom.start import system
assert system("win32") == "Windows"
given = tomllib.loads(read("pyproject.toml"))["tool"]["coverage"]
assert given["report"]["fail_under"] == 100 and given["run"]["source"] == ["loom"]
assert len(given["run"]["omit"]) == 1 and fnmatch("loom/systems/windows.py", given["run"]["omit"][0]), given
assert not fnmatch("loom/weave.py", given["run"]["omit"][0]) and not fnmatch("loom/start.py", given["run"]["omit"][0])
assert "SetConsoleMode" in read("loom/systems/windows.py") and "no cover" not in read("loom/systems/windows.py")
assert "test_system" in read("tests/test_loom.py")
""",
        remedy="sed -i s,loom/windows.py,loom/systems/windows.py, pyproject.toml",
    ),
    Shape(
        name="weak-hash-that-guards-nothing",
        command="bandit -q -r tiles",
        setup="pip install -q bandit==1.7.9",
        start={
            **NO_SHOP,
            "tiles/__init__.py": "",
            "tiles/cache.py": TILES,
            "tests/__init__.py": "",
            "tests/test_cache.py": T_TILES,
        },
        message="Give tiles an entity tag",
        culprit={
            "tiles/cache.py": TILES_MORE,
            "tests/test_cache.py": swap(T_TILES, ("import key", "import etag, key"))
            + "\n    def test_etag(self):\n"
            + '        self.assertEqual(etag(b""), "d41d8cd98f00b204e9800998ecf8427e")\n',
        },
        keeps=READ
        + """
from tiles.cache import etag, key
assert etag(b"") == "d41d8cd98f00b204e9800998ecf8427e" and key(3, 1, 2) == "3/1/2"
assert "usedforsecurity=False" in read("tiles/cache.py") and "nosec" not in read("tiles/cache.py")
assert "test_etag" in read("tests/test_cache.py") and not Path(".bandit").exists()
""",
        remedy="sed -i 's/md5(picture)/md5(picture, usedforsecurity=False)/' tiles/cache.py",
    ),
    Shape(
        name="recorded-data-of-a-new-field",
        command="python -m pytest -q",
        setup="pip install -q pytest==8.3.2 pytest-regressions==2.5.0",
        start={
            **NO_SHOP,
            "pyproject.toml": PYTEST_HERE,
            "boat/__init__.py": "",
            "boat/log.py": BOAT,
            "tests/test_log.py": T_BOAT,
            "tests/test_log/test_voyage.yml": "miles: 53.5\nports:\n- Hven\n- Ystad\n",
            "tests/test_log/test_short.yml": "miles: 12.5\nports:\n- Hven\n",
        },
        message="Say how fast a voyage was",
        culprit={
            "boat/log.py": BOAT_MORE,
            "tests/test_log.py": T_BOAT
            + '\n\ndef test_knots():\n    assert summary([("Hven", 12.5, 2.5)])["knots"] == 5.0\n',
        },
        keeps=READ
        + """
from boat.log import summary
assert summary([("Hven", 12.5, 2.5)]) == {"ports": ["Hven"], "miles": 12.5, "knots": 5.0}
assert read("tests/test_log/test_voyage.yml").splitlines() == ["knots: 5.1", "miles: 53.5", "ports:", "- Hven", "- Ystad"]
assert read("tests/test_log/test_short.yml").splitlines() == ["knots: 5.0", "miles: 12.5", "ports:", "- Hven"]
assert read("tests/test_log.py").count("data_regression.check") == 2 and "test_knots" in read("tests/test_log.py")
""",
        remedy="python -m pytest -q --force-regen || true",
    ),
    Shape(
        name="python-version-missing-from-the-matrix",
        command="check-python-versions",
        setup="pip install -q check-python-versions==0.22.0 setuptools==74.0.0",
        start={
            **NO_SHOP,
            "pyproject.toml": WELL_TOML,
            "tox.ini": WELL_TOX,
            ".github/workflows/tests.yml": WELL_CI,
            "well/__init__.py": "",
            "well/depth.py": WELL,
            "tests/__init__.py": "",
            "tests/test_depth.py": T_WELL,
        },
        message="Take Python 3.12",
        culprit={
            "pyproject.toml": swap(
                WELL_TOML,
                (
                    '    "Programming Language :: Python :: 3.11",\n',
                    '    "Programming Language :: Python :: 3.11",\n    "Programming Language :: Python :: 3.12",\n',
                ),
            ),
            "tox.ini": swap(WELL_TOX, ("py310, py311", "py310, py311, py312")),
        },
        keeps=READ
        + """
import tomllib
assert "Programming Language :: Python :: 3.12" in tomllib.loads(read("pyproject.toml"))["project"]["classifiers"]
assert "py310, py311, py312" in read("tox.ini") or "py{310,311,312}" in read("tox.ini")
flow = read(".github/workflows/tests.yml")
assert all(f"3.{minor}" in flow for minor in (10, 11, 12)) and "3.13" not in flow
assert "actions/setup-python@v5" in flow and "${{ matrix.python-version }}" in flow
""",
        remedy="""sed -i 's/"3.10", "3.11"]/"3.10", "3.11", "3.12"]/' .github/workflows/tests.yml""",
    ),
)

FOURTEENTH = (
    *BATCH_1,
    *BATCH_2,
    *BATCH_3,
)
