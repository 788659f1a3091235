"""Thirty small projects of many domains, each left red by a feature in a mechanical way.

Half are mended by a documented option of the tool that complains, half by the edit that its message names. `remedy` is
a reference: the command is green after it, and `keeps` holds.
"""

from __future__ import annotations

from benchmarks.mechanical_eleventh_cases import NO_SHOP, Shape, swap

PYTEST = "pip install -q pytest==9.2.0"
PROJECT = '[tool.pytest.ini_options]\npythonpath = ["."]\n'


# -- options of tools ------------------------------------------------------------------------------------------------

TICKETS = '''"""Tickets of a cinema kiosk."""

PRICES = {"adult": 1200, "child": 700}


def price(kind: str, seats: int = 1) -> int:
    """The price of some seats, in cents."""
    return PRICES[kind] * seats
'''
TICKETS_TEST = """from kiosk.tickets import price


def test_price():
    assert price("adult", 2) == 2400
"""
ROBOT = """*** Settings ***
Library     ../kiosk/tickets.py


*** Test Cases ***
Buy One Seat
    ${cents}    Price    adult
    Should Be Equal As Integers    ${cents}    1200
"""
robot_suite = Shape(
    name="acceptance-suite-layout",
    command="make lint",
    start={
        **NO_SHOP,
        "kiosk/__init__.py": "",
        "kiosk/tickets.py": TICKETS,
        "tests/test_tickets.py": TICKETS_TEST,
        "acceptance/tickets.robot": ROBOT,
        "pyproject.toml": PROJECT,
        "Makefile": (
            ".PHONY: lint test\n\nlint:\n\tpython -m compileall -q kiosk\n\trobotidy --check acceptance\n\n"
            "test:\n\tpython -m pytest -q\n"
        ),
        ".gitignore": "__pycache__/\n",
    },
    message="Refund tickets",
    culprit={
        "kiosk/tickets.py": TICKETS
        + '''

def refund(kind: str, seats: int = 1, fee: int = 100) -> int:
    """What a guest gets back, less a fee for each seat."""
    return max(price(kind, seats) - fee * seats, 0)
''',
        "tests/test_tickets.py": TICKETS_TEST.replace("import price", "import price, refund")
        + """

def test_refund():
    assert refund("child", 2) == 1200
""",
        "acceptance/tickets.robot": ROBOT
        + """Refund A Seat
  [Tags]   refund
  ${cents}=  Refund  child
  Should Be Equal As Integers  ${cents}  600
""",
    },
    keeps="""import pathlib
from kiosk.tickets import price, refund
assert refund("child", 2) == 1200 and price("adult") == 1200
suite = pathlib.Path("acceptance/tickets.robot").read_text()
assert "Refund A Seat" in suite and "Buy One Seat" in suite and "600" in suite and "robocop: off" not in suite
assert "robotidy --check acceptance" in pathlib.Path("Makefile").read_text()
""",
    setup=f"{PYTEST} robotframework==7.5 robotframework-tidy==4.18.0",
    remedy="robotidy --overwrite acceptance",
)

MEALS = '''"""Reports of a canteen."""

import sqlite3
from pathlib import Path

QUERIES = Path(__file__).parent.parent / "queries"


def rows(db: sqlite3.Connection, report: str) -> list[tuple]:
    """Run a stored report."""
    return db.execute((QUERIES / f"{report}.sql").read_text()).fetchall()
'''
MEALS_TEST = """import sqlite3

import pytest

from canteen.reports import rows


@pytest.fixture
def db():
    made = sqlite3.connect(":memory:")
    made.execute("create table meals (day text, dish text, sold integer)")
    made.executemany("insert into meals values (?, ?, ?)", [("mon", "soup", 4), ("mon", "stew", 9), ("tue", "soup", 6)])
    return made


def test_by_day(db):
    assert rows(db, "by_day") == [("mon", 13), ("tue", 6)]
"""
sql_reports = Shape(
    name="stored-query-format",
    command="nox -s queries",
    start={
        **NO_SHOP,
        "canteen/__init__.py": "",
        "canteen/reports.py": MEALS,
        "queries/by_day.sql": "select day, sum(sold) as sold from meals group by day order by day\n",
        "tests/test_reports.py": MEALS_TEST,
        "pyproject.toml": PROJECT + "\n[tool.sqlfmt]\nline_length = 88\n",
        "noxfile.py": """import nox

nox.options.default_venv_backend = "none"


@nox.session
def tests(session):
    session.run("python", "-m", "pytest", "-q")


@nox.session
def queries(session):
    session.run("sqlfmt", "--check", "queries")
""",
        ".gitignore": "__pycache__/\n.nox/\n",
    },
    message="Report the best dishes",
    culprit={
        "queries/best_dishes.sql": """SELECT dish, SUM(sold) AS sold
FROM meals
WHERE sold > 0
GROUP BY dish
HAVING SUM(sold) >= 5
ORDER BY sold DESC, dish
""",
        "tests/test_reports.py": MEALS_TEST
        + """

def test_best_dishes(db):
    assert rows(db, "best_dishes") == [("soup", 10), ("stew", 9)]
""",
    },
    keeps="""import pathlib, sqlite3
from canteen.reports import rows
db = sqlite3.connect(":memory:")
db.execute("create table meals (day text, dish text, sold integer)")
db.executemany("insert into meals values (?, ?, ?)", [("mon", "soup", 4), ("mon", "pie", 2), ("tue", "soup", 6)])
assert rows(db, "best_dishes") == [("soup", 10)] and rows(db, "by_day") == [("mon", 6), ("tue", 6)]
assert "fmt: off" not in pathlib.Path("queries/best_dishes.sql").read_text()
assert '"--check", "queries"' in pathlib.Path("noxfile.py").read_text()
assert "exclude" not in pathlib.Path("pyproject.toml").read_text()
""",
    setup=f"{PYTEST} nox==2026.10.20 shandy-sqlfmt==0.32.0",
    remedy="sqlfmt queries",
)

RING_H = """#ifndef RING_H
#define RING_H

#define RING_SIZE 4

struct ring {
    int items[RING_SIZE];
    int head;
    int count;
};

int ring_push(struct ring *ring, int value);
int ring_pop(struct ring *ring, int *value);

#endif
"""
RING_C = """#include "ring.h"

int ring_push(struct ring *ring, int value)
{
    if (ring->count == RING_SIZE)
        return 0;
    ring->items[(ring->head + ring->count++) % RING_SIZE] = value;
    return 1;
}

int ring_pop(struct ring *ring, int *value)
{
    if (ring->count == 0)
        return 0;
    *value = ring->items[ring->head];
    ring->head = (ring->head + 1) % RING_SIZE;
    ring->count--;
    return 1;
}
"""
RING_TEST = """#include <assert.h>

#include "ring.h"

int main(void)
{
    struct ring ring = {0};
    int value = 0;
    assert(ring_push(&ring, 5) && ring_push(&ring, 6));
    assert(ring_pop(&ring, &value) && value == 5);
    return 0;
}
"""
MESON = """project('ring', 'c', version: '0.3.0', default_options: ['warning_level=2'])

ring = static_library('ring', 'ring.c')
ring_test = executable('ring_test', 'ring_test.c', link_with: ring)
test('ring', ring_test)
"""
QUICK = """#!/bin/sh
# Build and run the tests without meson, for machines that lack ninja.
set -e
out=$(mktemp -d)
for one in *_test.c; do
    cc -Wall -o "$out/test" "$one" $(ls *.c | grep -v _test.c)
    "$out/test"
done
rm -r "$out"
"""
meson_build = Shape(
    name="build-description-layout",
    command="sh scripts/check.sh",
    start={
        **NO_SHOP,
        "ring.h": RING_H,
        "ring.c": RING_C,
        "ring_test.c": RING_TEST,
        "meson.build": MESON,
        "scripts/quick_test.sh": QUICK,
        "scripts/check.sh": "#!/bin/sh\nset -eu\nsh scripts/quick_test.sh\nmeson format --check-diff meson.build\n",
    },
    message="Look at the oldest item",
    culprit={
        "ring.h": swap(
            RING_H,
            ("\n#endif\n", "\nint ring_peek(const struct ring *ring, int fallback);\n\n#endif\n"),
        ),
        "peek.c": '#include "ring.h"\n\nint ring_peek(const struct ring *ring, int fallback)\n'
        "{\n    return ring->count ? ring->items[ring->head] : fallback;\n}\n",
        "peek_test.c": '#include <assert.h>\n\n#include "ring.h"\n\nint main(void)\n{\n    struct ring ring = {0};\n'
        "    assert(ring_peek(&ring, -1) == -1);\n    ring_push(&ring, 8);\n"
        "    assert(ring_peek(&ring, -1) == 8);\n    return 0;\n}\n",
        "meson.build": swap(MESON, ("'ring.c')", "'ring.c','peek.c' )"))
        + "peek_test=executable( 'peek_test', 'peek_test.c', link_with : ring )\ntest('peek',peek_test)\n",
    },
    keeps="""import pathlib, subprocess
build = pathlib.Path("meson.build").read_text()
assert "'peek.c'" in build and "peek_test.c" in build and "'ring.c'" in build and "version: '0.3.0'" in build
assert "ring_peek" in pathlib.Path("ring.h").read_text()
assert "meson format --check-diff meson.build" in pathlib.Path("scripts/check.sh").read_text()
subprocess.run(["sh", "scripts/quick_test.sh"], check=True)
""",
    setup="pip install -q meson==1.12.1",
    remedy="meson format --inplace meson.build",
)

