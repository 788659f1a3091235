"""Tries inferred environments in order and settles for the first in which the setup succeeds and the command starts."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from threading import Event
from typing import Any

from regreen import isolation
from regreen.domain.environments import Environment, Inferred, open_files
from regreen.domain.errors import (
    AnalysisFailed,
    Cancelled,
    NoSandbox,
    OutOfBudget,
    SetupFailed,
    UserError,
)
from regreen.domain.job_control import StopCondition
from regreen.domain.languages import DependencyTools, Language
from regreen.domain.ports import Git, Sandbox
from regreen.domain.repo_config import CONFIG_PATH, TestsConfig
from regreen.domain.text_limits import strip_terminal_codes
from regreen.environment.inference import infer_environments
from regreen.languages.registry import (
    DEPENDENCIES,
    find_collection,
    find_plain_test_call,
    go_past_errors,
    widen_trial,
)
from regreen.languages.toolchains import find_debian_packages
from regreen.logs.failure_signature import NO_CAUSE, find_telling_line
from regreen.runs.test_runs import CommandRun, run_fresh
from regreen.runs.trial import (
    Trial,
    describe_missing_tool,
    find_missing_tool,
    prepare_environment,
    read_changed_inputs,
)
from regreen.secrets.markdown_sanitizer import code_block, escape_line, to_plain_line
from regreen.shell.install_lines import split_leading_installs

# Of the time that is left: a setup that hangs leaves time for the next one, the last one and one that has worked for tests.
_SETUP_SHARE = 0.5
_LAST_SETUP_SHARE = 0.8
_PROBE_SECONDS = 120.0
_OWN_TEST_SHARE = 0.25
_MAX_COMPLETIONS = 6
_INSTALLS = "the command, where it installs"
_GIVEN = frozenset({CONFIG_PATH, "--setup", _INSTALLS})
_NO_TESTS_EXIT_CODE = 5  # pytest's, and unittest's since Python 3.12


@dataclass(frozen=True, slots=True)
class PreparedTrial:
    """A trial with its setup and the environment that it comes from; None where no setup worked.

    `notes` say what was passed over or added, and why. `starts`: the command is known to start. `failure`: why it
    cannot, why no setup worked, or why not all tests can be collected; "" for none of these.
    """

    trial: Trial
    environment: Environment | None
    notes: tuple[str, ...] = ()
    starts: bool = True
    failure: str = ""


@dataclass(frozen=True, slots=True)
class _Lacks:
    """What the tests need beyond the setup: requirements, and variables with their values."""

    requirements: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


@dataclass
class _Notes:
    """What was passed over or added, in order, and the first reason why the command cannot start."""

    lines: list[str] = field(default_factory=list)
    failure: str = ""


def fill_trial(trial: Trial, environment: Environment) -> Trial:
    """The trial with what was inferred for all that it does not say itself."""
    test = ("bash", "-c", environment.test.value) if environment.test else ()
    setup = environment.setup.value if environment.setup else None
    image = environment.image.value if environment.image else None
    return replace(
        trial,
        command=trial.command or test,
        setup=trial.setup or setup,
        python=trial.python or environment.python,
        image=trial.image or image,
    )


@dataclass(frozen=True)
class EnvironmentTrier:
    """Prepares environments for a command at one commit; `stop` says until when, `say` receives a line for each step."""

    trial: Trial
    rev: str
    git: Git
    sandbox: Sandbox
    stop: StopCondition
    say: Callable[[str], None]

    def prepare_first(self, environments: Sequence[Environment]) -> PreparedTrial:
        """The first environment whose setup succeeds and in which the command starts.

        A setup is killed after half of the time that is left; the last one after four fifths. What the tests import and no
        manifest declares is added, where it is a package that many projects use.

        Raises:
            Cancelled: the caller stopped the work.
            OutsideError: the sandbox engine failed.
        """
        notes = _Notes()
        second_best: PreparedTrial | None = None
        for number, environment in enumerate(environments, 1):
            if environment.is_fallback and second_best is not None:
                break
            place = environment.setup.source if environment.setup else "nothing"
            self.say(f"setting up as inferred from {place}")
            tried = self._complete(environment, notes, is_last=number == len(environments))
            if tried is None:
                continue
            if tried.starts:
                earlier = (notes.failure,) if tried.failure and notes.failure else ()
                return self._explain(tried, notes, "; ".join((tried.failure, *earlier)))
            second_best = second_best or tried
        best = second_best or PreparedTrial(self.trial, None, starts=False)
        return self._explain(best, notes, notes.failure)

    def _explain(self, prepared: PreparedTrial, notes: _Notes, failure: str) -> PreparedTrial:
        """The trial with the notes, and with what the clone lacks: a likely reason for a failure."""
        lacking = self.git.list_missing_content(self.rev) if failure else ()
        for text in lacking:
            self._note(notes, text)
        reasons = "; ".join((failure, *lacking))
        return replace(prepared, notes=tuple(notes.lines), failure=reasons)

    def _complete(
        self, environment: Environment, notes: _Notes, *, is_last: bool
    ) -> PreparedTrial | None:
        """Prepare one environment, and add what its tests lack; None where it cannot be set up here.

        Where an addition cannot be set up, what was set up before it remains. Nothing is added a second time.
        """
        prepared: PreparedTrial | None = None
        first = environment.setup or environment.image
        place = first.source if first else "nothing"
        given: list[str] = []
        left = _MAX_COMPLETIONS
        asked = self.trial
        instead = ""
        while True:
            trial = fill_trial(asked, environment)
            try:
                self._prepare(trial, notes, _LAST_SETUP_SHARE if is_last else _SETUP_SHARE)
                is_last = True  # it can be set up: the same once more, with what is missing
                language, run = self._probe(trial)
            except (Cancelled, NoSandbox, OutOfBudget):
                raise
            except UserError as error:
                self._note_failure(
                    notes, f"the setup inferred from {place} failed: {describe_failure(error)}"
                )
                return prepared
            reason = describe_start(trial, run) if run else None
            needs = (
                language.dependencies if language and run and left and not run.is_green else None
            )
            lacks = self._find_what_tests_lack(needs, run) if needs and run else _Lacks()
            added = tuple(one for one in lacks.requirements if one not in given)
            given += added
            unset = self._name_unset_variables(lacks, asked, notes)
            asked = replace(asked, env=(*asked.env, *unset))
            left -= 1
            if run is not None and not instead:
                stuck = None if added or unset else reason
                instead = self._try_own_test(environment, trial, run, stuck)
                if instead:
                    asked = replace(asked, command=())  # what the repository says takes its place
                    continue
            prepared = PreparedTrial(trial, environment, starts=reason is None, failure=instead)
            if needs and unset and not added:
                continue
            if reason is None and not added:
                if instead:
                    self._note(notes, instead)
                return self._go_past_errors(prepared, run, place, notes)
            if not needs or not added or environment.setup is None:
                self._note_failure(
                    notes,
                    f"the command cannot start as inferred from {place}: {reason}{f'; {instead}' if instead else ''}",
                )
                return replace(prepared, starts=False)
            self._note(
                notes, f"added to the setup, for no manifest declares it: {', '.join(added)}"
            )
            setup = Inferred(
                f"{environment.setup.value}\n{needs.install(added, environment.setup.value)}", place
            )
            environment = replace(environment, setup=setup)

    def _try_own_test(
        self, environment: Environment, trial: Trial, run: CommandRun, stuck: str | None
    ) -> str:
        """Which test command of the repository runs in the place of one without tests, and why; "" where none does.

        Where nothing is left to add for a command that is `stuck`, the repository's own is run within a share of the time
        that is left: it has to start, and not to fail with the same error.
        """
        own = environment.test
        if own is None or own.value == trial.command_line or widen_trial(trial) is not None:
            return ""
        why = "collects no test"
        if run.result.exit_code != _NO_TESTS_EXIT_CODE:
            if stuck is None:
                return ""
            seconds = max(1.0, min(_PROBE_SECONDS, self.stop.left * _OWN_TEST_SHARE))
            other = fill_trial(replace(trial, command=(), timeout=seconds), environment)
            its_run = self._run(other)
            error = find_telling_line(run.output)
            if describe_start(other, its_run) or find_telling_line(its_run.output) == error:
                return ""
            why = f"{why} ({error})"
        return (
            f"{trial.command_line} {why}, so that {own.value} (from {own.source}) runs in its place"
        )

    def _name_unset_variables(
        self, lacks: _Lacks, trial: Trial, notes: _Notes
    ) -> tuple[tuple[str, str], ...]:
        """The variables that the tests lack and the trial does not have, which a note names."""
        unset = tuple(one for one in lacks.variables if one[0] not in dict(trial.env))
        if unset:
            shown = ", ".join("=".join(one) for one in unset)
            self._note(notes, f"set for the tests: {shown}")
        return unset

    def _go_past_errors(
        self, prepared: PreparedTrial, run: CommandRun | None, place: str, notes: _Notes
    ) -> PreparedTrial:
        """A trial that starts; where not all tests can be collected, it runs the others, and says why."""
        if run is None or run.result.passed or run.result.ended != "exit":
            return prepared
        partly = f"not all tests can be collected as inferred from {place}: {find_telling_line(run.output)}"
        further = go_past_errors(prepared.trial, run.output)
        if further is not None:
            partly += f"; the others run by {further.command_line}"
        self._note(notes, partly)
        return replace(prepared, trial=further or prepared.trial, failure=partly)

    def _note(self, notes: _Notes, text: str) -> None:
        if text not in notes.lines:
            notes.lines.append(text)
            self.say(text)

    def _note_failure(self, notes: _Notes, text: str) -> None:
        notes.failure = notes.failure or text
        self._note(notes, text)

    def _prepare(self, trial: Trial, notes: _Notes, share: float) -> None:
        self.stop.check_cancelled()
        limit = min(trial.setup_timeout, self.stop.left * share)
        if limit < 1:
            raise SetupFailed("there was no time left for it", "")
        limited = replace(trial, setup_timeout=limit)
        done = prepare_environment(
            limited, self.rev, git=self.git, sandbox=self.sandbox, cancel=self.stop.cancel
        )
        for tools in DEPENDENCIES:
            if left_out := tools.find_uninstalled(done.setup_output, trial.setup or ""):
                self._note(
                    notes,
                    f"left out of the setup, for it cannot be installed as asked: {', '.join(left_out)[:500]}",
                )

    def _probe(self, trial: Trial) -> tuple[Language | None, CommandRun | None]:
        """Collect the tests without running them; None where nothing can be collected alone."""
        found = find_collection(trial)
        if found is None:
            return None, None
        language, argv = found
        seconds = max(1.0, min(_PROBE_SECONDS, self.stop.left))
        return language, self._run(replace(trial, command=argv, timeout=seconds))

    def _run(self, trial: Trial) -> CommandRun:
        return run_fresh(
            trial, self.rev, git=self.git, sandbox=self.sandbox, cancel=self.stop.cancel
        )

    def _find_what_tests_lack(self, needs: DependencyTools, run: CommandRun) -> _Lacks:
        try:
            return isolation.run_in_child(_read_lacks, needs, run.output, self.git, self.rev)
        except AnalysisFailed:
            return _Lacks()


def _read_lacks(needs: DependencyTools, output: str, git: Git, rev: str) -> _Lacks:
    files = open_files(git, rev)
    return _Lacks(needs.find_undeclared(output, files), needs.find_variables(output, files))


@dataclass(frozen=True, slots=True)
class CompletedTrial:
    """A trial that says how it is set up, and the `environment` of the JSON documents: what it has from where.

    `works`: its setup succeeded and its command starts, or both were given. `minutes_left`: of those that completing it
    might take. `unused`: where a change says something else, which was not used. `altered`: else a file of the change
    which the inferred setup reads. After either, a test that fails may fail for its environment. `failure` as in
    `PreparedTrial`.
    """

    trial: Trial
    document: dict[str, Any] = field(default_factory=dict)
    works: bool = True
    minutes_left: float = 0.0
    unused: str = ""
    altered: str = ""
    failure: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was passed over or added, and why."""
        return tuple(self.document.get("notes", ()))

    @property
    def is_setup_inferred(self) -> bool:
        """Whether neither a person nor the configuration wrote the setup."""
        source: str = self.document.get("sources", {}).get("setup", CONFIG_PATH)
        return source not in _GIVEN

    @property
    def doubt(self) -> str:
        """Why a test of the change may fail for its environment; "" where it may not."""
        return next(iter(self.notes), "") if self.unused or self.altered else ""

    @property
    def reason_unready(self) -> str:
        """Why no test can run here; "" where one can."""
        return "" if self.works or self.trial.setup else next(iter(self.notes), "")

    @property
    def reason_unproven(self) -> str:
        """Why a further test that runs here would prove nothing of the change; "" where it would."""
        return self.doubt or self.reason_unready

    def add_note(self, text: str) -> CompletedTrial:
        """The same with one more note, before the others."""
        return replace(self, document={**self.document, "notes": [text, *self.notes]})


