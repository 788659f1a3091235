"""Two small libraries, a tide gauge's and a ledger's, that a feature leaves red in a mechanical way.

Written before the fixer was run on them by one who had not read it. `remedy` is a reference: the command is green after
it, and `keeps` holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.repair_choice_cases import START, Choice, Files

NO_SHOP: Files = dict.fromkeys(START)


@dataclass(frozen=True)
class Shape(Choice):
    """A choice with more green commits before the culprit, and a reference remedy as a shell script."""

    history: tuple[tuple[str, Files], ...] = field(default=())
    remedy: str = ""


def swap(text: str, *pairs: tuple[str, str]) -> str:
    """Replace each `old`, which has to be there."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


UNITS = '''"""Units of height."""

from __future__ import annotations

FEET_PER_METRE = 3.28084


def to_feet(metres: float) -> float:
    """Convert metres to feet."""
    return round(metres * FEET_PER_METRE, 2)


def to_metres(feet: float) -> float:
    """Convert feet to metres."""
    return round(feet / FEET_PER_METRE, 2)
'''
READINGS = '''"""Readings of a gauge."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Reading:
    """What a gauge showed at one time."""

    station: str
    metres: float
    at: str


def load(path: str) -> list[Reading]:
    """Read a file of readings."""
    rows = json.loads(Path(path).read_text(encoding="utf-8"))
    return [Reading(**row) for row in rows]


def highest(readings: list[Reading]) -> Reading:
    """Find the highest reading."""
    return max(readings, key=lambda one: one.metres)
'''
REPORT = '''"""Reports for people."""

from __future__ import annotations

from tidepool.readings import Reading, highest
from tidepool.units import to_feet


def table(readings: list[Reading], width: int = 12) -> str:
    """Lay readings out, one a line."""
    return "\\n".join(f"{one.station:<{width}}{one.metres:>6.2f}" for one in readings)


def headline(readings: list[Reading]) -> str:
    """Name the highest reading."""
    top = highest(readings)
    return f"{top.station}: {top.metres} m ({to_feet(top.metres)} ft)"
'''
CLI = '''"""The command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tidepool.readings import load
from tidepool.report import headline, table


def main(argv: Sequence[str] | None = None) -> int:
    """Print the readings of a file."""
    parser = argparse.ArgumentParser(prog="tidepool")
    parser.add_argument("file", help="a file of readings")
    parser.add_argument("--brief", action="store_true", help="only the highest")
    given = parser.parse_args(argv)
    readings = load(given.file)
    print(headline(readings) if given.brief else table(readings, width=10))
    return 0
'''
T_UNITS = """from tidepool.units import to_feet, to_metres


def test_to_feet():
    assert to_feet(2) == 6.56


def test_there_and_back():
    assert to_metres(to_feet(3)) == 3
"""
T_READINGS = """from tidepool.readings import Reading, highest, load


def test_load():
    assert load("tests/data/week.json")[0].station == "Brest"


def test_highest():
    low = Reading("Brest", 1.5, "06:00")
    high = Reading("Brest", 6.25, "12:00")
    assert highest([low, high]) is high
"""
T_REPORT = """from tidepool.readings import Reading
from tidepool.report import headline, table

READINGS = [Reading("Brest", 6.25, "12:00"), Reading("Dover", 5.5, "13:00")]


def test_table():
    assert table(READINGS, width=8) == "Brest     6.25\\nDover     5.50"


def test_headline():
    assert headline(READINGS) == "Brest: 6.25 m (20.51 ft)"
"""
T_CLI = """from tidepool.cli import main


def test_brief(capsys):
    assert main(["tests/data/week.json", "--brief"]) == 0
    assert capsys.readouterr().out == "Brest: 6.25 m (20.51 ft)\\n"
"""
WEEK = '[\n  {"station": "Brest", "metres": 6.25, "at": "12:00"},\n  {"station": "Dover", "metres": 5.5, "at": "13:00"}\n]\n'
TIDE_PROJECT = """[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "tidepool"
version = "0.4.0"
description = "Readings of tide gauges"
requires-python = ">=3.10"
dependencies = []

[project.optional-dependencies]
test = ["pytest"]

[project.scripts]
tidepool = "tidepool.cli:main"

[tool.setuptools]
packages = ["tidepool"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]
"""
TIDE: Files = {
    **NO_SHOP,
    "tidepool/__init__.py": '"""Readings of tide gauges."""\n\nfrom tidepool.readings import Reading, load\nfrom tidepool.units import to_feet, to_metres\n\n__all__ = ["Reading", "load", "to_feet", "to_metres"]\n__version__ = "0.4.0"\n',
    "tidepool/units.py": UNITS,
    "tidepool/readings.py": READINGS,
    "tidepool/report.py": REPORT,
    "tidepool/cli.py": CLI,
    "tests/test_units.py": T_UNITS,
    "tests/test_readings.py": T_READINGS,
    "tests/test_report.py": T_REPORT,
    "tests/test_cli.py": T_CLI,
    "tests/data/week.json": WEEK,
    "pyproject.toml": TIDE_PROJECT,
    "README.md": "# Tidepool\n\nReads what tide gauges say.\n\n    tidepool week.json --brief\n",
    ".gitignore": "__pycache__/\n.pytest_cache/\n.mypy_cache/\n.ruff_cache/\n*.egg-info/\nbuild/\nsite/\n_build/\n",
}  # fmt: skip
TIDE_HISTORY: tuple[tuple[str, Files], ...] = (
    ("Say how to take part", {"CONTRIBUTING.md": "# Taking part\n\nRun the tests before you push.\n"}),
    ("Round to the nearest foot on request", {
        "tidepool/units.py": UNITS + '\n\ndef whole_feet(metres: float) -> int:\n    """Convert metres to whole feet."""\n    return round(metres * FEET_PER_METRE)\n',
        "tests/test_whole.py": "from tidepool.units import whole_feet\n\n\ndef test_whole_feet():\n    assert whole_feet(2) == 7\n",
    }),
)  # fmt: skip
UNITS_NOW = str(TIDE_HISTORY[1][1]["tidepool/units.py"])

RANGES = '''"""The range of a tide."""

from __future__ import annotations

from tidepool.readings import Reading


def tidal_range(readings: list[Reading]) -> float:
    """Tell how far the water rises."""
    heights = [one.metres for one in readings]
    return round(max(heights) - min(heights), 2)
'''
T_RANGES = """from tidepool.ranges import tidal_range
from tidepool.readings import Reading


def test_tidal_range():
    day = [Reading("Brest", 1.5, "06:00"), Reading("Brest", 6.25, "12:00")]
    assert tidal_range(day) == 4.75
"""
ADD_RANGES: Files = {"tidepool/ranges.py": RANGES, "tests/test_ranges.py": T_RANGES}
HAS_RANGES = 'from tidepool.ranges import tidal_range; from tidepool.readings import Reading; assert tidal_range([Reading("a", 1, ""), Reading("a", 3.5, "")]) == 2.5; '


def tide(  # noqa: PLR0917 - a row of a table
    name: str, tools: str, command: str, culprit: Files, keeps: str, remedy: str, start: Files | None = None, **more: object
) -> Shape:  # fmt: skip
    """A shape of the tide gauge's library; without a feature of its own, it adds ranges."""
    more.setdefault("message", "Tell the range of a tide")
    setup = (
        tools
        if " " in tools and tools.startswith(("pip", "npm"))
        else f"pip install -q pytest {tools}"
    )
    return Shape(
        name, command, culprit, keeps, {**TIDE, **(start or {})}, setup=setup, history=TIDE_HISTORY, remedy=remedy, **more
    )  # type: ignore[arg-type]  # fmt: skip


