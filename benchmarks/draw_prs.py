"""Draw pull requests with a known bug, and clean ones, from public histories, by program and blind.

python benchmarks/draw_prs.py REPO.git ... --bugs N --clean N --seed S [--since YEAR] --out DIR
    writes DIR/bug.jsonl.gz and DIR/clean.jsonl.gz for `read_prs.py` and prints how many, so that who reads them
    afterwards knows nothing of them. Ids are hashes; the same histories and seed give the same cases.

A bug: a commit whose code a later commit removed or changed that says it fixes something and touches a test. `git
blame` before the fix names the commit and the lines, so they stand there as it wrote them (Śliwerski, Zimmermann,
Zeller 2005, less what only moved, comments, docstrings, imports). Blame also names who only wrote an old fault anew,
and some fixes mend no behaviour: look at the labels by hand after the reading.
Clean: a commit of the sizes of the bugs drawn, all of whose source lines stand a year later; it may hold a fault.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import hashlib
import io
import json
import random
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from review import ENV

from regreen.code.diff import Change, FileChange, parse
from regreen.code.paths import is_source, is_test

LEAST_CHANGED, MOST_CHANGED, MOST_FILES = 3, 120, 6
# changed lines and files: a larger fix mends more than one thing
MOST_FIXED, MOST_FIX_FILES = (
    40,
    3,
)
SIZES = (10, 30, MOST_CHANGED)
APART = 3 * 86400  # a fix on the same branch, days later, is part of the same work
YEAR = 365 * 86400
MOST_BYTES = 400_000
FIXES = re.compile(r"\b(fix(e[sd])?|bug|regression|crash(es)?|wrong|incorrect(ly)?)\b", re.IGNORECASE)  # fmt: skip
# Said of changes that alter no behaviour, or of whole releases.
NO_CHANGE = re.compile(
    r"typo|spelling|\bdocs?\b|docstring|documentation|readme|changelog|release|\bbump|version|\bformat(ting)?\b|\bblack\b|isort|ruff"
    r"|flake8|\blint|mypy|pyright|typing|type hint|annotat|pre-commit|\bci\b|travis|coverage|refactor|\bmove|rename|clean ?up"
    r"|revert|\bmerge|translation|licen[cs]e|copyright|pyupgrade|python ?2|\bsix\b",
    re.IGNORECASE,
)
ASIDE = re.compile(
    r"(^|/)(_?vendor(ed)?|third_party|extern|docs?|doc_src|examples?|benchmarks?|scripts|tools|bin|\.\w[^/]*)/"
    r"|(^|/)(setup|noxfile|conf|_?version|__about__)\.py$"
)
EMPTY = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.OP,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Commit:
    """A commit with one parent; `time` in seconds since 1970, `changed` lines of its Python source."""

    sha: str
    time: int
    subject: str
    paths: tuple[str, ...]
    changed: int


class History:
    """One repository's commits, as a bare git directory holds them."""

    def __init__(self, git_dir: Path, since: int = 1970) -> None:
        self._git_dir = git_dir
        self._since = since
        folder = git_dir.resolve()
        folder = folder.parent if folder.name == ".git" else folder
        self.name = (folder.parent if folder.name == "repo" else folder).name.removesuffix(".git").replace("+", "/")  # fmt: skip
        self.commits = {c.sha: c for c in self._log()}

    def git(self, *args: str) -> str:
        argv = ["git", "-c", "core.quotepath=off", "--git-dir", str(self._git_dir), *args]
        done = subprocess.run(argv, env=ENV, capture_output=True, check=False)
        if done.returncode:
            why = done.stderr.decode("utf-8", "replace").strip()
            sys.exit(f"git {args[0]} in {self._git_dir}: {why}. Give a bare git directory with its whole history.")  # fmt: skip
        return done.stdout.decode("utf-8", "surrogateescape")

    def diff(self, commit: Commit, *, context: int = 3) -> str:
        return self.git("diff", "--no-renames", "--no-ext-diff", f"-U{context}", f"{commit.sha}^", commit.sha)  # fmt: skip

    def text(self, rev: str, path: str) -> str | None:
        """The file's text; None where there is no such file."""
        if not self.git("ls-tree", rev, "--", path):
            return None
        return self.git("show", f"{rev}:{path}")

    def origins(self, rev: str, path: str) -> dict[int, tuple[str, str, int]]:
        """Line of the file at `rev` -> the commit that wrote it, its path and its line there."""
        found: dict[int, tuple[str, str, int]] = {}
        at = ("", 0, 0)
        for row in self.git("blame", "--line-porcelain", rev, "--", path).split("\n"):
            if head := re.match(r"([0-9a-f]{40}) (\d+) (\d+)", row):
                at = (head[1], int(head[2]), int(head[3]))
            elif row.startswith("filename "):
                found[at[2]] = (at[0], row.removeprefix("filename "), at[1])
        return found

    def year_later(self, commit: Commit) -> str | None:
        if commit.time + YEAR > int(self.git("log", "-1", "--format=%ct", "HEAD")):
            return None
        return self.git("rev-list", "-1", "--first-parent", f"--before={commit.time + YEAR}", "HEAD").strip()  # fmt: skip

    def _log(self) -> Iterator[Commit]:
        log = self.git("log", f"--since={self._since}-01-01", "--no-merges", "--min-parents=1", "--no-renames", "--numstat", "--format=%x01%H%x02%ct%x02%s")  # fmt: skip
        for entry in log.split("\x01")[1:]:
            head, _, rest = entry.partition("\n")
            sha, time, subject = head.split("\x02", 2)
            rows = [row.split("\t", 2) for row in rest.split("\n") if row.count("\t") >= 2]
            changed = sum(int(a) + int(b) for a, b, path in rows if a != "-" and is_code(path))
            yield Commit(sha, int(time), subject, tuple(r[2] for r in rows), changed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("repositories", nargs="+", type=Path, metavar="REPO.git")
    parser.add_argument("--bugs", type=int, default=12)
    parser.add_argument("--clean", type=int, default=8)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--since", type=int, default=1970, metavar="YEAR")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    histories = [History(path, args.since) for path in args.repositories]
    anything = Counter(dict.fromkeys(SIZES, args.bugs))
    bugs = draw(histories, draw_bugs, args.seed, args.bugs, anything)
    sizes = Counter(_size(case["changed"]) for case in bugs)
    wanted = Counter({s: -(-n * args.clean // max(1, len(bugs))) for s, n in sizes.items()})
    clean = draw(histories, draw_clean, args.seed, args.clean, wanted)
    args.out.mkdir(parents=True, exist_ok=True)
    for kind, cases in (("bug", bugs), ("clean", clean)):
        with gzip.open(args.out / f"{kind}.jsonl.gz", "wt") as out:
            out.writelines(json.dumps(case) + "\n" for case in cases)
    print(f"{len(bugs)} bug and {len(clean)} clean cases in {args.out}")


Draw = Callable[[History, random.Random], Iterator[dict[str, Any]]]


def draw(
    histories: Sequence[History], kind: Draw, seed: int, most: int, wanted: Counter[int]
) -> list[dict[str, Any]]:
    """At most `most` cases, from each repository in turn, and of each size at most as many as `wanted`."""
    open_ones = {h.name: kind(h, random.Random(f"{seed}:{h.name}")) for h in histories}
    left, drawn = Counter(wanted), list[dict[str, Any]]()
    for history in cycle(histories):
        if len(drawn) == most or not open_ones:
            return drawn
        if history.name not in open_ones:
            continue
        fitting = (c for c in open_ones[history.name] if left[_size(c["changed"])] > 0)
        if case := next(fitting, None):
            left[_size(case["changed"])] -= 1
            drawn.append(case)
        else:
            del open_ones[history.name]
    return drawn


def draw_bugs(history: History, dice: random.Random) -> Iterator[dict[str, Any]]:
    fixes = sorted((c for c in history.commits.values() if _is_fix(c)), key=lambda c: c.sha)
    dice.shuffle(fixes)
    seen: set[str] = set()
    for fix in fixes:
        cause = _cause(history, fix)
        if not cause or cause[0].sha in seen:
            continue
        seen.add(cause[0].sha)
        if case := _case(history, cause[0], "introducing"):
            message = history.git("log", "-1", "--format=%b", fix.sha).strip()
            what = {"fix_subject": fix.subject, "fix_message": message, "fix_diff": _source_diff(history, fix)}  # fmt: skip
            labels = [{"path": p, "line": n, "kind": "changed"} for p, n in cause[1]]
            tests = {"files": [p for p in fix.paths if is_test(p)]}
            yield case | {"buggy_lines": labels, "description": what, "fix_commit": fix.sha, "tests": tests}  # fmt: skip


def draw_clean(history: History, dice: random.Random) -> Iterator[dict[str, Any]]:
    fitting = sorted((c for c in history.commits.values() if _fits(c)), key=lambda c: c.sha)
    dice.shuffle(fitting)
    for commit in fitting:
        if _stands(history, commit) and (case := _case(history, commit, "clean")):
            yield case | {"buggy_lines": []}


def is_code(path: str) -> bool:
    return path.endswith(".py") and is_source(path) and not ASIDE.search(path)


def code_lines(text: str) -> set[int]:
    """The lines that do something: no comment, docstring, import, blank or lone bracket. None of what does not parse."""
    try:
        tree = ast.parse(text)
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (SyntaxError, ValueError, tokenize.TokenError):
        return set()
    lines = {n for t in tokens if t.type not in EMPTY for n in range(t.start[0], t.end[0] + 1)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_text(node):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))  # type: ignore[attr-defined]
    return lines


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)  # fmt: skip


def _fits(commit: Commit) -> bool:
    few = LEAST_CHANGED <= commit.changed <= MOST_CHANGED and len(commit.paths) <= MOST_FILES
    return few and not NO_CHANGE.search(commit.subject)


def _is_fix(commit: Commit) -> bool:
    source = [p for p in commit.paths if is_code(p)]
    few = 0 < commit.changed <= MOST_FIXED and 0 < len(source) <= MOST_FIX_FILES
    says = FIXES.search(commit.subject) and not NO_CHANGE.search(commit.subject)
    return bool(few and says and any(is_test(p) for p in commit.paths))


def _cause(history: History, fix: Commit) -> tuple[Commit, list[tuple[str, int]]] | None:
    """The commit that wrote most of the code that the fix removes, and those lines there; None where none fits."""
    wrote: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for file in _source(parse(history.diff(fix, context=0))):
        before = history.text(f"{fix.sha}^", file.path) if file.removed_lines else None
        removed = set(file.removed_lines) & code_lines(before or "")
        if removed:
            origins = history.origins(f"{fix.sha}^", file.path)
            for line in sorted(removed):
                sha, path, number = origins[line]
                wrote[sha].append((path, number))
    if not wrote:
        return None
    sha, lines = max(wrote.items(), key=lambda item: len(item[1]))
    commit = history.commits.get(sha)
    if not commit or not _fits(commit) or fix.time - commit.time < APART:
        return None
    moved = {x.text.strip() for f in parse(history.diff(commit)).files for h in f.hunks for x in h.lines if x.kind == "-"}  # fmt: skip
    new = [(p, n) for p, n in lines if _line(history, sha, p, n).strip() not in moved]
    return (commit, new) if 2 * len(new) >= sum(map(len, wrote.values())) else None


def _stands(history: History, commit: Commit) -> bool:
    """Whether all the source lines that the commit added are there a year later, some of them code."""
    later = history.year_later(commit)
    files = [f for f in _source(parse(history.diff(commit, context=0))) if f.added_lines]
    code = sum(len(set(f.added_lines) & code_lines(history.text(commit.sha, f.path) or "")) for f in files)  # fmt: skip
    if not later or code < 2:
        return False
    for file in files:
        if not history.git("ls-tree", later, "--", file.path):
            return False
        kept = Counter(sha for sha, _, _ in history.origins(later, file.path).values())
        if kept[commit.sha] < len(file.added_lines):
            return False
    return True


def _case(history: History, commit: Commit, kind: str) -> dict[str, Any] | None:
    """The commit as a pull request; None where it changes something that is no text, or too much of it."""
    diff = history.diff(commit)
    files = parse(diff).files
    if not files or any(f.binary or f.is_submodule or f.is_symlink or f.problem for f in files):
        return None
    sides = [{"path": f.path, "before": history.text(f"{commit.sha}^", f.path), "after": history.text(commit.sha, f.path)} for f in files]  # fmt: skip
    if any(len(side[when] or "") > MOST_BYTES for side in sides for when in ("before", "after")):
        return None
    base, date, body = history.git("log", "-1", "--format=%P%x02%cI%x02%b", commit.sha).split("\x02", 2)  # fmt: skip
    return {
        "id": hashlib.sha256(f"{history.name}:{commit.sha}".encode()).hexdigest()[:10],
        "project": history.name.rsplit("/", 1)[-1], "repo": history.name, "kind": kind, "split": "drawn",
        "base_commit": base, "head_commit": commit.sha, "date": date,
        "title": commit.subject, "body": body.strip(), "changed": commit.changed, "files": sides, "diff": diff,
    }  # fmt: skip


def _source(change: Change) -> list[FileChange]:
    return [f for f in change.files if is_code(f.path)]


def _source_diff(history: History, fix: Commit) -> str:
    """The fix without its tests, and without git's own headers, which the scorer would read as code."""
    paths = [p for p in fix.paths if is_code(p)]
    diff = history.git(
        "diff", "--no-renames", "--no-ext-diff", f"{fix.sha}^", fix.sha, "--", *paths
    )
    return "\n".join(row for row in diff.split("\n") if not row.startswith(("diff --git ", "index ")))  # fmt: skip


def _line(history: History, sha: str, path: str, number: int) -> str:
    return (history.text(sha, path) or "").split("\n")[number - 1]


def _size(changed: int) -> int:
    return next(most for most in SIZES if changed <= most)


if __name__ == "__main__":
    main()
