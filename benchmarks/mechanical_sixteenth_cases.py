"""Small projects of many kinds that a feature leaves red in a mechanical way: a place left behind, a form not kept.

Written before the fixer was run on them by one who had not read it. `remedy` is a reference: the command is green after
it, and `keeps` holds.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.mechanical_eleventh_cases import NO_SHOP, Shape, swap
from benchmarks.repair_choice_cases import Files

PYTEST = "pip install -q pytest==8.3.4"
READ = """from pathlib import Path
def read(name):
    return Path(name).read_text(encoding="utf-8")
"""


def tree(files: Mapping[str, str]) -> Files:
    """Make a start of these files alone."""
    return {**NO_SHOP, **files}


# A timetable in Flask: the view has a new name, a second template has the old one.
BUS = {
    "busboard/__init__.py": "",
    "busboard/app.py": '''"""A board of buses."""

from flask import Flask, render_template

TIMES = {"harbour": ["07:10", "07:40", "08:10"], "market": ["07:25", "08:05"]}


def create_app():
    app = Flask(__name__)

    @app.get("/")
    def home():
        return render_template("home.html", stops=sorted(TIMES))

    @app.get("/stop/<name>")
    def timetable(name):
        return render_template("stop.html", name=name, times=TIMES[name])

    @app.get("/about")
    def about():
        return render_template("about.html")

    return app
''',
    "busboard/templates/home.html": """<ul>
{% for stop in stops %}  <li><a href="{{ url_for('timetable', name=stop) }}">{{ stop }}</a></li>
{% endfor %}</ul>
""",
    "busboard/templates/stop.html": """<h1>{{ name }}</h1>
<p>{{ times | join(", ") }}</p>
""",
    "busboard/templates/about.html": """<p>Times are those of the <a href="{{ url_for('timetable', name='harbour') }}">harbour</a> office.</p>
""",
    "tests/test_app.py": """import pytest

from busboard.app import create_app


@pytest.fixture
def client():
    return create_app().test_client()


def test_home_links_stops(client):
    assert 'href="/stop/market"' in client.get("/").text


def test_stop(client):
    assert "07:25, 08:05" in client.get("/stop/market").text


def test_about_links_the_office(client):
    assert 'href="/stop/harbour"' in client.get("/about").text
""",
    "README.md": "# Busboard\n\nRun `flask --app busboard.app:create_app run`.\n",
}
FLASK_ENDPOINT = Shape(
    name="flask-view-renamed-template-left",
    command="python -m pytest -q",
    setup="pip install -q pytest==8.3.4 flask==3.0.3",
    start=tree(BUS),
    message="Show departures after a time",
    culprit={
        "busboard/app.py": swap(
            BUS["busboard/app.py"],
            (
                "from flask import Flask, render_template",
                "from flask import Flask, render_template, request",
            ),
            (
                '    def timetable(name):\n        return render_template("stop.html", name=name, times=TIMES[name])',
                '    def departures(name):\n        after = request.args.get("after", "")\n'
                "        times = [one for one in TIMES[name] if one >= after]\n"
                '        return render_template("stop.html", name=name, times=times)',
            ),
        ),
        "busboard/templates/home.html": BUS["busboard/templates/home.html"].replace(
            "'timetable'", "'departures'"
        ),
        "tests/test_app.py": BUS["tests/test_app.py"]
        + '\n\ndef test_stop_after_a_time(client):\n    text = client.get("/stop/market?after=08:00").text\n'
        '    assert "08:05" in text\n    assert "07:25" not in text\n',
    },
    keeps=READ
    + """
app = read("busboard/app.py")
assert "def departures(name)" in app and "def timetable" not in app and "one >= after" in app
about = read("busboard/templates/about.html")
assert "url_for('departures', name='harbour')" in about and "office" in about
tests = read("tests/test_app.py")
assert "test_about_links_the_office" in tests and "test_stop_after_a_time" in tests and "skip" not in tests and "xfail" not in tests
""",
    remedy="sed -i \"s/'timetable'/'departures'/\" busboard/templates/about.html\n",
)

# A library in Django.
LENDING = {
    "manage.py": '''"""Run a command of the site."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
''',
    "site_settings.py": """SECRET_KEY = "only for tests"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "lending",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
""",
    "lending/__init__.py": "",
    "lending/models.py": """from django.db import models


class Loan(models.Model):
    title = models.CharField(max_length=120)
    reader = models.CharField(max_length=60)
    due = models.DateField()

    def __str__(self):
        return f"{self.title} ({self.reader})"

    def is_late(self, today):
        return today > self.due
""",
    "lending/admin.py": """from django.contrib import admin

from lending.models import Loan


@admin.register(Loan)
class LoanAdmin(admin.ModelAdmin):
    list_display = ("title", "due", "reader")
    search_fields = ("title",)
""",
    "lending/migrations/__init__.py": "",
    "lending/migrations/0001_initial.py": """from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Loan",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.CharField(max_length=120)),
                ("reader", models.CharField(max_length=60)),
                ("due", models.DateField()),
            ],
        ),
    ]
""",
    "lending/tests.py": """from datetime import date

from django.test import SimpleTestCase

from lending.models import Loan


class LoanTest(SimpleTestCase):
    def test_late(self):
        loan = Loan(title="Moths", reader="Ada", due=date(2024, 5, 1))
        self.assertTrue(loan.is_late(date(2024, 5, 2)))
        self.assertFalse(loan.is_late(date(2024, 5, 1)))
""",
}
DJANGO = "pip install -q django==5.1.4"
DJANGO_MIGRATION = Shape(
    name="django-field-without-migration",
    command="python manage.py makemigrations --check --dry-run",
    setup=DJANGO,
    start=tree(LENDING),
    message="Count renewals of a loan",
    culprit={
        "lending/models.py": swap(
            LENDING["lending/models.py"],
            (
                "    due = models.DateField()\n",
                "    due = models.DateField()\n    renewals = models.PositiveSmallIntegerField(default=0)\n",
            ),
        )
        + "\n    def can_renew(self):\n        return self.renewals < 3\n",
        "lending/tests.py": LENDING["lending/tests.py"]
        + """
    def test_three_renewals(self):
        loan = Loan(title="Moths", reader="Ada", due=date(2024, 5, 1), renewals=2)
        self.assertTrue(loan.can_renew())
        loan.renewals += 1
        self.assertFalse(loan.can_renew())
""",
    },
    keeps=READ
    + """
assert "renewals = models.PositiveSmallIntegerField(default=0)" in read("lending/models.py")
assert "test_three_renewals" in read("lending/tests.py")
made = sorted(one.name for one in Path("lending/migrations").glob("0*.py"))
assert made[0] == "0001_initial.py" and len(made) == 2, made
assert "renewals" not in read("lending/migrations/0001_initial.py")
text = read("lending/migrations/" + made[1])
assert "AddField" in text and "renewals" in text and "0001_initial" in text
assert '"lending"' in read("site_settings.py")
""",
    remedy="python manage.py makemigrations\n",
)
DJANGO_ADMIN = Shape(
    name="django-field-renamed-admin-left",
    command="python manage.py check",
    setup=DJANGO,
    start=tree(LENDING),
    message="Name the day of return plainly",
    culprit={
        "lending/models.py": LENDING["lending/models.py"]
        .replace("    due =", "    return_by =")
        .replace("self.due", "self.return_by"),
        "lending/tests.py": LENDING["lending/tests.py"].replace("due=", "return_by="),
        "lending/migrations/0002_rename_due.py": """from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("lending", "0001_initial")]

    operations = [migrations.RenameField(model_name="loan", old_name="due", new_name="return_by")]
""",
    },
    keeps=READ
    + """
assert "return_by = models.DateField()" in read("lending/models.py")
admin = read("lending/admin.py")
assert '("title", "return_by", "reader")' in admin and "admin.register(Loan)" in admin
assert Path("lending/migrations/0002_rename_due.py").exists()
assert "SILENCED" not in read("site_settings.py") and "django.contrib.admin" in read("site_settings.py")
""",
    remedy='sed -i \'s/"due"/"return_by"/\' lending/admin.py\n',
)

# Specimens of a herbarium in SQLAlchemy: the column has a new name, the report has the old one.
HERB = {
    "herbarium/__init__.py": "",
    "herbarium/tables.py": '''"""Tables."""

