"""Where to look: what a reader of the failure needs before touching anything, most telling first, within a budget."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from regreen.codebase.symbols import outline
from regreen.fixers.background import dependency_delta, last_touched, skeletons
from regreen.fixers.case import Case
from regreen.fixers.checks.change import parse_python
from regreen.fixers.checks.paths import is_source, is_test
from regreen.fixers.named import is_aside, named
from regreen.fixers.runs import uses_pytest
from regreen.fixers.verify_patch import failing_sources
from regreen.fixers.workspace import clipped, original
from regreen.models import Failure, Frame

_AROUND = 20
_WHOLE = 120
_FAILURES = 5
_HEAD, _NEAR = 4, 6
_WORD = re.compile(r"\w{4,80}")
_FRAMES = 8
_FILES = 5
_IMPORTS = 40
_VALUES, _VALUE = 8, 15
_FUNCTIONS = 3
_SECRET = re.compile(
    r"AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{40,90}|xox[abprs]-[A-Za-z0-9-]{10,80}|sk-ant-[\w-]{20,120}"
)


def pack(case: Case, budget: int = 40_000) -> str:
    """Everything worth reading first, as sections fenced as data. `budget` is in characters."""
    parts: list[str] = []
    left = budget
    for title, body in _sections(case):
        if not body.strip() or left < 400:
            continue
        shown = clipped(body, min(left, max(2000, budget // 3)))
        parts.append(f"## {title}\n{fence(case, shown)}")
        left -= len(shown)
    return "\n\n".join(parts)


def fence(case: Case, text: str) -> str:
    """Repository text between marks that it cannot contain, with secrets taken out."""
    mark = f"data-{case.rev[:16]}"
    clean = _SECRET.sub("[secret]", text).replace(mark, "data")
    return f"<{mark}>\n{clean}\n</{mark}>"


def _sections(case: Case) -> Iterator[tuple[str, str]]:
    frames = suspect_frames(case)
    tests = _tests(case)
    yield "The failing command", f"{case.before.command}\nexit {case.before.exit_code}"
    yield (
        "What failed",
        "\n\n".join(_failure(failure) for failure in case.before.failures[:_FAILURES]),
    )
    yield "The end of its output", clipped(case.output, 5000)
    yield "The failing tests", "\n\n".join(tests)
    # a test is shown once, whole: its frames would show it again
    inside = [frame for frame in frames if is_source(frame.path) or not tests]
    path = _stretches(case, inside[:_FRAMES])
    asked = [one for one in _named(case, tests) if not any(shown.covers(one) for shown in path)]
    yield "Source on the failing path", "\n\n".join(one.text(case) for one in path)
    yield "Source of what the failing tests name", "\n\n".join(one.text(case) for one in asked)
    suspects = suspicion(case)
    yield (
        "Suspect lines, most suspect first (run by failing tests and seldom by passing ones)",
        "\n".join(_suspect(case, frame, score) for frame, score in suspects),
    )
    around = _around_suspects(case, suspects, [*path, *asked])
    yield "Source around the most suspect", "\n\n".join(one.text(case) for one in around)
    yield "What that code needs of its files", "\n\n".join(_needs(case, [*path, *asked, *around]))
    yield "What is missing, as the tests use it", skeletons(case)
    yield "Who last touched those lines", last_touched(case, frames)
    yield "What the change did to the dependencies", dependency_delta(case)
    yield "What the change under repair did there", _change(case, [frame.path for frame in frames])
    yield "What the culprit commit did", _culprit(case)
    yield "What cheaper ways found", "\n".join(f"- {hint}" for hint in case.hints)
    yield "Map of the files around it", _map(case, [frame.path for frame in frames])


def suspect_frames(case: Case) -> list[Frame]:
    """The repository's own frames, innermost first, those outside tests before those inside."""
    found: list[Frame] = []
    for failure in case.before.failures[:_FAILURES]:
        frames = list(failure.frames)
        if failure.path and failure.line:
            frames.append(Frame(failure.path, failure.line))
        for frame in reversed(frames):
            path = frame.path.removeprefix("/work/")
            if original(case, path) is not None:
                found.append(Frame(path, frame.line, frame.function))
    unique = list({(frame.path, frame.line): frame for frame in found}.values())
    return [one for one in unique if is_source(one.path)] + [
        one for one in unique if not is_source(one.path)
    ]


