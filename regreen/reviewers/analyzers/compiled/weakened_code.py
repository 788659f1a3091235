"""Safeguards that a change takes out of Go, Rust and Java functions: checks, locks, handled errors, the order of arguments.

A function is held against itself at the merge base. Only what leaves the rest as it was is reported: a function that is
written anew may do the same in another way.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import islice
from typing import TYPE_CHECKING, Any

from regreen.code.diff import FileChange
from regreen.code.file_languages import language_of, parser_for
from regreen.code.paths import is_test
from regreen.code.symbols import (
    MAX_PARSED_BYTES,
    Definition,
    is_slow_to_query,
    node_text,
    read_outline,
    walk_nodes,
)
from regreen.domain.models import Severity
from regreen.reviewers.analyzers.baseline import make_analyzer_claim
from regreen.reviewers.analyzers.compiled.code_patterns import load_patterns
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport

if TYPE_CHECKING:
    from tree_sitter import Node

_MIN_KEPT = 0.5
"""The share of the lines before that must still be there."""
_MAX_ADDED_LINES = 6
_MAX_REMOVED_CALLS = 50
_CALLED = re.compile(r"\b(\w{1,100})\(")


@dataclass(frozen=True, slots=True)
class Safeguard:
    """A row of `weakened_code.toml`, which explains its fields; `patterns` by language."""

    severity: Severity
    confidence: float
    title: str
    why: str
    patterns: Mapping[str, str]
    stays: str = ""
    instead: str = ""


@cache
def load_safeguards() -> Mapping[str, Safeguard]:
    """The rows of the table."""
    found = {}
    for name, table_row in _load_table()["safeguards"].items():
        row = dict(table_row)
        patterns = {key: row.pop(key) for key in load_patterns().sources if key in row}
        found[name] = Safeguard(**row, patterns=patterns)
    return found


@cache
def _load_table() -> dict[str, Any]:
    table = resources.files("regreen.reviewers.analyzers.compiled").joinpath("weakened_code.toml")
    return tomllib.loads(table.read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class _Pair:
    """One function before and after: its text, its lines that went and came, and where it now stands.

    `called` is the code of those functions of the file that the lines which came call.
    """

    language: str
    name: str
    before: str
    after: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    called: str
    definition: Definition
    file: FileChange

    @property
    def place(self) -> int:
        """The line for a comment: the first added line, or the line next to the first removed one."""
        here = range(self.definition.start, self.definition.end + 1)
        new = [n for n in self.file.added_lines if n in here]
        shown = [n for n in here if self.file.can_anchor(n, n, "RIGHT")]
        return min(new or shown or [self.definition.start])


class WeakenedCode:
    """Holds each changed function of Go, Rust and Java against itself at the merge base."""

    name = "safeguards that go"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report what a function no longer checks, locks or handles."""
        claims: list[Claim] = []
        files = [
            f
            for f in context.files
            if language_of(f.path) in load_patterns().sources
            and f.status not in {"added", "deleted", "copied"}
            and not is_test(f.path)
        ]
        moved = {_squeeze(line) for f in context.change.files for line in _read_lines(f, "+")}
        for file in files:
            for pair in _pair_functions(file, context):
                claims += _find_dropped_safeguards(pair, moved)
                claims += _find_dropped_checks(pair, moved)
                claims += _find_dropped_errors(pair)
                claims += _find_reordered_arguments(pair)
        return ReviewerReport(tuple(claims))


def _squeeze(text: str) -> str:
    return "".join(text.split())


def _read_lines(file: FileChange, kind: str) -> Iterator[str]:
    return (line.text for hunk in file.hunks for line in hunk.lines if line.kind == kind)


