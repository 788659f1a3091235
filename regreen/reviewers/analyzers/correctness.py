"""Correctness without a model: findings of ruff and basedpyright that this change causes."""

from __future__ import annotations

import ast
import keyword
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice

from regreen.code.diff import FileChange
from regreen.code.paths import is_test
from regreen.code.python_calls import (
    FunctionNode,
    is_module,
    is_package,
    module_stem,
    parse_python,
)
from regreen.code.symbols import Definition, read_outline, read_sources
from regreen.domain.models import Side, SkippedReviewer, UnreadFile
from regreen.domain.ports import Git
from regreen.languages.python.imports import ModuleMap, imported_files
from regreen.languages.registry import has_capability
from regreen.packages.python_version import read_python_versions
from regreen.reviewers.analyzers import bundled_checkers
from regreen.reviewers.analyzers.baseline import (
    PYRIGHT_RULES,
    RUFF_RULES,
    AnalyzerRule,
    Diagnostic,
    commentable_range,
    find_base_files,
    make_analyzer_claim,
    replace_single_match,
    rule_confidence,
    select_new_diagnostics,
)
from regreen.reviewers.analyzers.bundled_checkers import UNREAD_RULE
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.markdown_sanitizer import count_noun

_MAX_DEPENDENTS = 40
_MAX_SHOWN_PLACES = 3
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINED_NAME = re.compile(r"\bdef\s+([A-Za-z_]\w*)")
_UNKNOWN_ATTRIBUTE = re.compile(r'Cannot access attribute "(\w+)" for class')
_GIVES_VALUE = re.compile(r"\b(?:yield|await|async)\b|\breturn\b.{0,300},")
"""Lines that say what kind of value a function gives, as far as callers break by it: lazy, or a tuple of some size."""
_LAZY_VALUE = re.compile(r"\b(?:Coroutine\w*|(?:Async)?Generator)\b")
_TUPLE_SIZE_MISMATCH = "Tuple size mismatch"


def find_dependents(context: ReviewContext) -> dict[str, str]:
    """Unchanged Python files, with their text, that import an edited module and name a definition that is edited there.

    New definitions break no caller, so nothing is read for them. At most 40 files, tests last.
    """
    edits = [e for f in context.files if is_module(f.path) for e in _find_edits(f, context)]
    edited = {e.path for e in edits}
    if context.git is None or not edited:
        return {}
    python = [e.path for e in context.head_tree if is_module(e.path)]
    modules = ModuleMap.from_paths(python)
    found = _find_importers(context, edited, modules)
    packages = {p for p in found if is_package(p)}
    if packages:  # they re-export what they import
        found |= _find_importers(context, packages, modules)
    own = context.change.by_path.keys()
    near = sorted(
        (is_test(p), p)
        for p, text in found.items()
        if p not in own and _can_break(edits, set(_WORD.findall(text)))
    )[:_MAX_DEPENDENTS]
    return {p: found[p] for _, p in near}


def _can_break(edits: Sequence[_DefinitionEdit], words: Set[str]) -> bool:
    """Whether a file with these words can meet an edit: it names what has another shape, or what lost a word of its own."""
    return any(e.name in words and (e.reshaped or not e.gone.isdisjoint(words)) for e in edits)


def _find_importers(context: ReviewContext, wanted: set[str], modules: ModuleMap) -> dict[str, str]:
    assert context.git is not None  # noqa: S101 - `users` has looked
    stems = {module_stem(p) for p in wanted}
    words = "|".join(re.escape(s) for s in sorted(stems) if s.isidentifier())
    if not words:
        return {}
    line = re.compile(rf"^[ \t]*(?:from|import)\b.*\b(?:{words})\b".encode(), re.MULTILINE)
    return {
        path: data.decode("utf-8", "surrogateescape")
        for path, data in read_sources(context.git, context.head, is_module)
        if path not in wanted
        and line.search(data)
        and wanted & set(imported_files(data, path, modules))
    }


