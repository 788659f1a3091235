"""Splits a job in two: what needs a network (installing) and what runs without one (testing)."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace

from regreen.actions.job_plan import PlannedStep
from regreen.code.python_calls import is_module
from regreen.shell.install_lines import (
    COMPOUND_START,
    KEEPS_STATE,
    find_install_lines,
    installs_anything,
    join_continued_lines,
)
from regreen.shell.parse import find_commands
from regreen.shell.tools import load_tools


@dataclass(frozen=True)
class JobPhases:
    """Steps for the network phase, and steps after it; a step may stand in both, a part in each.

    `warmed`: the second part runs tools that the first one prepared, which must not fetch again. `early` names the
    steps that test but run in the network phase, because a later step installs on top of them.
    """

    setup: tuple[PlannedStep, ...]
    command: tuple[PlannedStep, ...]
    warmed: bool = False
    early: tuple[str, ...] = ()


def split_phases(steps: tuple[PlannedStep, ...], target: int) -> JobPhases:
    """Split the steps up to `target` into what installs and what does not.

    A step that builds on something keeps its place; one that only checks waits until everything is installed. A
    script that installs and then tests is split between its lines; what its tools (tox, uv run) or the scripts it
    calls would install is fetched first.
    """
    reached = [step for step in steps if step.number <= target]
    if not any(step.number == target for step in reached):
        return JobPhases(tuple(reached), ())
    parted = [_split_step(step, target) for step in reached]
    last = max((at for at, part in enumerate(parted) if part.first is not None), default=-1)
    setup: list[PlannedStep] = []
    command: list[PlannedStep] = []
    early: list[str] = []
    for at, (step, part) in enumerate(zip(reached, parted, strict=True)):
        if part.first is not None:
            setup.append(part.first)
        if part.second is None:
            continue
        if at < last and part.first is None and not _can_wait_for_setup(step):
            setup.append(part.second)
            early += [step.name] if step.kind == "run" and _CHECK_COMMAND.search(step.run) else []
        else:
            command.append(part.second)
    return JobPhases(tuple(setup), tuple(command), any(part.warm for part in parted), tuple(early))


@dataclass(frozen=True)
class _SplitStep:
    """One step in two: `first` with a network, `second` without."""

    first: PlannedStep | None
    second: PlannedStep | None
    warm: bool = False


def _split_step(step: PlannedStep, target: int) -> _SplitStep:
    if step.kind == "skip" or not step.run.strip():
        return _SplitStep(None, step)
    if step.kind == "setup" and step.number != target:
        return _SplitStep(step, None)
    install, rest = split_script(step)
    inner = step.calls if step.kind == "run" else ""
    if installs_anything(inner) and not _runs_check(inner) and step.number != target:
        return _SplitStep(step, None)
    if install and step.number != target and (rest in {":", "pass"} or not _runs_check(rest)):
        return _SplitStep(step, None)
    fetched = [
        f"({chr(10)}{chr(10).join(lines)}{chr(10)})"
        for lines in [find_install_lines(inner)]
        if lines
    ]
    warm = "\n".join(part for part in (*fetched, make_prefetch_script(f"{rest}\n{inner}")) if part)
    if not install and not warm:
        return _SplitStep(None, step)
    both = "\n".join(part for part in (install, warm) if part)
    first = replace(
        step,
        run=both,
        name=f"{step.name} (preparing)",
        id=f"{step.id or f'__{step.number}'}.preparing",
    )
    return _SplitStep(
        first, replace(step, run=make_offline_script(rest) if warm else rest), bool(warm)
    )


_CHECK_COMMAND = re.compile(
    r"\b(?:pytest|py\.test|unittest|tox|nox|mypy|pyright|ruff|flake8|pylint|black|isort|coverage run|lint|tsc|jest|vitest|mocha"
    r"|eslint|prettier|test)\b|\bcargo (?:test|clippy|fmt)|\bgo (?:test|vet)",
)


def runs_tests(step: PlannedStep) -> bool:
    """Whether a step runs tests or a linter, by itself or through what it calls; building is neither."""
    return step.kind == "run" and (_runs_check(step.run) or _runs_check(step.calls))


def _runs_check(script: str) -> bool:
    return bool(_CHECK_COMMAND.search(script))


def _can_wait_for_setup(step: PlannedStep) -> bool:
    """Whether no later step can depend on this one, so that it may wait until everything is installed."""
    return (
        step.kind == "run"
        and _runs_check(step.run)
        and not step.id
        and not re.search(r"GITHUB_(?:ENV|PATH|OUTPUT)|build|>\s*\S", step.run)
    )


def split_script(step: PlannedStep) -> tuple[str, str]:
    """The lines of a step's script that install, and the lines to run after them.

    Only a script of plain lines is split; one with compound commands, or of another shell, counts
    as installing as a whole if it installs anything.
    """
    script = step.run
    if not installs_anything(script):
        return "", script
    if "python" in step.shell.split()[:1]:
        return script, "pass"
    lines = join_continued_lines(script)
    if COMPOUND_START.search(script):
        return _split_compound(lines, script)
    last = max(at for at, line in enumerate(lines) if installs_anything(line))
    first, after = lines[: last + 1], lines[last + 1 :]
    install_part, test_part = _split_line(first[-1])
    first[-1] = install_part
    if test_part:
        after = [test_part, *after]
    match = [line for line in first if KEEPS_STATE.match(line)]
    return "\n".join(first), "\n".join([*match, *after]) or ":"


def _split_compound(lines: list[str], script: str) -> tuple[str, str]:
    """A script with compound commands: split only where all that installs stands before the first of them."""
    first_compound = next(at for at, line in enumerate(lines) if COMPOUND_START.search(line))
    found = [at for at, line in enumerate(lines) if installs_anything(line)]
    if found and max(found) < first_compound:
        cut = max(found) + 1
        match = [line for line in lines[:cut] if KEEPS_STATE.match(line)]
        return "\n".join(lines[:cut]), "\n".join([*match, *lines[cut:]])
    return script, ":"


def _split_line(line: str) -> tuple[str, str]:
    """`pip install x && pytest` in two, at the last command that installs."""
    parts = re.split(r"(?:(?<!\s)\s+)?&&\s*", line) if not re.search(r"[\"'`]", line) else [line]
    last = max(
        (at for at, part in enumerate(parts) if installs_anything(part)), default=len(parts) - 1
    )
    return " && ".join(parts[: last + 1]), " && ".join(parts[last + 1 :])


# Commands for the network phase that fetch what tools would install while testing (tox, nox, uv, pre-commit).

_TOX_CALL = re.compile(
    r"^((?:\w+=\S* )*(?:python\S* (?:-[XIWusEB]\S* )*-I?m )?tox)\b(.*)$", re.DOTALL
)
_NOX_CALL = re.compile(
    r"^((?:\w+=\S* )*(?:(?:python\S* -I?m |pipx run (?:--\S+ )*))?nox)\b(.*)$", re.DOTALL
)
_PRE_COMMIT = re.compile(r"^((?:\w+=\S* )*python\S* -I?m )pre_commit run\b")


def make_prefetch_script(script: str) -> str:
    """Commands for the network phase that fetch what the script's tools would fetch while testing."""
    calls = (" ".join(word.source for word in command.words) for command in find_commands(script))
    found = [command for call in calls if (command := _warm_up_command(call.lstrip("@-")))]
    return "\n".join(dict.fromkeys(found))