def _pair_functions(file: FileChange, context: ReviewContext) -> Iterator[_Pair]:
    """The functions that the change keeps and alters, by names that stand once on each side."""
    language = language_of(file.path)
    old, new = context.base_text(file.old_path), context.head_text(file.path)
    if language is None or old is None or new is None:
        return
    sides = []
    named: list[tuple[str, Definition, list[str]]] = []
    for path, text in ((file.old_path, old), (file.path, new)):
        definitions = read_outline(path, text.encode("utf-8", "surrogateescape")).definitions
        functions = [d for d in definitions if d.kind in {"function", "method"}]
        rows = text.split("\n")
        named = [(_name_with_parameters(d, rows), d, rows[d.start - 1 : d.end]) for d in functions]
        times = Counter(name for name, _, _ in named)
        sides.append({name: (d, code) for name, d, code in named if times[name] == 1})
    for name, (definition, now) in sides[1].items():
        if name not in sides[0] or sides[0][name][1] == now:
            continue
        was = sides[0][name][1]
        before, after = Counter(map(_squeeze, was)), Counter(map(_squeeze, now))
        removed, added = (
            _select_rows_lacking_elsewhere(was, before - after),
            _select_rows_lacking_elsewhere(now, after - before),
        )
        kept = sum((before & after).values()) / max(1, sum(before.values()))
        if kept >= _MIN_KEPT and len(added) <= _MAX_ADDED_LINES and len(was) > 2:
            names = {*_CALLED.findall("\n".join(added))}
            called = "\n".join(row for _, d, code in named if d.short_name in names for row in code)
            texts = ("\n".join(was), "\n".join(now))
            yield _Pair(language, definition.name, *texts, removed, added, called, definition, file)


def _select_rows_lacking_elsewhere(rows: Sequence[str], more: Counter[str]) -> tuple[str, ...]:
    """Of these rows, as many of each as the other side lacks."""
    left, found = +more, []
    for row in rows:
        if _squeeze(row) and left[_squeeze(row)] > 0:
            left[_squeeze(row)] -= 1
            found.append(row)
    return tuple(found)


def _name_with_parameters(definition: Definition, rows: Sequence[str]) -> str:
    """The name with its parameters: Java's methods may share a name."""
    head = "".join(rows[definition.start - 1 : definition.start + 5]).partition("{")[0]
    return f"{definition.name} {_squeeze(head.partition(definition.short_name)[2])}"


def _make_claim(  # noqa: PLR0917
    pair: _Pair, rule: str, severity: Severity, title: str, why: str, confidence: float
) -> Claim:
    line = pair.place
    return make_analyzer_claim(
        f"weakened/{rule}",
        severity,
        pair.file.path,
        (line, line),
        title=" ".join(title.split())[:200],
        body=why,
        confidence=confidence,
        excerpt="\n".join(f"-{row}" for row in pair.removed[:5])
        + "\n"
        + "\n".join(f"+{row}" for row in pair.added[:5]),
        source="the function before the change",
        head="gone",
        base="there",
        symbol=pair.name,
        code=rule + "\n".join(pair.removed[:3]),
        anywhere=True,
    )


def _find_dropped_safeguards(pair: _Pair, moved: set[str]) -> Iterator[Claim]:
    for rule, row in load_safeguards().items():
        pattern = row.patterns.get(pair.language)
        if not pattern:
            continue
        if re.search(pattern, f"{pair.after}\n{pair.called}") or (
            row.stays and not re.search(row.stays, pair.after)
        ):
            continue
        removed, added = "\n".join(pair.removed), "\n".join(pair.added)
        for was in islice(re.finditer(pattern, removed), _MAX_REMOVED_CALLS):
            what, name = was[0], was.groupdict().get("name")
            instead = row.instead.replace("{name}", name or r"\w+")
            if instead and re.search(instead, added):
                continue
            if any(_squeeze(what) in line for line in moved) or _is_undeclared(what, pair.file):
                continue
            words = {"what": what.rstrip("("), "function": pair.name.rpartition(".")[2]}
            title = row.title.format(**words)
            yield _make_claim(pair, rule, row.severity, title, row.why, row.confidence)
            break


def _is_undeclared(safeguard: str, file: FileChange) -> bool:
    """Whether the change also takes out lines that name a lock without using it: it is gone, not forgotten."""
    lock = re.search(r"(\w{1,100})\.R?[lL]ock\(\)", safeguard)
    named = re.compile(rf"\b{lock[1]}\b(?!\.R?(?:[uU]n)?[lL]ock\(\))") if lock else None
    return named is not None and any(map(named.search, _read_lines(file, "-")))


_CONDITION = re.compile(
    r"\bnil\b|\bnull\b|is_none|is_some|is_empty|isEmpty|is_err|\blen\b|\.length|\.size\(|[<>]=?|\berr\b|(?i:valid|auth|permi|allow|owner|admin|closed|contains|exists)"
)