def find_broken_dependents(
    context: ReviewContext,
    head: Iterable[Diagnostic],
    base: Callable[[], Sequence[Diagnostic]],
    texts: Mapping[str, str],
) -> list[Claim]:
    """One claim for each changed definition that breaks unchanged files; `texts` are theirs.

    `base` is only called where the change could have caused a hit.
    """
    edits = [e for f in context.files if is_module(f.path) for e in _find_edits(f, context)]
    blamed: dict[_DefinitionEdit, list[Diagnostic]] = {}
    for hit in head:
        if hit.path not in texts:
            continue
        rows = texts[hit.path].split("\n")[hit.line - 1 : hit.end_line]
        named = set(_WORD.findall("\n".join(rows)))
        causes = [e for e in edits if e.name in named and e.explains_error(hit)]
        if causes:
            blamed.setdefault(min(causes, key=lambda e: e.end - e.start), []).append(hit)
    known = {(h.path, h.line) for h in base()} if blamed else set()
    fresh = {
        edit: [h for h in hits if (h.path, h.line) not in known] for edit, hits in blamed.items()
    }
    return [_make_dependents_claim(edit, hits, texts) for edit, hits in fresh.items() if hits]


@dataclass(frozen=True, slots=True)
class _DefinitionEdit:
    """A definition whose lines the change touches: its span, the line for a comment, the words it lost.

    `gone` are those that the new file does not have at all. `reshaped`: the edit may change how it is called or what kind
    of value it gives, and not only what it does.
    """

    path: str
    name: str
    start: int
    end: int
    line: int
    side: Side
    lost: frozenset[str]
    gone: frozenset[str]
    reshaped: bool

    def explains_error(self, hit: Diagnostic) -> bool:
        """Whether this edit certainly causes an error elsewhere, and not a type that is only inferred differently."""
        match hit.rule:
            case "reportAttributeAccessIssue":
                gone = _UNKNOWN_ATTRIBUTE.search(hit.message)
                return gone is not None and (
                    gone[1] in self.lost or _LAZY_VALUE.search(hit.message) is not None
                )
            case "reportIndexIssue" | "reportOperatorIssue":
                return _LAZY_VALUE.search(hit.message) is not None
            case "reportAssignmentType":
                return _TUPLE_SIZE_MISMATCH in hit.message
            case "reportCallIssue":
                return "overload" not in hit.message.lower()
            case _:
                return hit.rule in {"reportAbstractUsage", "reportUnusedCoroutine"}


def _find_edits(file: FileChange, context: ReviewContext) -> Iterator[_DefinitionEdit]:
    before, after = context.base_text(file.old_path), context.head_text(file.path)
    if before is None or after is None:
        return
    old, new = _read_definitions(file.old_path, before), _read_definitions(file.path, after)
    remaining = {d.short_name for d in new}
    removed = {x.old: x.text for h in file.hunks for x in h.lines if x.kind == "-" and x.old}
    here, old_rows, new_rows = set(_WORD.findall(after)), before.split("\n"), after.split("\n")
    old_shape, new_shape = _find_shape_lines(old, old_rows), _find_shape_lines(new, new_rows)
    for d in old:
        taken = [n for n in removed if d.start <= n <= d.end]
        still = next((n for n in new if n.name == d.name), None)
        added = [n for n in file.added_lines if still and still.start <= n <= still.end]
        if not taken and not added:
            continue
        words = frozenset(w for n in taken for w in _WORD.findall(removed[n])) - remaining
        line = added[0] if added else min(taken)
        side: Side = "RIGHT" if added else "LEFT"
        reshaped = (
            still is None
            or not old_shape[d.name].isdisjoint(taken)
            or not new_shape[still.name].isdisjoint(added)
        )
        yield _DefinitionEdit(
            file.path,
            d.short_name,
            d.start,
            d.end,
            line,
            side,
            words,
            words - here,
            reshaped,
        )


def _read_definitions(path: str, text: str) -> list[Definition]:
    found = read_outline(path, text.encode("utf-8", "surrogateescape")).definitions
    return [d for d in found if d.kind != "constant"]