from sqlalchemy import String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    pass


class Specimen(Base):
    __tablename__ = "specimen"

    id: Mapped[int] = mapped_column(primary_key=True)
    species: Mapped[str] = mapped_column(String(80))
    place: Mapped[str] = mapped_column(String(80))
    year: Mapped[int]
''',
    "herbarium/store.py": '''"""Put specimens away and find them."""

from sqlalchemy import select

from herbarium.tables import Specimen


def add(session, species, place, year):
    one = Specimen(species=species, place=place, year=year)
    session.add(one)
    session.flush()
    return one.id


def of_species(session, species):
    rows = session.scalars(select(Specimen).where(Specimen.species == species))
    return [(one.place, one.year) for one in rows]
''',
    "herbarium/report.py": '''"""Counts for the yearly report."""

from sqlalchemy import func, select

from herbarium.tables import Specimen


def per_place(session):
    query = select(Specimen.place, func.count()).group_by(Specimen.place).order_by(Specimen.place)
    return dict(session.execute(query).tuples().all())
''',
    "tests/conftest.py": """import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from herbarium.tables import Base


@pytest.fixture
def session():
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as one:
        yield one
""",
    "tests/test_store.py": """from herbarium.store import add, of_species


def test_find(session):
    add(session, "Drosera", "bog", 1931)
    add(session, "Viola", "wood", 1950)
    assert of_species(session, "Drosera") == [("bog", 1931)]
""",
    "tests/test_report.py": """from herbarium.report import per_place
from herbarium.store import add


def test_per_place(session):
    for place in ("wood", "bog", "wood"):
        add(session, "Viola", place, 1950)
    assert per_place(session) == {"bog": 1, "wood": 2}
""",
}
SQL_COLUMN = Shape(
    name="sqlalchemy-attribute-renamed-report-left",
    command="python -m pytest -q",
    setup="pip install -q pytest==8.3.4 sqlalchemy==2.0.36",
    start=tree(HERB),
    message="Call the place a locality and keep its altitude",
    culprit={
        "herbarium/tables.py": swap(
            HERB["herbarium/tables.py"],
            (
                "    place: Mapped[str] = mapped_column(String(80))\n",
                "    locality: Mapped[str] = mapped_column(String(80))\n    altitude: Mapped[int | None]\n",
            ),
        ),
        "herbarium/store.py": '''"""Put specimens away and find them."""

from sqlalchemy import select

from herbarium.tables import Specimen


def add(session, species, locality, year, altitude=None):
    one = Specimen(species=species, locality=locality, year=year, altitude=altitude)
    session.add(one)
    session.flush()
    return one.id


def of_species(session, species):
    rows = session.scalars(select(Specimen).where(Specimen.species == species))
    return [(one.locality, one.year) for one in rows]


def above(session, metres):
    query = select(Specimen.species).where(Specimen.altitude > metres).order_by(Specimen.species)
    return list(session.scalars(query))
''',
        "tests/test_store.py": """from herbarium.store import above, add, of_species


def test_find(session):
    add(session, "Drosera", "bog", 1931)
    add(session, "Viola", "wood", 1950)
    assert of_species(session, "Drosera") == [("bog", 1931)]


def test_above(session):
    add(session, "Drosera", "bog", 1931, altitude=400)
    add(session, "Silene", "ridge", 1960, altitude=2100)
    assert above(session, 1000) == ["Silene"]
""",
    },
    keeps=READ
    + """
tables = read("herbarium/tables.py")
assert "locality: Mapped[str]" in tables and "altitude" in tables and "    place" not in tables
assert "def above(" in read("herbarium/store.py")
report = read("herbarium/report.py")
assert "Specimen.place" not in report and report.count("Specimen.locality") == 3 and "def per_place(" in report
assert '{"bog": 1, "wood": 2}' in read("tests/test_report.py") and "skip" not in read("tests/test_report.py")
""",
    remedy="sed -i 's/Specimen\\.place/Specimen.locality/g' herbarium/report.py\n",
)

# A weather station in pydantic.
STATION = {
    "windvane/__init__.py": "",
    "windvane/models.py": '''"""What a station sends."""

from pydantic import BaseModel, ConfigDict


class Report(BaseModel):
    model_config = ConfigDict(extra="forbid")

    station: str
    wind: float
    gust: float
''',
    "windvane/feed.py": '''"""Read what stations send."""

import json
from pathlib import Path

from windvane.models import Report


def load(path):
    return [Report(**row) for row in json.loads(Path(path).read_text(encoding="utf-8"))]


def windiest(reports):
    return max(reports, key=lambda one: one.wind).station
''',
    "tests/data/calm.json": '[\n  {"station": "Quay", "wind": 4.5, "gust": 7.0},\n  {"station": "Hill", "wind": 9.0, "gust": 12.5}\n]\n',
    "tests/data/storm.json": '[\n  {"station": "Quay", "wind": 88.0, "gust": 131.0},\n  {"station": "Hill", "wind": 79.5, "gust": 140.0}\n]\n',
    "tests/test_feed.py": """from pathlib import Path

from windvane.feed import load, windiest

DATA = Path(__file__).parent / "data"


def test_calm():
    assert windiest(load(DATA / "calm.json")) == "Hill"


def test_storm():
    reports = load(DATA / "storm.json")
    assert windiest(reports) == "Quay"
    assert max(one.gust for one in reports) == 140.0
""",
    "pyproject.toml": '[project]\nname = "windvane"\nversion = "0.4.0"\ndependencies = ["pydantic>=2"]\n\n[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n',
}
PYDANTIC = "pip install -q pytest==8.3.4 pydantic==2.10.3"
PYDANTIC_SAMPLE = Shape(
    name="pydantic-field-renamed-sample-left",
    command="python -m pytest -q",
    setup=PYDANTIC,
    start=tree(STATION),
    message="Name the unit of the wind",
    culprit={
        "windvane/models.py": STATION["windvane/models.py"].replace(
            "    wind: float", "    wind_kmh: float"
        )
        + "\n    @property\n    def wind_knots(self) -> float:\n        return round(self.wind_kmh / 1.852, 1)\n",
        "windvane/feed.py": STATION["windvane/feed.py"].replace("one.wind)", "one.wind_kmh)"),
        "tests/data/calm.json": STATION["tests/data/calm.json"].replace('"wind"', '"wind_kmh"'),
        "tests/test_feed.py": swap(
            STATION["tests/test_feed.py"],
            (
                "\n\ndef test_storm",
                '\n\ndef test_knots():\n    assert load(DATA / "calm.json")[0].wind_knots == 2.4\n\n\ndef test_storm',
            ),
        ),
    },
    keeps=READ
    + """
import json
models = read("windvane/models.py")
assert "wind_kmh: float" in models and "wind_knots" in models and 'extra="forbid"' in models and "alias" not in models
storm = json.loads(read("tests/data/storm.json"))
assert storm == [{"station": "Quay", "wind_kmh": 88.0, "gust": 131.0}, {"station": "Hill", "wind_kmh": 79.5, "gust": 140.0}]
tests = read("tests/test_feed.py")
assert "test_storm" in tests and "test_knots" in tests and "skip" not in tests
""",
    remedy='sed -i \'s/"wind"/"wind_kmh"/\' tests/data/storm.json\n',
)
PYDANTIC_DICT = Shape(
    name="pydantic-old-method-warning-as-error",
    command="python -m pytest -q",
    setup=PYDANTIC,
    start=tree(STATION),
    message="Write reports to a file",
    culprit={
        "windvane/feed.py": STATION["windvane/feed.py"]
        + "\n\ndef save(reports, path):\n    rows = [one.dict() for one in reports]\n"
        '    Path(path).write_text(json.dumps(rows, indent=2) + "\\n", encoding="utf-8")\n',
        "tests/test_feed.py": STATION["tests/test_feed.py"].replace(
            "load, windiest", "load, save, windiest"
        )
        + '\n\ndef test_save(tmp_path):\n    reports = load(DATA / "calm.json")\n    save(reports, tmp_path / "out.json")\n'
        '    assert load(tmp_path / "out.json") == reports\n',
    },
    keeps=READ
    + """
feed = read("windvane/feed.py")
assert "def save(" in feed and ".model_dump()" in feed and ".dict()" not in feed and "warnings" not in feed
assert 'filterwarnings = ["error"]' in read("pyproject.toml")
assert "test_save" in read("tests/test_feed.py") and "filterwarnings" not in read("tests/test_feed.py")
""",
    remedy="sed -i 's/one\\.dict()/one.model_dump()/' windvane/feed.py\n",
)

# A cookbook in FastAPI with its description kept in a file.
COOK = {
    "cookbook/__init__.py": "",
    "cookbook/api.py": '''"""Recipes over HTTP."""

