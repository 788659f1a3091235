"""Selects the context of a failure for a model: the most informative sections first, within a budget;
the lines that failing tests run more than others are the suspects.
"""

from __future__ import annotations

import ast
import builtins
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from regreen.code.diff import parse_bounded
from regreen.code.paths import is_example, is_lock_file, is_source, is_test, is_vendored
from regreen.code.python_calls import is_module, parse_python
from regreen.code.symbols import Definition, read_outline
from regreen.domain.errors import UserError
from regreen.domain.models import Failure, Message, SentPart, StackFrame
from regreen.fixers.case import RepairCase
from regreen.fixers.verify_patch import find_failing_sources
from regreen.fixers.warm_engine import WarmEngine
from regreen.fixers.workspace import clip_text, read_original
from regreen.languages.python.imports import ModuleMap
from regreen.languages.registry import has_capability, names_each_test

# Finds the definitions that the failing tests name: first through imports, then by name alone.

_MAX_IMPORT_HOPS = 5
_MAX_SAME_NAME = 2
_MAX_FILE_CHARS = 400_000
_QUOTED_LENGTHS = range(6, 81)
"""Characters of a text that says where it comes from."""
_NAME_PATTERN = re.compile(r"[A-Za-z_]\w{2,60}")
_MENTIONED_NAME = re.compile(
    r"[A-Za-z]\w{0,80}(?=\()|(?<=['\"`])[A-Za-z_]\w{2,60}(?=['\"`(.])|\b(?=\w*[a-z0-9]_?[A-Z_])[A-Za-z_]\w{2,60}"
)
"""Words of a message that are names of code: called, in quotes, or written as no word of English is."""


def find_named_definitions(
    case: RepairCase, tests: Sequence[str], limit: int = 6
) -> list[tuple[str, Definition]]:
    """The definitions (path, definition) that the tests name, the most relevant first.

    What a test file imports, or reaches through an imported module, is known for sure, also through packages that hand it
    on; of these the ones that most failing tests use come first. Then what writes a text that the tests expect, then
    other names, looked for anywhere, the narrowest first.

    Args:
        case: the failure.
        tests: the sources of the failing tests, without their imports.
        limit: how many names of the tests; two more at most that their failures speak of.
    """
    used = Counter(name for text in tests for name in set(_find_used_names(text)))
    sources = dict(_read_product_sources(case))
    sure = {name: home for name, home in _resolve_imported_names(case, tests).items() if used[name]}
    ranked = [sure[name] for name in sorted(sure, key=lambda name: (-used[name], name))]
    found = [*dict.fromkeys([*ranked[: limit - 2], *_find_quoting_functions(sources, tests)])][
        :limit
    ]
    message = "\n".join(failure.message for failure in case.before.failures).strip() or case.output
    spoken = {match[0] for match in _MENTIONED_NAME.finditer(message[-3000:])}
    homes = _find_definitions_by_name(sources, used.keys() - sure.keys(), spoken - sure.keys())

    def rank(name: str) -> tuple[int, int]:
        return len(homes[name]), -len(name)

    own = sorted((name for name in homes if name in used), key=rank)[: max(0, limit - len(found))]
    mentioned = sorted((name for name in homes if name not in used), key=rank)[:_MAX_SAME_NAME]
    for name in [*own, *mentioned]:
        found += [home for home in homes[name][:2] if home not in found]
    return found


def is_outside_product(path: str) -> bool:
    """Whether the path is vendored, an example or a script rather than the product."""
    return is_vendored(path) or is_example(path) or path.startswith(("scripts/", "tools/"))


def _find_used_names(text: str) -> Iterator[str]:
    """The names that are read, dotted names whole and in parts; keywords of calls do not count."""
    tree = parse_python(text)
    if tree is None:
        yield from _NAME_PATTERN.findall(text)
        return
    own = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in own:
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
            yield ast.unparse(node)


