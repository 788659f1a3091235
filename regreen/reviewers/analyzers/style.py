"""Style: the repository's habits, counted and scored; a deviation is posted only if the repository states the rule."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from regreen.code.diff import FileChange
from regreen.code.paths import is_test
from regreen.code.python_calls import FunctionNode, is_module, parse_python
from regreen.code.symbols import read_sources
from regreen.domain.models import Evidence, SkippedReviewer
from regreen.domain.text_limits import without_long_lines
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.markdown_sanitizer import count_noun

_MAX_SAMPLED_FILES = 300


class Conventions:
    """Compares new Python code with the habits of the existing code."""

    name = "conventions"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report where new code deviates from a habit, and quote the rule if the repository states it."""
        files = [f for f in context.files if is_module(f.path) and not is_test(f.path)]
        if not files:
            return ReviewerReport()
        if context.git is None:
            return ReviewerReport(
                skipped=(SkippedReviewer(self.name, "needs the repository, not a patch alone"),)
            )
        habits = learn_habits(_parse_sampled_files(context))
        rules = list(_find_written_rules(context))
        claims = [c for f in files for c in _make_claims(f, habits, rules, context)]
        known = sum(habits.is_habit(h) for h in set(habits.kept))
        return ReviewerReport(
            claims=tuple(claims),
            # without a habit to compare with, nothing was read
            read=f"{count_noun(known, 'habit')} learned from the repository" if known else "",
        )


def _parse_sampled_files(context: ReviewContext) -> Iterator[ast.Module]:
    """A sample of the base's Python, spread evenly over the tree."""
    assert context.git is not None  # noqa: S101 - the callers have looked
    paths = [e.path for e in context.base_tree if is_module(e.path) and not is_test(e.path)]
    step = max(1, len(paths) // _MAX_SAMPLED_FILES)
    chosen = set(paths[::step])
    for _, data in read_sources(context.git, context.merge_base, lambda p: p in chosen):
        if tree := parse_python(data):
            yield tree


@dataclass(frozen=True, slots=True)
class _WrittenRule:
    """A sentence in which the repository states a habit as a rule."""

    habit: str
    path: str
    sentence: str


_RULE_DOCUMENTS = re.compile(
    r"(?:^|/)(?:contributing|agents|claude|conventions?|style(?:[-_]?guide)?|hacking|development)\.(?:md|rst|txt)$",
    re.IGNORECASE,
)


@cache
def _load_habit_statements() -> dict[str, re.Pattern[str]]:
    table = resources.files("regreen.reviewers.analyzers").joinpath("habits.toml")
    stated = tomllib.loads(table.read_text("utf-8"))["stated"]
    return {habit: re.compile(pattern) for habit, pattern in stated.items()}


def _find_written_rules(context: ReviewContext) -> Iterator[_WrittenRule]:
    """Rules in the base's documents and in the configured instructions for reviewers."""
    texts = [(".github/regreen.yml", context.config.review.instructions)]
    texts += [
        (e.path, context.base_text(e.path) or "")
        for e in context.base_tree
        if e.path.count("/") <= 2 and _RULE_DOCUMENTS.search(e.path) and (e.size or 0) < 200_000
    ]
    for path, text in texts:
        for raw in re.split(r"[.!;\n]", without_long_lines(text)):
            sentence = raw.strip(" -*#>\t")
            if 8 <= len(sentence) <= 300:
                yield from (
                    _WrittenRule(h, path, sentence)
                    for h, p in _load_habit_statements().items()
                    if p.match(sentence)
                )


def _make_claims(
    file: FileChange, habits: Habits, rules: Sequence[_WrittenRule], context: ReviewContext
) -> Iterator[Claim]:
    tree = parse_python(context.head_text(file.path) or "")
    known: set[str] = set()
    for sighting in find_sightings(tree) if tree else ():
        if (
            sighting.kept
            or sighting.habit in known
            or not file.touches_lines(sighting.line, sighting.line)
        ):
            continue
        rule = next((r for r in rules if r.habit == sighting.habit), None)
        if habits.is_habit(sighting.habit):
            known.add(sighting.habit)
            is_import = sighting.habit == "imports are absolute"
            suggestion = (
                make_absolute_import(file.path, sighting.line, context) if is_import else None
            )
            yield _make_claim(file, sighting, habits, rule, suggestion)


_RELATIVE_IMPORT = re.compile(
    r"([ \t]{0,99}from[ \t]{1,9})(\.{1,9})([\w.]{0,200})([ \t]{1,9}import[ \t(].{0,999})"
)


def make_absolute_import(path: str, line: int, context: ReviewContext) -> str | None:
    """The line with its relative import written from the outermost package; None where that is not certain."""
    lines = (context.head_text(path) or "").splitlines()[line - 1 : line]
    found = _RELATIVE_IMPORT.fullmatch(lines[0]) if lines else None
    if found is None:
        return None
    outer, package = path.split("/")[:-1], list[str]()
    while outer and context.head_text("/".join([*outer, "__init__.py"])) is not None:
        package.insert(0, outer.pop())
    start, dots, module, rest = found.groups()
    named = [*package[: len(package) + 1 - len(dots)], *([module] if module else [])]
    return f"{start}{'.'.join(named)}{rest}" if len(dots) <= len(package) else None


def _make_claim(
    file: FileChange,
    sighting: HabitSighting,
    habits: Habits,
    rule: _WrittenRule | None,
    suggestion: str | None,
) -> Claim:
    """One claim for each file and habit; posted only if the repository states the rule and follows it."""
    kept, total = habits.count_kept(sighting.habit)
    support = f"{kept} of {total} places in this repository"
    quote = f'{rule.path} says: "{rule.sentence}"' if rule else ""
    return Claim(
        "style",
        f"convention/{sighting.habit.split(',', maxsplit=1)[0].replace(' ', '-')}",
        "low",
        file.path,
        sighting.line,
        sighting.line,
        title=f"`{sighting.what}`: elsewhere {sighting.habit}",
        body=f"{quote}\nSo do {support}." if rule else f"So do {support}.",
        confidence=0.85 if rule else 0.6,
        evidence=(
            Evidence("analyzer", support, "a comparison with the habits of the existing code"),
        ),
        quotes=quote,
        suggestion=suggestion,
    )


# The habits of a repository's Python code.

MIN_SIGHTINGS = 30
MIN_KEPT_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class HabitSighting:
    """One place where a habit is kept or broken; `line` is 1-based."""

    habit: str
    kept: bool
    line: int
    what: str


@dataclass(frozen=True)
class Habits:
    """How often each habit was kept and broken in the existing code."""

    kept: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)

    def count_kept(self, habit: str) -> tuple[int, int]:
        """How often it was kept, and of how many."""
        return self.kept[habit], self.kept[habit] + self.left[habit]

    def is_habit(self, habit: str) -> bool:
        """Whether it is a habit: frequent enough, and nearly always kept."""
        kept, total = self.count_kept(habit)
        return total >= MIN_SIGHTINGS and kept >= MIN_KEPT_SHARE * total