def _find_shape_lines(
    definitions: Sequence[Definition], rows: Sequence[str]
) -> dict[str, frozenset[int]]:
    """By definition, its lines that say how it is used: a function's header and what it returns, a class without its methods' bodies."""
    found: dict[str, frozenset[int]] = {}
    for d in definitions:
        span = range(d.start, d.end + 1)
        if d.kind == "class":
            inner = [
                x for x in definitions if x.kind != "class" and x.name.startswith(f"{d.name}.")
            ]
            bodies = {
                n
                for x in inner
                if not x.short_name.startswith("__")
                for n in range(x.start, x.end + 1)
            }
            code = (n for n in span if rows[n - 1].strip()[:1] not in {"", "#"})
            found[d.name] = frozenset(n for n in code if n not in bodies)
            continue
        body = next((n for n in span if rows[n - 1].split("#")[0].rstrip().endswith(":")), d.end)
        found[d.name] = frozenset(n for n in span if n <= body or _GIVES_VALUE.search(rows[n - 1]))
    return found


def _make_dependents_claim(
    edit: _DefinitionEdit, hits: Sequence[Diagnostic], texts: Mapping[str, str]
) -> Claim:
    def code(hit: Diagnostic) -> str:
        return texts[hit.path].split("\n")[hit.line - 1].strip()[:160]

    first = min(hits, key=lambda h: (is_test(h.path), h.path, h.line))
    more = f" ({len(hits)} places in all)" if len(hits) > 1 else ""
    why = " ".join(first.message.split("\n", maxsplit=1)[0].split()).rstrip(".").replace('"', "`")
    shown = "\n".join(f"{h.path}:{h.line}: {code(h)}" for h in hits[:_MAX_SHOWN_PLACES])
    return make_analyzer_claim(
        "contracts/broken-user",
        "high",
        edit.path,
        (edit.line, edit.line),
        side=edit.side,
        title=f"This change of `{edit.name}` breaks {first.path}, which it leaves alone",
        body=f"`{code(first)}` in {first.path}:{first.line}{more} no longer fits: {why}.",
        confidence=0.82 if all(is_test(h.path) for h in hits) else 0.88,
        excerpt=shown,
        source=f"basedpyright ({first.rule})",
        head=why,
        base="not reported",
        symbol=edit.name,
        code=edit.name,
        anywhere=True,
    )


# Names that a change takes away from the rest of their own file: an import or a definition removed and still used.


def find_removed_names(
    context: ReviewContext,
    head_hits: Sequence[Diagnostic],
    base_hits: Callable[[], Sequence[Diagnostic]],
) -> list[Claim]:
    """Undefined names on lines that the change left alone, where it removed what defined them."""
    undefined: dict[tuple[str, str], list[Diagnostic]] = {}
    for hit in head_hits:
        file = context.change.by_path.get(hit.path)
        match = _UNDEFINED_NAME.match(hit.message) if hit.rule == "F821" else None
        if match and file and file.removed_lines and not file.touches_lines(hit.line, hit.end_line):
            undefined.setdefault((hit.path, match[1]), []).append(hit)
    if not undefined:
        return []
    before = Counter((h.path, m[1]) for h in base_hits() if (m := _UNDEFINED_NAME.match(h.message)))
    claims = []
    for (path, name), hits in undefined.items():
        file = context.change.by_path[path]
        line = _find_definition(file, name)
        if line is not None and not before[file.old_path, name]:
            claims.append(_make_claim(file, name, line, hits, context))
    return claims


def _find_definition(file: FileChange, name: str) -> int | None:
    """The removed line that defined the name, if a single line did."""
    gives = re.compile(
        rf"\s*(?:(?>from\s.+?\simport\s|import\s).*\b{name}\b|(?:async\s+)?def\s+{name}\b|class\s+{name}\b|{name}\s*[:=][^=]|{name},?\s*(?:#.*)?$)"
    )
    return next(
        (
            line.old
            for hunk in file.hunks
            for line in hunk.lines
            if line.kind == "-" and gives.match(line.text[:2000])
        ),
        None,
    )