def _resolve_imported_names(
    case: RepairCase, tests: Sequence[str]
) -> dict[str, tuple[str, Definition]]:
    """The definitions behind the names that the failing tests' files import."""
    modules = ModuleMap.from_paths([entry.path for entry in case.git.tree(case.rev)])
    files = {failure.test.partition("::")[0] for failure in case.before.failures}
    files |= {failure.path for failure in case.before.failures if failure.path}
    found: dict[str, tuple[str, Definition]] = {}
    for path in sorted(file for file in files if is_module(file) and not is_source(file)):
        for local, source, name in _read_imports(case, path, modules):
            homes = [(local, name)] if name else []
            if not name:  # the attributes of a module that the tests read
                read = {
                    text
                    for test in tests
                    for text in _find_used_names(test)
                    if text.startswith(f"{local}.")
                }
                homes = [(text, text.removeprefix(f"{local}.")) for text in sorted(read)]
            for called, wanted in homes:
                home = _find_definition(case, source, wanted, modules)
                if home is not None:
                    found.setdefault(called, home)
    return found


def _read_imports(
    case: RepairCase, path: str, modules: ModuleMap
) -> Iterator[tuple[str, str, str]]:
    """(local name, file, name there); the last is empty where the local name is the module itself."""
    tree = parse_python(read_original(case, path) or "")
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            for alias in node.names:
                if file := modules.find_path(alias.name):
                    yield alias.asname or alias.name, file, ""
        elif isinstance(node, ast.ImportFrom) and (source := modules.resolve_relative(node, path)):
            for alias in node.names:
                local = alias.asname or alias.name
                if file := modules.find_path(f"{source}.{alias.name}"):
                    yield local, file, ""
                elif file := modules.find_path(source):
                    yield local, file, alias.name


def _find_definition(
    case: RepairCase, path: str, name: str, modules: ModuleMap, hops: int = _MAX_IMPORT_HOPS
) -> tuple[str, Definition] | None:
    """Where a name of a module is defined, followed through re-exports."""
    for definition in _definitions_in(case, path):
        if definition.name == name:
            return path, definition
    first, _, rest = name.partition(".")
    for local, source, there in _read_imports(case, path, modules) if hops else ():
        if local in {first, "*"}:
            wanted = ".".join(part for part in (there.replace("*", first), rest) if part)
            if wanted and (found := _find_definition(case, source, wanted, modules, hops - 1)):
                return found
    return None


def _find_quoting_functions(
    sources: Mapping[str, str], tests: Sequence[str], most: int = 3
) -> list[tuple[str, Definition]]:
    """Functions that contain a string of the tests: if only a few do, they produce or read it."""
    texts = {
        node.value
        for test in tests
        for node in ast.walk(parse_python(test) or ast.Module([], []))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and len(node.value) in _QUOTED_LENGTHS
        and "\n" not in node.value
    }
    holding: dict[str, list[tuple[str, Definition]]] = {}
    for path, source in sources.items() if texts else ():
        lines = source.splitlines() if any(text in source for text in texts) else []
        shape = read_outline(path, source.encode()) if lines else None
        for number, line in enumerate(lines, 1):
            around = shape.definition_at(number) if shape else None
            for text in texts if around else ():
                if text in line and around and around.kind != "class":
                    holding.setdefault(text, []).append((path, around))
    few = [
        set(homes)
        for text, homes in sorted(holding.items(), key=lambda item: -len(item[0]))
        if len(set(homes)) <= 2
    ]
    return [*dict.fromkeys(home for homes in few for home in sorted(homes, key=str))][:most]


def _read_product_sources(case: RepairCase) -> Iterator[tuple[str, str]]:
    """The product's Python files with their texts, read with one git process."""
    entries = [
        entry
        for entry in case.git.tree(case.rev)
        if is_module(entry.path) and is_source(entry.path) and not is_outside_product(entry.path)
    ]
    for entry, data in zip(entries, case.git.blobs([entry.sha for entry in entries]), strict=True):
        if data is not None and len(data) <= _MAX_FILE_CHARS:
            yield entry.path, data.decode("utf-8", "replace")


