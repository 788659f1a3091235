"""Cuts a job in two: what needs a network (installing) and what must do without (testing)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from regreen.fixers.installs import COMPOUND, KEEPS_STATE, install_lines, installs, logical_lines
from regreen.fixers.job_plan import Step
from regreen.fixers.warming import offline, warm_up


@dataclass(frozen=True)
class Phases:
    """Steps for the network phase, and steps after it; a step may stand in both, a part in each.

    `warmed` says that the second part runs tools which the first prepared: they must be told not to fetch again.
    `early` names the steps that test but have to run in the network phase, for a later step installs on top of them.
    """

    setup: tuple[Step, ...]
    command: tuple[Step, ...]
    warmed: bool = False
    early: tuple[str, ...] = ()


def phases(steps: tuple[Step, ...], target: int) -> Phases:
    """Split the steps up to `target` into what installs and what does not.

    A step that builds on something keeps its place; one that only checks waits until everything is installed. A
    script that installs and then tests is split between its lines; what its tools (tox, uv run) or the scripts it
    calls would install is fetched first.
    """
    reached = [step for step in steps if step.number <= target]
    if not any(step.number == target for step in reached):
        return Phases(tuple(reached), ())
    parted = [_part(step, target) for step in reached]
    last = max((at for at, part in enumerate(parted) if part.first is not None), default=-1)
    setup: list[Step] = []
    command: list[Step] = []
    early: list[str] = []
    for at, (step, part) in enumerate(zip(reached, parted, strict=True)):
        if part.first is not None:
            setup.append(part.first)
        if part.second is None:
            continue
        if at < last and part.first is None and not _only_checks(step):
            setup.append(part.second)
            early += [step.name] if step.kind == "run" and _CHECKS.search(step.run) else []
        else:
            command.append(part.second)
    return Phases(tuple(setup), tuple(command), any(part.warm for part in parted), tuple(early))


@dataclass(frozen=True)
class _Part:
    """One step in two: `first` with a network, `second` without."""

    first: Step | None
    second: Step | None
    warm: bool = False


def _part(step: Step, target: int) -> _Part:
    if step.kind == "skip" or not step.run.strip():
        return _Part(None, step)
    if step.kind == "setup" and step.number != target:
        return _Part(step, None)
    install, rest = split_script(step)
    inner = step.calls if step.kind == "run" else ""
    if installs(inner) and not _tests(inner) and step.number != target:
        return _Part(step, None)
    if install and step.number != target and (rest in {":", "pass"} or not _tests(rest)):
        return _Part(step, None)
    fetched = [
        f"({chr(10)}{chr(10).join(lines)}{chr(10)})" for lines in [install_lines(inner)] if lines
    ]
    warm = "\n".join(part for part in (*fetched, warm_up(f"{rest}\n{inner}")) if part)
    if not install and not warm:
        return _Part(None, step)
    both = "\n".join(part for part in (install, warm) if part)
    first = replace(
        step,
        run=both,
        name=f"{step.name} (preparing)",
        id=f"{step.id or f'__{step.number}'}.preparing",
    )
    return _Part(first, replace(step, run=offline(rest) if warm else rest), bool(warm))


_CHECKS = re.compile(
    r"\b(?:pytest|py\.test|unittest|tox|nox|mypy|pyright|ruff|flake8|pylint|black|isort|coverage run|lint|tsc|jest|vitest|mocha"
    r"|eslint|prettier|test)\b|\bcargo (?:test|clippy|fmt)|\bgo (?:test|vet)",
)


def runs_tests(step: Step) -> bool:
    """Whether a step runs tests or a linter, by itself or through what it calls; building is neither."""
    return step.kind == "run" and (_tests(step.run) or _tests(step.calls))


def _tests(script: str) -> bool:
    return bool(_CHECKS.search(script))


def _only_checks(step: Step) -> bool:
    """Whether nothing behind this step can lean on what it leaves: then it may wait until all is installed."""
    return (
        step.kind == "run"
        and _tests(step.run)
        and not step.id
        and not re.search(r"GITHUB_(?:ENV|PATH|OUTPUT)|build|>\s*\S", step.run)
    )


def needs_network(step: Step) -> bool:
    """Whether a step installs or fetches something."""
    if step.kind == "setup":
        return bool(step.run)
    return step.kind == "run" and (installs(step.run) or installs(step.calls))


def split_script(step: Step) -> tuple[str, str]:
    """The lines of a step's script that install, and the lines to run after them.

    Only a script of plain lines is split; one with compound commands, or of another shell, that installs is
    taken as installing as a whole where nothing in it is told apart.
    """
    script = step.run
    if not installs(script):
        return "", script
    if "python" in step.shell.split()[:1]:
        return script, "pass"
    lines = logical_lines(script)
    if COMPOUND.search(script):
        return _split_compound(lines, script)
    last = max(at for at, line in enumerate(lines) if installs(line))
    first, after = lines[: last + 1], lines[last + 1 :]
    install_part, test_part = _split_line(first[-1])
    first[-1] = install_part
    if test_part:
        after = [test_part, *after]
    kept = [line for line in first if KEEPS_STATE.match(line)]
    return "\n".join(first), "\n".join([*kept, *after]) or ":"


def _split_compound(lines: list[str], script: str) -> tuple[str, str]:
    """A script with compound commands: split only where all that installs stands before the first of them."""
    first_compound = next(at for at, line in enumerate(lines) if COMPOUND.search(line))
    found = [at for at, line in enumerate(lines) if installs(line)]
    if found and max(found) < first_compound:
        cut = max(found) + 1
        kept = [line for line in lines[:cut] if KEEPS_STATE.match(line)]
        return "\n".join(lines[:cut]), "\n".join([*kept, *lines[cut:]])
    return script, ":"


def _split_line(line: str) -> tuple[str, str]:
    """`pip install x && pytest` in two, at the last command that installs."""
    parts = re.split(r"\s*&&\s*", line) if not re.search(r"[\"'`]", line) else [line]
    last = max((at for at, part in enumerate(parts) if installs(part)), default=len(parts) - 1)
    return " && ".join(parts[: last + 1]), " && ".join(parts[last + 1 :])