from fastapi import FastAPI

app = FastAPI(title="Cookbook", version="1.2.0")
RECIPES = {"rye": {"minutes": 90, "serves": 6}, "leek": {"minutes": 35, "serves": 4}}


@app.get("/recipes")
def recipes() -> list[str]:
    """List what there is."""
    return sorted(RECIPES)


@app.get("/recipes/count")
def count() -> int:
    """Count them."""
    return len(RECIPES)
''',
    "scripts/dump_openapi.py": '''"""Write docs/openapi.json; with --check, say only whether it is what the code gives."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cookbook.api import app  # noqa: E402

PATH = ROOT / "docs" / "openapi.json"


def main(argv):
    text = json.dumps(app.openapi(), indent=1, sort_keys=True) + "\\n"
    if "--check" in argv:
        if not PATH.exists() or PATH.read_text(encoding="utf-8") != text:
            print("docs/openapi.json is stale; run: python scripts/dump_openapi.py", file=sys.stderr)
            return 1
        return 0
    PATH.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
''',
    "docs/openapi.json": """{
 "info": {
  "title": "Cookbook",
  "version": "1.2.0"
 },
 "openapi": "3.1.0",
 "paths": {
  "/recipes": {
   "get": {
    "description": "List what there is.",
    "operationId": "recipes_recipes_get",
    "responses": {
     "200": {
      "content": {
       "application/json": {
        "schema": {
         "items": {
          "type": "string"
         },
         "title": "Response Recipes Recipes Get",
         "type": "array"
        }
       }
      },
      "description": "Successful Response"
     }
    },
    "summary": "Recipes"
   }
  },
  "/recipes/count": {
   "get": {
    "description": "Count them.",
    "operationId": "count_recipes_count_get",
    "responses": {
     "200": {
      "content": {
       "application/json": {
        "schema": {
         "title": "Response Count Recipes Count Get",
         "type": "integer"
        }
       }
      },
      "description": "Successful Response"
     }
    },
    "summary": "Count"
   }
  }
 }
}
""",
    "tests/test_api.py": """import unittest

from cookbook import api


class ApiTest(unittest.TestCase):
    def test_list(self):
        self.assertEqual(api.recipes(), ["leek", "rye"])

    def test_count(self):
        self.assertEqual(api.count(), 2)
""",
}
COOK_DUMP = Shape(
    name="fastapi-route-added-description-stale",
    command="python scripts/dump_openapi.py --check",
    setup="pip install -q fastapi==0.115.6 pydantic==2.10.3",
    start=tree(COOK),
    message="Say which recipes suit a season",
    culprit={
        "cookbook/api.py": COOK["cookbook/api.py"]
        + '''

@app.get("/seasonal")
def seasonal() -> dict[str, list[str]]:
    """Group what there is by season."""
    return {"winter": ["leek"], "summer": [], "any": ["rye"]}
''',
        "tests/test_api.py": COOK["tests/test_api.py"]
        + '\n    def test_seasonal(self):\n        self.assertEqual(api.seasonal()["winter"], ["leek"])\n',
    },
    keeps=READ
    + """
import json
assert '@app.get("/seasonal")' in read("cookbook/api.py") and "include_in_schema" not in read("cookbook/api.py")
paths = json.loads(read("docs/openapi.json"))["paths"]
assert set(paths) == {"/recipes", "/recipes/count", "/seasonal"}, paths
script = read("scripts/dump_openapi.py")
assert "return 1" in script and "sort_keys=True" in script
assert "test_seasonal" in read("tests/test_api.py")
""",
    remedy="python scripts/dump_openapi.py\n",
)

# A sheet of seeds with click: the option has a new name, the Makefile has the old one.
SEEDS = {
    "seedlist/__init__.py": "",
    "seedlist/__main__.py": '''"""List seeds."""

import json
from pathlib import Path

import click


@click.group()
def main():
    """Work with a list of seeds."""


@main.command()
@click.argument("path", type=click.Path(exists=True))
@click.option("--fmt", type=click.Choice(["text", "json"]), default="text", help="How to print.")
def show(path, fmt):
    """Print a list."""
    names = sorted(Path(path).read_text(encoding="utf-8").split())
    click.echo(json.dumps(names) if fmt == "json" else "\\n".join(names))


@main.command()
@click.argument("path", type=click.Path(exists=True))
def count(path):
    """Count a list."""
    click.echo(len(Path(path).read_text(encoding="utf-8").split()))


if __name__ == "__main__":
    main(prog_name="seedlist")
''',
    "samples/bed.txt": "radish\nchard\ndill\n",
    "tests/test_show.py": """from click.testing import CliRunner

from seedlist.__main__ import main


def test_json():
    result = CliRunner().invoke(main, ["show", "samples/bed.txt", "--fmt", "json"])
    assert result.output == '["chard", "dill", "radish"]\\n'


def test_text():
    assert CliRunner().invoke(main, ["show", "samples/bed.txt"]).output.split() == ["chard", "dill", "radish"]
""",
    "Makefile": """.PHONY: test smoke

test:
\tpython -m pytest -q

smoke:
\tpython -m seedlist count samples/bed.txt
\tpython -m seedlist show samples/bed.txt --fmt json
""",
    "README.md": "# Seedlist\n\nKeeps a list of seeds. `make test` and `make smoke` check it.\n",
}
CLICK_OPTION = Shape(
    name="click-option-renamed-make-target-left",
    command="make smoke",
    setup="pip install -q pytest==8.3.4 click==8.1.7",
    start=tree(SEEDS),
    message="Spell out --format and print csv",
    culprit={
        "seedlist/__main__.py": swap(
            SEEDS["seedlist/__main__.py"],
            (
                '"--fmt", type=click.Choice(["text", "json"])',
                '"--format", "form", type=click.Choice(["text", "json", "csv"])',
            ),
            ("def show(path, fmt)", "def show(path, form)"),
            (
                '    click.echo(json.dumps(names) if fmt == "json" else "\\n".join(names))',
                '    texts = {"json": json.dumps(names), "csv": ",".join(names), "text": "\\n".join(names)}\n    click.echo(texts[form])',
            ),
        ),
        "tests/test_show.py": SEEDS["tests/test_show.py"].replace('"--fmt"', '"--format"')
        + '\n\ndef test_csv():\n    result = CliRunner().invoke(main, ["show", "samples/bed.txt", "--format", "csv"])\n'
        '    assert result.output == "chard,dill,radish\\n"\n',
    },
    keeps=READ
    + """
code = read("seedlist/__main__.py")
assert '"--format", "form"' in code and '"csv"' in code and "--fmt" not in code
make = read("Makefile")
assert "\\tpython -m seedlist show samples/bed.txt --format json" in make and "seedlist count samples/bed.txt" in make
assert "test_csv" in read("tests/test_show.py")
""",
    remedy="sed -i 's/--fmt json/--format json/' Makefile\n",
)

# The handbook of a kiln in mkdocs: a page has moved, a link to it has not.
KILN_DOCS = {
    "mkdocs.yml": """site_name: Kiln
nav:
  - index.md
  - wiring.md
  - Firing: firing.md
