"""Who caused a failure: runs the failing tests on head, on the merge base and with older packages, until it is clear."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from regreen import isolation
from regreen.bisect.bisection import BisectJob, run_bisection
from regreen.bisect.result import Bisection
from regreen.causes.posterior import Cause, CausePosterior, Circumstances, Link, Place
from regreen.code.diff import parse_bounded
from regreen.code.file_languages import language_of
from regreen.code.paths import is_document, is_source
from regreen.code.symbols import read_outline
from regreen.domain.errors import AnalysisFailed, Cancelled, SetupFailed, UserError
from regreen.domain.job_control import StopCondition
from regreen.domain.models import Failure
from regreen.domain.ports import Git, Sandbox
from regreen.environment.preparation import describe_failure
from regreen.languages.python.missing_modules import list_modules
from regreen.languages.registry import (
    find_listeners,
    find_test_files,
    find_tools_of_test,
    select_tests_of_trial,
    split_test_name,
)
from regreen.logs import failure_signature
from regreen.logs.ci_log import CiLog
from regreen.logs.failure_signature import FailureSignature
from regreen.runs.capsule import (
    Capsule,
    expect_runs,
    find_outcome,
    make_capsule,
    observe_environment,
)
from regreen.runs.test_runs import CommandRun, run_fresh
from regreen.runs.trial import Trial, constrain_versions, find_missing_tool
from regreen.secrets.markdown_sanitizer import count_noun

# What is known of failing tests before they run again: how each is linked to the change, and how it fails.

_WORD = re.compile(r"\w{3,100}")
_MODULE_NAMED = (
    r"(?i)(?:site-packages|dist-packages|node_modules)[\\/]NAME(?![\w-])|\bimport NAME(?![\w-])|\bfrom NAME(?:\.[\w.]{1,100})? import\b"
    r"|\b(?:from|module|named|package|distribution) ['\"`]NAME(?:[./][\w./-]{1,100})?['\"`]"
)
_PACKAGE_NAMED = rf"{_MODULE_NAMED}|\b(?:package|distribution) NAME(?![\w-])|(?<![\w./\\-])NAME(?:\.[a-z_]|[=<>~]=\d|@\d|[ -]v?\d{{1,9}}\.\d)"
_NO_CODE = re.compile(r"\s*(?:$|#|//)")
_MAX_FILE = 1024 * 1024
_ORDER: tuple[Link, ...] = ("line", "statement", "test", "file", "none")
# Errors of code that does not fit together: it cannot fit in one run and not in the next.
_FIXED_KINDS = frozenset(
    {"ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "NameError"}
)


@dataclass(frozen=True)
class _ChangedCode:
    """A change: its paths, the added lines and the lines of the functions around what changed, and their names."""

    paths: frozenset[str]
    lines: Mapping[str, frozenset[int]]
    spans: Mapping[str, tuple[range, ...]]
    names: frozenset[str]


def read_circumstances(
    git: Git, base: str, head: str, run: CommandRun, names: Sequence[str]
) -> dict[str, Circumstances]:
    """The circumstances of each failing test of a run on head; the name "" is the command as a whole."""
    failures = {
        name: [
            one for one in run.failures if not name or one.test in {name, name.partition("::")[0]}
        ]
        for name in names
    }
    signature = failure_signature.read_signature(run.result) if run.failed else None
    extra = frozenset(signature.paths if signature and "" in names else ())
    try:
        paths, links, new = isolation.run_in_child(
            _link_failures_to_change, git, base, head, failures, extra
        )
    except AnalysisFailed:
        paths, links, new = frozenset(), {}, frozenset()
    limited = run.failed and run.result.ended != "exit"
    if limited and any(is_source(path) for path in paths):
        links = dict.fromkeys(names, "file")
    return {
        name: Circumstances(
            link="file" if name in new else links.get(name, "none"),
            documents_only=bool(paths) and all(is_document(path) for path in paths),
            together=len(names),
            is_new=name in new,
            is_fixed=bool(failures[name])
            and all(one.kind in _FIXED_KINDS for one in failures[name]),
            is_limit=limited,
        )
        for name in names
    }


def _link_failures_to_change(
    git: Git,
    base: str,
    head: str,
    failures: Mapping[str, Sequence[Failure]],
    extra: frozenset[str],
) -> tuple[frozenset[str], dict[str, Link], frozenset[str]]:
    """The paths of the change, each test's link to it, and the tests that the base does not have."""
    change = _read_change(git, base, head)
    links: dict[str, Link] = {}
    for name, its in failures.items():
        found = [_link_failure(git, head, change, one) for one in its]
        path = split_test_name(name)[0]
        if (extra | {path}) & change.paths or (
            path and _names_changed_file(_show(git, head, path), change.paths)
        ):
            found.append("file")
        links[name] = min(found, key=_ORDER.index, default="none")
    new = frozenset(name for name in failures if name and is_new_test(git, base, head, name))
    return change.paths, links, new


