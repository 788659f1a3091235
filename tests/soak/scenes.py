"""What people and CI do on the playground while Regreen is killed: every kind of job, again and again."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from regreen_playground import Playground
from regreen_playground.things import Comment, Issue, Pull, Repository

SHOP, HUNT, MEND, NIGHT = "acme/shop", "acme/hunt", "acme/mend", "acme/night"
_FAULT = (
    "import subprocess\n\nfrom flask import request\n\n\ndef run():\n"
    '    subprocess.run("echo " + request.args["name"], shell=True)\n'
)
_TOTAL = '"""Prices."""\n\n\ndef total(prices):\n    """The sum."""\n    return sum(prices)\n'
_BROKEN = _TOTAL.replace("sum(prices)", "sum(prices[1:])")
_TEST = (
    "import unittest\n\nfrom prices import total\n\n\nclass TotalTest(unittest.TestCase):\n"
    "    def test_sum(self):\n        self.assertEqual(total([1, 2, 3]), 6)\n"
)
_RUN = "python3 -m unittest -q test_prices"
_FILES = {"prices.py": _TOTAL, "test_prices.py": _TEST}
_QUIET = "review: {enabled: false}\n"
_NIGHTLY = (
    f'{_QUIET}bisect:\n  revert_pr: true\n  schedules:\n    - {{name: nightly, cron: "* * * * *", '
    f'branch: main, test: "{_RUN}"}}\n'
)
_CONFIG = ".github/regreen.yml"


@dataclass
class Scene:
    """The repositories, and everything that was asked for in them."""

    playground: Playground
    dice: random.Random
    pulls: list[Pull] = field(default_factory=list)
    hunts: list[tuple[Issue, Comment]] = field(default_factory=list)
    mends: list[Pull] = field(default_factory=list)
    count: int = 0
    is_red: bool = False

    def set_up(self) -> list[str]:
        """Make the repositories; their names."""
        state = self.playground.state
        state.create(SHOP, {"shop.py": "PRICE = 1\n"})
        state.create(HUNT, {**_FILES, _CONFIG: _QUIET})
        state.create(MEND, {**_FILES, _CONFIG: f'{_QUIET}tests: {{command: "{_RUN}"}}\n'})
        state.create(NIGHT, {**_FILES, _CONFIG: _NIGHTLY})
        for name in (SHOP, HUNT, MEND, NIGHT):
            state.grant("alice", name, "write")
        for i in range(9):
            prices = {"prices.py": _BROKEN} if i == 4 else {}
            note = {f"notes/{i}.txt": "x\n"}
            state.commit(HUNT, {**note, **prices}, message=f"Step {i}", by="alice", quiet=True)
        return [SHOP, HUNT, MEND, NIGHT]

    def something_happens(self) -> None:
        """One more thing is asked for."""
        self.count += 1
        turns = [self._hunt, self._mend, self._night, self._command, self._review]
        turns[(self.count - 1) % len(turns)]()

    def _review(self) -> None:
        state, branch = self.playground.state, f"change-{self.count}"
        text = _FAULT if self.dice.random() < 0.7 else f"X = {self.count}\n"
        state.commit(SHOP, {f"new_{self.count}.py": text}, branch=branch, by="alice")
        self.pulls.append(state.open_pull(SHOP, branch, by="alice", title=branch))

    def _command(self) -> None:
        self._review()
        asked = self.dice.choice(["/config", "/help\n/cancel", "/retry\n/config", "/ask why?"])
        self.playground.state.comment(self.pulls[-1], asked, by="alice")

    def _hunt(self) -> None:
        state = self.playground.state
        issue = state.open_issue(HUNT, f"Totals are wrong {self.count}", by="alice")
        # the number makes each a hunt of its own: what an earlier one saw is no evidence for it
        asked = f'/bisect test="{_RUN} # {self.count}"'
        self.hunts.append((issue, state.comment(issue, asked, by="alice")))

    def _mend(self) -> None:
        state, branch = self.playground.state, f"mend-{self.count}"
        extra = {f"part_{self.count}.py": "PART = 1\n"}
        state.commit(MEND, extra, branch=branch, message="Add a part", by="alice")
        broken = {"prices.py": _BROKEN}
        state.commit(MEND, broken, branch=branch, message="Make it faster", by="alice")
        pull = state.open_pull(MEND, branch, by="alice", title=branch)
        state.comment(pull, "/fix", by="alice")
        self.mends.append(pull)

    def _night(self) -> None:
        state = self.playground.state
        self.is_red = not self.is_red
        files = {"prices.py": _BROKEN if self.is_red else _TOTAL, "n.txt": f"{self.count}\n"}
        state.commit(NIGHT, files, message=f"Change {self.count}", by="alice")

    def calm_down(self) -> None:
        """Take the schedule away, or there is more to do every minute."""
        self.playground.state.commit(NIGHT, {_CONFIG: _QUIET}, message="Sleep", by="alice")

    def repositories(self) -> list[Repository]:
        """All of them."""
        return [self.playground.state.repository(n) for n in (SHOP, HUNT, MEND, NIGHT)]
