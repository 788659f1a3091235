"""Index, search and review a repository of 5,000 Python files. Figures: codebase.md.

python benchmarks/codebase.py FOLDER_WITH_PYTHON_FILES [--files 5000]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from regreen.adapters.git.repository import GitRepository
from regreen.code.symbol_index import CallGraph, SqliteOutlineStore, build_index
from regreen.reviewers.pipeline import ReviewJob, review_change

T = TypeVar("T")
ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


def cpu() -> float:
    """Processor seconds of this process and the ones it waited for: steadier than the clock on a busy machine."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in both)


def timed(what: str, work: Callable[[], T]) -> tuple[T, float]:
    started, used = time.monotonic(), cpu()
    value = work()
    seconds, used = time.monotonic() - started, cpu() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{what:45} {seconds:7.2f} s  {used:7.2f} s CPU  peak {memory} MiB", flush=True)
    return value, used


def git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=root, env=ENV, capture_output=True, check=True)
    return done.stdout.decode().strip()


def lay_out(source: Path, root: Path, count: int) -> list[str]:
    """`count` Python files, copied under numbered packages when there are not enough."""
    found = [
        p for p in sorted(source.rglob("*.py")) if p.is_file() and 200 < p.stat().st_size < 60_000
    ]
    paths = []
    for n in range(count):
        one = found[n % len(found)]
        path = f"round{n // len(found)}/{one.relative_to(source)}"
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(one.read_bytes() + b"\n# %d\n" % n)
        paths.append(path)
    return paths


def change(root: Path, paths: list[str], lines: int, files: int) -> list[str]:
    """New functions at the end of some files, `lines` in all."""
    step = max(1, len(paths) // files)
    touched = paths[::step][:files]
    each = lines // len(touched)
    for n, path in enumerate(touched):
        body = "".join(f"    value = value + {i}\n" for i in range(max(1, each - 4)))
        with (root / path).open("a") as out:
            out.write(f"\n\ndef added_{n}(value):\n{body}    return value\n")
    return touched


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("--files", type=int, default=5000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "repo"
        root.mkdir()
        git(root, "init", "-q", "-b", "main")
        paths = lay_out(args.source, root, args.files)
        git(root, "add", "-A")
        git(root, "commit", "-qm", "base")
        base = git(root, "rev-parse", "HEAD")
        repo = GitRepository.open(root, Path(folder) / "views")
        size = sum((root / p).stat().st_size for p in paths)
        print(f"{len(paths)} files, {size / 1e6:.0f} MB, Python {sys.version.split()[0]}")
        store = SqliteOutlineStore(Path(folder) / "index.sqlite")
        timed("index, nothing kept", lambda: build_index(repo, base, store))
        heads = {}
        for name, lines, files in (
            ("500 lines in 10 files", 500, 10),
            ("10,000 lines in 20 files", 10_000, 20),
            ("300 files", 3000, 300),
        ):
            git(root, "checkout", "-q", "-B", "change", base)
            heads[name] = (change(root, paths, lines, files), "")
            git(root, "commit", "-qam", name)
            heads[name] = (heads[name][0], git(root, "rev-parse", "HEAD"))
        touched, head = heads["500 lines in 10 files"]
        index, _ = timed("index after a push of 10 files", lambda: build_index(repo, head, store))
        print(f"    files read anew: {index.read}")
        graph = CallGraph(index.outlines)
        timed("callers of one definition, first", lambda: graph.find_callers(touched[0], "added_0"))
        timed("callers of one definition, again", lambda: graph.find_callers(touched[0], "added_0"))
        ruff = Path(sys.executable).parent / "ruff"
        command = [str(ruff), "check", "--isolated", "--no-cache", "--exit-zero", "-q", "."]
        git(root, "checkout", "-q", heads["500 lines in 10 files"][1])
        _, own = timed(
            "ruff on the whole tree",
            lambda: subprocess.run(command, cwd=root, capture_output=True, check=True),
        )
        for name, (_, sha) in heads.items():
            job = ReviewJob(base=base, head=sha)
            result, took = timed(
                f"review: {name}",
                lambda job=job: review_change(job, git=repo, sandbox=None, model=None),  # type: ignore[misc]
            )
            print(
                f"    {took / own:.1f} times ruff; {len(result.findings)} findings, "
                f"{len(result.withheld)} withheld, {len(result.not_reviewed)} not reviewed"
            )


if __name__ == "__main__":
    main()