def _read_change(git: Git, base: str, head: str) -> _ChangedCode:
    lines: dict[str, frozenset[int]] = {}
    spans: dict[str, tuple[range, ...]] = {}
    names: set[str] = set()
    files = parse_bounded(git.diff(base, head, context=0)).files
    for file in files:
        code = [line for hunk in file.hunks for line in hunk.lines if not _NO_CODE.match(line.text)]
        added = frozenset(line.new for line in code if line.kind == "+" and line.new)
        removed = frozenset(line.old for line in code if line.kind == "-" and line.old)
        lines[file.path] = added
        sides = ((head, file.path, added), (base, file.old_path, removed))
        for rev, path, numbers in sides:
            definitions = read_outline(path, _show(git, rev, path)).definitions if numbers else ()
            around = {
                max(
                    (one for one in definitions if one.start <= number <= one.end),
                    key=lambda one: (one.start, -one.end),
                    default=None,
                )
                for number in numbers
            } - {None}
            for one in around:
                assert one is not None  # noqa: S101 - for mypy
                words = one.name.split(".")
                names.add(
                    next((word for word in reversed(words) if not word.startswith("__")), words[-1])
                )
                if rev == head and one.kind not in {"class", "constant"}:
                    spans[path] = (*spans.get(path, ()), range(one.start, one.end + 1))
    paths = frozenset(path for file in files for path in (file.path, file.old_path) if path)
    return _ChangedCode(paths, lines, spans, frozenset(name for name in names if len(name) > 2))


def _link_failure(git: Git, head: str, change: _ChangedCode, failure: Failure) -> Link:
    """How one failure is linked to the change: by where its traceback goes, else by what its test names."""
    places = {(frame.path.removeprefix("/work/"), frame.line) for frame in failure.frames}
    if failure.path and failure.line:
        places.add((failure.path.removeprefix("/work/"), failure.line))
    if any(line in change.lines.get(path, ()) for path, line in places):
        return "line"
    message_lines, around = [failure.message[:2000]], []
    for path, line in places:
        data = _show(git, head, path)
        source = data.decode("utf-8", "replace").split("\n")
        message_lines += source[line - 1 : line]
        test = read_outline(path, data).definition_at(line)
        around += source[test.start - 1 : test.end] if test else []
    inside = any(line in span for path, line in places for span in change.spans.get(path, ()))
    if inside or change.names & _find_words(message_lines):
        return "statement"
    if change.names & _find_words(around):
        return "test"
    return "file" if change.paths & {path for path, _ in places} else "none"


def _find_words(lines: Iterable[str]) -> set[str]:
    return {word for line in lines for word in _WORD.findall(line)}


def is_new_test(git: Git, base: str, head: str, name: str) -> bool:
    """Whether the base is known not to have a test that the head has: its file is not there, or does not name it.

    A dotted name says neither where its module lies nor where that ends: the head's files tell both.
    """
    short = re.split(r"[\[ ]", split_test_name(name)[1] or name.rpartition(".")[2], maxsplit=1)[0]
    path = _find_test_file(git, head, name)
    if not path:
        return False
    if git.tree_id(base, path) is None:
        return True
    before, now = _show(git, base, path), _show(git, head, path)
    return bool(before) and short.encode() in now and short.encode() not in before


def _find_test_file(git: Git, rev: str, name: str) -> str:
    """The one file of a commit that holds a test of this name; "" where that cannot be told."""
    if path := split_test_name(name)[0]:
        return path if git.tree_id(rev, path) else ""
    paths = [entry.path for entry in git.tree(rev)]
    for wanted in find_test_files(re.split(r"[\[ ]", name, maxsplit=1)[0]):
        found = [path for path in paths if f"/{path}".endswith(f"/{wanted}")]
        if found:  # the runner may have started in any folder
            return wanted if wanted in found else found[0] if len(found) == 1 else ""
    return ""


def _names_changed_file(data: bytes, changed: Iterable[str]) -> bool:
    """Whether a test's file holds the name of a changed source file, as an import does."""
    words = set(re.findall(rb"[\w-]+", data))
    stems = (path.rpartition("/")[2].partition(".")[0] for path in changed if is_source(path))
    return any(stem.encode() in words for stem in stems)