def _find_definitions_by_name(
    sources: Mapping[str, str], used: Collection[str], spoken: Collection[str]
) -> dict[str, list[tuple[str, Definition]]]:
    """Definitions of these names in any module; names from a message may differ in case (YEAR_OF_WEEK)."""
    homes: dict[str, list[tuple[str, Definition]]] = {}
    plain = {_normalize_name(name) for name in spoken}
    for path, text in sources.items():
        for definition in read_outline(path, text.encode()).definitions:
            known = definition.short_name in used or _normalize_name(definition.short_name) in plain
            if known and len(definition.short_name) > 2 and definition.kind != "constant":
                homes.setdefault(definition.short_name, []).append((path, definition))
    return homes


def _normalize_name(name: str) -> str:
    return name.replace("_", "").lower()


def _definitions_in(case: RepairCase, path: str) -> Sequence[Definition]:
    text = read_original(case, path)
    if text is None or len(text) > _MAX_FILE_CHARS:
        return ()
    return read_outline(path, text.encode()).definitions


def rank_lines(case: RepairCase, engine: WarmEngine | None = None) -> list[tuple[str, int, float]]:
    """Source lines as (path, line, suspicion), most suspect first; empty where nothing could be traced."""
    engine = engine or WarmEngine(case)
    runs = engine.trace_tests()
    failing = set(engine.failing)
    total = sum(1 for test, _ in runs if test in failing)
    red: Counter[tuple[str, int]] = Counter()
    green: Counter[tuple[str, int]] = Counter()
    for test, lines in runs:
        for path, numbers in lines.items():
            if (
                is_source(path)
                and has_capability(path, "warm engine")
                and not path.startswith((".regreen", ".venv"))
            ):
                (red if test in failing else green).update((path, number) for number in numbers)
    found = [
        (path, line, times / math.sqrt(total * (times + green[path, line])))
        for (path, line), times in red.items()
    ]
    return sorted(found, key=lambda scored: (-scored[2], scored[0], scored[1]))


_CONTEXT_LINES = 20
_MAX_WHOLE_LINES = 120
_MAX_CLASS_LINES = 79
_MAX_FAILURES = 5
_HEAD, _NEAR = 4, 6
_WORD_PATTERN = re.compile(r"\w{4,80}")
_MAX_FRAMES = 8
_MAX_MAPPED_FILES = 5
_MAX_IMPORT_LINES = 40
_VALUES, _VALUE = 8, 15
_MAX_SUSPECT_FUNCTIONS = 3