""",
    ".gitignore": "__pycache__/\nsite/\n",
    "docs/index.md": "# Kiln\n\nRead [how it is wired](wiring.md) first, then [how to fire](firing.md).\n",
    "docs/wiring.md": "# Wiring\n\nThe relay sits on pin 17.\n\n## Fuses\n\nUse 16 A.\n",
    "docs/firing.md": "# Firing\n\nCheck the [fuses](wiring.md#fuses) before each firing.\n",
    "kiln.py": '"""Drive a kiln."""\n\nPIN = 17\n\n\ndef ramp(start, end, per_hour):\n    """Give the hours of a ramp."""\n    return abs(end - start) / per_hour\n',
    "tests/test_kiln.py": "import unittest\n\nimport kiln\n\n\nclass KilnTest(unittest.TestCase):\n    def test_ramp(self):\n        self.assertEqual(kiln.ramp(20, 620, 150), 4)\n",
}
MKDOCS_LINK = Shape(
    name="mkdocs-page-moved-link-left",
    command="mkdocs build --strict",
    setup="pip install -q mkdocs==1.6.1 'click<8.2'",
    start=tree(KILN_DOCS),
    message="Give the hardware a chapter of its own",
    culprit={
        "mkdocs.yml": KILN_DOCS["mkdocs.yml"].replace(
            "  - wiring.md\n",
            "  - Hardware:\n      - hardware/wiring.md\n      - hardware/probes.md\n",
        ),
        "docs/index.md": KILN_DOCS["docs/index.md"].replace("(wiring.md)", "(hardware/wiring.md)"),
        "docs/wiring.md": None,
        "docs/hardware/wiring.md": KILN_DOCS["docs/wiring.md"]
        + "\nSee also [the probes](probes.md).\n",
        "docs/hardware/probes.md": "# Probes\n\nType K, on the back wall.\n",
    },
    keeps=READ
    + """
assert "hardware/probes.md" in read("mkdocs.yml") and "firing.md" in read("mkdocs.yml")
assert not Path("docs/wiring.md").exists() and "[the probes](probes.md)" in read("docs/hardware/wiring.md")
assert "[fuses](hardware/wiring.md#fuses)" in read("docs/firing.md")
assert "validation" not in read("mkdocs.yml")
""",
    remedy="sed -i 's/(wiring\\.md#fuses)/(hardware\\/wiring.md#fuses)/' docs/firing.md\n",
)

# A choir's calendar, for formatters and linters.
CHOIR = {
    "choir/__init__.py": '"""A choir\'s calendar."""\n',
    "choir/calendar.py": '''"""Rehearsals and concerts."""

from datetime import date, timedelta
from typing import Optional


def rehearsals(first: date, weeks: int) -> list[date]:
    """Give one evening a week."""
    return [first + timedelta(weeks=one) for one in range(weeks)]


def following(days: list[date], today: date) -> Optional[date]:
    """Find the first day from today on."""
    return min((one for one in days if one >= today), default=None)
''',
    "choir/voices.py": '''"""Who sings what."""

from typing import Dict, Optional, Union

RANGES: Dict[str, str] = {"alto": "F3-D5", "bass": "E2-C4", "soprano": "C4-A5", "tenor": "C3-A4"}


def find(name: Union[str, int]) -> Optional[str]:
    """Give the range of a voice, by its name or its place on stage."""
    if isinstance(name, int):
        return list(RANGES.values())[name]
    return RANGES.get(name)
''',
    "tests/test_calendar.py": """from datetime import date

from choir.calendar import following, rehearsals


def test_rehearsals():
    assert rehearsals(date(2024, 1, 3), 2) == [date(2024, 1, 3), date(2024, 1, 10)]


def test_following():
    days = rehearsals(date(2024, 1, 3), 2)
    assert following(days, date(2024, 1, 4)) == date(2024, 1, 10)
    assert following(days, date(2024, 2, 1)) is None
""",
    "tests/test_voices.py": 'from choir.voices import find\n\n\ndef test_find():\n    assert find("alto") == find(0) == "F3-D5"\n    assert find("oboe") is None\n',
    "pyproject.toml": """[project]
name = "choir"
version = "2.1.0"
requires-python = ">=3.9"

[tool.ruff]
line-length = 100

[tool.ruff.lint]
select = ["E", "F", "I", "B"]

[tool.black]
line-length = 100

[tool.mypy]
strict = true
""",
}
CONCERT = '''"""Concerts."""

from choir.calendar import rehearsals


def plan(concert, weeks, *, day_off = None):
    """Give the rehearsals before a concert, the last a week before it."""
    first = concert - timedelta(weeks=weeks)
    return [
        one for one in rehearsals(first, weeks)
        if one != day_off
    ]
'''
CONCERT_TESTS = """from datetime import date

from choir.concert import plan


def test_plan():
    days = plan(date(2024, 3, 20), 3, day_off=date(2024, 3, 6))
    assert days == [date(2024, 2, 28), date(2024, 3, 13)]
"""
RUFF = "pip install -q pytest==8.3.4 ruff==0.8.4"
HAS_PLAN = """
from datetime import date
from choir.concert import plan
assert plan(date(2024, 3, 20), 3, day_off=date(2024, 3, 6)) == [date(2024, 2, 28), date(2024, 3, 13)]
for name in Path(".").rglob("*.py"):
    assert "noqa" not in read(name) and "fmt: " not in read(name)
assert read("pyproject.toml").count("line-length = 100") == 2 and "exclude" not in read("pyproject.toml")
assert "test_plan" in read("tests/test_concert.py")
"""
RUFF_FORMAT = Shape(
    name="ruff-format-new-module",
    command="ruff format --check .",
    setup=RUFF,
    start=tree(CHOIR),
    message="Plan the weeks before a concert",
    culprit={
        "choir/concert.py": CONCERT.replace(
            "from choir", "from datetime import timedelta\n\nfrom choir"
        ),
        "tests/test_concert.py": CONCERT_TESTS,
    },
    keeps=READ + HAS_PLAN,
    remedy="ruff format .\n",
)
BLACK = Shape(
    name="black-touched-modules",
    command="black --check .",
    setup="pip install -q pytest==8.3.4 black==24.10.0",
    start=tree(CHOIR),
    message="Plan the weeks before a concert",
    culprit={
        "choir/concert.py": CONCERT.replace(
            "from choir", "from datetime import timedelta\n\nfrom choir"
        ),
        "choir/calendar.py": CHOIR["choir/calendar.py"]
        + "\ndef spare(days, busy):\n    '''Give the days on which no one is busy.'''\n    return [one for one in days if one not in busy]\n",
        "tests/test_concert.py": CONCERT_TESTS,
    },
    keeps=READ + HAS_PLAN + "from choir.calendar import spare\nassert spare([1, 2], {2}) == [1]\n",
    remedy="black -q .\n",
)
RUFF_IMPORTS = Shape(
    name="ruff-imports-unsorted-and-unused",
    command="ruff check .",
    setup=RUFF,
    start=tree(CHOIR),
    message="Plan the weeks before a concert",
    culprit={
        "choir/concert.py": swap(
            CONCERT,
            (
                "from choir.calendar import rehearsals\n",
                "from choir.calendar import rehearsals, following\nimport json\nfrom datetime import timedelta\n",
            ),
        ),
        "tests/test_concert.py": CONCERT_TESTS,
    },
    keeps=READ
    + HAS_PLAN
    + """
text = read("choir/concert.py")
assert "import json" not in text and "following" not in text
assert 'select = ["E", "F", "I", "B"]' in read("pyproject.toml") and "ignore" not in read("pyproject.toml")
""",
    remedy="ruff check --fix -q .\n",
)
RUFF_FLOOR = Shape(
    name="ruff-python-floor-raised-old-hints-left",
    command="ruff check .",
    setup=RUFF,
    start=tree(
        {
            **CHOIR,
            "pyproject.toml": CHOIR["pyproject.toml"].replace('"B"]', '"B", "UP"]'),
            "choir/voices.py": CHOIR["choir/voices.py"]
            .replace("import Dict, Optional", "import Optional")
            .replace("Dict[", "dict["),
        }
    ),
    message="Match on the kind of a day; needs Python 3.10",
    culprit={
        "pyproject.toml": CHOIR["pyproject.toml"]
        .replace('"B"]', '"B", "UP"]')
        .replace(">=3.9", ">=3.10"),
        "choir/kinds.py": '''"""Kinds of days."""


def label(kind: str, count: int) -> str:
    """Name what happens on a day."""
    match kind, count:
        case "concert", _:
            return "concert"
        case "rehearsal", 1:
            return "one rehearsal"
        case _:
            return f"{count} rehearsals"
''',
        "tests/test_kinds.py": 'from choir.kinds import label\n\n\ndef test_label():\n    assert label("rehearsal", 1) == "one rehearsal"\n    assert label("rehearsal", 3) == "3 rehearsals"\n',
    },
    keeps=READ
    + """
config = read("pyproject.toml")
assert '">=3.10"' in config and '"UP"]' in config and "ignore" not in config and "target-version" not in config
assert "match kind, count:" in read("choir/kinds.py") and "test_label" in read("tests/test_kinds.py")
for name in ("choir/calendar.py", "choir/voices.py"):
    assert "Optional" not in read(name) and "noqa" not in read(name)
assert "str | None" in read("choir/voices.py") and "date | None" in read("choir/calendar.py")
""",
    remedy="ruff check --fix -q .\n",
)

