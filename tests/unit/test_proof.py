"""A claim becomes a test, and the test decides: run on the change and on what was before, in the sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.adapters.git.repository import GitRepository
from regreen.code.diff import parse
from regreen.domain.errors import NoSandbox, OutsideError
from regreen.domain.models import ModelRequest
from regreen.domain.ports import Sandbox
from regreen.reviewers.context import Claim, ClaimTests, ReviewContext
from regreen.reviewers.model import model_reviewer
from regreen.reviewers.model.model_reviewer import ModelReviewer
from regreen.runs.trial import Trial
from tests.checkout import Checkout
from tests.unit.test_readers import Scripted, finding

pytestmark = pytest.mark.sandbox

BEFORE = "def mean(p):\n    if not p:\n        return 0\n    return sum(p) / len(p)\n"
AFTER = "def mean(p):\n    return sum(p) / float(len(p))\n"
QUOTE = "    return sum(p) / float(len(p))"
EMPTY = "def test_empty():\n    from cart import mean\n    assert mean([]) == 0\n"
TEXT = "def test_text():\n    from cart import mean\n    assert mean('ab') == 0\n"
MISSING = """
def test_module():
    from cart import mean

    try:
        mean([])
    except ZeroDivisionError:
        import a_module_of_the_change
"""
EMPTY_TEST: dict[str, object] = {"code": EMPTY, "fails_with": "ZeroDivisionError"}
TEXT_TEST: dict[str, object] = {"code": TEXT, "fails_with": "TypeError"}
FINE = "def test_fine():\n    from cart import mean\n    assert mean([2, 4]) == 3\n"


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    from regreen.adapters.sandbox.selection import choose_sandbox

    try:
        return choose_sandbox("bwrap")
    except NoSandbox as error:
        pytest.skip(str(error))


def claim_of(
    tmp_path: Path,
    sandbox: Sandbox,
    *tests: dict[str, object],
    before: str = "right",
    acts: str = "yes",
    reach: str = "sometimes",
    doubt: str = "",
    mend: str | None = None,
    repeat: str = "",
    **files: str,
) -> Claim:
    """What becomes of one claim that a reading makes and the second reader holds, tried by the tests in turn."""
    written = iter(tests)
    checkout = Checkout(tmp_path / "r")
    base = checkout.commit("one", cart_py=BEFORE, **files)
    head = checkout.commit("two", cart_py=AFTER, **files)
    git = GitRepository.open(checkout.root, home=tmp_path / "home")
    said = finding(path="cart.py", line=2, quote=QUOTE, title="mean fails", replacement=mend)

    def script(request: ModelRequest) -> dict[str, object]:
        if request.purpose == "review/test":
            change, asked = request.messages
            is_listed = "what the written test printed" in str(change.sent)
            assert is_listed is ("<test id=" in asked.text), "what went out is listed"
            return next(written)
        if request.purpose == "review/second-reader":
            row = {"claim": 1, "traced": "so", "before": before, "verdict": "holds", "acts": acts}
            return {"verdicts": [row | {"certainty": 0.9, "reach": reach}]}
        return {"findings": [said]}

    change = parse(git.diff(base, head))
    trial = Trial(("python", "-m", "pytest", "-q"), setup="pip install -q pytest")
    context = ReviewContext(
        change, change.files, base, head, base, git=git, model=Scripted(script), find_claim_tests=lambda: ClaimTests(trial, sandbox, doubt=doubt, keep=lambda _: repeat)
    )  # fmt: skip
    (claim,) = ModelReviewer().run(context).claims
    assert next(written, None) is None, "each of the tests was asked for"
    return claim


def test_red_on_the_change_and_green_before_is_proof(tmp_path: Path, sandbox: Sandbox) -> None:
    claim = claim_of(tmp_path, sandbox, EMPTY_TEST, mend="    return sum(p) / max(1, len(p))")
    assert claim.proven
    assert claim.confidence > 0.98
    assert claim.suggestion is not None, "the test passes with it"
    proof = claim.evidence[0]
    assert (proof.kind, proof.excerpt.split("\n", 1)[1]) == ("test", EMPTY.strip())
    assert "ZeroDivisionError" in (proof.head or "")
    assert "1 passed" in (proof.base or "")


def test_a_proof_stands_where_its_capsule_cannot_be_made(
    tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OutsideError("the engine is gone")

    monkeypatch.setattr(model_reviewer, "make_capsule", fail)
    claim = claim_of(tmp_path, sandbox, EMPTY_TEST, repeat="regreen replay x.json")
    assert claim.proven
    assert "replay" not in claim.evidence[0].excerpt


def test_options_of_the_project_that_this_pytest_does_not_know_hinder_no_proof(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    options = "[pytest]\naddopts = --of-a-plugin-that-is-missing\n"
    claim = claim_of(tmp_path, sandbox, EMPTY_TEST, **{"pytest.ini": options})
    assert claim.proven
    assert "-o addopts=" in (claim.evidence[0].command or "")


@pytest.mark.parametrize(
    "conftest",
    [
        # pytest 5 and older: "1 failed in 0.05 seconds"
        "import _pytest.terminal as t\nt.format_session_duration = lambda s: f'{s:.2f} seconds'\n",
        # a plugin that needs the cache, which a claim's test does without
        "def pytest_addoption(parser):\n    parser.addoption('--sorted', action='store_true')\n\n\n"
        "def pytest_sessionstart(session):\n    session.config.option.sorted and session.config.cache.get('a/b', 0)\n",
        # pytest 4 and older end with 2 after the first failure
        "def pytest_sessionfinish(session, exitstatus):\n    session.exitstatus = 2 * exitstatus\n",
    ],
)
def test_what_plugins_and_old_versions_do_hinders_no_proof(
    tmp_path: Path, sandbox: Sandbox, conftest: str
) -> None:
    calls = "from cart import mean\n\n\ndef test_mean():\n    assert mean([2, 4]) == 3\n"
    files = {"conftest.py": conftest, "test_cart.py": calls}
    if "--sorted" in conftest:
        files["pytest.ini"] = "[pytest]\naddopts = --sorted\n"
    claim = claim_of(tmp_path, sandbox, EMPTY_TEST, **files)
    assert claim.proven


@pytest.mark.slow
def test_a_mend_with_which_the_test_still_fails_is_not_suggested(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    claim = claim_of(tmp_path, sandbox, EMPTY_TEST, mend="    return sum(p) / (len(p) or None)")
    assert (claim.proven, claim.suggestion) == (True, None)


def test_green_on_the_change_sinks_a_claim_that_everybody_holds(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    claim = claim_of(tmp_path, sandbox, {"code": FINE}, {"impossible": "it gives 3"})
    assert claim.confidence < 0.5
    assert "passes on this change" in claim.evidence[-1].excerpt


@pytest.mark.parametrize(
    ("before", "posted"), [("right", False), ("as wrong, said to be mended", True)]
)
def test_what_fails_in_the_same_way_before_is_none_unless_the_change_says_that_it_mends_it(
    tmp_path: Path, sandbox: Sandbox, before: str, posted: bool
) -> None:
    tests = [TEXT_TEST] if posted else [TEXT_TEST, TEXT_TEST]  # only a surprise is corrected
    claim = claim_of(tmp_path, sandbox, *tests, before=before)
    assert not claim.proven
    assert (claim.confidence >= 0.8) is posted


@pytest.mark.parametrize(
    ("test", "proven"),
    [
        (EMPTY_TEST, True),
        ({"code": MISSING, "fails_with": "ModuleNotFoundError"}, False),
    ],
)
def test_a_failure_of_another_environment_proves_nothing(
    tmp_path: Path, sandbox: Sandbox, test: dict[str, object], proven: bool
) -> None:
    doubt = "the setup is inferred from the base, and the change alters setup.py"
    tests = [test] if proven else [test, {"impossible": "the module is not there"}]
    claim = claim_of(tmp_path, sandbox, *tests, doubt=doubt)
    assert (claim.proven, doubt in claim.evidence[-1].excerpt) == (proven, not proven)


@pytest.mark.parametrize(("acts", "reach"), [("no", "usual"), ("perhaps", "rare")])
def test_what_nobody_would_act_on_is_not_tested(
    tmp_path: Path, sandbox: Sandbox, acts: str, reach: str
) -> None:
    claim = claim_of(tmp_path, sandbox, acts=acts, reach=reach)
    assert claim.signals is not None
    assert (claim.signals.proof, claim.confidence < 0.8) == ("not_run", True)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"impossible": "it needs a network"}, "it needs a network"),
        ({"code": 7}, "no usable test"),
        ({"code": "print('a half answer"}, "no usable test"),
        ({"code": "def test_x():" + 20_000 * " "}, "no usable test"),
    ],
)
def test_an_answer_without_a_test_is_named_as_the_reason(
    tmp_path: Path, sandbox: Sandbox, answer: dict[str, object], reason: str
) -> None:
    claim = claim_of(tmp_path, sandbox, answer)
    assert not claim.proven
    assert reason in claim.evidence[-1].excerpt


def test_the_author_of_a_test_that_cannot_run_may_correct_it_once(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    broken: dict[str, object] = {
        "code": "from cart import means\n\n\ndef test_x():\n    assert means([]) == 0\n"
    }
    assert claim_of(tmp_path, sandbox, broken, EMPTY_TEST).proven
    (tmp_path / "again").mkdir()
    claim = claim_of(tmp_path / "again", sandbox, broken, broken | {"fails_with": "ImportError"})
    assert not claim.proven
    assert "could not run" in claim.evidence[-1].excerpt


def test_a_failure_that_was_not_predicted_proves_nothing(tmp_path: Path, sandbox: Sandbox) -> None:
    other = EMPTY_TEST | {"fails_with": "KeyError"}
    claim = claim_of(tmp_path, sandbox, other, other | {"fails_with": ""})
    assert not claim.proven
    assert "otherwise than predicted" in claim.evidence[-1].excerpt