def _find_dropped_checks(pair: _Pair, moved: set[str]) -> Iterator[Claim]:
    """A check that left the function early is gone, and nothing came in its place."""
    if pair.added or not pair.removed:
        return
    before, after = (_parse_checks(t, pair.language) for t in (pair.before, pair.after))
    left = Counter(condition for condition, _ in after)
    refusal = _load_table()["checks"]["refusal"].get(pair.language)
    for condition, body in before:
        left[condition] -= 1
        refuses = refusal is not None and re.search(refusal, body) is not None
        if left[condition] >= 0 or not (refuses or _CONDITION.search(condition)):
            continue
        if any(_squeeze(condition) in line for line in moved):
            continue
        if (
            len(
                [
                    r
                    for r in pair.removed
                    if _squeeze(r) not in _squeeze(body + condition) and len(_squeeze(r)) > 3
                ]
            )
            > 1
        ):
            continue  # more than the check went
        why = "What it kept out now reaches the code behind it."
        title = f"`{pair.name.rpartition('.')[2]}` no longer checks `{condition[:100]}`"
        yield _make_claim(pair, "check-dropped", "high", title, why, 0.84)


def _parse(text: str, language: str) -> Node | None:
    data = _load_table()["frames"][language].format(text).encode("utf-8", "surrogateescape")
    if len(data) > MAX_PARSED_BYTES:
        return None
    root = parser_for(language).parse(data).root_node
    return None if is_slow_to_query(root) else root


_LEAVES = frozenset(
    {
        "return_statement",
        "throw_statement",
        "return_expression",
        "continue_statement",
        "break_statement",
        "break_expression",
        "continue_expression",
    }
)


def _leaves_early(body: Node | None) -> bool:
    """Whether a block ends by leaving its function or loop, or by a panic."""
    if body is None:
        return False
    text = node_text(body)
    return any(n.type in _LEAVES for n in walk_nodes(body)) or bool(re.search(r"\bpanic[!(]", text))


def _returns_own_result(body: Node | None) -> bool:
    """Whether a block ends the function with a result of its own, worked out by a call: no check, another way."""
    returned = [n for n in walk_nodes(body) if n.type == "return_statement"] if body else []
    called = [node_text(n) for n in returned if re.search(r"\w\(", node_text(n))]
    refuses = re.compile(_load_table()["checks"]["refuses"])
    return bool(called) and not any(refuses.search(text) for text in called)


def _parse_checks(text: str, language: str) -> list[tuple[str, str]]:
    """The conditions whose branch leaves early, without an `else`, each with the branch."""
    root = _parse(text, language)
    found = []
    for node in walk_nodes(root) if root is not None else ():
        if (
            node.type in {"if_statement", "if_expression"}
            and node.child_by_field_name("alternative") is None
        ):
            body = node.child_by_field_name("consequence")
            condition = node_text(node.child_by_field_name("condition")).strip("()")
            guards = re.search(_load_table()["checks"]["guards"], condition) is not None
            if _leaves_early(body) and (guards or not _returns_own_result(body)):
                found.append((condition, node_text(node)))
    return found


def _find_dropped_errors(pair: _Pair) -> Iterator[Claim]:
    """A failure that was handed on is now passed over: in a handler, or by `unwrap` in place of `?`."""
    yield from _find_unwrapped(pair)
    before, after = (_parse_handlers(t, pair.language) for t in (pair.before, pair.after))
    if len(before) == len(after) and [h for h, _ in before] == [h for h, _ in after]:
        for (handler, handed_on), (_, still) in zip(before, after, strict=True):
            if handed_on and not still:
                title = f"`{handler[:80]}` no longer hands the failure on"
                why = "The code goes on as if nothing had failed."
                yield _make_claim(pair, "error-swallowed", "high", title, why, 0.86)


def _parse_handlers(text: str, language: str) -> list[tuple[str, bool]]:
    """The handlers of failures in order, each with whether it hands the failure on."""
    root = _parse(text, language)
    found: list[tuple[str, bool]] = []
    for node in walk_nodes(root) if root is not None else ():
        if node.type == "catch_clause":
            head = next(
                (node_text(n) for n in node.named_children if n.type == "catch_formal_parameter"),
                "",
            )
            found.append(
                (f"catch ({head})", any(n.type == "throw_statement" for n in walk_nodes(node)))
            )
        elif node.type == "if_statement" and re.fullmatch(
            r"(?=\w*[eE]rr)\w+ != nil", node_text(node.child_by_field_name("condition"))
        ):
            body = node.child_by_field_name("consequence")
            name = node_text(node.child_by_field_name("condition")).split()[0]
            handed = [
                n for n in (walk_nodes(body) if body is not None else ()) if n.type in _LEAVES
            ]
            found.append(
                (
                    f"{name} != nil",
                    any(_passes_error_on(n, name) for n in handed)
                    or bool(re.search(r"\bpanic\(|\bFatal", node_text(body))),
                )
            )
    return found


