"""Makes the trial that runs one planned step of a job as GitHub ran it: what is prepared, what is run, with what."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from packaging.utils import canonicalize_name

from regreen.actions import driver
from regreen.actions.job_plan import WORKSPACE, Files, JobPlan, PlannedStep, ServiceContainer
from regreen.actions.phases import JobPhases, runs_tests, split_phases
from regreen.actions.steps import is_test_step
from regreen.domain.errors import UserError
from regreen.domain.models import BoxLimits, Trust
from regreen.logs.ci_log import CiLog
from regreen.packages.setup_guard import is_installer_variable
from regreen.runs.trial import Trial, make_constraint_variables, make_constraints_file

JOB_LIMITS = BoxLimits(
    memory=4 * 1024**3, disk=3 * 1024**3, tmp=1024**3, pids=1024, output=512 * 1024
)
"""A job brings its environments along (node_modules, .tox) in the tree, which is held in memory; more of what
it prints is kept, for that is held against CI's log."""


def find_failed_step(
    job: JobPlan, name: str | None = None, command: str = ""
) -> PlannedStep | None:
    """The planned step that a log or the API means: by name, else by its command."""
    runnable = [step for step in job.steps if step.kind != "skip" and step.run.strip()]
    for wanted in (name, command and f"Run {command.splitlines()[0]}"):
        if not wanted:
            continue
        bare = wanted.removeprefix("Run ").strip()
        for step in runnable:
            first = next(iter(step.run.strip().splitlines()), "").strip()
            if step.name == wanted or bare in {step.name, first, step.uses}:
                return step
    return None


def find_default_step(job: JobPlan) -> PlannedStep | None:
    """The default step: the last one that runs a test or a check."""
    runs = [step for step in job.steps if step.kind == "run"] or [
        step for step in job.steps if step.run and step.kind != "skip"
    ]
    for asked in (runs_tests, is_test_step):
        if (found := next((step for step in reversed(runs) if asked(step)), None)) is not None:
            return found
    return runs[-1] if runs else None


def apply_conclusions(job: JobPlan, steps: Sequence[tuple[str, str | None]]) -> JobPlan:
    """The plan with what GitHub recorded: a step that was skipped there is skipped, one that ran there runs.

    Args:
        job: the plan of the job's matrix cell.
        steps: the names of the job's steps on GitHub with their conclusions, in order.
    """
    left = list(steps)
    planned: list[PlannedStep] = []
    for step in job.steps:
        at = next((at for at, (name, _) in enumerate(left) if name == step.name), None)
        if at is None:
            planned.append(step)
            continue
        conclusion = left[at][1]
        del left[: at + 1]
        planned.append(_apply_conclusion(step, conclusion))
    return replace(job, steps=tuple(planned))


def _apply_conclusion(step: PlannedStep, conclusion: str | None) -> PlannedStep:
    if conclusion == "skipped" and step.kind != "skip":
        return replace(step, kind="skip", why="it was skipped in the run on GitHub")
    if conclusion in {"success", "failure"} and step.condition not in {"success()", "always()"}:
        return replace(step, condition="always()" if "failure()" in step.condition else "success()")
    return step


def make_step_trial(
    job: JobPlan,
    step: PlannedStep | int | None = None,
    *,
    timeout: float | None = None,
    trust: Trust = "local",
    scope: str = "local",
    pythons: Sequence[str] = (),
    constraints: Sequence[str] = (),
    variables: Sequence[tuple[str, str]] = (),
) -> Trial:
    """The trial that runs one step of a job as GitHub did.

    Args:
        job: the plan of one matrix cell.
        step: the step that failed (or its number in the plan); the last test-like one where None.
        timeout: seconds for the command; the job's own limit where None.
        trust: whose code this is, for the environment's cache.
        scope: the repository, for the environment's cache.
        pythons: the interpreters that the sandbox has ("3.11"); the newest stands in for a newer one, and
            the title says so; any other that is not here is refused by name.
        constraints: `name==version` of the day, from the log; pip and uv are held to them.
        variables: what the project's own version was that day, as its build tool reads it.

    Raises:
        Unsupported: the job needs what cannot be had here; the text names it.
    """
    chosen = _choose_step(job, step)
    standing = [
        feature
        for feature in job.unsupported
        if feature.step is None or feature.step <= chosen.number
    ]
    if standing:
        message = "; ".join(
            f"unsupported: {feature.what}, because {feature.why}" for feature in standing
        )
        raise UnsupportedJob(message)
    python = _choose_python(job, chosen.number, pythons)
    note = _describe_substitute(job, chosen.number, python)
    if note and python is not None:
        job = _pin_uv_python(python, job)
    cut = split_phases(job.steps, chosen.number)
    if cut.early:
        note += f"\n# with a network, for a later step installs: {', '.join(cut.early)}"
    minutes = chosen.timeout_minutes or job.timeout_minutes
    seconds = timeout if timeout is not None else min((minutes or 30.0) * 60, 3600.0)
    held = make_constraints_file(constraints)
    beside = tuple(job.services)
    plain = _plain_command(cut) if not beside else None
    command = plain if plain is not None else _command_script(cut, chosen.number, beside)
    return Trial(
        command=("bash", "-c", command),
        setup=_setup_script(cut, beside, bool(held)),
        asked=_requested_script(cut),
        env=(
            *_runner_env(cut.command[-1] if plain is not None else None),
            *make_constraint_variables(held),
            *variables,
        ),
        overlay=held,
        title=None if plain is not None and not note else _step_title(chosen) + note,
        timeout=seconds,
        python=python,
        image=job.image if "/" in job.image or ":" in job.image else None,
        trust=trust,
        scope=scope,
        limits=JOB_LIMITS,
        host_programs=bool(beside),
    )


