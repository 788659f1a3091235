"""The repository's own linters and formatters, in its own versions, in the sandbox: their configuration is code."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import resources
from typing import Any

from regreen.code.config_loaders import load_toml
from regreen.code.diff import parse
from regreen.domain.errors import SetupFailed
from regreen.domain.models import RunResult, SkippedReviewer
from regreen.domain.ports import Box
from regreen.reviewers.analyzers.baseline import (
    Diagnostic,
    make_analyzer_claim,
    select_new_diagnostics,
)
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.runs.trial import Trial, open_box

_LINTER_SECONDS = 120.0
_MAX_FILES = 300


class OwnLinters:
    """Runs the linters that the base configures on both sides of the changed files: a change cannot bring its own rules."""

    name = "the repository's linters"

    def calls_out(self, context: ReviewContext) -> bool:
        """Where things are run."""
        return context.run_tests and context.sandbox is not None

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report new messages on new lines. CI shows them too, so none is posted."""
        if context.git is None:
            return ReviewerReport()
        names = [e.path for e in context.base_tree]
        wanted = [
            c
            for c in find_configured_linters(names, context.base_text)
            if _select_files(c, context, after=True)
        ]
        if not wanted:
            return ReviewerReport()
        tools = ", ".join(c.linter.name for c in wanted)
        if not context.run_tests or context.sandbox is None or context.tests is None:
            reason = f"{tools} is configured; it runs in the sandbox, with --run-tests"
            return ReviewerReport(skipped=(SkippedReviewer(self.name, reason, by_policy=True),))
        groups: dict[Trial, list[ConfiguredLinter]] = defaultdict(list)
        for linter in wanted:
            groups[_make_trial(linter, context.tests, names)].append(linter)
        claims: list[Claim] = []
        skipped: list[SkippedReviewer] = []
        if len(context.files) > _MAX_FILES:
            left = f"{tools} looked at the {_MAX_FILES} riskiest of {len(context.files)} files"
            skipped.append(SkippedReviewer(self.name, left))
        read: list[str] = []
        for trial, group in groups.items():
            try:
                group_claims, unsaid = _run_linters_and_make_claims(trial, group, context)
            except SetupFailed as error:
                what = ", ".join(c.linter.name for c in group)
                skipped.append(
                    SkippedReviewer(self.name, f"{what} could not be installed: {error}")
                )
                continue
            claims += group_claims
            skipped += [SkippedReviewer(self.name, reason) for reason in unsaid.values()]
            read += [_linter_title(c) for c in group if c.linter.name not in unsaid]
        note = f"its own {', '.join(read)}" if read else ""
        return ReviewerReport(claims=tuple(claims), read=note, skipped=tuple(skipped))


def parse_lint_output(output: str, prints: str) -> Iterator[Diagnostic]:
    """The diagnostics in a tool's output; `prints` is its form."""
    match prints:
        case "json":
            yield from _parse_json(output)
        case "diff":
            yield from _parse_diff(output)
        case "names":
            for line in output.split("\n"):
                if line.strip() and not line.startswith(("[", " ")):
                    yield Diagnostic(
                        "format", _strip_root(line.strip()), 1, 1, "it would be reformatted"
                    )
        case "annotations":
            for annotation in _ANNOTATION_LINE.finditer(output):
                values = dict(part.partition("=")[::2] for part in annotation[1].split(","))
                if {"title", "file", "line"} <= values.keys() and values["line"].isdecimal():
                    number = int(values["line"][:7])
                    path = _strip_root(values["file"])
                    yield Diagnostic(values["title"], path, number, number, annotation[2])
        case _:
            for row in output.split("\n"):
                if (match := _MESSAGE_LINE.fullmatch(row)) and not match["text"].startswith(
                    "note:"
                ):
                    yield _parse_message(
                        _strip_root(match["path"]), int(match["line"]), match["text"]
                    )


_MESSAGE_LINE = re.compile(
    r"(?P<path>[^:\n]{1,400}):(?P<line>\d{1,7}):(?:\d{1,7}:)? (?P<text>[^\n]{1,400})"
)
_ANNOTATION_LINE = re.compile(
    r"^::(?:error|warning) ([^:\n]{1,1000})::([^\n]{0,400})", re.MULTILINE
)


def _select_files(linter: ConfiguredLinter, context: ReviewContext, *, after: bool) -> list[str]:
    wanted = linter.linter
    paths = [
        f.path if after else f.old_path
        for f in context.files[:_MAX_FILES]
        if f.status != ("deleted" if after else "added")
    ]
    return [p for p in paths if p.endswith(wanted.suffixes) and p.startswith(wanted.folder)]


def _make_trial(linter: ConfiguredLinter, tests: Trial, names: Sequence[str]) -> Trial:
    """The environment for a tool: its pinned version alone or with the tests' packages, or the repository's lock."""
    if not linter.linter.package:
        return replace(tests, setup=node_setup_command(names) or tests.setup)
    if not linter.version:
        return tests
    pinned = f"python -m pip install -q {shlex.quote(f'{linter.linter.package}=={linter.version}')}"
    with_tests = linter.linter.imports and tests.setup
    return replace(tests, setup=f"{tests.setup} && {pinned}" if with_tests else pinned)