def _passes_error_on(leaving: Node, name: str) -> bool:
    return bool(
        re.search(rf"\b{re.escape(name)}\b|\b[eE]rr\w*|errors\.|Errorf", node_text(leaving))
    )


def _find_unwrapped(pair: _Pair) -> Iterator[Claim]:
    for now in pair.added:
        plain = re.sub(
            r"\.(?:unwrap|unwrap_unchecked)\(\)|\.expect\(\"[^\"\n]{0,200}\"\)", "?", now
        )
        if plain != now and any(_squeeze(plain) == _squeeze(was) for was in pair.removed):
            title = "A failure that was handed on now ends the program"
            yield _make_claim(
                pair,
                "error-unwrapped",
                "high",
                title,
                "`unwrap` panics where `?` returned the error.",
                0.9,
            )
        dropped = re.sub(r"^(\s*)let _ = (.*);$", r"\1\2?;", now)
        if dropped != now and any(_squeeze(dropped) == _squeeze(was) for was in pair.removed):
            title = "A failure that was handed on is now thrown away"
            yield _make_claim(
                pair,
                "error-swallowed",
                "high",
                title,
                "The code goes on as if nothing had failed.",
                0.88,
            )
        ignored = re.sub(r"\.(?:ok|unwrap_or_default)\(\)", "?", now)
        if ignored != now and any(_squeeze(ignored) == _squeeze(was) for was in pair.removed):
            title = "A failure that was handed on is now passed over"
            yield _make_claim(
                pair,
                "error-swallowed",
                "high",
                title,
                "The code goes on with a value that means nothing.",
                0.86,
            )


_CALL = re.compile(r"(?<!\w)(\w++!?)\(([^()]{3,200})\)")


def _find_reordered_arguments(pair: _Pair) -> Iterator[Claim]:
    """A call that is given the same arguments in another order, where nothing else of the line has changed."""
    for was in pair.removed:
        for now in pair.added:
            swapped = _find_reordered_call(was, now)
            if swapped is None:
                continue
            name, arguments = swapped
            if _declares_order(pair.called, name, arguments) or re.search(
                rf"\b{re.escape(name)}\b\s*(?:<[^>\n]{{0,200}}>)?\(",
                "\n".join(_changed_function_lines(pair.file)),
            ):
                continue  # its definition may have changed with it
            title = f"`{name}` is given its arguments in another order: ({', '.join(arguments)})"
            yield _make_claim(
                pair,
                "arguments-reordered",
                "high",
                title,
                "The function that is called has not changed: a value goes where another was meant.",
                0.84,
            )


def _changed_function_lines(file: FileChange) -> Sequence[str]:
    """The changed lines that define a function."""
    return [
        line.text
        for hunk in file.hunks
        for line in hunk.lines
        if line.kind in "+-"
        and re.search(
            r"\b(?:func|fn|void|public|private|protected|static|int|String|boolean)\b", line.text
        )
    ]


def _declares_order(code: str, name: str, arguments: Sequence[str]) -> bool:
    """Whether a function of this name has parameters that are named like the arguments, in their order."""
    for header in re.findall(rf"\b{re.escape(name)}\(([^()]{{0,400}})\)", code):
        words = re.findall(r"\w+", header)
        named = [word for word in words if word in arguments]
        if named == [*arguments] and len(words) > len(named):  # types stand beside them
            return True
    return False


def _find_reordered_call(was: str, now: str) -> tuple[str, list[str]] | None:
    first, second = (
        [(m[1], [a.strip() for a in m[2].split(",")], m.span(2)) for m in _CALL.finditer(line)]
        for line in (was, now)
    )
    for (name, old, span), (other, new, there) in zip(first, second, strict=False):
        if (
            name == other
            and old != new
            and sorted(old) == sorted(new)
            and len(set(old)) == len(old) > 1
        ):
            rest = _squeeze(was[: span[0]] + was[span[1] :]) == _squeeze(
                now[: there[0]] + now[there[1] :]
            )
            if rest and name not in {
                "min",
                "max",
                "Min",
                "Max",
                "assertEquals",
                "asList",
                "of",
                "assert_eq!",
                "append",
            }:
                return name, new
    return None