def make_failed_step_trial(
    job: JobPlan,
    step: PlannedStep | int | None,
    log: CiLog,
    files: Files,
    *,
    trust: Trust = "local",
    scope: str = "local",
    pythons: Sequence[str] = (),
) -> Trial:
    """The trial of a step that failed in CI, at the versions of that day.

    Args:
        job: the plan of one matrix cell.
        step: the step that failed (or its number in the plan); the one that the log shows where None.
        log: the failed job's log, which says what was installed.
        files: gives a file of the commit.
        trust: whose code this is, for the environment's cache.
        scope: the repository, for the environment's cache.
        pythons: the interpreters that the sandbox has.

    Raises:
        UserError: the job has no such step, or needs what cannot be had here; the text names it.
    """
    return make_step_trial(
        job,
        find_failed_step(job, log.step, command=log.command) if step is None else step,
        trust=trust,
        scope=scope,
        pythons=pythons,
        constraints=select_constraints(log.installed, files),
        variables=make_version_variables(log.built, files),
    )


def make_plain_step(job: JobPlan, step: PlannedStep) -> tuple[str, str] | None:
    """Setup and command of a step as the plain shell lines they are; None where either needs the runner around it."""
    cut = split_phases(job.steps, step.number)
    setup, command = _plain_setup(cut.setup), _plain_command(cut)
    if setup is None or command is None or cut.warmed or cut.early:
        return None
    return setup, command


class UnsupportedJob(UserError):
    """A job that cannot be run here; the text names what stands in the way."""


def _choose_step(job: JobPlan, step: PlannedStep | int | None) -> PlannedStep:
    if isinstance(step, PlannedStep):
        return step
    found = (
        find_default_step(job)
        if step is None
        else next((one for one in job.steps if one.number == step), None)
    )
    if found is None or not found.run.strip():
        message = f"job {job.id!r} has no such step to run; it has {', '.join(str(one.number) for one in job.steps if one.run)}"
        raise UserError(message)
    return found


def select_constraints(installed: Sequence[str], files: Files) -> tuple[str, ...]:
    """What of the log's versions today's installation can be held to: all but the project itself.

    Args:
        installed: `name==version`, from the log.
        files: gives a file of the tree.
    """
    names = _project_names(files)
    return tuple(
        requirement for requirement in installed if requirement.partition("==")[0] not in names
    )


def make_version_variables(built: Sequence[str], files: Files) -> tuple[tuple[str, str], ...]:
    """The variable by which setuptools-scm takes the version that the project had that day: a box has no history.

    Without what names the commit, so that the next one finds the same environment again.

    Args:
        built: `name==version` of what was built from a tree, from the log.
        files: gives a file of the tree.
    """
    names = _project_names(files)
    found = [requirement.partition("==") for requirement in built]
    return tuple(
        (
            f"SETUPTOOLS_SCM_PRETEND_VERSION_FOR_{name.replace('-', '_').upper()}",
            re.sub(r"\.dev\d+", ".dev0", version.partition("+")[0]),
        )
        for name, _, version in found
        if name in names
    )


def _project_names(files: Files) -> set[str]:
    names: set[str] = set()
    for path in ("pyproject.toml", "setup.cfg", "setup.py"):
        text = (files(path) or b"").decode("utf-8", "replace")
        names |= {canonicalize_name(name) for name in _PROJECT_NAME.findall(text)}
    return names


_PROJECT_NAME = re.compile(r"^[ \t]*name[ \t]*=[ \t]*[\"']?([A-Za-z0-9][\w.-]*)", re.MULTILINE)


