"""Correctness of compiled languages: what their compilers and linters say at the head and not at the merge base.

The language's own tools run in a box without network, on one tree after the other. What a change breaks in lines that it leaves
alone is blamed on the changed line that shares most names with the message.
"""

from __future__ import annotations

import io
import posixpath
import re
import tarfile
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources

from regreen.code.paths import is_test
from regreen.code.symbols import Definition, read_outline
from regreen.domain.errors import SetupFailed
from regreen.domain.languages import CompilerRun, CompilerTools, Language
from regreen.domain.models import BoxLimits, EnvSpec, Severity, Side, SkippedReviewer
from regreen.domain.ports import Sandbox
from regreen.languages.registry import LANGUAGES, find_language
from regreen.languages.toolchains import find_debian_packages
from regreen.reviewers.analyzers.baseline import (
    Diagnostic,
    commentable_range,
    make_analyzer_claim,
    select_new_diagnostics,
)
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport

_SECONDS = 240.0
_MiB = 1024**2
_LIMITS = BoxLimits(memory=3072 * _MiB, disk=2048 * _MiB, tmp=1024 * _MiB, output=16 * _MiB)
_MISSING = "regreen-has-no-such-program"
_MIN_SURE_CONFIDENCE = 0.85
_MAX_CHANGED_LINES = 2000
_WORD = re.compile(r"[A-Za-z_]\w+")
_NAMED = re.compile(r"`[^`\n]{1,200}`|symbol:\s+\S+\s+[\w.]+")
"""What a message of rustc or javac names in its sentence."""


@dataclass(frozen=True, slots=True)
class CompilerRule:
    """A row of `compiler_rules.toml`, which explains its fields."""

    severity: Severity
    confidence: float
    why: str
    lost: float = 0


@cache
def load_compiler_rules() -> Mapping[str, Mapping[str, CompilerRule]]:
    """The rules of each language, by the language's row in `languages.toml`."""
    table = resources.files("regreen.reviewers.analyzers.compiled").joinpath("compiler_rules.toml")
    return {
        name: {rule: CompilerRule(**row) for rule, row in rows.items()}
        for name, rows in tomllib.loads(table.read_text("utf-8")).items()
    }


class CompilerChecks:
    """Holds what compilers say of changed code, and of the code that uses it, against the merge base."""

    name = "compilers"

    def calls_out(self, context: ReviewContext) -> bool:
        """Where a file of a compiled language has changed."""
        return context.find_sandbox is not None and bool(_find_changed_languages(context))

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report what is new, each language by itself."""
        languages = _find_changed_languages(context)
        if not languages:
            return ReviewerReport()
        if context.git is None:
            reason = "needs the repository, not a patch alone"
            return ReviewerReport(skipped=(SkippedReviewer(self.name, reason),))
        sandbox = context.find_sandbox() if context.find_sandbox else None
        if sandbox is None:
            titles = " and ".join(x.title for x in languages)
            reason = f"{titles} was not compiled: no sandbox works here"
            return ReviewerReport(skipped=(SkippedReviewer(self.name, reason),))
        claims: list[Claim] = []
        read: list[str] = []
        skipped: list[SkippedReviewer] = []
        for language in languages:
            answer = _check_language(language, context, sandbox)
            if isinstance(answer, str):
                skipped.append(SkippedReviewer(self.name, answer, by_policy=True))
            else:
                claims += answer
                read.append(language.title)
        note = f"the compiler on {' and '.join(read)}" if read else ""
        return ReviewerReport(claims=tuple(claims), read=note, skipped=tuple(skipped))


def _find_changed_languages(context: ReviewContext) -> list[Language]:
    changed = {find_language(f.path) for f in context.files}
    return [x for x in LANGUAGES if x in changed and x.compiler is not None]


def _check_language(
    language: Language, context: ReviewContext, sandbox: Sandbox
) -> list[Claim] | str:
    """The claims of one language's compiler, or why there are none."""
    tools = language.compiler
    assert tools is not None  # noqa: S101 - only such languages are chosen
    plan = context.run_isolated(_plan_run, language.title, True)
    if plan.runs_code and not context.may_run:
        return f"{language.title} was not compiled: {plan.runs_code} of the change would run; somebody with write access can allow that"
    output = _run_compiler(language, tools, plan, context, sandbox, context.head)
    if isinstance(output, CompilerFailure):
        return output.reason
    if not context.run_isolated(_has_blamable_diagnostic, language.title, output):
        return []
    plan = context.run_isolated(_plan_run, language.title, False)
    before = _run_compiler(language, tools, plan, context, sandbox, context.merge_base)
    known = "" if isinstance(before, CompilerFailure) else before
    return context.run_isolated(
        _claim_new_diagnostics,
        language.title,
        output,
        known,
        not isinstance(before, CompilerFailure),
    )


