"""Correctness without a model: what analyzers are sure of and this change brings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice

from regreen.codebase.language import language_of
from regreen.codebase.manifests import python_versions
from regreen.codebase.python_uses import Modules, imported
from regreen.codebase.sources import sources
from regreen.errors import OutsideError
from regreen.models import Evidence, Skipped, Unread
from regreen.ports import Git
from regreen.reviewers import pyright, ruff
from regreen.reviewers.context import Claim, Report, ReviewContext
from regreen.reviewers.fresh import Hit, fresh, where_said
from regreen.reviewers.names import names_taken_away
from regreen.reviewers.rules import PYRIGHT, RUFF, Rule, prior
from regreen.reviewers.users import broken_users, made_unseen, users

_ALL_AROUND = 400
_MOST_AROUND = 1500
_MOST_CHECKED = 300
_IMPORT_STEPS = 2
_SURE = 0.82
_LIKELY = 0.8
_UNDEFINED = re.compile(r"Undefined name `(\w+)`")
_PYTHON_2 = frozenset(
    {"unicode", "xrange", "basestring", "raw_input", "long", "unichr", "reduce", "file", "cmp", "execfile", "buffer", "intern", "reload"}
)  # fmt: skip
_FULL_OF_FAULTS = 3
_DOUBTED = 0.1
_MESSAGE_LINES = 4
_TEXT = re.compile(r"(\"{3}|'{3}|[\"'])(.{0,2000}?)\1", re.DOTALL)
_BRACES = re.compile(r"\{[\w.\[\]]{0,40}(?:![rsa])?(?::[^{}\n]{0,20})?\}")
_PERCENT = re.compile(r"%[-#0 +]?[\d.*]{0,6}[sdrfixaegc(]")


class Ruff:
    """ruff's bug rules on the change's Python files."""

    name = "ruff"

    def run(self, context: ReviewContext) -> Report:
        """Report what is new against the merge base."""
        files = python_after(context)
        if not files:
            return Report()
        rules = tuple(RUFF)
        found = ruff.hits(files, rules)
        broken = {h.path for h in found if h.rule == ruff.SYNTAX}
        sound = [h for h in found if h.path not in broken and not _in_braces(h, files[h.path])]
        base = cache(lambda: ruff.hits(python_before(context), rules))
        new = fresh(
            context,
            sound,
            base,
            sure=lambda h: h.rule != "F821" and RUFF[h.rule].confidence >= _SURE,
        )
        samples = _samples(context, sound)
        claims = [
            _doubted(claim(h, context, "ruff", RUFF), h.path in samples or _of_python_2(h, context))
            for h in new
        ]
        claims += names_taken_away(context, [h for h in sound if h not in new], base)
        return Report(
            claims=tuple(claims),
            read=f"ruff's bug rules on {len(files) - len(broken)} Python files",
            unread=tuple(Unread(p, "does not parse as Python") for p in sorted(broken)),
        )


def _doubted(said: Claim, doubt: bool) -> Claim:
    return replace(said, confidence=min(said.confidence, _DOUBTED)) if doubt else said


def _of_python_2(hit: Hit, context: ReviewContext) -> bool:
    """A name that Python 2 has built in, where the project may mean Python 2."""
    name = _UNDEFINED.match(hit.message)
    return name is not None and name[1] in _PYTHON_2 and may_mean_python_2(context)


def may_mean_python_2(context: ReviewContext) -> bool:
    """Whether nothing in the repository says that it needs a newer Python than 2.7."""
    if context.git is None:
        return False
    allowed, _ = python_versions(context.git, context.head)
    return allowed is None or allowed.contains("2.7")


def _samples(context: ReviewContext, hits: Sequence[Hit]) -> set[str]:
    """Files that are full of faults on lines which the change leaves alone: data of a test, run by nobody."""
    old = Counter(
        h.path
        for h in hits
        if RUFF[h.rule].confidence >= _LIKELY
        and not context.change.by_path[h.path].touches(h.line, h.end_line)
    )
    return {path for path, count in old.items() if count >= _FULL_OF_FAULTS}


def _in_braces(hit: Hit, text: str) -> bool:
    """A message with `{}` for a logger of the project's own, which formats it so."""
    if not hit.rule.startswith("PLE120"):
        return False
    call = "\n".join(text.split("\n")[hit.line - 1 : hit.end_line + _MESSAGE_LINES])
    message = _TEXT.search(call)
    if message is None:
        return False
    return _BRACES.search(message[2]) is not None and _PERCENT.search(message[2]) is None


