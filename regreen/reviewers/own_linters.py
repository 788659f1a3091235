"""The repository's own linters and formatters, in its own versions, in the sandbox: their configuration is code."""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from regreen.codebase.diff import parse
from regreen.codebase.linters import Chosen, chosen, node_setup
from regreen.codebase.trial import Trial, open_box
from regreen.errors import SetupFailed
from regreen.models import Evidence, RunResult, Skipped
from regreen.ports import Box
from regreen.reviewers.context import Claim, Report, ReviewContext
from regreen.reviewers.fresh import Hit, fresh

_SECONDS = 120.0
_MOST_FILES = 300


class OwnLinters:
    """Runs what the base configures, on the changed files of both sides: a change cannot bring its own rules."""

    name = "the repository's linters"

    def run(self, context: ReviewContext) -> Report:
        """Report what they say of new lines and not of the base. It stands in CI too, so nothing of it is posted."""
        if context.git is None:
            return Report()
        names = [e.path for e in context.base_tree]
        wanted = [c for c in chosen(names, context.before) if _files(c, context, after=True)]
        if not wanted:
            return Report()
        tools = ", ".join(c.linter.name for c in wanted)
        if not context.run_tests or context.sandbox is None or context.tests is None:
            reason = f"{tools} is configured; it runs in the sandbox, with --run-tests"
            return Report(skipped=(Skipped(self.name, reason),))
        groups: dict[Trial, list[Chosen]] = defaultdict(list)
        for one in wanted:
            groups[_trial(one, context.tests, names)].append(one)
        claims: list[Claim] = []
        skipped: list[Skipped] = []
        if len(context.files) > _MOST_FILES:
            left = f"{tools} looked at the {_MOST_FILES} riskiest of {len(context.files)} files"
            skipped.append(Skipped(self.name, left))
        read: list[str] = []
        for trial, group in groups.items():
            try:
                said, unsaid = _together(trial, group, context)
            except SetupFailed as error:
                what = ", ".join(c.linter.name for c in group)
                skipped.append(Skipped(self.name, f"{what} could not be installed: {error}"))
                continue
            claims += said
            skipped += [Skipped(self.name, reason) for reason in unsaid.values()]
            read += [_titled(c) for c in group if c.linter.name not in unsaid]
        note = f"its own {', '.join(read)}" if read else ""
        return Report(claims=tuple(claims), read=note, skipped=tuple(skipped))


def lint_rows(output: str, prints: str) -> Iterator[Hit]:
    """What a tool printed, in one of the ways that tools print."""
    match prints:
        case "json":
            yield from _json_rows(output)
        case "diff":
            yield from _diff_rows(output)
        case "names":
            for line in output.split("\n"):
                if line.strip() and not line.startswith(("[", " ")):
                    yield Hit("format", _path(line.strip()), 1, 1, "it would be formatted anew")
        case "annotations":
            for found in _ANNOTATION.finditer(output):
                number = int(found["line"])
                yield Hit(found["rule"], _path(found["path"]), number, number, found["text"])
        case _:
            for row in output.split("\n"):
                if (match := _LINE.fullmatch(row)) and not match["text"].startswith("note:"):
                    yield _worded(_path(match["path"]), int(match["line"]), match["text"])


_LINE = re.compile(
    r"(?P<path>[^:\n]{1,400}):(?P<line>\d{1,7}):(?:\d{1,7}:)? (?P<text>[^\n]{1,400})"
)
_ANNOTATION = re.compile(
    r"^::(?:error|warning) title=(?P<rule>[^,\n]{1,100}),file=(?P<path>[^,\n]{1,400}),line=(?P<line>\d{1,7})[^:\n]{0,100}::(?P<text>[^\n]{0,400})",
    re.MULTILINE,
)


def _files(one: Chosen, context: ReviewContext, *, after: bool) -> list[str]:
    files = [
        f
        for f in context.files[:_MOST_FILES]
        if f.status != ("deleted" if after else "added")
        and (f.path if after else f.old_path).endswith(one.linter.suffixes)
    ]
    return [f.path if after else f.old_path for f in files]


def _trial(one: Chosen, tests: Trial, names: Sequence[str]) -> Trial:
    """The environment a tool needs: its pinned version alone, beside the tests' packages, or the repository's lock."""
    if not one.linter.package:
        return replace(tests, setup=node_setup(names) or tests.setup)
    if not one.version:
        return tests
    pinned = f"python -m pip install -q {shlex.quote(f'{one.linter.package}=={one.version}')}"
    with_tests = one.linter.imports and tests.setup
    return replace(tests, setup=f"{tests.setup} && {pinned}" if with_tests else pinned)


def _together(
    trial: Trial, group: Sequence[Chosen], context: ReviewContext
) -> tuple[list[Claim], dict[str, str]]:
    """Claims of the tools that share an environment, and why some of them say nothing."""
    heads, unsaid = _ran(trial, group, context, after=True)
    bases: dict[str, list[Hit]] = {}

    def of_base(name: str) -> list[Hit]:
        if not bases:
            bases.update(_ran(trial, group, context, after=False)[0])
        return bases.get(name, [])

    claims: list[Claim] = []
    for one in group:
        found = heads.get(one.linter.name, [])
        if one.linter.prints == "names":
            new = _newly_named(found, partial(of_base, one.linter.name), context)
        else:
            new = fresh(context, found, partial(of_base, one.linter.name))
        claims += [_claim(hit, one) for hit in new]
    return claims, unsaid