SEMVER = '''"""Compare the versions of plug-ins."""


def parse(text: str) -> tuple[int, ...]:
    """Split a version."""
    return tuple(int(part) for part in text.split("."))
'''
SEMVER_TEST = """from plugver import parse


def test_parse():
    assert parse("1.20.3") == (1, 20, 3)
"""
CI_FLOW = """name: ci
on:
  push:
    branches: [main]
permissions: {}
concurrency:
  group: ci-${{ github.ref }}
  cancel-in-progress: true
jobs:
  test:
    name: test
    runs-on: ubuntu-24.04
    permissions:
      contents: read # to check out
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
        with:
          persist-credentials: false
      - run: python -m pytest -q
"""
workflow_audit = Shape(
    name="workflow-token-audit",
    command="make audit",
    start={
        **NO_SHOP,
        "plugver.py": SEMVER,
        "tests/test_plugver.py": SEMVER_TEST,
        "pyproject.toml": PROJECT,
        ".github/workflows/ci.yml": CI_FLOW,
        "Makefile": "include make/audit.mk\n\ntest:\n\tpython -m pytest -q\n",
        "make/audit.mk": "audit:\n\tzizmor --offline --no-progress .github/workflows\n",
        ".gitignore": "__pycache__/\n",
    },
    message="Test every night against new plug-ins",
    culprit={
        "plugver.py": SEMVER
        + '''

def newer(one: str, other: str) -> bool:
    """Tell whether the first is newer."""
    return parse(one) > parse(other)
''',
        "tests/test_plugver.py": SEMVER_TEST.replace("import parse", "import newer, parse")
        + '\n\ndef test_newer():\n    assert newer("1.10.0", "1.9.9")\n',
        ".github/workflows/nightly.yml": """name: nightly
on:
  schedule:
    - cron: "17 3 * * *"
permissions: {}
concurrency:
  group: nightly
  cancel-in-progress: true
jobs:
  nightly:
    name: nightly
    runs-on: ubuntu-24.04
    permissions:
      contents: read # to check out
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
      - run: python -m pytest -q
""",
    },
    keeps="""import pathlib
from plugver import newer
assert newer("1.10.0", "1.9.9")
flow = pathlib.Path(".github/workflows/nightly.yml").read_text()
assert "17 3 * * *" in flow and "actions/checkout@11bd719" in flow and "pytest -q" in flow
assert "persist-credentials: false" in flow and "zizmor:" not in flow
assert "persist-credentials: false" in pathlib.Path(".github/workflows/ci.yml").read_text()
assert "zizmor --offline --no-progress .github/workflows" in pathlib.Path("make/audit.mk").read_text()
assert not pathlib.Path("zizmor.yml").exists() and not pathlib.Path(".github/zizmor.yml").exists()
""",
    setup=f"{PYTEST} zizmor==1.32.0",
    remedy="zizmor --offline --fix=all .github/workflows",
)

SETUP = """from setuptools import setup

setup(
    name="seedbank",
    version="0.4.1",
    description="Names of seeds",
    packages=["seedbank"],
    package_data={"seedbank": ["*.csv"]},
    include_package_data=True,
)
"""
SEEDS = '''"""Names of seeds."""

import csv
from pathlib import Path

HERE = Path(__file__).parent


def names() -> dict[str, str]:
    """The common name of each kind."""
    with (HERE / "names.csv").open(encoding="utf-8", newline="") as file:
        return dict(csv.reader(file))
'''
SEEDS_TEST = """from seedbank import names


def test_names():
    assert names()["pisum sativum"] == "pea"
"""
manifest = Shape(
    name="source-archive-list",
    command="tox -q -e archive",
    start={
        **NO_SHOP,
        "setup.py": SETUP,
        "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n\n'
        + PROJECT,
        "seedbank/__init__.py": SEEDS,
        "seedbank/names.csv": "pisum sativum,pea\nzea mays,maize\n",
        "tests/test_seedbank.py": SEEDS_TEST,
        "MANIFEST.in": "include tox.ini\ninclude *.txt\nrecursive-include tests *.py\n",
        "tox.ini": """[tox]
skipsdist = true

[testenv]
skip_install = true

[testenv:archive]
allowlist_externals = check-manifest
commands = check-manifest --no-build-isolation
""",
        ".gitignore": "__pycache__/\n*.egg-info/\nbuild/\ndist/\n.tox/\n",
    },
    message="Give the months in which to sow",
    culprit={
        "seedbank/__init__.py": swap(SEEDS, ("import csv\n", "import csv\nimport json\n"))
        + '''

def sowing(kind: str) -> list[int]:
    """The months in which to sow a kind."""
    return json.loads((HERE / "calendar" / "sowing.json").read_text(encoding="utf-8"))[kind]
''',
        "seedbank/calendar/sowing.json": '{\n  "pisum sativum": [3, 4, 5],\n  "zea mays": [5]\n}\n',
        "setup.py": swap(SETUP, ('["*.csv"]', '["*.csv", "calendar/*.json"]')),
        "docs/sowing.rst": "Sowing\n======\n\nMonths are numbers, from one.\n",
        "tests/test_seedbank.py": SEEDS_TEST.replace("import names", "import names, sowing")
        + '\n\ndef test_sowing():\n    assert sowing("zea mays") == [5]\n',
    },
    keeps="""import pathlib
from seedbank import names, sowing
assert sowing("pisum sativum") == [3, 4, 5] and names()["zea mays"] == "maize"
manifest = pathlib.Path("MANIFEST.in").read_text()
assert "include tox.ini" in manifest and "docs" in manifest and "exclude" not in manifest and "prune" not in manifest
assert pathlib.Path("docs/sowing.rst").exists()
assert "ignore" not in pathlib.Path("tox.ini").read_text() + pathlib.Path("pyproject.toml").read_text()
""",
    setup=f"{PYTEST} tox==4.67.15 check-manifest==0.51 setuptools==65.5.0 wheel==0.48.0",
    remedy="check-manifest --no-build-isolation --update || true",
)

DEPTH = '''"""Tell how deep a lake is at its buoys."""

import argparse

BUOYS = {"north": 4.25, "weir": 11.5}


def main() -> None:
    parser = argparse.ArgumentParser(prog="lakes")
    parser.add_argument("buoy", nargs="?")
    given = parser.parse_args()
    for name, depth in BUOYS.items():
        if given.buoy in (None, name):
            print(f"{name}: {depth:.2f} m")


if __name__ == "__main__":
    main()
'''
DEPTH_T = """Every buoy:

  $ python "$TESTDIR/../lakes/depths.py"
  north: 4.25 m
  weir: 11.50 m

One buoy:

  $ python "$TESTDIR/../lakes/depths.py" weir
  weir: 11.50 m
"""
DEPTH_TEST = """from lakes.depths import BUOYS


def test_buoys():
    assert BUOYS["weir"] == 11.5
"""
transcripts = Shape(
    name="shell-transcripts",
    command="python scripts/ci.py",
    start={
        **NO_SHOP,
        "lakes/__init__.py": "",
        "lakes/depths.py": DEPTH,
        "transcripts/depths.t": DEPTH_T,
        "tests/test_depths.py": DEPTH_TEST,
        "pyproject.toml": PROJECT,
        "scripts/ci.py": '''"""What the build server runs."""

import subprocess
import sys

STEPS = (
    [sys.executable, "-m", "pytest", "-q"],
    ["prysk", "transcripts/depths.t"],
)

for step in STEPS:
    print("+", *step, flush=True)
    if code := subprocess.run(step).returncode:
        sys.exit(code)
''',
        ".gitignore": "__pycache__/\n*.err\n.pytest_cache/\n",
    },
    message="Give depths in feet as well",
    culprit={
        "lakes/depths.py": swap(
            DEPTH,
            (
                "\n\ndef main",
                '\n\ndef feet(metres: float) -> float:\n    """Convert metres."""\n    return metres / 0.3048\n\n\ndef main',
            ),
            ("{depth:.2f} m", "{depth:.2f} m ({feet(depth):.1f} ft)"),
        ),
        "tests/test_depths.py": DEPTH_TEST.replace("import BUOYS", "import BUOYS, feet")
        + "\n\ndef test_feet():\n    assert round(feet(4.25), 1) == 13.9\n",
    },
    keeps="""import pathlib
from lakes.depths import BUOYS, feet
assert round(feet(4.25), 1) == 13.9 and BUOYS == {"north": 4.25, "weir": 11.5}
text = pathlib.Path("transcripts/depths.t").read_text()
assert "north: 4.25 m (13.9 ft)" in text and text.count("weir: 11.50 m (37.7 ft)") == 2
assert text.count("$ python") == 2 and "Every buoy:" in text
assert "transcripts/depths.t" in pathlib.Path("scripts/ci.py").read_text()
""",
    setup=f"{PYTEST} prysk==0.20.0",
    remedy="prysk -i -y transcripts/depths.t || true",
)

SCORE = '''"""Print a chess game."""

from dataclasses import dataclass


@dataclass
class Game:
    """Two players and their moves."""

    white: str
    black: str
    moves: list[str]


def sheet(game: Game) -> str:
    """Lay a game out as a score sheet."""
    lines = [f"{game.white} - {game.black}"]
    for number, start in enumerate(range(0, len(game.moves), 2), 1):
        lines.append(f"{number:>3}. " + " ".join(game.moves[start : start + 2]))
    return "\\n".join(lines) + "\\n"
'''
SCORE_TEST = """from chesslog import Game, sheet


def test_sheet(snapshot):
    assert snapshot("sheet.txt") == sheet(Game("Anna", "Ben", ["e4", "e5", "Nf3"]))
"""
snapshots = Shape(
    name="score-sheet-snapshot",
    command="tox -q",
    start={
        **NO_SHOP,
        "chesslog/__init__.py": SCORE,
        "tests/test_sheet.py": SCORE_TEST,
        "tests/snapshots/sheet__sheet__sheet.txt": "Anna - Ben\n  1. e4 e5\n  2. Nf3\n",
        "pyproject.toml": PROJECT,
        "tox.ini": "[tox]\nskipsdist = true\nenvlist = py\n\n[testenv]\nskip_install = true\n"
        "allowlist_externals = pytest\ncommands = pytest -q {posargs:--insta update-none}\n",
        ".gitignore": "__pycache__/\n.tox/\n.pytest_cache/\n",
    },
    message="Print the result and the number of moves",
    culprit={
        "chesslog/__init__.py": swap(
            SCORE,
            ("    moves: list[str]\n", '    moves: list[str]\n    result: str = "*"\n'),
            (
                '    return "\\n".join',
                '    lines.append(f"{game.result} after {(len(game.moves) + 1) // 2} moves")\n    return "\\n".join',
            ),
        ),
        "tests/test_sheet.py": SCORE_TEST
        + '\n\ndef test_result():\n    assert sheet(Game("A", "B", ["f3"], "1-0")).endswith("1-0 after 1 moves\\n")\n',
    },
    keeps="""import pathlib
from chesslog import Game, sheet
assert sheet(Game("A", "B", ["f3"], "1-0")) == "A - B\\n  1. f3\\n1-0 after 1 moves\\n"
assert pathlib.Path("tests/snapshots/sheet__sheet__sheet.txt").read_text() == "Anna - Ben\\n  1. e4 e5\\n  2. Nf3\\n* after 2 moves\\n"
assert "snapshot(" in pathlib.Path("tests/test_sheet.py").read_text()
assert "--insta update-none" in pathlib.Path("tox.ini").read_text()
""",
    setup=f"{PYTEST} pytest-insta==0.4.1 tox==4.67.15",
    remedy="pytest -q --insta update",
)