# Types: a helper without hints has got them; a base class has a new parameter.
TYPED = {
    "ferry/__init__.py": "",
    "ferry/tide.py": '''"""Heights of water."""


def clearance(depth, draught):  # type: ignore[no-untyped-def]
    """Give the water under the keel."""
    return depth - draught
''',
    "ferry/pilot.py": '''"""May a ferry sail?"""

from ferry.tide import clearance


def may_sail(depth: float, draught: float) -> bool:
    """Ask for half a metre under the keel."""
    return bool(clearance(depth, draught) >= 0.5)  # type: ignore[no-untyped-call]


def wait(depth: float, draught: float, rise: float) -> float:
    """Give the hours until there is water enough."""
    if may_sail(depth, draught):
        return 0.0
    short: float = 0.5 - clearance(depth, draught)  # type: ignore[no-untyped-call]
    return short / rise
''',
    "ferry/notices.py": '''"""Notices for the quay."""

from abc import ABC, abstractmethod


class Notice(ABC):
    """What hangs at the quay."""

    @abstractmethod
    def text(self, ship: str) -> str:
        """Say it for one ship."""

    def both(self, first: str, second: str) -> str:
        """Say it for two."""
        return f"{self.text(first)}; {self.text(second)}"


class Sailing(Notice):
    """It sails."""

    def text(self, ship: str) -> str:
        """Say it for one ship."""
        return f"{ship} sails"
''',
    "ferry/weather.py": '''"""Notices of the weather."""

from ferry.notices import Notice


class Storm(Notice):
    """Nothing sails."""

    def text(self, ship: str) -> str:
        """Say it for one ship."""
        return f"{ship} stays: storm"
''',
    "tests/test_ferry.py": """from ferry.notices import Sailing
from ferry.pilot import may_sail, wait
from ferry.weather import Storm


def test_may_sail():
    assert may_sail(3.0, 2.5)
    assert wait(2.5, 2.5, 0.25) == 2.0


def test_notices():
    assert Sailing().both("Ida", "Olga") == "Ida sails; Olga sails"
    assert Storm().text("Ida") == "Ida stays: storm"
""",
    "pyproject.toml": '[project]\nname = "ferry"\nversion = "0.9.0"\n\n[tool.mypy]\nstrict = true\nfiles = ["ferry"]\n',
}
MYPY = "pip install -q pytest==8.3.4 mypy==1.13.0"
MYPY_IGNORE = Shape(
    name="mypy-helper-typed-ignores-left",
    command="mypy",
    setup=MYPY,
    start=tree(TYPED),
    message="Type the heights of water and count the swell",
    culprit={
        "ferry/tide.py": '''"""Heights of water."""


def clearance(depth: float, draught: float, swell: float = 0.0) -> float:
    """Give the water under the keel in the basin of a swell."""
    return depth - draught - swell / 2
''',
        "tests/test_ferry.py": swap(
            TYPED["tests/test_ferry.py"],
            (
                "from ferry.weather import Storm\n",
                "from ferry.tide import clearance\nfrom ferry.weather import Storm\n",
            ),
        )
        + "\n\ndef test_swell():\n    assert clearance(3.0, 2.0, 1.0) == 0.5\n",
    },
    keeps=READ
    + """
from ferry.tide import clearance
from ferry.pilot import may_sail, wait
assert clearance(3.0, 2.0, 1.0) == 0.5 and may_sail(3.0, 2.5) is True and wait(2.5, 2.5, 0.25) == 2.0
assert "swell: float = 0.0) -> float" in read("ferry/tide.py")
assert "type: ignore" not in read("ferry/pilot.py") + read("ferry/tide.py")
assert "strict = true" in read("pyproject.toml") and "warn_unused" not in read("pyproject.toml")
""",
    remedy="sed -i 's/  # type: ignore\\[no-untyped-call\\]//' ferry/pilot.py\n",
)
MYPY_OVERRIDE = Shape(
    name="mypy-base-method-parameter-subclass-left",
    command="mypy",
    setup=MYPY,
    start=tree(TYPED),
    message="Say notices loudly",
    culprit={
        "ferry/notices.py": swap(
            TYPED["ferry/notices.py"],
            (
                "    def text(self, ship: str) -> str:",
                "    def text(self, ship: str, loud: bool = False) -> str:",
            ),
            (
                '        return f"{ship} sails"',
                '        return f"{ship} sails!" if loud else f"{ship} sails"',
            ),
        ),
        "tests/test_ferry.py": TYPED["tests/test_ferry.py"]
        + '\n\ndef test_loud():\n    assert Sailing().text("Ida", loud=True) == "Ida sails!"\n',
    },
    keeps=READ
    + """
from ferry.notices import Notice, Sailing
from ferry.weather import Storm
assert Sailing().text("Ida", loud=True) == "Ida sails!"
assert issubclass(Storm, Notice) and Storm().text("Ida") == "Ida stays: storm" and Storm().text("Ida", loud=True).startswith("Ida stays: storm")
assert "type: ignore" not in read("ferry/weather.py") + read("ferry/notices.py") and "strict = true" in read("pyproject.toml")
assert "loud: bool = False" in read("ferry/weather.py")
""",
    remedy="sed -i 's/def text(self, ship: str)/def text(self, ship: str, loud: bool = False)/' ferry/weather.py\n",
)

# A printer of labels with stored snapshots.
LABELS = {
    "labels/__init__.py": "",
    "labels/jar.py": '''"""Labels for jars."""


def label(what, grams):
    """Give the lines of a label."""
    return [what.upper(), f"{grams} g"]


def sheet(jars):
    """Give the labels of many jars, a rule between them."""
    rows = []
    for what, grams in jars:
        rows += [*label(what, grams), "-" * 12]
    return "\\n".join(rows)
''',
    "tests/test_label.py": """from labels.jar import label


def test_label():
    assert label("quince", 250) == ["QUINCE", "250 g"]
""",
    "tests/test_sheet.py": """from labels.jar import sheet


def test_sheet(snapshot):
    assert sheet([("plum", 300), ("quince", 250)]) == snapshot


def test_empty(snapshot):
    assert sheet([]) == snapshot
""",
    "tests/__snapshots__/test_sheet.ambr": """# serializer version: 1
# name: test_empty
  ''
# ---
# name: test_sheet
  '''
  PLUM
  300 g
  ------------
  QUINCE
  250 g
  ------------
  '''
# ---
""",
    "README.md": "# Labels\n\nSnapshots are written by `pytest --snapshot-update`.\n",
}
SYRUPY = Shape(
    name="syrupy-output-changed-snapshot-left",
    command="python -m pytest -q",
    setup="pip install -q pytest==8.3.4 syrupy==4.8.0",
    start=tree(LABELS),
    message="Print ounces beside grams",
    culprit={
        "labels/jar.py": swap(
            LABELS["labels/jar.py"], ('f"{grams} g"]', 'f"{grams} g / {grams / 28.35:.1f} oz"]')
        ),
        "tests/test_label.py": LABELS["tests/test_label.py"].replace('"250 g"', '"250 g / 8.8 oz"'),
    },
    keeps=READ
    + """
from labels.jar import label, sheet
assert label("quince", 250) == ["QUINCE", "250 g / 8.8 oz"]
stored = read("tests/__snapshots__/test_sheet.ambr")
assert "300 g / 10.6 oz" in stored and "250 g / 8.8 oz" in stored and "name: test_empty" in stored
tests = read("tests/test_sheet.py")
assert tests.count("== snapshot") == 2 and "skip" not in tests
""",
    remedy="python -m pytest -q --snapshot-update\n",
)

