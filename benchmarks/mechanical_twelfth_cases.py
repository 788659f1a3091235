"""A ferry line, a seed bank and a garden in Django that a feature leaves red in a mechanical way.

A second unseen set, as `mechanical_eleventh_cases`: written before the fixer was run on it by one who had not read it.
`remedy` is a reference: the command is green after it, and `keeps` holds.
"""

from __future__ import annotations

import json

from benchmarks.mechanical_eleventh_cases import (
    ADD_RANGES,
    DECLARED,
    HAS_RANGES,
    IN_SRC,
    NO_SHOP,
    TIDE,
    Shape,
    read,
    swap,
    tide,
)  # fmt: skip
from benchmarks.repair_choice_cases import Files

ERRORS = '''"""What can go wrong."""


class FerryError(Exception):
    """Something that people are told."""


class NoSuchHarbour(FerryError):
    """No harbour has the code."""


class FullyBooked(FerryError):
    """A sailing has no room left."""
'''
HARBOURS = '''"""Harbours by their codes."""

import json
from pathlib import Path

from ferryline.errors import NoSuchHarbour

DATA = Path(__file__).parent / "data" / "harbours.json"


def harbours():
    """Read the names of harbours by code."""
    return json.loads(DATA.read_text(encoding="utf-8"))


def find(code):
    """Name the harbour of a code."""
    try:
        return harbours()[code]
    except KeyError:
        raise NoSuchHarbour(f"no harbour {code}") from None
'''
FARES = '''"""Fares."""

BASE = 450
PER_MILE = 25
PER_CAR = 1200


def fare(miles, people=1, cars=0):
    """Tell the fare of a crossing in pence.

    Args:
        miles: How far it is.
        people: How many people cross.
        cars: How many cars they bring.

    Returns:
        The fare in pence.
    """
    return people * (BASE + miles * PER_MILE) + cars * PER_CAR
'''
FERRY_CLI = '''"""The command line."""

import argparse
import sys

from ferryline import errors
from ferryline.fares import fare
from ferryline.harbours import find


def main(argv=None):
    """Print the fare between two harbours."""
    parser = argparse.ArgumentParser(prog="ferryline")
    parser.add_argument("--from", dest="origin", required=True, help="the code of a harbour")
    parser.add_argument("--to", dest="target", required=True, help="the code of a harbour")
    parser.add_argument("--miles", type=int, default=10)
    given = parser.parse_args(argv)
    try:
        route = f"{find(given.origin)} to {find(given.target)}"
    except errors.NoSuchHarbour as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{route}: {fare(given.miles) / 100:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''
T_HARBOURS = """import pytest

from ferryline.errors import NoSuchHarbour
from ferryline.harbours import find


def test_find():
    assert find("OBA") == "Oban"


def test_unknown_code():
    with pytest.raises(NoSuchHarbour):
        find("XXX")
"""
T_FARES = """from ferryline.fares import fare


def test_fare():
    assert fare(10) == 700


def test_fare_with_a_car():
    assert fare(10, people=2, cars=1) == 2600
"""
T_FERRY_CLI = """from ferryline.cli import main


def test_fare(capsys):
    assert main(["--from", "OBA", "--to", "CRA"]) == 0
    assert capsys.readouterr().out == "Oban to Craignure: 7.00\\n"


def test_unknown_code(capsys):
    assert main(["--from", "OBA", "--to", "XXX"]) == 2
    assert capsys.readouterr().err == "no harbour XXX\\n"
"""
FERRY_PROJECT = """[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "ferryline"
version = "1.3.0"
description = "Fares and sailings of a small ferry line"
requires-python = ">=3.10"
dependencies = []

[project.optional-dependencies]
test = ["pytest"]

[tool.setuptools]
packages = ["ferryline"]

[tool.setuptools.package-data]
ferryline = ["data/*.json"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]
"""
USAGE = "# Usage\n\n    python -m ferryline.cli --from OBA --to CRA\n\nprints a fare.\n"
MAKE = "demo:\n\tpython -m ferryline.cli --from OBA --to CRA\n\ntest:\n\tpython -m pytest -q\n\n.PHONY: demo test\n"
IGNORED = str(TIDE[".gitignore"]) + "dist/\n*.sqlite3\n"
FERRY: Files = {
    **NO_SHOP,
    "ferryline/__init__.py": '"""A small ferry line."""\n',
    "ferryline/errors.py": ERRORS,
    "ferryline/harbours.py": HARBOURS,
    "ferryline/fares.py": FARES,
    "ferryline/cli.py": FERRY_CLI,
    "ferryline/data/harbours.json": '{\n  "CRA": "Craignure",\n  "MAL": "Mallaig",\n  "OBA": "Oban"\n}\n',
    "tests/test_harbours.py": T_HARBOURS,
    "tests/test_fares.py": T_FARES,
    "tests/test_cli.py": T_FERRY_CLI,
    "docs/usage.md": USAGE,
    "Makefile": MAKE,
    "pyproject.toml": FERRY_PROJECT,
    "README.md": "# Ferryline\n\nTells fares and keeps bookings.\n",
    ".gitignore": IGNORED,
}  # fmt: skip
FERRY_HISTORY: tuple[tuple[str, Files], ...] = (
    ("Say how to take part", {"README.md": "# Ferryline\n\nTells fares and keeps bookings.\n\n## Taking part\n\nRun the tests first.\n"}),
    ("Tell how long a crossing takes", {
        "ferryline/crossing.py": '"""Crossings."""\n\n\ndef minutes(miles, knots=12):\n    """Tell how long a crossing takes."""\n    return round(miles / knots * 60)\n',
        "tests/test_crossing.py": "from ferryline.crossing import minutes\n\n\ndef test_minutes():\n    assert minutes(6) == 30\n",
    }),
    ("List the harbours", {"README.md": "# Ferryline\n\nTells fares and keeps bookings.\n\n## Harbours\n\nOban, Craignure and Mallaig.\n\n## Taking part\n\nRun the tests first.\n"}),
)  # fmt: skip

NO_FARES: Files = dict.fromkeys(
    (
        "ferryline/fares.py",
        "ferryline/cli.py",
        "tests/test_fares.py",
        "tests/test_cli.py",
        "docs/usage.md",
        "Makefile",
    )
)
NO_HARBOURS: Files = dict.fromkeys(
    ("ferryline/harbours.py", "ferryline/data/harbours.json", "tests/test_harbours.py")
)


def ferry(  # noqa: PLR0917 - a row of a table
    name: str, message: str, tools: str, command: str, culprit: Files, keeps: str, remedy: str, start: Files | None = None
) -> Shape:  # fmt: skip
    """A shape of the ferry line."""
    setup = tools if tools.startswith("pip ") else f"pip install -q pytest {tools}".strip()
    return Shape(name, command, culprit, keeps, {**FERRY, **(start or {})}, message, setup=setup, history=FERRY_HISTORY, remedy=remedy)  # fmt: skip


STORE = '''"""Sailings and bookings, in SQLite."""

import sqlite3
from pathlib import Path

from ferryline.errors import FullyBooked

SQL = Path(__file__).parent / "sql"


def connect(path=":memory:"):
    """Open a database with the tables."""
    db = sqlite3.connect(path)
    db.executescript((SQL / "schema.sql").read_text(encoding="utf-8"))
    return db


def add_sailing(db, origin, target, seats):
    """Offer a sailing."""
    row = db.execute(
        "INSERT INTO sailings (origin, target, seats, seats_free) VALUES (?, ?, ?, ?)",
        (origin, target, seats, seats),
    )
    return row.lastrowid