def complete_trial(
    trial: Trial,
    rev: str,
    *,
    tests: TestsConfig,
    git: Git,
    sandbox: Sandbox,
    minutes: float,
    today: date,
    say: Callable[[str], None],
    cancel: Event | None = None,
    change: str | None = None,
    touched: Collection[str] = (),
) -> CompletedTrial:
    """Fill in what neither the trial nor the configuration says: the setup, the interpreter, the test command.

    An inferred setup is tried here, within the minutes; where none works, the trial has no setup and the notes say why.
    The dependency guard judges an inferred setup as it judges a workflow's.

    Args:
        trial: without a command, it is to run the repository's tests.
        rev: the commit whose files say how it is set up.
        tests: what the configuration says.
        git: the repository.
        sandbox: where the setup is tried.
        minutes: how long all this may take.
        today: decides whether the commit is old.
        say: receives a line for each step.
        cancel: stops the work.
        change: a commit on top of `rev` whose own files are compared, and not used.
        touched: the files that a change touches: of several projects in a tree, theirs are set up and tested.

    Raises:
        Cancelled: `cancel` was set.
        OutsideError: the sandbox engine failed.
    """
    stop = StopCondition(time.monotonic() + minutes * 60, cancel)
    source = "--setup" if trial.setup else CONFIG_PATH if tests.setup else ""
    if not trial.command and tests.command:
        trial = replace(trial, command=("bash", "-c", tests.command))
    if not trial.setup and tests.setup:
        trial = replace(trial, setup=tests.setup)
    trial = replace(trial, image=trial.image or tests.image)
    command = trial.command_line if trial.command else ""
    if source and command:
        return CompletedTrial(
            trial, _document_given_commands(trial, source), minutes_left=stop.left / 60
        )
    # a box has a network while it is set up alone
    is_written = not source and trial.title is None  # a title is no script
    installs, rest = split_leading_installs(command) if is_written else ("", command)
    if installs:
        trial, command = replace(trial, command=("bash", "-c", rest)), rest
    pythons = (trial.python,) if trial.python else sandbox.pythons()
    try:
        found = infer_environments(
            git, rev, pythons=pythons, today=today, command=command, touched=touched
        )
    except AnalysisFailed as error:
        say(f"nothing was inferred: {error}")
        trial = replace(trial, setup=trial.setup or installs or None)
        done = CompletedTrial(
            trial, _document_given_commands(trial, source or "nothing"), works=False
        )
        return done.add_note(f"nothing was inferred: {error}")
    unused = ""
    if change is not None:
        committed = git.commit(rev).date.date()
        unused = _find_difference(
            found,
            git,
            change,
            trial,
            pythons=pythons,
            today=today,
            committed=committed,
            touched=touched,
        )
    if installs and not found:
        trial, source = replace(trial, setup=installs), _INSTALLS
    if source or not found:
        if not trial.command and found and found[0].test is not None:
            trial = replace(trial, command=("bash", "-c", found[0].test.value))
        document = _document_given_commands(trial, source or "nothing")
        works = bool(source and trial.command)
        return CompletedTrial(trial, document, works, stop.left / 60, unused)
    trusts = trial.rules.trusts_command
    trial = replace(trial, rules=replace(trial.rules, trusts_command=False))
    ways = [one.install_first(installs) for one in found] if installs else found
    prepared = EnvironmentTrier(trial, rev, git, sandbox, stop, say).prepare_first(ways)
    shown = prepared.environment or found[0]
    for line in shown.describe() if prepared.environment else ():
        say(line)
    document = {**shown.make_document(), "notes": list(prepared.notes)}
    document["test"] = prepared.trial.command_line if command else document["test"]
    is_same = change is not None and not unused
    altered = _find_altered_input(prepared.trial, change, rev, git) if is_same else ""
    left = stop.left / 60
    if prepared.environment:
        trial = prepared.trial
    else:
        # what the command itself installs is its author's, and its failure is the command's
        rules = replace(trial.rules, trusts_command=trusts) if installs else trial.rules
        filled = fill_trial(trial, shown)
        trial = replace(trial, command=filled.command, setup=installs or None, rules=rules)
    return CompletedTrial(trial, document, prepared.starts, left, unused, altered, prepared.failure)


