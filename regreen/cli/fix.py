"""`regreen fix`: make a failing command pass, with proof."""

from __future__ import annotations

import json
import subprocess
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regreen import isolation
from regreen.cli.env import complete_local_trial
from regreen.cli.model import make_model
from regreen.cli.options import (
    WORKTREE,
    TrialOptions,
    format_option,
    keep_capsule,
    load_config_at,
    quiet_option,
    repo_option,
    require_writable_file,
    resolve_revision,
    sandbox_option,
    time_limit_option,
    trial_options,
)
from regreen.cli.terminal import print_answer, report_progress
from regreen.code.path_settings import find_changed_paths
from regreen.domain.errors import Cancelled, UserError
from regreen.domain.job_control import TimeLimit
from regreen.domain.models import RUNG_ORDER, RungName
from regreen.domain.ports import Git
from regreen.packages.python_version import choose_python_version

if TYPE_CHECKING:
    from regreen.actions.other_jobs import OtherJob
    from regreen.domain.github import GitHubServer
    from regreen.environment.preparation import CompletedTrial
    from regreen.fixers.case import FixResult, InitialFailure
    from regreen.fixers.remembered_runs import RepairSession
    from regreen.logs.ci_log import CiLog
    from regreen.runs.trial import Trial

_SUCCESS_OUTCOMES = {"fixed", "already_green"}
_EXPLAINED_OUTCOMES = {"already_green", "not_reproduced", "gave_up", "out_of_budget"}
_MAX_MINUTES = 20.0
_LAST_MINUTES = 1.0


def _answer_late(options: Mapping[str, Any], reason: str, seconds: float) -> str:
    from regreen.fixers.case import FixResult, InitialFailure
    from regreen.runs.trial import Trial

    known = options["known"] or _KnownSoFar()
    command = Trial(parse_shell_argv(options["argv"])).command_line
    before = known.failure or InitialFailure(command, None)
    late = FixResult("out_of_budget", before=before, reason=reason, seconds=seconds)
    return format_result(_add_environment_to_result(late, known.environment), options["form"])


@dataclass
class _KnownSoFar:
    """What a repair that the limit ends has found out."""

    environment: CompletedTrial | None = None
    failure: InitialFailure | None = None

    def keep_failure(self, failure: InitialFailure) -> None:
        self.failure = failure


