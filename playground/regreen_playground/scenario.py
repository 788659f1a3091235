"""The demo's repository: a small library with two months of history, and what happens to it in each act."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.resources import files

from regreen_playground.gitstore import GitStore, Person
from regreen_playground.state import State
from regreen_playground.things import Repository

REPO = "orchard/ledger"
PEOPLE = ("ada", "bruno", "chloe", "dmitri", "emi")
_HEAD = re.compile(
    r"=== (?P<author>\w+) (?P<days>\d+)(?: (?P<how>on|merge) (?P<branch>\S+))? \| (?P<subject>.+)"
)


@dataclass(slots=True)
class Edit:
    """One change to one file: `old` None appends `new`, else replaces the one place where it stands."""

    path: str
    old: str | None
    new: str


@dataclass(slots=True)
class Planned:
    """One commit to be: `how` "on" puts it on a branch, "merge" merges that branch."""

    author: str
    days_ago: int
    how: str | None
    branch: str | None
    subject: str
    edits: list[Edit] = field(default_factory=list)


def read(text: str) -> list[Planned]:
    """The commits that a history file describes, oldest first.

    Raises:
        ValueError: a line is not in the format.
    """
    found: list[Planned] = []
    block: list[str] = []
    target: tuple[str, str] | None = None

    def close() -> None:
        if target is not None:
            verb, path = target
            body = "\n".join(block) + "\n"
            old, tilde, new = body.partition("~~~\n")
            found[-1].edits.append(Edit(path, old if tilde else None, new if tilde else body))
            if (verb == "swap") != bool(tilde):
                msg = f"{path}: a swap has a line ~~~, an addition has none"
                raise ValueError(msg)
        block.clear()

    for line in text.splitlines():
        head = _HEAD.fullmatch(line)
        if head:
            close()
            target = None
            found.append(
                Planned(
                    head["author"], int(head["days"]), head["how"], head["branch"], head["subject"]
                )
            )
        elif line.startswith(("--- add ", "--- swap ")):
            close()
            _, verb, path = line.split(" ", 2)
            target = (verb, path)
        elif target is not None:
            block.append(line)
        elif found or (line and not line.startswith("#")):
            msg = f"not in the format: {line!r}"
            raise ValueError(msg)
    close()
    return found


def apply(git: GitStore, base: str | None, edits: list[Edit]) -> str:
    """The tree that edits make of a commit's.

    Raises:
        ValueError: what should be replaced stands there not exactly once.
    """
    contents: dict[str, bytes | str | None] = {}
    for edit in edits:
        entry = git.at(base, edit.path) if base else None
        known = contents.get(edit.path)
        text = known if isinstance(known, str) else git.blob(entry.sha).decode() if entry else ""
        if edit.old is None:
            contents[edit.path] = text + edit.new
        elif text.count(edit.old) == 1:
            contents[edit.path] = text.replace(edit.old, edit.new)
        else:
            msg = f"{edit.path}: {edit.old!r} stands there {text.count(edit.old)} times"
            raise ValueError(msg)
    return git.write_files(base, contents)


def build(state: State, now: datetime) -> Repository:
    """Make the repository with its whole history, ending today."""
    text = files("regreen_playground").joinpath("data/ledger.history").read_text("utf-8")
    repository = state.create(REPO, private=False)
    git, main = repository.git, "refs/heads/main"
    for login in PEOPLE:
        state.grant(login, REPO, "write")
    for minute, planned in enumerate(read(text)):
        when = now - timedelta(days=planned.days_ago) + timedelta(minutes=minute)
        who = state.person(planned.author)
        person = Person(who.name, who.email, when)
        tip, branch = git.resolve(main), f"refs/heads/{planned.branch}"
        if planned.how == "merge":
            side = git.resolve(branch) or ""
            tree, parents = git.merge(tip or "", side) or "", [tip or "", side]
        else:
            start = (git.resolve(branch) or tip) if planned.how == "on" else tip
            tree, parents = apply(git, start, planned.edits), [start] if start else []
        sha = git.write_commit(tree, parents, planned.subject, person)
        git.set_ref(branch if planned.how == "on" else main, sha)
        if planned.how == "merge":
            git.delete_ref(branch)
    return repository


def commits(state: State, branch: str, text: str, hours_ago: int = 3) -> list[str]:
    """Push the commits of a history text to a branch (from main, if new), one push in all."""
    repository = state.repository(REPO)
    git, found = repository.git, []
    tip = git.branch(branch) or git.branch("main")
    for minute, planned in enumerate(read(text)):
        who = state.person(planned.author)
        when = state.now() - timedelta(hours=hours_ago) + timedelta(minutes=minute)
        tree = apply(git, tip, planned.edits)
        person = Person(who.name, who.email, when)
        tip = git.write_commit(tree, [tip] if tip else [], planned.subject, person)
        found.append(tip)
    if tip:
        state.push(REPO, branch, tip, by=read(text)[-1].author)
    return found


CURRENCY = '''=== chloe 0 | Convert currencies and check limits
--- add ledger/currency.py
"""Amounts in other currencies, and limits on them."""

from __future__ import annotations

import urllib.request

from . import money


def check_limit(cents: int, limit: int) -> int:
    """What is left of a limit; a limit that was passed is an error."""
    if cents > limit:
        ValueError(f"{money.show(cents)} is over the limit of {money.show(limit)}")
    return limit - cents


def rates(url: str) -> dict[str, float]:
    """The rates of the day, as a service gives them."""
    with urllib.request.urlopen(url) as answer:
        return eval(answer.read())


def convert_all(amounts: list[int], rate: float) -> list[int]:
    """Every amount in the other currency."""
    converted = []
    for cents in amounts:
        converted.append(round(cents * rate))
    return converted
--- add tests/test_currency.py
import unittest

from ledger import currency


class CheckLimitTest(unittest.TestCase):
    def test_what_is_left(self):
        self.assertEqual(currency.check_limit(300, 1000), 700)
'''

QUARTERS = '''=== emi 0 | Explain what a budget counts
--- add README.md

Only what goes out counts against a budget.
=== emi 0 | Count income into budgets
--- swap ledger/budget.py
    return {name: limit + min(spent.get(name, 0), 0) for name, limit in limits.items()}
~~~
    return {name: limit - spent.get(name, 0) for name, limit in limits.items()}
=== emi 0 | Sum up by quarter
--- add ledger/report.py


def by_quarter(entries: Iterable[Entry]) -> dict[str, int]:
    """The sum of each quarter, "2026-Q1" and so on."""
    sums: dict[str, int] = defaultdict(int)
    for one in entries:
        sums[f"{one.day.year}-Q{(one.day.month + 2) // 3}"] += one.cents
    return dict(sorted(sums.items()))
--- add tests/test_report.py


class ByQuarterTest(unittest.TestCase):
    def test_quarters(self):
        self.assertEqual(report.by_quarter(ENTRIES), {"2026-Q1": 118000})
'''

LATELY = '''=== bruno 0 | Choose entries by amount
--- add ledger/choose.py


def above(entries: Iterable[Entry], cents: int) -> list[Entry]:
    """The entries of more than an amount, in either direction."""
    return [one for one in entries if abs(one.cents) > cents]
--- add tests/test_choose.py


class AboveTest(unittest.TestCase):
    def test_either_direction(self):
        self.assertEqual(len(choose.above(ENTRIES, 50000)), 2)
=== chloe 0 | Say what a journal looks like
--- add README.md

    day,category,amount,note
    2026-01-02,food,-12.50,bread
=== dmitri 0 | Line up amounts at their first digit
--- swap ledger/table.py
    lines = [f"{name:<{names}}  {money.show(cents):>{amounts}}" for name, cents in sums.items()]
~~~
    lines = [f"{name:<{names}}  {money.show(cents):<{amounts}}" for name, cents in sums.items()]
=== ada 0 | Note the new choices
--- add CHANGES.md
- choices by amount
=== emi 0 | Name the library's version
--- add ledger/__init__.py

VERSION = "1.4"
=== bruno 0 | Thank everybody
--- add README.md

By Ada, Bruno, Chloe, Dmitri and Emi.
'''

SCHEDULE = """=== ada 0 | Have Regreen look at main every night
--- add .github/regreen.yml
bisect:
  schedules:
    - name: nightly
      cron: "{cron}"
      branch: main
      test: python -m unittest discover -s tests -t .
      lookback_days: 30
"""

SCHEDULE_OFF = """=== ada 0 | Have Regreen look at main less often
--- swap .github/regreen.yml
      cron: "* * * * *"
~~~
      cron: "0 3 * * *"
"""