def render_environment(document: Mapping[str, Any] | None) -> str:
    """The `environment` of a document in Markdown: its notes, and what was inferred from where; "" for nothing of both."""
    if document is None:
        return ""
    parts = [f"Environment: {escape_line(note)}" for note in document.get("notes", ())]
    sources: Mapping[str, str] = document["sources"]
    inferred = {name: place for name, place in sources.items() if place not in _GIVEN}
    if inferred:
        places = html.escape(
            to_plain_line(", ".join(dict.fromkeys(inferred.values()))), quote=False
        )
        rows = (
            f"# {name}, from {place}\n{_break_steps(document[name])}"
            for name, place in inferred.items()
        )
        shown = code_block("\n".join(rows), "sh")
        title = f"<summary>Environment inferred from {places}</summary>"
        parts.append(f"<details>{title}\n\n{shown}\n\n</details>")
    return "\n\n".join(parts)


_STEP_END = re.compile(
    r"""(?<!\S)#[^\n]*|'[^']*'|"(?:[^"\\]|\\.)*"|\\.|(\|\||&&|;|\{)[ ]+""", re.DOTALL
)


def _break_steps(script: str) -> str:
    """The same script with one step on each line; one with a document inside stays as it is."""
    if "<<" in script:
        return script
    return _STEP_END.sub(lambda found: f"{found[1]}\n" if found[1] else found[0], script)