def _make_claim(
    file: FileChange, name: str, line: int, hits: Sequence[Diagnostic], context: ReviewContext
) -> Claim:
    rows = (context.head_text(file.path) or "").split("\n")
    first = hits[0]
    code = rows[first.line - 1].strip()[:160]
    more = f" and in {len(hits) - 1} more places" if len(hits) > 1 else ""
    shown = "\n".join(f"{h.line}: {rows[h.line - 1].strip()[:200]}" for h in hits[:3])
    return make_analyzer_claim(
        "ruff/F821",
        "high",
        file.path,
        (line, line),
        title=f"`{name}` is removed here and still used in line {first.line}",
        body=f"`{code}`{more} raises `NameError`: nothing else in this file gives the name.",
        confidence=0.92,
        side="LEFT",
        excerpt=shown,
        source="ruff (F821)",
        head=f"undefined name `{name}`",
        base="defined",
        symbol=name,
        code=name,
    )


_MAX_FULL_CONTEXT_FILES = 400
_MAX_CONTEXT_FILES = 1500
_MAX_CHECKED_FILES = 300
_IMPORT_STEPS = 2
_MIN_SURE_CONFIDENCE = 0.82
_MIN_LIKELY_CONFIDENCE = 0.8
_UNDEFINED_NAME = re.compile(r"Undefined name `(\w+)`")
_PYTHON_2 = frozenset(
    {
        "unicode",
        "xrange",
        "basestring",
        "raw_input",
        "long",
        "unichr",
        "reduce",
        "file",
        "cmp",
        "execfile",
        "buffer",
        "intern",
        "reload",
    }
)
_SIGNS = re.compile("|".join(f"(?:{rule.sign})" for rule in PYRIGHT_RULES.values() if rule.sign))
_ASYNC_NAME = re.compile(r"(?m)^[ \t]{0,80}async\s+def\s+(\w{1,100})")
_AWAITED = re.compile(r"\b(?:await|async|return|gather|create_task|ensure_future|run\w*|wait\w*)\b")
_CALLED_NAME = re.compile(r"\b([A-Za-z_]\w{0,100})\(")
_MIN_SAMPLE_FAULTS = 3
_DOUBTED_CONFIDENCE = 0.1
_MESSAGE_LINES = 4
_STRING_LITERAL = re.compile(r"(\"{3}|'{3}|[\"'])(.{0,2000}?)\1", re.DOTALL)
_BRACE_FIELD = re.compile(r"\{[\w.\[\]]{0,40}(?:![rsa])?(?::[^{}\n]{0,20})?\}")
_REDEFINED_NAME = re.compile(r"^Redefinition of unused `(\w+)`")
_PERCENT_FIELD = re.compile(r"%[-#0 +]?[\d.*]{0,6}[sdrfixaegc(]")