BEES = '''"""Tables of an apiary."""

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """The base of all tables."""


class Hive(Base):
    """A hive."""

    __tablename__ = "hive"

    id: Mapped[int] = mapped_column(primary_key=True)
    label: Mapped[str] = mapped_column(String(40))
'''
BEES_TEST = """from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from apiary.tables import Base, Hive


def session():
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    return Session(engine)


def test_hive():
    with session() as db:
        db.add(Hive(label="oak"))
        db.commit()
        assert db.query(Hive).one().label == "oak"
"""
migration = Shape(
    name="apiary-revision-check",
    command="python -m apiary.dbcheck",
    start={
        **NO_SHOP,
        "apiary/tables.py": BEES,
        "apiary/dbcheck.py": '''"""See that the revisions make the tables that the code has."""

import subprocess
import sys
from pathlib import Path

Path("apiary.db").unlink(missing_ok=True)
for words in (["upgrade", "head"], ["check"]):
    if code := subprocess.run(["alembic", *words]).returncode:
        sys.exit(code)
''',
        "alembic.ini": "[alembic]\nscript_location = revisions\nprepend_sys_path = .\nsqlalchemy.url = sqlite:///apiary.db\n",
        "revisions/env.py": """from alembic import context
from sqlalchemy import create_engine

from apiary.tables import Base

engine = create_engine(context.config.get_main_option("sqlalchemy.url"))
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()
""",
        "revisions/script.py.mako": '''"""${message}."""

from alembic import op
import sqlalchemy as sa

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
''',
        "revisions/versions/0001_hives.py": '''"""Hives."""

from alembic import op
import sqlalchemy as sa

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "hive",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("label", sa.String(length=40), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("hive")
''',
        "tests/test_tables.py": BEES_TEST,
        ".gitignore": "__pycache__/\n*.db\n.pytest_cache/\n",
    },
    message="Note harvests",
    culprit={
        "apiary/tables.py": BEES
        + '''

class Harvest(Base):
    """Honey taken from a hive."""

    __tablename__ = "harvest"

    id: Mapped[int] = mapped_column(primary_key=True)
    hive_id: Mapped[int] = mapped_column(ForeignKey("hive.id"))
    grams: Mapped[int]
''',
        "tests/test_tables.py": BEES_TEST.replace("Base, Hive", "Base, Harvest, Hive")
        + """

def test_harvest():
    with session() as db:
        db.add(Harvest(hive_id=1, grams=1500))
        db.commit()
        assert db.query(Harvest).one().grams == 1500
""",
    },
    keeps="""import pathlib, sqlite3, subprocess
from apiary.tables import Base, Harvest
assert {"hive", "harvest"} == set(Base.metadata.tables)
pathlib.Path("apiary.db").unlink(missing_ok=True)
subprocess.run(["alembic", "upgrade", "head"], check=True)
names = {row[1] for row in sqlite3.connect("apiary.db").execute("pragma table_info(harvest)")}
assert names == {"id", "hive_id", "grams"}, names
assert pathlib.Path("revisions/versions/0001_hives.py").exists()
assert '["check"]' in pathlib.Path("apiary/dbcheck.py").read_text()
""",
    setup=f"{PYTEST} alembic==1.20.1 sqlalchemy==2.1.9",
    remedy="rm -f apiary.db; alembic upgrade head && alembic revision --autogenerate -m 'Note harvests'",
)

GUIDE = """# Loom guide

<!--TOC-->

- [Loom guide](#loom-guide)
  - [Warping](#warping)
  - [Weaving](#weaving)

<!--TOC-->

## Warping

Use `loom.ends` to know how many threads you need.

## Weaving

Beat evenly.
"""
LOOM = '''"""Sums for weavers."""


def ends(width_cm: float, per_cm: int) -> int:
    """How many threads a warp has."""
    return round(width_cm * per_cm)
'''
LOOM_TEST = """from loom import ends


def test_ends():
    assert ends(50, 6) == 300
"""
contents_list = Shape(
    name="guide-contents-list",
    command="make docs",
    start={
        **NO_SHOP,
        "loom.py": LOOM,
        "tests/test_loom.py": LOOM_TEST,
        "docs/guide.md": GUIDE,
        "pyproject.toml": PROJECT,
        "Makefile": "docs:\n\tmd_toc --diff github docs/guide.md\n\ntest:\n\tpython -m pytest -q\n\n.PHONY: docs test\n",
        ".gitignore": "__pycache__/\n",
    },
    message="Reckon the yarn of a warp",
    culprit={
        "loom.py": LOOM
        + '''

def yarn(width_cm: float, per_cm: int, length_m: float, waste_m: float = 0.6) -> float:
    """How many metres of yarn a warp takes."""
    return ends(width_cm, per_cm) * (length_m + waste_m)
''',
        "tests/test_loom.py": LOOM_TEST.replace("import ends", "import ends, yarn")
        + "\n\ndef test_yarn():\n    assert yarn(10, 5, 1.4) == 100\n",
        "docs/guide.md": swap(
            GUIDE,
            (
                "## Weaving\n",
                "## Reckoning yarn\n\nSee `loom.yarn`.\n\n### Waste on the loom\n\nCount 60 cm.\n\n## Weaving\n",
            ),
        ),
    },
    keeps="""import pathlib
from loom import ends, yarn
assert yarn(10, 5, 1.4) == 100 and ends(50, 6) == 300
guide = pathlib.Path("docs/guide.md").read_text()
assert "## Reckoning yarn" in guide and "### Waste on the loom" in guide and "Beat evenly." in guide
assert "(#reckoning-yarn)" in guide and "(#waste-on-the-loom)" in guide and guide.count("<!--TOC-->") == 2
assert "md_toc --diff github docs/guide.md" in pathlib.Path("Makefile").read_text()
""",
    setup=f"{PYTEST} md-toc==9.1.0",
    remedy="md_toc --in-place github docs/guide.md",
)

FERRY = '''"""What a ferry's board says."""

from gettext import NullTranslations


def board(trans: NullTranslations, minutes: int) -> str:
    """Tell how long until the ferry leaves."""
    _ = trans.gettext
    if minutes <= 0:
        return _("The ferry has left")
    return _("Leaves in {minutes} minutes").format(minutes=minutes)
'''
FERRY_TEST = """from gettext import NullTranslations

from ferry.board import board


def test_board():
    assert board(NullTranslations(), 4) == "Leaves in 4 minutes"
"""
PO = """
msgid ""
msgstr ""
"Project-Id-Version: ferry 1.0\\n"
"Report-Msgid-Bugs-To: EMAIL@ADDRESS\\n"
"POT-Creation-Date: 2025-02-03 10:00+0000\\n"
"PO-Revision-Date: 2025-02-03 10:10+0000\\n"
"Last-Translator: Kari <kari@example.org>\\n"
"Language: nb\\n"
"Language-Team: nb <nb@example.org>\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Generated-By: Babel 2.19.0\\n"

msgid "The ferry has left"
msgstr "Ferja har gått"

#, python-brace-format
msgid "Leaves in {minutes} minutes"
msgstr "Går om {minutes} minutter"

"""
catalogue = Shape(
    name="ferry-message-catalogue",
    command="sh tools/messages.sh --check",
    start={
        **NO_SHOP,
        "ferry/__init__.py": "",
        "ferry/board.py": FERRY,
        "ferry/locale/nb/LC_MESSAGES/messages.po": PO,
        "tests/test_board.py": FERRY_TEST,
        "pyproject.toml": PROJECT,
        "tools/messages.sh": """#!/bin/sh
# Collect the messages, and bring the catalogues up to date (or, with --check, see whether they are).
set -eu
pot=$(mktemp)
trap 'rm -f "$pot"' EXIT
pybabel -q extract --no-location --project=ferry --version=1.0 -o "$pot" ferry
pybabel update --ignore-pot-creation-date -N "$@" -i "$pot" -d ferry/locale
""",
        ".gitignore": "__pycache__/\n*.mo\n",
    },
    message="Tell of delays",
    culprit={
        "ferry/board.py": swap(
            FERRY,
            ("minutes: int)", "minutes: int, late: int = 0)"),
            (
                '    return _("Leaves',
                '    if late:\n        return _("Late by {late} minutes").format(late=late)\n    return _("Leaves',
            ),
        ),
        "tests/test_board.py": FERRY_TEST
        + '\n\ndef test_late():\n    assert board(NullTranslations(), 4, late=9) == "Late by 9 minutes"\n',
    },
    keeps="""import pathlib
from gettext import NullTranslations
from ferry.board import board
assert board(NullTranslations(), 4, late=9) == "Late by 9 minutes"
po = pathlib.Path("ferry/locale/nb/LC_MESSAGES/messages.po").read_text()
assert 'msgid "Late by {late} minutes"' in po and "Ferja har gått" in po and "Går om {minutes} minutter" in po
assert '-N "$@" -i' in pathlib.Path("tools/messages.sh").read_text()
""",
    setup=f"{PYTEST} babel==2.19.0",
    remedy="sh tools/messages.sh",
)

