"""Plans every workflow file of the given git repositories and says how many test-like Linux jobs are supported.

    python benchmarks/plan.py REPOSITORY...

A job counts once, however many matrix cells it has; it is supported where one of its Linux cells is. It is
test-like where it is triggered by a push, a pull request or a schedule, runs on Linux, and a `run` step of it
tests, lints, type-checks or builds.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from regreen.actions.job_plan import JobPlan
from regreen.actions.workflow import plan_workflow
from regreen.code.workflow_document import load_workflow
from regreen.domain.errors import UserError

_TEST = re.compile(
    r"pytest|unittest|\btests?\b|\btox\b|\bnox\b|ruff|flake8|mypy|pyright|pylint|black|\blint|coverage|hatch|pre-commit"
    r"|cargo (?:test|check|clippy|build)|go (?:test|build|vet)|npm (?:run|t)|yarn|pnpm|jest|vitest|mocha|tsc|make|python -m build",
    re.IGNORECASE,
)
_OTHER = re.compile(r"only Linux|another processor|graphics|no runner")


def main() -> None:
    files = crashes = refused = 0
    jobs: dict[tuple[str, str, str], list[JobPlan]] = {}
    for repository in map(Path, sys.argv[1:]):
        for path, text in workflows(repository):
            files += 1
            try:
                plans = plan_workflow(text, files=partial(show, repository))
            except UserError as error:
                refused += 1
                print(f"refused {repository.parent.name} {path}: {error}")
                continue
            except Exception as error:  # noqa: BLE001 - a crash is what this counts
                crashes += 1
                print(f"CRASH {repository.parent.name} {path}: {error!r}")
                continue
            if triggered(text):
                for one in plans:
                    jobs.setdefault((repository.parent.name, path, one.id), []).append(one)
    report(files, crashes, refused, jobs)


def report(
    files: int, crashes: int, refused: int, jobs: dict[tuple[str, str, str], list[JobPlan]]
) -> None:
    wanted = {
        key: linux
        for key, cells in jobs.items()
        if (linux := [c for c in cells if is_linux(c)]) and is_test(linux[0])
    }
    bad = {key: cells for key, cells in wanted.items() if not any(cell.supported for cell in cells)}
    good = len(wanted) - len(bad)
    print(
        f"repositories {len(sys.argv) - 1}, workflow files {files}, refused {refused}, crashes {crashes}"
    )
    print(
        f"test-like Linux jobs {len(wanted)}, supported {good} ({100 * good / max(1, len(wanted)):.1f} %)"
    )
    reasons: Counter[str] = Counter()
    for (repository, path, name), cells in sorted(bad.items()):
        first = cells[0].unsupported[0]
        reasons[f"{first.what.split('@')[0]}: {first.why}"] += 1
        print(f"  {repository} {path.rsplit('/', 1)[-1]} {name}: {first.what}: {first.why}")
    for reason, count in reasons.most_common():
        print(f"{count:4} {reason}")


def workflows(repository: Path) -> Iterator[tuple[str, str]]:
    listed = git(repository, "ls-tree", "-r", "--name-only", "HEAD", ".github/workflows") or b""
    for path in listed.decode().splitlines():
        if path.endswith((".yml", ".yaml")) and (content := show(repository, path)) is not None:
            yield path, content.decode("utf-8", "replace")


def show(repository: Path, path: str) -> bytes | None:
    return git(repository, "show", f"HEAD:{path}")


def git(repository: Path, *arguments: str) -> bytes | None:
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


def triggered(text: str) -> bool:
    document = load_workflow(text)
    on = document.get("on") if isinstance(document, dict) else None
    names = [on] if isinstance(on, str) else list(on) if isinstance(on, (list, dict)) else []
    return any(
        name in {"push", "pull_request", "pull_request_target", "schedule", "merge_group"}
        for name in names
    )


def is_linux(job: JobPlan) -> bool:
    return not any(_OTHER.search(one.why) for one in job.unsupported)


def is_test(job: JobPlan) -> bool:
    return any(step.kind == "run" and _TEST.search(step.run) for step in job.steps) or any(
        step.uses.startswith(("pre-commit/action", "astral-sh/ruff-action", "psf/black"))
        for step in job.steps
    )


if __name__ == "__main__":
    main()