# A reader of podcast feeds: a function has moved, a test replaces it where it was.
POD = {
    "podshelf/__init__.py": "",
    "podshelf/feeds.py": '''"""Read feeds."""

from urllib.request import urlopen


def fetch(url):
    """Give the text of a feed."""
    with urlopen(url) as answer:
        return answer.read().decode()


def titles(url):
    """Give the titles in a feed."""
    parts = fetch(url).split("<title>")[1:]
    return [one.split("</title>")[0] for one in parts]
''',
    "podshelf/shelf.py": '''"""Keep what was heard."""

from podshelf import feeds


class Shelf:
    def __init__(self):
        self.heard = set()

    def hear(self, title):
        self.heard.add(title)

    def unheard(self, url):
        return [one for one in feeds.titles(url) if one not in self.heard]
''',
    "tests/test_feeds.py": """from podshelf import feeds


def test_titles(monkeypatch):
    monkeypatch.setattr("podshelf.feeds.fetch", lambda url: "<title>Owls</title><title>Eels</title>")
    assert feeds.titles("http://pod.test/a") == ["Owls", "Eels"]
""",
    "tests/test_shelf.py": """from podshelf.shelf import Shelf


def test_unheard(monkeypatch):
    monkeypatch.setattr("podshelf.feeds.fetch", lambda url: "<title>Owls</title><title>Eels</title>")
    shelf = Shelf()
    shelf.hear("Owls")
    assert shelf.unheard("http://pod.test/a") == ["Eels"]


def test_nothing_there(monkeypatch):
    monkeypatch.setattr("podshelf.feeds.fetch", lambda url: "")
    assert Shelf().unheard("http://pod.test/a") == []
""",
    "README.md": "# Podshelf\n\nKnows what you have not heard yet.\n",
}
PATCH_TARGET = Shape(
    name="function-moved-patch-target-left",
    command="python -m pytest -q",
    setup=PYTEST,
    start=tree(POD),
    message="Retry a feed that does not answer",
    culprit={
        "podshelf/transport.py": '''"""Get things over the network."""

from urllib.error import URLError
from urllib.request import urlopen


def fetch(url, tries=3, opened=urlopen):
    """Give the text behind an address; ask again where there is no answer."""
    for left in reversed(range(tries)):
        try:
            with opened(url) as answer:
                return answer.read().decode()
        except URLError:
            if not left:
                raise
''',
        "podshelf/feeds.py": '''"""Read feeds."""

from podshelf import transport


def titles(url):
    """Give the titles in a feed."""
    parts = transport.fetch(url).split("<title>")[1:]
    return [one.split("</title>")[0] for one in parts]
''',
        "tests/test_feeds.py": POD["tests/test_feeds.py"].replace(
            "podshelf.feeds.fetch", "podshelf.transport.fetch"
        ),
        "tests/test_transport.py": """import io
from urllib.error import URLError

from podshelf.transport import fetch


def test_retry():
    answers = [URLError("gone"), io.BytesIO(b"text")]

    def opened(url):
        one = answers.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    assert fetch("http://pod.test/a", opened=opened) == "text"
""",
    },
    keeps=READ
    + """
assert "for left in reversed(range(tries))" in read("podshelf/transport.py")
assert "transport.fetch(url)" in read("podshelf/feeds.py") and "urlopen" not in read("podshelf/feeds.py")
tests = read("tests/test_shelf.py")
assert tests.count('"podshelf.transport.fetch"') == 2 and "podshelf.feeds.fetch" not in tests
assert "raising" not in tests and "skip" not in tests and '== ["Eels"]' in tests
assert "test_retry" in read("tests/test_transport.py")
""",
    remedy="sed -i 's/podshelf\\.feeds\\.fetch/podshelf.transport.fetch/' tests/test_shelf.py\n",
)

# A pager for a lifeboat: a call has a new keyword, an old test expects the call without.
PAGER = {
    "lifeboat/__init__.py": "",
    "lifeboat/pager.py": '''"""Call the crew."""


class Pager:
    def __init__(self, gateway):
        self.gateway = gateway

    def launch(self, boat):
        """Call everyone."""
        self.gateway.send(f"Launch {boat}", to="all")

    def stand_down(self, boat):
        """Send everyone home."""
        self.gateway.send(f"Stand down {boat}", to="all")
''',
    "lifeboat/log.py": '''"""What was called and when."""


def entry(hour, minute, text):
    """Give a line of the log."""
    return f"{hour:02}:{minute:02} {text}"
''',
    "tests/test_launch.py": """import unittest
from unittest import mock

from lifeboat.pager import Pager


class LaunchTest(unittest.TestCase):
    def test_launch(self):
        gateway = mock.Mock()
        Pager(gateway).launch("Skua")
        gateway.send.assert_called_once_with("Launch Skua", to="all")
""",
    "tests/test_pager.py": """import unittest
from unittest import mock

from lifeboat.log import entry
from lifeboat.pager import Pager


class PagerTest(unittest.TestCase):
    def test_stand_down(self):
        gateway = mock.Mock()
        Pager(gateway).stand_down("Skua")
        gateway.send.assert_called_once_with("Stand down Skua", to="all")

    def test_exercise(self):
        gateway = mock.Mock()
        pager = Pager(gateway)
        pager.launch("Petrel")
        gateway.send.assert_called_once_with("Launch Petrel", to="all")
        self.assertEqual(entry(7, 5, "Petrel"), "07:05 Petrel")
""",
    "README.md": "# Lifeboat\n\nTests: `python -m unittest discover -s tests`.\n",
}
CALLED_WITH = Shape(
    name="call-with-new-keyword-mock-expectation-left",
    command="python -m unittest discover -s tests",
    setup="true",
    start=tree(PAGER),
    message="Ring through silent mode at a launch",
    culprit={
        "lifeboat/pager.py": swap(
            PAGER["lifeboat/pager.py"],
            ('f"Launch {boat}", to="all")', 'f"Launch {boat}", to="all", urgent=True)'),
        ),
        "tests/test_launch.py": PAGER["tests/test_launch.py"].replace(
            'to="all")', 'to="all", urgent=True)'
        ),
        "README.md": PAGER["README.md"] + "\nA launch is urgent: it rings on a silent phone.\n",
    },
    keeps=READ
    + """
from unittest import mock
from lifeboat.pager import Pager
gateway = mock.Mock()
Pager(gateway).launch("Tern")
gateway.send.assert_called_once_with("Launch Tern", to="all", urgent=True)
gateway = mock.Mock()
Pager(gateway).stand_down("Tern")
gateway.send.assert_called_once_with("Stand down Tern", to="all")
tests = read("tests/test_pager.py")
assert 'assert_called_once_with("Launch Petrel", to="all", urgent=True)' in tests and "skip" not in tests
assert 'assert_called_once_with("Stand down Skua", to="all")' in tests and '"07:05 Petrel"' in tests
""",
    remedy='sed -i \'s/"Launch Petrel", to="all")/"Launch Petrel", to="all", urgent=True)/\' tests/test_pager.py\n',
)

# Shelf marks: the error has a class of its own, an old test expects the class of before.
MARKS = {
    "shelfmark/__init__.py": "",
    "shelfmark/marks.py": '''"""Marks on the backs of books."""

SUBJECTS = {"bot": "Botany", "geo": "Geology"}


def parse(mark):
    """Split a mark such as bot-114."""
    subject, _, number = mark.partition("-")
    if subject not in SUBJECTS:
        raise KeyError(subject)
    return SUBJECTS[subject], int(number)
''',
    "shelfmark/lists.py": '''"""Lists of marks."""

from shelfmark.marks import parse


def by_subject(marks):
    """Group numbers by their subject."""
    found = {}
    for one in marks:
        subject, number = parse(one)
        found.setdefault(subject, []).append(number)
    return found
''',
    "tests/test_marks.py": """import pytest

from shelfmark.marks import parse


def test_parse():
    assert parse("bot-114") == ("Botany", 114)


def test_unknown():
    with pytest.raises(KeyError):
        parse("zoo-1")
""",
    "tests/test_lists.py": """import pytest

from shelfmark.lists import by_subject


def test_by_subject():
    assert by_subject(["bot-1", "geo-7", "bot-3"]) == {"Botany": [1, 3], "Geology": [7]}


def test_unknown_in_a_list():
    with pytest.raises(KeyError):
        by_subject(["bot-1", "zoo-2"])
""",
    "README.md": "# Shelfmark\n",
}
RAISES = Shape(
    name="exception-class-changed-raises-left",
    command="python -m pytest -q",
    setup=PYTEST,
    start=tree(MARKS),
    message="Say which subjects there are when one is unknown",
    culprit={
        "shelfmark/marks.py": swap(
            MARKS["shelfmark/marks.py"],
            (
                "\n\ndef parse",
                '\n\nclass UnknownSubject(ValueError):\n    """A mark has a subject that is not kept here."""\n\n\ndef parse',
            ),
            (
                "raise KeyError(subject)",
                "raise UnknownSubject(f\"{subject}: not one of {', '.join(SUBJECTS)}\")",
            ),
        ),
        "tests/test_marks.py": swap(
            MARKS["tests/test_marks.py"],
            ("import parse", "import UnknownSubject, parse"),
            (
                "pytest.raises(KeyError)",
                'pytest.raises(UnknownSubject, match="zoo: not one of bot, geo")',
            ),
        ),
    },
    keeps=READ
    + """
from shelfmark import lists, marks
assert issubclass(marks.UnknownSubject, ValueError) and not issubclass(marks.UnknownSubject, KeyError)
try:
    lists.by_subject(["bot-1", "zoo-2"])
except marks.UnknownSubject as error:
    assert "not one of bot, geo" in str(error)
else:
    raise AssertionError
tests = read("tests/test_lists.py")
assert "UnknownSubject)" in tests and "raises(" in tests and "KeyError" not in tests and "test_unknown_in_a_list" in tests and "skip" not in tests and "raises(Exception" not in tests
""",
    remedy="""sed -i 's/raises(KeyError)/raises(UnknownSubject)/' tests/test_lists.py
sed -i 's/^from shelfmark.lists import by_subject$/&\\nfrom shelfmark.marks import UnknownSubject/' tests/test_lists.py
""",
)