def _warm_up_command(command: str) -> str:
    """One command's warm-up; empty where it needs none."""
    if hooks := _PRE_COMMIT.match(command):
        return f"{hooks[1]}pre_commit install-hooks"
    if tox := _TOX_CALL.match(command):
        return f"{tox[1]}{_without_subcommand(tox[2].partition(' -- ')[0])} --notest"
    if nox := _NOX_CALL.match(command):
        return f"{nox[1]}{nox[2].partition(' -- ')[0]} --install-only"
    words = _split_words(command)
    assigned = []
    while words and re.fullmatch(r"\w+=.*", words[0]):
        assigned.append(words[0])
        words = words[1:]
    warmed = _warm_up_words(words)
    return " ".join([*assigned, warmed]) if warmed else ""


def _warm_up_words(words: list[str]) -> str:  # noqa: PLR0911 - one line a tool
    match words[:2]:
        case ["uv", "run"]:
            return _warm_up_uv_run(words)
        case ["uvx", *_]:
            return _warm_up_uvx(["uvx"], words[1:])
        case ["uv", "tool"] if words[2:3] == ["run"]:
            return _warm_up_uvx(["uvx"], words[3:])
        case ["pipx", "run"]:
            return shlex.join(["pipx", "run", *_split_pipx_flags(words[2:]), "--rg-prepare"])
        case ["hatch", "run"] if len(words) > 2:
            return _warm_up_hatch(words[2:])
        case ["npx", _]:
            return _warm_up_npx(words[1:])
        case _:
            return load_tools().fetching.get(" ".join(words[:2]), "")


