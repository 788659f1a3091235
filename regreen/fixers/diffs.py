"""Unified diffs made from bytes, so that no patch is ever computed inside a box that ran foreign code."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

NO_NEWLINE = "\\ No newline at end of file\n"


def diff_files(before: Mapping[str, bytes | None], after: Mapping[str, bytes | None]) -> str:
    """The patch that turns `before` into `after`; None stands for "no such file". Text files only."""
    parts: list[str] = []
    for path in sorted(after):
        old, new = before.get(path), after[path]
        if old != new:
            parts.append(diff_file(path, old, new))
    return "".join(parts)


def diff_file(path: str, old: bytes | None, new: bytes | None) -> str:
    """One file's patch, in the form that `git apply` takes.

    Raises:
        UnicodeDecodeError: a side is not UTF-8 text.
    """
    before = _lines(old)
    after = _lines(new)
    head = [f"diff --git a/{path} b/{path}\n"]
    if old is None:
        head.append("new file mode 100644\n")
    if new is None:
        head.append("deleted file mode 100644\n")
    if not before and not after:
        return "".join(head)
    head.append("--- /dev/null\n" if old is None else f"--- a/{path}{_tab(path)}\n")
    head.append("+++ /dev/null\n" if new is None else f"+++ b/{path}{_tab(path)}\n")
    return "".join(head) + "".join(_body(before, after))


def _tab(path: str) -> str:
    return "\t" if " " in path else ""


def _lines(data: bytes | None) -> list[str]:
    """Lines split at line feeds alone: git knows no other end of line."""
    if not data:
        return []
    text = data.decode("utf-8")
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _body(before: list[str], after: list[str]) -> Iterator[str]:
    for group in _groups(before, after):
        first, last = group[0], group[-1]
        yield f"@@ -{_span(first[1], last[2])} +{_span(first[3], last[4])} @@\n"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (_line(" ", line) for line in before[i1:i2])
                continue
            yield from (_line("-", line) for line in before[i1:i2])
            yield from (_line("+", line) for line in after[j1:j2])


def _groups(before: list[str], after: list[str]) -> Iterator[list[tuple[str, int, int, int, int]]]:
    """Difflib's groups, computed on the part that differs: lock files are long and change in the middle."""
    head = 0
    limit = min(len(before), len(after))
    while head < limit and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < limit - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    start = max(0, head - 3)
    stop = max(0, tail - 3)
    old, new = before[start : len(before) - stop], after[start : len(after) - stop]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > 2000)
    for group in matcher.get_grouped_opcodes(3):
        yield [
            (tag, i1 + start, i2 + start, j1 + start, j2 + start) for tag, i1, i2, j1, j2 in group
        ]


def _span(start: int, stop: int) -> str:
    length = stop - start
    first = start + 1 if length else start
    return f"{first}" if length == 1 else f"{first},{length}"


def _line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n{NO_NEWLINE}"