def _failure(failure: Failure) -> str:
    where = f" at {failure.path}:{failure.line}" if failure.path else ""
    frames = "\n".join(
        f"  {frame.path}:{frame.line} {frame.function}" for frame in failure.frames[-8:]
    )
    # pytest's own words begin with the kind
    said = failure.message.removeprefix(f"{failure.kind}: ")[:1500]
    return f"{failure.test}{where}\n{failure.kind}: {said}\n{frames}".rstrip()


def _tests(case: Case) -> list[str]:
    """The failing tests' own source, of long ones what the failure speaks of; a check script is shown whole."""
    found = failing_sources(case.git, case.rev, case.trial, case.before.failures)
    limit = 6000 if len(found) == 1 else 3000
    said = "\n".join(
        [
            *(f"{failure.test}\n{failure.message}" for failure in case.before.failures),
            *(line for line in case.output.splitlines() if line.startswith(("E ", ">"))),
        ]
    )
    return [_telling(text, said, limit) for text in found[:_FAILURES]]


def _telling(text: str, said: str, limit: int) -> str:
    """The head of a long test, and its lines that share the rarest words with what was said of the failure."""
    if len(text) <= limit:
        return text
    lines = text.splitlines()
    words = [set(_WORD.findall(line)) for line in lines]
    times = Counter(word for line in words for word in line)
    heard = set(_WORD.findall(said))
    weights = [sum(1 / times[word] for word in line & heard) for line in words]
    kept, left = set(range(min(_HEAD, len(lines)))), limit
    for best in sorted(range(len(lines)), key=lambda at: -weights[at]):
        near = set(range(max(0, best - _NEAR), min(len(lines), best + _NEAR + 1))) - kept
        left -= sum(len(lines[at]) + 1 for at in near)
        if left < 0 or weights[best] <= max(weights) / 4:
            break
        kept |= near
    if len(kept) <= _HEAD:
        return clipped(text, limit)
    shown = [
        f"{'' if at - 1 in kept or at == 0 else '...' + chr(10)}{lines[at]}" for at in sorted(kept)
    ]
    return "\n".join([*shown, "..."] if len(lines) - 1 not in kept else shown)


@dataclass(frozen=True)
class _Stretch:
    """Lines of a file that are shown together, those of the failing path among them marked."""

    path: str
    start: int
    end: int
    marked: tuple[int, ...] = ()

    def covers(self, other: _Stretch) -> bool:
        """Whether all that the other shows is shown here."""
        return self.path == other.path and self.start <= other.start and other.end <= self.end

    def text(self, case: Case) -> str:
        """The lines with their numbers, under the file's name."""
        lines = (original(case, self.path) or "").splitlines()
        shown = "\n".join(
            f"{number:5d}{'>' if number in self.marked else ' '} {lines[number - 1][:300]}"
            for number in range(self.start, min(self.end, len(lines)) + 1)
        )
        return f"{self.path}:{self.marked[0] if self.marked else self.start}\n{shown}"


def _stretches(case: Case, frames: Sequence[Frame]) -> list[_Stretch]:
    """The functions of the frames where they are short, else the lines around; none of them twice."""
    found: dict[tuple[str, int, int], list[int]] = {}
    for frame in frames:
        text = original(case, frame.path) or ""
        around = outline(frame.path, text.encode()).at(frame.line)
        start, end = max(1, frame.line - _AROUND), frame.line + _AROUND
        if around is not None and around.end - around.start <= _WHOLE:
            start, end = around.start, around.end
        at = next(
            (one for one in found if one[0] == frame.path and one[1] <= frame.line <= one[2]), None
        )
        found.setdefault(at or (frame.path, start, end), []).append(frame.line)
    return [_Stretch(*where, tuple(marked)) for where, marked in found.items()]


def _named(case: Case, tests: Sequence[str]) -> list[_Stretch]:
    """What the failing tests name: functions as far as they are shown anywhere, of a class the first screen."""
    return [
        _Stretch(path, one.start, min(one.end, one.start + (79 if one.kind == "class" else _WHOLE)))
        for path, one in named(case, tests)
    ]


