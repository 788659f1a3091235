"""Style: the repository's habits. Counted and scored; said only where the repository wrote the rule down."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regreen.codebase.conventions import Habit, Habits, Sighting, learn, sightings
from regreen.codebase.diff import FileChange
from regreen.codebase.python_code import parse_python
from regreen.codebase.sources import sources
from regreen.models import Evidence, Skipped
from regreen.reviewers.context import Claim, Report, ReviewContext
from regreen.reviewers.scope import is_test

_SAMPLE = 300


class Conventions:
    """Holds new Python against the habits of the code that was there before."""

    name = "conventions"

    def run(self, context: ReviewContext) -> Report:
        """Report where new code leaves a habit, with its support; quoted where the repository states the rule."""
        files = [f for f in context.files if f.path.endswith(".py") and not is_test(f.path)]
        if not files:
            return Report()
        if context.git is None:
            return Report(skipped=(Skipped(self.name, "needs the repository, not a patch alone"),))
        habits = learn(_trees(context))
        rules = list(_written_rules(context))
        claims = [c for f in files for c in _claims(f, habits, rules, context)]
        known = sum(habits.holds(h) for h in set(habits.kept))
        return Report(claims=tuple(claims), read=f"{known} habits learned from the repository")


def _trees(context: ReviewContext) -> Iterator[ast.Module]:
    """A sample of the base's Python, spread evenly over the tree."""
    assert context.git is not None  # noqa: S101 - the callers have looked
    paths = [e.path for e in context.base_tree if e.path.endswith(".py") and not is_test(e.path)]
    step = max(1, len(paths) // _SAMPLE)
    chosen = set(paths[::step])
    for _, data in sources(context.git, context.merge_base, lambda p: p in chosen):
        if tree := parse_python(data):
            yield tree


@dataclass(frozen=True, slots=True)
class _Rule:
    """A sentence in which the repository states a habit as a rule."""

    habit: Habit
    path: str
    sentence: str


_DOCUMENTS = re.compile(
    r"(?:^|/)(?:contributing|agents|claude|conventions?|style(?:[-_]?guide)?|hacking|development)\.(?:md|rst|txt)$",
    re.IGNORECASE,
)
_STATED: dict[Habit, re.Pattern[str]] = {
    "messages go to logging, not print": re.compile(
        r"(?=.*\bprint\b)(?=.*\b(?:never|don't|do not|no|avoid|instead|forbidden|not)\b)", re.IGNORECASE
    ),
    "handlers name their exception": re.compile(
        r"(?=.*\b(?:bare|broad|catch-all)\b)(?=.*\bexcept)", re.IGNORECASE
    ),
    "names are imported one by one, not with *": re.compile(
        r"(?=.*\b(?:star|wildcard|import \*))(?=.*\b(?:never|don't|do not|no|avoid|forbidden)\b)", re.IGNORECASE
    ),
    "imports are absolute": re.compile(
        r"(?=.*\bimports?\b)(?=.*\b(?:absolute imports?|no relative|never relative|avoid relative))", re.IGNORECASE
    ),
    "functions have annotations": re.compile(
        r"(?=.*\b(?:annotat|type hint|typed))(?=.*\b(?:must|every|all|always|required|everything)\b)", re.IGNORECASE
    ),
    "functions have docstrings": re.compile(
        r"(?=.*\bdocstring)(?=.*\b(?:must|every|all|always|required|needs?)\b)", re.IGNORECASE
    ),
    "functions are snake_case": re.compile(r"(?=.*\bsnake_case\b)", re.IGNORECASE),
    "files are read and written with pathlib": re.compile(
        r"(?=.*\bpathlib\b)(?=.*\b(?:use|always|prefer|instead|never|must)\b)", re.IGNORECASE
    ),
}  # fmt: skip


def _written_rules(context: ReviewContext) -> Iterator[_Rule]:
    """Rules in the base's own documents, and in what the configuration tells reviewers."""
    texts = [(".github/regreen.yml", context.config.review.instructions)]
    texts += [
        (e.path, context.before(e.path) or "")
        for e in context.base_tree
        if e.path.count("/") <= 2 and _DOCUMENTS.search(e.path) and (e.size or 0) < 200_000
    ]
    for path, text in texts:
        for raw in re.split(r"[.!;\n]", text):
            sentence = raw.strip(" -*#>\t")
            if 8 <= len(sentence) <= 300:
                yield from (
                    _Rule(h, path, sentence) for h, p in _STATED.items() if p.match(sentence)
                )


def _claims(
    file: FileChange, habits: Habits, rules: Sequence[_Rule], context: ReviewContext
) -> Iterator[Claim]:
    tree = parse_python(context.after(file.path) or "")
    said: set[Habit] = set()
    for seen in sightings(tree) if tree else ():
        if seen.kept or seen.habit in said or not file.touches(seen.line, seen.line):
            continue
        rule = next((r for r in rules if r.habit == seen.habit), None)
        if habits.holds(seen.habit):
            said.add(seen.habit)
            yield _claim(file, seen, habits, rule)


def _claim(file: FileChange, seen: Sighting, habits: Habits, rule: _Rule | None) -> Claim:
    """Once a file and habit. Posted only when the repository wrote the rule down and keeps it."""
    kept, total = habits.support(seen.habit)
    support = f"{kept} of {total} places in this repository"
    quote = f'{rule.path} says: "{rule.sentence}"' if rule else ""
    return Claim(
        "style",
        f"convention/{seen.habit.split(',', maxsplit=1)[0].replace(' ', '-')}",
        "low",
        file.path,
        seen.line,
        seen.line,
        title=f"`{seen.what}`: elsewhere {seen.habit}",
        body=f"{quote}\nSo do {support}." if rule else f"So do {support}.",
        confidence=0.85 if rule else 0.6,
        evidence=(Evidence("analyzer", support, "conventions of the merge base"),),
        quotes=quote,
    )