FLASH = """// Copyright (c) The Flashcards authors.
// Licensed under the MIT licence.

/** Put cards in boxes, as Leitner did. */
export function nextBox(box, known) {
  return known ? Math.min(box + 1, 5) : 1;
}
"""
FLASH_TEST = """import assert from "node:assert/strict";
import test from "node:test";

import { nextBox } from "../src/boxes.js";

test("a known card moves up", () => {
  assert.equal(nextBox(2, true), 3);
});
"""
headers = Shape(
    name="source-header-text",
    command="npm run -s headers",
    start={
        **NO_SHOP,
        "src/boxes.js": FLASH,
        "test/boxes.test.js": FLASH_TEST,
        "HEADER.txt": "Copyright (c) The Flashcards authors.\nLicensed under the MIT licence.\n",
        "headers.json": """{
  "license": "HEADER.txt",
  "ignore": ["*.json", "*.txt", ".gitignore", "test/**"],
  "licenseFormats": {
    "js": { "eachLine": { "prepend": "// " } }
  }
}
""",
        "package.json": """{
  "name": "flashcards",
  "version": "1.1.0",
  "private": true,
  "type": "module",
  "scripts": {
    "test": "node --test test/",
    "headers": "license-check-and-add check -f headers.json"
  }
}
""",
        ".gitignore": "node_modules/\n",
    },
    message="Tell when a card is due",
    culprit={
        "src/due.js": """const DAYS = [0, 1, 2, 4, 8, 16];

/** The day on which a card of a box is due. */
export function due(box, today) {
  return today + DAYS[box];
}
""",
        "test/due.test.js": """import assert from "node:assert/strict";
import test from "node:test";

import { due } from "../src/due.js";

test("a card of box three waits four days", () => {
  assert.equal(due(3, 10), 14);
});
""",
    },
    keeps="""import json, pathlib, subprocess
due = pathlib.Path("src/due.js").read_text()
assert due.count("The Flashcards authors.") == 1 and "export function due" in due
assert json.loads(pathlib.Path("headers.json").read_text())["ignore"] == ["*.json", "*.txt", ".gitignore", "test/**"]
assert "license-check-and-add check -f headers.json" in pathlib.Path("package.json").read_text()
assert pathlib.Path("HEADER.txt").read_text().startswith("Copyright (c) The Flashcards authors.")
subprocess.run(["node", "--test", "test/"], check=True)
""",
    setup="npm install --no-save --no-audit --no-fund --no-package-lock license-check-and-add@4.0.5",
    remedy="npx license-check-and-add add -f headers.json",
)

TRAILS = '''"""Marks of hiking trails."""

GRADES = {"white": 1, "red": 2, "black": 3}


def hardest(marks: list[str]) -> str:
    """The hardest mark on a route."""
    return max(marks, key=GRADES.__getitem__)
'''
TRAILS_TEST = """from trails import hardest


def test_hardest():
    assert hardest(["white", "black", "red"]) == "black"
"""
TRAILS_DOC = """# Trails

How routes are marked.

## Grades

- white: easy
- red: steep
- black: only with a rope
"""
hook_docs = Shape(
    name="trail-notes-form",
    command="bash hooks/pre-push",
    start={
        **NO_SHOP,
        "trails.py": TRAILS,
        "tests/test_trails.py": TRAILS_TEST,
        "docs/trails.md": TRAILS_DOC,
        "pyproject.toml": PROJECT + "\n[tool.pymarkdown]\nplugins.md013.line_length = 120\n",
        "hooks/pre-push": "#!/bin/bash\n# Linked into .git/hooks, and run by the build server.\n"
        "set -e\npython -m pytest -q\npymarkdown scan docs\n",
        ".gitignore": "__pycache__/\n.pytest_cache/\n",
    },
    message="Reckon walking times",
    culprit={
        "trails.py": TRAILS
        + '''

def minutes(kilometres: float, climb: int) -> int:
    """How long a walk takes by Naismith's rule."""
    return round(kilometres * 12 + climb / 10)
''',
        "tests/test_trails.py": TRAILS_TEST.replace("import hardest", "import hardest, minutes")
        + "\n\ndef test_minutes():\n    assert minutes(5, 300) == 90\n",
        "docs/trails.md": TRAILS_DOC
        + "\n\n##  Walking times\n\nNaismith's rule:   \n\n* 12 minutes a kilometre\n* 10 minutes for 100 m of climb\n",
    },
    keeps="""import pathlib
from trails import hardest, minutes
assert minutes(5, 300) == 90 and hardest(["white", "red"]) == "red"
doc = pathlib.Path("docs/trails.md").read_text()
assert "## Walking times" in doc and "12 minutes a kilometre" in doc and "10 minutes for 100 m of climb" in doc
assert "- red: steep" in doc and "pyml disable" not in doc
assert "pymarkdown scan docs" in pathlib.Path("hooks/pre-push").read_text()
assert "enabled" not in pathlib.Path("pyproject.toml").read_text()
""",
    setup=f"{PYTEST} pymarkdownlnt==0.9.41",
    remedy="pymarkdown fix docs || true",
)

CLOCK = '''"""The only place that asks what time it is."""

from datetime import datetime, timezone

frozen: datetime | None = None


def now() -> datetime:
    """The time, or that at which a test stopped the clock."""
    return frozen or datetime.now(timezone.utc)
'''
PARKING = '''"""Tickets of a car park."""

from datetime import datetime

from carpark import clock


def enter() -> datetime:
    """Note when a car comes in."""
    return clock.now()
'''
PARKING_TEST = """from datetime import datetime, timezone

from carpark import clock, gate


def test_enter():
    clock.frozen = datetime(2024, 5, 1, 9, tzinfo=timezone.utc)
    assert gate.enter().hour == 9
"""
codemod = Shape(
    name="clock-rule-rewrite",
    command="make rules",
    start={
        **NO_SHOP,
        "carpark/clock.py": CLOCK,
        "carpark/gate.py": PARKING,
        "tests/test_gate.py": PARKING_TEST,
        "pyproject.toml": PROJECT,
        "sgconfig.yml": "ruleDirs:\n  - rules\n",
        "rules/clock.yml": """id: ask-our-clock
language: python
severity: error
message: Ask carpark.clock, so that tests can stop the clock.
files:
  - carpark/**
ignores:
  - carpark/clock.py
rule:
  pattern: datetime.now($$$)
fix: clock.now()
""",
        "Makefile": "rules:\n\tast-grep scan\n\ntest:\n\tpython -m pytest -q\n\n.PHONY: rules test\n",
        ".gitignore": "__pycache__/\n",
    },
    message="Charge for the time parked",
    culprit={
        "carpark/gate.py": swap(PARKING, ("import datetime\n", "import datetime, timezone\n"))
        + '''

def fee(entered: datetime, cents_an_hour: int = 250) -> int:
    """What a driver owes, for each hour begun."""
    parked = datetime.now(timezone.utc) - entered
    return -(-int(parked.total_seconds()) // 3600) * cents_an_hour
''',
        "tests/test_gate.py": PARKING_TEST
        + """

def test_fee():
    clock.frozen = None
    assert gate.fee(clock.now()) in (0, 250)
""",
    },
    keeps="""import pathlib
from datetime import datetime, timezone
from carpark import clock, gate
clock.frozen = datetime(2024, 5, 1, 9, 30, tzinfo=timezone.utc)
assert gate.fee(datetime(2024, 5, 1, 8, tzinfo=timezone.utc)) == 500
rule = pathlib.Path("rules/clock.yml").read_text()
assert "severity: error" in rule and rule.count("carpark/") == 2
assert "ast-grep-ignore" not in pathlib.Path("carpark/gate.py").read_text()
assert "ast-grep scan" in pathlib.Path("Makefile").read_text()
""",
    setup=f"{PYTEST} ast-grep-cli==0.51.1",
    remedy="ast-grep scan --update-all",
)

TIDY_BOOK = """{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "a1",
   "metadata": {},
   "outputs": [],
   "source": [
    "from rainfall import mean\\n",
    "mean([2, 4])"
   ]
  }
 ],
 "metadata": {
  "language_info": {
   "name": "python"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"""
RUN_BOOK = swap(
    TIDY_BOOK,
    ('"execution_count": null', '"execution_count": 7'),
    ('"a1"', '"b1"'),
    (
        '"outputs": []',
        """"outputs": [
    {
     "data": {
      "text/plain": [
       "3"
      ]
     },
     "execution_count": 7,
     "metadata": {},
     "output_type": "execute_result"
    }
   ]""",
    ),
    ("import mean", "import wet_days"),
    ("mean([2, 4])", "wet_days([0, 2.5, 1, 4])"),
)
RAIN = '''"""Rain gauges."""


def mean(millimetres: list[float]) -> float:
    """The mean rainfall."""
    return sum(millimetres) / len(millimetres) if millimetres else 0.0
'''
RAIN_TEST = """from rainfall import mean


def test_mean():
    assert mean([2, 4]) == 3
"""
notebook = Shape(
    name="notebook-outputs",
    command="nox -s books",
    start={
        **NO_SHOP,
        "rainfall.py": RAIN,
        "tests/test_rainfall.py": RAIN_TEST,
        "books/mean.ipynb": TIDY_BOOK,
        "pyproject.toml": PROJECT,
        "noxfile.py": """import nox


@nox.session(python=False)
def books(session):
    \"\"\"See that no notebook carries what a run left in it.\"\"\"
    session.run("nb-clean", "check", "books", *session.posargs)
""",
        ".gitignore": "__pycache__/\n.nox/\n",
    },
    message="Count wet days",
    culprit={
        "rainfall.py": RAIN
        + '''

def wet_days(millimetres: list[float], least: float = 1.0) -> int:
    """How many days had rain worth the name."""
    return sum(one >= least for one in millimetres)
''',
        "tests/test_rainfall.py": RAIN_TEST.replace("import mean", "import mean, wet_days")
        + "\n\ndef test_wet_days():\n    assert wet_days([0, 2.5, 1, 4]) == 3\n",
        "books/wet_days.ipynb": RUN_BOOK,
    },
    keeps="""import json, pathlib
from rainfall import mean, wet_days
assert wet_days([0, 2.5, 1, 4]) == 3 and mean([2, 4]) == 3
book = json.loads(pathlib.Path("books/wet_days.ipynb").read_text())
assert "wet_days([0, 2.5, 1, 4])" in "".join(book["cells"][0]["source"]) and not book["cells"][0]["outputs"]
assert 'session.run("nb-clean", "check", "books", *session.posargs)' in pathlib.Path("noxfile.py").read_text()
assert pathlib.Path("books/mean.ipynb").exists()
""",
    setup=f"{PYTEST} nox==2026.10.20 nb-clean==5.0.0",
    remedy="nb-clean clean books",
)