def _run_linters_and_make_claims(
    trial: Trial, group: Sequence[ConfiguredLinter], context: ReviewContext
) -> tuple[list[Claim], dict[str, str]]:
    """The claims of tools that share an environment, and why some of the tools failed."""
    heads, unsaid = _run_on_side(trial, group, context, after=True)
    bases: dict[str, list[Diagnostic]] = {}

    def of_base(name: str) -> list[Diagnostic]:
        if not bases:
            bases.update(_run_on_side(trial, group, context, after=False)[0])
        return bases.get(name, [])

    claims: list[Claim] = []
    for linter in group:
        found = heads.get(linter.linter.name, [])
        if linter.linter.prints == "names":
            new = _diagnostics_for_newly_listed_files(
                found, partial(of_base, linter.linter.name), context
            )
        else:
            new = select_new_diagnostics(context, found, partial(of_base, linter.linter.name))
        claims += [_make_claim(hit, linter) for hit in new]
    return claims, unsaid


def _diagnostics_for_newly_listed_files(
    found: Sequence[Diagnostic], of_base: Callable[[], Sequence[Diagnostic]], context: ReviewContext
) -> list[Diagnostic]:
    """For tools that only list files: the files that are not listed for the base, at their first added line."""
    if not found:
        return []
    known = {h.path for h in of_base()}
    files = [f for h in found if (f := context.change.by_path.get(h.path)) and f.added_lines]
    return [
        Diagnostic("format", f.path, f.added_lines[0], f.added_lines[0], "it would be reformatted")
        for f in files
        if f.old_path not in known
    ]


def _run_on_side(
    trial: Trial, group: Sequence[ConfiguredLinter], context: ReviewContext, *, after: bool
) -> tuple[dict[str, list[Diagnostic]], dict[str, str]]:
    assert context.git is not None  # noqa: S101 - `run` has looked
    assert context.sandbox is not None  # noqa: S101
    rev = context.head if after else context.merge_base
    hits: dict[str, list[Diagnostic]] = {}
    unsaid: dict[str, str] = {}
    with open_box(
        trial, rev, git=context.git, sandbox=context.sandbox, cancel=context.cancel
    ) as box:
        for linter in group:
            paths = _select_files(linter, context, after=after)
            if not paths:
                continue
            ran = _run_linter(box, linter, paths)
            if ran.ended != "exit" or ran.exit_code not in linter.linter.ends:
                unsaid[linter.linter.name] = _explain_failure(linter, ran)
            else:
                hits[linter.linter.name] = list(parse_lint_output(ran.stdout, linter.linter.prints))
    return hits, unsaid


def _run_linter(box: Box, linter: ConfiguredLinter, paths: Sequence[str]) -> RunResult:
    files = " ".join(shlex.quote(f"./{p}") for p in paths)
    return box.run(("sh", "-c", f"{linter.linter.command} {files}"), timeout=_LINTER_SECONDS)


def _explain_failure(linter: ConfiguredLinter, ran: RunResult) -> str:
    name = _linter_title(linter)
    if ran.ended == "timeout":
        return f"{name} is configured but took more than {_LINTER_SECONDS:.0f} s"
    last = [x for x in (ran.stderr or ran.stdout).strip().split("\n") if x.strip()][-1:]
    if (
        ran.exit_code == 127
        or "No module named" in ran.stderr
        or "could not determine" in ran.stderr
    ):
        return f"{name} is configured but not installed: tests.setup does not bring it"
    return f"{name} is configured but did not run: {' '.join(last)[:200]}"


def _linter_title(linter: ConfiguredLinter) -> str:
    return f"{linter.linter.name} {linter.version}".strip()


def _make_claim(hit: Diagnostic, linter: ConfiguredLinter) -> Claim:
    name = linter.linter.name
    return make_analyzer_claim(
        f"own-{name.replace(' ', '-')}/{hit.rule}",
        "low",
        hit.path,
        (hit.line, hit.end_line),
        dimension="style",
        title=f"{name}: {hit.message}"[:200],
        body=f"The repository's own {_linter_title(linter)} reports it, and will in CI.",
        confidence=0.6,
        excerpt=hit.message[:200],
        source=linter.linter.command,
        head=hit.message,
        base="not reported",
    )


def _strip_root(text: str) -> str:
    return text.removeprefix("/work/").removeprefix("./")


def _parse_message(path: str, line: int, text: str) -> Diagnostic:
    """`F401 unused`, `unused-import ...` or mypy's `error: ...  [code]`."""
    coded = re.search(r"\[([\w-]{1,60})\]$", text)
    if text.startswith(("error:", "warning:")):
        return Diagnostic(coded[1] if coded else "error", path, line, line, text)
    return Diagnostic(text.split(" ", maxsplit=1)[0], path, line, line, text)