def _find_altered_input(trial: Trial, change: str | None, rev: str, git: Git) -> str:
    """A file of a change on top of `rev` that the setup reads; "" for none."""
    if change is None or not trial.setup:
        return ""
    try:
        return next(iter(read_changed_inputs(trial.setup, change, rev, git)), "")
    except AnalysisFailed:
        return "manifests that cannot be read"


def _document_given_commands(trial: Trial, source: str) -> dict[str, Any]:
    return {
        "source": source,
        "language": "",
        "interpreter": trial.python,
        "setup": trial.setup,
        "test": trial.command_line if trial.command else None,
        "image": trial.image,
        "sources": {"setup": source} if trial.setup else {},
    }


def _find_difference(
    found: Sequence[Environment],
    git: Git,
    change: str,
    trial: Trial,
    *,
    pythons: Sequence[str],
    today: date,
    committed: date,
    touched: Collection[str],
) -> str:
    """The place where a change says something else about its environment than `found`; "" where it says the same.

    What `trial` holds is used whatever the files say, and is not compared. `committed` is the day of both commits,
    because the author of a change chooses the date of theirs.
    """
    command = trial.command_line if trial.command else ""
    try:
        own = infer_environments(
            git,
            change,
            pythons=pythons,
            today=today,
            command=command,
            committed=committed,
            touched=touched,
        )
    except AnalysisFailed:
        return "its manifests cannot be read"
    before, after = (_list_first_ways(one[0]) if one else {} for one in (found, own))
    fixed = {
        "setup": trial.setup,
        "test": command,
        "interpreter": trial.python,
        "image": trial.image,
    }
    names = (name for name in fixed if not fixed[name] and before.get(name) != after.get(name))
    places = {**before.get("sources", {}), **after.get("sources", {})}
    return next((places[name] for name in names), "")


