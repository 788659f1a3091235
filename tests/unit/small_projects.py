"""Small projects in several languages, each with mistakes of its own, for patches to be tried on."""

from __future__ import annotations

# fmt: off
PROJECTS: dict[str, dict[str, str]] = {
"ledger": {
"pyproject.toml": '''[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "ledger"
version = "1.4.0"
requires-python = ">=3.10"
dependencies = ["click>=8.1", "python-dateutil>=2.8", "pyyaml>=6.0", "cryptography>=42.0"]

[project.optional-dependencies]
test = ["pytest>=8", "pytest-cov"]

[project.scripts]
ledger = "ledger.cli:main"

[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = "--strict-markers"
filterwarnings = ["error"]

[tool.ruff.lint]
select = ["E", "F", "B", "S", "UP"]

[tool.mypy]
strict = true

[tool.coverage.report]
fail_under = 92
''',
"Makefile": '''.PHONY: test lint
test:
	python -m pytest tests
lint:
	ruff check src tests
	mypy src
''',
"CHANGELOG.md": '''# Changelog

## Unreleased

- Add `ledger report --month`.
''',
".github/workflows/ci.yml": '''name: ci
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        python: ["3.10", "3.11", "3.12"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: ${{ matrix.python }}
      - run: pip install -e .[test]
      - run: make lint
      - run: make test
''',
"scripts/check.sh": '''#!/usr/bin/env bash
set -euo pipefail
ruff check src tests
mypy src
python -m pytest tests -x
''',
"src/ledger/__init__.py": '''"""Double-entry bookkeeping."""

from ledger.money import Money

__all__ = ["Money"]
''',
"src/ledger/money.py": '''"""Amounts of money in one currency."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

_MINOR = {"EUR": 2, "USD": 2, "JPY": 0, "BHD": 3}


class MoneyError(ValueError):
    """An amount that cannot be used."""


@dataclass(frozen=True)
class Money:
    """An amount in a currency."""

    amount: Decimal
    currency: str

    def __post_init__(self) -> None:
        if self.currency not in _MINOR:
            raise MoneyError(f"unknown currency: {self.currency}")

    def __add__(self, other: Money) -> Money:
        if self.currency != other.currency:
            raise MoneyError("currencies differ")
        return Money(self.amount + other.amount, self.currency)

    def rounded(self) -> Money:
        """The amount in whole minor units, half to even."""
        places = Decimal(10) ** -_MINOR[self.currency]
        return Money(self.amount.quantize(places, rounding=ROUND_HALF_EVEN), self.currency)

    def allocate(self, weights: list[int]) -> list[Money]:
        """Split without losing a cent; the remainder goes to the first shares."""
        total = sum(weights)
        unit = Decimal(10) ** -_MINOR[self.currency]
        shares = [(self.amount * weight / total).quantize(unit) for weight in weights]
        rest = self.amount - sum(shares)
        index = 0
        while rest > 0:
            shares[index] += unit
            rest -= unit
            index += 1
        return [Money(share, self.currency) for share in shares]


def parse_money(text: str) -> Money:
    """Read `12.50 EUR`.

    Raises:
        MoneyError: the text is no amount.
    """
    number, _, currency = text.strip().partition(" ")
    try:
        amount = Decimal(number.replace(",", ""))
    except InvalidOperation as error:
        raise MoneyError(f"not an amount: {text!r}") from error
    return Money(amount, currency)
''',
"src/ledger/accounts.py": '''"""Accounts and the entries between them."""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from ledger.money import Money, MoneyError

log = logging.getLogger(__name__)


@dataclass
class Entry:
    """Money that moves from one account to another on a day."""

    day: date
    source: str
    target: str
    money: Money
    tags: list[str] = field(default_factory=list)


class UnbalancedError(Exception):
    """The books do not add up."""


class Book:
    """All entries of a company."""

    def __init__(self, currency: str = "EUR", entries: list[Entry] | None = None) -> None:
        self.currency = currency
        self.entries = entries or []
        self._balances: dict[str, Decimal] | None = None

    def post(self, entry: Entry) -> None:
        """Add an entry."""
        if entry.money.currency != self.currency:
            raise MoneyError(f"this book is kept in {self.currency}")
        if entry.money.amount <= 0:
            raise MoneyError("an entry must be positive")
        self.entries.append(entry)

    def balance(self, account: str) -> Money:
        """What stands on an account."""
        if self._balances is None:
            self._balances = self._count()
        return Money(self._balances[account], self.currency)

    def between(self, start: date, end: date) -> list[Entry]:
        """Entries from `start` to `end`, both included."""
        return [entry for entry in self.entries if start <= entry.day < end]

    def close(self) -> dict[str, Money]:
        """Check the books and give all balances.

        Raises:
            UnbalancedError: the sum is not zero.
        """
        balances = self._count()
        total = sum(balances.values(), Decimal(0))
        if total != 0:
            log.error("books are off by %s", total)
            raise UnbalancedError(f"off by {total}")
        return {name: Money(value, self.currency) for name, value in balances.items()}

    def _count(self) -> dict[str, Decimal]:
        counted: dict[str, Decimal] = defaultdict(Decimal)
        for entry in self.entries:
            counted[entry.source] -= entry.money.amount
            counted[entry.target] += entry.money.amount
        return counted
''',
"src/ledger/importer.py": '''"""Bank statements as entries."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

from ledger.accounts import Entry
from ledger.money import MoneyError, parse_money

_DAY = re.compile(r"(\\d{1,2})\\.(\\d{1,2})\\.(\\d{2,4})")
REQUIRED = ("day", "from", "to", "amount")


class ImportFailed(Exception):
    """A statement that cannot be read."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line


def read_statement(path: Path) -> list[Entry]:
    """Read a CSV statement."""
    with path.open(newline="") as file:
        rows = csv.DictReader(file, delimiter=";")
        return list(_entries(rows))


def _entries(rows: csv.DictReader[str]) -> Iterator[Entry]:
    for number, row in enumerate(rows, start=1):
        missing = [name for name in REQUIRED if not row.get(name)]
        if missing:
            raise ImportFailed(number, f"missing {', '.join(missing)}")
        try:
            money = parse_money(row["amount"])
        except MoneyError as error:
            raise ImportFailed(number, str(error)) from error
        yield Entry(parse_day(row["day"]), row["from"], row["to"], money)


def parse_day(text: str) -> date:
    """Read `31.12.2024` or `2024-12-31`."""
    if found := _DAY.match(text):
        day, month, year = (int(part) for part in found.groups())
        return date(year, month, day)
    return datetime.strptime(text, "%Y-%m-%d").date()
''',
"src/ledger/cli.py": '''"""The command line."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ledger.accounts import Book, UnbalancedError
from ledger.importer import ImportFailed, read_statement


@click.group()
def main() -> None:
    """Keep books."""


@main.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--month", type=int)
def report(file: Path, month: int | None) -> None:
    """Print all balances."""
    book = Book(entries=read_statement(file))
    try:
        balances = book.close()
    except UnbalancedError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    for name, money in sorted(balances.items()):
        click.echo(f"{name:<20} {money.amount:>12} {money.currency}")


@main.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
def check(file: Path) -> None:
    """Check a statement."""
    try:
        entries = read_statement(file)
    except ImportFailed as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    click.echo(f"{len(entries)} entries")
''',
"tests/conftest.py": '''from datetime import date
from decimal import Decimal

import pytest

from ledger.accounts import Book, Entry
from ledger.money import Money


@pytest.fixture
def book():
    book = Book()
    book.post(Entry(date(2024, 1, 31), "bank", "rent", Money(Decimal("900"), "EUR")))
    book.post(Entry(date(2024, 2, 29), "bank", "food", Money(Decimal("120.50"), "EUR")))
    return book
''',
"tests/test_money.py": '''from decimal import Decimal

import pytest

from ledger.money import Money, MoneyError, parse_money


def eur(text):
    return Money(Decimal(text), "EUR")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("2.345", "2.34"), ("2.355", "2.36"), ("0", "0.00")],
)
def test_rounds_half_to_even(given, wanted):
    assert eur(given).rounded() == eur(wanted)


def test_allocate_keeps_every_cent():
    shares = eur("100.00").allocate([1, 1, 1])
    assert [share.amount for share in shares] == [Decimal("33.34"), Decimal("33.33"), Decimal("33.33")]
    assert sum(share.amount for share in shares) == Decimal("100.00")


def test_allocate_rounds_up():
    shares = eur("0.05").allocate([3, 3, 3, 3])
    assert sum(share.amount for share in shares) == Decimal("0.05")


def test_parse():
    assert parse_money("1,250.75 EUR") == eur("1250.75")


def test_no_amount():
    with pytest.raises(MoneyError, match="not an amount"):
        parse_money("abc EUR")


def test_unknown_currency():
    with pytest.raises(MoneyError, match="unknown currency"):
        parse_money("12.50 XXX")
''',
"tests/test_accounts.py": '''from datetime import date
from decimal import Decimal

import pytest

from ledger.accounts import Book, Entry, UnbalancedError
from ledger.money import Money


def test_balance(book):
    assert book.balance("bank") == Money(Decimal("-1020.50"), "EUR")


def test_balance_after_another_entry(book):
    book.balance("bank")
    book.post(Entry(date(2024, 3, 1), "sales", "bank", Money(Decimal("2000"), "EUR")))
    assert book.balance("bank").amount == Decimal("979.50")


def test_between_includes_the_last_day(book):
    found = book.between(date(2024, 1, 1), date(2024, 2, 29))
    assert len(found) == 2


def test_unknown_account(book):
    with pytest.raises(KeyError):
        book.balance("nobody")


def test_close(book):
    assert set(book.close()) == {"bank", "rent", "food"}
''',
"tests/test_importer.py": '''from datetime import date

import pytest

from ledger.importer import ImportFailed, parse_day, read_statement


def test_days():
    assert parse_day("31.12.2024") == date(2024, 12, 31)
    assert parse_day("1.2.24") == date(2024, 2, 1)
    assert parse_day("2024-02-01") == date(2024, 2, 1)


def test_umlauts(tmp_path):
    path = tmp_path / "bank.csv"
    path.write_bytes("day;from;to;amount\\n1.2.2024;Bank;Müller;3.00 EUR\\n".encode("utf-8-sig"))
    assert read_statement(path)[0].target == "Müller"


def test_missing(tmp_path):
    path = tmp_path / "bank.csv"
    path.write_text("day;from;to;amount\\n1.2.2024;Bank;;3.00 EUR\\n")
    with pytest.raises(ImportFailed, match="line 2: missing to"):
        read_statement(path)
''',
},
"notes": {
"requirements.txt": '''flask==3.0.3
werkzeug==3.0.4
itsdangerous==2.2.0
jinja2==3.1.4
requests==2.32.3
pyyaml==6.0.2
bleach==6.1.0
''',
"setup.cfg": '''[flake8]
max-line-length = 100
extend-ignore = E203

[tool:pytest]
testpaths = tests
''',
"notes/__init__.py": '''"""A notebook on the web."""

from flask import Flask

from notes import api, auth, pages
from notes.config import Config


def create_app(config=None):
    app = Flask(__name__)
    app.config.from_object(config or Config())
    app.config["SESSION_COOKIE_SECURE"] = True
    app.config["SESSION_COOKIE_HTTPONLY"] = True
    app.config["MAX_CONTENT_LENGTH"] = 1024 * 1024
    app.register_blueprint(api.bp)
    app.register_blueprint(auth.bp)
    app.register_blueprint(pages.bp)
    return app
''',
"notes/config.py": '''import os


class Config:
    SECRET_KEY = os.environ["NOTES_SECRET_KEY"]
    DATABASE = os.environ.get("NOTES_DATABASE", "notes.sqlite")
    DEBUG = False
    PAGE_SIZE = 20
    CORS_ORIGINS = ["https://notes.example.org"]
    LOGIN_ATTEMPTS = 5
    TOKEN_SECONDS = 3600
''',
"notes/auth.py": '''"""Logging in."""

import functools
import hashlib
import hmac
import secrets
import time

from flask import Blueprint, abort, current_app, g, jsonify, request, session

from notes.db import get_db

bp = Blueprint("auth", __name__)
_ATTEMPTS = {}


def hash_password(password, salt=None):
    salt = salt or secrets.token_hex(16)
    digest = hashlib.pbkdf2_hmac("sha256", password.encode(), salt.encode(), 600_000)
    return f"{salt}${digest.hex()}"


def check_password(password, stored):
    salt, _, _ = stored.partition("$")
    return hmac.compare_digest(hash_password(password, salt), stored)


def login_required(view):
    @functools.wraps(view)
    def wrapped(*args, **kwargs):
        if "user" not in session:
            abort(401)
        g.user = session["user"]
        return view(*args, **kwargs)

    return wrapped


@bp.post("/login")
def login():
    name = request.form["name"]
    attempts = [when for when in _ATTEMPTS.get(name, []) if time.time() - when < 60]
    if len(attempts) >= current_app.config["LOGIN_ATTEMPTS"]:
        abort(429)
    row = get_db().execute("select id, password from users where name = ?", (name,)).fetchone()
    if row is None or not check_password(request.form["password"], row["password"]):
        _ATTEMPTS[name] = [*attempts, time.time()]
        abort(401)
    session.clear()
    session["user"] = row["id"]
    return jsonify(id=row["id"])
''',
"notes/api.py": '''"""The JSON interface."""

from flask import Blueprint, abort, current_app, g, jsonify, request

from notes.auth import login_required
from notes.db import get_db

bp = Blueprint("api", __name__, url_prefix="/api")


@bp.get("/notes")
@login_required
def list_notes():
    page = int(request.args.get("page", 1))
    size = current_app.config["PAGE_SIZE"]
    rows = get_db().execute(
        "select id, title from notes where owner = ? order by id limit ? offset ?",
        (g.user, size, page * size),
    )
    return jsonify([dict(row) for row in rows])


@bp.get("/notes/<int:note_id>")
@login_required
def get_note(note_id):
    row = get_db().execute("select * from notes where id = ?", (note_id,)).fetchone()
    if row is None:
        abort(404)
    if row["owner"] != g.user:
        abort(403)
    return jsonify(dict(row))


@bp.post("/notes")
@login_required
def add_note():
    data = request.get_json()
    title = data["title"].strip()
    if not title:
        abort(400, "a note needs a title")
    if len(title) > 200:
        abort(400, "the title is too long")
    db = get_db()
    cursor = db.execute(
        "insert into notes (owner, title, body) values (?, ?, ?)",
        (g.user, title, data.get("body", "")),
    )
    db.commit()
    return jsonify(id=cursor.lastrowid), 201


@bp.delete("/notes/<int:note_id>")
@login_required
def delete_note(note_id):
    db = get_db()
    done = db.execute("delete from notes where id = ? and owner = ?", (note_id, g.user))
    db.commit()
    if not done.rowcount:
        abort(404)
    return "", 204
''',
"notes/db.py": '''import sqlite3

from flask import current_app, g


def get_db():
    if "db" not in g:
        g.db = sqlite3.connect(current_app.config["DATABASE"], timeout=5)
        g.db.row_factory = sqlite3.Row
        g.db.execute("pragma foreign_keys = on")
    return g.db


def search(owner, words):
    clause = " and ".join("title like ?" for _ in words)
    values = [f"%{word}%" for word in words]
    return get_db().execute(f"select id, title from notes where owner = ? and {clause}", [owner, *values])
''',
"notes/pages.py": '''"""HTML pages."""

import bleach
import requests
import yaml
from flask import Blueprint, abort, redirect, render_template_string, request, url_for
from markupsafe import Markup, escape

from notes.auth import login_required

bp = Blueprint("pages", __name__)
ALLOWED = {"a", "em", "strong", "p"}


def render_body(text):
    """The body of a note as safe HTML."""
    return Markup(bleach.clean(text, tags=ALLOWED, strip=True))


@bp.get("/preview")
@login_required
def preview():
    url = request.args["url"]
    if not url.startswith("https://notes.example.org/"):
        abort(400)
    answer = requests.get(url, timeout=5)
    answer.raise_for_status()
    return render_template_string("<p>{{ text }}</p>", text=answer.text[:200])


@bp.post("/import")
@login_required
def import_notes():
    document = yaml.safe_load(request.data)
    if not isinstance(document, list):
        abort(400)
    return redirect(url_for("api.list_notes"))


def excerpt(text, length=80):
    """The first words of a text, at most `length` characters."""
    if len(text) <= length:
        return escape(text)
    cut = text[:length].rsplit(" ", 1)[0]
    return escape(cut) + "..."
''',
"tests/test_api.py": '''import pytest

from notes import create_app
from notes.auth import check_password, hash_password
from notes.pages import excerpt, render_body


@pytest.fixture
def client(tmp_path):
    app = create_app({"DATABASE": str(tmp_path / "db"), "TESTING": True})
    return app.test_client()


def test_first_page(client):
    found = client.get("/api/notes").get_json()
    assert len(found) == 20


def test_needs_login(client):
    assert client.get("/api/notes/1").status_code == 401


def test_empty_title(client):
    assert client.post("/api/notes", json={"title": "  "}).status_code == 400


def test_missing_title(client):
    assert client.post("/api/notes", json={}).status_code == 400


def test_password():
    assert check_password("secret", hash_password("secret"))
    assert not check_password("Secret", hash_password("secret"))


def test_excerpt():
    assert excerpt("a" * 100, 10) == "aaaaaaaaaa..."
    assert excerpt("one two three", 9) == "one two..."


def test_body_is_clean():
    assert render_body("<script>x</script><em>y</em>") == "x<em>y</em>"
''',
},
"iniparse": {
"tox.ini": '''[tox]
envlist = py310,py312,lint

[testenv]
commands = python -m unittest discover -v

[testenv:lint]
deps = flake8
commands = flake8 iniparse

[flake8]
max-line-length = 88
max-complexity = 10
''',
"setup.py": '''from setuptools import find_packages, setup

setup(
    name="iniparse2",
    version="0.9",
    packages=find_packages(exclude=["tests"]),
    install_requires=["charset-normalizer>=3.3"],
    python_requires=">=3.8",
)
''',
"iniparse/__init__.py": '''from .parser import ParseError, parse

__all__ = ["ParseError", "parse"]
''',
"iniparse/lexer.py": '''"""Cuts a document into tokens."""

import re
from typing import Iterator, NamedTuple

SECTION = re.compile(r"\\[(?P<name>[^\\]]+)\\]\\s*$")
PAIR = re.compile(r"(?P<key>[\\w.-]+)\\s*=\\s*(?P<value>.*)$")


class Token(NamedTuple):
    kind: str
    line: int
    name: str
    value: str = ""


class LexError(ValueError):
    def __init__(self, line, text):
        super().__init__(f"line {line}: cannot read {text!r}")
        self.line = line


def tokens(text: str) -> Iterator[Token]:
    for number, raw in enumerate(text.split("\\n"), 1):
        line = raw.strip()
        if not line or line[0] in "#":
            continue
        if found := SECTION.match(line):
            yield Token("section", number, found["name"].strip())
        elif found := PAIR.match(line):
            yield Token("pair", number, found["key"], found["value"])
        else:
            raise LexError(number, raw)
''',
"iniparse/parser.py": '''"""Builds a mapping out of tokens."""

from .lexer import LexError, tokens

_TRUE = {"yes", "true", "on", "1"}
_FALSE = {"no", "false", "off", "0"}


class ParseError(ValueError):
    """The document is wrong."""


def parse(text, *, strict=True):
    """Read a document.

    Duplicate keys raise ParseError where `strict`.
    """
    result = {}
    current = result.setdefault("", {})
    try:
        for token in tokens(text):
            if token.kind == "section":
                if strict and token.name in result:
                    raise ParseError(f"line {token.line}: section {token.name} again")
                current = result.setdefault(token.name, {})
            else:
                if strict and token.name in current:
                    raise ParseError(f"line {token.line}: key {token.name} again")
                current[token.name] = convert(token.value)
    except LexError as error:
        raise ParseError(str(error)) from error
    return result


def convert(value):
    """The value as bool, int, float or text."""
    low = value.lower()
    if low in _TRUE:
        return True
    if low in _FALSE:
        return False
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\\"":
        return value[1:-1]
    return value


def interpolate(document, section, key, depth=0):
    """Resolve `${section:key}` in a value."""
    if depth > 10:
        raise ParseError("references go in a circle")
    value = document[section][key]
    while isinstance(value, str) and "${" in value:
        start = value.index("${")
        end = value.index("}", start)
        other, _, name = value[start + 2 : end].partition(":")
        inner = interpolate(document, other, name, depth + 1)
        value = value[:start] + str(inner) + value[end:]
    return value
''',
"tests/__init__.py": '',
"tests/test_parser.py": '''import unittest

from iniparse import ParseError, parse
from iniparse.parser import convert, interpolate


class ParseTest(unittest.TestCase):
    def test_sections(self):
        document = parse("[server]\\nport = 8080\\nhost = example.org\\n")
        self.assertEqual(document["server"], {"port": 8080, "host": "example.org"})

    def test_semicolon_comment(self):
        self.assertEqual(parse("; hello\\na = 1\\n")[""], {"a": 1})

    def test_duplicate_key(self):
        with self.assertRaises(ParseError):
            parse("a = 1\\na = 2\\n")

    def test_bad_line(self):
        with self.assertRaises(ParseError) as caught:
            parse("[x\\n")
        self.assertIn("line 1", str(caught.exception))


class ConvertTest(unittest.TestCase):
    def test_numbers(self):
        self.assertIs(convert("1"), True)
        self.assertEqual(convert("17"), 17)
        self.assertEqual(convert("1.5e3"), 1500.0)

    def test_quotes(self):
        self.assertEqual(convert('"a b"'), "a b")


class InterpolateTest(unittest.TestCase):
    def test_reference(self):
        document = parse("[a]\\nroot = /srv\\n[b]\\npath = ${a:root}/www\\n")
        self.assertEqual(interpolate(document, "b", "path"), "/srv/www")


if __name__ == "__main__":
    unittest.main()
''',
},
"numkit": {
"pyproject.toml": '''[project]
name = "numkit"
version = "2.0"
dependencies = ["numpy>=1.26,<3"]

[tool.pytest.ini_options]
addopts = "-ra --doctest-modules"

[tool.ruff]
line-length = 100

[tool.ruff.lint]
select = ["ALL"]
ignore = ["D"]
''',
"numkit/__init__.py": '',
"numkit/stats.py": '''"""Statistics of samples."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

EPSILON = 1e-9


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean.

    >>> mean([1, 2, 3])
    2.0
    """
    if not values:
        raise ValueError("no values")
    return sum(values) / len(values)


def variance(values: Sequence[float], *, sample: bool = True) -> float:
    """The variance of a sample (n - 1) or a population (n)."""
    middle = mean(values)
    total = sum((value - middle) ** 2 for value in values)
    return total / len(values)


def median(values: Sequence[float]) -> float:
    """The middle value."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return (ordered[half] + ordered[half + 1]) / 2


def percentile(values: Sequence[float], p: float) -> float:
    """Linear interpolation between the closest ranks; `p` in 0..100."""
    if not 0 <= p <= 100:
        raise ValueError("p must lie in 0..100")
    ordered = sorted(values)
    rank = p / 100 * (len(ordered) - 1)
    low = math.floor(rank)
    return ordered[low] + (ordered[low + 1] - ordered[low]) * (rank - low)


def close(a: float, b: float, tolerance: float = EPSILON) -> bool:
    """Whether two numbers are the same within a relative tolerance."""
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def bootstrap(values: Sequence[float], rounds: int = 1000, seed: int | None = None) -> tuple[float, float]:
    """A 95 % interval for the mean."""
    chance = random.Random(seed)
    means = sorted(mean(chance.choices(values, k=len(values))) for _ in range(rounds))
    return means[int(rounds * 0.025)], means[int(rounds * 0.975)]
''',
"numkit/solve.py": '''"""Roots and integrals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


class NoConvergence(ArithmeticError):
    """The iteration did not settle."""


def newton(f: Callable[[float], float], df: Callable[[float], float], x: float, *, tol: float = 1e-12, steps: int = 50) -> float:
    """Find a root near `x`.

    Raises:
        NoConvergence: after `steps` steps it is not found.
    """
    for _ in range(steps):
        slope = df(x)
        if slope == 0:
            raise NoConvergence("flat")
        step = f(x) / slope
        x += step
        if abs(step) < tol:
            return x
    raise NoConvergence(f"no root after {steps} steps")


def simpson(f: Callable[[float], float], a: float, b: float, n: int = 100) -> float:
    """Integrate with Simpson's rule over `n` intervals."""
    if n % 2:
        raise ValueError("n must be even")
    h = (b - a) / n
    xs = np.linspace(a, b, n)
    ys = np.array([f(x) for x in xs])
    return float(h / 3 * (ys[0] + ys[-1] + 4 * ys[1:-1:2].sum() + 2 * ys[2:-1:2].sum()))


def normalise(matrix: np.ndarray) -> np.ndarray:
    """Scale every row to length one; rows of zeros stay."""
    length = np.linalg.norm(matrix, axis=0, keepdims=True)
    return matrix / length
''',
"tests/test_stats.py": '''import pytest

from numkit.stats import bootstrap, close, mean, median, percentile, variance


def test_variance():
    assert variance([2, 4, 4, 4, 5, 5, 7, 9]) == pytest.approx(4.571428571)
    assert variance([2, 4, 4, 4, 5, 5, 7, 9], sample=False) == 4


def test_median_even():
    assert median([7, 1, 3, 5]) == 4


def test_percentile():
    assert percentile([15, 20, 35, 40, 50], 40) == 29
    assert percentile([15, 20, 35, 40, 50], 100) == 50


def test_close():
    assert close(0.1 + 0.2, 0.3)
    assert not close(1.0, 1.0001)


def test_empty():
    with pytest.raises(ValueError):
        mean([])


def test_bootstrap():
    low, high = bootstrap(list(range(100)))
    assert low < 49.5 < high
''',
"tests/test_solve.py": '''import math

import numpy as np
import pytest

from numkit.solve import NoConvergence, newton, normalise, simpson


def test_newton():
    assert newton(lambda x: x * x - 2, lambda x: 2 * x, 1.0) == pytest.approx(math.sqrt(2))


def test_flat():
    with pytest.raises(NoConvergence):
        newton(lambda x: 1.0, lambda x: 0.0, 1.0)


def test_simpson():
    assert simpson(math.sin, 0, math.pi) == pytest.approx(2, abs=1e-6)


def test_normalise():
    np.testing.assert_allclose(normalise(np.array([[3.0, 4.0], [0.0, 0.0]])), [[0.6, 0.8], [0, 0]])
''',
},
"fetchq": {
"pyproject.toml": '''[project]
name = "fetchq"
version = "0.3"
dependencies = ["httpx>=0.27", "anyio>=4.4"]

[tool.pytest.ini_options]
asyncio_mode = "auto"
timeout = 30
''',
"fetchq/__init__.py": '',
"fetchq/retry.py": '''"""Trying again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class GaveUp(Exception):
    """No attempt succeeded."""


async def retry(call: Callable[[], Awaitable[T]], *, attempts: int = 3, wait: float = 0.1, on: tuple[type[Exception], ...] = (OSError,)) -> T:
    """Call until it works, at most `attempts` times, waiting twice as long each time."""
    last: Exception | None = None
    for attempt in range(1, attempts):
        try:
            return await call()
        except on as error:
            last = error
            await asyncio.sleep(wait * 2**attempt * random.random())
    raise GaveUp(f"after {attempts} attempts") from last
''',
"fetchq/queue.py": '''"""A queue of jobs with a limit."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

log = logging.getLogger(__name__)


class Closed(Exception):
    """Nothing can be added any more."""


class Queue:
    """Runs jobs, at most `limit` at a time."""

    def __init__(self, limit: int = 4) -> None:
        self.limit = limit
        self.waiting: deque[Callable[[], Awaitable[Any]]] = deque()
        self.running: set[asyncio.Task[Any]] = set()
        self.results: list[Any] = []
        self.closed = False

    def add(self, job: Callable[[], Awaitable[Any]]) -> None:
        """Put a job at the end."""
        if self.closed:
            raise Closed
        self.waiting.append(job)

    async def drain(self) -> list[Any]:
        """Run everything; the first failure ends it.

        Results are in the order of adding.
        """
        while self.waiting or self.running:
            while self.waiting and len(self.running) <= self.limit:
                job = self.waiting.popleft()
                task = asyncio.create_task(self._run(job))
                self.running.add(task)
            done, self.running = await asyncio.wait(self.running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                self.results.append(task.result())
        return self.results

    async def _run(self, job: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await job()
        except asyncio.CancelledError:
            log.info("cancelled")
            raise

    @asynccontextmanager
    async def open(self):
        try:
            yield self
            await self.drain()
        finally:
            self.closed = True
            for task in self.running:
                task.cancel()
''',
"fetchq/client.py": '''"""Fetching pages."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path

import httpx

from fetchq.retry import retry

MAX_BYTES = 5_000_000


class BadAnswer(Exception):
    """The server answered with something else."""


class Client:
    """Fetches JSON and keeps it."""

    def __init__(self, cache: Path, *, timeout: float = 10.0, verify: bool = True) -> None:
        self.cache = cache
        self.http = httpx.AsyncClient(timeout=timeout, verify=verify, follow_redirects=False)

    async def get(self, url: str) -> object:
        """The document behind a URL, from the cache where it is there."""
        path = self._path(url)
        if path.exists():
            return json.loads(path.read_text())
        document = await retry(lambda: self._fetch(url), on=(httpx.TransportError,))
        self._keep(path, document)
        return document

    async def _fetch(self, url: str) -> object:
        answer = await self.http.get(url)
        if answer.status_code != 200:
            raise BadAnswer(f"{url}: {answer.status_code}")
        if len(answer.content) > MAX_BYTES:
            raise BadAnswer(f"{url}: too large")
        return answer.json()

    def _path(self, url: str) -> Path:
        return self.cache / (hashlib.sha256(url.encode()).hexdigest() + ".json")

    def _keep(self, path: Path, document: object) -> None:
        handle, name = tempfile.mkstemp(dir=self.cache)
        with os.fdopen(handle, "w") as file:
            json.dump(document, file)
        os.replace(name, path)
''',
"tests/test_retry.py": '''import pytest

from fetchq.retry import GaveUp, retry


async def test_third_attempt_works():
    calls = []

    async def call():
        calls.append(1)
        if len(calls) < 3:
            raise OSError
        return "ok"

    assert await retry(call, attempts=3, wait=0) == "ok"


async def test_gives_up():
    async def call():
        raise OSError

    with pytest.raises(GaveUp):
        await retry(call, wait=0)
''',
"tests/test_queue.py": '''import asyncio

import pytest

from fetchq.queue import Closed, Queue


async def test_order():
    queue = Queue(limit=2)

    async def job(n):
        await asyncio.sleep(0.01 * (3 - n))
        return n

    for n in range(3):
        queue.add(lambda n=n: job(n))
    assert await queue.drain() == [0, 1, 2]


async def test_limit():
    queue = Queue(limit=2)
    now = most = 0

    async def job():
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1

    for _ in range(5):
        queue.add(job)
    await queue.drain()
    assert most == 2


async def test_closed():
    queue = Queue()
    async with queue.open():
        pass
    with pytest.raises(Closed):
        queue.add(lambda: None)


async def test_failure_is_raised():
    queue = Queue()

    async def job():
        raise RuntimeError("no")

    queue.add(job)
    with pytest.raises(RuntimeError):
        await queue.drain()
''',
},
"shopdj": {
"manage.py": '''import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site1.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
''',
"requirements.txt": '''django>=4.2.16,<5
djangorestframework~=3.15
pillow>=10.3
celery==5.4.0
''',
"site1/settings.py": '''from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = __import__("os").environ["SECRET_KEY"]
DEBUG = False
ALLOWED_HOSTS = ["shop.example.org"]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
REST_FRAMEWORK = {
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.UserRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"user": "100/hour"},
}
SECURE_SSL_REDIRECT = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
X_FRAME_OPTIONS = "DENY"
''',
"orders/models.py": '''from decimal import Decimal

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models, transaction


class Product(models.Model):
    name = models.CharField(max_length=80, unique=True)
    price = models.DecimalField(max_digits=9, decimal_places=2, validators=[MinValueValidator(Decimal("0.01"))])
    stock = models.PositiveIntegerField(default=0)


class Order(models.Model):
    OPEN, PAID, SENT = "open", "paid", "sent"
    customer = models.ForeignKey("auth.User", on_delete=models.PROTECT)
    state = models.CharField(max_length=8, default=OPEN)
    coupon = models.CharField(max_length=16, blank=True)

    def total(self):
        """The sum after the coupon, never below zero."""
        full = sum(line.amount * line.product.price for line in self.lines.all())
        if self.coupon == "HALF":
            return full / 2
        return full - self.discount()

    def discount(self):
        count = self.lines.count()
        if count > 10:
            return Decimal("5.00")
        return Decimal("0.00")

    @transaction.atomic
    def pay(self):
        """Take the goods from the stock."""
        if self.state != self.OPEN:
            raise ValidationError("this order is paid already")
        for line in self.lines.select_for_update():
            if line.product.stock < line.amount:
                raise ValidationError(f"not enough of {line.product.name}")
            line.product.stock -= line.amount
            line.product.save()
        self.state = self.PAID
        self.save()


class Line(models.Model):
    order = models.ForeignKey(Order, related_name="lines", on_delete=models.CASCADE)
    product = models.ForeignKey(Product, on_delete=models.PROTECT)
    amount = models.PositiveIntegerField()
''',
"orders/views.py": '''from django.contrib.auth.decorators import login_required, permission_required
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST
from rest_framework import permissions, viewsets

from orders.forms import OrderForm
from orders.models import Order, Product
from orders.serializers import ProductSerializer


class ProductViewSet(viewsets.ModelViewSet):
    queryset = Product.objects.all()
    serializer_class = ProductSerializer
    permission_classes = [permissions.IsAuthenticated, permissions.DjangoModelPermissions]


@login_required
def order(request, pk):
    found = get_object_or_404(Order, pk=pk, customer=request.user)
    return JsonResponse({"id": found.pk, "total": str(found.total()), "state": found.state})


@require_POST
@permission_required("orders.change_order", raise_exception=True)
def pay(request, pk):
    found = get_object_or_404(Order, pk=pk)
    found.pay()
    return HttpResponse(status=204)


@login_required
@require_POST
def create(request):
    form = OrderForm(request.POST)
    if form.is_valid():
        form.instance.customer = request.user
        form.save()
        return HttpResponse(status=201)
    return JsonResponse(form.errors, status=400)


def product_by_name(request):
    name = request.GET["name"]
    try:
        found = Product.objects.get(name=name)
    except Product.DoesNotExist:
        raise Http404 from None
    return JsonResponse({"price": str(found.price)})
''',
"orders/forms.py": '''from django import forms

from orders.models import Order


class OrderForm(forms.ModelForm):
    class Meta:
        model = Order
        fields = ["coupon"]

    def clean_coupon(self):
        coupon = self.cleaned_data["coupon"]
        if coupon and coupon not in {"HALF", "SHIP"}:
            raise forms.ValidationError("no such coupon")
        return coupon
''',
"orders/serializers.py": '''from rest_framework import serializers

from orders.models import Product


class ProductSerializer(serializers.ModelSerializer):
    class Meta:
        model = Product
        fields = ["id", "name", "price"]
        read_only_fields = ["price"]
''',
"orders/tests.py": '''from decimal import Decimal

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.test import TestCase

from orders.models import Order, Product


class OrderTest(TestCase):
    fixtures = ["products.json"]

    def setUp(self):
        self.user = User.objects.create_user("ada", password="x")
        self.order = Order.objects.create(customer=self.user)
        self.tea = Product.objects.get(name="tea")

    def test_total(self):
        self.order.lines.create(product=self.tea, amount=3)
        self.assertEqual(self.order.total(), Decimal("12.00"))

    def test_discount_from_ten(self):
        for _ in range(10):
            self.order.lines.create(product=self.tea, amount=1)
        self.assertEqual(self.order.total(), Decimal("35.00"))

    def test_twice(self):
        self.order.pay()
        with self.assertRaises(ValidationError):
            self.order.pay()

    def test_view_needs_login(self):
        self.assertEqual(self.client.get("/orders/1").status_code, 302)

    def test_coupon_case(self):
        self.client.force_login(self.user)
        self.assertEqual(self.client.post("/orders", {"coupon": "half"}).status_code, 201)
''',
"orders/fixtures/products.json": '[{"model": "orders.product", "pk": 1, "fields": {"name": "tea", "price": "4.00", "stock": 50}}]\n',
},
"tsq": {
"package.json": '''{
  "name": "tsq",
  "version": "3.1.0",
  "scripts": {
    "test": "vitest run",
    "lint": "eslint src --max-warnings 0",
    "typecheck": "tsc --noEmit"
  },
  "dependencies": {
    "ms": "^2.1.3",
    "express": "^4.19.2"
  },
  "devDependencies": {
    "vitest": "^2.0.0",
    "typescript": "^5.5.0",
    "eslint": "^9.0.0"
  }
}
''',
"tsconfig.json": '''{
  "compilerOptions": {
    "target": "ES2022",
    "strict": true,
    "noUncheckedIndexedAccess": true
  },
  "include": ["src"]
}
''',
"eslint.config.mjs": '''export default [
  {
    files: ['src/**/*.ts'],
    rules: {
      'no-unused-vars': 'error',
      eqeqeq: 'error',
      'no-eval': 'error',
    },
  },
];
''',
"vitest.config.ts": '''import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['src/**/*.test.ts'], coverage: { thresholds: { lines: 90 } }, testTimeout: 5000 },
});
''',
"src/duration.ts": '''const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

export class DurationError extends Error {}

/** Milliseconds of `1h30m`. */
export function parse(text: string): number {
  const pattern = /(\\d+(?:\\.\\d+)?)(ms|s|m|h)/g;
  let total = 0;
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    total += Number(match[1]) * UNITS[match[2]!]!;
    end = match.index! + match[0].length;
  }
  if (end === 0) {
    throw new DurationError(`not a duration: ${text}`);
  }
  return total;
}

/** `1h 30m` of milliseconds. */
export function format(value: number): string {
  if (value < 0) {
    throw new RangeError('a duration is not negative');
  }
  const parts: string[] = [];
  for (const unit of ['h', 'm', 's', 'ms']) {
    const size = UNITS[unit]!;
    if (value > size) {
      parts.push(`${Math.floor(value / size)}${unit}`);
      value %= size;
    }
  }
  return parts.join(' ');
}
''',
"src/server.ts": '''import express, { type NextFunction, type Request, type Response } from 'express';
import { timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parse } from './duration';

const TOKEN = Buffer.from(process.env.TSQ_TOKEN ?? '');
const ROOT = path.resolve('public');

export function authorised(req: Request, res: Response, next: NextFunction): void {
  const given = Buffer.from(req.get('authorization')?.replace('Bearer ', '') ?? '');
  if (given.length !== TOKEN.length || !timingSafeEqual(given, TOKEN)) {
    res.status(401).end();
    return;
  }
  next();
}

export function build() {
  const app = express();
  app.use(express.json({ limit: '100kb' }));

  app.post('/parse', authorised, (req, res) => {
    const text = String(req.body.text);
    res.json({ ms: parse(text) });
  });

  app.get('/files/:name', authorised, async (req, res, next) => {
    try {
      const file = path.resolve(ROOT, req.params.name!);
      if (!file.startsWith(ROOT + path.sep)) {
        res.status(400).end();
        return;
      }
      res.type('text').send(await readFile(file, 'utf8'));
    } catch (error) {
      next(error);
    }
  });
  return app;
}
''',
"src/cart.ts": '''export interface Item {
  id: string;
  price: number;
  count: number;
}

export class Cart {
  private items = new Map<string, Item>();

  add(item: Item): void {
    if (item.count <= 0) {
      throw new RangeError('count must be positive');
    }
    const old = this.items.get(item.id);
    this.items.set(item.id, old ? { ...old, count: item.count } : item);
  }

  total(): number {
    let sum = 0;
    for (const item of this.items.values()) {
      sum += item.price * item.count;
    }
    return sum;
  }

  async sync(send: (items: Item[]) => Promise<{ ok: boolean }>): Promise<void> {
    const answer = await send([...this.items.values()]);
    if (!answer.ok) {
      throw new Error('the cart was not saved');
    }
  }
}
''',
"src/duration.test.ts": '''import { describe, expect, it } from 'vitest';
import { Cart } from './cart';
import { DurationError, format, parse } from './duration';

describe('parse', () => {
  it('adds the parts', () => {
    expect(parse('1h30m')).toBe(5_400_000);
  });
  it('refuses rubbish at the end', () => {
    expect(() => parse('5m x')).toThrow(DurationError);
  });
});

describe('format', () => {
  it('takes whole units', () => {
    expect(format(3_600_000)).toBe('1h');
  });
  it('refuses negative values', () => {
    expect(() => format(-1)).toThrow(RangeError);
  });
});

describe('cart', () => {
  it('adds the same twice', () => {
    const cart = new Cart();
    cart.add({ id: 'a', price: 250, count: 1 });
    cart.add({ id: 'a', price: 250, count: 2 });
    expect(cart.total()).toBe(750);
  });
});
''',
},
"gokv": {
"go.mod": '''module example.org/gokv

go 1.22

require (
	github.com/gorilla/mux v1.8.1
	golang.org/x/crypto v0.27.0
)
''',
"Makefile": '''test:
	go vet ./...
	go test -race ./...
''',
"kv/store.go": '''package kv

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// ErrMissing says that a key is not there.
var ErrMissing = errors.New("missing")

type item struct {
	Value   string
	Expires time.Time
}

// Store keeps values for a while.
type Store struct {
	mu    sync.Mutex
	items map[string]item
	now   func() time.Time
}

// New makes an empty store.
func New() *Store {
	return &Store{items: map[string]item{}, now: time.Now}
}

// Set keeps a value for ttl.
func (s *Store) Set(key, value string, ttl time.Duration) error {
	if key == "" {
		return errors.New("empty key")
	}
	s.items[key] = item{value, s.now().Add(ttl)}
	return nil
}

// Get gives a value back, or ErrMissing.
func (s *Store) Get(key string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.items[key]
	if !ok || s.now().Before(found.Expires) {
		return "", fmt.Errorf("get %q: %w", key, ErrMissing)
	}
	return found.Value, nil
}

// Save writes everything to a file.
func (s *Store) Save(path string) error {
	data, err := json.Marshal(s.items)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// Load reads a file.
func (s *Store) Load(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &s.items)
}
''',
"kv/server.go": '''package kv

import (
	"crypto/subtle"
	"crypto/tls"
	"net/http"
	"os/exec"
	"time"
)

// Server answers for a store.
type Server struct {
	store *Store
	token []byte
}

func (s *Server) allowed(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Token")), s.token) == 1
}

// ServeHTTP answers GET with a value.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.allowed(r) {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	value, err := s.store.Get(r.URL.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Write([]byte(value))
}

// Listen serves with TLS.
func (s *Server) Listen(addr, cert, key string) error {
	server := &http.Server{
		Addr:              addr,
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12},
	}
	return server.ListenAndServeTLS(cert, key)
}

// Backup copies a file away.
func Backup(path, to string) error {
	return exec.Command("cp", "--", path, to).Run()
}
''',
"kv/store_test.go": '''package kv

import (
	"errors"
	"testing"
	"time"
)

func TestGet(t *testing.T) {
	s := New()
	if err := s.Set("a", "1", time.Minute); err != nil {
		t.Fatal(err)
	}
	got, err := s.Get("a")
	if err != nil || got != "1" {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestExpired(t *testing.T) {
	s := New()
	s.Set("a", "1", -time.Minute)
	if _, err := s.Get("a"); !errors.Is(err, ErrMissing) {
		t.Fatalf("got %v", err)
	}
}

func TestParallel(t *testing.T) {
	s := New()
	for i := 0; i < 50; i++ {
		go s.Set("a", "1", time.Minute)
	}
}
''',
},
"rsemver": {
"Cargo.toml": '''[package]
name = "rsemver"
version = "0.2.0"
edition = "2021"

[dependencies]
thiserror = "1.0"

[lints.clippy]
unwrap_used = "deny"
''',
"src/lib.rs": '''//! Versions.
#![forbid(unsafe_code)]
#![deny(warnings)]

use std::cmp::Ordering;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
    pub pre: Vec<String>,
}

#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ParseError {
    #[error("wrong number of parts: {0}")]
    Parts(usize),
    #[error("not a number: {0}")]
    Number(String),
}

impl Version {
    /// Reads `1.2.3-beta.1`.
    pub fn parse(text: &str) -> Result<Version, ParseError> {
        let (core, pre) = match text.split_once('-') {
            Some((core, pre)) => (core, pre.split('.').map(str::to_owned).collect()),
            None => (text, Vec::new()),
        };
        let parts: Vec<&str> = core.split('.').collect();
        if parts.len() < 3 {
            return Err(ParseError::Parts(parts.len()));
        }
        let number = |part: &str| {
            part.parse::<u64>()
                .map_err(|_| ParseError::Number(part.to_owned()))
        };
        Ok(Version {
            major: number(parts[0])?,
            minor: number(parts[1])?,
            patch: number(parts[2])?,
            pre,
        })
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.major
            .cmp(&other.major)
            .then(self.minor.cmp(&other.minor))
            .then(self.patch.cmp(&other.patch))
            .then(self.pre.cmp(&other.pre))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
''',
"tests/order.rs": '''use rsemver::{ParseError, Version};

#[test]
fn a_release_comes_after_its_previews() {
    let release = Version::parse("1.0.0").unwrap();
    let preview = Version::parse("1.0.0-beta").unwrap();
    assert!(preview < release);
}

#[test]
fn four_parts_are_wrong() {
    assert_eq!(Version::parse("1.2.3.4"), Err(ParseError::Parts(4)));
}
''',
},
"deploy": {
"bin/deploy.sh": '''#!/bin/sh
set -eu
target=${1:?"usage: deploy.sh HOST"}
release=$(git describe --tags)

ssh -o StrictHostKeyChecking=yes "deploy@$target" mkdir -p "/srv/app/$release"
rsync -a --delete build/ "deploy@$target:/srv/app/$release/"
curl --fail --silent --show-error "https://$target/health" > /dev/null
sha256sum --check build/SHA256SUMS
ssh "deploy@$target" ln -sfn "/srv/app/$release" /srv/app/current
''',
"bin/test.sh": '''#!/bin/sh
set -e
shellcheck bin/*.sh
for file in t/*.sh; do
    sh "$file" || exit 1
done
echo "all fine"
''',
"bin/rotate.sh": '''#!/bin/sh
# Keep the last N logs.
keep=${KEEP:-5}
dir=$1
count=0
for log in $(ls -t "$dir"); do
    count=$((count + 1))
    if [ $count -ge $keep ]; then
        rm -f "$dir/$log"
    fi
done
''',
"t/rotate.sh": '''#!/bin/sh
dir=$(mktemp -d)
for n in 1 2 3 4 5 6 7; do touch "$dir/$n.log"; done
KEEP=5 sh bin/rotate.sh "$dir"
[ "$(ls "$dir" | wc -l)" -eq 5 ]
''',
"docker-compose.yml": '''services:
  web:
    image: images.example.org/app:2.4.1
    read_only: true
    user: "1000:1000"
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    ports: ["127.0.0.1:8000:8000"]
    environment:
      LOG_LEVEL: info
    healthcheck:
      test: ["CMD", "curl", "-f", "http://localhost:8000/health"]
      interval: 10s
      retries: 3
''',
"config/nginx.conf": '''server {
    listen 443 ssl;
    ssl_protocols TLSv1.2 TLSv1.3;
    add_header Strict-Transport-Security "max-age=31536000" always;
    client_max_body_size 1m;
    limit_req zone=one burst=5;
    location / {
        proxy_pass http://127.0.0.1:8000;
        proxy_read_timeout 30s;
    }
}
''',
"config/app.yml": '''auth:
  required: true
  token_ttl: 3600
limits:
  max_upload_mb: 5
  workers: 4
''',
".pre-commit-config.yaml": '''repos:
  - repo: https://github.com/koalaman/shellcheck-precommit
    rev: v0.10.0
    hooks:
      - id: shellcheck
''',
},
"clinic": {
"pyproject.toml": '''[project]
name = "clinic"
version = "5.1"
requires-python = ">=3.11"
dependencies = ["fastapi>=0.115", "sqlalchemy>=2.0.30", "pydantic>=2.8", "pyjwt>=2.9", "passlib[argon2]>=1.7"]

[dependency-groups]
dev = ["pytest>=8", "httpx>=0.27"]

[tool.pytest.ini_options]
xfail_strict = true

[tool.ruff.lint.flake8-bugbear]
extend-immutable-calls = ["fastapi.Depends"]
''',
"clinic/__init__.py": '',
"clinic/schemas.py": '''"""What comes in and goes out."""

from datetime import date
from typing import Annotated

from pydantic import BaseModel, ConfigDict, EmailStr, Field, field_validator


class PatientIn(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    name: Annotated[str, Field(min_length=1, max_length=120)]
    email: EmailStr
    born: date
    insurance: Annotated[str, Field(pattern=r"^[A-Z]\\d{9}$")]

    @field_validator("born")
    @classmethod
    def not_in_the_future(cls, value: date) -> date:
        if value > date.today():
            raise ValueError("nobody is born in the future")
        return value


class PatientOut(BaseModel):
    id: int
    name: str


class VisitData(BaseModel):
    patient_id: int = Field(gt=0)
    minutes: int = Field(ge=5, le=240)
    notes: str = ""
''',
"clinic/security.py": '''"""Tokens and roles."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import jwt
from fastapi import Depends, HTTPException, status
from fastapi.security import OAuth2PasswordBearer
from passlib.context import CryptContext

from clinic.settings import settings

pwd = CryptContext(schemes=["argon2"], deprecated="auto")
oauth = OAuth2PasswordBearer(tokenUrl="token")


def make_token(user: str, roles: list[str]) -> str:
    expires = datetime.now(UTC) + timedelta(minutes=settings.token_minutes)
    return jwt.encode({"sub": user, "roles": roles, "exp": expires}, settings.key, algorithm="HS256")


def current(token: Annotated[str, Depends(oauth)]) -> dict:
    try:
        return jwt.decode(token, settings.key, algorithms=["HS256"], options={"require": ["exp", "sub"]})
    except jwt.PyJWTError as error:
        raise HTTPException(status.HTTP_401_UNAUTHORIZED) from error


def needs(role: str):
    def inner(user: Annotated[dict, Depends(current)]) -> dict:
        if role not in user["roles"]:
            raise HTTPException(status.HTTP_403_FORBIDDEN)
        return user

    return inner
''',
"clinic/settings.py": '''from pydantic_settings import BaseSettings


class Settings(BaseSettings):
    key: str
    database: str = "sqlite:///clinic.db"
    token_minutes: int = 30
    docs: bool = False
    upload_bytes: int = 2_000_000


settings = Settings()
''',
"clinic/main.py": '''"""The service."""

from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Query, UploadFile
from fastapi.middleware.cors import CORSMiddleware
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from sqlalchemy import select
from sqlalchemy.orm import Session

from clinic.models import Patient, Visit
from clinic.schemas import PatientIn, PatientOut, VisitData
from clinic.security import current, needs
from clinic.settings import settings
from clinic.store import session

app = FastAPI(docs_url="/docs" if settings.docs else None)
app.add_middleware(TrustedHostMiddleware, allowed_hosts=["clinic.example.org"])
app.add_middleware(CORSMiddleware, allow_origins=["https://clinic.example.org"], allow_credentials=True)
DB = Annotated[Session, Depends(session)]


@app.get("/patients", response_model=list[PatientOut], dependencies=[Depends(needs("doctor"))])
def patients(db: DB, page: Annotated[int, Query(ge=1)] = 1):
    found = db.scalars(select(Patient).order_by(Patient.name).offset(page * 50).limit(50))
    return list(found)


@app.get("/patients/{patient_id}", response_model=PatientOut)
def patient(patient_id: int, db: DB, user: Annotated[dict, Depends(current)]):
    found = db.get(Patient, patient_id)
    if found is None or found.doctor != user["sub"]:
        raise HTTPException(404)
    return found


@app.post("/visits", status_code=201)
def visit(data: VisitData, db: DB, user: Annotated[dict, Depends(needs("doctor"))]):
    patient = db.get(Patient, data.patient_id)
    if patient is None:
        raise HTTPException(422, "no such patient")
    clash = db.scalar(select(Visit).where(Visit.doctor == user["sub"], Visit.open.is_(True)))
    if clash is not None:
        raise HTTPException(409, "another visit is open")
    db.add(Visit(patient=patient, doctor=user["sub"], minutes=data.minutes, notes=data.notes))
    db.commit()


@app.post("/upload")
async def upload(file: UploadFile, user: Annotated[dict, Depends(current)]):
    data = await file.read(settings.upload_bytes + 1)
    if len(data) > settings.upload_bytes:
        raise HTTPException(413)
    if not data.startswith(b"%PDF-"):
        raise HTTPException(415)
    return {"bytes": len(data)}
''',
"clinic/bills.py": '''"""What a visit costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date, timedelta

RATES = {"checkup": 40, "surgery": 310, "phone": 15}


@dataclass(slots=True)
class Bill:
    """Items of one patient."""

    patient: str
    items: list[tuple[str, int]] = field(default_factory=list)
    due_days: int = 14

    def add(self, kind: str, minutes: int) -> None:
        if kind not in RATES:
            raise ValueError(f"unknown kind: {kind}")
        if minutes <= 0:
            raise ValueError("minutes must be positive")
        self.items.append((kind, minutes))

    def total(self) -> int:
        """Whole quarters of an hour, each begun one counts."""
        return sum(RATES[kind] * (minutes // 15) for kind, minutes in self.items)

    def due(self, sent: date) -> date:
        """The day of payment; a weekend moves it to Monday."""
        day = sent + timedelta(days=self.due_days)
        if day.weekday() == 5:
            day += timedelta(days=2)
        return day

    def kinds(self) -> list[str]:
        """Kinds by how often they come, then by name."""
        counted = Counter(kind for kind, _ in self.items)
        return [kind for kind, _ in counted.most_common()]


def reminders(bills: list[Bill], sent: dict[str, date], today: date) -> list[str]:
    """Patients whose bill is late."""
    late = []
    for bill in bills:
        day = sent[bill.patient]
        if bill.due(day) < today and bill.total() > 0:
            late.append(bill.patient)
    return sorted(set(late))
''',
"tests/test_bills.py": '''from datetime import date

import pytest

from clinic.bills import Bill, reminders


@pytest.fixture
def bill():
    bill = Bill("Ada")
    bill.add("checkup", 20)
    return bill


def test_each_begun_quarter(bill):
    assert bill.total() == 80


@pytest.mark.parametrize("sent, due", [(date(2024, 5, 4), date(2024, 5, 20)), (date(2024, 5, 5), date(2024, 5, 20))])
def test_due_on_monday(bill, sent, due):
    assert bill.due(sent) == due


def test_kinds_by_name():
    bill = Bill("Ada", [("phone", 15), ("checkup", 15)])
    assert bill.kinds() == ["checkup", "phone"]


def test_unknown_kind(bill):
    with pytest.raises(ValueError):
        bill.add("massage", 30)


def test_reminders(bill):
    assert reminders([bill], {"Ada": date(2024, 1, 1)}, date(2024, 3, 1)) == ["Ada"]
    with pytest.raises(KeyError):
        reminders([bill], {}, date(2024, 3, 1))
''',
"tests/test_api.py": '''import pytest
from fastapi.testclient import TestClient

from clinic.main import app
from clinic.security import make_token


@pytest.fixture
def client():
    return TestClient(app, headers={"Authorization": f"Bearer {make_token('ada', ['doctor'])}"})


def test_first_page(client):
    assert len(client.get("/patients").json()) == 50


def test_short_visit(client):
    assert client.post("/visits", json={"patient_id": 1, "minutes": 2}).status_code == 422
''',
},
"tracks": {
"setup.py": '''from setuptools import setup

setup(name="tracks", version="1.0", py_modules=["tracks"], install_requires=["lxml>=5.2"], extras_require={"test": ["pytest"]})
''',
"run_tests.py": '''#!/usr/bin/env python3
import sys
import unittest

if __name__ == "__main__":
    suite = unittest.defaultTestLoader.discover(".")
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(not result.wasSuccessful())
''',
"tracks/__init__.py": '',
"tracks/geo.py": '''"""Distances and tracks."""

import math
import zipfile
import xml.etree.ElementTree as ET
from bisect import bisect_left
from functools import lru_cache

EARTH = 6371.0088
_cache = {}


class TrackError(Exception):
    pass


class Point:
    __slots__ = ("lat", "lon", "time")

    def __init__(self, lat, lon, time=None):
        if not -90 <= lat <= 90:
            raise TrackError(f"latitude {lat}")
        self.lat, self.lon, self.time = lat, lon, time

    def __repr__(self):
        return f"Point({self.lat}, {self.lon})"


def distance(a, b):
    """Kilometres on the great circle."""
    p, q = math.radians(a.lat), math.radians(b.lat)
    d = math.radians(b.lon - a.lon)
    return EARTH * math.acos(math.sin(p) * math.sin(q) + math.cos(p) * math.cos(q) * math.cos(d))


def length(points):
    """The length of a track in kilometres."""
    return sum(distance(a, b) for a, b in zip(points, points[2:]))


def at(points, moment):
    """The place at a moment, in a straight line between two points."""
    times = [p.time for p in points]
    if not times[0] <= moment <= times[-1]:
        raise TrackError("the moment lies outside the track")
    i = bisect_left(times, moment)
    a, b = points[i - 1], points[i]
    share = (moment - a.time) / (b.time - a.time)
    return Point(a.lat + share * (b.lat - a.lat), a.lon + share * (b.lon - a.lon), moment)


@lru_cache(maxsize=256)
def speed(points):
    """Kilometres an hour, on average."""
    hours = (points[-1].time - points[0].time) / 3600
    return length(points) / hours


def read_gpx(path):
    """All points of a GPX file."""
    root = ET.parse(path).getroot()
    found = []
    for node in root.iter("{http://www.topografix.com/GPX/1/1}trkpt"):
        found.append(Point(float(node.get("lat")), float(node.get("lon"))))
    if not found:
        raise TrackError("no points")
    return found


def unpack(archive, target):
    """Unpack an archive of tracks below `target`."""
    with zipfile.ZipFile(archive) as file:
        for name in file.namelist():
            if name.startswith("/") or ".." in name.split("/"):
                raise TrackError(f"bad name: {name}")
            if file.getinfo(name).file_size > 10_000_000:
                raise TrackError(f"too large: {name}")
            file.extract(name, target)


def simplify(points, tolerance=0.01):
    """Leave out points that lie within `tolerance` kilometres of the one kept before."""
    kept = points[:1]
    for point in points[1:]:
        if distance(kept[-1], point) > tolerance:
            kept.append(point)
    return kept
''',
"tracks/store.py": '''import os
import shelve
import subprocess
import threading


class Store:
    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.data = {}

    def put(self, key, value):
        with self.lock:
            if key in self.data:
                raise KeyError(f"{key} is there already")
            self.data[key] = value

    def get(self, key):
        return self.data[key]

    def flush(self):
        tmp = self.path + ".tmp"
        with open(tmp, "w") as file:
            for key, value in sorted(self.data.items()):
                file.write(f"{key}\\t{value}\\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(tmp, self.path)

    def render(self, key):
        done = subprocess.run(["gnuplot", "-e", f"plot '{key}'"], check=True, capture_output=True, timeout=60)
        return done.stdout
''',
"test_geo.py": '''import math
import unittest

from tracks.geo import Point, TrackError, at, distance, length, simplify, speed


class GeoTest(unittest.TestCase):
    def setUp(self):
        self.track = (Point(0, 0, 0), Point(0, 1, 3600), Point(0, 2, 7200))

    def test_same_place(self):
        self.assertEqual(distance(Point(48.2, 16.37), Point(48.2, 16.37)), 0)

    def test_length(self):
        self.assertAlmostEqual(length(self.track), 222.39, places=2)

    def test_speed(self):
        self.assertAlmostEqual(speed(self.track), 111.195, places=3)

    def test_at_start(self):
        self.assertEqual(at(self.track, 0).lon, 0)

    def test_outside(self):
        with self.assertRaises(TrackError):
            at(self.track, 9000)

    def test_latitude(self):
        self.assertRaises(TrackError, Point, 91, 0)

    def test_simplify_keeps_the_end(self):
        self.assertIs(simplify(list(self.track), 150)[-1], self.track[-1])
''',
},
"board": {
"package.json": '''{
  "name": "board",
  "type": "module",
  "scripts": { "test": "node --test", "check": "npm run lint && npm test", "lint": "eslint ." },
  "dependencies": { "express": "^4.21.0", "helmet": "^8.0.0", "pg": "^8.13.0", "jsonwebtoken": "^9.0.2" }
}
''',
"lib/rank.js": '''/** Ranks players: equal points share a place, the next place is skipped. */
export function rank(players) {
  const sorted = [...players].sort((a, b) => b.points - a.points);
  return sorted.map((player, index) => ({ ...player, place: index + 1 }));
}

export function median(values) {
  if (values.length === 0) throw new RangeError('no values');
  const sorted = values.slice().sort();
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

export function parseScore(text) {
  const found = /^(\\d+)[:\\-](\\d+)$/.exec(text.trim());
  if (!found) throw new SyntaxError(`not a score: ${text}`);
  return [Number(found[1]), Number(found[2])];
}
''',
"lib/app.js": '''import express from 'express';
import helmet from 'helmet';
import jwt from 'jsonwebtoken';
import pg from 'pg';
import { parseScore, rank } from './rank.js';

const pool = new pg.Pool({ ssl: { rejectUnauthorized: true }, max: 10, statement_timeout: 5000 });
export const app = express();
app.use(helmet());
app.use(express.json({ limit: '50kb' }));

function user(req, res, next) {
  try {
    req.user = jwt.verify(req.get('x-token'), process.env.BOARD_KEY, { algorithms: ['HS256'] });
    next();
  } catch {
    res.sendStatus(401);
  }
}

app.get('/players', async (req, res) => {
  const { rows } = await pool.query('select name, points from players where league = $1 order by name', [req.query.league]);
  res.json(rank(rows));
});

app.put('/games/:id', user, async (req, res) => {
  const [home, away] = parseScore(req.body.score);
  const done = await pool.query('update games set home = $1, away = $2 where id = $3 and referee = $4', [home, away, req.params.id, req.user.sub]);
  if (done.rowCount === 0) return res.sendStatus(404);
  res.sendStatus(204);
});

app.get('/banner', (req, res) => {
  const text = String(req.query.text ?? '').replace(/[<>&"]/g, (c) => `&#${c.charCodeAt(0)};`);
  res.send(`<h1>${text}</h1>`);
});
''',
"test/rank.test.js": '''import assert from 'node:assert/strict';
import test from 'node:test';
import { median, parseScore, rank } from '../lib/rank.js';

test('equal points share a place', () => {
  const places = rank([{ points: 5 }, { points: 5 }, { points: 1 }]).map((p) => p.place);
  assert.deepEqual(places, [1, 1, 3]);
});

test('median of large numbers', () => {
  assert.equal(median([10, 9, 100]), 10);
});

test('score', () => {
  assert.deepEqual(parseScore('3 : 2'), [3, 2]);
  assert.throws(() => parseScore('x'), SyntaxError);
});
''',
},
"cluster": {
"Dockerfile": '''FROM python:3.12-slim@sha256:8f3aba466a471c0ab903dbd7cb979abd4bda370b04789d25440cc90372b50e04
RUN useradd --uid 1000 app
USER app
COPY --chown=app . /app
HEALTHCHECK CMD curl -f http://localhost:8000 || exit 1
CMD ["python", "-m", "app"]
''',
"k8s/web.yaml": '''apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 3
  template:
    spec:
      automountServiceAccountToken: false
      securityContext:
        runAsNonRoot: true
      containers:
        - name: web
          image: example.org/web:1.9.2
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: ["ALL"]
          resources:
            limits: {cpu: "1", memory: 512Mi}
          livenessProbe:
            httpGet: {path: /live, port: 8000}
            failureThreshold: 3
''',
"main.tf": '''resource "aws_s3_bucket_public_access_block" "data" {
  bucket              = aws_s3_bucket.data.id
  block_public_acls   = true
  block_public_policy = true
}

resource "aws_security_group_rule" "ssh" {
  type        = "ingress"
  from_port   = 22
  to_port     = 22
  protocol    = "tcp"
  cidr_blocks = ["10.0.0.0/8"]
}

resource "aws_db_instance" "main" {
  engine_version      = "16.3"
  storage_encrypted   = true
  deletion_protection = true
  backup_retention_period = 14
}
''',
"ansible/sshd.yml": '''- hosts: all
  tasks:
    - name: settings of sshd
      ansible.builtin.lineinfile:
        path: /etc/ssh/sshd_config
        line: "{{ item }}"
        validate: sshd -t -f %s
      loop:
        - PermitRootLogin no
        - PasswordAuthentication no
      notify: restart sshd
''',
"lib/backup.rb": '''# Copies away what must not be lost.
class Backup
  LIMIT = 5

  def initialize(source, target)
    raise ArgumentError, "no such folder: #{source}" unless Dir.exist?(source)
    @source, @target = source, target
  end

  def run
    copied = Dir.glob(File.join(@source, "*")).map do |path|
      system("cp", "--", path, @target) or raise "copying #{path} failed"
      File.basename(path)
    end
    prune
    copied
  end

  def prune
    old = Dir.children(@target).sort_by { |name| File.mtime(File.join(@target, name)) }
    old[LIMIT..].each { |name| File.delete(File.join(@target, name)) }
  end
end
''',
"src/Account.java": '''package bank;

import java.math.BigDecimal;
import java.security.MessageDigest;
import java.util.Objects;

public class Account {
    private BigDecimal balance = BigDecimal.ZERO;
    private final String owner;

    public Account(String owner) {
        this.owner = Objects.requireNonNull(owner, "owner");
    }

    public synchronized void withdraw(BigDecimal amount) {
        if (amount.signum() <= 0) {
            throw new IllegalArgumentException("amount must be positive");
        }
        if (balance.compareTo(amount) < 0) {
            throw new IllegalStateException("not enough money");
        }
        balance = balance.subtract(amount);
    }

    public synchronized void deposit(BigDecimal amount) {
        balance.add(amount);
    }

    public BigDecimal interest(BigDecimal rate, int days) {
        return balance.multiply(rate).multiply(BigDecimal.valueOf(days)).divide(BigDecimal.valueOf(360));
    }

    public byte[] fingerprint() throws Exception {
        return MessageDigest.getInstance("SHA-256").digest(owner.getBytes());
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Account && ((Account) other).owner == owner;
    }

    @Override
    public int hashCode() {
        return owner.hashCode();
    }
}
''',
},
"postbox": {
"pyproject.toml": '''[project]
name = "postbox"
version = "0.8"
dependencies = ["aiohttp>=3.10", "dnspython>=2.6", "python-multipart>=0.0.9"]

[tool.pytest.ini_options]
pythonpath = ["."]

[tool.coverage.run]
branch = true

[tool.ruff.lint]
extend-select = ["BLE", "S"]
''',
"Makefile": '''test:
	pytest -q

lint:
	ruff check .
''',
"postbox/__init__.py": '',
"postbox/address.py": '''"""Addresses of mail."""

import functools
import re
import unicodedata
import warnings

LOCAL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}")


class AddressError(ValueError):
    """No address."""


def parse(text):
    """Take `Ada <ada@example.org>` apart.

    >>> parse("ada@example.org")
    ('', 'ada', 'example.org')
    """
    name, _, rest = text.rpartition("<")
    address = rest.rstrip(">").strip()
    local, at, domain = address.partition("@")
    if not at or not domain:
        raise AddressError(f"no address: {text!r}")
    if not LOCAL.match(local):
        raise AddressError(f"bad name: {local!r}")
    return name.strip(' "'), local, domain.lower()


@functools.cache
def canonical(address):
    """The form in which addresses are compared."""
    _, local, domain = parse(address)
    local = local.split("+")[0]
    if domain == "gmail.com":
        local = local.replace(".", "")
    return f"{local.lower()}@{domain}"


def ascii_domain(domain):
    """The domain as DNS wants it."""
    return domain.encode("idna").decode()


def split_list(text):
    """Addresses with commas between them; commas inside quotes do not count."""
    return [part.strip() for part in text.split(",")]


def fold(text):
    if not text.isascii():
        warnings.warn("folding drops marks", stacklevel=2)
    return unicodedata.normalize("NFKD", text).encode("ascii", "strict").decode()
''',
"postbox/queue.py": '''"""Mail that waits."""

import heapq
import logging
import time
from dataclasses import dataclass, field

log = logging.getLogger(__name__)


class QueueFull(Exception):
    pass


@dataclass(order=True)
class Job:
    due: float
    body: str = field(compare=False)
    tries: int = field(default=0, compare=False)


class Outbox:
    """A heap of jobs, the next due first."""

    def __init__(self, size=100, clock=time.monotonic):
        self.size = size
        self.clock = clock
        self.jobs = []
        self.dead = []

    def add(self, body, delay=0.0):
        if len(self.jobs) > self.size:
            raise QueueFull(self.size)
        heapq.heappush(self.jobs, Job(self.clock() + delay, body))

    def due(self):
        """Jobs whose time has come, in order."""
        found = []
        while self.jobs and self.jobs[0].due < self.clock():
            found.append(heapq.heappop(self.jobs))
        return found

    def run(self, send):
        """Send what is due; what fails three times is dead."""
        sent = 0
        for job in self.due():
            try:
                send(job.body)
            except OSError:
                job.tries += 1
                if job.tries > 3:
                    self.dead.append(job)
                else:
                    heapq.heappush(self.jobs, Job(self.clock() + 2**job.tries, job.body, job.tries))
            else:
                sent += 1
        return sent

    def stats(self):
        oldest = min(job.due for job in self.jobs)
        return {"waiting": len(self.jobs), "dead": len(self.dead), "oldest": self.clock() - oldest}
''',
"postbox/smtp.py": '''"""Talking to servers."""

import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate
from pathlib import Path

MAX_ATTACHMENT = 20 * 1024 * 1024


def connect(host, port=587, user=None, password=None):
    """A connection that is encrypted, always."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    server = smtplib.SMTP(host, port, timeout=30)
    server.starttls(context=context)
    if user:
        server.login(user, password)
    return server


def build(sender, to, subject, text, files=(), root=Path("attachments")):
    """A message with attachments from below `root`."""
    if "\\n" in subject or "\\r" in subject:
        raise ValueError("a subject has one line")
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = sender, ", ".join(to), subject
    message["Date"] = formatdate()
    message.set_content(text)
    for name in files:
        path = (root / name).resolve()
        if not path.is_relative_to(root.resolve()):
            raise PermissionError(name)
        data = path.read_bytes()
        if len(data) > MAX_ATTACHMENT:
            raise ValueError(f"{name} is too large")
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return message


def send_all(messages, server):
    """Send; recipients that the server refuses are given back."""
    refused = {}
    for message in messages:
        refused.update(server.send_message(message))
    return refused
''',
"tests/test_address.py": '''import pytest

from postbox.address import AddressError, canonical, parse, split_list


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("ada@example.org", ("", "ada", "example.org")),
        ("Ada <ada@Example.org>", ("Ada", "ada", "example.org")),
        ('"Lovelace, Ada" <ada@example.org>', ("Lovelace, Ada", "ada", "example.org")),
    ],
)
def test_parse(text, wanted):
    assert parse(text) == wanted


@pytest.mark.parametrize("text", ["ada", "@example.org", "ada@", "a da@example.org", "ada@example.org x"])
def test_no_address(text):
    with pytest.raises(AddressError):
        parse(text)


def test_canonical():
    assert canonical("A.d.a+x@gmail.com") == "ada@gmail.com"


def test_quoted_commas():
    assert split_list('"Lovelace, Ada" <ada@example.org>, bob@example.org') == ['"Lovelace, Ada" <ada@example.org>', "bob@example.org"]
''',
"tests/test_queue.py": '''import pytest

from postbox.queue import Outbox, QueueFull


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_due_at_once(clock):
    box = Outbox(clock=clock)
    box.add("hello")
    assert [job.body for job in box.due()] == ["hello"]


def test_full(clock):
    box = Outbox(size=2, clock=clock)
    box.add("a")
    box.add("b")
    with pytest.raises(QueueFull):
        box.add("c")


def test_dead_after_three(clock):
    box = Outbox(clock=clock)
    box.add("x")

    def send(body):
        raise OSError

    for _ in range(3):
        clock.now += 60
        box.run(send)
    assert len(box.dead) == 1


def test_other_errors_are_raised(clock):
    box = Outbox(clock=clock)
    box.add("x")
    clock.now += 1
    with pytest.raises(ZeroDivisionError):
        box.run(lambda body: 1 / 0)


def test_stats_of_nothing(clock):
    assert Outbox(clock=clock).stats() == {"waiting": 0, "dead": 0, "oldest": 0}
''',
},
"cart": {
"package.json": '''{
  "name": "cart",
  "scripts": {
    "test": "jest --ci",
    "build": "tsc -p ."
  },
  "dependencies": { "zod": "^3.23.8" },
  "devDependencies": { "jest": "^29.7.0", "typescript": "^5.6.0" },
  "jest": { "testEnvironment": "node" }
}
''',
"src/price.ts": '''import { z } from 'zod';

export const Line = z.object({
  sku: z.string().min(3),
  cents: z.number().int().nonnegative(),
  count: z.number().int().positive().max(999),
});
export type Line = z.infer<typeof Line>;

const CODES = new Map<string, number>([['SUMMER', 10], ['STAFF', 30]]);

/** The sum in cents after a discount of whole percents, rounded to the nearest cent. */
export function total(lines: Line[], code?: string): number {
  const sum = lines.reduce((all, line) => all + line.cents * line.count, 0);
  if (!code) return sum;
  const percent = CODES.get(code);
  if (percent === undefined) {
    throw new Error(`unknown code ${code}`);
  }
  return Math.floor(sum * (1 - percent / 100));
}

export function parseLines(input: unknown): Line[] {
  return z.array(Line).parse(input);
}

export function group<T>(items: T[], key: (item: T) => string): Record<string, T[]> {
  const groups: Record<string, T[]> = {};
  for (const item of items) {
    (groups[key(item)] ??= []).push(item);
  }
  return groups;
}

export async function retry<T>(work: () => Promise<T>, times = 3): Promise<T> {
  let last: unknown;
  for (let i = 1; i < times; i++) {
    try {
      return await work();
    } catch (error) {
      last = error;
    }
  }
  throw last;
}
''',
"src/price.test.ts": '''import { group, parseLines, retry, total } from './price';

const tea = { sku: 'tea', cents: 333, count: 1 };

test('rounds to the nearest cent', () => {
  expect(total([tea], 'SUMMER')).toBe(300);
});

test('unknown codes', () => {
  expect(() => total([tea], 'X')).toThrow('unknown code');
});

test('checks lines', () => {
  expect(() => parseLines([{ ...tea, count: 0 }])).toThrow();
});

test('groups by any key', () => {
  expect(group(['constructor'], (x) => x)).toEqual({ constructor: ['constructor'] });
});

test('third time', async () => {
  let calls = 0;
  const work = async () => {
    if (++calls < 3) throw new Error('no');
    return calls;
  };
  expect(await retry(work)).toBe(3);
});
''',
},
"gorate": {
"go.mod": '''module example.org/gorate

go 1.23
''',
"rate/rate.go": '''package rate

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// ErrLimit says that somebody asked too often.
var ErrLimit = errors.New("too many requests")

const perMinute = 60

// Limiter counts requests of each client in windows of a minute.
type Limiter struct {
	mu    sync.RWMutex
	seen  map[string]int
	start time.Time
}

// Allow counts one request.
func (l *Limiter) Allow(client string, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.start) > time.Minute {
		l.start = now
	}
	l.seen[client]++
	if l.seen[client] >= perMinute {
		return ErrLimit
	}
	return nil
}

// Wait blocks until a request is allowed.
func (l *Limiter) Wait(ctx context.Context, client string) error {
	for {
		err := l.Allow(client, time.Now())
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// Guard refuses what comes too often.
func Guard(l *Limiter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := l.Allow(r.RemoteAddr, time.Now()); err != nil {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		next.ServeHTTP(w, r)
	})
}
''',
"rate/rate_test.go": '''package rate

import (
	"testing"
	"time"
)

func TestSixty(t *testing.T) {
	l := &Limiter{seen: map[string]int{}}
	now := time.Unix(1000, 0)
	for i := 0; i < 60; i++ {
		if err := l.Allow("a", now); err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
	}
	if err := l.Allow("a", now); err == nil {
		t.Fatal("the 61st is allowed")
	}
}

func TestNextWindow(t *testing.T) {
	l := &Limiter{seen: map[string]int{"a": 61}, start: time.Unix(1000, 0)}
	if err := l.Allow("a", time.Unix(1100, 0)); err != nil {
		t.Fatal(err)
	}
}
''',
},
}
# fmt: on