MONEY = '''"""Amounts of money."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Money:
    """An amount in the smallest unit of a currency."""

    cents: int
    currency: str = "EUR"

    def plus(self, other: Money) -> Money:
        """Add an amount of the same currency."""
        if other.currency != self.currency:
            raise ValueError(f"{other.currency} is not {self.currency}")
        return Money(self.cents + other.cents, self.currency)

    def text(self) -> str:
        """Write the amount for people."""
        return f"{self.cents / 100:.2f} {self.currency}"
'''
ACCOUNTS = '''"""Accounts and what is booked on them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ledgerkit.money import Money


@dataclass
class Account:
    """One account."""

    name: str
    entries: list[Money] = field(default_factory=list)

    def book(self, amount: Money) -> None:
        """Book an amount."""
        self.entries.append(amount)

    def balance(self) -> Money:
        """Add up what was booked."""
        total = Money(0)
        for entry in self.entries:
            total = total.plus(entry)
        return total
'''
EXPORT = '''"""Ways to write accounts down."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

from ledgerkit.accounts import Account


class Exporter(ABC):
    """Writes accounts down."""

    @abstractmethod
    def dump(self, accounts: list[Account]) -> str:
        """Write the accounts as text."""


class JsonExporter(Exporter):
    """As JSON."""

    def dump(self, accounts: list[Account]) -> str:
        """Write an object with a balance for each name."""
        return json.dumps({one.name: one.balance().cents for one in accounts})


class CsvExporter(Exporter):
    """As comma-separated values."""

    def dump(self, accounts: list[Account]) -> str:
        """Write a line for each account."""
        return "".join(f"{one.name},{one.balance().cents}\\n" for one in accounts)
'''
STATEMENT = '''"""Statements for people."""

from __future__ import annotations

from ledgerkit.accounts import Account
from ledgerkit.export import CsvExporter, JsonExporter


def line(account: Account) -> str:
    """Name an account and its balance."""
    return f"{account.name}: {account.balance().text()}"


def statement(accounts: list[Account], kind: str = "text") -> str:
    """Write a statement of a kind."""
    if kind == "json":
        return JsonExporter().dump(accounts)
    if kind == "csv":
        return CsvExporter().dump(accounts)
    return "\\n".join(line(one) for one in accounts)
'''
T_MONEY = """import pytest

from ledgerkit.money import Money


def test_plus():
    assert Money(150).plus(Money(50)) == Money(200)


def test_plus_other_currency():
    with pytest.raises(ValueError):
        Money(1).plus(Money(1, "USD"))


def test_text():
    assert Money(1250).text() == "12.50 EUR"
"""
T_ACCOUNTS = """from ledgerkit.money import Money


def test_balance(account):
    account.book(Money(500))
    account.book(Money(-120))
    assert account.balance() == Money(380)


def test_new_account_is_empty(account):
    assert account.entries == []
"""
T_EXPORT = """from ledgerkit.export import CsvExporter, JsonExporter
from ledgerkit.money import Money


def test_csv(account):
    account.book(Money(5))
    assert CsvExporter().dump([account]) == "cash,5\\n"


def test_json(account):
    assert JsonExporter().dump([account]) == '{"cash": 0}'
"""
T_STATEMENT = """from ledgerkit.money import Money
from ledgerkit.statement import statement


def test_statement(account):
    account.book(Money(1250))
    assert statement([account]) == "cash: 12.50 EUR"


def test_statement_as_csv(account):
    assert statement([account], kind="csv") == "cash,0\\n"
"""
CONFTEST = """import pytest

from ledgerkit.accounts import Account


@pytest.fixture
def account():
    return Account("cash")
"""
LEDGER_PROJECT = """[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "ledgerkit"
version = "2.1.0"
description = "A small ledger"
requires-python = ">=3.10"
dependencies = []

[project.optional-dependencies]
dev = ["pytest", "mypy"]

[tool.setuptools.packages.find]
where = ["src"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["src"]

[tool.mypy]
strict = true
files = ["src"]
"""
LEDGER: Files = {
    **NO_SHOP,
    "src/ledgerkit/__init__.py": '"""A small ledger."""\n\n__version__ = "2.1.0"\n',
    "src/ledgerkit/money.py": MONEY,
    "src/ledgerkit/accounts.py": ACCOUNTS,
    "src/ledgerkit/export.py": EXPORT,
    "src/ledgerkit/statement.py": STATEMENT,
    "tests/conftest.py": CONFTEST,
    "tests/test_money.py": T_MONEY,
    "tests/test_accounts.py": T_ACCOUNTS,
    "tests/test_export.py": T_EXPORT,
    "tests/test_statement.py": T_STATEMENT,
    "pyproject.toml": LEDGER_PROJECT,
    "README.md": "# Ledgerkit\n\nKeeps accounts and writes them down.\n",
    "CHANGELOG.md": "# Changes\n\n## 2.1.0\n\n- Statements as CSV.\n",
    ".gitignore": str(TIDE[".gitignore"]),
}  # fmt: skip
LEDGER_HISTORY: tuple[tuple[str, Files], ...] = (
    ("Say how to take part", {"CONTRIBUTING.md": "# Taking part\n\nRun the tests before you push.\n"}),
    ("Negate an amount", {
        "src/ledgerkit/money.py": MONEY + '\n    def negated(self) -> Money:\n        """Turn a debit into a credit."""\n        return Money(-self.cents, self.currency)\n',
        "tests/test_negated.py": "from ledgerkit.money import Money\n\n\ndef test_negated():\n    assert Money(5).negated() == Money(-5)\n",
    }),
)  # fmt: skip
MONEY_NOW = str(LEDGER_HISTORY[1][1]["src/ledgerkit/money.py"])
TRANSFER = '''"""Transfers between accounts."""

from __future__ import annotations

from ledgerkit.accounts import Account
from ledgerkit.money import Money


def transfer(source: Account, target: Account, amount: Money) -> None:
    """Move an amount from one account to another."""
    source.book(amount.negated())
    target.book(amount)
'''
T_TRANSFER = """from ledgerkit.accounts import Account
from ledgerkit.money import Money
from ledgerkit.transfer import transfer


def test_transfer(account):
    bank = Account("bank")
    transfer(account, bank, Money(70))
    assert (account.balance(), bank.balance()) == (Money(-70), Money(70))
"""
ADD_TRANSFER: Files = {"src/ledgerkit/transfer.py": TRANSFER, "tests/test_transfer.py": T_TRANSFER}
IN_SRC = 'import sys; sys.path.insert(0, "src"); '
HAS_TRANSFER = IN_SRC + (
    "from ledgerkit.accounts import Account; from ledgerkit.money import Money; from ledgerkit.transfer import transfer; "
    'a, b = Account("a"), Account("b"); transfer(a, b, Money(7)); assert (a.balance().cents, b.balance().cents) == (-7, 7); '
)  # fmt: skip


def ledger(  # noqa: PLR0917 - a row of a table
    name: str, tools: str, command: str, culprit: Files, keeps: str, remedy: str, start: Files | None = None, **more: object
) -> Shape:  # fmt: skip
    """A shape of the ledger's library."""
    more.setdefault("message", "Move money between accounts")
    setup = (
        tools
        if " " in tools and tools.startswith(("pip", "npm"))
        else f"pip install -q pytest {tools}"
    )
    return Shape(
        name, command, culprit, keeps, {**LEDGER, **(start or {})}, setup=setup, history=LEDGER_HISTORY, remedy=remedy, **more
    )  # type: ignore[arg-type]  # fmt: skip


def read(path: str) -> str:
    """Python for the text of a file."""
    return f'__import__("pathlib").Path("{path}").read_text()'