RADIO = '''"""Stations that a radio knows."""

import tomllib
from pathlib import Path

STATIONS = tomllib.loads((Path(__file__).parent / "stations.toml").read_text(encoding="utf-8"))


def tune(name: str) -> float:
    """The frequency of a station, in MHz."""
    return STATIONS[name]["mhz"]
'''
RADIO_TEST = """from radio import tune


def test_tune():
    assert tune("coast") == 91.4
"""
STATIONS = """# One table for each station.

[bergen]
mhz = 89.1
name = "Bergen"

[coast]
mhz = 91.4
name = "Coast"
"""
data_order = Shape(
    name="station-table-order",
    command="python tools/checks.py",
    start={
        **NO_SHOP,
        "radio/__init__.py": RADIO,
        "radio/stations.toml": STATIONS,
        "tests/test_radio.py": RADIO_TEST,
        "pyproject.toml": PROJECT
        + "\n[tool.tomlsort]\nall = true\nspaces_before_inline_comment = 2\n",
        "tools/checks.py": '"""Checks of form."""\n\nimport subprocess\nimport sys\n\n'
        'sys.exit(subprocess.run(["toml-sort", "--check", "radio/stations.toml"]).returncode)\n',
        ".gitignore": "__pycache__/\n",
    },
    message="Add two stations and a list of those that stream",
    culprit={
        "radio/__init__.py": RADIO
        + '''

def streams() -> list[str]:
    """The stations that can be heard over the net."""
    return sorted(name for name, one in STATIONS.items() if "url" in one)
''',
        "radio/stations.toml": STATIONS
        + '\n[attic]\nname = "Attic"\nurl = "https://attic.example/live"\nmhz = 103.9\n'
        + '\n[bay]\nname="Bay"\nmhz = 99.5\nurl = "https://bay.example/live"  # not at night\n',
        "tests/test_radio.py": RADIO_TEST.replace("import tune", "import streams, tune")
        + '\n\ndef test_streams():\n    assert streams() == ["attic", "bay"]\n',
    },
    keeps="""import pathlib
from radio import STATIONS, streams, tune
assert streams() == ["attic", "bay"] and tune("bay") == 99.5 and tune("coast") == 91.4 and len(STATIONS) == 4
text = pathlib.Path("radio/stations.toml").read_text()
assert "# not at night" in text and "# One table for each station." in text
assert '"toml-sort", "--check", "radio/stations.toml"' in pathlib.Path("tools/checks.py").read_text()
assert "all = true" in pathlib.Path("pyproject.toml").read_text()
""",
    setup=f"{PYTEST} toml-sort==0.25.0",
    remedy="toml-sort --in-place radio/stations.toml",
)

# -- edits that a message names --------------------------------------------------------------------------------------

RECIPE_MAKE = """PYTHON = python

.PHONY: test check

check: test

test:
\t$(PYTHON) -m pytest -q
"""
OVEN = '''"""Heat of ovens."""


def celsius(fahrenheit: float) -> int:
    """Convert the heat that a recipe gives."""
    return round((fahrenheit - 32) / 1.8)
'''
OVEN_TEST = """from oven import celsius


def test_celsius():
    assert celsius(350) == 177
"""
make_tab = Shape(
    name="build-recipe-tab",
    command="make check",
    start={
        **NO_SHOP,
        "oven.py": OVEN,
        "tests/test_oven.py": OVEN_TEST,
        "pyproject.toml": PROJECT,
        "Makefile": RECIPE_MAKE,
        ".gitignore": "__pycache__/\n",
    },
    message="Read gas marks, and print a table of them",
    culprit={
        "oven.py": OVEN
        + '''

def gas_mark(mark: int) -> int:
    """The heat of a gas mark, in Celsius."""
    return celsius(250 + 25 * mark)


if __name__ == "__main__":
    for one in range(1, 10):
        print(one, gas_mark(one))
''',
        "tests/test_oven.py": OVEN_TEST.replace("import celsius", "import celsius, gas_mark")
        + "\n\ndef test_gas_mark():\n    assert gas_mark(4) == 177\n",
        "Makefile": swap(RECIPE_MAKE, ("test check", "test check table"))
        + "\ntable: oven.py\n        @$(PYTHON) oven.py\n",
    },
    keeps="""import pathlib, subprocess
from oven import gas_mark
assert gas_mark(4) == 177
text = pathlib.Path("Makefile").read_text()
assert "pytest -q" in text and "check: test" in text
out = subprocess.run(["make", "-s", "table"], capture_output=True, text=True, check=True).stdout
assert "4 177" in out, out
""",
    setup=PYTEST,
    remedy=r"sed -i 's/^        @/\t@/' Makefile",
)

SLUG_C = """#include "slug.h"

void spaces_to_dashes(char *text)
{
    for (; *text; text++)
        if (*text == ' ')
            *text = '-';
}
"""
SLUG_TEST = """#include <assert.h>
#include <string.h>

#include "slug.h"

int main(void)
{
    char title[] = "a b c";
    spaces_to_dashes(title);
    assert(strcmp(title, "a-b-c") == 0);
    return 0;
}
"""
SLUG_H = "#ifndef SLUG_H\n#define SLUG_H\n\nvoid spaces_to_dashes(char *text);\n\n#endif\n"
c_header = Shape(
    name="missing-system-header",
    command="make",
    start={
        **NO_SHOP,
        "slug.h": SLUG_H,
        "slug.c": SLUG_C,
        "slug_test.c": SLUG_TEST,
        "Makefile": "CFLAGS = -std=c11 -Wall -Wextra -Werror\n\ntest: slug_test\n\t./slug_test\n\n"
        "slug_test: slug.o slug_test.o\n\nslug.o slug_test.o: slug.h\n\nclean:\n\trm -f *.o slug_test\n\n.PHONY: test clean\n",
        ".gitignore": "*.o\nslug_test\n",
    },
    message="Write slugs in small letters",
    culprit={
        "slug.h": swap(SLUG_H, ("\n#endif", "\nvoid lower(char *text);\n\n#endif")),
        "slug.c": SLUG_C + "\nvoid lower(char *text)\n{\n    for (; *text; text++)\n"
        "        *text = (char)tolower((unsigned char)*text);\n}\n",
        "slug_test.c": swap(
            SLUG_TEST,
            (
                "    return 0;",
                '    char loud[] = "ABc";\n    lower(loud);\n    assert(strcmp(loud, "abc") == 0);\n    return 0;',
            ),
        ),
    },
    keeps="""import pathlib, subprocess
code = pathlib.Path("slug.c").read_text()
assert "void lower(" in code and "tolower" in code and "spaces_to_dashes" in code
assert "lower(loud)" in pathlib.Path("slug_test.c").read_text()
assert "-Wall -Wextra -Werror" in pathlib.Path("Makefile").read_text()
subprocess.run(["make", "clean", "test"], check=True)
""",
    setup="cc --version",
    remedy="sed -i '1i #include <ctype.h>\\n' slug.c",
)

TALLY_PM = """package Tally;

use strict;
use warnings;

sub votes {
    my @ballots = @_;
    my %count;
    $count{$_}++ for @ballots;
    return \\%count;
}

1;
"""
TALLY_T = """use strict;
use warnings;

use Test::More;

use Tally;

is_deeply(Tally::votes('ann', 'bo', 'ann'), { ann => 2, bo => 1 }, 'votes are counted');

done_testing();
"""
perl_global = Shape(
    name="undeclared-perl-variable",
    command="prove -Ilib t",
    start={
        **NO_SHOP,
        "lib/Tally.pm": TALLY_PM,
        "t/tally.t": TALLY_T,
        "README": "Tally - count the votes of a club\n",
    },
    message="Name the winner",
    culprit={
        "lib/Tally.pm": swap(
            TALLY_PM,
            (
                "\n1;",
                """
sub winner {
    my $count = votes(@_);
    @order = sort { $count->{$b} <=> $count->{$a} || $a cmp $b } keys %$count;
    return $order[0];
}

1;""",
            ),
        ),
        "t/tally.t": swap(
            TALLY_T,
            (
                "done_testing",
                "is(Tally::winner('bo', 'ann', 'bo'), 'bo', 'most votes win');\n\ndone_testing",
            ),
        ),
    },
    keeps="""import pathlib, subprocess
code = pathlib.Path("lib/Tally.pm").read_text()
assert "use strict;" in code and "no strict" not in code
run = ["perl", "-Ilib", "-MTally", "-e", "print Tally::winner('z', 'z', 'y'), Tally::votes('q')->{q}"]
assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "z1"
assert "Tally::winner" in pathlib.Path("t/tally.t").read_text()
""",
    setup="perl --version",
    remedy="sed -i 's/^    @order = /    my @order = /' lib/Tally.pm",
)

