"""Bisection from beginning to end, with real git and the real sandbox."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from regreen.adapters.git.repository import GitRepository
from regreen.bisect import report
from regreen.bisect.bisection import BisectJob, run_bisection
from regreen.bisect.result import Bisection
from regreen.bisect.run_log import RunLog
from regreen.bisect.verdict_memory import SqliteVerdictMemory, TransientVerdictMemory
from regreen.domain.errors import Cancelled, UserError
from regreen.domain.ports import Sandbox
from regreen.runs.trial import Trial
from tests.contract.sandboxes import usual_sandbox

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(300)]

CHECK = ("sh", "-c", "sh ./check.sh")


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return usual_sandbox()


class History:
    """A repository that is written commit by commit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.email", "ann@example.com")
        self.git("config", "user.name", "Ann")

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, subject: str, **files: str) -> str:
        for name, content in files.items():
            (self.path / name.replace("__", ".")).write_text(content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def grow(self, count: int) -> list[str]:
        return [self.commit(f"change {at}", **{f"note{at}__txt": f"{at}\n"}) for at in range(count)]


@pytest.fixture
def history(tmp_path: Path) -> History:
    (tmp_path / "repo").mkdir()
    return History(tmp_path / "repo")


@pytest.fixture
def find(history: History, sandbox: Sandbox) -> Callable[..., Bisection]:
    def run(**options: object) -> Bisection:
        job = replace(BisectJob(Trial(CHECK, timeout=60.0)), **options)  # type: ignore[arg-type]
        return run_bisection(job, git=GitRepository.open(history.path), sandbox=sandbox)

    return run


def test_the_culprit_is_named_and_proved_by_taking_it_back(
    history: History, find: Callable[..., Bisection]
) -> None:
    good = history.commit("begin", check__sh="test ! -e broken\n")
    history.grow(5)
    culprit = history.commit("break it", broken="yes\n")
    history.grow(4)
    found = find(good=good)
    assert (found.outcome, found.culprit and found.culprit.sha) == ("found", culprit)
    assert found.verified is not None
    assert found.verified.by == ("rerun", "revert")
    assert found.verified.ok
    assert found.range.commits == 10
    assert found.tests == len(found.observations) <= 3.4 + 7
    assert "broke it (verified" in report.render_text(found)
    assert culprit in report.render_markdown(found)
    assert report.render_svg(found).startswith("<svg")


def test_another_failure_in_the_range_is_not_taken_for_the_one_we_look_for(
    history: History, find: Callable[..., Bisection]
) -> None:
    good = history.commit("begin", check__sh="python3 look.py\n", look__py="import thing\nthing.check()\n",
                          thing__py="def check():\n    pass\n")  # fmt: skip
    history.grow(2)
    history.commit("another fault", thing__py="def check():\n    raise KeyError('other')\n")
    history.grow(2)
    history.commit("repair that", thing__py="def check():\n    pass\n")
    history.grow(2)
    culprit = history.commit("break it", thing__py="def check():\n    raise ValueError('wanted')\n")
    history.grow(3)
    found = find(good=good)
    assert (found.outcome, found.culprit and found.culprit.sha) == ("found", culprit)
    assert "ValueError" in (found.signature or "")
    for seen in found.observations:
        if seen.signature and "KeyError" in seen.signature:
            assert seen.outcome == "untestable"


def test_commits_that_cannot_be_tested_leave_an_honest_set(
    history: History, find: Callable[..., Bisection]
) -> None:
    good = history.commit("begin", check__sh="exit 0\n")
    untestable = [
        history.commit(f"does not build {at}", check__sh=f"exit 125 # {at}\n") for at in range(3)
    ]
    bad = history.commit("builds again, and fails", check__sh="exit 1\n")
    history.grow(2)
    found = find(good=good)
    assert found.outcome == "narrowed"
    assert found.culprit is None
    assert {suspect.sha for suspect in found.credible_set} == {*untestable, bad}
    assert set(found.untestable) <= set(untestable)


def test_a_merge_is_opened(history: History, find: Callable[..., Bisection]) -> None:
    good = history.commit("begin", check__sh="test ! -e broken\n")
    history.grow(2)
    history.git("checkout", "-q", "-b", "side", good)
    history.commit("on the side", side__txt="1\n")
    culprit = history.commit("break it", broken="yes\n")
    history.git("checkout", "-q", "main")
    history.git("merge", "-q", "--no-ff", "-m", "merge side", "side")
    merge = history.git("rev-parse", "HEAD")
    history.commit("after", after__txt="1\n")
    found = find(good=good)
    assert (found.culprit and found.culprit.sha, found.via_merge) == (culprit, merge)
    assert found.range.merges == 1
    points = {point.sha: point for point in found.posterior}
    contain = {culprit, merge, history.git("rev-parse", "HEAD")}
    assert {sha for sha, point in points.items() if point.broken > 0.9} == contain
    assert [found.posterior[at].sha for at in points[merge].parents] == history.git("rev-parse", f"{merge}^1", f"{merge}^2").split()  # fmt: skip
    assert [step.sha for step in found.narrowing] == [seen.sha for seen in found.observations]
    published = report.render_document(found)
    assert "narrowing" not in published
    assert all(set(point) == {"sha", "p"} for point in published["posterior"])
    assert found.narrowing[-1].best == culprit
    assert [step.left for step in found.narrowing][-1] < found.narrowing[0].left
    whole = find(good=good, first_parent=True, verify=False)
    assert (whole.culprit and whole.culprit.sha, whole.via_merge) == (merge, None)


def test_without_a_good_commit_history_is_walked_back(
    history: History, find: Callable[..., Bisection]
) -> None:
    history.commit("begin", check__sh="test ! -e broken\n")
    history.grow(9)
    culprit = history.commit("break it", broken="yes\n")
    history.grow(3)
    found = find(verify=False)
    assert (found.outcome, found.culprit and found.culprit.sha) == ("found", culprit)
    assert found.range.good is not None


def test_it_was_broken_before(history: History, find: Callable[..., Bisection]) -> None:
    good = history.commit("begin", check__sh="exit 1\n")
    history.grow(6)
    found = find(good=good)
    assert (found.outcome, found.culprit) == ("before", None)
    assert found.tests <= 6
    assert found.narrowing[-1].probability == round(found.probability, 4), "one number"
    assert "name an older commit as the good one" in report.render_headline(found)
    lacking = replace(found, signature="ModuleNotFoundError: No module named 'dateutil'")
    assert "let --setup install it" in report.render_headline(lacking)


def test_it_never_worked(history: History, find: Callable[..., Bisection]) -> None:
    history.commit("begin", check__sh="exit 1\n")
    history.grow(6)
    found = find()
    assert (found.outcome, found.culprit) == ("before", None)
    assert found.tests <= 8
    assert "fails at the oldest commit, too" in report.render_text(found)


def test_what_does_not_fail_is_not_reproduced(
    history: History, find: Callable[..., Bisection]
) -> None:
    good = history.commit("begin", check__sh="exit 0\n")
    history.grow(3)
    found = find(good=good)
    assert found.outcome == "not_reproduced"
    assert "0 of 8 runs" in found.notes[-1]


def test_the_commit_that_repaired_it_is_found(
    history: History, find: Callable[..., Bisection]
) -> None:
    broken = history.commit("begin", check__sh="exit 1\n")
    history.grow(4)
    repair = history.commit("repair it", check__sh="exit 0\n")
    history.grow(3)
    found = find(good="HEAD", bad=broken, find_fix=True)
    assert (found.outcome, found.culprit and found.culprit.sha) == ("found", repair)
    assert found.verified is not None
    assert found.verified.by == ("rerun", "revert")
    assert found.rates.fail_if_bad[0] > 0.9
    assert [point.broken > 0.5 for point in found.posterior] == [True] * 4 + [False] * 4
    assert "repaired it" in report.render_text(found)


def test_a_test_from_outside_is_laid_over_old_commits(history: History, sandbox: Sandbox) -> None:
    good = history.commit("begin", code__py="answer = 42\n")
    history.grow(3)
    culprit = history.commit("break it", code__py="answer = 41\n")
    history.grow(3)
    trial = Trial(
        ("python3", "new_check.py"),
        overlay={"new_check.py": b"from code import answer\nassert answer == 42\n"},
    )
    trial = replace(trial, env=(("PYTHONPATH", "."),))
    found = run_bisection(
        BisectJob(trial, good=good), git=GitRepository.open(history.path), sandbox=sandbox
    )
    assert found.culprit is not None
    assert found.culprit.sha == culprit
    assert "AssertionError" in (found.signature or "")


def test_commits_that_change_nothing_are_never_run(
    history: History, find: Callable[..., Bisection]
) -> None:
    good = history.commit("begin", check__sh="test ! -e broken\n")
    empty = [history.commit(f"empty {at}") for at in range(6)]
    culprit = history.commit("break it", broken="yes\n")
    empty += [history.commit(f"empty again {at}") for at in range(6)]
    found = find(good=good, bad="HEAD")
    assert found.culprit is not None
    assert found.culprit.sha == culprit
    ran = {seen.sha for seen in found.observations}
    assert not ran & {*empty[:-1]}


def test_a_second_bisection_starts_from_what_the_first_saw(
    history: History, sandbox: Sandbox, tmp_path: Path
) -> None:
    good = history.commit("begin", check__sh="test ! -e broken\n")
    history.grow(6)
    culprit = history.commit("break it", broken="yes\n")
    history.grow(6)
    memory = SqliteVerdictMemory(tmp_path / "bisect.db")
    job = BisectJob(Trial(CHECK), good=good, verify=False)
    git = GitRepository.open(history.path)
    first = run_bisection(job, git=git, sandbox=sandbox, memory=memory)
    second = run_bisection(job, git=git, sandbox=sandbox, memory=memory)
    assert first.culprit is not None
    assert second.culprit is not None
    assert first.culprit.sha == second.culprit.sha == culprit
    assert second.tests < first.tests
    assert any(seen.reused for seen in second.observations)
    memory.close()


def test_several_workers_find_the_same(history: History, find: Callable[..., Bisection]) -> None:
    good = history.commit("begin", check__sh="test ! -e broken\n")
    history.grow(9)
    culprit = history.commit("break it", broken="yes\n")
    history.grow(9)
    found = find(good=good, jobs=3, verify=False)
    assert found.culprit is not None
    assert found.culprit.sha == culprit
    assert found.rounds < found.tests


def test_it_stops_at_its_limit_and_says_what_is_left(
    history: History, find: Callable[..., Bisection]
) -> None:
    good = history.commit("begin", check__sh="test ! -e broken\n")
    history.grow(20)
    history.commit("break it", broken="yes\n")
    history.grow(20)
    found = find(good=good, max_tests=4)
    assert found.tests == 4
    assert found.outcome in {"narrowed", "undecided"}
    assert len(found.credible_set) > 1


def test_a_setup_that_fails_makes_a_commit_untestable(history: History, sandbox: Sandbox) -> None:
    good = history.commit("begin", check__sh="test ! -e broken\n", setup__sh="exit 0\n")
    history.commit("cannot be set up", setup__sh="exit 1\n")
    history.commit("can again", setup__sh="exit 0\n# again\n")
    culprit = history.commit("break it", broken="yes\n")
    trial = Trial(CHECK, setup="sh ./setup.sh")
    found = run_bisection(
        BisectJob(trial, good=good, verify=False),
        git=GitRepository.open(history.path),
        sandbox=sandbox,
    )
    assert found.culprit is not None
    assert found.culprit.sha == culprit


def test_ends_that_make_no_range_are_refused(history: History, sandbox: Sandbox) -> None:
    first = history.commit("begin", check__sh="exit 1\n")
    last = history.grow(2)[-1]
    git = GitRepository.open(history.path)
    job = BisectJob(Trial(CHECK))
    with pytest.raises(UserError, match="swap them"):
        run_bisection(replace(job, good=last, bad=first), git=git, sandbox=sandbox)
    with pytest.raises(UserError, match="nothing between"):
        run_bisection(replace(job, good=last, bad=last), git=git, sandbox=sandbox)


def test_a_good_commit_on_another_branch_leads_to_the_merge_base(
    history: History, find: Callable[..., Bisection]
) -> None:
    base = history.commit("begin", check__sh="test ! -e broken\n")
    history.git("checkout", "-q", "-b", "release")
    good = history.commit("release", release__txt="1\n")
    history.git("checkout", "-q", "main")
    history.grow(2)
    culprit = history.commit("break it", broken="yes\n")
    found = find(good=good)
    assert found.culprit is not None
    assert (found.culprit.sha, found.range.good) == (culprit, base)
    assert "merge base" in found.notes[0]


def test_what_one_run_leaves_behind_does_not_reach_the_next(
    history: History, find: Callable[..., Bisection]
) -> None:
    left = "test ! -e /tmp/left || exit 1; touch /tmp/left; test ! -e broken\n"
    good = history.commit("begin", check__sh=left)
    history.grow(5)
    culprit = history.commit("break it", broken="yes\n")
    history.grow(4)
    found = find(good=good)
    assert (found.outcome, found.culprit and found.culprit.sha) == ("found", culprit)


def test_a_command_that_kills_all_it_can_reach_is_no_trouble(
    history: History, find: Callable[..., Bisection]
) -> None:
    good = history.commit("begin", check__sh="test ! -e broken || exit 1; kill -9 -1\nexit 0\n")
    history.grow(3)
    culprit = history.commit("break it", broken="yes\n")
    history.grow(3)
    found = find(good=good, verify=False, trial=Trial(("sh", "check.sh"), timeout=60.0))
    assert (found.outcome, found.culprit and found.culprit.sha) == ("found", culprit)


def test_a_fault_that_came_and_went_is_not_taken_for_the_one_that_is_there_now(
    history: History, find: Callable[..., Bisection]
) -> None:
    good = history.commit("begin", check__sh="test ! -e broken -a ! -e other\n")
    history.grow(2)
    earlier = history.commit("break it for a while", other="yes\n")
    history.grow(12)
    history.commit("mend that", check__sh="test ! -e broken\n")
    for at in range(3):
        history.commit(f"work on {at}", **{f"work{at}__txt": "1\n"})
    culprit = history.commit("break it", broken="yes\n")
    history.commit("after", after__txt="1\n")
    found = find(good=good)
    assert (found.outcome, found.culprit and found.culprit.sha) == ("found", culprit)
    without = {(run.part, run.reverted) for run in found.later_runs if run.reverted}
    assert without == {("suspect", earlier), ("revert", culprit)}


def test_an_end_that_misses_its_submodule_is_refused_with_what_to_do(
    history: History, sandbox: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    lib = History(tmp_path / "lib")
    lib.commit("lib", answer__py="VALUE = 42\n")
    history.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(lib.path), "lib")
    good = history.commit(
        "begin", check__py="from lib.answer import VALUE\nimport code2\n", code2__py="\n"
    )
    history.grow(2)
    culprit = history.commit("break it", code2__py="raise ValueError\n")
    trial = Trial(("python3", "check.py"), env=(("PYTHONPATH", "."),))
    job = BisectJob(trial, good=good, verify=False)
    found = run_bisection(job, git=GitRepository.open(history.path), sandbox=sandbox)
    assert (found.outcome, found.culprit and found.culprit.sha) == ("found", culprit)
    history.git("clone", "-q", str(history.path), str(tmp_path / "bare"))
    with pytest.raises(UserError, match="submodule lib: not in this clone; run `git submodule"):
        run_bisection(job, git=GitRepository.open(tmp_path / "bare"), sandbox=sandbox)


class _Dies(TransientVerdictMemory):
    """Memory of a process that is killed after so many lines."""

    def __init__(self, lives: int) -> None:
        super().__init__()
        self.lives = lives

    def append(self, key: str, line: str) -> None:
        super().append(key, line)
        self.lives -= 1
        if self.lives == 0:
            raise Cancelled("killed")


@pytest.mark.slow
def test_killed_at_any_point_it_resumes_and_ends_the_same(
    history: History, sandbox: Sandbox
) -> None:
    good = history.commit("begin", check__sh="test ! -e broken\n")
    history.grow(7)
    history.commit("break it", broken="yes\n")
    history.grow(7)
    git = GitRepository.open(history.path)
    job = BisectJob(Trial(CHECK), good=good, resume=True)
    whole = run_bisection(job, git=git, sandbox=sandbox)
    for lives in (2, 4, 6):
        memory = _Dies(lives)
        with pytest.raises(Cancelled):
            run_bisection(job, git=git, sandbox=sandbox, memory=memory)
        again = run_bisection(job, git=git, sandbox=sandbox, memory=memory)
        assert [seen.sha for seen in again.observations] == [
            seen.sha for seen in whole.observations
        ]
        assert (again.posterior, again.verified) == (whole.posterior, whole.verified)


@pytest.mark.slow
def test_the_proof_takes_the_place_of_the_last_tests(
    history: History, find: Callable[..., Bisection]
) -> None:
    good = history.commit("begin", check__sh="test ! -e broken\n")
    history.grow(30)
    culprit = history.commit("break it", broken="yes\n")
    history.grow(30)
    alone, proved = find(good=good, verify=False), find(good=good)
    for found in (alone, proved):
        assert found.culprit is not None
        assert found.culprit.sha == culprit
        assert found.probability >= 0.99
    assert proved.tests < alone.tests


def test_a_proof_in_vain_is_remembered_over_a_kill() -> None:
    memory = TransientVerdictMemory()
    log = RunLog(memory, "this", "", resume=True, reuse=True)
    log.record_failed_proof()
    assert RunLog(memory, "this", "", resume=True, reuse=True).doubted
    assert not RunLog(memory, "another", "", resume=True, reuse=True).doubted


@pytest.mark.soak
def test_a_commit_that_made_it_slow_is_found(
    history: History, find: Callable[..., Bisection]
) -> None:
    good = history.commit("begin", check__sh="sleep 0.1\n")
    history.grow(1)
    culprit = history.commit("make it slow", check__sh="sleep 4\n")
    history.grow(1)
    found = find(good=good, slower=2.5, verify=False)
    assert found.culprit is not None
    assert found.culprit.sha == culprit
    assert "times the time" in found.observations[0].reason


_THING = "def check():\n    return {}\n"
_THING_TEST = (
    "import unittest\nfrom thing import check\n\n\nclass ThingTest(unittest.TestCase):\n"
    "    def test_check(self):\n        self.assertEqual(check(), 1)\n"
)


@pytest.mark.parametrize(
    "command",
    [
        ("python3", "-m", "unittest", "-q", "test_thing"),
        ("python3", "-m", "unittest", "-q", "test_thing.ThingTest.test_check"),
        ("sh", "-c", "python3 ./test_thing.py"),
    ],
)
def test_a_test_that_is_newer_than_the_fault_is_carried_back(
    history: History, find: Callable[..., Bisection], command: tuple[str, ...]
) -> None:
    run = "\n\nif __name__ == '__main__':\n    unittest.main()\n"
    good = history.commit("begin", thing__py=_THING.format(1))
    history.grow(3)
    culprit = history.commit("break it", thing__py=_THING.format(2))
    history.grow(2)
    history.commit("show it", test_thing__py=_THING_TEST + run)
    found = find(trial=Trial(command, timeout=60.0), good=good)
    assert (found.outcome, found.culprit and found.culprit.sha) == ("found", culprit)
    assert found.untestable == ()
    assert any(note.startswith("test_thing.py is newer than ") for note in found.notes)


def test_a_program_that_is_newer_than_the_history_may_be_what_broke(
    history: History, find: Callable[..., Bisection]
) -> None:
    good = history.commit("begin", check__sh="test ! -e tool.py || python3 tool.py\n")
    history.grow(2)
    culprit = history.commit("add a tool", tool__py="raise SystemExit('broken')\n")
    history.grow(1)
    command = ("sh", "-c", "sh ./check.sh tool.py")
    found = find(trial=Trial(command, timeout=60.0), good=good)
    assert (found.outcome, found.culprit and found.culprit.sha) == ("found", culprit)


def test_the_comment_shows_how_probable_each_commit_is(
    history: History, find: Callable[..., Bisection]
) -> None:
    good = history.commit("begin", check__sh="test ! -e broken\n")
    history.grow(3)
    culprit = history.commit("break it", broken="yes\n")
    history.grow(4)
    shown = report.render_markdown(find(good=good, verify=False))
    plot = shown.partition("```text\n")[2].partition("```")[0].splitlines()
    (row,) = [line for line in plot if culprit[:12] in line]
    assert "%" in row
    assert row.count("█") > 25
    assert row.endswith("fail")
    assert plot[-1].startswith("... ")


def test_the_package_that_broke_it_is_named(
    history: History, find: Callable[..., Bisection]
) -> None:
    old = "".join(f"p{at}==1\n" for at in range(4))
    good = history.commit(
        "begin", requirements__txt=old, check__sh="! grep -q p2==2 requirements.txt\n"
    )
    history.commit("upgrade", requirements__txt=old.replace("==1", "==2"))
    found = find(good=good)
    assert found.dependency is not None
    assert (found.dependency.name, found.dependency.new) == ("p2", "2")


def test_an_import_that_breaks_in_the_range_is_no_matter_of_the_interpreter(
    history: History, sandbox: Sandbox
) -> None:
    if len(sandbox.pythons()) < 2:
        pytest.skip("this machine has one Python")
    good = history.commit(
        "start", shop__py="def total(): ...\n", use__py="from shop import total\n"
    )
    history.grow(2)
    culprit = history.commit("rename", shop__py="def totals(): ...\n")
    history.grow(2)
    trial = Trial(("python", "use.py"), timeout=60.0)
    found = run_bisection(
        BisectJob(trial, good=good), git=GitRepository.open(history.path), sandbox=sandbox
    )
    assert found.culprit is not None
    assert found.culprit.sha == culprit
    assert not any("not Python" in note for note in found.notes)


@pytest.mark.parametrize(
    ("command", "said_of_it"),
    [
        (("python", "use.py"), "let --setup install it"),
        (("nosuchprogram", "use.py"), "(nosuchprogram is not installed; --setup"),
    ],
    ids=["module", "program"],
)
def test_what_is_missing_everywhere_ends_the_search_for_an_interpreter(
    history: History, sandbox: Sandbox, command: tuple[str, ...], said_of_it: str
) -> None:
    if len(sandbox.pythons()) < 4:
        pytest.skip("this machine has too few Pythons")
    good = history.commit("start", use__py="import nowhere_to_be_found\n")
    history.grow(2)
    said: list[str] = []
    trial = Trial(command, timeout=60.0)
    found = run_bisection(
        BisectJob(trial, good=good),
        git=GitRepository.open(history.path),
        sandbox=sandbox,
        progress=said.append,
    )
    assert found.culprit is None
    assert sum(line.startswith("trying Python") for line in said) == 1
    assert said_of_it in report.render_headline(found)
    assert not any("not Python" in note for note in found.notes)


def test_how_far_a_search_without_a_good_commit_goes_back_is_said_in_words(
    history: History, sandbox: Sandbox
) -> None:
    works = history.commit("works", use__py="")
    history.commit("breaks", use__py="raise SystemExit(1)\n")
    said: list[str] = []
    run_bisection(
        BisectJob(Trial(("python", "use.py"), timeout=60.0), verify=False),
        git=GitRepository.open(history.path),
        sandbox=sandbox,
        progress=said.append,
    )
    assert f"{works[:12]} passes (exit 0), 1 commit back" in said


def test_a_setup_that_fails_everywhere_says_what_its_installer_found(
    history: History, sandbox: Sandbox
) -> None:
    installer = "echo 'error: subprocess-exited-with-error'\necho 'error: two top-level modules'\necho 'hint: See above for details.'\nexit 1\n"
    good = history.commit("begin", setup__sh=installer)
    history.grow(2)
    found = run_bisection(
        BisectJob(Trial(("true",), setup="sh ./setup.sh"), good=good, verify=False),
        git=GitRepository.open(history.path),
        sandbox=sandbox,
    )
    assert found.notes[0].startswith("not the default Python: at ")
    assert found.notes[0].endswith(" untestable (setup failed: error: two top-level modules)")
    assert "two top-level modules" in report.render_headline(found)