FORM = [
    tide("black-through-nox", "black nox", "nox -s style",
         {**ADD_RANGES, "tidepool/ranges.py": swap(RANGES, ("    heights = [one.metres for one in readings]\n", "    heights = [ one.metres\n        for one in readings ]\n"))},
         HAS_RANGES, "black -q .",
         {"noxfile.py": 'import nox\n\n\n@nox.session(venv_backend="none")\ndef style(session):\n    session.run("black", "--check", "--diff", "tidepool", "tests")\n'}),
    tide("isort-through-make", "isort", "make lint",
         {**ADD_RANGES, "tests/test_ranges.py": swap(T_RANGES, ("from tidepool.ranges import tidal_range\nfrom tidepool.readings import Reading\n", "from tidepool.readings import Reading\nfrom tidepool.ranges import tidal_range\n"))},
         HAS_RANGES, "isort -q tidepool tests",
         {"Makefile": "lint:\n\tisort --check-only --diff tidepool tests\n\n.PHONY: lint\n", "pyproject.toml": TIDE_PROJECT + '\n[tool.isort]\nprofile = "black"\n'}),
    tide("ruff-dict-call-unsafe", "ruff", "ruff check --output-format=github .",
         {**ADD_RANGES, "tidepool/ranges.py": RANGES + '\n\ndef bounds(readings: list[Reading]) -> dict[str, float]:\n    """Name the lowest and the highest."""\n    heights = [one.metres for one in readings]\n    return dict(low=min(heights), high=max(heights))\n'},
         HAS_RANGES + 'from tidepool.ranges import bounds; assert bounds([Reading("a", 1, ""), Reading("a", 3, "")]) == {"low": 1, "high": 3}', "ruff check -q --fix --unsafe-fixes .",
         {"pyproject.toml": TIDE_PROJECT + '\n[tool.ruff.lint]\nselect = ["E", "F", "I", "C4"]\n'}),
    tide("codespell-identifier", "codespell", "codespell tidepool tests README.md",
         {"tidepool/ranges.py": RANGES.replace("tidal_range", "seperate"), "tests/test_ranges.py": T_RANGES.replace("tidal_range", "seperate")},
         'from tidepool.ranges import separate; import pathlib; assert "separate" in pathlib.Path("tests/test_ranges.py").read_text()', "codespell -w -q3 tidepool tests README.md || codespell tidepool tests README.md"),
    tide("typos-in-docs", "typos", "typos docs tidepool",
         {**ADD_RANGES, "docs/ranges.md": "# Ranges\n\nThe diference between high and low water, which occured on one day.\n"},
         HAS_RANGES + f'text = {read("docs/ranges.md")}; assert "The difference between high and low water, which occurred on one day." in text', "typos -w docs tidepool",
         {"docs/index.md": "# Tidepool\n\nReads gauges.\n"}),
    tide("yamllint-spaces", "yamllint", "yamllint -s .",
         {**ADD_RANGES, "deploy/gauges.yaml": "---\ngauges:\n  - name: Brest\n    url: https://example.org/brest   \n    every: 10\n  - name: Dover\n    url:  https://example.org/dover\n    every: 15"},
         HAS_RANGES + f'text = {read("deploy/gauges.yaml")}; assert text.count("https://example.org") == 2 and "every: 15" in text and text.endswith("15\\n")',
         "python - <<'E'\nimport re, pathlib\np = pathlib.Path('deploy/gauges.yaml')\np.write_text(re.sub(r' +\\n', '\\n', p.read_text()).replace('url:  ', 'url: ') + '\\n')\nE",
         {"deploy/gauges.yaml": "---\ngauges:\n  - name: Brest\n    every: 10\n"}),
    tide("pre-commit-local-hooks", "pip install -q pytest ruff pre-commit pre-commit-hooks", "pre-commit run --all-files --show-diff-on-failure",
         {**ADD_RANGES, "tidepool/ranges.py": swap(RANGES, ("round(max(heights) - min(heights), 2)", "round( max(heights)-min(heights),2 )")), "docs/ranges.md": "# Ranges\n\nHigh water less low water.\n\n\n"},
         HAS_RANGES + f'assert {read("docs/ranges.md")} == "# Ranges\\n\\nHigh water less low water.\\n"', "pre-commit run --all-files || true",
         {".pre-commit-config.yaml": "repos:\n  - repo: local\n    hooks:\n      - id: ruff-format\n        name: ruff format\n        entry: ruff format --force-exclude\n        language: system\n        types: [python]\n      - id: end-of-file\n        name: end of file\n        entry: end-of-file-fixer\n        language: system\n        types: [text]\n"}),
    tide("trailing-commas-by-script", "add-trailing-comma", "bash scripts/style.sh",
         {**ADD_RANGES, "tests/test_ranges.py": swap(T_RANGES, ('    day = [Reading("Brest", 1.5, "06:00"), Reading("Brest", 6.25, "12:00")]\n', '    day = [\n        Reading("Brest", 1.5, "06:00"),\n        Reading("Brest", 6.25, "12:00")\n    ]\n'))},
         HAS_RANGES + f'assert \'"12:00"),\' in {read("tests/test_ranges.py")}', "bash scripts/style.sh || true",
         {"scripts/style.sh": "#!/usr/bin/env bash\nset -euo pipefail\ngit ls-files '*.py' | xargs add-trailing-comma\n"}),
    ledger("docformatter", "docformatter", "docformatter --check --recursive src",
           {**ADD_TRANSFER, "src/ledgerkit/transfer.py": swap(TRANSFER, ('"""Move an amount from one account to another."""', '"""\n    Move an amount from one account to another\n    """'))},
           HAS_TRANSFER + f'assert "Move an amount from one account to another" in {read("src/ledgerkit/transfer.py")}', "docformatter --in-place --recursive src || true"),
    ledger("mdformat-docs", "mdformat", "mdformat --check README.md docs",
           {**ADD_TRANSFER, "docs/transfer.md": "Transfers\n=========\n\n* `transfer` books twice.\n* Nothing is rounded.\n"},
           HAS_TRANSFER + f'text = {read("docs/transfer.md")}; assert text.startswith("# Transfers\\n") and "`transfer` books twice." in text', "mdformat README.md docs",
           {"docs/index.md": "# Ledgerkit\n\nKeeps accounts.\n"}),
    ledger("blacken-docs", "blacken-docs", "git ls-files -z '*.md' | xargs -0 blacken-docs",
           {**ADD_TRANSFER, "README.md": "# Ledgerkit\n\nKeeps accounts and writes them down.\n\n```python\nfrom ledgerkit.transfer import transfer\ntransfer( cash,bank,Money(70) )\n```\n"},
           HAS_TRANSFER + f'assert "transfer(cash, bank, Money(70))" in {read("README.md")}', "blacken-docs README.md || true"),
    ledger("toml-sort", "toml-sort", "toml-sort --check gauges/accounts.toml",
           {**ADD_TRANSFER, "gauges/accounts.toml": '[bank]\nlimit = 500\n\n[cash]\nlimit = 0\n\n[card]\nlimit = 200\n'},
           HAS_TRANSFER + f'text = {read("gauges/accounts.toml")}; assert __import__("tomllib").loads(text)["card"]["limit"] == 200 and text.index("[card]") < text.index("[cash]")', "toml-sort -i gauges/accounts.toml",
           {"gauges/accounts.toml": '[bank]\nlimit = 500\n\n[cash]\nlimit = 0\n'}),
    ledger("sqlfluff", "sqlfluff", "sqlfluff lint --dialect sqlite src/ledgerkit/sql",
           {**ADD_TRANSFER, "src/ledgerkit/sql/transfers.sql": "SELECT id, source,   target\nfrom transfers\nWHERE cents > 0\n"},
           HAS_TRANSFER + f'text = {read("src/ledgerkit/sql/transfers.sql")}; assert "FROM transfers" in text and "cents > 0" in text', "sqlfluff fix -q --dialect sqlite src/ledgerkit/sql",
           {"src/ledgerkit/sql/accounts.sql": "SELECT\n    id,\n    name\nFROM accounts\n"}),
    ledger("djlint-templates", "djlint", "djlint --check --indent 2 templates",
           {**ADD_TRANSFER, "templates/transfer.html": "<div>\n<p>{{ source }}</p>\n      <p>{{ target }}</p>\n</div>\n"},
           HAS_TRANSFER + f'text = {read("templates/transfer.html")}; assert "{{{{ source }}}}" in text and "{{{{ target }}}}" in text', "djlint --reformat --quiet --indent 2 templates || true",
           {"templates/account.html": "<p>{{ name }}</p>\n"}),
    ledger("pydocstyle-period", "pydocstyle", "pydocstyle --select=D400,D403 src",
           {**ADD_TRANSFER, "src/ledgerkit/transfer.py": swap(TRANSFER, ('"""Move an amount from one account to another."""', '"""move an amount from one account to another"""'))},
           HAS_TRANSFER + f'assert \'"""Move an amount from one account to another."""\' in {read("src/ledgerkit/transfer.py")}', "sed -i 's/\"\"\"move an amount from one account to another\"\"\"/\"\"\"Move an amount from one account to another.\"\"\"/' src/ledgerkit/transfer.py"),
    ledger("package-without-init", "ruff", "ruff check src tests",
           {**ADD_TRANSFER, "src/ledgerkit/rates/fixed.py": '"""Fixed rates."""\n\nRATES = {"USD": 1.1}\n', "tests/test_rates.py": "from ledgerkit.rates.fixed import RATES\n\n\ndef test_rates():\n    assert RATES == {\"USD\": 1.1}\n"},
           HAS_TRANSFER + f'assert {read("src/ledgerkit/rates/__init__.py")} is not None; assert "USD" in {read("src/ledgerkit/rates/fixed.py")}', "touch src/ledgerkit/rates/__init__.py",
           {"pyproject.toml": LEDGER_PROJECT + '\n[tool.ruff.lint]\nselect = ["E", "F", "INP"]\n\n[tool.ruff.lint.per-file-ignores]\n"tests/*" = ["INP001"]\n'}),
    tide("reexport-not-in-all", "ruff", "ruff check tidepool",
         {**ADD_RANGES, "tidepool/__init__.py": swap(str(TIDE["tidepool/__init__.py"]), ("from tidepool.readings import", "from tidepool.ranges import tidal_range\nfrom tidepool.readings import"))},
         HAS_RANGES + 'import tidepool; assert "tidal_range" in tidepool.__all__ and tidepool.tidal_range', "sed -i 's/\"load\", /\"load\", \"tidal_range\", /' tidepool/__init__.py"),
]  # fmt: skip
HEADER = (
    "# SPDX-FileCopyrightText: 2024 The Tidepool authors\n#\n# SPDX-License-Identifier: MIT\n\n"
)