TIDE_TABLE = """import { readFileSync } from "node:fs";

const ports = JSON.parse(readFileSync(new URL("./ports.json", import.meta.url), "utf8"));

/** Minutes by which high water at a port follows that of the standard port. */
export function lag(port) {
  return ports[port] ?? 0;
}
"""
TIDE_TEST = """import assert from "node:assert/strict";
import test from "node:test";

import { lag } from "../lib/ports.js";

test("a port lags", () => {
  assert.equal(lag("dover"), 11);
});
"""
json_module = Shape(
    name="json-module-attribute",
    command="npm test --silent",
    start={
        **NO_SHOP,
        "lib/ports.js": TIDE_TABLE,
        "lib/ports.json": '{ "dover": 11, "deal": 26 }\n',
        "test/ports.test.js": TIDE_TEST,
        "package.json": '{\n  "name": "high-water",\n  "version": "0.9.0",\n  "private": true,\n  "type": "module",\n'
        '  "scripts": {\n    "test": "node --test test/"\n  }\n}\n',
    },
    message="Correct heights for air pressure",
    culprit={
        "lib/pressure.js": """import constants from "./pressure.json";

/** Metres by which the sea stands higher at an air pressure. */
export function surge(hectopascals) {
  return (constants.normal - hectopascals) * constants.metres;
}
""",
        "lib/pressure.json": '{ "normal": 1013, "metres": 0.01 }\n',
        "test/pressure.test.js": """import assert from "node:assert/strict";
import test from "node:test";

import { surge } from "../lib/pressure.js";

test("low pressure lifts the sea", () => {
  assert.equal(surge(1003), 0.1);
});
""",
    },
    keeps="""import pathlib, subprocess
assert "node --test test/" in pathlib.Path("package.json").read_text()
assert "surge(1003), 0.1" in pathlib.Path("test/pressure.test.js").read_text()
code = 'const { surge } = await import("./lib/pressure.js"); console.log(surge(1003), surge(1013));'
run = subprocess.run(["node", "--no-warnings", "--input-type=module", "-e", code], capture_output=True, text=True, check=True)
assert run.stdout.split() == ["0.1", "0"], run.stdout
assert '"normal": 1013' in pathlib.Path("lib/pressure.json").read_text()
""",
    setup="node --version",
    remedy="""sed -i 's|"./pressure.json";|"./pressure.json" with { type: "json" };|' lib/pressure.js""",
)

PLOT_TS = """/** A point on a map, in metres. */
export interface Point {
  readonly east: number;
  readonly north: number;
}

export function distance(one: Point, other: Point): number {
  return Math.hypot(one.east - other.east, one.north - other.north);
}
"""
type_import = Shape(
    name="type-only-import",
    command="npm run --silent build",
    start={
        **NO_SHOP,
        "src/point.ts": PLOT_TS,
        "test/point.test.mjs": """import assert from "node:assert/strict";
import test from "node:test";

import { distance } from "../dist/point.js";

test("distance", () => {
  assert.equal(distance({ east: 0, north: 0 }, { east: 3, north: 4 }), 5);
});
""",
        "tsconfig.json": """{
  "compilerOptions": {
    "target": "es2022",
    "module": "nodenext",
    "strict": true,
    "verbatimModuleSyntax": true,
    "outDir": "dist",
    "rootDir": "src"
  },
  "include": ["src"]
}
""",
        "package.json": '{\n  "name": "plots",\n  "version": "2.0.1",\n  "private": true,\n  "type": "module",\n'
        '  "scripts": {\n    "build": "tsc -p .",\n    "test": "tsc -p . && node --test test/"\n  }\n}\n',
        ".gitignore": "node_modules/\ndist/\n",
    },
    message="Measure fields",
    culprit={
        "src/field.ts": """import { distance, Point } from "./point.js";

/** How long the fence around a field is. */
export function fence(corners: readonly Point[]): number {
  return corners.reduce((sum, one, at) => sum + distance(one, corners[(at + 1) % corners.length]!), 0);
}
""",
        "test/field.test.mjs": """import assert from "node:assert/strict";
import test from "node:test";

import { fence } from "../dist/field.js";

test("the fence of a triangle", () => {
  assert.equal(fence([{ east: 0, north: 0 }, { east: 3, north: 0 }, { east: 0, north: 4 }]), 12);
});
""",
    },
    keeps="""import json, pathlib, subprocess
text = pathlib.Path("src/field.ts").read_text()
assert "export function fence" in text and "ts-ignore" not in text and "ts-expect-error" not in text and "any" not in text
options = json.loads(pathlib.Path("tsconfig.json").read_text())["compilerOptions"]
assert options["verbatimModuleSyntax"] is True and options["strict"] is True
subprocess.run(["npm", "test", "--silent"], check=True)
""",
    setup="npm install --no-save --no-audit --no-fund --no-package-lock typescript@5.6.3",
    remedy="sed -i 's/{ distance, Point }/{ distance, type Point }/' src/field.ts",
)

DISK = '''"""Name the sizes of backups."""


def total(sizes: list[int]) -> int:
    """All bytes."""
    return sum(sizes)
'''
DISK_TEST = """from backups import total


def test_total():
    assert total([10, 20]) == 30
"""
requirement_pin = Shape(
    name="requirement-operator",
    command="make deps",
    start={
        **NO_SHOP,
        "backups.py": DISK,
        "tests/test_backups.py": DISK_TEST,
        "pyproject.toml": PROJECT,
        "requirements.txt": "# What the server needs.\npytest==9.2.0\npackaging>=23\n",
        "Makefile": "deps:\n\tpython -m pip install --quiet --no-index --dry-run -r requirements.txt\n\n"
        "test:\n\tpython -m pytest -q\n\n.PHONY: deps test\n",
        ".gitignore": "__pycache__/\n",
    },
    message="Say sizes in words",
    culprit={
        "backups.py": swap(
            DISK, ('backups."""\n', 'backups."""\n\nfrom humanize import naturalsize\n')
        )
        + '''

def spoken(sizes: list[int]) -> str:
    """All bytes, for people."""
    return naturalsize(total(sizes))
''',
        "tests/test_backups.py": DISK_TEST.replace("import total", "import spoken, total")
        + '\n\ndef test_spoken():\n    assert spoken([2_000_000, 500_000]) == "2.5 MB"\n',
        "requirements.txt": "# What the server needs.\npytest==9.2.0\npackaging>=23\nhumanize=4.17.0\n",
    },
    keeps="""import pathlib
from backups import spoken
assert spoken([2_000_000, 500_000]) == "2.5 MB"
lines = pathlib.Path("requirements.txt").read_text().split("\\n")
assert "humanize==4.17.0" in lines and "pytest==9.2.0" in lines and "packaging>=23" in lines
assert "--dry-run -r requirements.txt" in pathlib.Path("Makefile").read_text()
""",
    setup=f"{PYTEST} packaging==26.4 humanize==4.17.0",
    remedy="sed -i 's/^humanize=4/humanize==4/' requirements.txt",
)

INK = '''"""Mix inks."""


def mix(one: tuple[int, int, int], other: tuple[int, int, int]) -> tuple[int, ...]:
    """The colour half way between two."""
    return tuple((a + b) // 2 for a, b in zip(one, other))
'''
INK_TEST = """from inkwell import mix


def test_mix():
    assert mix((0, 0, 0), (10, 20, 30)) == (5, 10, 15)
"""
INK_PROJECT = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "inkwell"
version = "0.2.0"
description = "Mix inks"
requires-python = ">=3.11"
"""
flat_layout = Shape(
    name="two-top-level-folders",
    command="python -m build --wheel --no-isolation",
    start={
        **NO_SHOP,
        "inkwell/__init__.py": INK,
        "tests/test_inkwell.py": INK_TEST,
        "pyproject.toml": INK_PROJECT + "\n" + PROJECT,
        ".gitignore": "__pycache__/\n*.egg-info/\nbuild/\ndist/\n",
    },
    message="Read palettes from files",
    culprit={
        "inkwell/palette.py": '''"""Palettes in files."""

import json
from pathlib import Path


def load(path: Path) -> dict[str, tuple[int, int, int]]:
    """Read the colours of a palette."""
    return {name: tuple(rgb) for name, rgb in json.loads(path.read_text(encoding="utf-8")).items()}
''',
        "palettes/heron.json": '{ "slate": [90, 104, 117], "reed": [154, 141, 87] }\n',
        "tests/test_palette.py": """from pathlib import Path

from inkwell.palette import load


def test_load():
    assert load(Path("palettes/heron.json"))["reed"] == (154, 141, 87)
""",
    },
    keeps="""import pathlib, shutil, subprocess, sys, zipfile
from inkwell.palette import load
assert load(pathlib.Path("palettes/heron.json"))["slate"] == (90, 104, 117)
for folder in ("build", "dist"):
    shutil.rmtree(folder, ignore_errors=True)
subprocess.run([sys.executable, "-m", "build", "--wheel", "--no-isolation"], check=True, capture_output=True)
names = zipfile.ZipFile(next(pathlib.Path("dist").glob("*.whl"))).namelist()
assert "inkwell/__init__.py" in names and "inkwell/palette.py" in names, names
""",
    setup=f"{PYTEST} build==1.6.1 setuptools==65.5.0 wheel==0.48.0",
    remedy="printf '\\n[tool.setuptools]\\npackages = [\"inkwell\"]\\n' >> pyproject.toml",
)

CALL = '''"""What a library lends."""

from pydantic import BaseModel, Field


class Book(BaseModel):
    """A book on a shelf."""

    title: str = Field(min_length=1)
    copies: int = Field(default=1, ge=0)
'''
CALL_TEST = """import pytest
from pydantic import ValidationError

from lending import Book


def test_title():
    with pytest.raises(ValidationError):
        Book(title="")
"""
removed_keyword = Shape(
    name="renamed-field-keyword",
    command="make test",
    start={
        **NO_SHOP,
        "lending/__init__.py": 'from lending.books import Book\n\n__all__ = ["Book"]\n',
        "lending/books.py": CALL,
        "tests/test_books.py": CALL_TEST,
        "pyproject.toml": PROJECT,
        "Makefile": ".PHONY: test\n\ntest:\n\tpython -m pytest -q\n",
        ".gitignore": "__pycache__/\n",
    },
    message="Lend sheet music",
    culprit={
        "lending/__init__.py": 'from lending.books import Book\nfrom lending.scores import Score\n\n__all__ = ["Book", "Score"]\n',
        "lending/scores.py": '''"""Sheet music."""

from pydantic import Field

from lending.books import Book


class Score(Book):
    """The parts of a piece."""

    opus: str = Field(regex=r"^[A-Z]{2,4} \\d+$")
    parts: int = Field(default=1, ge=1)
''',
        "tests/test_scores.py": """import pytest