# Fixtures of a mill's tests.
MILL = {
    "mill/__init__.py": "",
    "mill/store.py": '''"""Sacks in a store."""


class Store:
    def __init__(self, room=10):
        self.room = room
        self.sacks = {}

    def put(self, grain, count=1):
        if sum(self.sacks.values()) + count > self.room:
            raise ValueError("no room")
        self.sacks[grain] = self.sacks.get(grain, 0) + count

    def free(self):
        return self.room - sum(self.sacks.values())
''',
    "mill/orders.py": '''"""Orders from a store."""


def fill(store, grain, count):
    """Take up to so many sacks."""
    taken = min(count, store.sacks.get(grain, 0))
    store.sacks[grain] = store.sacks.get(grain, 0) - taken
    return taken
''',
    "tests/conftest.py": """import pytest

from mill.store import Store


@pytest.fixture
def store():
    one = Store()
    one.put("rye", 4)
    return one
""",
    "tests/test_store.py": """import pytest


def test_free(store):
    assert store.free() == 6


def test_no_room(store):
    with pytest.raises(ValueError, match="no room"):
        store.put("oats", 7)
""",
    "tests/test_orders.py": """from mill.orders import fill


def test_fill(store):
    assert fill(store, "rye", 3) == 3
    assert store.sacks["rye"] == 1


def test_fill_what_is_not_there(store):
    assert fill(store, "oats", 2) == 0
""",
    "README.md": "# Mill\n",
}
FIXTURE = Shape(
    name="fixture-renamed-module-left",
    command="python -m pytest -q",
    setup=PYTEST,
    start=tree(MILL),
    message="Give away what a store cannot keep",
    culprit={
        "mill/store.py": MILL["mill/store.py"]
        + '''
    def put_some(self, grain, count):
        """Put what there is room for; give the rest."""
        kept = min(count, self.free())
        self.put(grain, kept)
        return count - kept
''',
        "tests/conftest.py": swap(MILL["tests/conftest.py"], ("def store():", "def rye_store():"))
        + "\n\n@pytest.fixture\ndef empty_store():\n    return Store(room=3)\n",
        "tests/test_store.py": MILL["tests/test_store.py"]
        .replace("(store)", "(rye_store)")
        .replace("store.free", "rye_store.free")
        .replace("store.put", "rye_store.put")
        + '\n\ndef test_put_some(empty_store):\n    assert empty_store.put_some("oats", 5) == 2\n',
    },
    keeps=READ
    + """
from mill.store import Store
assert Store(room=3).put_some("oats", 5) == 2
conf = read("tests/conftest.py")
assert "def rye_store" in conf and "def empty_store" in conf and "def store(" not in conf
orders = read("tests/test_orders.py")
assert "def test_fill(rye_store)" in orders and "def test_fill_what_is_not_there(rye_store)" in orders
assert 'fill(rye_store, "rye", 3) == 3' in orders and "skip" not in orders and "(empty_store" not in orders
""",
    remedy="sed -i 's/\\bstore\\b/rye_store/g' tests/test_orders.py\n",
)

# A codec for a beacon: a new subpackage is not in the list of packages.
BEACON = {
    "beacon/__init__.py": '"""Beacons."""\n',
    "beacon/frame.py": '"""Frames."""\n\n\ndef frame(text):\n    """Mark the ends of a text."""\n    return f"^{text}$"\n',
    "beacon/morse/__init__.py": '"""Morse."""\n\nSIGNS = {"s": "...", "o": "---"}\n\n\ndef code(text):\n    """Give the signs of a text."""\n    return " ".join(SIGNS[one] for one in text)\n',
    "pyproject.toml": """[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "beacon"
version = "1.1.0"

[tool.setuptools]
packages = ["beacon", "beacon.morse"]
""",
    "tools/check_wheel.py": '''"""Build a wheel and see that each module of the tree is in it."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, "."]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = Path(folder).glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
lost = sorted(str(one) for one in Path("beacon").rglob("*.py") if one.as_posix() not in inside)
for one in lost:
    print(f"{one} is not in the wheel; is its package in [tool.setuptools] packages of pyproject.toml?")
sys.exit(bool(lost))
''',
    "tests/test_beacon.py": """import unittest

from beacon.frame import frame
from beacon.morse import code


class BeaconTest(unittest.TestCase):
    def test_frame(self):
        self.assertEqual(frame("a"), "^a$")

    def test_code(self):
        self.assertEqual(code("sos"), "... --- ...")
""",
    ".gitignore": "build/\n*.egg-info/\n__pycache__/\n",
}
WHEEL = Shape(
    name="setuptools-subpackage-added-list-left",
    command="python tools/check_wheel.py",
    setup="pip install -q build==1.2.2 setuptools==75.6.0 wheel==0.45.1",
    start=tree(BEACON),
    message="Add flags",
    culprit={
        "beacon/flags/__init__.py": '"""Signal flags."""\n\nfrom beacon.flags.names import NAMES\n\n\ndef hoist(text):\n    """Give the flags of a text."""\n    return [NAMES[one] for one in text]\n',
        "beacon/flags/names.py": '"""Names of flags."""\n\nNAMES = {"a": "Alfa", "b": "Bravo", "c": "Charlie"}\n',
        "tests/test_flags.py": """import unittest

from beacon.flags import hoist


class FlagsTest(unittest.TestCase):
    def test_hoist(self):
        self.assertEqual(hoist("cab"), ["Charlie", "Alfa", "Bravo"])
""",
    },
    keeps=READ
    + """
from beacon.flags import hoist
from beacon.morse import code
assert hoist("cab") == ["Charlie", "Alfa", "Bravo"] and code("sos") == "... --- ..."
config = read("pyproject.toml")
assert "beacon.flags" in config and "beacon.morse" in config or "find" in config
assert 'Path("beacon").rglob("*.py") if one.as_posix() not in inside' in read("tools/check_wheel.py")
assert "sys.exit(bool(lost))" in read("tools/check_wheel.py")
assert "test_hoist" in read("tests/test_flags.py")
""",
    remedy='sed -i \'s/packages = \\["beacon", /&"beacon.flags", /\' pyproject.toml\n',
)