def _show(git: Git, rev: str, path: str) -> bytes:
    return git.show(rev, path, _MAX_FILE) or b""


RedVerdict = Literal["change", "main", "flaky", "world", "infrastructure", "neighbour", "unknown"]
Advice = Literal["fix", "rebase", "rerun", "wait", "look"]

_WHOLE = ""  # the name of the command itself, where no test has one
_MAX_TESTS = 30
_MAX_QUIET_RUNS = 3
# Of ten flakes at a rate of .3 that the base has too, eight have failed there by then.
_MAX_BASE_RUNS_OF_FLAKE = 5
_MAX_SINGLE_PACKAGES = 4
_SEARCH_TESTS = 12
_LEAST_SEARCH_SECONDS = 30.0
_NOT_FOUND = re.compile(r"ERROR: (?:file or directory )?not found: ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RedRun:
    """One run of the failing tests: where, how it ended, and how it failed."""

    where: Place
    run: CommandRun

    @property
    def signature(self) -> FailureSignature | None:
        """How it failed; None where it did not."""
        return failure_signature.read_signature(self.run.result) if self.run.failed else None


@dataclass(frozen=True, slots=True)
class BlamedPackage:
    """A package whose newer version fails where the older passes."""

    name: str
    old: str
    new: str


@dataclass(frozen=True)
class RedCause:
    """Whose failure it is, with the evidence. `rate` is (mean, low, high) of a flaky test's failures."""

    verdict: RedVerdict
    reason: str
    do: Advice
    runs: tuple[RedRun, ...] = ()
    since: str | None = None
    rate: tuple[float, float, float] | None = None
    package: BlamedPackage | None = None
    capsule: Capsule | None = None


@dataclass(frozen=True, slots=True)
class RedCase:
    """What failed: `trial` is the command, `base` the merge base; `log` is of the failing run.

    `green_versions` are the packages of the last green run, `tip` the branch that the change is for as it is now.
    """

    trial: Trial
    head: str
    base: str
    log: CiLog | None = None
    green_versions: tuple[str, ...] = ()
    max_runs: int = 12
    tip: str | None = None


@dataclass
class _Watched:
    """One failing test: its posterior, and how it failed on head and on base."""

    posterior: CausePosterior = field(default_factory=CausePosterior)
    head: list[FailureSignature] = field(default_factory=list)
    other_on_base: str = ""
    skipped_on_base: bool = False

    def is_known(self, failure: FailureSignature) -> bool:
        """Whether a failure is one of those on head; any is, where head itself does not fail in one way."""
        return len(self.head) > 1 or failure_signature.matches_any(failure, self.head)

    def describe_outcomes(self) -> str:
        """How often it failed on head, and how it ended on the base."""
        posterior = self.posterior
        on_base = posterior.count_runs("base")
        failed = posterior.failed["base"]
        seen = f"red on the base in {failed}" if failed else f"green on the base in {on_base}"
        words = f"{seen} of {count_noun(on_base, 'run')}"
        if posterior.known.is_new:
            words = f"{'skipped' if self.skipped_on_base else 'absent'} on the base"
        elif self.other_on_base:
            words = f"red for another reason on the base ({self.other_on_base[:200]})"
        elif not on_base:
            words = "not run on the base"
        on_head = count_noun(posterior.count_runs("head"), "run")
        return f"red on head in {posterior.failed['head']} of {on_head}, {words}"

    def ended_like(self, other: _Watched) -> bool:
        """Whether both failed and passed equally often at each place."""
        mine, its = self.posterior, other.posterior
        return (mine.failed, mine.passed) == (its.failed, its.passed)


class Investigation:
    """Runs one case's failing tests until their causes are known."""

    def __init__(
        self,
        case: RedCase,
        *,
        git: Git,
        sandbox: Sandbox,
        stop: StopCondition,
        say: Callable[[str], None],
    ) -> None:
        self._case, self._git, self._sandbox, self._stop, self._say = case, git, sandbox, stop, say
        self._trial = case.trial
        self._runs: list[RedRun] = []
        self._tests: dict[str, _Watched] = {}
        self._moved: tuple[BlamedPackage, ...] | None = None
        self._sources: dict[tuple[str, str], list[str]] = {}
        self._messages: dict[str, str] = {}

    def find_cause(self) -> RedCause:
        """The verdict; `unknown` with the reason where the runs do not tell.

        Raises:
            Cancelled: the caller stopped the work.
            OutsideError: the sandbox engine failed.
        """
        try:
            return self._find_cause_or_cancel()
        except Cancelled:
            if self._stop.left > 0:
                raise
            return self._make_cause(
                "unknown",
                f"the time was over after {len(self._runs)} runs",
                "look",
            )

    def _find_cause_or_cancel(self) -> RedCause:
        """See `find_cause`; `Cancelled` where the time is over."""
        try:
            first = self._run_and_record("head")
        except SetupFailed as error:
            return self._judge_setup_failure(error)
        if tool := find_missing_tool(self._trial.command, first.result):
            return self._make_cause(
                "unknown", f"{tool} is not installed here: the setup has to install it", "look"
            )
        if not first.is_conclusive:
            return self._make_cause(
                "unknown",
                f"the sandbox could not run it: {first.result.detail or first.result.ended}",
                "look",
            )
        self._choose_watched_tests(first)
        self._run_only_failing_tests_from_now()
        self._count_outcomes("head", first)
        if not any(one.posterior.failed["head"] for one in self._tests.values()):
            return self._rerun_and_judge_unreproduced()
        return self._run_until_clear_and_judge()

    def _run_until_clear_and_judge(self) -> RedCause:
        try:
            self._run_until_clear()
        except SetupFailed as error:
            return self._make_cause(
                "unknown",
                f"the environment cannot be made on the base: {describe_failure(error)}",
                "look",
            )
        return self._judge_observations()

    def _run_and_record(self, place: Place, trial: Trial | None = None) -> CommandRun:
        self._stop.check_cancelled()
        run = self._run_at(
            self._case.base if place == "base" else self._case.head, trial or self._trial
        )
        self._stop.check_cancelled()
        self._runs.append(RedRun(place, run))
        self._say(f"{place.replace('_', ' ')}: {find_outcome(run)} ({run.result.seconds:.1f} s)")
        return run

    def _run_at(self, rev: str, trial: Trial) -> CommandRun:
        seconds = max(1.0, min(trial.timeout, self._stop.left))
        listeners = find_listeners(trial, self._runs[0].run.output if self._runs else "")
        trial = replace(trial, timeout=seconds)

        def run_once() -> CommandRun:
            return run_fresh(
                trial,
                rev,
                git=self._git,
                sandbox=self._sandbox,
                listeners=listeners,
                cancel=self._stop.cancel,
            )

        run = run_once()
        return run_once() if run.result.ended == "infra" else run

    def _choose_watched_tests(self, first: CommandRun) -> None:
        """Choose what is watched: the tests that fail here, else those of the log, else the whole command."""
        ended = first.result.ended == "exit"
        names = sorted(first.failing - {_WHOLE}) if first.failed and ended else []
        if not names and not first.failed and self._case.log is not None:
            names = sorted(
                {failure.test for failure in self._case.log.failures if failure.test}
                & set(first.tests)
            )
        names = names[:_MAX_TESTS] or [_WHOLE]
        self._messages = {
            failure.test: failure.message.partition("\n")[0][:200]
            for failure in first.failures
            if not failure.names_test
        }
        known = read_circumstances(self._git, self._case.base, self._case.head, first, names)
        self._tests = {name: _Watched(CausePosterior(known[name])) for name in names}

    def _run_only_failing_tests_from_now(self) -> None:
        """Run the failing tests alone from now on, where the command is a plain call of a runner that can."""
        names = [name for name in self._tests if name != _WHOLE]
        if len(names) == len(self._tests):
            self._trial = select_tests_of_trial(self._trial, names)

    def _make_trial_for_place(self, place: Place) -> Trial:
        """The trial for a place: with the older packages, or on the base without the tests that it does not have."""
        if place == "head_old_versions":
            return constrain_versions(self._trial, self._case.green_versions)
        new = {name for name, one in self._tests.items() if one.posterior.known.is_new}
        if place == "head" or not new or self._trial is self._case.trial:
            return self._trial
        names = [name for name in self._tests if name not in new]
        tools = find_tools_of_test(names[0], split_test_name(names[0])[0]) if names else None
        command = tools.run_tests(names, self._case.trial.command) if tools else ()
        return replace(self._trial, command=command) if tools else self._trial

    def _count_outcomes(self, place: Place, run: CommandRun) -> None:
        """Count a run for each watched test; on the base a failure counts only where it is one seen on head."""
        for name, one in self._tests.items():
            signature = self._read_test_signature(name, run, place)
            outcome = find_test_outcome(name, run)
            if outcome is None:
                # all that the base has passed, without it: no run there will tell more
                is_skipped = name in run.tests
                if (
                    place == "base"
                    and name
                    and (is_skipped or run.is_green)
                    and not one.posterior.count_runs("base")
                ):
                    one.skipped_on_base = is_skipped
                    one.posterior.known = replace(one.posterior.known, is_new=True)
                continue
            failed = outcome == "fail"
            if failed and signature and place == "head":
                if not failure_signature.matches_any(signature, one.head):
                    one.head.append(signature)
            elif failed and signature and place == "base" and one.head:
                failed = one.is_known(signature)
                if not failed:
                    one.other_on_base = replace(signature, frame="").text
            one.posterior.observe_outcome(place, failed=failed)

    def _read_test_signature(
        self, name: str, run: CommandRun, place: Place
    ) -> FailureSignature | None:
        """How one test failed, and through which lines of the tree; the whole run's where no failure has its name.

        A line is its text, which a change above it does not alter. Two failures with the same exception in the same lines
        are one failure, whatever the values in their messages.
        """
        if not run.failed:
            return None
        whole = failure_signature.read_signature(run.result)
        if name == _WHOLE or run.result.ended != "exit":
            return whole
        for failure in run.failures:
            if failure.test in {name, name.partition("::")[0]}:
                message = failure.message.partition("\n")[0]
                frame = self._read_traceback(failure, place)
                return FailureSignature("exit", 1, (name,), failure.kind, message, frame)
        return replace(whole, tests=(name,), says=())

    def _read_traceback(self, failure: Failure, place: Place) -> str:
        """The lines of the tree that a failure's traceback goes through, innermost first; "" where none is known."""
        places = [(frame.path, frame.line) for frame in failure.frames]
        if not places and failure.path and failure.line:
            places = [(failure.path, failure.line)]
        rev = self._case.base if place == "base" else self._case.head
        lines = []
        for path, line in reversed(places):
            if (rev, path) not in self._sources:
                text = _show(self._git, rev, path).decode("utf-8", "replace")
                self._sources[rev, path] = text.split("\n")
            if text := "".join(self._sources[rev, path][line - 1 : line]).strip():
                lines.append(f"{path}: {text}")
        return " < ".join(lines)

    def _run_until_clear(self) -> None:
        """Run until it is known that the change is to blame, or for each test what is.

        Flaky tests that the change is linked to run on the base too: a failure there shows that it did not make them so.
        """
        narrowed = self._trial is not self._case.trial
        while len(self._runs) < self._case.max_runs and self._stop.left > 1:
            if (
                self._moved is None
                and self._case.green_versions
                and any(one.posterior.failed["base"] for one in self._tests.values())
            ):
                self._record_moved_packages(self._find_moved_packages())  # before main is blamed
            causes = {name: one.posterior.find_cause() for name, one in self._tests.items()}
            unclear = [self._tests[name] for name, cause in causes.items() if cause is None]
            if "change" in causes.values() or not (unclear or self._may_clear_flakes(causes)):
                return
            place = self._choose_place(unclear) if unclear else "base"
            try:
                run = self._run_and_record(place, self._make_trial_for_place(place))
            except SetupFailed as error:
                if place != "head_old_versions":
                    if not unclear:
                        return
                    raise
                self._say(f"the packages of the last green run cannot be installed: {error}")
                self._record_moved_packages(())
                continue
            if not run.is_conclusive:
                continue
            are_heard = any(self._tells_outcome_of_test(name, run, place) for name in self._tests)
            if narrowed and (not are_heard or (place == "head" and run.is_green)):
                # alone they pass, or cannot start: so all run together from now on
                narrowed, self._trial = False, self._case.trial
                for one in self._tests.values():
                    one.posterior.passed["base"] = 0
                    one.posterior.passes_alone = are_heard and place == "head"
                continue
            if place == "base" and _NOT_FOUND.search(run.output) and not run.tests:
                self._trial, narrowed = self._case.trial, False
                continue
            self._count_outcomes(place, run)

    def _may_clear_flakes(self, causes: Mapping[str, Cause | None]) -> bool:
        """Whether another run of the base may show that the change did not make the flaky tests so, where all are flaky."""
        is_open = any(
            one.posterior.may_be_made_flaky and not one.posterior.known.is_new
            for one in self._tests.values()
        )
        return (
            is_open
            and set(causes.values()) == {"flaky"}
            and sum(one.where == "base" for one in self._runs) < _MAX_BASE_RUNS_OF_FLAKE
            and self._stop.left > 2 * self._runs[-1].run.result.seconds
        )

    def _tells_outcome_of_test(self, name: str, run: CommandRun, place: Place) -> bool:
        """Whether a run says how a test ends; on head it does not where it fails in another way, as what cannot start does."""
        outcome, signature, head = (
            find_test_outcome(name, run),
            self._read_test_signature(name, run, place),
            self._tests[name].head,
        )
        if place != "head" or outcome != "fail" or signature is None or not head:
            return outcome is not None
        return failure_signature.matches_any(signature, head)

    def _choose_place(self, unclear: Sequence[_Watched]) -> Place:
        """Where most of the undecided tests would run next."""
        return Counter(one.posterior.choose_next_place() for one in unclear).most_common(1)[0][0]

    def _find_moved_packages(self) -> tuple[BlamedPackage, ...]:
        """The packages that have another version here than in the last green run."""
        now = observe_environment(
            self._trial, self._case.head, git=self._git, sandbox=self._sandbox
        )
        new = dict(_split_requirement(word) for word in now.versions)
        old = dict(_split_requirement(word) for word in self._case.green_versions)
        return tuple(
            BlamedPackage(name, old[name], new[name])
            for name in old
            if new.get(name, old[name]) != old[name]
        )

    def _record_moved_packages(self, moved: tuple[BlamedPackage, ...]) -> None:
        self._moved = moved
        output = self._runs[0].run.output
        named = any(names_package(output, one.name) for one in moved)
        for one in self._tests.values():
            one.posterior.known = replace(one.posterior.known, moved=bool(moved), names_moved=named)

    def _describe_undecided(self, names: Sequence[str]) -> str:
        """The tests that fail too, and what was seen of the first where the runs did not settle whose they are."""
        posterior = self._tests[names[0]].posterior
        seen = ", ".join(
            f"on {place.replace('_', ' ')} red in {posterior.failed[place]} of {count}"
            for place in sorted(posterior.failed, reverse=True)
            if (count := posterior.count_runs(place))
        )
        return f"; not settled ({seen}): {_list_tests(names)}"

    def _judge_observations(self) -> RedCause:
        by_cause: dict[Cause | None, list[str]] = {}
        for name, one in self._tests.items():
            by_cause.setdefault(one.posterior.find_cause(), []).append(name)
        flakes = (
            f"; flaky beside it: {_list_tests(by_cause['flaky'])}"
            if "flaky" in by_cause and len(by_cause) > 1
            else ""
        )
        if names := by_cause.get("change"):
            one = self._tests[names[0]]
            # a test that ended as one that the change broke did, each time, is the same matter: alone it would be less sure
            undecided = by_cause.pop(None, [])
            names = [*names, *(name for name in undecided if self._tests[name].ended_like(one))]
            undecided = [name for name in undecided if name not in names]
            reason = self._describe_tests(names, one.describe_outcomes())
            others = self._describe_undecided(undecided) if undecided else ""
            return self._make_cause("change", reason + flakes + others, "fix")
        if names := by_cause.get("main"):
            return self._judge_red_base(names, flakes)
        if "world" in by_cause:
            return self._judge_moved_package()
        if names := by_cause.get("flaky"):
            return self._judge_flakes(names)
        return self._make_cause(
            "unknown", f"{len(self._runs)} runs did not tell the causes apart", "look"
        )

    def _judge_flakes(self, names: Sequence[str]) -> RedCause:
        """Only what failed on the base, or nothing links to the change, was not made flaky by it for certain."""
        may_be_made = [name for name in names if self._tests[name].posterior.may_be_made_flaky]
        told = may_be_made or names
        one = self._tests[told[0]]
        posterior = one.posterior
        reason = self._describe_tests(told, one.describe_outcomes())
        if others := [name for name in names if name not in told]:
            reason += f"; flaky beside it: {_list_tests(others)}"
        if not may_be_made:
            is_older = posterior.failed["base"]
            reason += f"; {'so the change is not the cause' if is_older else 'nothing links it to the change'}"
        found = self._make_cause("flaky", reason, "look" if may_be_made else "rerun")
        places: tuple[Place, ...] = ("head",) if may_be_made else ()
        return replace(found, rate=posterior.estimate_rate(*places))

    def _judge_red_base(self, names: Sequence[str], flakes: str) -> RedCause:
        is_base = self._case.head == self._case.base
        red = f"red on the base {self._case.base[:12]}{'' if is_base else ' for the same reason'}"
        if self._passes_on_tip_of_base():
            reason = self._describe_tests(
                names, f"{red}, green on the branch that it is for as it is now"
            )
            return self._make_cause("main", reason + flakes, "rebase")
        found = self._find_first_commit(names)
        if any(self._tests[name].posterior.find_cause() != "main" for name in names):
            self._run_until_clear()
            return self._judge_observations()
        since = found.culprit.sha if found and found.culprit else None
        first = f", since {self._describe_commit(since)}" if since else ""
        if found and since:  # the search ran other commits than those of the list of runs
            sure = f"{min(found.probability, 0.99):.0%} sure, not verified by a revert"
            first += f" ({sure}; {count_noun(found.runs, 'more run')}, {found.seconds:.0f} s)"
        do: Advice = "fix" if is_base else "wait"  # nobody else's repair helps the base itself
        if found and found.outcome == "before":
            first = f", and green at no older commit in {count_noun(found.runs, 'more run')}"
            do = "fix" if is_base else "look"  # nobody broke it, so nobody may be at work on it
        reason = self._describe_tests(names, f"{red}{first}")
        return replace(self._make_cause("main", reason + flakes, do), since=since)

    def _describe_tests(self, names: Sequence[str], state: str) -> str:
        """What is true of some tests; how many come first, since a title has no room for the names of many.

        A linter's finding is named by its place and its rule, which do not say what is wrong: its message does.
        """
        if len(names) > 1:
            return f"{len(names)} tests are {state}: {_list_tests(names)}"
        message = self._messages.get(names[0], "")
        return f"{names[0] or 'the command'}{message and f' ({message})'} is {state}"

    def _describe_commit(self, sha: str) -> str:
        commit = self._git.commit(sha)
        return (
            f"{sha[:12]} ({commit.subject[:80]}, by {commit.author[:40]} on {commit.date:%Y-%m-%d})"
        )

    def _passes_on_tip_of_base(self) -> bool:
        """Whether what fails on the base passes on its branch as it is now."""
        tip = self._case.tip
        if tip is None or tip == self._case.base or self._stop.left <= 1:
            return False
        try:
            return self._run_at(tip, self._make_trial_for_place("base")).is_green
        except SetupFailed:
            return False

    def _rerun_and_judge_unreproduced(self) -> RedCause:
        """Nothing failed here so far: run it a few times more."""
        self._trial = self._case.trial
        while len(self._runs) < min(_MAX_QUIET_RUNS, self._case.max_runs):
            run = self._run_and_record("head")
            self._count_outcomes("head", run)
            if run.failed:
                self._watch_tests_failing_in(run)
                return self._run_until_clear_and_judge()
        log = self._case.log
        runs = len(self._runs)
        if log is not None and log.kind == "infra":
            return self._make_cause(
                "infrastructure",
                f"the log shows a failing runner; it passes here in {runs} of {runs} runs",
                "rerun",
            )
        if log is not None and log.kind == "test" and log.failures:
            posterior = CausePosterior.of_head_runs(failed=1, passed=runs)
            reason = self._describe_tests(
                [failure.test for failure in log.failures],
                f"red in CI, green here in {runs} of {runs} runs of the same commit",
            )
            return replace(
                self._make_cause("flaky", reason, "rerun"), rate=posterior.estimate_rate()
            )
        return self._make_cause(
            "unknown",
            f"it does not fail here in {runs} runs; the log of the failing run would say what failed",
            "rerun",
        )

    def _watch_tests_failing_in(self, run: CommandRun) -> None:
        """Both outcomes were seen at one commit: what failed in this run passed in the others."""
        names = (sorted(run.failing - {_WHOLE}) or [_WHOLE])[:_MAX_TESTS]
        known = read_circumstances(self._git, self._case.base, self._case.head, run, names)
        self._tests = {name: _Watched(CausePosterior(known[name])) for name in names}
        for one in self._tests.values():
            one.posterior.passed["head"] = sum(not seen.run.failed for seen in self._runs)
        self._count_outcomes("head", run)

    def _judge_moved_package(self) -> RedCause:
        moved = self._moved or ()
        package = self._find_package(moved)
        what = (
            f"{package.name} {package.old} to {package.new}"
            if package
            else f"one of {', '.join(one.name for one in moved[:5])}"
        )
        reason = (
            f"the same sources pass with the packages of the last green run; what changed is {what}"
        )
        return replace(self._make_cause("world", reason, "look"), package=package)

    def _find_package(self, moved: Sequence[BlamedPackage]) -> BlamedPackage | None:
        """The one package with whose older version alone head passes; those that the failure names come first."""
        if len(moved) == 1:
            return moved[0]
        output = self._runs[0].run.output
        likely = sorted(moved, key=lambda one: not names_package(output, one.name))
        for one in likely[:_MAX_SINGLE_PACKAGES]:
            try:
                trial = constrain_versions(self._trial, [f"{one.name}=={one.old}"])
                if (
                    self._stop.left > 1
                    and self._run_and_record("head_old_versions", trial).is_green
                ):
                    return one
            except SetupFailed:
                continue
        return None

    def _find_first_commit(self, names: Sequence[str]) -> Bisection | None:
        """The short search for the commit on main since which it fails, where it finds one or finds that it never passed.

        Its runs of the base count too.
        """
        if self._stop.left < _LEAST_SEARCH_SECONDS:
            return None
        job = BisectJob(
            self._trial,
            bad=self._case.base,
            max_tests=_SEARCH_TESTS,
            max_minutes=self._stop.left / 60,
            verify=False,
            confidence=0.95,
        )
        try:
            found = run_bisection(
                job,
                git=self._git,
                sandbox=self._sandbox,
                progress=self._say,
                cancel=self._stop.cancel,
            )
        except UserError as error:
            self._say(f"the commit on main was not found: {error}")
            return None
        for seen in found.observations:
            if seen.sha == self._case.base and seen.outcome == "pass" and not seen.reused:
                for name in names:
                    self._tests[name].posterior.observe_outcome("base", failed=False)
        return found if found.outcome in {"found", "before"} else None

    def _judge_setup_failure(self, error: SetupFailed) -> RedCause:
        """The setup failed on head: the change's fault only where it succeeds on the base."""
        try:
            self._run_and_record("base")
        except SetupFailed:
            reason = (
                f"the environment cannot be made, on the base neither: {describe_failure(error)}"
            )
            return self._make_cause("unknown", reason, "look")
        try:
            self._run_and_record("head")
        except SetupFailed as again:
            return self._make_cause(
                "change",
                f"the setup fails on head, twice, and succeeds on the base: {describe_failure(again)}",
                "fix",
            )
        return self._make_cause(
            "infrastructure",
            f"the setup failed once and then succeeded: {describe_failure(error)}",
            "rerun",
        )

    def _make_cause(self, verdict: RedVerdict, reason: str, do: Advice) -> RedCause:
        capsule = None
        narrowed = self._trial is not self._case.trial and len(self._runs) > 1
        shown = [one.run for one in self._runs[narrowed:] if one.where == "head"]
        if shown and verdict not in {"unknown", "infrastructure"}:
            shown.sort(key=lambda run: run.failed)
            try:
                capsule = make_capsule(
                    "why",
                    self._trial,
                    self._case.head,
                    expect_runs(shown),
                    git=self._git,
                    sandbox=self._sandbox,
                )
            except UserError as error:
                self._say(f"no capsule was made: {error}")
        return RedCause(verdict, reason, do, tuple(self._runs), capsule=capsule)


def find_test_outcome(name: str, run: CommandRun) -> str | None:
    """How a test ended in a run: "fail", "pass", or None where it did not run."""
    if not run.is_conclusive:
        return None
    if name == _WHOLE or run.result.ended != "exit":
        return "fail" if run.failed else "pass"
    if name in run.failing:
        return "fail"
    is_heard = any(test.startswith((f"{name}::", f"{name}.")) for test in run.tests)
    # a file or a module has this name where it could not be collected
    is_all = not run.tests or is_heard or language_of(name) is not None
    if name in run.tests or (run.is_green and is_all):
        return "pass" if run.tests.get(name) != "skipped" else None
    # a run that could not begin has one word for a name
    named = {test for test in run.failing if test and not test.isidentifier()}
    heads = {test.partition("::")[0] for test in named}
    if any(name.startswith((f"{test}::", f"{test}.")) for test in run.failing if test):
        return "fail"  # its file could not be collected
    # where files could not be collected, as a conftest, what is not heard may not have run
    ends_early = any(failure.test == failure.path for failure in run.failures)
    is_of_others = named and not run.tests and name.partition("::")[0] not in heads
    return "pass" if is_heard or (is_of_others and not ends_early) else None


def names_package(output: str, name: str) -> bool:
    """Whether an output names a package as one, and not only a word that is spelled like it.

    A package or a module of it is in the path of an installed file, is imported or quoted as one; or the package has
    something of its own, or a version.
    """
    patterns = [(_PACKAGE_NAMED, name), *((_MODULE_NAMED, one) for one in list_modules(name))]
    return any(
        re.search(
            pattern.replace("NAME", "[-_.]".join(map(re.escape, re.split("[-_.]+", one)))),
            output[-_MAX_FILE:],
        )
        for pattern, one in patterns
    )


def _split_requirement(word: str) -> tuple[str, str]:
    name, _, version = word.partition("==")
    return name, version


def _list_tests(names: Iterable[str]) -> str:
    shown = [name or "the command" for name in names]
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return ", ".join(shown[:3]) + more