def _list_first_ways(environment: Environment) -> dict[str, Any]:
    """The document without what is tried where a line fails: that follows from manifests, which are compared as files."""
    document = environment.make_document()
    lines = str(document["setup"] or "").splitlines()
    return {**document, "setup": "\n".join(line.partition(" || ")[0] for line in lines) or None}


_COUNTED = re.compile(
    r"\b\d+ (?:passed|failed|tests? collected|skipped|tests? ran)|/\d+ tests collected|^\S+::\S+|^\S+\.py: \d+$|<(?:Function|TestCaseFunction|DoctestItem) ",
    re.MULTILINE,
)


def describe_start(trial: Trial, run: CommandRun) -> str | None:
    """Why the command could not start to test; None where it did."""
    result = run.result
    if result.passed or result.ended == "timeout":
        return None
    if result.ended != "exit":
        return f"it was ended: {result.detail or result.ended}"
    if tool := find_missing_tool(trial.command, result):
        return describe_missing_tool(tool, setup=trial.setup)
    if _COUNTED.search(run.output) or (run.failures and find_plain_test_call(trial) is None):
        return None
    telling = find_telling_line(run.output)
    return f"it exits with {result.exit_code} before any test: {telling or 'it printed nothing'}"


def describe_failure(error: UserError) -> str:
    """Why a setup failed: the first line that tells, beside the last one printed; or which program is not here."""
    output = strip_terminal_codes(error.output) if isinstance(error, SetupFailed) else ""
    error_text = strip_terminal_codes(str(error)).rstrip(" :")
    for program in _NO_PROGRAM.findall(f"{output}\n{error_text}"):
        if packages := find_debian_packages(program):
            return (
                f"{program} is not installed in the sandbox: install it on this machine (on Debian: apt-get install "
                f"{packages}), or name an image that has it as tests.image"
            )
    if under_way := _find_under_way(output) if _TOOK_TOO_LONG in error_text else "":
        return f"{error_text.partition(': ')[0]}: still {under_way}"
    telling = find_telling_line(output)
    error_text = error_text.partition(f": {NO_CAUSE}")[0]
    return (
        f"{error_text[:200]} ({telling})"
        if telling and telling not in error_text
        else error_text[:300]
    )


_TOOK_TOO_LONG = "took too long"
_STEPS = {"Downloading": "Downloaded", "Building": "Built"}
_STEP = re.compile(r"(?m)^ *(Downloading|Downloaded|Building|Built) (\S{1,100})")


def _find_under_way(output: str) -> str:
    """What uv was downloading and building when it was killed; "" where it was at something else."""
    last = output.rpartition("Resolved ")[2]
    steps = _STEP.findall(last)
    open_steps = (
        f"{step.lower()} {name}"
        for step, name in steps
        if step in _STEPS and (_STEPS[step], name) not in steps
    )
    return ", ".join(dict.fromkeys(open_steps))[:200]


_NO_PROGRAM = re.compile(r"\b([\w.+-]{1,60}): (?:command )?not found\b")