def book(db, sailing, people):
    """Take seats of a sailing."""
    changed = db.execute(
        "UPDATE sailings SET seats_free = seats_free - ? WHERE id = ? AND seats_free >= ?",
        (people, sailing, people),
    )
    if not changed.rowcount:
        raise FullyBooked(f"no {people} seats on {sailing}")


def free(db, sailing):
    """Count the free seats of a sailing."""
    return db.execute("SELECT seats_free FROM sailings WHERE id = ?", (sailing,)).fetchone()[0]


def busiest(db):
    """List sailings, the fullest first."""
    return db.execute((SQL / "busiest.sql").read_text(encoding="utf-8")).fetchall()
'''
SCHEMA = "CREATE TABLE IF NOT EXISTS sailings (\n    id INTEGER PRIMARY KEY,\n    origin TEXT NOT NULL,\n    target TEXT NOT NULL,\n    seats INTEGER NOT NULL,\n    seats_free INTEGER NOT NULL CHECK (seats_free >= 0)\n);\n"
BUSIEST = (
    "SELECT origin, target, seats - seats_free AS taken\nFROM sailings\nORDER BY taken DESC, id;\n"
)
T_STORE = 'import pytest\n\nfrom ferryline.errors import FullyBooked\nfrom ferryline.store import add_sailing, book, connect, free\n\n\ndef test_book():\n    db = connect()\n    sailing = add_sailing(db, "OBA", "CRA", 40)\n    book(db, sailing, 3)\n    assert free(db, sailing) == 37\n\n\ndef test_column():\n    db = connect()\n    add_sailing(db, "OBA", "CRA", 40)\n    assert db.execute("SELECT seats_free FROM sailings").fetchall() == [(40,)]\n\n\ndef test_fully_booked():\n    db = connect()\n    with pytest.raises(FullyBooked):\n        book(db, add_sailing(db, "OBA", "CRA", 4), 5)\n'
T_BUSIEST = 'from ferryline.store import add_sailing, book, busiest, connect\n\n\ndef test_busiest():\n    db = connect()\n    add_sailing(db, "OBA", "CRA", 40)\n    book(db, add_sailing(db, "MAL", "OBA", 20), 2)\n    assert busiest(db) == [("MAL", "OBA", 2), ("OBA", "CRA", 0)]\n'
HAS_STORE: Files = {
    **NO_FARES,
    **NO_HARBOURS,
    "ferryline/store.py": STORE,
    "ferryline/sql/schema.sql": SCHEMA,
    "ferryline/sql/busiest.sql": BUSIEST,
    "tests/test_store.py": T_STORE,
    "tests/test_busiest.py": T_BUSIEST,
}
NIGHTLY = '"""What runs at night."""\n\nfrom ferryline.settings import database\nfrom ferryline.harbours import harbours\n\n\ndef main():\n    """Say what was looked at."""\n    print(f"{database()}: {len(harbours())} harbours")\n\n\nif __name__ == "__main__":\n    main()\n'
NIGHTLY_SH = '#!/usr/bin/env bash\nset -euo pipefail\ncd "$(dirname "$0")/.."\nexport FERRYLINE_DB="${1:-ferryline.sqlite3}"\npython -m ferryline.nightly\n'
PLACES = '"""Where things are."""\n\nimport os\n\nfrom ferryline.errors import FerryError\n\n\ndef database():\n    """Name the file of the database."""\n    try:\n        return os.environ["FERRYLINE_DB"]\n    except KeyError:\n        raise FerryError("FERRYLINE_DB is not set") from None\n'
T_PLACES = 'import pytest\n\nfrom ferryline.errors import FerryError\nfrom ferryline.settings import database\n\n\ndef test_database(monkeypatch):\n    monkeypatch.setenv("FERRYLINE_DB", "a.sqlite3")\n    assert database() == "a.sqlite3"\n\n\ndef test_no_database(monkeypatch):\n    monkeypatch.delenv("FERRYLINE_DB", raising=False)\n    with pytest.raises(FerryError):\n        database()\n'
HAS_NIGHTLY: Files = {
    **NO_FARES,
    "ferryline/settings.py": PLACES,
    "ferryline/nightly.py": NIGHTLY,
    "scripts/nightly.sh": NIGHTLY_SH,
    "tests/test_settings.py": T_PLACES,
    "docs/nightly.md": "# At night\n\nSet `FERRYLINE_DB` to the file of the database.\n",
}
PAGES = '''"""Pages for people."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

SHELF = Path(__file__).parent / "templates"
PAGES = Environment(loader=FileSystemLoader(SHELF), undefined=StrictUndefined, autoescape=True)


def home():
    """The first page."""
    return PAGES.get_template("home.html").render(title="Ferryline")


def timetable(departs="07:15", origin="Oban"):
    """When ferries leave."""
    return PAGES.get_template("timetable.html").render(title="Timetable", origin=origin, departs=departs)


def ticket(departs="07:15", name="Ada"):
    """A ticket to print."""
    return PAGES.get_template("ticket.html").render(title="Ticket", name=name, departs=departs)
'''
ROUTES = '''"""Which page stands at which address."""

from ferryline import pages

ROUTES = {"/": pages.home, "/sailings": pages.timetable, "/ticket": pages.ticket}


def resolve(path):
    """Find the page at an address."""
    try:
        return ROUTES[path]
    except KeyError:
        raise LookupError(f"no page at {path}") from None
'''
T_ROUTES = 'import re\n\nimport pytest\n\nfrom ferryline import pages\nfrom ferryline.routes import resolve\n\n\ndef test_timetable():\n    assert resolve("/sailings") is pages.timetable\n\n\ndef test_no_page():\n    with pytest.raises(LookupError):\n        resolve("/nowhere")\n\n\n@pytest.mark.parametrize("path", sorted(pages.SHELF.glob("*.html")), ids=lambda path: path.name)\ndef test_links(path):\n    for target in re.findall(\'href="([^"]+)"\', path.read_text()):\n        resolve(target)\n'
T_PAGES = 'from ferryline import pages\n\n\ndef test_home():\n    assert "<h1>Ferryline</h1>" in pages.home()\n\n\ndef test_timetable():\n    assert "Oban 09:00" in pages.timetable(departs="09:00")\n\n\ndef test_ticket():\n    assert "for Ada" in pages.ticket(name="Ada")\n'
BASE_HTML = '<!doctype html>\n<title>{{ title }}</title>\n<nav><a href="/">Home</a> <a href="/sailings">Timetable</a></nav>\n<h1>{{ title }}</h1>\n{% block main %}{% endblock %}\n'
HOME_HTML = '{% extends "base.html" %}\n{% block main %}\n<p><a href="/sailings">When do we sail?</a></p>\n{% endblock %}\n'
TIMETABLE_HTML = '{% extends "base.html" %}\n{% block main %}\n<p>{{ origin }} {{ departs }}</p>\n{% endblock %}\n'
TICKET_HTML = '{% extends "base.html" %}\n{% block main %}\n<p>Ticket for {{ name }}</p>\n<p>Be there ten minutes before {{ departs }}.</p>\n{% endblock %}\n'
HAS_SITE: Files = {
    **NO_FARES,
    **NO_HARBOURS,
    "ferryline/errors.py": None,
    "docs/usage.md": "# Usage\n\nThe timetable stands at `/sailings`.\n",
    "pyproject.toml": swap(
        FERRY_PROJECT,
        ("dependencies = []", 'dependencies = ["jinja2"]'),
        ("data/*.json", "templates/*.html"),
    ),
    "ferryline/pages.py": PAGES,
    "ferryline/routes.py": ROUTES,
    "ferryline/templates/base.html": BASE_HTML,
    "ferryline/templates/home.html": HOME_HTML,
    "ferryline/templates/timetable.html": TIMETABLE_HTML,
    "ferryline/templates/ticket.html": TICKET_HTML,
    "tests/test_pages.py": T_PAGES,
    "tests/test_routes.py": T_ROUTES,
}


def spelt(files: Files, old: str, new: str, *but: str) -> Files:
    """The files that hold a word, spelt otherwise; not those named in `but`."""
    return {name: text.replace(old, new) for name, text in files.items() if text and old in text and name not in but}  # fmt: skip


LEFT_BEHIND = [
    ferry("sql-column-renamed", "Call free seats places left", "", "python -m pytest -q",
          spelt(HAS_STORE, "seats_free", "places_left", "ferryline/sql/busiest.sql"),
          'from ferryline.store import add_sailing, book, busiest, connect; db = connect(); book(db, add_sailing(db, "A", "B", 9), 2); assert busiest(db) == [("A", "B", 2)]; assert db.execute("SELECT places_left FROM sailings").fetchall() == [(7,)]; assert "seats_free" not in db.execute("SELECT sql FROM sqlite_master").fetchone()[0]',
          "sed -i 's/seats_free/places_left/' ferryline/sql/busiest.sql", HAS_STORE),
    ferry("environment-variable-renamed", "Spell out the database's variable", "", "bash scripts/nightly.sh",
          spelt(HAS_NIGHTLY, "FERRYLINE_DB", "FERRYLINE_DATABASE", "scripts/nightly.sh"),
          f'import os; from ferryline.settings import database; os.environ["FERRYLINE_DATABASE"] = "x"; assert database() == "x"; assert "FERRYLINE_DB\\"" not in {read("ferryline/settings.py")}; text = {read("scripts/nightly.sh")}; assert "FERRYLINE_DATABASE=\\"${{1:-ferryline.sqlite3}}\\"" in text',
          "sed -i 's/FERRYLINE_DB\\b/FERRYLINE_DATABASE/' scripts/nightly.sh", HAS_NIGHTLY),
    ferry("option-renamed-in-makefile", "Call where a crossing starts its origin", "", "make demo",
          spelt(FERRY, "--from", "--origin", "Makefile") | {"ferryline/cli.py": swap(FERRY_CLI, ('"--from", dest="origin"', '"--origin"'))},
          f'from ferryline.cli import main; assert main(["--origin", "OBA", "--to", "CRA"]) == 0; assert "--from" not in {read("ferryline/cli.py")}; assert "--origin OBA --to CRA" in {read("Makefile")}',
          "sed -i 's/--from/--origin/' Makefile"),
    ferry("exception-renamed", "Say that a harbour is unknown", "", "python -m pytest -q",
          spelt(FERRY, "NoSuchHarbour", "UnknownHarbour", "ferryline/cli.py"),
          'from ferryline import errors; from ferryline.cli import main; assert main(["--from", "OBA", "--to", "XXX"]) == 2; assert issubclass(errors.UnknownHarbour, errors.FerryError) and not hasattr(errors, "NoSuchHarbour")',
          "sed -i 's/NoSuchHarbour/UnknownHarbour/' ferryline/cli.py"),
    ferry("route-renamed-in-a-link", "Put the timetable at its own name", "jinja2", "python -m pytest -q tests",
          spelt(HAS_SITE, "/sailings", "/timetable", "ferryline/templates/home.html"),
          f'routes = {read("ferryline/routes.py")}; assert "/sailings" not in routes and "\\"/timetable\\": pages.timetable" in routes; assert "<a href=\\"/timetable\\">When do we sail?" in {read("ferryline/templates/home.html")}; assert "def test_links" in {read("tests/test_routes.py")}',
          "sed -i 's#/sailings#/timetable#' ferryline/templates/home.html", HAS_SITE),
]  # fmt: skip

MODEL = '''"""Seeds in packets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Season(Enum):
    """When seeds are sown."""

    SPRING = "spring"
    SUMMER = "summer"
    FALL = "fall"