def _parse_json(output: str) -> Iterator[Diagnostic]:
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
            yield Diagnostic(
                rule,
                _strip_root(str(row.get("filename", ""))),
                line,
                line,
                f"{rule} {row.get('message')}",
            )
        for message in row.get("messages") or ():
            rule, line = str(message.get("ruleId") or "error"), int(message.get("line") or 1)
            end = int(message.get("endLine") or line)
            yield Diagnostic(
                rule,
                _strip_root(str(row.get("filePath", ""))),
                line,
                end,
                f"{message.get('message')} ({rule})",
            )


def _parse_diff(output: str) -> Iterator[Diagnostic]:
    """A formatter's diff: one hit for each block of lines that it would change."""
    for file in parse(output).files:
        path = _strip_root(file.path.removesuffix(":after"))
        for hunk in file.hunks:
            lines = [x.old for x in hunk.lines if x.kind == "-" and x.old] or [hunk.old_start]
            yield Diagnostic("format", path, lines[0], lines[-1], "it would be reformatted")


# Which linters and formatters a repository has set up for itself, and in which versions. Pure.


@dataclass(frozen=True, slots=True)
class Linter:
    """A row of `own_linters.toml`, which explains its fields."""

    name: str
    command: str
    suffixes: tuple[str, ...]
    prints: str
    package: str = ""
    files: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    ends: tuple[int, ...] = (0, 1)
    imports: bool = False
    folder: str = ""


@cache
def _load_linters() -> tuple[Linter, ...]:
    table = resources.files("regreen.reviewers.analyzers").joinpath("own_linters.toml")
    linters = []
    for row in tomllib.loads(table.read_text("utf-8"))["linters"]:
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
        linters.append(Linter(**values))
    return tuple(linters)


@dataclass(frozen=True, slots=True)
class ConfiguredLinter:
    """A linter that the repository uses; `version` is empty if its environment decides."""

    linter: Linter
    version: str = ""


def find_configured_linters(
    names: Iterable[str], read: Callable[[str], str | None]
) -> list[ConfiguredLinter]:
    """The tools that a tree configures at its root. `read` gives a file's text."""
    root = {n for n in names if "/" not in n}
    sections = _find_sections(read)
    hooks = _read_hooks(read(".pre-commit-config.yaml") or "")
    found = []
    for linter in _load_linters():
        hooked = next((h for h in linter.hooks if h in hooks), None)
        if hooked is None and not root & {*linter.files} and not sections & {*linter.sections}:
            continue
        version = hooks.get(hooked or "", "") or _pinned_version(linter.package, root, read)
        found.append(ConfiguredLinter(linter, version))
    return found


def node_setup_command(names: Iterable[str]) -> str:
    """The command that installs the repository's Node tools without running package scripts."""
    root = set(names)
    if "pnpm-lock.yaml" in root:
        return "pnpm install --frozen-lockfile --ignore-scripts"
    if "yarn.lock" in root:
        return "yarn install --frozen-lockfile --ignore-scripts --non-interactive"
    return "npm ci --ignore-scripts --no-audit --no-fund" if "package-lock.json" in root else ""


def _find_sections(read: Callable[[str], str | None]) -> set[str]:
    """Sections in files that many tools share: `[tool.X]`, `[X]`, keys of package.json."""
    found: set[str] = set()
    try:
        tools = load_toml(read("pyproject.toml") or "").get("tool", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        tools = {}
    for name, table in tools.items() if isinstance(tools, Mapping) else ():
        found.add(name)
        found |= {f"{name}.{inner}" for inner in table} if isinstance(table, Mapping) else set()
    for path in ("setup.cfg", "tox.ini"):
        found |= set(re.findall(r"^\[(?:tool:)?(\w{1,40})\]", read(path) or "", re.MULTILINE))
    try:
        package = json.loads(read("package.json") or "{}")
    except (ValueError, RecursionError):
        package = {}
    return found | (
        {*package} & {"eslintConfig", "prettier"} if isinstance(package, dict) else set()
    )


def _read_hooks(config: str) -> dict[str, str]:
    """The hooks of a pre-commit configuration, with the revision of each one's repository as a version."""
    found: dict[str, str] = {}
    version = ""
    for line in config.split("\n"):
        if re.match(r"\s*+(?:-\s*+)?repo:", line):
            version = ""
        elif rev := re.match(r"\s*rev:\s*[\"']?v?(\d[\w.]{0,40})", line):
            version = rev[1]
        elif hook := re.match(r"\s*-\s*(?:\{\s*)?id:\s*[\"']?([\w-]{1,60})", line):
            found[hook[1]] = version
    return found


def _pinned_version(package: str, root: set[str], read: Callable[[str], str | None]) -> str:
    """The version that a lock or a list of requirements pins."""
    if not package:
        return ""
    name = re.escape(package)
    for path in sorted(root):
        if path in {"uv.lock", "poetry.lock", "pdm.lock"}:
            form = rf'^name = "{name}"\nversion = "(\d[\w.]{{0,40}})"'
        elif re.fullmatch(r"[\w.-]{0,200}requirements[\w.-]{0,200}\.txt", path):
            form = rf"^{name}==(\d[\w.]{{0,40}})"
        else:
            continue
        if match := re.search(form, read(path) or "", re.MULTILINE):
            return match[1]
    return ""