class Ruff:
    """ruff's bug rules on the change's Python files."""

    name = "ruff"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report what is new against the merge base."""
        files = head_python_texts(context)
        if not files:
            return ReviewerReport()
        rules = tuple(RUFF_RULES)
        found, unread = _split_unread(bundled_checkers.run_ruff(files, rules))
        broken = {h.path for h in found if h.rule == bundled_checkers.SYNTAX_RULE}
        arguments = cache(lambda path: _find_arguments(files[path]))
        sound = [
            h for h in found if h.path not in broken and not _is_meant(h, files[h.path], arguments)
        ]
        base = cache(
            lambda: _split_unread(bundled_checkers.run_ruff(base_python_texts(context), rules))[0]
        )
        new = select_new_diagnostics(
            context,
            sound,
            base,
            sure=lambda h: (
                h.rule != "F821" and RUFF_RULES[h.rule].confidence >= _MIN_SURE_CONFIDENCE
            ),
        )
        samples = _find_sample_files(context, sound)
        claims = [
            _lower_confidence(
                make_claim(h, context, "ruff", RUFF_RULES),
                h.path in samples or _is_python_2_name(h, context),
            )
            for h in new
        ]
        claims += find_removed_names(context, [h for h in sound if h not in new], base)
        count = len(files) - len(broken) - len(unread)
        return ReviewerReport(
            claims=tuple(claims),
            read=f"ruff's bug rules on {count_noun(count, 'Python file')}" if count else "",
            unread=(
                *(UnreadFile(p, "does not parse as Python") for p in sorted(broken)),
                *unread,
            ),
        )


def _lower_confidence(claim: Claim, doubt: bool) -> Claim:
    return replace(claim, confidence=min(claim.confidence, _DOUBTED_CONFIDENCE)) if doubt else claim


def _is_python_2_name(hit: Diagnostic, context: ReviewContext) -> bool:
    """A name that Python 2 has built in, where the project may mean Python 2."""
    name = _UNDEFINED_NAME.match(hit.message)
    return name is not None and name[1] in _PYTHON_2 and may_mean_python_2(context)


def may_mean_python_2(context: ReviewContext) -> bool:
    """Whether the repository does not require a Python newer than 2.7."""
    if context.git is None:
        return False
    allowed, _ = read_python_versions(context.git, context.head)
    return allowed is None or allowed.contains("2.7")


def _find_sample_files(context: ReviewContext, hits: Sequence[Diagnostic]) -> set[str]:
    """Files with many faults on unchanged lines: test data, which nobody runs."""
    old = Counter(
        h.path
        for h in hits
        if RUFF_RULES[h.rule].confidence >= _MIN_LIKELY_CONFIDENCE
        and not context.change.by_path[h.path].touches_lines(h.line, h.end_line)
    )
    return {path for path, count in old.items() if count >= _MIN_SAMPLE_FAULTS}


def _is_meant(hit: Diagnostic, text: str, arguments: Callable[[str], Set[tuple[str, int]]]) -> bool:
    """What only looks like the fault that the rule is about."""
    match hit.rule:
        case "T100":  # an import alone stops nothing
            return hit.message.startswith("Import ")
        case "F811":  # an imported fixture: the parameter of its name receives it
            name = _REDEFINED_NAME.search(hit.message)
            return name is not None and (name[1], hit.line) in arguments(hit.path)
        case _:
            return _is_brace_style_log_call(hit, text)


def _find_arguments(text: str) -> set[tuple[str, int]]:
    """The name and line of each parameter of a file's functions."""
    tree = parse_python(text)
    return {(n.arg, n.lineno) for n in ast.walk(tree) if isinstance(n, ast.arg)} if tree else set()


def _is_brace_style_log_call(hit: Diagnostic, text: str) -> bool:
    """A message with `{}` for a logger of the project's own, which formats it so."""
    if not hit.rule.startswith("PLE120"):
        return False
    call = "\n".join(text.split("\n")[hit.line - 1 : hit.end_line + _MESSAGE_LINES])
    message = _STRING_LITERAL.search(call)
    if message is None:
        return False
    return _BRACE_FIELD.search(message[2]) is not None and _PERCENT_FIELD.search(message[2]) is None