def headed(files: Files) -> Files:
    """The files, the Python ones with a licence header."""
    return {name: HEADER + text if text and name.endswith(".py") else text for name, text in files.items()}  # fmt: skip


LICENSED = Shape(
    "licence-header-by-reuse", "reuse lint --lines", {**headed(ADD_RANGES), "tidepool/ranges.py": RANGES},
    HAS_RANGES + f'text = {read("tidepool/ranges.py")}; assert text.startswith({HEADER!r})',
    {**headed(TIDE), "LICENSES/MIT.txt": "MIT License\n\nDo as you like, and keep this notice.\n", "REUSE.toml": 'version = 1\n\n[[annotations]]\npath = ["*.md", "*.txt", "pyproject.toml", ".gitignore", "tests/data/**"]\nSPDX-FileCopyrightText = "2024 The Tidepool authors"\nSPDX-License-Identifier = "MIT"\n'},
    "Tell the range of a tide", setup="pip install -q pytest reuse", history=tuple((name, headed(files)) for name, files in TIDE_HISTORY),
    remedy="{ head -4 tidepool/units.py; cat tidepool/ranges.py; } > r && mv r tidepool/ranges.py",
)  # fmt: skip

COG = "<!-- [[[cog\nimport cog\nfrom tidepool import units\nfor name in sorted(n for n in vars(units) if n.startswith('to_')):\n    cog.outl(f'- `{name}`: {getattr(units, name).__doc__}')\n]]] -->\n"
FATHOMS = '\n\ndef to_fathoms(metres: float) -> float:\n    """Convert metres to fathoms."""\n    return round(metres / 1.8288, 2)\n'
T_FATHOMS = "from tidepool.units import to_fathoms\n\n\ndef test_to_fathoms():\n    assert to_fathoms(3.6576) == 2\n"
ADD_FATHOMS: Files = {"tidepool/units.py": UNITS_NOW + FATHOMS, "tests/test_fathoms.py": T_FATHOMS}
HAS_FATHOMS = "from tidepool.units import to_fathoms; assert to_fathoms(3.6576) == 2; "
GEN = '''"""Writes docs/units.json from the units; --check only says whether it is current."""

import inspect
import json
import sys
from pathlib import Path

sys.path.insert(0, ".")

from tidepool import units

TARGET = Path("docs/units.json")


def render():
    found = {name: inspect.getdoc(one) for name, one in vars(units).items() if inspect.isfunction(one)}
    return json.dumps(found, indent=2, sort_keys=True) + "\\n"


if "--check" in sys.argv[1:]:
    if not TARGET.exists() or TARGET.read_text() != render():
        sys.exit(f"{TARGET} is out of date; run `python scripts/gen_units.py`")
else:
    TARGET.write_text(render())
'''
UNITS_JSON = '{\n  "to_feet": "Convert metres to feet.",\n  "to_metres": "Convert feet to metres.",\n  "whole_feet": "Convert metres to whole feet."\n}\n'
REF = '''"""Writes the reference of the ledger."""

import ast
from pathlib import Path

rows = ["| module | names |", "| --- | --- |"]
for path in sorted(Path("src/ledgerkit").glob("*.py")):
    names = [one.name for one in ast.parse(path.read_text()).body if isinstance(one, (ast.ClassDef, ast.FunctionDef))]
    rows.append(f"| {path.stem} | {', '.join(names) or '-'} |")
Path("docs/reference.md").write_text("# Reference\\n\\n" + "\\n".join(rows) + "\\n")
'''
REFERENCE = "# Reference\n\n| module | names |\n| --- | --- |\n| __init__ | - |\n| accounts | Account |\n| export | Exporter, JsonExporter, CsvExporter |\n| money | Money |\n| statement | line, statement |\n"
OVERDRAWN = swap(STATEMENT, ('    return f"{account.name}: {account.balance().text()}"', '    mark = " (overdrawn)" if account.balance().cents < 0 else ""\n    return f"{account.name}: {account.balance().text()}{mark}"'))  # fmt: skip
OWES = (
    IN_SRC
    + 'from ledgerkit.accounts import Account; from ledgerkit.money import Money; from ledgerkit.statement import line; a = Account("a"); a.book(Money(-5)); assert line(a).endswith(" (overdrawn)"); '
)
T_OVERDRAWN = 'from ledgerkit.accounts import Account\nfrom ledgerkit.money import Money\nfrom ledgerkit.statement import line\n\n\ndef test_overdrawn():\n    account = Account("cash")\n    account.book(Money(-100))\n    assert "(overdrawn)" in line(account)\n'
T_SYRUPY = 'from ledgerkit.accounts import Account\nfrom ledgerkit.money import Money\nfrom ledgerkit.statement import line\n\n\ndef test_lines(snapshot):\n    accounts = [Account("cash", [Money(5)]), Account("card", [Money(-250)])]\n    assert [line(one) for one in accounts] == snapshot\n'
AMBR = "# serializer version: 1\n# name: test_lines\n  list([\n    'cash: 0.05 EUR',\n    'card: -2.50 EUR',\n  ])\n# ---\n"
T_INLINE = 'from inline_snapshot import snapshot\n\nfrom ledgerkit.accounts import Account\nfrom ledgerkit.money import Money\nfrom ledgerkit.statement import line\n\n\ndef test_card():\n    assert line(Account("card", [Money(-250)])) == snapshot("card: -2.50 EUR")\n'
T_REGRESSION = 'from ledgerkit.accounts import Account\nfrom ledgerkit.money import Money\nfrom ledgerkit.statement import statement\n\n\ndef test_statement(file_regression):\n    accounts = [Account("cash", [Money(5)]), Account("card", [Money(-250)])]\n    file_regression.check(statement(accounts))\n'
T_GOLDEN = 'import os\nfrom pathlib import Path\n\nimport pytest\n\nfrom ledgerkit.accounts import Account\nfrom ledgerkit.money import Money\nfrom ledgerkit.statement import statement\n\nGOLDEN = Path(__file__).parent / "golden" / "statement.txt"\n\n\ndef test_golden():\n    text = statement([Account("cash", [Money(5)]), Account("card", [Money(-250)])]) + "\\n"\n    if os.environ.get("UPDATE_GOLDEN"):\n        GOLDEN.write_text(text)\n    if GOLDEN.read_text() != text:\n        pytest.fail(f"{GOLDEN.name} differs; if that is meant, run UPDATE_GOLDEN=1 pytest")\n'
ADD_OVERDRAWN: Files = {
    "src/ledgerkit/statement.py": OVERDRAWN,
    "tests/test_overdrawn.py": T_OVERDRAWN,
}
HELP = "usage: tidepool [-h] [--brief] file\n\npositional arguments:\n  file        a file of readings\n\noptions:\n  -h, --help  show this help message and exit\n  --brief     only the highest\n"
GENERATED = [
    tide("cog-list-in-readme", "cogapp", "cog --check -I . README.md",
         {**ADD_FATHOMS}, HAS_FATHOMS + f'assert "- `to_fathoms`: Convert metres to fathoms." in {read("README.md")}', "cog -r -I . README.md",
         {"README.md": "# Tidepool\n\n" + COG + "- `to_feet`: Convert metres to feet.\n- `to_metres`: Convert feet to metres.\n<!-- [[[end]]] -->\n"},
         message="Convert to fathoms"),
    tide("generator-with-check", "", "python scripts/gen_units.py --check", ADD_FATHOMS,
         HAS_FATHOMS + f'assert \'"to_fathoms": "Convert metres to fathoms."\' in {read("docs/units.json")}', "python scripts/gen_units.py",
         {"scripts/gen_units.py": GEN, "docs/units.json": UNITS_JSON}, message="Convert to fathoms"),
    ledger("reference-by-git-diff", "", "make reference && git diff --exit-code docs/", ADD_TRANSFER,
           HAS_TRANSFER + f'assert "| transfer | transfer |" in {read("docs/reference.md")}', "make reference",
           {"scripts/reference.py": REF, "docs/reference.md": REFERENCE, "Makefile": "reference:\n\tpython scripts/reference.py\n\n.PHONY: reference\n"}),
    tide("help-text-in-a-test", "", "python -m pytest -q",
         {"tidepool/cli.py": swap(CLI, ('    given = parser', '    parser.add_argument("--feet", action="store_true", help="heights in feet")\n    given = parser'), ("    readings = load(given.file)\n", "    readings = load(given.file)\n    if given.feet:\n        readings = [replace(one, metres=to_feet(one.metres)) for one in readings]\n"), ("from collections.abc import Sequence\n", "from collections.abc import Sequence\nfrom dataclasses import replace\n"), ("import headline, table\n", "import headline, table\nfrom tidepool.units import to_feet\n")),
          "tests/test_feet.py": 'from tidepool.cli import main\n\n\ndef test_feet(capsys):\n    assert main(["tests/data/week.json", "--feet"]) == 0\n    assert "20.51" in capsys.readouterr().out\n'},
         f'assert "--feet      heights in feet" in {read("docs/help.txt")}; from tidepool.cli import main; assert main(["tests/data/week.json", "--feet"]) == 0', "make help-text",
         {"docs/help.txt": HELP, "Makefile": "help-text:\n\tCOLUMNS=80 python -c 'from tidepool.cli import main; main([\"--help\"])' > docs/help.txt\n\n.PHONY: help-text\n",
          "tests/test_help.py": 'from pathlib import Path\n\nimport pytest\n\nfrom tidepool.cli import main\n\n\ndef test_help(capsys, monkeypatch):\n    monkeypatch.setenv("COLUMNS", "80")\n    with pytest.raises(SystemExit):\n        main(["--help"])\n    assert capsys.readouterr().out == Path("docs/help.txt").read_text(), "docs/help.txt is stale: run `make help-text`"\n'},
         message="Print heights in feet"),
    ledger("syrupy-line-marked", "syrupy", "python -m pytest -q", ADD_OVERDRAWN,
           OWES + f'assert "card: -2.50 EUR (overdrawn)" in {read("tests/__snapshots__/test_lines.ambr")}', "python -m pytest -q --snapshot-update || true",
           {"tests/test_lines.py": T_SYRUPY, "tests/__snapshots__/test_lines.ambr": AMBR}, message="Mark what is overdrawn"),
    ledger("inline-snapshot-line-marked", "inline-snapshot", "python -m pytest -q", ADD_OVERDRAWN,
           OWES + f'assert "card: -2.50 EUR (overdrawn)" in {read("tests/test_inline.py")}', "python -m pytest -q --inline-snapshot=fix || true",
           {"tests/test_inline.py": T_INLINE}, message="Mark what is overdrawn"),
    ledger("file-regression-line-marked", "pytest-regressions", "python -m pytest -q", ADD_OVERDRAWN,
           OWES + f'assert "card: -2.50 EUR (overdrawn)" in {read("tests/test_regression/test_statement.txt")}', "python -m pytest -q --force-regen || true",
           {"tests/test_regression.py": T_REGRESSION, "tests/test_regression/test_statement.txt": "cash: 0.05 EUR\ncard: -2.50 EUR"}, message="Mark what is overdrawn"),
    ledger("golden-file-by-variable", "", "python -m pytest -q tests", ADD_OVERDRAWN,
           OWES + f'assert "card: -2.50 EUR (overdrawn)" in {read("tests/golden/statement.txt")}', "UPDATE_GOLDEN=1 python -m pytest -q tests",
           {"tests/test_golden.py": T_GOLDEN, "tests/golden/statement.txt": "cash: 0.05 EUR\ncard: -2.50 EUR\n"}, message="Mark what is overdrawn"),
    ledger("version-in-two-places", "", "python -m pytest -q",
           {**ADD_TRANSFER, "pyproject.toml": swap(LEDGER_PROJECT, ('version = "2.1.0"', 'version = "2.2.0"')), "CHANGELOG.md": "# Changes\n\n## 2.2.0\n\n- Transfers.\n\n## 2.1.0\n\n- Statements as CSV.\n"},
           HAS_TRANSFER + f'import ledgerkit; assert ledgerkit.__version__ == "2.2.0"; assert \'version = "2.2.0"\' in {read("pyproject.toml")}', "sed -i 's/2.1.0/2.2.0/' src/ledgerkit/__init__.py",
           {"tests/test_version.py": 'import tomllib\nfrom pathlib import Path\n\nimport ledgerkit\n\n\ndef test_version():\n    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]\n    assert ledgerkit.__version__ == project["version"]\n'}),
    tide("doctest-in-readme", "", "python -m pytest -q --doctest-glob=README.md README.md tests",
         {"tidepool/report.py": swap(REPORT, ('({to_feet(top.metres)} ft)"', '({to_feet(top.metres)} ft) at {top.at}"')), "tests/test_report.py": swap(T_REPORT, ('(20.51 ft)"', '(20.51 ft) at 12:00"')), "tests/test_cli.py": swap(T_CLI, ("(20.51 ft)", "(20.51 ft) at 12:00"))},
         f'text = {read("README.md")}; assert "Brest: 6.25 m (20.51 ft) at 12:00" in text and ">>> print(headline" in text', "sed -i 's/(20.51 ft)$/(20.51 ft) at 12:00/' README.md",
         {"README.md": '# Tidepool\n\nReads what tide gauges say.\n\n```python\n>>> from tidepool.readings import load\n>>> from tidepool.report import headline\n>>> print(headline(load("tests/data/week.json")))\nBrest: 6.25 m (20.51 ft)\n\n```\n'},
         message="Say when the water was highest"),
    tide("mkdocs-strict-link", "mkdocs", "mkdocs build --strict",
         {**ADD_RANGES, "docs/ranges.md": "# Ranges\n\nRead a file first, as in [the guide](guid.md).\n"},
         HAS_RANGES + f'assert "[the guide](guide.md)" in {read("docs/ranges.md")}', "sed -i 's/guid.md/guide.md/' docs/ranges.md",
         {"mkdocs.yml": "site_name: Tidepool\n", "docs/index.md": "# Tidepool\n\nSee [the guide](guide.md).\n", "docs/guide.md": "# Guide\n\nGive it a file.\n"}),
    ledger("sphinx-short-underline", "sphinx", "sphinx-build -q -W -b html docs docs/_build",
           {**ADD_TRANSFER, "docs/transfer.rst": "Transfers between accounts\n===================\n\nBooked twice.\n", "docs/index.rst": "Ledgerkit\n=========\n\n.. toctree::\n\n   accounts\n   transfer\n"},
           HAS_TRANSFER + f'assert "\\n==========================\\n" in {read("docs/transfer.rst")}', "sed -i 's/^===*$/==========================/' docs/transfer.rst",
           {"docs/conf.py": 'project = "Ledgerkit"\nexclude_patterns = ["_build"]\n', "docs/index.rst": "Ledgerkit\n=========\n\n.. toctree::\n\n   accounts\n", "docs/accounts.rst": "Accounts\n========\n\nHold entries.\n"}),
]  # fmt: skip
FETCH = '"""Readings from the network."""\n\nfrom __future__ import annotations\n\nfrom datetime import datetime\n\nfrom dateutil import parser\n\n\ndef when(text: str) -> datetime:\n    """Read a time as a gauge writes it."""\n    return parser.parse(text)\n'
T_FETCH = "from tidepool.fetch import when\n\n\ndef test_when():\n    assert when('2 March 2024 06:00').hour == 6\n"
PRETTY = '"""Tables for people."""\n\nfrom __future__ import annotations\n\nfrom tabulate import tabulate\n\nfrom tidepool.readings import Reading\n\n\ndef pretty(readings: list[Reading]) -> str:\n    """Lay readings out with a head."""\n    return tabulate([[one.station, one.metres] for one in readings], headers=["station", "m"])\n'
T_PRETTY = 'from tidepool.pretty import pretty\nfrom tidepool.readings import Reading\n\n\ndef test_pretty():\n    assert "station" in pretty([Reading("Brest", 6.25, "12:00")])\n'
DECLARED = 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; names = [one.split(">")[0].split("=")[0].split("<")[0].split("~")[0].strip().lower() for one in project["dependencies"]]; '
IN_TEST = 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; assert project["dependencies"] == []; names = [one.split(">")[0].split("=")[0].split("<")[0].split("~")[0].strip().lower() for one in project["optional-dependencies"]["test"]]; '
PACKAGES = [
    tide("import-unlike-its-package", "pip install -q -e '.[test]'", "python -m pytest -q",
         {"tidepool/fetch.py": FETCH, "tests/test_fetch.py": T_FETCH},
         DECLARED + f'assert names == ["python-dateutil"]; assert "parser.parse(text)" in {read("tidepool/fetch.py")}', "sed -i 's/^dependencies = .*/dependencies = [\"python-dateutil\"]/' pyproject.toml; pip install -q -e '.[test]'",
         message="Read times as gauges write them"),
    tide("deptry-dev-dependency-used", "pip install -q -e '.[test]' deptry", "deptry .",
         {"tidepool/pretty.py": PRETTY, "tests/test_pretty.py": T_PRETTY},
         DECLARED + f'assert names == ["tabulate"]; assert "tabulate(" in {read("tidepool/pretty.py")}', "sed -i 's/^dependencies = .*/dependencies = [\"tabulate\"]/; s/, \"tabulate\"\\]$/]/' pyproject.toml",
         {"pyproject.toml": swap(TIDE_PROJECT, ('test = ["pytest"]', 'test = ["pytest", "tabulate"]')) + '\n[tool.deptry]\nextend_exclude = ["tests"]\noptional_dependencies_dev_groups = ["test"]\n\n[tool.deptry.per_rule_ignores]\nDEP002 = ["pytest"]\n'},
         message="Lay readings out with a head"),
    tide("deptry-dependency-no-more-used", "pip install -q -e '.[test]' deptry", "deptry .",
         {"tidepool/fetch.py": swap(FETCH, ("from dateutil import parser\n\n\n", "\n"), ("parser.parse(text)", "datetime.fromisoformat(text)"), ("from datetime import datetime\n\n", "from datetime import datetime\n")), "tests/test_fetch.py": swap(T_FETCH, ("2 March 2024 06:00", "2024-03-02T06:00"))},
         DECLARED + f'assert names == []; assert "fromisoformat" in {read("tidepool/fetch.py")}', "sed -i 's/^dependencies = .*/dependencies = []/' pyproject.toml",
         {"pyproject.toml": swap(TIDE_PROJECT, ("dependencies = []", 'dependencies = ["python-dateutil"]')) + '\n[tool.deptry]\nextend_exclude = ["tests"]\noptional_dependencies_dev_groups = ["test"]\n\n[tool.deptry.per_rule_ignores]\nDEP002 = ["pytest"]\n', "tidepool/fetch.py": FETCH, "tests/test_fetch.py": T_FETCH},
         message="Read times with the standard library"),
    tide("pytest-mock-fixture", "pip install -q -e '.[test]'", "python -m pytest -q",
         {**ADD_RANGES, "tests/test_ranges.py": T_RANGES + '\n\ndef test_reads_each_height_once(mocker):\n    readings = mocker.MagicMock()\n    readings.__iter__.return_value = iter([Reading("Brest", 1.5, ""), Reading("Brest", 2, "")])\n    assert tidal_range(readings) == 0.5\n    readings.__iter__.assert_called_once()\n'},
         HAS_RANGES + IN_TEST + f'assert "pytest-mock" in names; assert "mocker.MagicMock" in {read("tests/test_ranges.py")}', "sed -i 's/test = \\[\"pytest\"\\]/test = [\"pytest\", \"pytest-mock\"]/' pyproject.toml; pip install -q -e '.[test]'"),
    tide("coverage-options-without-plugin", "pip install -q -e '.[test]'", "python -m pytest -q",
         {**ADD_RANGES, "pyproject.toml": TIDE_PROJECT + 'addopts = "--cov=tidepool --cov-report=term"\n'},
         HAS_RANGES + IN_TEST + f'assert "pytest-cov" in names; assert "--cov=tidepool" in {read("pyproject.toml")}', "sed -i 's/test = \\[\"pytest\"\\]/test = [\"pytest\", \"pytest-cov\"]/' pyproject.toml; pip install -q -e '.[test]'"),
    ledger("mypy-stubs-missing", "pip install -q -e '.[dev]'", "mypy",
           {"src/ledgerkit/settings.py": '"""Settings."""\n\nfrom __future__ import annotations\n\nfrom typing import Any\n\nimport yaml\n\n\ndef settings(text: str) -> dict[str, Any]:\n    """Read settings."""\n    found: dict[str, Any] = yaml.safe_load(text)\n    return found\n', "tests/test_settings.py": "from ledgerkit.settings import settings\n\n\ndef test_settings():\n    assert settings('limit: 5') == {'limit': 5}\n", "pyproject.toml": swap(LEDGER_PROJECT, ("dependencies = []", 'dependencies = ["pyyaml"]'))},
           f'text = {read("pyproject.toml")}; import tomllib; dev = [one.lower() for one in tomllib.loads(text)["project"]["optional-dependencies"]["dev"]]; assert any("types-pyyaml" in one for one in dev); source = {read("src/ledgerkit/settings.py")}; assert "yaml.safe_load" in source and "ignore" not in source', "sed -i 's/dev = \\[\"pytest\", \"mypy\"\\]/dev = [\"pytest\", \"mypy\", \"types-PyYAML\"]/' pyproject.toml; pip install -q -e '.[dev]'",
           message="Read settings"),
    ledger("test-requirement-missing", "pip install -q -r requirements-dev.txt", "python -m pytest -q",
           {**ADD_TRANSFER, "tests/test_transfer.py": T_TRANSFER.replace("from ledgerkit.accounts", "import humanize\nfrom ledgerkit.accounts") + '\n\ndef test_large_amounts_read_well():\n    assert humanize.intcomma(Money(125000).cents) == "125,000"\n'},
           HAS_TRANSFER + f'text = {read("requirements-dev.txt")}; assert "humanize" in text and "pytest" in text; assert "humanize" not in {read("pyproject.toml")}', "echo humanize >> requirements-dev.txt; pip install -q humanize",
           {"requirements-dev.txt": "pytest\n"}),
    tide("marker-not-registered", "", "python -m pytest -q --strict-markers",
         {**ADD_RANGES, "tests/test_ranges.py": swap(T_RANGES, ("def test_tidal", "@pytest.mark.spring_tide\ndef test_tidal"), ("from tidepool.ranges", "import pytest\n\nfrom tidepool.ranges"))},
         HAS_RANGES + f'assert "spring_tide" in {read("pyproject.toml")}; assert "@pytest.mark.spring_tide" in {read("tests/test_ranges.py")}; assert "neap_tide" in {read("pyproject.toml")}', "sed -i 's/^markers = \\[/markers = [\"spring_tide: the highest tides\", /' pyproject.toml",
         {"pyproject.toml": TIDE_PROJECT + 'markers = ["neap_tide: the lowest tides"]\n'}),
    tide("script-entry-left-behind", "", "python -m pytest -q",
         {"tidepool/cli.py": None, "tidepool/app.py": CLI, "tests/test_cli.py": swap(T_CLI, ("tidepool.cli", "tidepool.app"))},
         f'from tidepool.app import main; text = {read("pyproject.toml")}; assert \'tidepool = "tidepool.app:main"\' in text; assert not __import__("os").path.exists("tidepool/cli.py")', "sed -i 's/tidepool.cli:main/tidepool.app:main/' pyproject.toml",
         {"tests/test_entry.py": 'import importlib\nimport tomllib\nfrom pathlib import Path\n\n\ndef test_scripts_load():\n    scripts = tomllib.loads(Path("pyproject.toml").read_text())["project"]["scripts"]\n    for target in scripts.values():\n        module, _, name = target.partition(":")\n        assert callable(getattr(importlib.import_module(module), name))\n'},
         message="Rename cli to app"),
]  # fmt: skip
TYPES = [
    ledger("mypy-implicit-optional", "mypy", "mypy",
           {"src/ledgerkit/transfer.py": swap(TRANSFER, ("amount: Money) -> None", "amount: Money, fee: Money = None) -> None"), ("    target.book(amount)\n", "    target.book(amount)\n    if fee is not None:\n        source.book(fee.negated())\n")), "tests/test_transfer.py": T_TRANSFER},
           HAS_TRANSFER + f'text = {read("src/ledgerkit/transfer.py")}; assert "fee: Money | None = None" in text or "fee: Optional[Money] = None" in text; assert "ignore" not in text', "sed -i 's/fee: Money = None/fee: Money | None = None/' src/ledgerkit/transfer.py"),
    ledger("mypy-no-return-annotation", "mypy", "make types",
           {**ADD_TRANSFER, "src/ledgerkit/transfer.py": TRANSFER.replace("amount: Money) -> None:", "amount: Money):")},
           HAS_TRANSFER + f'text = {read("src/ledgerkit/transfer.py")}; assert "amount: Money) -> None:" in text', "sed -i 's/amount: Money):/amount: Money) -> None:/' src/ledgerkit/transfer.py",
           {"Makefile": "types:\n\tmypy --strict src\n"}),
    ledger("mypy-ignore-no-more-needed", "mypy", "mypy",
           {**ADD_TRANSFER, "src/ledgerkit/accounts.py": swap(ACCOUNTS, ("            total = total.plus(entry)\n", "            total = total.plus(entry)  # type: ignore[union-attr]\n"))},
           HAS_TRANSFER + f'text = {read("src/ledgerkit/accounts.py")}; assert "total = total.plus(entry)\\n" in text', "sed -i 's/  # type: ignore.*//' src/ledgerkit/accounts.py"),
    ledger("mypy-attribute-renamed", "mypy", "mypy src",
           {**ADD_TRANSFER, "src/ledgerkit/money.py": MONEY_NOW.replace("cents", "minor"), **{path: str(text).replace(".cents", ".minor") for path, text in LEDGER.items() if path.endswith(("export.py", "test_export.py"))}, "src/ledgerkit/audit.py": '"""Audits."""\n\nfrom __future__ import annotations\n\nfrom ledgerkit.accounts import Account\n\n\ndef suspicious(account: Account, limit: int = 100000) -> bool:\n    """Tell whether an entry is over the limit."""\n    return any(one.cents > limit for one in account.entries)\n'},
           IN_SRC + f'from ledgerkit.audit import suspicious; from ledgerkit.accounts import Account; from ledgerkit.money import Money; assert suspicious(Account("a", [Money(minor=5)]), 4); assert "cents" not in {read("src/ledgerkit/money.py")}', "sed -i 's/one.cents/one.minor/' src/ledgerkit/audit.py",
           {"src/ledgerkit/audit.py": '"""Audits."""\n\nfrom __future__ import annotations\n\nfrom ledgerkit.accounts import Account\n\n\ndef suspicious(account: Account, limit: int = 100000) -> bool:\n    """Tell whether an entry is over the limit."""\n    return any(one.cents > limit for one in account.entries)\n'},
           message="Call the smallest unit minor"),
    ledger("mypy-override-without-parameter", "mypy", "mypy",
           {"src/ledgerkit/export.py": swap(EXPORT, ('    def dump(self, accounts: list[Account]) -> str:\n        """Write the accounts as text."""', '    def dump(self, accounts: list[Account], *, zeros: bool = True) -> str:\n        """Write the accounts as text."""'), ('    def dump(self, accounts: list[Account]) -> str:\n        """Write an object', '    def dump(self, accounts: list[Account], *, zeros: bool = True) -> str:\n        """Write an object'), ("for one in accounts})", "for one in accounts if zeros or one.balance().cents})")),
            "tests/test_zeros.py": 'from ledgerkit.export import JsonExporter\n\n\ndef test_zeros(account):\n    assert JsonExporter().dump([account], zeros=False) == "{}"\n'},
           IN_SRC + 'import inspect; from ledgerkit.export import CsvExporter, Exporter, JsonExporter; a, b, c = (inspect.signature(one.dump) for one in (CsvExporter, Exporter, JsonExporter)); assert a == b == c and "zeros" in a.parameters',
           "python - <<'E'\nimport pathlib\np = pathlib.Path('src/ledgerkit/export.py')\nold = 'list[Account]) -> str:'\nassert p.read_text().count(old) == 1\np.write_text(p.read_text().replace(old, 'list[Account], *, zeros: bool = True) -> str:'))\nE",
           message="Leave out what is empty"),
]  # fmt: skip
TALL = swap(REPORT, ("width: int = 12", "columns: int = 12"), ("{width}", "{columns}"))
PARSE = '"""Amounts from text."""\n\nfrom __future__ import annotations\n\nfrom ledgerkit.money import Money\n\n__all__ = ["parse"]\n\n\ndef parse(text: str) -> Money:\n    """Read an amount."""\n    whole, _, rest = text.partition(".")\n    return Money(int(whole) * 100 + int(rest or 0))\n'
T_PARSE = "from ledgerkit.money import Money\nfrom ledgerkit.reading import parse\n\n\ndef test_parse():\n    assert parse('1.50') == Money(150)\n"
CALLERS = [
    tide("function-renamed", "", "python -m pytest -q",
         {"tidepool/units.py": UNITS_NOW.replace("to_feet", "metres_to_feet"), "tidepool/__init__.py": str(TIDE["tidepool/__init__.py"]).replace("to_feet", "metres_to_feet"), "tests/test_units.py": T_UNITS.replace("to_feet", "metres_to_feet")},
         f'from tidepool.units import metres_to_feet; import tidepool.units, tidepool.report; assert not hasattr(tidepool.units, "to_feet"); assert {read("tidepool/report.py")}.count("metres_to_feet") == 2', "sed -i 's/\\bto_feet/metres_to_feet/' tidepool/report.py",
         message="Say what is converted to feet"),
    tide("keyword-renamed", "", "python -m pytest -q",
         {"tidepool/report.py": TALL, "tests/test_report.py": T_REPORT.replace("width=8", "columns=8"), "tests/test_wide.py": 'from tidepool.cli import main\n\n\ndef test_wide(capsys):\n    assert main(["tests/data/week.json"]) == 0\n    assert capsys.readouterr().out.startswith("Brest       6.25")\n'},
         f'import inspect; from tidepool.report import table; assert list(inspect.signature(table).parameters) == ["readings", "columns"]; assert "table(readings, columns=10)" in {read("tidepool/cli.py")}', "sed -i 's/width=10/columns=10/' tidepool/cli.py",
         message="Call the width of a table its columns"),
    tide("patched-name-moved", "", "python -m pytest -q tests",
         {"tidepool/clock.py": None, "tidepool/times.py": '"""Times."""\n\nimport time\n\n\ndef now():\n    """Tell the time."""\n    return time.time()\n\n\ndef today():\n    """Tell the day."""\n    return int(now() // 86400)\n', "tests/test_today.py": "from tidepool.times import today\n\n\ndef test_today():\n    assert today() > 19000\n"},
         f'import tidepool.times; assert \'monkeypatch.setattr("tidepool.times.now"\' in {read("tests/test_clock.py")}; assert not __import__("os").path.exists("tidepool/clock.py")', "sed -i 's/tidepool.clock/tidepool.times/' tests/test_clock.py; sed -i 's/tidepool.clock/tidepool.times/; s/clock\\.now/times.now/' tests/test_clock.py",
         {"tidepool/clock.py": '"""Times."""\n\nimport time\n\n\ndef now():\n    """Tell the time."""\n    return time.time()\n', "tests/test_clock.py": 'import importlib\n\n\ndef test_now(monkeypatch):\n    monkeypatch.setattr("tidepool.clock.now", lambda: 5)\n    assert importlib.import_module("tidepool.clock").now() == 5\n'},
         message="Call the clock times"),
    ledger("method-made-a-property", "", "python -m pytest -q",
           {"src/ledgerkit/accounts.py": swap(ACCOUNTS, ("    def balance(", "    @property\n    def balance(")), "src/ledgerkit/export.py": EXPORT.replace("balance()", "balance"), "tests/test_accounts.py": T_ACCOUNTS.replace("balance()", "balance")},
           IN_SRC + 'from ledgerkit.accounts import Account; from ledgerkit.statement import line; assert isinstance(Account.balance, property); assert line(Account("a")) == "a: 0.00 EUR"', "sed -i 's/balance()/balance/' src/ledgerkit/statement.py",
           message="Make the balance a property"),
    ledger("abstract-method-renamed", "", "python -m pytest -q",
           {"src/ledgerkit/export.py": EXPORT.replace("def dump(", "def write(", 2), "src/ledgerkit/statement.py": STATEMENT.replace(".dump(", ".write("), "tests/test_export.py": T_EXPORT.replace(".dump(", ".write(")},
           IN_SRC + 'from ledgerkit.accounts import Account; from ledgerkit.export import CsvExporter, Exporter; assert CsvExporter().write([Account("a")]) == "a,0\\n"; assert Exporter.__abstractmethods__ == {"write"}; assert not hasattr(CsvExporter, "dump")', "sed -i 's/def dump(/def write(/' src/ledgerkit/export.py",
           message="Call an exporter's method write"),
    tide("field-renamed-in-data", "", "python -m pytest -q",
         {"tidepool/readings.py": READINGS.replace("metres", "height")}
         | {"tidepool/report.py": swap(REPORT, ("one.metres", "one.height"), ("top.metres", "top.height"))},
         'from tidepool.readings import Reading, load; assert load("tests/data/week.json")[0].height == 6.25; assert not hasattr(Reading("a", 1, ""), "metres")', "sed -i 's/\"metres\"/\"height\"/' tests/data/week.json",
         message="Call what a gauge shows its height"),
    ledger("fixture-renamed", "", "python -m pytest -q",
           {**ADD_TRANSFER, "tests/conftest.py": CONFTEST.replace("def account(", "def cash("), "tests/test_accounts.py": T_ACCOUNTS.replace("account)", "cash)").replace("account.", "cash."), "tests/test_statement.py": T_STATEMENT.replace("account)", "cash)").replace("account.", "cash.").replace("[account]", "[cash]"), "tests/test_transfer.py": T_TRANSFER.replace("(account", "(cash").replace("account,", "cash,").replace("account.b", "cash.b")},
           HAS_TRANSFER + f'assert "def cash(" in {read("tests/conftest.py")} and "def account(" not in {read("tests/conftest.py")}; text = {read("tests/test_export.py")}; assert "def test_csv(cash)" in text and "def test_json(cash)" in text', "sed -i -E 's/\\baccount\\b/cash/' tests/test_export.py",
           ),
    ledger("unittest-alias-removed", "", "python -W error::DeprecationWarning -m pytest -q",
           {**ADD_TRANSFER, "tests/test_transfer.py": 'import unittest\n\nfrom ledgerkit.accounts import Account\nfrom ledgerkit.money import Money\nfrom ledgerkit.transfer import transfer\n\n\nclass TransferTest(unittest.TestCase):\n    def test_transfer(self):\n        cash, bank = Account("cash"), Account("bank")\n        transfer(cash, bank, Money(70))\n        self.assertEquals(bank.balance(), Money(70))\n        self.assertEquals(cash.balance(), Money(-70))\n'},
           HAS_TRANSFER + f'text = {read("tests/test_transfer.py")}; assert text.count("self.assertEqual(") == 2', "sed -i 's/assertEquals/assertEqual/' tests/test_transfer.py"),
    tide("keyword-only-now", "", "python -m pytest -q",
         {"tidepool/report.py": swap(REPORT, ("readings: list[Reading], width", "readings: list[Reading], *, width"))},
         'import inspect; from tidepool.report import table; assert inspect.signature(table).parameters["width"].kind is inspect.Parameter.KEYWORD_ONLY; from tidepool.weekly import weekly; from tidepool.readings import Reading; assert weekly([Reading("a", 1, "")]) == "Week\\n" + "a" + " " * 15 + "  1.00"', "sed -i 's/table(readings, 16)/table(readings, width=16)/' tidepool/weekly.py",
         {"tidepool/weekly.py": '"""Weekly reports."""\n\nfrom __future__ import annotations\n\nfrom tidepool.readings import Reading\nfrom tidepool.report import table\n\n\ndef weekly(readings: list[Reading]) -> str:\n    """Lay out a week."""\n    return "Week\\n" + table(readings, 16)\n', "tests/test_weekly.py": 'from tidepool.readings import Reading\nfrom tidepool.weekly import weekly\n\n\ndef test_weekly():\n    assert weekly([Reading("Brest", 6.25, "")]).startswith("Week\\nBrest")\n'},
         message="Take the width by name only"),
    tide("template-field-renamed", "", "python -m pytest -q",
         {"tidepool/mail.py": '"""Mails."""\n\nfrom __future__ import annotations\n\nfrom pathlib import Path\n\nfrom tidepool.readings import Reading, highest\n\nTEMPLATE = Path(__file__).parent / "templates" / "mail.txt"\n\n\ndef mail(readings: list[Reading]) -> str:\n    """Write a mail."""\n    top = highest(readings)\n    return TEMPLATE.read_text(encoding="utf-8").format(gauge=top.station, metres=top.metres)\n', "tests/test_mail.py": 'from tidepool.mail import mail\nfrom tidepool.readings import Reading\n\n\ndef test_mail():\n    assert mail([Reading("Brest", 6.25, "")]) == "Hello,\\n\\nat Brest the water stood at 6.25 m.\\n"\n'},
         f'from tidepool.mail import mail; from tidepool.readings import Reading; assert "at x the" in mail([Reading("x", 1, "")]); assert "gauge=top.station" in {read("tidepool/mail.py")}', "sed -i 's/{station}/{gauge}/' tidepool/templates/mail.txt",
         {"tidepool/mail.py": '"""Mails."""\n\nfrom __future__ import annotations\n\nfrom pathlib import Path\n\nfrom tidepool.readings import Reading, highest\n\nTEMPLATE = Path(__file__).parent / "templates" / "mail.txt"\n\n\ndef mail(readings: list[Reading]) -> str:\n    """Write a mail."""\n    top = highest(readings)\n    return TEMPLATE.read_text(encoding="utf-8").format(station=top.station, metres=top.metres)\n', "tidepool/templates/mail.txt": "Hello,\n\nat {station} the water stood at {metres} m.\n", "tests/test_mail.py": 'from tidepool.mail import mail\nfrom tidepool.readings import Reading\n\n\ndef test_mail():\n    assert "6.25 m" in mail([Reading("Brest", 6.25, "")])\n'},
         message="Call the place of a mail its gauge"),
    ledger("script-renamed-in-makefile", "", "make report",
           {**ADD_TRANSFER, "scripts/report.py": None, "scripts/balance_report.py": 'import sys\n\nsys.path.insert(0, "src")\n\nfrom ledgerkit.accounts import Account\nfrom ledgerkit.statement import statement\n\nprint("Balances")\nprint(statement([Account("cash")]))\n'},
           HAS_TRANSFER + f'text = {read("Makefile")}; assert "python scripts/balance_report.py" in text; assert not __import__("os").path.exists("scripts/report.py")', "sed -i 's#scripts/report.py#scripts/balance_report.py#' Makefile",
           {"Makefile": "report:\n\tpython scripts/report.py\n\n.PHONY: report\n", "scripts/report.py": 'import sys\n\nsys.path.insert(0, "src")\n\nfrom ledgerkit.accounts import Account\nfrom ledgerkit.statement import statement\n\nprint(statement([Account("cash")]))\n'}),
    ledger("all-lists-an-old-name", "ruff", "ruff check src",
           {"src/ledgerkit/reading.py": PARSE.replace("def parse(", "def parse_money("), "tests/test_reading.py": T_PARSE.replace(" parse", " parse_money")},
           IN_SRC + 'import ledgerkit.reading as r; assert r.__all__ == ["parse_money"] and r.parse_money("1.50").cents == 150', "sed -i 's/\"parse\"/\"parse_money\"/' src/ledgerkit/reading.py",
           {"src/ledgerkit/reading.py": PARSE, "tests/test_reading.py": T_PARSE},
           message="Say what is parsed"),
]  # fmt: skip
ELEVENTH = (*FORM, LICENSED, *GENERATED, *PACKAGES, *TYPES, *CALLERS)