@click.command("fix")
@repo_option()
@click.option("--rev", default="HEAD", help="The red commit; WORKTREE: the files as they stand.")
@click.option("--base", metavar="REV", help="Where the change that broke it starts.")
@trial_options(overlay_text="A file to lay over every checkout; never changed.")
@click.option(
    "--max-usd",
    type=click.FloatRange(min=0),
    default=1.0,
    metavar="X",
    help="What model calls may cost, in dollars.",
)
@time_limit_option(
    _answer_late,
    default=None,
    fallback=_MAX_MINUTES,
    help_text="Stop after so long; default: 20, or 10 without a model where the command takes less than two.",
)
@click.option("--model/--no-model", "use_model", default=True, help="Ask the configured model.")
@click.option(
    "--rungs",
    default=",".join(RUNG_ORDER),
    metavar="LIST",
    help="What is tried, the cheapest first.",
)
@click.option(
    "--workflow",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take the command from this workflow, found from here or from the repository's root.",
)
@click.option("--job", "job_id", metavar="ID", help="The job in the workflow.")
@click.option(
    "--step",
    type=click.IntRange(min=1),
    metavar="N",
    help="The failed step; default: the last that runs something.",
)
@click.option(
    "--log",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The failed job's log: the same has to fail here, at the versions of that day.",
)
@click.option(
    "--allow-network",
    is_flag=True,
    help="A command that cannot work without a network may have one.",
)
@click.option(
    "--patch-out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the patch to this file.",
)
@click.option(
    "--apply", "apply_it", is_flag=True, help="Apply the patch to the working tree of --repo."
)
@click.option("--fresh", is_flag=True, help="Start again where the same repair was interrupted.")
@format_option("form", "text", "json", "markdown")
@quiet_option()
@sandbox_option("kind")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
def command(
    *,
    repo: Path,
    rev: str,
    base: str | None,
    options: TrialOptions,
    max_usd: float,
    limit: TimeLimit,
    use_model: bool,
    rungs: str,
    workflow: Path | None,
    job_id: str | None,
    step: int | None,
    log: Path | None,
    allow_network: bool,
    patch_out: Path | None,
    apply_it: bool,
    fresh: bool,
    form: str,
    kind: str,
    argv: tuple[str, ...],
) -> int:
    """Make a failing command pass, with proof: the cheapest honest patch wins."""
    from regreen.adapters.git.repository import GitRepository
    from regreen.adapters.sandbox.selection import choose_sandbox
    from regreen.fixers.ladder import QUICK_MINUTES, FixJob, fix_failure
    from regreen.fixers.remembered_runs import RememberingSandbox

    chosen = _parse_rungs(rungs, use_model=use_model)
    if argv and workflow:
        raise UserError("give one of both: -- COMMAND..., or --workflow FILE --job ID")
    if workflow is None and (job_id or step is not None):
        raise UserError("--job and --step choose from a workflow; name it with --workflow FILE")
    given_tests = tuple(options.overlay)
    require_writable_file(patch_out, "--patch-out")
    git = GitRepository.open(repo)
    if not argv and workflow is None:
        named = git.resolve("HEAD" if rev == WORKTREE else rev)
        if not load_config_at(git, named).tests.command:
            raise UserError(
                "missing command: pass -- COMMAND..., or --workflow FILE --job ID, or commit a .github/regreen.yml with tests.command"
            )
    at = resolve_revision(git, repo, rev)
    trusted = git.resolve(base) if base else at
    failed_log = _read_log(log)
    if failed_log is not None and not failed_log.failures:
        report_progress(
            f"{log} shows no failure that can be read, so what fails here is not compared with it"
        )
    what = (git.git_dir.name, at, base and trusted, workflow, job_id, step, log)
    with _open_resumable_session(options.make_trial(argv), what, fresh=fresh) as session:
        live = choose_sandbox(kind)
        sandbox = RememberingSandbox(live, session)
        known = limit.known = _KnownSoFar()
        other_jobs: tuple[OtherJob, ...] = ()
        if workflow is not None:
            source = _WorkflowStep(_find_workflow(workflow, repo), job_id, step, failed_log)
            planned, other_jobs = _trial_from_workflow(git, at, source, sandbox.pythons())
            trial = options.extend_trial(planned)
        else:
            done = known.environment = complete_local_trial(
                options.make_trial(parse_shell_argv(argv)),
                at,
                git=git,
                sandbox=sandbox,
                minutes=limit.minutes_left,
                cancel=limit.cancel,
                touched=find_changed_paths(git, trusted, at) if base else (),
            )
            trial = done.trial
        python = trial.python or choose_python_version(git, at, sandbox.pythons())
        trial = replace(trial, python=python)
        job = FixJob(
            trial,
            at,
            base,
            rungs=chosen,
            max_usd=max_usd,
            max_minutes=limit.minutes_left,
            quick_minutes=None if limit.is_chosen else QUICK_MINUTES,
            given_tests=given_tests,
            expected=failed_log.failures if failed_log is not None else (),
            allow_network=allow_network,
            tests=options.load_suite_trial(
                git, trusted, python, setup=trial.setup if argv else None
            ),
            memory=session,
            live=live,
            other_jobs=other_jobs,
        )
        result = fix_failure(
            job,
            git=git,
            sandbox=sandbox,
            model=make_model(max_usd) if "model" in chosen else None,
            progress=report_progress,
            keep=partial(keep_capsule, repo=repo),
            on_reproduced=known.keep_failure,
        )
        _forget_session_if_answered(session, result, job.max_minutes)
        result = _add_environment_to_result(result, known.environment)
    limit.begin_answer()
    if patch_out is not None and result.patch:
        patch_out.write_bytes(result.patch.encode("utf-8", "surrogateescape"))
    if apply_it and result.patch and result.outcome == "fixed":
        apply_patch(repo, result.patch)
    if form == "json":
        click.echo(format_result(result, form))
    else:
        print_answer(format_result(result, form), headline=form == "text")
    return 0 if result.outcome in _SUCCESS_OUTCOMES else 1


@contextmanager
def _open_resumable_session(
    trial: Trial, what: Sequence[object], *, fresh: bool
) -> Iterator[RepairSession]:
    """The runs of this repair, with those that an interrupted one of the same command and commit left."""
    from regreen.app.settings_loader import read_settings
    from regreen.bisect.verdict_memory import SqliteVerdictMemory, session_key
    from regreen.domain.private_folders import hold_alone, make_private
    from regreen.fixers.remembered_runs import RepairSession

    home, key = make_private(read_settings().home), session_key(trial, ["fix", *what])
    lock = ExitStack()
    if not lock.enter_context(hold_alone(home / "fix.lock", byte=zlib.crc32(key.encode()))):
        report_progress("the same command is running already, so this one starts again")
        key = f"{key}:{uuid.uuid4().hex}"
    memory = SqliteVerdictMemory(home / "bisect.db")
    session = RepairSession(memory, key, fresh=fresh)
    if session.continues:
        report_progress("continuing the repair that was interrupted; --fresh starts again")
    try:
        yield session
    except KeyboardInterrupt:
        click.echo("the same command goes on from here; with --fresh it starts again", err=True)
        raise
    except UserError as error:
        if not isinstance(error, Cancelled):  # no interruption: the next one starts again
            session.end()
        raise
    finally:
        memory.close()
        lock.close()


def _add_environment_to_result(result: FixResult, done: CompletedTrial | None) -> FixResult:
    """The result with the environment that was inferred, and with the reason why the command cannot start in it."""
    if done is None:
        return result
    if result.outcome in _EXPLAINED_OUTCOMES and done.failure:
        is_why = result.outcome == "gave_up" and not done.works
        reason = done.failure if is_why else f"{result.reason} ({done.failure})"
        result = replace(result, reason=reason)
    return replace(result, environment=done.document)