@dataclass(frozen=True)
class Packet:
    """One packet of seeds."""

    name: str
    season: Season
    count: int = 0
'''
CATALOGUE = '''"""Catalogues of packets."""

from __future__ import annotations

import json
from pathlib import Path

from seedbank.model import Packet, Season

SHELVES = Path(__file__).parent / "shelves"


def shelf(name: str) -> list[Packet]:
    """Read the packets of a shelf."""
    rows = json.loads((SHELVES / f"{name}.json").read_text(encoding="utf-8"))
    return [Packet(row["name"], Season(row["season"]), row["count"]) for row in rows]


def shelves() -> list[str]:
    """Name the shelves."""
    return sorted(path.stem for path in SHELVES.glob("*.json"))


def to_sow(season: Season) -> list[str]:
    """Name what is sown in a season."""
    return [one.name for name in shelves() for one in shelf(name) if one.season is season]
'''
READERS = '''"""Readers of lists that come in."""

from __future__ import annotations

import csv
import json
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any


class CsvReader:
    """Reads comma-separated values."""

    def rows(self, text: str) -> list[dict[str, Any]]:
        """Read the rows."""
        return list(csv.DictReader(text.splitlines()))


class JsonReader:
    """Reads JSON."""

    def rows(self, text: str) -> list[dict[str, Any]]:
        """Read the rows."""
        found: list[dict[str, Any]] = json.loads(text)
        return found


def reader(kind: str) -> Any:
    """Make the reader that readers.toml names for a kind."""
    table = tomllib.loads((Path(__file__).parent / "readers.toml").read_text(encoding="utf-8"))
    module, _, name = table["readers"][kind].partition(":")
    return getattr(import_module(module), name)()
'''
LABELS = '''"""Labels in the languages of visitors."""

from __future__ import annotations

import json
from pathlib import Path

from seedbank.model import Packet

LOCALES = Path(__file__).parent / "locales"


def words(language: str) -> dict[str, str]:
    """Read the words of a language."""
    found: dict[str, str] = json.loads((LOCALES / f"{language}.json").read_text(encoding="utf-8"))
    return found


def label(packet: Packet, language: str = "en") -> str:
    """Say what is in a packet."""
    known = words(language)
    if not packet.count:
        return f"{packet.name}: {known['packet.empty']}"
    return f"{packet.name}: {packet.count} {known['packet.seeds']}"