def _choose_python(job: JobPlan, until: int, available: Sequence[str]) -> str | None:
    reached = [step for step in job.steps if step.number <= until]
    asked = [step.python for step in reached if step.python] or _uv_pythons(reached)
    if not asked:
        return None
    wanted = asked[-1]
    newest = max(available, key=_parse_version, default=None)
    if wanted == "3" or (newest is not None and _parse_version(wanted) > _parse_version(newest)):
        return newest
    if available and wanted not in available:
        message = f"unsupported: Python {wanted}, because this machine has {', '.join(available)}"
        raise UnsupportedJob(message)
    return wanted


def _describe_substitute(job: JobPlan, until: int, python: str | None) -> str:
    """A note if the newest available Python is used in place of a newer one."""
    reached = [step for step in job.steps if step.number <= until]
    asked = [step.python for step in reached if step.python] or _uv_pythons(reached)
    if python is None or not asked or asked[-1] in {python, "3"}:
        return ""
    return f"\n# on Python {python}: {asked[-1]} is not on this machine"


def _pin_uv_python(python: str, job: JobPlan) -> JobPlan:
    """The same job, with uv set to the substitute interpreter, whatever the action or the tree pins."""
    pinned = {"UV_PYTHON": python}
    return replace(job, steps=tuple(replace(step, env=step.env | pinned) for step in job.steps))


_UV_PYTHON = re.compile(
    r"\buv (?:run|venv|sync|tool run|python (?:install|pin))\b[^\n]{0,200}?(?:--python[ =]|-p |install |pin )[\"']?(3\.\d{1,2})\b"
)


def _uv_pythons(steps: Sequence[PlannedStep]) -> list[str]:
    """The interpreters that uv commands ask for, if no action sets one up."""
    found: list[str] = []
    for step in steps:
        found += _UV_PYTHON.findall(step.run)
        found += re.findall(r"^(3\.\d{1,2})", step.env.get("UV_PYTHON", ""))
    return found


def _parse_version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _setup_script(
    cut: JobPhases, beside: tuple[ServiceContainer, ...] = (), held: bool = False
) -> str | None:
    if not any(step.kind != "skip" and step.run.strip() for step in cut.setup):
        return None
    if not beside and (plain := _plain_setup(cut.setup)) is not None:
        return _retry_unconstrained(plain) if held else plain
    return _run_from_file(driver.make_driver_script(cut.setup, builds=cut.warmed, services=beside))


def _requested_script(cut: JobPhases) -> str:
    """What the workflow itself asks for in the network phase; the rest of what actions and the runner come to is ours."""
    return "\n".join(
        _original_script(step) for step in cut.setup if step.kind != "skip" and step.run
    )


def _original_script(step: PlannedStep) -> str:
    """A step's own words, where and with what installers read: from the workflow, and from what it calls."""
    lines = [f"cd {WORKSPACE}", f"cd {shlex.quote(step.working_directory)}"]
    lines = lines if step.working_directory != "." else lines[:1]
    lines += [
        f"export {name}={shlex.quote(' '.join(value.split()))}"
        for name, value in step.env.items()
        if is_installer_variable(name) or f"${name}" in step.run or f"${{{name}" in step.run
    ]
    calls = step.calls if _RUNS_BY_NAME.search(step.run) else ""
    own = [step.run, calls] if step.kind == "run" else [*step.inputs.values(), step.asks]
    return "\n".join([*lines, *(text for text in own if text)])


# What these run by a name of its own the guard does not find by itself, as it does scripts and make's rules.
_RUNS_BY_NAME = re.compile(r"\b(?:npm|yarn|pnpm|bun|just|task|hatch|pdm|poe|inv|invoke)\b")


def _retry_unconstrained(script: str) -> str:
    """The script once more without the versions of the day, where they fit no longer."""
    return f"(\n{script}\n) || (\nunset PIP_CONSTRAINT UV_CONSTRAINT\n{script}\n)"


def _command_script(cut: JobPhases, target: int, beside: tuple[ServiceContainer, ...]) -> str:
    prepared = any(step.kind != "skip" and step.run.strip() for step in cut.setup)
    fresh = not prepared or (not beside and _plain_setup(cut.setup) is not None)
    return driver.make_driver_script(
        cut.command, target=target, fresh=fresh, offline=cut.warmed, services=beside
    )


def _step_title(step: PlannedStep) -> str:
    """The step's own words: what a person would type to run it."""
    lines = step.run.strip()
    return lines if step.working_directory == "." else f"cd {step.working_directory}\n{lines}"