def build_context(case: RepairCase, budget: int = 40_000) -> Message:
    """The context of the failure for a model, as sections fenced as data. `budget` is in characters."""
    parts: list[str] = []
    sent: list[SentPart] = []
    left = budget
    for title, body in _make_sections(case):
        spans = [] if isinstance(body, str) else body
        text = "\n\n".join(s.format_lines(case) for s in spans) if spans else str(body or "")
        if not text.strip() or left < 400:
            continue
        shown = clip_text(text, min(left, max(2000, budget // 3)))
        parts.append(f"## {title}\n{fence_text(case, shown)}")
        left -= len(shown)
        places = [(span.path, f"{span.start}-{span.end}") for span in spans]
        if title in _DIFF_TITLES:
            # of the whole diff: where its middle is left out, the heading of a file may be
            places = [(file.path, "") for file in parse_bounded(text).files]
        sent += [SentPart(title, *place) for place in places] or [SentPart(title)]
    return Message("user", "\n\n".join(parts), sent=tuple(dict.fromkeys(sent)))


_CHANGE_TITLE = "What the change under repair did there"
_CULPRIT_TITLE = "What the culprit commit did"
_DIFF_TITLES = {_CHANGE_TITLE, _CULPRIT_TITLE}


def fence_text(case: RepairCase, text: str) -> str:
    """Repository text between marks that it cannot contain. The model client redacts secrets."""
    mark = f"data-{case.rev[:16]}"
    return f"<{mark}>\n{text.replace(mark, 'data')}\n</{mark}>"


def _make_sections(case: RepairCase) -> Iterator[tuple[str, str | Sequence[_LineRange]]]:
    """Titles with texts, or with the lines to show."""
    frames = suspect_frames(case)
    tests = _failing_test_sources(case)
    yield "The failing command", f"{case.before.command}\nexit {case.before.exit_code}"
    yield (
        "What failed",
        "\n\n".join(_format_failure(failure) for failure in case.before.failures[:_MAX_FAILURES]),
    )
    yield "The end of its output", clip_text(case.output, 5000)
    yield "The failing tests", "\n\n".join(tests)
    # frames in tests are left out where the whole test is shown
    inside = [frame for frame in frames if is_source(frame.path) or not tests]
    path = _frame_ranges(case, inside[:_MAX_FRAMES])
    named = [
        span
        for span in _ranges_named_by_tests(case, tests)
        if not any(shown.covers(span) for shown in path)
    ]
    yield "Source on the failing path", path
    yield "Source of what the failing tests name", named
    suspects = rank_suspects(case)
    yield (
        "Suspect lines, most suspect first (run by failing tests and seldom by passing ones)",
        "\n".join(_format_suspect(case, frame, score) for frame, score in suspects),
    )
    around = _suspect_ranges(case, suspects, [*path, *named])
    yield "Source around the most suspect", around
    yield (
        "What that code needs of its files",
        "\n\n".join(_find_imports_and_values(case, [*path, *named, *around])),
    )
    yield "What is missing, as the tests use it", sketch_missing_functions(case)
    yield "Who last touched those lines", list_last_commits(case, frames)
    yield "What the change did to the dependencies", describe_dependency_changes(case)
    yield _CHANGE_TITLE, _change_diff(case, [frame.path for frame in frames])
    yield _CULPRIT_TITLE, _format_culprit(case)
    yield "What cheaper ways found", "\n".join(f"- {hint}" for hint in case.hints)
    yield "Map of the files around it", _outline_files(case, [frame.path for frame in frames])


def suspect_frames(case: RepairCase) -> list[StackFrame]:
    """The frames in the repository, innermost first, those outside tests before those in tests."""
    found: list[StackFrame] = []
    for failure in case.before.failures[:_MAX_FAILURES]:
        frames = list(failure.frames)
        if failure.path and failure.line:
            frames.append(StackFrame(failure.path, failure.line))
        for frame in reversed(frames):
            path = frame.path.removeprefix("/work/")
            if read_original(case, path) is not None:
                found.append(StackFrame(path, frame.line, frame.function))
    unique = list({(frame.path, frame.line): frame for frame in found}.values())
    return [frame for frame in unique if is_source(frame.path)] + [
        frame for frame in unique if not is_source(frame.path)
    ]


def _format_failure(failure: Failure) -> str:
    where = f" at {failure.path}:{failure.line}" if failure.path else ""
    frames = "\n".join(
        f"  {frame.path}:{frame.line} {frame.function}" for frame in failure.frames[-8:]
    )
    # pytest's message begins with the kind
    message = failure.message.removeprefix(f"{failure.kind}: ")[:1500]
    return f"{failure.test}{where}\n{failure.kind}: {message}\n{frames}".rstrip()


def _failing_test_sources(case: RepairCase) -> list[str]:
    """The sources of the failing tests; long ones are shortened to the lines that the failure mentions."""
    found = find_failing_sources(case.git, case.rev, case.trial, case.before.failures)
    limit = 6000 if len(found) == 1 else 3000
    description = "\n".join(
        [
            *(f"{failure.test}\n{failure.message}" for failure in case.before.failures),
            *(line for line in case.output.splitlines() if line.startswith(("E ", ">"))),
        ]
    )
    return [_shorten_test(text, description, limit) for text in found[:_MAX_FAILURES]]


def _shorten_test(text: str, description: str, limit: int) -> str:
    """The head of a long test, and the lines that share rare words with the failure's description."""
    if len(text) <= limit:
        return text
    lines = text.splitlines()
    words = [set(_WORD_PATTERN.findall(line)) for line in lines]
    times = Counter(word for line in words for word in line)
    spoken_words = set(_WORD_PATTERN.findall(description))
    weights = [sum(1 / times[word] for word in line & spoken_words) for line in words]
    shown_lines, left = set(range(min(_HEAD, len(lines)))), limit
    for best in sorted(range(len(lines)), key=lambda at: -weights[at]):
        near = set(range(max(0, best - _NEAR), min(len(lines), best + _NEAR + 1))) - shown_lines
        left -= sum(len(lines[at]) + 1 for at in near)
        if left < 0 or weights[best] <= max(weights) / 4:
            break
        shown_lines |= near
    if len(shown_lines) <= _HEAD:
        return clip_text(text, limit)
    shown = [
        f"{'' if at - 1 in shown_lines or at == 0 else '...' + chr(10)}{lines[at]}"
        for at in sorted(shown_lines)
    ]
    return "\n".join([*shown, "..."] if len(lines) - 1 not in shown_lines else shown)


@dataclass(frozen=True)
class _LineRange:
    """A range of lines of a file; those on the failing path are marked."""

    path: str
    start: int
    end: int
    marked: tuple[int, ...] = ()

    def covers(self, other: _LineRange) -> bool:
        """Whether the other range lies within this one."""
        return self.path == other.path and self.start <= other.start and other.end <= self.end

    def format_lines(self, case: RepairCase) -> str:
        """The lines with their numbers, under the file's name."""
        lines = (read_original(case, self.path) or "").splitlines()
        shown = "\n".join(
            f"{number:5d}{'>' if number in self.marked else ' '} {lines[number - 1][:300]}"
            for number in range(self.start, min(self.end, len(lines)) + 1)
        )
        return f"{self.path}:{self.marked[0] if self.marked else self.start}\n{shown}"


def _frame_ranges(case: RepairCase, frames: Sequence[StackFrame]) -> list[_LineRange]:
    """The functions of the frames if they are short, otherwise the lines around; each once."""
    found: dict[tuple[str, int, int], list[int]] = {}
    for frame in frames:
        text = read_original(case, frame.path) or ""
        around = read_outline(frame.path, text.encode()).definition_at(frame.line)
        start, end = max(1, frame.line - _CONTEXT_LINES), frame.line + _CONTEXT_LINES
        if around is not None and around.end - around.start <= _MAX_WHOLE_LINES:
            start, end = around.start, around.end
        shown = (place for place in found if place[0] == frame.path)
        at = next((place for place in shown if place[1] <= frame.line <= place[2]), None)
        found.setdefault(at or (frame.path, start, end), []).append(frame.line)
    return [_LineRange(*where, tuple(marked)) for where, marked in found.items()]


def _ranges_named_by_tests(case: RepairCase, tests: Sequence[str]) -> list[_LineRange]:
    """The definitions that the failing tests name, cut to the length that is shown."""
    found: list[_LineRange] = []
    for path, definition in find_named_definitions(case, tests):
        most = _MAX_CLASS_LINES if definition.kind == "class" else _MAX_WHOLE_LINES
        end = min(definition.end, definition.start + most)
        found.append(_LineRange(path, definition.start, end))
    return found


def _find_imports_and_values(case: RepairCase, shown: Sequence[_LineRange]) -> Iterator[str]:
    """The imports of the files that are shown in part, and the assignments that the parts use."""
    for path in list(dict.fromkeys(span.path for span in shown))[:_MAX_MAPPED_FILES]:
        tree = parse_python(read_original(case, path) or "") if is_module(path) else None
        if tree is None:
            continue
        parts = [span for span in shown if span.path == path]
        words = set(_WORD_PATTERN.findall("\n".join(part.format_lines(case) for part in parts)))
        lines = (read_original(case, path) or "").splitlines()
        imports = [
            text
            for node in tree.body
            if isinstance(node, ast.Import | ast.ImportFrom)
            for text in _statement_lines(node, lines)
        ]
        values = [
            _LineRange(path, node.lineno, min(node.end_lineno or 0, node.lineno + _VALUE))
            for node in _find_assignments(tree, words, parts)
        ]
        new = [span for span in values if not any(part.covers(span) for part in parts)][:_VALUES]
        numbered = [span.format_lines(case).partition("\n")[2] for span in new]
        yield "\n".join([path, *imports[:_MAX_IMPORT_LINES], *numbered])


def _statement_lines(node: ast.stmt, lines: Sequence[str]) -> Sequence[str]:
    return lines[node.lineno - 1 : node.end_lineno]


def _find_assignments(
    tree: ast.Module, names: Collection[str], parts: Sequence[_LineRange]
) -> Iterator[ast.stmt]:
    """Assignments to these names in the module, and in the classes around the parts."""
    bodies = [tree.body]
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            whole = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            bodies += [node.body] if any(part.start in whole for part in parts) else []
    for statement in (statement for body in bodies for statement in body):
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        else:
            targets = [statement.target] if isinstance(statement, ast.AnnAssign) else []
        if any(isinstance(target, ast.Name) and target.id in names for target in targets):
            yield statement


def rank_suspects(case: RepairCase, limit: int = 12) -> list[tuple[StackFrame, float]]:
    """Ochiai's ranking of source lines, from a run of the failing and some passing tests under a tracer."""
    if not names_each_test(case.trial, case.output) or not case.passing:
        return []

    return [(StackFrame(path, number), score) for path, number, score in rank_lines(case)[:limit]]


def _format_suspect(case: RepairCase, frame: StackFrame, score: float) -> str:
    text = (read_original(case, frame.path) or "").splitlines()
    body = text[frame.line - 1].strip()[:160] if frame.line <= len(text) else ""
    return f"{score:.2f} {frame.path}:{frame.line} {body}"


def _suspect_ranges(
    case: RepairCase, suspects: Sequence[tuple[StackFrame, float]], shown: Sequence[_LineRange]
) -> list[_LineRange]:
    """The first functions with suspect lines that are not shown yet: a wrong result may leave no frame."""
    found = _frame_ranges(case, [frame for frame, _ in suspects])
    return [span for span in found if not any(other.covers(span) for other in shown)][
        :_MAX_SUSPECT_FUNCTIONS
    ]


def _change_diff(case: RepairCase, paths: Sequence[str]) -> str:
    if case.base is None:
        return ""
    sources = [path for path in dict.fromkeys(paths) if is_source(path)]
    near = case.git.diff(case.base, case.rev, paths=sources) if sources else ""
    return near or case.git.diff(case.base, case.rev)


def _format_culprit(case: RepairCase) -> str:
    if case.culprit is None:
        return ""
    sha = case.culprit.sha
    parents = case.git.commit(sha).parents
    diff = case.git.diff(parents[0], sha) if parents else ""
    return f"{sha[:12]} {case.culprit.subject}\n{diff}"


def _outline_files(case: RepairCase, paths: Sequence[str]) -> str:
    """The definitions of the files on the failing path, then of their neighbours."""
    sources = [path for path in dict.fromkeys(paths) if is_source(path)]
    folders = {path.rsplit("/", 1)[0] for path in sources if "/" in path}
    beside = [
        entry.path
        for entry in case.git.tree(case.rev)
        if has_capability(entry.path, "syntax tree")
        and entry.path not in sources
        and not is_test(entry.path)
        and not is_outside_product(entry.path)
        and (entry.path.rpartition("/")[0] in folders or not folders)
    ]
    lines: list[str] = []
    for path in [*sources, *beside[:12]]:
        found = read_outline(path, (read_original(case, path) or "").encode()).definitions
        names = [
            f"{definition.name}:{definition.start}"
            for definition in found
            if definition.kind != "constant"
        ]
        lines.append(f"{path}: {', '.join(names[:40])}")
    return "\n".join(lines)[:6000]


# The background of a failure: the last commits on the suspect lines, dependency changes, missing functions.

_MAX_BLAMED_FRAMES = 4
_BLAMED_CONTEXT_LINES = 2
_BUILTIN_TYPES = {
    "builtin_function_or_method",
    "coroutine",
    "function",
    "generator",
    "method",
    "module",
    *dir(builtins),
}
"""Kinds of object that no repository adds a function to: what is looked for there belongs elsewhere."""
_ABSENT_NAME_PATTERNS = (
    re.compile(r"cannot import name '(\w{1,80})' from '([\w.]{1,120})'"),
    re.compile(r"module '([\w.]{1,120})' has no attribute '(\w{1,80})'"),
    re.compile(r"'(\w{1,80})' object has no attribute '(\w{1,80})'"),
    re.compile(r"type object '(\w{1,80})' has no attribute '(\w{1,80})'"),
)


def list_last_commits(case: RepairCase, frames: Sequence[StackFrame]) -> str:
    """The commits that last touched the lines on the failing path, those of the change under repair marked."""
    ours = (
        {commit.sha for commit in case.git.commits(case.base, case.rev)}
        if case.base
        else set[str]()
    )
    lines: list[str] = []
    for frame in [frame for frame in frames if is_source(frame.path)][:_MAX_BLAMED_FRAMES]:
        first = max(1, frame.line - _BLAMED_CONTEXT_LINES)
        last = frame.line + _BLAMED_CONTEXT_LINES
        try:
            shas = case.git.blame(case.rev, frame.path, first, last)
        except UserError:
            continue  # the line lies beyond the end of the committed file
        for sha in dict.fromkeys(shas):
            commit = case.git.commit(sha)
            mark = ", in this change" if sha in ours else ""
            mark = ", the culprit" if case.culprit and case.culprit.sha == sha else mark
            lines.append(
                f"{frame.path}:{first}-{last}: {sha[:12]} {commit.date:%Y-%m-%d} {commit.subject[:100]}{mark}"
            )
    return "\n".join(dict.fromkeys(lines))


def describe_dependency_changes(case: RepairCase) -> str:
    """The diff of manifests and lock files: a changed package may explain a failure that no source line does."""
    if case.base is None:
        return ""
    paths = [
        path
        for path in {entry.path for entry in case.git.tree(case.rev)}
        if is_lock_file(path)
        or path.rsplit("/", 1)[-1]
        in {"pyproject.toml", "setup.cfg", "setup.py", "package.json", "go.mod"}
        or re.search(r"(^|/)(requirements|constraints)[^/]*\.(txt|in)$", path)
    ]
    return case.git.diff(case.base, case.rev, paths=sorted(paths), context=0) if paths else ""


def sketch_missing_functions(case: RepairCase) -> str:
    """Signatures of missing functions that the failing tests call, derived from the calls."""
    sources = find_failing_sources(case.git, case.rev, case.trial, case.before.failures)
    output = "\n".join(
        [case.output[-8000:], *(failure.message for failure in case.before.failures)]
    )
    absent = (
        absence
        for absence in dict.fromkeys(_find_absent_names(output))
        if absence[0] not in _BUILTIN_TYPES
    )
    found = [_sketch_function(owner, name, sources) for owner, name in absent]
    return "\n\n".join(sketch for sketch in found if sketch)


def _find_absent_names(output: str) -> Iterator[tuple[str, str]]:
    """(owner, name) of each missing attribute or import."""
    for number, pattern in enumerate(_ABSENT_NAME_PATTERNS):
        for match in pattern.finditer(output):
            yield (match[2], match[1]) if number == 0 else (match[1], match[2])


def _sketch_function(owner: str, name: str, sources: Sequence[str]) -> str:
    calls = [node for text in sources for node in _find_calls(text, name)]
    if not calls:
        return f"# {owner}.{name} is used, and not there"
    longest = max(calls, key=lambda call: len(call.args))
    arguments = [_argument_name(part, number) for number, part in enumerate(longest.args, 1)]
    keywords = sorted({keyword.arg for call in calls for keyword in call.keywords if keyword.arg})
    star = ["*"] if keywords else []
    head = ", ".join([*arguments, *star, *(f"{word}=..." for word in keywords)])
    used = "\n".join(f"# used as {ast.unparse(call)[:160]}" for call in calls[:4])
    return f"# in {owner}\n{used}\ndef {name}({head}):\n    raise NotImplementedError"


def _argument_name(node: ast.expr, number: int) -> str:
    return node.id if isinstance(node, ast.Name) else f"argument_{number}"


def _find_calls(text: str, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(parse_python(text) or ast.Module([], [])):
        if isinstance(node, ast.Call) and (
            (isinstance(node.func, ast.Name) and node.func.id == name)
            or (isinstance(node.func, ast.Attribute) and node.func.attr == name)
        ):
            yield node
