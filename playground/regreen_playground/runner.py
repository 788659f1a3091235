"""Plays GitHub's hosted runner for the demo: runs a workflow's own steps for real and writes the log GitHub would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from ruamel.yaml import YAML

from regreen_playground.acts.actions import JobReport
from regreen_playground.gitstore import GitStore

SECONDS = 120


class _Log:
    def __init__(self) -> None:
        self._lines: list[str] = []

    def write(self, text: str) -> None:
        for line in text.splitlines() or [""]:
            now = datetime.now(UTC)
            self._lines.append(f"{now:%Y-%m-%dT%H:%M:%S.%f}0Z {line}")

    def bytes(self) -> bytes:
        return ("\n".join(self._lines) + "\n").encode()


def run(git: GitStore, sha: str, path: str = ".github/workflows/ci.yml") -> list[JobReport]:
    """Run every job of a workflow at a commit, on this machine, with this Python.

    Only for repositories of our own making: nothing is fenced in here.
    """
    entry = git.at(sha, path)
    document = YAML(typ="safe", pure=True).load(git.blob(entry.sha)) if entry else {"jobs": {}}
    return [_job(git, sha, name, job) for name, job in document["jobs"].items()]


def _job(git: GitStore, sha: str, job_id: str, job: dict[str, object]) -> JobReport:
    log, steps, failed = _Log(), [("Set up job", "success")], False
    listed = job["steps"]
    assert isinstance(listed, list)  # noqa: S101 - our own workflow
    log.write(
        "Current runner version: '2.330.0'\n##[group]Operating System\nUbuntu\n24.04.3\n##[endgroup]"
    )
    log.write("Prepare all required actions")
    log.write(f"Complete job name: {job.get('name') or job_id}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "bin").mkdir()
        for name in ("python", "python3"):
            (place / "bin" / name).symlink_to(sys.executable)
        work = place / "work"
        work.mkdir()
        for step in listed:
            name = _name(step)
            if failed:
                steps.append((name, "skipped"))
                continue
            failed = not _step(git, sha, step, log, work)
            steps.append((name, "failure" if failed else "success"))
    steps.append(("Complete job", "success"))
    log.write("Cleaning up orphan processes")
    return JobReport(str(job.get("name") or job_id), tuple(steps), log.bytes())


def _name(step: dict[str, object]) -> str:
    if "name" in step:
        return str(step["name"])
    command = str(step.get("run", "")).strip().splitlines()
    return f"Run {step['uses']}" if "uses" in step else f"Run {command[0]}"


def _step(git: GitStore, sha: str, step: dict[str, object], log: _Log, work: Path) -> bool:
    if "uses" in step:
        action = str(step["uses"])
        log.write(f"##[group]Run {action}\n##[endgroup]")
        if action.startswith("actions/checkout@"):
            archive = git.run("archive", "--format=tar", sha)
            with tarfile.open(fileobj=BytesIO(archive)) as tar:
                # Set, not passed: the argument is younger than Python 3.11.0.
                tar.extraction_filter = getattr(tarfile, "data_filter", None)
                tar.extractall(work)  # noqa: S202 - our own repository's archive, filtered
            log.write(f"HEAD is now at {sha[:7]}")
        return True
    command = str(step["run"]).rstrip("\n")
    log.write(f"##[group]Run {command.splitlines()[0]}")
    for line in command.splitlines():
        log.write(f"\x1b[36;1m{line}\x1b[0m")
    log.write("shell: /usr/bin/bash -e {0}\n##[endgroup]")
    env = {
        "PATH": f"{work.parent / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(work.parent),
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    bash = shutil.which("bash") or "sh"
    done = subprocess.run(
        [bash, "-e", "-c", command],
        cwd=work,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=SECONDS,
    )
    shown = done.stdout.decode(errors="replace").replace(
        str(work), "/home/runner/work/ledger/ledger"
    )
    if shown:
        log.write(shown)
    if done.returncode:
        log.write(f"##[error]Process completed with exit code {done.returncode}.")
    return done.returncode == 0