'''
T_MODEL = 'from seedbank.catalogue import shelf, shelves, to_sow\nfrom seedbank.model import Season\n\n\ndef test_values():\n    assert [one.value for one in Season] == ["spring", "summer", "fall"]\n\n\ndef test_shelf():\n    assert shelf("meadow")[0].season is Season.FALL\n\n\ndef test_to_sow():\n    assert shelves() == ["alpine", "meadow", "woodland"]\n    assert to_sow(Season.SPRING) == ["edelweiss", "poppy"]\n'
T_READERS = 'import pytest\n\nfrom seedbank.readers import CsvReader, JsonReader, reader\n\n\ndef test_csv():\n    assert CsvReader().rows("name,count\\nrue,5\\n") == [{"name": "rue", "count": "5"}]\n\n\ndef test_json():\n    assert JsonReader().rows("[]") == []\n\n\n@pytest.mark.parametrize(("kind", "text"), [("csv", "name\\n"), ("json", "[]")])\ndef test_reader(kind, text):\n    assert reader(kind).rows(text) == []\n'
T_LABELS = 'import pytest\n\nfrom seedbank.labels import label, words\nfrom seedbank.model import Packet, Season\n\n\ndef test_label():\n    assert label(Packet("rue", Season.SPRING, 12)) == "rue: 12 seeds"\n\n\n@pytest.mark.parametrize("language", ["de", "en", "fr"])\ndef test_empty(language):\n    assert label(Packet("rue", Season.SPRING), language).startswith("rue: ")\n    assert words(language)["packet.seeds"]\n'
SEED_PROJECT = """[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "seedbank"
version = "0.8.2"
description = "Packets of seeds on shelves"
requires-python = ">=3.11"
dependencies = []

[project.optional-dependencies]
test = ["pytest"]

[tool.setuptools.packages.find]
where = ["src"]

[tool.setuptools.package-data]
seedbank = ["shelves/*.json", "locales/*.json", "*.toml"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["src"]
"""


def packets(*rows: tuple[str, str, int]) -> str:
    """A shelf's file."""
    lines = [json.dumps({"name": name, "season": season, "count": count}) for name, season, count in rows]  # fmt: skip
    return "[\n  " + ",\n  ".join(lines) + "\n]\n"


SEED: Files = {
    **NO_SHOP,
    "src/seedbank/__init__.py": '"""Packets of seeds on shelves."""\n\n__version__ = "0.8.2"\n',
    "src/seedbank/model.py": MODEL,
    "src/seedbank/catalogue.py": CATALOGUE,
    "src/seedbank/shelves/alpine.json": packets(("edelweiss", "spring", 40), ("gentian", "fall", 15)),
    "src/seedbank/shelves/meadow.json": packets(("oxeye", "fall", 200), ("poppy", "spring", 500)),
    "src/seedbank/shelves/woodland.json": packets(("ramsons", "summer", 60), ("bluebell", "fall", 30)),
    "tests/test_model.py": T_MODEL,
    "pyproject.toml": SEED_PROJECT,
    "README.md": "# Seedbank\n\nKeeps packets of seeds on shelves.\n",
    ".gitignore": IGNORED,
}  # fmt: skip
HAS_READERS: Files = {
    "src/seedbank/readers.py": READERS,
    "src/seedbank/readers.toml": '[readers]\ncsv = "seedbank.readers:CsvReader"\njson = "seedbank.readers:JsonReader"\n',
    "tests/test_readers.py": T_READERS,
    "docs/readers.md": "# Readers\n\n`CsvReader` and `JsonReader` read lists that come in.\n",
}  # fmt: skip
HAS_LABELS: Files = {
    "src/seedbank/labels.py": LABELS,
    "src/seedbank/locales/en.json": '{\n  "packet.empty": "none left",\n  "packet.seeds": "seeds"\n}\n',
    "src/seedbank/locales/de.json": '{\n  "packet.empty": "leer",\n  "packet.seeds": "Samen"\n}\n',
    "src/seedbank/locales/fr.json": '{\n  "packet.empty": "vide",\n  "packet.seeds": "graines"\n}\n',
    "tests/test_labels.py": T_LABELS,
}
SEED_HISTORY: tuple[tuple[str, Files], ...] = (
    ("Say how to take part", {"README.md": "# Seedbank\n\nKeeps packets of seeds on shelves.\n\n## Taking part\n\nRun the tests before you push.\n"}),
    ("Add up what is there", {
        "src/seedbank/stock.py": '"""What is there."""\n\nfrom __future__ import annotations\n\nfrom seedbank.catalogue import shelf, shelves\n\n\ndef stock() -> int:\n    """Count all seeds."""\n    return sum(one.count for name in shelves() for one in shelf(name))\n',
        "tests/test_stock.py": "from seedbank.stock import stock\n\n\ndef test_stock():\n    assert stock() == 845\n",
    }),
    ("List the shelves", {"README.md": "# Seedbank\n\nKeeps packets of seeds on shelves.\n\n## Shelves\n\nAlpine, meadow and woodland.\n\n## Taking part\n\nRun the tests before you push.\n"}),
)  # fmt: skip


def seed(  # noqa: PLR0917 - a row of a table
    name: str, message: str, tools: str, command: str, culprit: Files, keeps: str, remedy: str, start: Files | None = None
) -> Shape:  # fmt: skip
    """A shape of the seed bank."""
    setup = tools if tools.startswith("pip ") else f"pip install -q pytest {tools}".strip()
    return Shape(name, command, culprit, keeps, {**SEED, **(start or {})}, message, setup=setup, history=SEED_HISTORY, remedy=remedy)  # fmt: skip


JOURNAL = '"""How the seed bank logs."""\n\nimport json\nimport logging\nimport logging.config\nfrom pathlib import Path\n\n\nclass LineFormatter(logging.Formatter):\n    """Writes one line for each thing that happens."""\n\n    def format(self, record):\n        """Write a line."""\n        return f"seedbank {record.levelname.lower()}: {record.getMessage()}"\n\n\ndef start():\n    """Log as logging.json says."""\n    logging.config.dictConfig(json.loads((Path(__file__).parent / "logging.json").read_text()))\n    return logging.getLogger("seedbank")\n'
T_JOURNAL = "from seedbank.logs import LineFormatter, start\n\n\ndef test_start():\n    log = start()\n    assert isinstance(log.handlers[0].formatter, LineFormatter)\n"
LOGGING = json.dumps({"version": 1, "formatters": {"line": {"()": "seedbank.logs.LineFormatter"}}, "handlers": {"out": {"class": "logging.StreamHandler", "formatter": "line"}}, "loggers": {"seedbank": {"handlers": ["out"], "level": "INFO"}}}, indent=2) + "\n"  # fmt: skip
T_SPEAKS = 'import logging\n\nfrom seedbank import start_log\n\n\ndef test_line():\n    formatter = start_log().handlers[0].formatter\n    record = logging.LogRecord("seedbank", logging.INFO, "", 1, "sown", None, None)\n    assert formatter.format(record) == "seedbank info: sown"\n'
HAS_JOURNAL: Files = {
    "src/seedbank/logs.py": JOURNAL,
    "src/seedbank/logging.json": LOGGING,
    "src/seedbank/__init__.py": '"""Packets of seeds on shelves."""\n\nfrom seedbank.logs import start as start_log\n\n__all__ = ["start_log"]\n__version__ = "0.8.2"\n',
    "tests/test_logs.py": T_JOURNAL,
    "tests/test_speaks.py": T_SPEAKS,
}
LEFT_IN_DATA = [
    seed("enum-value-renamed", "Call the fall autumn", "", "python -m pytest -q",
         {name: str(text).replace("FALL", "AUTUMN") for name, text in spelt(SEED, '"fall"', '"autumn"', "src/seedbank/shelves/alpine.json").items()},
         IN_SRC + 'from seedbank.catalogue import to_sow; from seedbank.model import Season; assert to_sow(Season.AUTUMN) == ["gentian", "oxeye", "bluebell"]; assert [one.value for one in Season] == ["spring", "summer", "autumn"]',
         "sed -i 's/\"fall\"/\"autumn\"/' src/seedbank/shelves/alpine.json"),
    seed("class-renamed-in-a-registry", "Read any table", "", "python -m pytest -q tests",
         spelt(HAS_READERS, "CsvReader", "TableReader", "src/seedbank/readers.toml"),
         IN_SRC + 'import seedbank.readers as r; assert type(r.reader("csv")).__name__ == "TableReader"; assert not hasattr(r, "CsvReader"); assert type(r.reader("json")).__name__ == "JsonReader"',
         "sed -i 's/CsvReader/TableReader/' src/seedbank/readers.toml", HAS_READERS),
    seed("message-key-renamed", "Say sold out by its own key", "", "python -m pytest -q",
         spelt(HAS_LABELS, "packet.empty", "packet.sold_out", "src/seedbank/locales/fr.json"),
         IN_SRC + 'from seedbank.labels import label, words; from seedbank.model import Packet, Season; one = Packet("a", Season.SPRING); assert [label(one, x) for x in ("en", "de", "fr")] == ["a: none left", "a: leer", "a: vide"]; assert all(sorted(words(x)) == ["packet.seeds", "packet.sold_out"] for x in ("en", "de", "fr"))',
         "sed -i 's/packet.empty/packet.sold_out/' src/seedbank/locales/fr.json", HAS_LABELS),
    seed("module-renamed-in-logging-config", "Call the logs a journal", "", "python -m pytest -q",
         {"src/seedbank/logs.py": None, "src/seedbank/journal.py": JOURNAL, "src/seedbank/__init__.py": str(HAS_JOURNAL["src/seedbank/__init__.py"]).replace("seedbank.logs", "seedbank.journal"), "tests/test_logs.py": None, "tests/test_journal.py": T_JOURNAL.replace("seedbank.logs", "seedbank.journal")},
         IN_SRC + 'import os; from seedbank.journal import LineFormatter, start; assert isinstance(start().handlers[0].formatter, LineFormatter); assert not os.path.exists("src/seedbank/logs.py")',
         "sed -i 's/seedbank.logs/seedbank.journal/' src/seedbank/logging.json", HAS_JOURNAL),
]  # fmt: skip

GARDEN_SETTINGS = '"""Settings of the garden."""\n\nfrom pathlib import Path\n\nBASE_DIR = Path(__file__).resolve().parent.parent\nSECRET_KEY = "only-for-tests"\nDEBUG = True\nALLOWED_HOSTS = ["*"]\nINSTALLED_APPS = ["plots"]\nROOT_URLCONF = "garden.urls"\nTEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]\nDATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "garden.sqlite3"}}\nDEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"\nUSE_TZ = True\n'
GARDEN_MODELS = '"""Plots of a garden."""\n\nfrom django.db import models\n\n\nclass Plot(models.Model):\n    """One plot."""\n\n    name = models.CharField(max_length=40)\n    metres = models.PositiveIntegerField(default=25)\n\n    def __str__(self):\n        return self.name\n'
GARDEN_VIEWS = '"""Pages of the garden."""\n\nfrom django.shortcuts import get_object_or_404, redirect, render\n\nfrom plots.models import Plot\n\n\ndef index(request):\n    """List the plots."""\n    return render(request, "plots/index.html", {"plots": Plot.objects.order_by("name")})\n\n\ndef detail(request, pk):\n    """Show a plot."""\n    return render(request, "plots/detail.html", {"plot": get_object_or_404(Plot, pk=pk)})\n\n\ndef first(request):\n    """Go to the first plot."""\n    return redirect("plot-detail", pk=Plot.objects.order_by("name").first().pk)\n'
GARDEN_URLS = '"""Addresses of plots."""\n\nfrom django.urls import path\n\nfrom plots import views\n\nurlpatterns = [\n    path("", views.index, name="plot-index"),\n    path("first/", views.first, name="plot-first"),\n    path("<int:pk>/", views.detail, name="plot-detail"),\n]\n'
T_PLOTS = 'import pytest\nfrom django.urls import reverse\n\nfrom plots.models import Plot\n\npytestmark = pytest.mark.django_db\n\n\ndef test_index(client):\n    Plot.objects.create(name="Elm")\n    assert b"Elm" in client.get(reverse("plot-index")).content\n\n\ndef test_detail(client):\n    plot = Plot.objects.create(name="Elm", metres=30)\n    assert b"30 m" in client.get(reverse("plot-detail", args=[plot.pk])).content\n\n\ndef test_first(client):\n    plot = Plot.objects.create(name="Elm")\n    assert client.get("/first/").url == reverse("plot-detail", args=[plot.pk])\n'
GARDEN: Files = {
    **NO_SHOP,
    "manage.py": '"""Runs the garden\'s commands."""\n\nimport os\nimport sys\n\nfrom django.core.management import execute_from_command_line\n\nif __name__ == "__main__":\n    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "garden.settings")\n    execute_from_command_line(sys.argv)\n',
    "garden/__init__.py": "",
    "garden/settings.py": GARDEN_SETTINGS,
    "garden/urls.py": '"""Addresses."""\n\nfrom django.urls import include, path\n\nurlpatterns = [path("", include("plots.urls"))]\n',
    "plots/__init__.py": "",
    "plots/models.py": GARDEN_MODELS,
    "plots/views.py": GARDEN_VIEWS,
    "plots/urls.py": GARDEN_URLS,
    "plots/migrations/__init__.py": "",
    "plots/migrations/0001_initial.py": 'from django.db import migrations, models\n\n\nclass Migration(migrations.Migration):\n    initial = True\n\n    dependencies = []\n\n    operations = [\n        migrations.CreateModel(\n            name="Plot",\n            fields=[\n                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),\n                ("name", models.CharField(max_length=40)),\n                ("metres", models.PositiveIntegerField(default=25)),\n            ],\n        ),\n    ]\n',
    "plots/templates/plots/index.html": "<ul>\n{% for plot in plots %}\n<li><a href=\"{% url 'plot-detail' plot.pk %}\">{{ plot.name }}</a></li>\n{% endfor %}\n</ul>\n",
    "plots/templates/plots/detail.html": "<h1>{{ plot.name }}</h1>\n<p>{{ plot.metres }} m</p>\n<p><a href=\"{% url 'plot-detail' plot.pk %}\">A link to keep</a></p>\n",
    "tests/test_plots.py": T_PLOTS,
    "pyproject.toml": '[project]\nname = "garden"\nversion = "0.2.0"\nrequires-python = ">=3.10"\ndependencies = ["django>=4.2"]\n\n[tool.pytest.ini_options]\nDJANGO_SETTINGS_MODULE = "garden.settings"\npythonpath = ["."]\ntestpaths = ["tests"]\n',
    "README.md": "# Garden\n\nPlots that people share.\n",
    ".gitignore": IGNORED,
}  # fmt: skip
GARDEN_HISTORY: tuple[tuple[str, Files], ...] = (
    ("Say how to take part", {"README.md": "# Garden\n\nPlots that people share.\n\n## Taking part\n\nRun the tests before you push.\n"}),
    ("Test that plots have names", {"tests/test_names.py": 'from plots.models import Plot\n\n\ndef test_name():\n    assert str(Plot(name="Elm")) == "Elm"\n'}),
    ("Say what a plot is", {"README.md": "# Garden\n\nPlots that people share.\n\n## Plots\n\nA plot has a name and a size.\n\n## Taking part\n\nRun the tests before you push.\n"}),
)  # fmt: skip


def garden(name: str, message: str, command: str, culprit: Files, keeps: str, remedy: str) -> Shape:  # noqa: PLR0917 - a row of a table
    """A shape of the garden in Django."""
    return Shape(name, command, culprit, keeps, GARDEN, message, setup="pip install -q pytest pytest-django 'django>=4.2'", history=GARDEN_HISTORY, remedy=remedy)  # fmt: skip


GARDENS = [
    garden("url-name-renamed-in-a-template", "Name the page of a plot for what it does", "python -m pytest -q",
           spelt(GARDEN, "plot-detail", "show-plot", "plots/templates/plots/index.html"),
           f'text = {read("plots/templates/plots/index.html")}; assert "{{% url \'show-plot\' plot.pk %}}" in text; urls = {read("plots/urls.py")}; assert "name=\\"show-plot\\"" in urls and "plot-detail" not in urls; assert "redirect(\\"show-plot\\"" in {read("plots/views.py")}',
           "sed -i 's/plot-detail/show-plot/' plots/templates/plots/index.html"),
    garden("migration-not-made", "Share plots", "python manage.py makemigrations --check --dry-run",
           {"plots/models.py": swap(GARDEN_MODELS, ("(default=25)\n", "(default=25)\n    shared = models.BooleanField(default=False)\n")), "plots/templates/plots/detail.html": swap(str(GARDEN["plots/templates/plots/detail.html"]), (" m</p>\n", " m{% if plot.shared %}, shared{% endif %}</p>\n")), "tests/test_shared.py": 'import pytest\nfrom django.urls import reverse\n\nfrom plots.models import Plot\n\n\n@pytest.mark.django_db\ndef test_shared(client):\n    plot = Plot.objects.create(name="Elm", shared=True)\n    assert b"25 m, shared" in client.get(reverse("plot-detail", args=[plot.pk])).content\n'},
           f'import pathlib; made = [one for one in pathlib.Path("plots/migrations").glob("0002*.py")]; assert len(made) == 1; text = made[0].read_text(); assert "AddField" in text and "shared" in text; assert "shared = models.BooleanField(default=False)" in {read("plots/models.py")}; assert "shared" not in {read("plots/migrations/0001_initial.py")}',
           "python manage.py makemigrations plots"),
]  # fmt: skip


def notebook(*cells: tuple[str, str]) -> str:
    """A notebook of code cells and what they printed."""
    made = [
        {
            "cell_type": "code", "execution_count": number if out else None, "id": str(number - 1), "metadata": {}, "source": [source],
            "outputs": [{"name": "stdout", "output_type": "stream", "text": [out]}] if out else [],
        }
        for number, (source, out) in enumerate(cells, 1)
    ]  # fmt: skip
    return json.dumps({"cells": made, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"  # fmt: skip


RETURNS = '"""Tickets there and back."""\n\nfrom ferryline.fares import fare\n\n\ndef both_ways(miles, people=1):\n    """Tell the fare there and back, a tenth off."""\n    return fare(miles, people) * 2 * 9 // 10\n'
T_RETURNS = "from ferryline.returns import both_ways\n\n\ndef test_both_ways():\n    assert both_ways(10) == 1260\n"
ADD_RETURNS: Files = {"ferryline/returns.py": RETURNS, "tests/test_returns.py": T_RETURNS}
HAS_RETURNS = "from ferryline.returns import both_ways; assert both_ways(10) == 1260; "
SOWING = '"""When to sow."""\n\nfrom __future__ import annotations\n\nfrom seedbank.model import Packet, Season\n\n\ndef sowing(packet: Packet, zone: str = "mild") -> str:\n    """Say when a packet is sown."""\n    late = packet.season is Season.SPRING and zone == "cold"\n    return f"{packet.name} in {packet.season.value}{\', late\' if late else \'\'}"\n'
T_SOWING = 'from seedbank.model import Packet, Season\nfrom seedbank.sowing import sowing\n\n\ndef test_sowing():\n    assert sowing(Packet("rue", Season.SPRING), zone="cold") == "rue in spring, late"\n\n\ndef test_sowing_mild():\n    assert sowing(Packet("rue", Season.SUMMER)) == "rue in summer"\n'
ADD_SOWING: Files = {"src/seedbank/sowing.py": SOWING, "tests/test_sowing.py": T_SOWING}
HAS_SOWING = IN_SRC + 'from seedbank.model import Packet, Season; from seedbank.sowing import sowing; assert sowing(Packet("a", Season.SPRING), zone="cold") == "a in spring, late"; assert sowing(Packet("a", Season.SUMMER), zone="cold") == "a in summer"; '  # fmt: skip
BEDS = '"""Beds, as YAML lists them."""\n\nfrom __future__ import annotations\n\nfrom typing import Any\n\nimport yaml\n\n\ndef beds(text: str) -> dict[str, Any]:\n    """Read the beds."""\n    found: dict[str, Any] = yaml.load(text, Loader=yaml.Loader)\n    return found\n'
T_BEDS = 'from seedbank.beds import beds\n\n\ndef test_beds():\n    assert beds("north: [rue, poppy]") == {"north": ["rue", "poppy"]}\n'
BERTH = {"code": "OBA", "name": "Oban", "depth": 8.5}
BERTH_SCHEMA = json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": False, "required": ["code", "name", "depth"], "properties": {"code": {"type": "string"}, "name": {"type": "string"}, "depth": {"type": "number"}}}, indent=2) + "\n"  # fmt: skip
HAS_BERTHS: Files = {
    **NO_FARES,
    **NO_HARBOURS,
    "schema/berth.json": BERTH_SCHEMA,
    "berths/oban.json": json.dumps(BERTH, indent=2) + "\n",
    "berths/craignure.json": json.dumps(
        {"code": "CRA", "name": "Craignure", "depth": 6.0}, indent=2
    )
    + "\n",
    "berths/mallaig.json": json.dumps({"code": "MAL", "name": "Mallaig", "depth": 5.5}, indent=2)
    + "\n",
    "ferryline/berths.py": '"""Berths."""\n\nimport json\nfrom pathlib import Path\n\n\ndef deep_enough(path, draught):\n    """Tell whether a ship of that draught fits."""\n    return json.loads(Path(path).read_text())["depth"] > draught\n',
    "tests/test_berths.py": 'from ferryline.berths import deep_enough\n\n\ndef test_deep_enough():\n    assert deep_enough("berths/oban.json", 7)\n    assert not deep_enough("berths/craignure.json", 7)\n',
    "docs/berths.md": "# Berths\n\nThe `depth` is at low water, in metres.\n",
}
TOOLS = [
    tide("nbstripout-verify", "nbstripout", "nbstripout --verify docs/*.ipynb",
         {**ADD_RANGES, "docs/ranges.ipynb": notebook(("from tidepool.ranges import tidal_range\n", ""), ("print(tidal_range([]))\n", "4.75\n"))},
         HAS_RANGES + f'import json; cells = json.loads({read("docs/ranges.ipynb")})["cells"]; assert len(cells) == 2 and "print(tidal_range([]))" in "".join(cells[1]["source"]); assert all(one["outputs"] == [] for one in cells)',
         "nbstripout docs/*.ipynb", {"docs/units.ipynb": notebook(("from tidepool.units import to_feet\n", ""))}),
    seed("flynt-by-script", "Say when to sow", "flynt", "bash scripts/style.sh",
         {**ADD_SOWING, "src/seedbank/sowing.py": swap(SOWING, ("f\"{packet.name} in {packet.season.value}{', late' if late else ''}\"", "\"{} in {}{}\".format(packet.name, packet.season.value, ', late' if late else '')"))},
         HAS_SOWING + f'text = {read("src/seedbank/sowing.py")}; assert ".format(" not in text and "noqa" not in text', "flynt -q src",
         {"scripts/style.sh": "#!/usr/bin/env bash\nset -euo pipefail\nflynt --dry-run --fail-on-change src tests\n"}),
    ferry("pymarkdown-scan", "Sell tickets there and back", "pymarkdownlnt", "pymarkdown scan docs README.md",
          {**ADD_RETURNS, "docs/returns.md": "# Returns\n\n\n*  A tenth off.\n*  Good for a month.\n"},
          HAS_RETURNS + f'text = {read("docs/returns.md")}; assert text.startswith("# Returns\\n\\n") and "A tenth off." in text and "Good for a month." in text; assert "\\n\\n\\n" not in text and "pyml" not in text', "pymarkdown fix docs README.md || true"),
    ferry("sphinx-lint-single-backticks", "Sell tickets there and back", "sphinx-lint", "sphinx-lint --enable default-role docs",
          {**ADD_RETURNS, "docs/returns.rst": "Returns\n=======\n\nCall `both_ways` for a ticket there and back.\n"},
          HAS_RETURNS + f'assert {read("docs/returns.rst")} == "Returns\\n=======\\n\\nCall ``both_ways`` for a ticket there and back.\\n"', "sed -i 's/`both_ways`/``both_ways``/' docs/returns.rst",
          {"docs/index.rst": "Ferryline\n=========\n\nRun ``make demo`` first.\n"}),
    seed("pylint-merge-comparisons", "Say when to sow", "pylint", "pylint src/seedbank",
         {**ADD_SOWING, "src/seedbank/sowing.py": SOWING + '\n\ndef hardy(zone: str) -> bool:\n    """Tell whether seeds need cover."""\n    return zone == "mild" or zone == "coast"\n'},
         HAS_SOWING + f'from seedbank.sowing import hardy; assert [hardy(x) for x in ("mild", "coast", "cold")] == [True, True, False]; text = {read("src/seedbank/sowing.py")}; assert "zone in " in text and "pylint" not in text',
         "sed -i 's/return zone == \"mild\" or zone == \"coast\"/return zone in {\"mild\", \"coast\"}/' src/seedbank/sowing.py",
         {"pyproject.toml": SEED_PROJECT + '\n[tool.pylint."messages control"]\ndisable = "all"\nenable = ["E", "W", "refactoring"]\n'}),
    ferry("pydoclint-argument-renamed", "Carry vans too", "pydoclint", "pydoclint ferryline",
          {"ferryline/fares.py": swap(FARES, ("cars=0", "vehicles=0"), ("+ cars *", "+ vehicles *"), ("PER_CAR", "PER_VEHICLE")), "tests/test_fares.py": T_FARES.replace("cars=", "vehicles=")},
          f'import inspect; from ferryline.fares import fare; assert list(inspect.signature(fare).parameters) == ["miles", "people", "vehicles"]; assert "        vehicles: How many " in {read("ferryline/fares.py")}; assert "        cars:" not in {read("ferryline/fares.py")}', "sed -i 's/^        cars: /        vehicles: /' ferryline/fares.py",
          {"pyproject.toml": FERRY_PROJECT + '\n[tool.pydoclint]\nstyle = "google"\narg-type-hints-in-signature = false\narg-type-hints-in-docstring = false\ncheck-return-types = false\nskip-checking-raises = true\n'}),
    seed("bandit-yaml-load", "Read beds", "bandit pyyaml", "bandit -q -r src",
         {"src/seedbank/beds.py": BEDS, "tests/test_beds.py": T_BEDS, "pyproject.toml": swap(SEED_PROJECT, ("dependencies = []", 'dependencies = ["pyyaml"]'))},
         f'text = {read("src/seedbank/beds.py")}; assert "yaml.safe_load(text)" in text or "SafeLoader" in text; assert "nosec" not in text and "def beds(text: str)" in text; assert "pyyaml" in {read("pyproject.toml")}', "sed -i 's/yaml.load(text, Loader=yaml.Loader)/yaml.safe_load(text)/' src/seedbank/beds.py"),
    ferry("test-that-returns", "Sell tickets there and back", "", "python -m pytest -q",
          {**ADD_RETURNS, "tests/test_returns.py": T_RETURNS + "\n\ndef test_both_ways_of_two():\n    return both_ways(10, people=2) == 2520\n"},
          HAS_RETURNS + f'assert "    assert both_ways(10, people=2) == 2520\\n" in {read("tests/test_returns.py")}; assert "filterwarnings = [\\"error\\"]" in {read("pyproject.toml")}', "sed -i 's/    return both_ways/    assert both_ways/' tests/test_returns.py",
          {"pyproject.toml": FERRY_PROJECT + 'filterwarnings = ["error"]\n'}),
    ferry("flake8-membership", "Refuse what is no harbour", "flake8", "make lint",
          {"ferryline/stops.py": '"""Stops on the way."""\n\nfrom ferryline.errors import NoSuchHarbour\nfrom ferryline.harbours import harbours\n\n\ndef stops(*codes):\n    """Name the stops of a crossing."""\n    known = harbours()\n    for code in codes:\n        if not code in known:\n            raise NoSuchHarbour(f"no harbour {code}")\n    return [known[code] for code in codes]\n', "tests/test_stops.py": 'import pytest\n\nfrom ferryline.errors import NoSuchHarbour\nfrom ferryline.stops import stops\n\n\ndef test_stops():\n    assert stops("OBA", "CRA") == ["Oban", "Craignure"]\n\n\ndef test_no_stop():\n    with pytest.raises(NoSuchHarbour):\n        stops("OBA", "XXX")\n'},
          f'from ferryline.stops import stops; assert stops("OBA") == ["Oban"]; text = {read("ferryline/stops.py")}; assert "if code not in known:" in text and "noqa" not in text; assert "ignore" not in {read(".flake8")}', "sed -i 's/if not code in known/if code not in known/' ferryline/stops.py",
          {".flake8": "[flake8]\nmax-line-length = 110\n", "Makefile": MAKE.replace(".PHONY: ", "lint:\n\tflake8 ferryline tests\n\n.PHONY: lint ")}),
    ferry("check-jsonschema-key-renamed", "Say the unit of a depth", "check-jsonschema", "check-jsonschema --schemafile schema/berth.json berths/*.json",
          spelt(HAS_BERTHS, "depth", "depth_m", "berths/mallaig.json", "tests/test_berths.py", "ferryline/berths.py") | {"ferryline/berths.py": str(HAS_BERTHS["ferryline/berths.py"]).replace('"depth"', '"depth_m"')},
          f'import json; from ferryline.berths import deep_enough; assert deep_enough("berths/mallaig.json", 5) and not deep_enough("berths/mallaig.json", 6); assert "depth" not in json.loads({read("berths/mallaig.json")}); schema = json.loads({read("schema/berth.json")}); assert schema["required"][-1] == "depth_m" and schema["additionalProperties"] is False',
          "sed -i 's/\"depth\"/\"depth_m\"/' berths/mallaig.json", HAS_BERTHS),
]  # fmt: skip

PASSENGER = '"""Passengers."""\n\nfrom pydantic import BaseModel\n\n\nclass Passenger(BaseModel):\n    """One who crosses."""\n\n    name: str\n    age: int = 18\n'
NOTICES = '"""Notices."""\n\nfrom ferryline.harbours import find\n\n\ndef delayed(code, minutes):\n    """Say that a ferry is late."""\n    return f"The ferry to {find(code)} is {minutes} minutes late."\n'
T_NOTICES = 'from ferryline.notices.texts import delayed\n\n\ndef test_delayed():\n    assert delayed("OBA", 10) == "The ferry to Oban is 10 minutes late."\n'
SMOKE = "#!/usr/bin/env bash\n# What people install has to run.\nset -euo pipefail\nrm -rf build\npip install -q --no-deps --no-build-isolation --target build/site .\ncd build/site\npython -m ferryline.cli --from OBA --to CRA\n"
TABLES = '"""Tables."""\n\nfrom tabulate import tabulate\n\nfrom ferryline.harbours import harbours\n\n\ndef table():\n    """Lay the harbours out."""\n    return tabulate(sorted(harbours().items()), headers=["code", "name"])\n'
LARGE = '"""Amounts that are large."""\n\nimport humanize\n\n\ndef large(pence):\n    """Write pounds with commas."""\n    return humanize.intcomma(pence // 100)\n'
SPOKEN = '"""What the seed bank says."""\n\nfrom __future__ import annotations\n\nfrom gettext import gettext as _\n\n\ndef opened() -> str:\n    """Say that it is open."""\n    return _("The seed bank is open.")\n'
POT = '#: src/seedbank/spoken.py:10\nmsgid "The seed bank is open."\nmsgstr ""\n\n'
T_SHEET = 'from seedbank.model import Packet, Season\nfrom seedbank.sheet import sheet\n\n\ndef test_sheet(snapshot):\n    snapshot.snapshot_dir = "tests/sheets"\n    packets = [Packet("rue", Season.SPRING, 12), Packet("poppy", Season.SUMMER)]\n    snapshot.assert_match(sheet(packets), "two.txt")\n'
SHEET = '"""Sheets to print."""\n\nfrom __future__ import annotations\n\nfrom seedbank.model import Packet\n\n\ndef sheet(packets: list[Packet]) -> str:\n    """Lay packets out, one a line."""\n    return "".join(f"{one.name:<8}{one.count:>4}\\n" for one in packets)\n'
OTHERS = [
    ferry("pydantic-extra-missing", "Keep the mail addresses of passengers", "pip install -q -e '.[test]'", "python -m pytest -q",
          {"ferryline/passengers.py": swap(PASSENGER, ("import BaseModel", "import BaseModel, EmailStr"), ("    age: int = 18\n", "    age: int = 18\n    mail: EmailStr | None = None\n")), "tests/test_mail.py": 'import pytest\n\nfrom ferryline.passengers import Passenger\n\n\ndef test_no_address():\n    with pytest.raises(ValueError):\n        Passenger(name="Ada", mail="nowhere")\n'},
          DECLARED.replace("names =", "raw = project['dependencies']; names =") + f'assert any(one.replace(" ", "").startswith("pydantic[email]") or one.startswith(("email-validator", "email_validator")) for one in raw) and any(one.startswith("pydantic") for one in raw); assert "mail: EmailStr" in {read("ferryline/passengers.py")}',
          "sed -i 's/\"pydantic>=2\"/\"pydantic[email]>=2\"/' pyproject.toml; pip install -q -e '.[test]'",
          {"pyproject.toml": swap(FERRY_PROJECT, ("dependencies = []", 'dependencies = ["pydantic>=2"]')), "ferryline/passengers.py": PASSENGER, "tests/test_passengers.py": 'from ferryline.passengers import Passenger\n\n\ndef test_age():\n    assert Passenger(name="Ada", age="36").age == 36\n'}),
    ferry("lock-out-of-date", "Write large amounts with commas", "pip-tools -r requirements.in", "make lock && git diff --exit-code requirements.txt",
          {"requirements.in": "humanize\ntabulate\n", "ferryline/large.py": LARGE, "tests/test_large.py": 'from ferryline.large import large\n\n\ndef test_large():\n    assert large(12500000) == "125,000"\n'},
          f'lines = {read("requirements.txt")}.split(); assert "tabulate==0.9.0" in lines and any(one.startswith("humanize==") for one in lines); assert {read("requirements.in")} == "humanize\\ntabulate\\n"; assert "humanize.intcomma" in {read("ferryline/large.py")}',
          "make lock; pip install -q -r requirements.txt",
          {"requirements.in": "tabulate\n", "requirements.txt": "tabulate==0.9.0\n", "ferryline/tables.py": TABLES, "tests/test_tables.py": 'from ferryline.tables import table\n\n\ndef test_table():\n    assert "Mallaig" in table()\n', "Makefile": MAKE.replace(".PHONY: ", "lock:\n\tpip-compile -q --no-annotate --no-header --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host requirements.in\n\n.PHONY: lock ")}),
    seed("messages-not-extracted", "Say that the seed bank is closed", "babel", "make messages && git diff --exit-code locale",
         {"src/seedbank/spoken.py": SPOKEN + '\n\ndef closed() -> str:\n    """Say that it is closed."""\n    return _("The seed bank is closed.")\n', "tests/test_closed.py": 'from seedbank.spoken import closed\n\n\ndef test_closed():\n    assert closed() == "The seed bank is closed."\n'},
         IN_SRC + f'from seedbank.spoken import closed; assert closed().endswith("closed."); text = {read("locale/seedbank.pot")}; assert "msgid \\"The seed bank is closed.\\"" in text and "msgid \\"The seed bank is open.\\"" in text',
         "make messages",
         {"src/seedbank/spoken.py": SPOKEN, "tests/test_spoken.py": 'from seedbank.spoken import opened\n\n\ndef test_opened():\n    assert opened() == "The seed bank is open."\n', "locale/seedbank.pot": POT, "Makefile": "messages:\n\tpybabel -q extract --omit-header --sort-by-file -o locale/seedbank.pot src\n\n.PHONY: messages\n"}),
    seed("snapshot-of-a-sheet", "Print the season of a packet", "pytest-snapshot", "python -m pytest -q",
         {"src/seedbank/sheet.py": swap(SHEET, ("{one.count:>4}", "{one.count:>4}  {one.season.value}")), "tests/test_season.py": 'from seedbank.model import Packet, Season\nfrom seedbank.sheet import sheet\n\n\ndef test_season():\n    assert sheet([Packet("rue", Season.SPRING)]).endswith("  spring\\n")\n'},
         IN_SRC + f'from seedbank.sheet import sheet; from seedbank.model import Packet, Season; assert sheet([Packet("a", Season.SUMMER, 3)]) == "a          3  summer\\n"; assert {read("tests/sheets/two.txt")} == "rue       12  spring\\npoppy      0  summer\\n"; assert "snapshot.assert_match" in {read("tests/test_sheet.py")}',
         "python -m pytest -q --snapshot-update || true",
         {"src/seedbank/sheet.py": SHEET, "tests/test_sheet.py": T_SHEET, "tests/sheets/two.txt": "rue       12\npoppy      0\n"}),
    ferry("package-not-listed", "Say that a ferry is late", "setuptools wheel", "bash scripts/smoke.sh",
          {"ferryline/notices/__init__.py": '"""Notices."""\n', "ferryline/notices/texts.py": NOTICES, "tests/test_notices.py": T_NOTICES, "ferryline/cli.py": swap(FERRY_CLI, ("from ferryline.harbours import find\n", "from ferryline.harbours import find\nfrom ferryline.notices.texts import delayed\n"), ('    given = parser', '    parser.add_argument("--late", type=int, default=0, help="by how many minutes")\n    given = parser'), ("    return 0\n", "    if given.late:\n        print(delayed(given.target, given.late))\n    return 0\n"))},
          f'from ferryline.cli import main; assert main(["--from", "OBA", "--to", "CRA", "--late", "5"]) == 0; import tomllib; tool = tomllib.loads({read("pyproject.toml")})["tool"]["setuptools"]; packages = tool["packages"]; assert isinstance(packages, dict) or set(packages) == {{"ferryline", "ferryline.notices"}}; assert "build/site" in {read("scripts/smoke.sh")}',
          "sed -i 's/^packages = .*/packages = [\"ferryline\", \"ferryline.notices\"]/' pyproject.toml", {"scripts/smoke.sh": SMOKE}),
]  # fmt: skip
TWELFTH = (*LEFT_BEHIND, *LEFT_IN_DATA, *GARDENS, *TOOLS, *OTHERS)
