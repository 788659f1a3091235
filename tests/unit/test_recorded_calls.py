"""Which tools a command comes to call, seen in a box; the tools themselves need not be there."""

from __future__ import annotations

import time
from pathlib import Path

from regreen.domain.job_control import StopCondition
from regreen.fixers.case import InitialFailure, RepairCase
from regreen.fixers.recipes.recorded_calls import record_calls
from tests.unit.repairs import Repository, job, sandbox_or_skip

FILES = {
    "Makefile": "include mk/lint.mk\n\nall: style own\n",
    "mk/lint.mk": "BLACK ?= black\n\nstyle:\n\t@$(BLACK) --check -l 100 pkg\n\nown:\n\tpython ci/lint.py\n",
    "ci/lint.py": "import subprocess, sys\n\nfor one in (['isort', '-c'], [sys.executable, '-m', 'ruff', 'check']):\n    subprocess.run([*one, 'pkg'], check=True)\n",
    "ci/each.sh": 'run() { "$@"; }\ncd web\nfor f in a.sh "b c.sh"; do run shfmt -d "$f" || exit 1; done\n',
    "web/a.sh": "",
    "web/node_modules/.bin/prettier": "#!/bin/sh\nexit 1\n",
    ".tox/lint/bin/ssort": "#!/bin/sh\nexit 1\n",
    "env/bin/yapf": "raise SystemExit(1)\n",
    "web/node_modules/.bin/oddlint": "#!/bin/sh\nexit 3\n",
    "web/node_modules/.bin/calm": "#!/bin/sh\nexit 0\n",
    ".tox/lint/bin/strict": "#!/bin/sh\nexit 1\n",
    "tool.sh": "#!/bin/sh\nPATH=/work/.tox/lint/bin:$PATH ssort --check pkg\n",
}
COMMAND = (
    "make -s all && just --unstable --fmt --check && sh ci/each.sh && printf 'x.c\\0y.c\\0' | xargs -0 clang-format --dry-run && (cd web && ./node_modules/.bin/prettier -c .)"
    " && sh tool.sh && python env/bin/yapf -d pkg && test -z \"$(gofmt -l cmd)\" && git ls-files > /dev/null && biome --version; (cd web && ./node_modules/.bin/calm --diff x.c && ./node_modules/.bin/oddlint src -q); .tox/lint/bin/strict pkg; echo over >> seen; nbqa black --check n; beautysh --check web/a.sh"
)  # fmt: skip


def test_each_call_is_seen_however_it_is_made(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("all", FILES)
    for name in (
        "web/node_modules/.bin/oddlint",
        "web/node_modules/.bin/calm",
        ".tox/lint/bin/strict",
    ):
        (repository.path / name).chmod(0o755)
    rev = repository.commit("programs", {})
    case = RepairCase(
        job(rev, "bash", "-c", COMMAND, setup="chmod -R +x . && true"),
        rev, InitialFailure("", 1), {}, repository.open(), sandbox_or_skip(), StopCondition(time.monotonic() + 300),
    )  # fmt: skip
    recorded = record_calls(case)
    assert [one for one in recorded.known if not one.startswith("sh ")] == [
        "black --check -l 100 pkg",
        "python ci/lint.py",
        "isort -c pkg",
        "python -m ruff check pkg",
        "just --unstable --fmt --check",
        "cd web\nshfmt -d a.sh",
        "cd web\nshfmt -d 'b c.sh'",
        "clang-format --dry-run x.c y.c",
        "cd web\nprettier -c .",
        "/work/.tox/lint/bin/ssort --check pkg",
        "yapf -d pkg",
        "gofmt -l cmd",
        "git ls-files",
        "biome --version",
        "nbqa black --check n",
        "beautysh --check web/a.sh",
    ]
    assert recorded.failed == ("cd web\noddlint src -q", "strict pkg")
    assert recorded.passed == ("cd web\ncalm --diff x.c",)


def test_a_command_that_does_not_end_is_left(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    rev = repository.commit("all", {"a.py": ""})
    command = "for n in $(seq 300); do black a$n; done; kill -9 $$"
    case = RepairCase(
        job(rev, "bash", "-c", command, setup=None),
        rev, InitialFailure("", 1), {}, repository.open(), sandbox_or_skip(), StopCondition(time.monotonic() + 300),
    )  # fmt: skip
    assert list(record_calls(case).known) == [f"black a{number}" for number in range(1, 201)]