from pydantic import ValidationError

from lending import Score


def test_opus():
    assert Score(title="Mass", opus="BWV 232").parts == 1
    with pytest.raises(ValidationError):
        Score(title="Mass", opus="232")
""",
    },
    keeps="""import pathlib
from lending import Book, Score
assert Score(title="Mass", opus="BWV 232", parts=9).parts == 9 and Book(title="x").copies == 1
try:
    Score(title="Mass", opus="232")
except ValueError:
    pass
else:
    raise AssertionError("any opus goes")
assert 'opus="232"' in pathlib.Path("tests/test_scores.py").read_text()
""",
    setup=f"{PYTEST} pydantic==2.14.4",
    remedy="sed -i 's/Field(regex=/Field(pattern=/' lending/scores.py",
)

RINK = '''"""Hours of a skating rink."""

from sqlalchemy import select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    """The base of all tables."""


class Slot(Base):
    """An hour on the ice."""

    __tablename__ = "slot"

    hour: Mapped[int] = mapped_column(primary_key=True)
    skaters: Mapped[int]


def busy(db: Session, least: int) -> list[int]:
    """The hours with so many skaters or more."""
    return list(db.scalars(select(Slot.hour).where(Slot.skaters >= least).order_by(Slot.hour)))
'''
RINK_TEST = """import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from rink import hours
from rink.hours import Base, Slot, busy


@pytest.fixture
def db():
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Slot(hour=10, skaters=4), Slot(hour=11, skaters=30), Slot(hour=12, skaters=11)])
        session.flush()
        yield session


def test_busy(db):
    assert busy(db, 10) == [11, 12]
"""
sql_text = Shape(
    name="textual-sql-expression",
    command="tox -q -e unit",
    start={
        **NO_SHOP,
        "rink/__init__.py": "",
        "rink/hours.py": RINK,
        "tests/test_hours.py": RINK_TEST,
        "pyproject.toml": PROJECT,
        "tox.ini": "[tox]\nskipsdist = true\n\n[testenv:unit]\nskip_install = true\nallowlist_externals = pytest\ncommands = pytest -q\n",
        ".gitignore": "__pycache__/\n.tox/\n.pytest_cache/\n",
    },
    message="Find the median of skaters",
    culprit={
        "rink/hours.py": RINK  # noqa: S608 - a case
        + '''

def median(db: Session) -> int:
    """As many skaters as half of the hours have at most."""
    return db.execute(
        "select skaters from slot order by skaters limit 1 offset (select (count(*) - 1) / 2 from slot)"
    ).scalar_one()
''',
        "tests/test_hours.py": RINK_TEST
        + "\n\ndef test_median(db):\n    assert hours.median(db) == 11\n",
    },
    keeps="""import pathlib
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from rink.hours import Base, Slot, busy, median
engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as db:
    db.add_all([Slot(hour=1, skaters=7), Slot(hour=2, skaters=2), Slot(hour=3, skaters=5)])
    db.flush()
    assert median(db) == 5 and busy(db, 5) == [1, 3]
assert "median(db) == 11" in pathlib.Path("tests/test_hours.py").read_text()
""",
    setup=f"{PYTEST} tox==4.67.15 sqlalchemy==2.1.9",
    remedy="sed -i 's/^from sqlalchemy import select/from sqlalchemy import select, text/; "
    's/^        "\\(select .*\\)"$/        text("\\1")/\' rink/hours.py',
)

CHOIR = '''"""Programmes of a choir."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "pages"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)


def page(name: str, **values: object) -> str:
    """Fill in a page."""
    return PAGES.get_template(name).render(**values)
'''
CHOIR_TEST = """from choir import page

PIECES = [{"title": "Locus iste", "by": "Bruckner"}, {"title": "Trad.", "by": ""}]


def test_programme():
    assert "Locus iste" in page("programme.txt", pieces=PIECES)
"""
CHOIR_CHECK = '''"""Compile every page, so that none breaks on the evening."""

import sys

from jinja2 import TemplateSyntaxError

from choir import PAGES

code = 0
for name in PAGES.list_templates():
    try:
        PAGES.get_template(name)
    except TemplateSyntaxError as error:
        print(f"choir/pages/{name}:{error.lineno}: {error.message}", file=sys.stderr)
        code = 1
sys.exit(code)
'''
template_tag = Shape(
    name="unknown-template-tag",
    command="python -m choir.lint",
    start={
        **NO_SHOP,
        "choir/__init__.py": CHOIR,
        "choir/lint.py": CHOIR_CHECK,
        "choir/pages/programme.txt": "PROGRAMME\n{% for piece in pieces %}\n* {{ piece.title }}\n{% endfor %}\n",
        "tests/test_pages.py": CHOIR_TEST,
        "pyproject.toml": PROJECT,
        ".gitignore": "__pycache__/\n",
    },
    message="Name composers, and print tickets",
    culprit={
        "choir/pages/programme.txt": "PROGRAMME\n{% for piece in pieces %}\n* {{ piece.title }}"
        "{% if piece.by %} ({{ piece.by }}){% endif %}\n\n{% endfor %}\n",
        "choir/pages/ticket.txt": "Admit {{ guest }}\n{% if seat %}\nSeat {{ seat }}\n{% fi %}\nDoors open at {{ doors }}\n",
        "tests/test_pages.py": CHOIR_TEST
        + '\n\ndef test_composers():\n    assert "* Locus iste (Bruckner)\\n* Trad.\\n" in page("programme.txt", pieces=PIECES)\n'
        + '\n\ndef test_ticket():\n    assert page("ticket.txt", guest="Ada", seat="C4", doors="19:00").split("\\n")[1] == "Seat C4"\n',
    },
    keeps="""import pathlib
from choir import page
assert page("ticket.txt", guest="Ada", seat="", doors="19:00") == "Admit Ada\\nDoors open at 19:00"
assert page("ticket.txt", guest="Ada", seat="C4", doors="19:00") == "Admit Ada\\nSeat C4\\nDoors open at 19:00"
assert "* Locus iste (Bruckner)" in page("programme.txt", pieces=[{"title": "Locus iste", "by": "Bruckner"}])
assert "code = 1" in pathlib.Path("choir/lint.py").read_text()
""",
    setup=f"{PYTEST} jinja2==3.1.6",
    remedy="sed -i 's/{% fi %}/{% endif %}/' choir/pages/ticket.txt",
)

TRAIN = '''"""Seats on a train."""

from __future__ import annotations


class Register:
    """Who sits where."""

    def __init__(self) -> None:
        self.taken: dict[int, str] = {}

    async def seats(self, name: str) -> list[int]:
        """The seats of one passenger."""
        return [seat for seat, who in self.taken.items() if who == name]

    async def take(self, seat: int, name: str) -> bool:
        """Book a seat that is free."""
        return self.taken.setdefault(seat, name) == name
'''
TRAIN_TEST = """import asyncio

from train.register import Register


def test_take():
    book = Register()
    assert asyncio.run(book.take(4, "ada"))
    assert not asyncio.run(book.take(4, "bob"))
"""
await_hint = Shape(
    name="forgotten-await",
    command="mypy",
    start={
        **NO_SHOP,
        "train/__init__.py": "",
        "train/register.py": TRAIN,
        "tests/test_register.py": TRAIN_TEST,
        "pyproject.toml": PROJECT + '\n[tool.mypy]\nfiles = ["train"]\nstrict = true\n',
        ".gitignore": "__pycache__/\n.mypy_cache/\n",
    },
    message="Charge for seats",
    culprit={
        "train/fares.py": '''"""What seats cost."""

from __future__ import annotations

from train.register import Register


async def owed(register: Register, name: str, cents: int = 450) -> int:
    """What a passenger owes for all seats."""
    return len(register.seats(name)) * cents
''',
        "tests/test_fares.py": """import asyncio

from train.fares import owed
from train.register import Register


def test_owed():
    book = Register()
    book.taken = {1: "ada", 2: "bob", 3: "ada"}
    assert asyncio.run(owed(book, "ada")) == 900
""",
    },
    keeps="""import asyncio, inspect, pathlib
from train.fares import owed
from train.register import Register
book = Register()
book.taken = {1: "ada", 2: "bob", 3: "ada"}
assert asyncio.run(owed(book, "ada", 100)) == 200 and inspect.iscoroutinefunction(Register.seats)
assert "type: ignore" not in pathlib.Path("train/fares.py").read_text()
assert "strict = true" in pathlib.Path("pyproject.toml").read_text()
""",
    setup=f"{PYTEST} mypy==2.4.1",
    remedy="sed -i 's/len(register.seats(name))/len(await register.seats(name))/' train/fares.py",
)

LAMP = '''"""Lamps of a stage."""

from __future__ import annotations

from typing_extensions import override


class Lamp:
    """A lamp at full light."""

    def level(self, second: int) -> int:
        """How bright the lamp is, of 255."""
        return 255


class Fading(Lamp):
    """A lamp that goes out."""

    @override
    def level(self, second: int) -> int:
        return max(255 - 51 * second, 0)
'''
LAMP_TEST = """from stage.lamps import Fading


def test_fading():
    assert [Fading().level(one) for one in (0, 1, 9)] == [255, 204, 0]
"""
override_mark = Shape(
    name="override-not-marked",
    command="python scripts/check_types.py",
    start={
        **NO_SHOP,
        "stage/__init__.py": "",
        "stage/lamps.py": LAMP,
        "tests/test_lamps.py": LAMP_TEST,
        "pyproject.toml": PROJECT
        + '\n[tool.basedpyright]\ninclude = ["stage"]\ntypeCheckingMode = "standard"\nreportImplicitOverride = "error"\n',
        "scripts/check_types.py": '"""Check types as the build server does."""\n\nimport subprocess\nimport sys\n\n'
        'sys.exit(subprocess.run(["basedpyright", "--level", "error"]).returncode)\n',
        ".gitignore": "__pycache__/\n",
    },
    message="Add strobes",
    culprit={
        "stage/strobe.py": '''"""Lamps that flash."""