def _plan_run(context: ReviewContext, title: str, at_head: bool) -> CompilerRun:
    language = next(x for x in LANGUAGES if x.title == title)
    assert language.compiler is not None  # noqa: S101 - only such languages are chosen
    if not at_head:
        files = {f.old_path for f in context.files if find_language(f.old_path) is language}
        return language.compiler.plan_run(
            files, {e.path for e in context.base_tree}, context.base_text
        )
    changed = [f for f in context.files if find_language(f.path) is language]
    files = {f.path for f in changed if f.status != "deleted"} or {f.path for f in changed}
    return language.compiler.plan_run(files, {e.path for e in context.head_tree}, context.head_text)


@dataclass(frozen=True, slots=True)
class CompilerFailure:
    """Why a compiler did not run."""

    reason: str


def _run_compiler(  # noqa: PLR0917
    language: Language,
    tools: CompilerTools,
    plan: CompilerRun,
    context: ReviewContext,
    sandbox: Sandbox,
    rev: str,
) -> str | CompilerFailure:
    assert context.git is not None  # noqa: S101 - `run` has looked
    programs = [f"{path} {sha256(data).hexdigest()}" for path, data in plan.programs.items()]
    spec = EnvSpec(
        image=context.config.tests.image,
        setup=f"command -v {tools.program} >/dev/null || {{ echo {_MISSING}; exit 1; }}; {plan.setup}"
        if plan.setup
        else None,
        inputs="\n".join(programs),
        scope="compilers",
        checked=True,
        host_programs=True,
    )
    missing = CompilerFailure(_explain_missing(language.title, tools.program))
    try:
        env = sandbox.prepare(spec, [_pack_files(plan.programs)], context.cancel)
    except SetupFailed as error:
        if _MISSING in error.output:
            return missing
        error_text = " ".join(error.output.split())[-200:]
        return CompilerFailure(f"{language.title} was not compiled: {error}: {error_text}")
    with sandbox.open(env, context.git.archive(rev, plan.files), _LIMITS) as box:
        command = f"command -v {tools.program} >/dev/null || exit 127; {plan.command}"
        done = box.run(("sh", "-c", command), timeout=_SECONDS, cancel=context.cancel)
    if done.ended != "exit":
        how = (
            f"it took more than {_SECONDS:.0f} s"
            if done.ended == "timeout"
            else done.detail or done.ended
        )
        return CompilerFailure(f"{language.title} was not compiled: {how}")
    if done.exit_code == 127:
        return missing
    refused = re.search(r"^#error: ([^\n]{1,300})", done.stdout, re.MULTILINE)
    if refused and not list(tools.parse_output(done.stdout)):
        return CompilerFailure(f"{language.title} was not compiled: {refused[1]}")
    return done.stdout


def _explain_missing(title: str, program: str) -> str:
    packages = find_debian_packages(program)
    hint = f" (on Debian: apt-get install {packages})" if packages else ""
    return f"{title} was not compiled: {program} is not installed in the sandbox; install it on this machine{hint}, or name an image that has it as tests.image"