class Pyright:
    """basedpyright's sure rules on the change's Python files, with the repository around them."""

    name = "basedpyright"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report what is new against the merge base."""
        every = head_python_texts(context)
        if not every:
            return ReviewerReport()
        if not bundled_checkers.has_pyright():
            missing = "not installed, so calls that a change breaks were not looked for; pip install 'regreen[types]'"
            return ReviewerReport(skipped=(SkippedReviewer(self.name, missing, by_policy=True),))
        files = dict(islice(every.items(), _MAX_CHECKED_FILES))
        left = f"only the {len(files)} riskiest of {len(every)} Python files were checked"
        skipped = (SkippedReviewer(self.name, left),) if len(files) < len(every) else ()
        rules = tuple(PYRIGHT_RULES)
        relying = find_dependents(context)
        if not relying and not _may_say_something(context, files):
            return ReviewerReport()  # nothing for it to check
        old = base_python_texts(context)

        @cache
        def base() -> list[Diagnostic]:
            around = _surrounding_files(context, context.merge_base, short_old)
            targets = {h.path for h in found} & relying.keys() | find_base_files(
                context, found
            ) & old.keys()
            return _split_unread(bundled_checkers.run_pyright(around, sorted(targets), rules))[0]

        short_old, short_new = _leave_out_tests(context, old | relying, files | relying)
        around = _surrounding_files(context, context.head, short_new)
        found, lost = _split_unread(bundled_checkers.run_pyright(around, (*files, *relying), rules))
        unread = tuple(u for u in lost if u.path in files)
        new = select_new_diagnostics(
            context,
            found,
            base,
            sure=lambda h: (
                rule_confidence(PYRIGHT_RULES[h.rule], h.rule, h.message) >= _MIN_SURE_CONFIDENCE
            ),
        )
        broken = [h for h in found if h.path in relying]
        claims = find_broken_dependents(context, broken, base, relying)
        return ReviewerReport(
            claims=(
                *(make_claim(h, context, "basedpyright", PYRIGHT_RULES) for h in new),
                *claims,
            ),
            read=f"basedpyright on {count_noun(len(files) - len(unread), 'Python file')}",
            unread=unread,
            skipped=skipped,
        )


def _leave_out_tests(
    context: ReviewContext, before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The files of both sides without the tests that the change cannot break, every other line where it was.

    Most of the type checker's time goes into the bodies of tests, and no other line depends on a test that nothing
    names. One stays on both sides if the change touches it, if an edited definition can break it, or if it has a word
    that the change adds or removes in its file outside of tests.
    """
    edits = [e for f in context.files if is_module(f.path) for e in _find_edits(f, context)]
    changes = {f.old_path: f for f in context.files} | {f.path: f for f in context.files}
    staying = set[tuple[str, str]]()
    for texts, is_head in ((before, False), (after, True)):
        named = Counter(w for text in texts.values() for w in _WORD.findall(text))
        used = named - Counter(w for text in texts.values() for w in _DEFINED_NAME.findall(text))
        for path, text in texts.items():
            file, rows = changes.get(path), text.split("\n")
            words = (
                _find_words_outside_tests(file, context) if file and is_test(path) else frozenset()
            )
            changed = (file.added_lines if is_head else file.removed_lines) if file else ()
            for name, lines, _ in _find_tests(text) if is_test(path) else ():
                inside = set(_WORD.findall("\n".join(rows[lines.start - 1 : lines.stop - 1])))
                if (
                    used[name]
                    or not words.isdisjoint(inside)
                    or _can_break(edits, inside)
                    or any(n in lines for n in changed)
                ):
                    staying.add((file.path if file else path, name))

    def shorten(path: str, text: str) -> str:
        rows, now = text.split("\n"), changes[path].path if path in changes else path
        for name, lines, indent in _find_tests(text) if is_test(path) else ():
            if (now, name) not in staying:
                rows[lines.start - 1 : lines.stop - 1] = [f"{indent}pass", *[""] * (len(lines) - 1)]
        return "\n".join(rows)

    return {p: shorten(p, t) for p, t in before.items()}, {
        p: shorten(p, t) for p, t in after.items()
    }


def _find_words_outside_tests(file: FileChange, context: ReviewContext) -> frozenset[str]:
    """The words of the lines that a change adds or removes outside of tests, on both sides."""
    words = set[str]()
    sides = (
        (context.base_text(file.old_path), file.removed_lines),
        (context.head_text(file.path), file.added_lines),
    )
    for text, changed in sides:
        if text is not None:
            inside = {n for _, lines, _ in _find_tests(text) for n in lines}
            rows = text.split("\n")
            words |= {w for n in {*changed} - inside for w in _WORD.findall(rows[n - 1])}
    return frozenset(words.difference(keyword.kwlist))


def _find_tests(text: str) -> list[tuple[str, range, str]]:
    """The name, lines and indentation of each outermost test function; none where `ast` counts lines otherwise."""
    tree = None if "\r" in text.replace("\r\n", "\n") else parse_python(text)
    rows, left = text.split("\n"), [*ast.iter_child_nodes(tree)] if tree else []
    found = []
    while left:
        node = left.pop()
        if isinstance(node, FunctionNode) and node.name.startswith("test"):
            start = min(n.lineno for n in (node, *node.decorator_list))
            indent = rows[node.lineno - 1][: node.col_offset]
            found.append((node.name, range(start, (node.end_lineno or start) + 1), indent))
        else:
            left += ast.iter_child_nodes(node)
    return found


def _may_say_something(context: ReviewContext, files: Mapping[str, str]) -> bool:
    """Whether added lines have a sign of what the type checker is sure of, or call a coroutine of these files.

    Starting it costs more than all other analyzers together.
    """
    added = [
        row[:500]
        for file in context.files
        if (rows := files.get(file.path, "").split("\n"))
        for n in file.added_lines
        if n <= len(rows) and (row := rows[n - 1])
    ]
    lazy = {name for text in files.values() for name in _ASYNC_NAME.findall(text)}
    return any(
        _SIGNS.search(row)
        or (not _AWAITED.search(row) and not lazy.isdisjoint(_CALLED_NAME.findall(row)))
        for row in added
    )