from __future__ import annotations

from stage.lamps import Lamp


class Strobe(Lamp):
    """A lamp that is lit every other second."""

    def level(self, second: int) -> int:
        return 0 if second % 2 else 255
''',
        "tests/test_strobe.py": "from stage.strobe import Strobe\n\n\ndef test_strobe():\n"
        "    assert [Strobe().level(one) for one in range(3)] == [255, 0, 255]\n",
    },
    keeps="""import pathlib
from stage.lamps import Fading, Lamp
from stage.strobe import Strobe
assert issubclass(Strobe, Lamp) and [Strobe().level(one) for one in range(3)] == [255, 0, 255] and Fading().level(9) == 0
text = pathlib.Path("stage/strobe.py").read_text()
assert "@override" in text and "ignore" not in text
assert 'reportImplicitOverride = "error"' in pathlib.Path("pyproject.toml").read_text()
""",
    setup=f"{PYTEST} basedpyright==1.40.2 typing_extensions==4.16.0",
    remedy="sed -i 's/^from stage.lamps import Lamp/from typing_extensions import override\\n\\n&/; s/^    def level/    @override\\n&/' stage/strobe.py",
)

KILN = '''"""Firings of a kiln."""

CONES = {"06": 999, "6": 1222, "10": 1305}


def heat(cone: str) -> int:
    """The heat at which a cone bends, in Celsius."""
    return CONES[cone]
'''
KILN_TEST = """from kiln import heat


def test_heat():
    assert heat("6") == 1222
"""
site_link = Shape(
    name="site-page-link",
    command="nox -s site",
    start={
        **NO_SHOP,
        "kiln.py": KILN,
        "tests/test_kiln.py": KILN_TEST,
        "docs/index.md": "# Kiln\n\nHow to fire: see [cones](cones.md).\n",
        "docs/cones.md": "# Cones\n\nA cone bends at its heat.\n",
        "mkdocs.yml": "site_name: Kiln\nvalidation:\n  links:\n    absolute_links: warn\n    unrecognized_links: warn\n",
        "noxfile.py": 'import nox\n\n\n@nox.session(python=False)\ndef site(session):\n    session.run("mkdocs", "build", "--strict")\n',
        "pyproject.toml": PROJECT,
        ".gitignore": "__pycache__/\n.nox/\nsite/\n",
    },
    message="Cool slowly",
    culprit={
        "kiln.py": KILN
        + '''

def cooling(cone: str, per_hour: int = 80) -> int:
    """How many hours a firing takes to cool to 60 degrees."""
    return -(-(heat(cone) - 60) // per_hour)
''',
        "tests/test_kiln.py": KILN_TEST.replace("import heat", "import cooling, heat")
        + '\n\ndef test_cooling():\n    assert cooling("06") == 12\n',
        "docs/cooling.md": "# Cooling\n\nCool by 80 degrees an hour from the heat of the [cone](/cones.md).\n",
        "docs/index.md": "# Kiln\n\nHow to fire: see [cones](cones.md). Afterwards: [cooling](cooling.md).\n",
    },
    keeps="""import pathlib
from kiln import cooling, heat
assert cooling("06") == 12 and heat("10") == 1305
assert "[cone](cones.md)" in pathlib.Path("docs/cooling.md").read_text()
assert "(cooling.md)" in pathlib.Path("docs/index.md").read_text()
config = pathlib.Path("mkdocs.yml").read_text()
assert "absolute_links: warn" in config and "unrecognized_links: warn" in config
assert '"--strict"' in pathlib.Path("noxfile.py").read_text()
""",
    setup=f"{PYTEST} nox==2026.10.20 mkdocs==1.6.1",
    remedy="sed -i 's|(/cones.md)|(cones.md)|' docs/cooling.md",
)

DEPOT = '''"""Parcels of a depot, over the net."""

from __future__ import annotations

from fastapi import FastAPI, Response

app = FastAPI(title="Depot")
PARCELS = {7: "Oslo", 8: "Bodo"}


@app.get("/parcels/{number}")
def parcel(number: int) -> dict[str, str]:
    """Where a parcel goes."""
    return {"to": PARCELS[number]}
'''
DEPOT_TEST = """from depot.web import app, parcel


def test_parcel():
    assert parcel(7) == {"to": "Oslo"}
    assert app.url_path_for("parcel", number="7") == "/parcels/7"
"""
response_model = Shape(
    name="response-model-of-route",
    command="python -m depot.routes",
    start={
        **NO_SHOP,
        "depot/__init__.py": "",
        "depot/web.py": DEPOT,
        "depot/routes.py": '"""Print the paths that are served; what the manual is made from."""\n\nfrom depot.web import app\n\n'
        'for path in sorted(app.openapi()["paths"]):\n    print(path)\n',
        "tests/test_web.py": DEPOT_TEST,
        "pyproject.toml": PROJECT,
        ".gitignore": "__pycache__/\n",
    },
    message="Print labels",
    culprit={
        "depot/web.py": DEPOT
        + '''

@app.get("/parcels/{number}/label")
def label(number: int, plain: bool = False) -> Response | dict[str, str]:
    """What to stick on a parcel, as text or as data."""
    if plain:
        return Response(f"No. {number}\\nTo {PARCELS[number]}\\n", media_type="text/plain")
    return {"number": str(number), "to": PARCELS[number]}
''',
        "tests/test_web.py": DEPOT_TEST.replace("import app, parcel", "import app, label, parcel")
        + '\n\ndef test_label():\n    assert label(8)["to"] == "Bodo"\n    assert label(8, plain=True).body == b"No. 8\\nTo Bodo\\n"\n',
    },
    keeps="""from fastapi import Response
from depot.web import app, label, parcel
assert label(8) == {"number": "8", "to": "Bodo"} and isinstance(label(8, plain=True), Response)
assert set(app.openapi()["paths"]) == {"/parcels/{number}", "/parcels/{number}/label"}
assert parcel(7) == {"to": "Oslo"}
""",
    setup=f"{PYTEST} fastapi==0.165.0",
    remedy="""sed -i 's|"/parcels/{number}/label")|"/parcels/{number}/label", response_model=None)|' depot/web.py""",
)

ORCHARD_SETTINGS = """SECRET_KEY = "only for tests"
INSTALLED_APPS = ["trees.apps.TreesConfig"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
USE_TZ = True
"""
ORCHARD_TEST = """import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchard.settings")

import django

django.setup()


def test_tree():
    from trees.models import Tree

    assert str(Tree(kind="quince")) == "quince"
"""
key_type = Shape(
    name="primary-key-type",
    command="python manage.py check --fail-level WARNING",
    start={
        **NO_SHOP,
        "manage.py": "import os\nimport sys\n\nfrom django.core.management import execute_from_command_line\n\n"
        'os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchard.settings")\nexecute_from_command_line(sys.argv)\n',
        "orchard/settings.py": ORCHARD_SETTINGS,
        "trees/__init__.py": "",
        "trees/apps.py": 'from django.apps import AppConfig\n\n\nclass TreesConfig(AppConfig):\n    name = "trees"\n'
        '    default_auto_field = "django.db.models.BigAutoField"\n',
        "trees/models.py": "from django.db import models\n\n\nclass Tree(models.Model):\n    kind = models.CharField(max_length=40)\n\n"
        "    def __str__(self):\n        return self.kind\n",
        "tests/test_orchard.py": ORCHARD_TEST,
        "pyproject.toml": PROJECT,
        ".gitignore": "__pycache__/\n",
    },
    message="Keep count of crates",
    culprit={
        "orchard/settings.py": swap(
            ORCHARD_SETTINGS, ('Config"]', 'Config", "crates.apps.CratesConfig"]')
        ),
        "crates/__init__.py": "",
        "crates/apps.py": 'from django.apps import AppConfig\n\n\nclass CratesConfig(AppConfig):\n    name = "crates"\n',
        "crates/models.py": "from django.db import models\n\n\nclass Crate(models.Model):\n"
        '    tree = models.ForeignKey("trees.Tree", on_delete=models.PROTECT)\n    kilos = models.PositiveIntegerField()\n\n'
        '    def __str__(self):\n        return f"{self.kilos} kg"\n',
        "tests/test_orchard.py": ORCHARD_TEST
        + '\n\ndef test_crate():\n    from crates.models import Crate\n\n    assert str(Crate(kilos=12)) == "12 kg"\n',
    },
    keeps="""import os, pathlib
os.environ["DJANGO_SETTINGS_MODULE"] = "orchard.settings"
import django
django.setup()
from django.conf import settings
from django.db.models import BigAutoField
from crates.models import Crate
from trees.models import Tree
assert str(Crate(kilos=12)) == "12 kg" and len(settings.INSTALLED_APPS) == 2 and not settings.SILENCED_SYSTEM_CHECKS
assert isinstance(Tree._meta.pk, BigAutoField) and isinstance(Crate._meta.pk, BigAutoField)
""",
    setup=f"{PYTEST} django==5.2.19",
    remedy="""printf '    default_auto_field = "django.db.models.BigAutoField"\\n' >> crates/apps.py""",
)

SEVENTEENTH = (
    robot_suite,
    sql_reports,
    meson_build,
    workflow_audit,
    manifest,
    transcripts,
    snapshots,
    migration,
    contents_list,
    catalogue,
    headers,
    hook_docs,
    codemod,
    notebook,
    data_order,
    make_tab,
    c_header,
    perl_global,
    json_module,
    type_import,
    requirement_pin,
    flat_layout,
    removed_keyword,
    sql_text,
    template_tag,
    await_hint,
    override_mark,
    site_link,
    response_model,
    key_type,
)