def _newly_named(
    found: Sequence[Hit], of_base: Callable[[], Sequence[Hit]], context: ReviewContext
) -> list[Hit]:
    """Of files that are named whole: those that the base did not name, at the first line that they gained."""
    if not found:
        return []
    known = {h.path for h in of_base()}
    files = [f for h in found if (f := context.change.by_path.get(h.path)) and f.added_lines]
    return [
        Hit("format", f.path, f.added_lines[0], f.added_lines[0], "it would be formatted anew")
        for f in files
        if f.old_path not in known
    ]


def _ran(
    trial: Trial, group: Sequence[Chosen], context: ReviewContext, *, after: bool
) -> tuple[dict[str, list[Hit]], dict[str, str]]:
    assert context.git is not None  # noqa: S101 - `run` has looked
    assert context.sandbox is not None  # noqa: S101
    rev = context.head if after else context.merge_base
    hits: dict[str, list[Hit]] = {}
    unsaid: dict[str, str] = {}
    with open_box(
        trial, rev, git=context.git, sandbox=context.sandbox, cancel=context.cancel
    ) as box:
        for one in group:
            paths = _files(one, context, after=after)
            if not paths:
                continue
            ran = _run(box, one, paths)
            if ran.ended != "exit" or ran.exit_code not in one.linter.ends:
                unsaid[one.linter.name] = _why_not(one, ran)
            else:
                hits[one.linter.name] = list(lint_rows(ran.stdout, one.linter.prints))
    return hits, unsaid


def _run(box: Box, one: Chosen, paths: Sequence[str]) -> RunResult:
    files = " ".join(shlex.quote(f"./{p}") for p in paths)
    return box.run(("sh", "-c", f"{one.linter.command} {files}"), timeout=_SECONDS)


def _why_not(one: Chosen, ran: RunResult) -> str:
    name = _titled(one)
    if ran.ended == "timeout":
        return f"{name} is configured but took more than {_SECONDS:.0f} s"
    last = [x for x in (ran.stderr or ran.stdout).strip().split("\n") if x.strip()][-1:]
    if ran.exit_code == 127 or "No module named" in ran.stderr or "could not determine" in ran.stderr:  # fmt: skip
        return f"{name} is configured but not installed: tests.setup does not bring it"
    return f"{name} is configured but did not run: {' '.join(last)[:200]}"


def _titled(one: Chosen) -> str:
    return f"{one.linter.name} {one.version}".strip()


def _claim(hit: Hit, one: Chosen) -> Claim:
    name = one.linter.name
    return Claim(
        "style",
        f"own-{name.replace(' ', '-')}/{hit.rule}",
        "low",
        hit.path,
        hit.line,
        hit.end_line,
        title=f"{name}: {hit.message}"[:200],
        body=f"The repository's own {_titled(one)} reports it, and will in CI.",
        confidence=0.6,
        evidence=(
            Evidence(
                "analyzer",
                hit.message[:200],
                one.linter.command,
                head=hit.message,
                base="not reported",
            ),
        ),
    )


def _path(text: str) -> str:
    return text.removeprefix("/work/").removeprefix("./")


def _worded(path: str, line: int, text: str) -> Hit:
    """`F401 unused`, `unused-import ...` or mypy's `error: ...  [code]`."""
    coded = re.search(r"\[([\w-]{1,60})\]$", text)
    if text.startswith(("error:", "warning:")):
        return Hit(coded[1] if coded else "error", path, line, line, text)
    return Hit(text.split(" ", maxsplit=1)[0], path, line, line, text)


def _json_rows(output: str) -> Iterator[Hit]:
    """Ruff's list of hits, or eslint's list of files."""
    try:
        rows = json.loads(output)
    except (ValueError, RecursionError):
        return
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, Mapping):
            continue
        place = row.get("location")
        if isinstance(place, Mapping):
            rule = str(row.get("code"))
            line = int(place.get("row", 0))
            yield Hit(rule, _path(str(row.get("filename", ""))), line, line, f"{rule} {row.get('message')}")  # fmt: skip
        for message in row.get("messages") or ():
            rule, line = str(message.get("ruleId") or "error"), int(message.get("line") or 1)
            end = int(message.get("endLine") or line)
            yield Hit(rule, _path(str(row.get("filePath", ""))), line, end, f"{message.get('message')} ({rule})")  # fmt: skip


def _diff_rows(output: str) -> Iterator[Hit]:
    """A formatter's diff: one hit for every block of lines that it would write anew."""
    for file in parse(output).files:
        path = _path(file.path.removesuffix(":after"))
        for hunk in file.hunks:
            lines = [x.old for x in hunk.lines if x.kind == "-" and x.old] or [hunk.old_start]
            yield Hit("format", path, lines[0], lines[-1], "it would be formatted anew")