def _needs(case: Case, shown: Sequence[_Stretch]) -> Iterator[str]:
    """The imports of the files that are shown in part, and the values that the parts name: an edit has to fit them."""
    for path in list(dict.fromkeys(one.path for one in shown))[:_FILES]:
        tree = parse_python(original(case, path) or "") if path.endswith(".py") else None
        if tree is None:
            continue
        parts = [one for one in shown if one.path == path]
        words = set(_WORD.findall("\n".join(one.text(case) for one in parts)))
        lines = (original(case, path) or "").splitlines()
        imports = [
            text
            for node in tree.body
            if isinstance(node, ast.Import | ast.ImportFrom)
            for text in _lines(node, lines)
        ]
        values = [
            _Stretch(path, node.lineno, min(node.end_lineno or 0, node.lineno + _VALUE))
            for node in _values(tree, words, parts)
        ]
        new = [one for one in values if not any(part.covers(one) for part in parts)][:_VALUES]
        numbered = [one.text(case).partition("\n")[2] for one in new]
        yield "\n".join([path, *imports[:_IMPORTS], *numbered])


def _lines(node: ast.stmt, lines: Sequence[str]) -> Sequence[str]:
    return lines[node.lineno - 1 : node.end_lineno]


def _values(
    tree: ast.Module, names: Collection[str], parts: Sequence[_Stretch]
) -> Iterator[ast.stmt]:
    """Assignments to these names in the module, and in the classes that the parts lie in."""
    bodies = [tree.body]
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            whole = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            bodies += [node.body] if any(part.start in whole for part in parts) else []
    for one in (one for body in bodies for one in body):
        if isinstance(one, ast.Assign):
            targets = one.targets
        else:
            targets = [one.target] if isinstance(one, ast.AnnAssign) else []
        if any(isinstance(target, ast.Name) and target.id in names for target in targets):
            yield one


def suspicion(case: Case, limit: int = 12) -> list[tuple[Frame, float]]:
    """Ochiai's ranking of source lines, from a run of the failing and some passing tests under a tracer."""
    if not uses_pytest(case.trial, case.output) or not case.passing:
        return []
    from regreen.fixers.spectrum import ranked

    return [(Frame(path, number), score) for path, number, score in ranked(case)[:limit]]


def _suspect(case: Case, frame: Frame, score: float) -> str:
    text = (original(case, frame.path) or "").splitlines()
    body = text[frame.line - 1].strip()[:160] if frame.line <= len(text) else ""
    return f"{score:.2f} {frame.path}:{frame.line} {body}"


def _around_suspects(
    case: Case, suspects: Sequence[tuple[Frame, float]], shown: Sequence[_Stretch]
) -> list[_Stretch]:
    """The first functions with suspect lines that are not shown yet: an answer may be wrong without any frame."""
    found = _stretches(case, [frame for frame, _ in suspects])
    return [one for one in found if not any(other.covers(one) for other in shown)][:_FUNCTIONS]


def _change(case: Case, paths: Sequence[str]) -> str:
    if case.base is None:
        return ""
    sources = [path for path in dict.fromkeys(paths) if is_source(path)]
    near = case.git.diff(case.base, case.rev, paths=sources) if sources else ""
    return near or case.git.diff(case.base, case.rev)


def _culprit(case: Case) -> str:
    if case.culprit is None:
        return ""
    sha = case.culprit.sha
    parents = case.git.commit(sha).parents
    diff = case.git.diff(parents[0], sha) if parents else ""
    return f"{sha[:12]} {case.culprit.subject}\n{diff}"


def _map(case: Case, paths: Sequence[str]) -> str:
    """What the files on the failing path define, then those beside them."""
    sources = [path for path in dict.fromkeys(paths) if is_source(path)]
    folders = {path.rsplit("/", 1)[0] for path in sources if "/" in path}
    beside = [
        entry.path
        for entry in case.git.tree(case.rev)
        if entry.path.endswith(".py")
        and entry.path not in sources
        and not is_test(entry.path)
        and not is_aside(entry.path)
        and (entry.path.rpartition("/")[0] in folders or not folders)
    ]
    lines: list[str] = []
    for path in [*sources, *beside[:12]]:
        found = outline(path, (original(case, path) or "").encode()).definitions
        names = [f"{one.name}:{one.start}" for one in found if one.kind != "constant"]
        lines.append(f"{path}: {', '.join(names[:40])}")
    return "\n".join(lines)[:6000]