# A cash book: the last use of two imports has gone.
CASH = {
    "cashbook/__init__.py": "",
    "cashbook/export.py": """import csv
import io
import json
from decimal import Decimal, ROUND_HALF_UP


def to_json(rows):
    return json.dumps([{"what": what, "sum": str(total)} for what, total in rows])


def to_csv(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\\n").writerows(rows)
    return out.getvalue()


def cents(total):
    return int((Decimal(total) * 100).to_integral_value(ROUND_HALF_UP))
""",
    "cashbook/__main__.py": """import sys

from cashbook.export import to_csv

if __name__ == "__main__":
    sys.stdout.write(to_csv([line.split() for line in sys.stdin]))
""",
    "tests/test_export.py": """from cashbook.export import cents, to_csv, to_json


def test_csv():
    assert to_csv([("tea", "1.20")]) == "tea,1.20\\n"


def test_json():
    assert to_json([("tea", "1.20")]) == '[{"what": "tea", "sum": "1.20"}]'


def test_cents():
    assert cents("1.205") == 121
""",
    "setup.cfg": "[flake8]\nmax-line-length = 100\n",
    "README.md": "# Cashbook\n",
}
FLAKE8 = Shape(
    name="flake8-last-use-gone-import-left",
    command="flake8 .",
    setup="pip install -q pytest==8.3.4 flake8==7.1.1",
    start=tree(CASH),
    message="Write spreadsheets with tabs, without the csv module",
    culprit={
        "cashbook/export.py": swap(
            CASH["cashbook/export.py"],
            (
                'def to_csv(rows):\n    out = io.StringIO()\n    csv.writer(out, lineterminator="\\n").writerows(rows)\n    return out.getvalue()\n',
                'def to_tsv(rows):\n    return "".join("\\t".join(row) + "\\n" for row in rows)\n',
            ),
        ),
        "cashbook/__main__.py": CASH["cashbook/__main__.py"].replace("to_csv", "to_tsv"),
        "tests/test_export.py": CASH["tests/test_export.py"]
        .replace("to_csv, to_json", "to_json, to_tsv")
        .replace("def test_csv", "def test_tsv")
        .replace("to_csv(", "to_tsv(")
        .replace("tea,1.20", "tea\\t1.20"),
    },
    keeps=READ
    + """
from cashbook.export import cents, to_json, to_tsv
assert to_tsv([("tea", "1.20")]) == "tea\\t1.20\\n" and cents("1.205") == 121
assert to_json([("tea", "1.20")]) == '[{"what": "tea", "sum": "1.20"}]'
text = read("cashbook/export.py")
assert "import csv" not in text and "import io" not in text and "noqa" not in text and "__all__" not in text
assert "ignore" not in read("setup.cfg") and "exclude" not in read("setup.cfg")
""",
    remedy="sed -i '/^import csv$/d; /^import io$/d' cashbook/export.py\n",
)

# Rules of a checker of scores: one more rule, a count left behind in the tests of the command.
SCORE = {
    "scorelint/__init__.py": "",
    "scorelint/rules.py": '''"""Rules for a score."""

RULES = {}


def rule(check):
    """Keep a check under its name."""
    RULES[check.__name__.replace("_", "-")] = check
    return check


@rule
def has_title(score):
    return bool(score.get("title"))


@rule
def has_clef(score):
    return score.get("clef") in {"treble", "alto", "bass"}


@rule
def has_bars(score):
    return score.get("bars", 0) > 0
''',
    "scorelint/command.py": '''"""Lint a score."""

from scorelint.rules import RULES


def names():
    """List the rules."""
    return sorted(RULES)


def lint(score):
    """Name the rules that a score breaks."""
    return [name for name in names() if not RULES[name](score)]
''',
    "tests/test_rules.py": """from scorelint.command import lint


def test_clef():
    assert lint({"title": "Air", "clef": "soprano", "bars": 8}) == ["has-clef"]


def test_bars():
    assert lint({"title": "Air", "clef": "alto"}) == ["has-bars"]
""",
    "tests/test_command.py": """from scorelint.command import lint, names


def test_names():
    assert names() == ["has-bars", "has-clef", "has-title"]


def test_empty():
    assert len(lint({})) == 3
""",
    "README.md": "# Scorelint\n\nChecks a score.\n",
}
REGISTRY = Shape(
    name="rule-registered-expected-list-left",
    command="python -m pytest -q",
    setup=PYTEST,
    start=tree(SCORE),
    message="Ask for a metre",
    culprit={
        "scorelint/rules.py": SCORE["scorelint/rules.py"]
        + '\n\n@rule\ndef has_metre(score):\n    return "/" in score.get("metre", "")\n',
        "tests/test_rules.py": SCORE["tests/test_rules.py"].replace(
            '"title": "Air", ', '"title": "Air", "metre": "3/4", '
        )
        + '\n\ndef test_metre():\n    assert lint({"title": "Air", "clef": "alto", "bars": 8}) == ["has-metre"]\n',
    },
    keeps=READ
    + """
from scorelint.command import lint, names
assert names() == ["has-bars", "has-clef", "has-metre", "has-title"] and len(lint({})) == 4
assert lint({"title": "Air", "clef": "alto", "bars": 8}) == ["has-metre"]
tests = read("tests/test_command.py")
assert '["has-bars", "has-clef", "has-metre", "has-title"]' in tests and "len(lint({})) == 4" in tests and "skip" not in tests
assert "test_metre" in read("tests/test_rules.py")
""",
    remedy="""sed -i 's/"has-clef", "has-title"/"has-clef", "has-metre", "has-title"/; s/len(lint({})) == 3/len(lint({})) == 4/' tests/test_command.py
""",
)

# A Node library for knitting charts: an export has a new name, the command line imports the old one.
KNIT = {
    "package.json": '{\n  "name": "purl",\n  "version": "0.3.0",\n  "type": "module",\n  "bin": { "purl": "bin/purl.js" },\n  "scripts": { "test": "node --test" }\n}\n',
    "src/chart.js": """const SIGNS = { k: '|', p: '-' };

export function parse(text) {
  return text.split(/\\s+/).filter(Boolean);
}

export function draw(text) {
  return parse(text).map((row) => [...row].map((one) => SIGNS[one]).join('')).join('\\n');
}
""",
    "bin/purl.js": """import { draw } from '../src/chart.js';

console.log(draw(process.argv.slice(2).join(' ')));
""",
    "test/chart.test.js": """import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draw, parse } from '../src/chart.js';

test('parse', () => assert.deepEqual(parse('kkp  pk'), ['kkp', 'pk']));
test('draw', () => assert.equal(draw('kkp pk'), '||-\\n-|'));
""",
    "test/cli.test.js": """import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

test('cli draws a chart', () => {
  const out = execFileSync(process.execPath, ['bin/purl.js', 'kp', 'pk'], { encoding: 'utf8' });
  assert.equal(out, '|-\\n-|\\n');
});
""",
    "README.md": "# Purl\n\nDraws charts of stitches.\n",
}
NODE_EXPORT = Shape(
    name="node-export-renamed-command-left",
    command="node --test",
    setup="true",
    start=tree(KNIT),
    message="Render charts with yarn-overs",
    culprit={
        "src/chart.js": swap(
            KNIT["src/chart.js"],
            ("p: '-' }", "p: '-', o: 'O' }"),
            ("export function draw(", "export function renderChart("),
        ),
        "test/chart.test.js": swap(
            KNIT["test/chart.test.js"],
            ("import { draw, parse }", "import { parse, renderChart }"),
            (
                "test('draw', () => assert.equal(draw(",
                "test('render', () => assert.equal(renderChart(",
            ),
        )
        + "test('yarn-over', () => assert.equal(renderChart('kop'), '|O-'));\n",
    },
    keeps=READ
    + """
chart = read("src/chart.js")
assert "export function renderChart(" in chart and "o: 'O'" in chart and "draw" not in chart
command = read("bin/purl.js")
assert "renderChart" in command and "process.argv.slice(2).join(' ')" in command
assert "cli draws a chart" in read("test/cli.test.js") and "skip" not in read("test/cli.test.js")
assert "yarn-over" in read("test/chart.test.js")
""",
    remedy="sed -i 's/\\bdraw\\b/renderChart/g' bin/purl.js\n",
)

SIXTEENTH = (
    FLASK_ENDPOINT,
    DJANGO_MIGRATION,
    DJANGO_ADMIN,
    SQL_COLUMN,
    PYDANTIC_SAMPLE,
    PYDANTIC_DICT,
    COOK_DUMP,
    CLICK_OPTION,
    MKDOCS_LINK,
    RUFF_FORMAT,
    BLACK,
    RUFF_IMPORTS,
    RUFF_FLOOR,
    MYPY_IGNORE,
    MYPY_OVERRIDE,
    SYRUPY,
    PATCH_TARGET,
    CALLED_WITH,
    RAISES,
    FIXTURE,
    WHEEL,
    FLAKE8,
    REGISTRY,
    NODE_EXPORT,
)
