"""Where to look: what a reader of the failure needs before touching anything, most telling first, within a budget."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from regreen.codebase.symbols import Definition, outline
from regreen.fixers.background import dependency_delta, last_touched, skeletons
from regreen.fixers.case import Case
from regreen.fixers.checks.paths import is_source, is_test
from regreen.fixers.runs import uses_pytest
from regreen.fixers.verify_patch import failing_sources
from regreen.fixers.workspace import clipped, original
from regreen.models import Failure, Frame

_AROUND = 8
_WHOLE = 120
_FAILURES = 5
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
    yield "Source on the failing path", "\n\n".join(_around(case, frame) for frame in inside[:6])
    yield "Source of what the failing tests name", "\n\n".join(_mentioned(case))
    yield (
        "Suspect lines, most suspect first (run by failing tests and seldom by passing ones)",
        "\n".join(suspicion(case)),
    )
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
    return f"{failure.test}{where}\n{failure.kind}: {failure.message[:1500]}\n{frames}".rstrip()


def _tests(case: Case) -> list[str]:
    """The failing tests' own source; a check script from outside is shown whole."""
    found = failing_sources(case.git, case.rev, case.trial, case.before.failures)
    return [clipped(text, 6000 if len(found) == 1 else 3000) for text in found[:_FAILURES]]


def _mentioned(case: Case, limit: int = 6) -> Iterator[str]:
    """Source of what the failing tests name and no frame shows: the narrowest names first."""
    named = set(re.findall(r"[A-Za-z_]\w{2,60}", "\n".join(_tests(case))))
    words = named | set(re.findall(r"[A-Za-z_]\w{2,60}", case.output[-3000:]))
    homes: dict[str, list[tuple[str, Definition]]] = {}
    for entry in case.git.tree(case.rev):
        if not entry.path.endswith(".py") or not is_source(entry.path) or _aside(entry.path):
            continue
        text = original(case, entry.path)
        found = (
            outline(entry.path, text.encode()).definitions if text and len(text) < 400_000 else ()
        )
        for one in found:
            if one.short in words and one.kind != "constant":
                homes.setdefault(one.short, []).append((entry.path, one))

    # what the tests themselves name comes before what their output happens to mention
    def rank(word: str) -> tuple[bool, int, int]:
        return word not in named, len(homes[word]), -len(word)

    for name in sorted(homes, key=rank)[:limit]:
        for path, one in homes[name][:2]:
            lines = (original(case, path) or "").splitlines()[
                one.start - 1 : min(one.end, one.start + 79)
            ]
            yield f"{path}:{one.start}\n" + "\n".join(
                f"{one.start + at:5d}  {line[:300]}" for at, line in enumerate(lines)
            )


def _aside(path: str) -> bool:
    """Folders that ship along but are not the product."""
    return path.split("/", maxsplit=1)[0] in {
        "docs",
        "doc",
        "examples",
        "example",
        "scripts",
        "tools",
        "benchmarks",
        "vendor",
    }


def _around(case: Case, frame: Frame) -> str:
    """A frame's function where it is short, else the lines around it."""
    text = original(case, frame.path) or ""
    lines = text.splitlines()
    around = outline(frame.path, text.encode()).at(frame.line)
    start, end = frame.line - _AROUND, frame.line + _AROUND
    if around is not None and around.end - around.start <= _WHOLE:
        start, end = around.start, around.end
    start, end = max(1, start), min(len(lines), end)
    shown = "\n".join(
        f"{number:5d}{'>' if number == frame.line else ' '} {lines[number - 1][:300]}"
        for number in range(start, end + 1)
    )
    return f"{frame.path}:{frame.line}\n{shown}"


def suspicion(case: Case, limit: int = 12) -> list[str]:
    """Ochiai's ranking of source lines, from a run of the failing and some passing tests under a tracer."""
    if not uses_pytest(case.trial, case.output) or not case.passing:
        return []
    from regreen.fixers.spectrum import ranked

    lines: list[str] = []
    for path, number, score in ranked(case)[:limit]:
        text = (original(case, path) or "").splitlines()
        body = text[number - 1].strip()[:160] if number <= len(text) else ""
        lines.append(f"{score:.2f} {path}:{number} {body}")
    return lines


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
        and not _aside(entry.path)
        and (entry.path.rpartition("/")[0] in folders or not folders)
    ]
    lines: list[str] = []
    for path in [*sources, *beside[:12]]:
        found = outline(path, (original(case, path) or "").encode()).definitions
        names = [f"{one.name}:{one.start}" for one in found if one.kind != "constant"]
        lines.append(f"{path}: {', '.join(names[:40])}")
    return "\n".join(lines)[:6000]