def _without_subcommand(arguments: str) -> str:
    return re.sub(r"^\s+(?:run|r|p|run-parallel)(?=\s|$)", "", arguments).rstrip()


def _split_uv_flags(words: list[str]) -> tuple[list[str], list[str]]:
    """Options of uv itself, and the command behind them."""
    at, flags = 0, []
    while (
        at < len(words) and words[at].startswith("-") and words[at] not in {"--", "-m", "--module"}
    ):
        takes = words[at] in load_tools().option_values["uv"]
        flags += words[at : at + 2] if takes else words[at : at + 1]
        at += 2 if takes else 1
    rest = words[at:]
    return flags, rest[1:] if rest[:1] == ["--"] else rest


def _warm_up_uv_run(words: list[str]) -> str:
    """`uv run OPTIONS COMMAND` with a command that only prepares."""
    flags, rest = _split_uv_flags(words[2:])
    if rest[:1] in (["-m"], ["--module"]):
        rest = ["python", *rest]
    inner = _warm_up_command(shlex.join(rest)) if rest else ""
    if inner:
        return f"{shlex.join(['uv', 'run', *flags])} {inner}"
    if rest[:1] and is_module(rest[0]):
        return f"{shlex.join(['uv', 'sync', '--script', rest[0]])} || true"
    return shlex.join(["uv", "run", *flags, "python", "-c", "pass"])


def _warm_up_uvx(call: list[str], words: list[str]) -> str:
    """`uvx OPTIONS TOOL ARGUMENTS` with the tool's own warm-up, or with Python instead of the tool."""
    flags, rest = _split_uv_flags(words)
    if not rest:
        return ""
    tool, _, version = rest[0].partition("@")
    inner = (
        _warm_up_command(shlex.join([tool, *rest[1:]]))
        if tool in load_tools().programs["environment_makers"]
        else ""
    )
    if inner:
        return f"{shlex.join([*call, *flags])} {shlex.quote(rest[0])}{inner.removeprefix(tool)}"
    if "--from" in flags or any(flag.startswith("--from=") for flag in flags):
        return shlex.join([*call, *flags, "python", "-c", "pass"])
    wanted = f"{tool}=={version}" if version and version != "latest" else tool
    return shlex.join([*call, *flags, "--from", wanted, "python", "-c", "pass"])


def _split_pipx_flags(words: list[str]) -> list[str]:
    at, flags = 0, []
    while at < len(words) and words[at].startswith("-"):
        takes = words[at] in load_tools().option_values["pipx"]
        flags += words[at : at + 2] if takes else words[at : at + 1]
        at += 2 if takes else 1
    return [*flags, *words[at : at + 1]]


def _warm_up_hatch(words: list[str]) -> str:
    """`hatch run +py=3.12 test:cov`: the environments that it selects; with Python in place of what it would run."""
    called = next((at for at, word in enumerate(words) if not word.startswith(("+", "-"))), None)
    if called is None:
        return ""
    environment, colon, _ = words[called].partition(":")
    selected = [word for word in words[:called] if re.fullmatch(r"[+-][\w-]+=\S+", word)]
    if selected:
        python = f"{environment if colon else 'default'}:python"
        return shlex.join(["hatch", "run", *selected, python, "-c", "pass"])
    return f"hatch env create {shlex.quote(environment)}" if colon else "hatch env create"


def _warm_up_npx(words: list[str]) -> str:
    """Fetches what npx would fetch; nothing where the package is there already."""
    flags = [word for word in words if word.startswith(("-y", "--yes", "--package"))]
    name = next((word for word in words if not word.startswith("-")), "")
    if not name or "/" in name.lstrip("@").partition("/")[2]:
        return ""
    return f"npm exec --yes {shlex.join(flags)} --call true --package {shlex.quote(name)} || true".replace(
        "  ", " "
    )


_NOX_RUNS = re.compile(
    r"(?m)(^|[;&|]\s*|\b(?:uv run|uvx|uv tool run) (?:\S{1,200} ){0,50}?|-m )nox(?=\s|$)(?! -[rR])"
)


def make_offline_script(script: str) -> str:
    """The script for the phase without a network: nox reuses the prepared environments."""
    return _NOX_RUNS.sub(r"\1nox ${RG_NOX:--R}", script)


def _split_words(command: str) -> list[str]:
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return command.split()