def _forget_session_if_answered(session: RepairSession, result: FixResult, minutes: float) -> None:
    """Forget the runs where there is an answer, and not only no time or money left."""
    # at its end a rung no longer starts what would not end in time
    enough = max(minutes - _LAST_MINUTES, minutes / 2)
    was_short = result.outcome == "gave_up" and result.seconds > 60 * enough
    if result.outcome == "out_of_budget" or was_short:
        report_progress("the same command goes on from here; with --fresh it starts again")
    else:
        session.end()


def parse_shell_argv(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The argv to run; one word with blanks or operators in it is a line for the shell."""
    if len(argv) == 1 and any(char in argv[0] for char in " \t\n;&|<>$`"):
        return ("bash", "-c", argv[0])
    return argv


def apply_patch(repo: Path, patch: str) -> None:
    """Apply a patch to the working tree.

    Raises:
        UserError: it does not apply there.
    """
    done = subprocess.run(
        [
            "git",
            "-c",
            "core.hooksPath=/dev/null",
            "-C",
            str(repo),
            "apply",
            "--whitespace=nowarn",
            "-",
        ],
        input=patch.encode("utf-8", "surrogateescape"),
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        msg = f"the patch does not apply to the working tree: {done.stderr.decode(errors='replace').strip()}; take it with --patch-out"
        raise UserError(msg)


def format_result(result: FixResult, form: str) -> str:
    """The result as the chosen format shows it."""
    from regreen.fixers.report import format_markdown, format_text

    if form == "json":
        document = {"version": 1, **asdict(result)}
        if document["after"]:
            del document["after"]["kept"]  # for people; the document's keys are fixed
        return json.dumps(document, indent=2)
    return format_markdown(result) if form == "markdown" else format_text(result)


def _parse_rungs(listed: str, *, use_model: bool) -> tuple[RungName, ...]:
    names = [name.strip() for name in listed.split(",") if name.strip()]
    unknown = [name for name in names if name not in RUNG_ORDER]
    if unknown or not names:
        msg = f"--rungs takes some of {','.join(RUNG_ORDER)}, not {', '.join(unknown) or 'nothing'}"
        raise UserError(msg)
    return tuple(name for name in RUNG_ORDER if name in names and (use_model or name != "model"))


def _find_workflow(workflow: Path, repo: Path) -> Path:
    """The workflow file, wherever the command was given.

    Raises:
        UserError: there is none.
    """
    for place in (workflow, repo / workflow):
        if place.is_file():
            return place
    msg = f"there is no workflow {workflow}, neither here nor in {repo}"
    raise UserError(msg)


@dataclass(frozen=True, slots=True)
class _WorkflowStep:
    """A step of a workflow file, as the options name it, and the log of the day it failed."""

    workflow: Path
    job_id: str | None
    step: int | None
    log: CiLog | None


def _trial_from_workflow(
    git: Git, rev: str, source: _WorkflowStep, pythons: tuple[str, ...]
) -> tuple[Trial, tuple[OtherJob, ...]]:
    """The trial that a workflow's step amounts to, with the other jobs; of a matrix, the first cell that can be had here."""
    from regreen.app.settings_loader import read_settings

    text = source.workflow.read_text(encoding="utf-8-sig", errors="replace")
    server = read_settings().github
    try:
        with isolation.name_failed_input("the workflow"):
            return isolation.run_in_child(
                partial(_plan_trial, server=server), text, git, rev, source, pythons
            )
    except UserError as error:
        msg = f"{source.workflow}: {error}"
        raise UserError(msg) from error


def _plan_trial(
    text: str,
    git: Git,
    rev: str,
    source: _WorkflowStep,
    pythons: tuple[str, ...],
    *,
    server: GitHubServer,
) -> tuple[Trial, tuple[OtherJob, ...]]:
    from regreen.actions.other_jobs import plan_other_jobs
    from regreen.actions.step_trial import (
        find_default_step,
        find_failed_step,
        make_failed_step_trial,
        make_step_trial,
    )
    from regreen.actions.workflow import plan_workflow

    files = partial(git.show, rev)
    every = plan_workflow(text, files=files, server=server)
    jobs = [plan for plan in every if source.job_id in {None, plan.id}] or list(
        plan_workflow(text, job=source.job_id, files=files, server=server)
    )
    names = sorted({job.id for job in jobs})
    if len(names) != 1:
        msg = f"it has these jobs: {', '.join(names) or 'none'}; name one with --job"
        raise UserError(msg)
    chosen = next((job for job in jobs if job.supported), jobs[0])
    log = source.log
    step = next((one for one in chosen.steps if one.number == source.step), None)
    if log is None:
        trial = make_step_trial(chosen, source.step, pythons=pythons)
        step = step or find_default_step(chosen)
    else:
        trial = make_failed_step_trial(chosen, source.step, log, files, pythons=pythons)
        step = step or find_failed_step(chosen, log.step, command=log.command)
    return trial, plan_other_jobs(every, chosen, step, trial, pythons)


def _read_log(path: Path | None) -> CiLog | None:
    if path is None:
        return None
    from regreen.logs.ci_log import read_log

    with path.open("rb") as file:
        return read_log(file)