def _split_unread(hits: Sequence[Diagnostic]) -> tuple[list[Diagnostic], tuple[UnreadFile, ...]]:
    """An analyzer's hits, and the files that it could not read."""
    found = [h for h in hits if h.rule != UNREAD_RULE]
    return found, tuple(UnreadFile(h.path, h.message) for h in hits if h.rule == UNREAD_RULE)


def head_python_texts(context: ReviewContext) -> dict[str, str]:
    """The selected Python files as the head has them."""
    return {
        f.path: text
        for f in context.files
        if has_capability(f.path, "checkers", stubs=True)
        and f.status != "deleted"
        and (text := context.head_text(f.path)) is not None
    }


def base_python_texts(context: ReviewContext) -> dict[str, str]:
    """Every Python file of the change as the merge base has it, deleted ones too: code may have moved."""
    return {
        f.old_path: text
        for f in context.change.files
        if has_capability(f.old_path, "checkers", stubs=True)
        and f.status != "added"
        and (text := context.base_text(f.old_path)) is not None
    }


def make_claim(
    hit: Diagnostic, context: ReviewContext, tool: str, rules: Mapping[str, AnalyzerRule]
) -> Claim:
    """The claim for a hit of a trusted rule: the tool's message and the rule's consequence."""
    rule = rules[hit.rule]
    message = hit.message.split("\n", maxsplit=1)[0].strip().rstrip(".")
    title = message.replace('"', "`") if tool == "basedpyright" else message
    rows = (context.head_text(hit.path) or "").split("\n")
    place = commentable_range(context, hit)
    confidence = rule_confidence(rule, hit.rule, hit.message)
    return make_analyzer_claim(
        f"{tool}/{hit.rule}",
        rule.severity,
        hit.path,
        place,
        title=title if place == (hit.line, hit.end_line) else f"{title} (in line {hit.line})",
        body=rule.why,
        confidence=confidence,
        excerpt="\n".join(rows[hit.line - 1 : hit.end_line])[:500],
        source=f"{tool} ({hit.rule})",
        head=message,
        base="not reported",
        # `select_new_diagnostics` has decided that the change causes it
        anywhere=True,
        suggestion=hit.suggestion
        or replace_single_match(rows[hit.line - 1 : hit.end_line], rule.mend)
        if place == (hit.line, hit.end_line)
        else None,
    )


def _surrounding_files(
    context: ReviewContext, rev: str, files: Mapping[str, str]
) -> Iterable[tuple[str, str | bytes]]:
    """These files and the repository's Python that they import: all of it, or in a large one the near part."""
    own: list[tuple[str, str | bytes]] = list(files.items())
    if context.git is None:
        return own
    tree = context.head_tree if rev == context.head else context.base_tree
    others = [
        e.path
        for e in tree
        if has_capability(e.path, "checkers", stubs=True) and e.path not in files
    ]
    if len(others) <= _MAX_FULL_CONTEXT_FILES:
        near = set(others)
        return chain(own, read_sources(context.git, rev, near.__contains__))
    return chain(own, _find_imported_files(context.git, rev, files, others).items())


def _find_imported_files(
    git: Git, rev: str, files: Mapping[str, str], others: Sequence[str]
) -> dict[str, bytes]:
    """What the files import, and what that imports, in two passes over the tree."""
    modules = ModuleMap.from_paths([*others, *files])
    known = set(others)
    found: dict[str, bytes] = {}
    wanted = {p for path, text in files.items() for p in imported_files(text, path, modules)}
    for _ in range(_IMPORT_STEPS):
        missing = (wanted & known) - found.keys()
        if not missing or len(found) + len(missing) > _MAX_CONTEXT_FILES:
            break
        new = dict(read_sources(git, rev, missing.__contains__))
        found |= new
        wanted = {p for path, data in new.items() for p in imported_files(data, path, modules)}
    return found