class Pyright:
    """basedpyright's sure rules on the change's Python files, with the repository around them."""

    name = "basedpyright"

    def run(self, context: ReviewContext) -> Report:
        """Report what is new against the merge base."""
        every = python_after(context)
        if not every:
            return Report()
        files = dict(islice(every.items(), _MOST_CHECKED))
        left = f"only the {len(files)} riskiest of {len(every)} Python files were checked"
        skipped = (Skipped(self.name, left),) if len(files) < len(every) else ()
        rules = tuple(PYRIGHT)
        relying = users(context)
        old = python_before(context)

        @cache
        def base() -> list[Hit]:
            around = _around(context, context.merge_base, old | relying)
            return pyright.hits(around, (*old, *relying), rules)

        try:
            found = pyright.hits(
                _around(context, context.head, files | relying), (*files, *relying), rules
            )
            new = fresh(
                context,
                found,
                base,
                sure=lambda h: prior(PYRIGHT[h.rule], h.rule, h.message) >= _SURE,
            )
            calls = [
                h for h in found if h.rule == "reportCallIssue" and (h in new or h.path in relying)
            ]
            unseen = made_unseen(context, calls, relying)
            broken = [h for h in found if h.path in relying and h not in unseen]
            claims = broken_users(context, broken, base(), relying) if broken else []
        except OutsideError as error:
            return Report(skipped=(Skipped(self.name, str(error)),))
        return Report(
            claims=(
                *(_doubted(claim(h, context, "basedpyright", PYRIGHT), h in unseen) for h in new),
                *claims,
            ),
            read=f"basedpyright on {len(files)} Python files",
            skipped=skipped,
        )


def python_after(context: ReviewContext) -> dict[str, str]:
    """The selected Python files as the head has them."""
    return {
        f.path: text
        for f in context.files
        if language_of(f.path) == "python"
        and f.status != "deleted"
        and (text := context.after(f.path)) is not None
    }


def python_before(context: ReviewContext) -> dict[str, str]:
    """Every Python file of the change as the merge base has it, deleted ones too: code may have moved."""
    return {
        f.old_path: text
        for f in context.change.files
        if language_of(f.old_path) == "python"
        and f.status != "added"
        and (text := context.before(f.old_path)) is not None
    }


def claim(hit: Hit, context: ReviewContext, tool: str, rules: Mapping[str, Rule]) -> Claim:
    """What a hit of a trusted rule says, in our words and the tool's."""
    rule = rules[hit.rule]
    message = hit.message.split("\n", maxsplit=1)[0].strip().rstrip(".")
    title = message.replace('"', "`") if tool == "basedpyright" else message
    rows = (context.after(hit.path) or "").split("\n")
    shown = Evidence(
        "analyzer",
        "\n".join(rows[hit.line - 1 : hit.end_line])[:500],
        f"{tool} ({hit.rule})",
        head=message,
        base="not reported",
    )
    place = where_said(context, hit)
    likely = prior(rule, hit.rule, hit.message)
    confidence = min(likely, 0.55) if _is_unsure(hit, rows) else likely
    return Claim(
        "correctness",
        f"{tool}/{hit.rule}",
        rule.severity,
        hit.path,
        *place,
        title=title if place == (hit.line, hit.end_line) else f"{title} (in line {hit.line})",
        body=rule.why,
        confidence=confidence,
        evidence=(shown,),
        anywhere=True,  # `fresh` has looked: what is not on an added line was caused from beside
    )


def _is_unsure(hit: Hit, rows: Sequence[str]) -> bool:
    """Whether a call's target depends on what the analyzer cannot see: overloads, or the next class in line."""
    above = "\n".join(rows[max(0, hit.line - 8) : hit.end_line])
    return hit.rule == "reportCallIssue" and ("No overloads" in hit.message or "super(" in above)


def _around(
    context: ReviewContext, rev: str, files: Mapping[str, str]
) -> Iterable[tuple[str, str | bytes]]:
    """These files and the repository's Python that they import: all of it, or in a large one the near part."""
    own: list[tuple[str, str | bytes]] = list(files.items())
    if context.git is None:
        return own
    tree = context.tree if rev == context.head else context.base_tree
    others = [e.path for e in tree if e.path.endswith((".py", ".pyi")) and e.path not in files]
    if len(others) <= _ALL_AROUND:
        near = set(others)
        return chain(own, sources(context.git, rev, near.__contains__))
    return chain(own, _imported(context.git, rev, files, others).items())


def _imported(
    git: Git, rev: str, files: Mapping[str, str], others: Sequence[str]
) -> dict[str, bytes]:
    """What the files import, and what that imports, in two passes over the tree."""
    modules = Modules.of([*others, *files])
    known = set(others)
    found: dict[str, bytes] = {}
    wanted = {p for path, text in files.items() for p in imported(text, path, modules)}
    for _ in range(_IMPORT_STEPS):
        missing = (wanted & known) - found.keys()
        if not missing or len(found) + len(missing) > _MOST_AROUND:
            break
        new = dict(sources(git, rev, missing.__contains__))
        found |= new
        wanted = {p for path, data in new.items() for p in imported(data, path, modules)}
    return found