def _pack_files(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


# Reading what was printed, in a child process with limits.


@dataclass(frozen=True, slots=True)
class _Output:
    """What a compiler said, as far as a rule of the table reports it."""

    language: Language
    hits: tuple[Diagnostic, ...]

    @classmethod
    def parse(cls, context: ReviewContext, title: str, output: str) -> _Output:
        language = next(x for x in LANGUAGES if x.title == title)
        assert language.compiler is not None  # noqa: S101 - only such languages are run
        gone = _find_removed_names(context, language)
        found = [
            x
            for x in language.compiler.parse_output(output)
            if not x.unresolved
            or not gone.isdisjoint(_WORD.findall(" ".join(_NAMED.findall(x.message))))
        ]
        hits = [Diagnostic(x.rule, x.path, x.line, x.end_line, x.message) for x in found]
        return cls(language, tuple(dict.fromkeys(h for h in hits if _find_rule(language, h.rule))))

    def rule_of(self, hit: Diagnostic) -> CompilerRule:
        rule = _find_rule(self.language, hit.rule)
        assert rule is not None  # noqa: S101 - others were left out
        return rule


def _find_removed_names(context: ReviewContext, language: Language) -> set[str]:
    """The definitions that the change takes out of its files, wherever they stood."""
    names: dict[str, set[str]] = {"before": set(), "after": set()}
    for file in context.change.files:
        sides = (
            ("before", file.old_path, context.base_text),
            ("after", file.path, context.head_text),
        )
        for side, path, read in sides:
            text = read(path) if find_language(path) is language else None
            outline = read_outline(path, (text or "").encode("utf-8", "surrogateescape"))
            names[side].update(d.short_name for d in outline.definitions)
    return names["before"] - names["after"]


def _find_rule(language: Language, name: str) -> CompilerRule | None:
    rules = next(r for key, r in load_compiler_rules().items() if key in language.files)
    if name in rules:
        return rules[name]
    if _is_error(name):
        return rules["error"]
    return rules.get("clippy::correctness") if name.startswith("clippy::") else None


def _is_error(rule: str) -> bool:
    return (
        rule == "compile" or rule.startswith("compiler.err.") or bool(re.fullmatch(r"E\d{4}", rule))
    )


def _has_blamable_diagnostic(context: ReviewContext, title: str, output: str) -> bool:
    """Whether anything was said that a change can be blamed for."""
    return any(
        _is_error(h.rule) or h.path in context.change.by_path
        for h in _Output.parse(context, title, output).hits
    )


def _claim_new_diagnostics(
    context: ReviewContext, title: str, output: str, before: str, has_base: bool
) -> list[Claim]:
    head, base = _Output.parse(context, title, output), _Output.parse(context, title, before)
    own = [h for h in head.hits if h.path in context.change.by_path]
    new = select_new_diagnostics(
        context,
        own,
        lambda: base.hits,
        sure=lambda h: has_base and head.rule_of(h).confidence >= _MIN_SURE_CONFIDENCE,
    )
    files = context.change.by_path
    on_changed_lines = {h for h in new if files[h.path].touches_lines(h.line, h.end_line)}
    known = Counter((h.path, h.rule, h.message) for h in base.hits)
    elsewhere: list[Diagnostic] = [h for h in new if h not in on_changed_lines]
    for hit in head.hits if has_base else ():
        if _is_error(hit.rule) and hit.path not in context.change.by_path:
            key = (hit.path, hit.rule, hit.message)
            if known[key] <= 0:
                elsewhere.append(hit)
            known[key] -= 1
    claims = [_make_claim(hit, head, context) for hit in new if hit in on_changed_lines]
    blamed: dict[_Cause | None, list[Diagnostic]] = {}
    for hit in elsewhere:
        cause = _find_cause(hit, context, head.language) if _is_error(hit.rule) else None
        if cause is None and hit.path in context.change.by_path:
            claims.append(_make_claim(hit, head, context))
        elif cause is not None:
            blamed.setdefault(cause, []).append(hit)
    return _limit_errors(claims) + [
        _make_caller_claim(cause, hits, context) for cause, hits in blamed.items() if cause
    ]


def _limit_errors(claims: Sequence[Claim]) -> list[Claim]:
    """One claim for each line: an error is often followed by others of the same cause."""
    first: dict[tuple[str, int], Claim] = {}
    for claim in claims:
        first.setdefault((claim.path, claim.line), claim)
    return list(first.values())


def _make_claim(hit: Diagnostic, output: _Output, context: ReviewContext) -> Claim:
    rule = output.rule_of(hit)
    rows = (context.head_text(hit.path) or "").split("\n")
    place = commentable_range(context, hit)
    at = "" if place == (hit.line, hit.end_line) else f" (in line {hit.line})"
    confidence = rule.confidence
    if rule.lost and _was_used_before(hit, context):
        confidence = rule.lost
    return make_analyzer_claim(
        f"{output.language.title.lower()}/{'does-not-compile' if _is_error(hit.rule) else hit.rule.removeprefix('clippy::').removeprefix('compiler.warn.')}",
        rule.severity,
        hit.path,
        place,
        title=_shorten(hit.message) + at,
        body=rule.why,
        confidence=round(confidence * (0.93 if is_test(hit.path) else 1), 4),
        excerpt="\n".join(rows[hit.line - 1 : hit.end_line])[:500],
        source=f"the compiler ({hit.rule})" if _is_error(hit.rule) else hit.rule,
        head=hit.message[:300],
        base="not reported",
        anywhere=True,
    )


def _shorten(message: str) -> str:
    text = " ".join(message.split()).rstrip(".").replace("'", "`")
    return (text[:1].upper() + text[1:])[:200]


def _was_used_before(hit: Diagnostic, context: ReviewContext) -> bool:
    """Whether the same function of the merge base calls what the message names, and its value was looked at there."""
    file = context.change.by_path.get(hit.path)
    text, old = context.head_text(hit.path), context.base_text(file.old_path) if file else None
    name = re.search(r"`(\w{1,100})`", hit.message)
    if file is None or text is None or old is None or name is None:
        return False
    here = read_outline(hit.path, text.encode("utf-8", "surrogateescape")).definition_at(hit.line)
    before = read_outline(file.old_path, old.encode("utf-8", "surrogateescape")).definitions
    same = next(
        (d for d in before if here and (d.name, d.kind) == (here.name, here.kind)), None
    )  # a field may have the name of its method
    if same is None:
        return False
    lines = old.split("\n")[same.start - 1 : same.end]
    calls = [m[1] for line in lines if (m := re.match(rf"(.*)\b{re.escape(name[1])}\(", line))]
    return bool(calls) and not any(map(_THROWN_AWAY.fullmatch, calls))


_THROWN_AWAY = re.compile(r"\s*(?:(?:let )?(?:_, *)*_ *:?= *|defer |go )?(?:[\w.\[\]()]{1,200}\.)?")
"""What stands before a call whose value nothing looks at."""


@dataclass(frozen=True, slots=True)
class _Cause:
    """A changed line, with the name of the definition around it ("" at the top)."""

    path: str
    line: int
    side: Side
    name: str


def _find_cause(hit: Diagnostic, context: ReviewContext, language: Language) -> _Cause | None:
    """The changed line that shares most names with the error; a definition that the error names counts most."""
    rows = (context.head_text(hit.path) or "").split("\n")
    code = rows[hit.line - 1][:2000] if hit.line <= len(rows) else ""
    named_words = {*_WORD.findall(hit.message)} & {*_WORD.findall(code)}
    used = {*_WORD.findall(code)} | {*re.findall(r"[`'.](\w{2,100})\b", hit.message)}
    best: tuple[int, _Cause] | None = None
    for file in context.files:
        if find_language(file.path) is not language:
            continue
        sides: tuple[tuple[Side, str, Sequence[int], str | None], ...] = (
            ("RIGHT", file.path, file.added_lines, context.head_text(file.path)),
            ("LEFT", file.old_path, file.removed_lines, context.base_text(file.old_path)),
        )
        for side, path, lines, text in sides:
            if text is None or not lines:
                continue
            outline = read_outline(path, text.encode("utf-8", "surrogateescape")).definitions
            written = text.split("\n")
            for number in list(lines)[:_MAX_CHANGED_LINES]:
                around: list[Definition] = [d for d in outline if d.start <= number <= d.end]
                inner = min(around, key=lambda d: d.end - d.start, default=None)
                shared = used & {*_WORD.findall(written[number - 1][:2000])}
                name = inner.short_name if inner else ""
                at_head = inner is not None and number == inner.start
                score = (
                    2 * len(shared)
                    + 2 * len(shared & named_words)
                    + (6 if name in used else 0)
                    + at_head
                )
                if shared and (best is None or score > best[0]):
                    best = (score, _Cause(file.path, number, side, name if name in used else ""))
    return best[1] if best else None


def _make_caller_claim(cause: _Cause, hits: Sequence[Diagnostic], context: ReviewContext) -> Claim:
    first = min(hits, key=lambda h: (is_test(h.path), h.path, h.line))
    rows = (context.head_text(first.path) or "").split("\n")
    code = rows[first.line - 1].strip()[:160] if first.line <= len(rows) else ""
    more = f" ({len(hits)} places in all)" if len(hits) > 1 else ""
    removed = cause.side == "LEFT"
    return make_analyzer_claim(
        f"contracts/{'removed-still-used' if removed else 'broken-caller'}",
        "high",
        cause.path,
        (cause.line, cause.line),
        side=cause.side,
        title=f"This change{f' of `{cause.name}`' if cause.name else ''} breaks {posixpath.basename(first.path)}, line {first.line}",
        body=f"`{code}` in {first.path}:{first.line}{more} no longer compiles: {_shorten(first.message)}.",
        confidence=0.85 if all(is_test(h.path) for h in hits) else 0.92,
        excerpt="\n".join(f"{h.path}:{h.line}: {_shorten(h.message)}" for h in hits[:3]),
        source=f"the compiler ({first.rule})",
        head=first.message[:300],
        base="not reported",
        symbol=cause.name,
        code=cause.name,
        anywhere=True,
    )
