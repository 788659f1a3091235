"""One pull request of thirty pushes, with rebases, squashes and forced pushes: what its author hears, and how often."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from regreen_playground.model import Answer, Use
from regreen_playground.things import Json, Thread

from tests.stories.conftest import Tell, tell
from tests.stories.story import REPO, SeenPull, Story

__all__ = ["tell"]
pytestmark = pytest.mark.soak

PATHS = ("shop/a.py", "shop/b.py", "shop/c.py")
BUG = re.compile(r"BUG (\d+)")
ROW = re.compile(r"^ *(\d+) [+ ] (    x = .*# BUG \d+)$", re.MULTILINE)


class Reader:
    """A model that finds every line marked as a bug, and words each finding anew every time it is asked."""

    def __init__(self) -> None:
        self._times = itertools.count(1)

    def __call__(self, asked: Json) -> Answer:
        request: dict[str, Any] = dict(asked)
        texts = [b["text"] for m in request["messages"] for b in m["content"]]
        if "`verdicts`" in texts[-1]:
            rows = [{"claim": n, "traced": "so", "before": "right", "verdict": "holds", "certainty": 0.95} for n in range(1, 13)]  # fmt: skip
            return Use("verdicts", {"verdicts": rows})
        return Use("report", {"about": "A change.", "findings": list(self._findings(texts[0]))})

    def _findings(self, text: str) -> list[Json]:
        found: list[Json] = []
        for part in text.split("## ")[1:]:
            path = part.split(" ", 1)[0]
            for number, row in ROW.findall(part):
                mark = BUG.search(row)
                assert mark
                said = f"Reading {next(self._times)} says that x{mark[1]} is off"
                found.append(
                    {"path": path, "line": int(number), "quote": row, "title": said, "input": f"x{mark[1]}", "happens": said, "should": "be right",
                     "mend": "mend", "replacement": None, "kind": "wrong-result", "reach": "usual", "sure": 0.95}
                )  # fmt: skip
        return found


@dataclass
class Author:
    """The branch as its author has it: which bugs stand in which file, with how much code above them."""

    draw: random.Random
    bugs: dict[str, list[int]] = field(default_factory=lambda: {p: [] for p in PATHS})
    lines: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PATHS, 0))
    next_bug: int = 1

    def files(self) -> dict[str, str]:
        return {p: self._text(p) for p in PATHS}

    def _text(self, path: str) -> str:
        head = '"""Shop."""\n\n' + "".join(f"PAD_{i} = {i}\n" for i in range(self.lines[path]))
        pads = "".join(f"    # step {i}\n" for i in range(12))
        rows = "".join(f"    x = {b}  # BUG {b}\n{pads}" for b in self.bugs[path])
        return f"{head}\n\ndef run():\n    x = 0\n{pads}{rows}    return x\n"

    def adds(self) -> int:
        path = self.draw.choice(PATHS)
        self.bugs[path].append(self.next_bug)
        self.next_bug += 1
        return self.next_bug - 1

    def mends(self) -> int | None:
        there = [(p, b) for p, bugs in self.bugs.items() for b in bugs]
        if not there:
            return None
        path, bug = self.draw.choice(there)
        self.bugs[path].remove(bug)
        return bug

    def moves(self) -> None:
        self.lines[self.draw.choice(PATHS)] += self.draw.randint(1, 9)

    def standing(self) -> set[int]:
        return {b for bugs in self.bugs.values() for b in bugs}


def bug_of(story: Story, pull: SeenPull, thread: Thread) -> int:
    """Which bug a thread is about."""
    found = re.search(r"\bx(\d+) is off", thread.comments[0].body)
    assert found, thread.comments[0].body
    return int(found[1])


def unsure(story: Story) -> set[int]:
    """The bugs that the latest review found and kept back: dismissals teach it to be surer."""
    latest = story.regreen.store.documents(kind="review", limit=1)[0].body
    kept = [w["title"] for w in latest["withheld"] if w["reason"] == "confidence"]
    return {int(m[1]) for title in kept if (m := re.search(r"\bx(\d+) is off", title))}


def rebased(story: Story, pull: SeenPull, author: Author, *, onto: str) -> None:
    """One commit on `onto` with all of the branch's content, pushed by force."""
    name = f"tmp-{story.clock.monotonic()}-{random.random()}"
    sha = story.state.commit(REPO, author.files(), branch=name, start=onto, message="Squashed", by="alice", quiet=True)  # fmt: skip
    story.state.push(REPO, pull.raw.head_ref, sha, by="alice")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2])
def test_thirty_pushes(tell: Tell, seed: int) -> None:
    story = tell(Reader())
    story.configures(
        "review: {max_comments: 20, max_comments_per_push: 20, dimensions: [correctness]}\n"
        "budget: {usd_per_pull_request: 1000, usd_per_day: 1000}\n"
    )
    author = Author(random.Random(seed))
    author.adds()
    author.adds()
    pull = story.pull(author.files())
    story.work()
    dismissed: set[int] = set()
    mended_since: dict[int, int] = {}
    for push in range(30):
        kind = author.draw.choice(
            ["add", "add", "mend", "move", "rebase", "squash", "dismiss", "resolve", "again"]
        )
        before = author.standing()
        if kind == "add":
            author.adds()
        elif kind == "mend":
            author.mends()
        elif kind in {"move", "rebase"}:
            author.moves()
        open_ones = [t for t in pull.raw.threads if t.resolved_by is None]
        if kind in {"dismiss", "resolve"} and open_ones:
            thread = author.draw.choice(open_ones)
            dismissed.add(bug_of(story, pull, thread))
            if kind == "dismiss":
                wanted = thread.comments[0].body.split("/dismiss ")[1].split("`")[0]
                story.says("alice", f"/dismiss {wanted} no", on=pull)
            else:
                story.state.resolve(pull.raw, thread.comments[0], by="alice")
            story.work()
        for gone in before - author.standing():
            mended_since[gone] = mended_since.get(gone, 0) + 1
        if kind == "rebase":
            story.commits({"shop/main.py": f"MAIN = {push}\n"})
            rebased(story, pull, author, onto="main")
        elif kind == "squash":
            rebased(story, pull, author, onto="main")
        else:
            story.pushes(pull, {**author.files(), "shop/note.py": f"NOTE = {push}\n"})
        story.work()
        spoken = [
            bug_of(story, pull, t) for t in pull.raw.threads if t.comments[0].user.type == "Bot"
        ]
        doubled = {b for b in spoken if spoken.count(b) > 1 + mended_since.get(b, 0)}
        assert doubled == set(), f"push {push} ({kind}): said twice: {doubled}"
        assert {b for b in dismissed if spoken.count(b) > 1} == set(), f"push {push} ({kind})"
        still_open = {bug_of(story, pull, t) for t in pull.raw.threads if t.resolved_by is None}
        assert still_open <= author.standing(), f"push {push} ({kind}): mended and open"
        unsaid = author.standing() - dismissed - still_open
        assert unsaid <= unsure(story), f"push {push} ({kind}): standing, not open"
    assert [a.action for a in story.regreen.store.actions() if a.action == "review refused"] == []