def learn_habits(trees: Iterable[ast.Module]) -> Habits:
    """Count the habits of a repository."""
    habits = Habits()
    for tree in trees:
        for sighting in find_sightings(tree):
            (habits.kept if sighting.kept else habits.left)[sighting.habit] += 1
    return habits


def find_sightings(tree: ast.Module) -> Iterator[HabitSighting]:
    """All places in a file that keep or break one of the habits."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _function_sightings(node)
            case ast.ClassDef():
                capital = _CAP_WORDS.fullmatch(node.name) is not None
                yield HabitSighting("classes are CapWords", capital, node.lineno, node.name)
            case ast.Call():
                yield from _call_sightings(node)
            case ast.ExceptHandler():
                named = node.type is not None
                yield HabitSighting("handlers name their exception", named, node.lineno, "except:")
            case ast.ImportFrom():
                star = any(a.name == "*" for a in node.names)
                whole = f"from {'.' * node.level}{node.module or ''} import"
                yield HabitSighting(
                    "names are imported one by one, not with *", not star, node.lineno, whole
                )
                yield HabitSighting("imports are absolute", node.level == 0, node.lineno, whole)
            case _:
                pass


def _function_sightings(node: FunctionNode) -> Iterator[HabitSighting]:
    if node.name.startswith(("visit_", "setUp", "tearDown", "assert", "do_", "__")):
        return  # a framework chose these names
    snake = _SNAKE_CASE.fullmatch(node.name) is not None
    yield HabitSighting("functions are snake_case", snake, node.lineno, node.name)
    if node.name.startswith("_"):
        return
    arguments = [a for a in node.args.args if a.arg not in {"self", "cls"}]
    annotated = node.returns is not None and all(a.annotation for a in arguments)
    yield HabitSighting("functions have annotations", annotated, node.lineno, node.name)
    if not node.name.startswith("test"):
        documented = ast.get_docstring(node, clean=False) is not None
        yield HabitSighting("functions have docstrings", documented, node.lineno, node.name)


def _call_sightings(node: ast.Call) -> Iterator[HabitSighting]:
    match node.func:
        case ast.Name(id="print"):
            yield HabitSighting("messages go to logging, not print", False, node.lineno, "print")
        case ast.Name(id="open"):
            yield HabitSighting(
                "files are read and written with pathlib", False, node.lineno, "open"
            )
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if (
            name.lower() in {"log", "logger", "logging", "_log", "_logger"} and attr in _LOG_METHODS
        ):
            yield HabitSighting(
                "messages go to logging, not print", True, node.lineno, f"{name}.{attr}"
            )
        case ast.Attribute(attr="read_text" | "write_text" | "read_bytes" | "write_bytes" as attr):
            yield HabitSighting("files are read and written with pathlib", True, node.lineno, attr)
        case _:
            pass


_LOG_METHODS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})
_SNAKE_CASE = re.compile(r"_*[a-z0-9]++(?>(?:_++[a-z0-9]++)*)_*")
_CAP_WORDS = re.compile(r"_*[A-Z][A-Za-z0-9]*_*")