def _runner_env(step: PlannedStep | None) -> tuple[tuple[str, str], ...]:
    """What the runner sets; and what the step sets, where no driver does it."""
    return tuple((driver.RUNNER_ENV | (step.env if step is not None else {})).items())


def _plain_command(cut: JobPhases) -> str | None:
    """A command of one simple step as its own script, so that people read what ran; None where it takes more."""
    steps = [step for step in cut.command if step.kind != "skip" and step.run.strip()]
    if len(steps) != 1 or (
        cut.setup and _setup_script(cut) is not None and _plain_setup(cut.setup) is None
    ):
        return None
    step = steps[0]
    if _needs_runner(step):
        return None
    lines = step.run.strip("\n")
    options = []
    if "\n" in lines.strip() or ";" in lines or step.timeout_minutes:
        options.append("set -e")
    if "pipefail" in step.shell and "|" in lines:
        options = ["set -e -o pipefail"]
    if step.working_directory != ".":
        options.append(f"cd {shlex.quote(step.working_directory)}")
    return "\n".join([*options, lines])


def _needs_runner(step: PlannedStep) -> bool:
    """Whether a step asks for more than a shell: the runner's files, values of the run, another shell."""
    return (
        bool(_RUNNER_FEATURES.search(step.run))
        or bool(step.calls and _RUNNER_FEATURES.search(step.calls))
        or not step.shell.startswith("bash")
        or step.condition not in {"success()", "true"}
        or any("${{" in value for value in step.env.values())
    )


def _run_from_file(script: str) -> str:
    """The driver as a file, so that its own standard input stays free."""
    mark = "REGREEN_DRIVER_END"
    return f'cat > "$HOME/.ci-driver.sh" <<\'{mark}\'\n{script}{mark}\nbash "$HOME/.ci-driver.sh"'


_RUNNER_FEATURES = re.compile(
    r"GITHUB_|\$\{\{|RUNNER_|\bsudo\b|\bapt\b|apt-get|<<|node|\b(?:docker|uvx?|pipx|tox|nox|git|pre-commit|prek|make|just|hatch|npx)\b"
)


def _plain_setup(steps: Sequence[PlannedStep]) -> str | None:
    """A setup of simple steps as the simple lines they are: then its result is keyed by the manifests it reads.

    None where a step needs the runner's bookkeeping.
    """
    lines = ["set -e"]
    exported: dict[str, str] = {}
    for step in steps:
        if step.kind == "skip" or not step.run.strip():
            continue
        if _needs_runner(step) or step.continues or step.working_directory != ".":
            return None
        changed = {
            name: value
            for name, value in ({"CI": "true"} | step.env).items()
            if exported.get(name) != value
        }
        lines += [f"export {name}={shlex.quote(value)}" for name, value in changed.items()]
        lines += [f"unset {name}" for name in exported if name not in step.env and name != "CI"]
        exported = {"CI": "true"} | step.env
        lines.append(step.run)
    return "\n".join(lines)


# Jobs that need a network: how one is recognised, and its trial with a network if that is allowed.

ALLOWED_BY = "tests.allow_network"

# What names and addresses come to in a box without a network; a refused connection is no sign: that is localhost.
_NETWORK_ERROR = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Could not resolve host|nodename nor servname"
    r"|Network is unreachable|network is unreachable|\bENETUNREACH\b|\bEAI_AGAIN\b|\bgetaddrinfo ENOTFOUND\b|NameResolutionError"
    r"|failed to lookup address information|dial tcp: lookup [^\s:]{1,255}|unable to resolve host address"
    r"|UnknownHostException|Temporary failure resolving"
)


def find_network_error(output: str) -> str:
    """The first line that shows a program looking for a network in vain; "" where there is none."""
    found = _NETWORK_ERROR.search(output)
    if found is None:
        return ""
    start = output.rfind("\n", 0, found.start()) + 1
    end = output.find("\n", found.end())
    return output[max(start, found.start() - 200) : end if end >= 0 else None].strip()[:300]


def is_network_failure(message: str) -> bool:
    """Whether a failure's message shows it."""
    return _NETWORK_ERROR.search(message) is not None


def enable_network(trial: Trial) -> Trial:
    """The same trial with a network while it runs; its title mentions the network."""
    *shell, script = trial.command
    if "RG_OFFLINE" in script:
        script = f"export RG_NETWORK=1\n{script}"
    title = f"{trial.command_line}\n# with a network: it cannot work without one, and {ALLOWED_BY} allows it"
    return replace(
        trial,
        command=(*shell, script),
        title=title,
        limits=replace(trial.limits, network=True),
    )
