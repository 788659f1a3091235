"""What a revision may have installed, against the revision that is trusted: real git, and a sandbox that must not be reached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from threading import Event

import pytest

from regreen.actions.step_trial import make_step_trial
from regreen.actions.workflow import plan_workflow
from regreen.adapters.git.repository import GitRepository
from regreen.domain import repo_config
from regreen.domain.errors import SetupFailed, UserError
from regreen.domain.models import BoxLimits, DoctorCheck, EnvSpec, PreparedEnv
from regreen.domain.ports import Box
from regreen.environment.preparation import complete_trial
from regreen.packages.setup_guard import InstallPolicy
from regreen.runs.trial import Trial, prepare_environment
from tests.checkout import Checkout

TRIAL = Trial(("true",), setup="pip install -r requirements.txt", trust="pull_request")


@dataclass
class Ledger:
    """A sandbox that only writes down what it is asked to prepare."""

    name: str = "ledger"
    asked: list[EnvSpec] = field(default_factory=list)

    def prepare(
        self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None
    ) -> PreparedEnv:
        del tree, cancel
        self.asked.append(spec)
        return PreparedEnv("key", "docker", None, "image")

    def open(self, env: PreparedEnv, tree: Iterable[bytes], limits: BoxLimits | None = None) -> Box:
        raise NotImplementedError

    def pythons(self) -> tuple[str, ...]:
        return ()

    def doctor(self) -> list[DoctorCheck]:
        return []


@pytest.fixture
def shop(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "shop")


def test_a_pull_request_that_adds_a_look_alike_is_not_set_up(shop: Checkout) -> None:
    base = shop.commit("base", **{"requirements.txt": "attrs\nzz-our-own\n"})
    head = shop.commit("head", **{"requirements.txt": "attrs\nzz-our-own\nreqeusts\n"})
    git, ledger = GitRepository.open(shop.root), Ledger()
    trial = replace(TRIAL, base=base)
    prepare_environment(trial, base, git=git, sandbox=ledger)
    with pytest.raises(
        SetupFailed, match=r"`reqeusts` \(requirements.txt\) looks like the popular"
    ):
        prepare_environment(trial, head, git=git, sandbox=ledger)
    assert len(ledger.asked) == 1
    assert ledger.asked[0].checked


def test_what_is_too_large_to_be_judged_is_not_set_up(shop: Checkout) -> None:
    text = "attrs\n" * 1_500_000 + "reqeusts\n"
    base = shop.commit("base", **{"requirements.txt": "attrs\n"})
    head = shop.commit("head", **{"requirements.txt": text})
    ledger, trial = Ledger(), replace(TRIAL, base=base)
    words = "what the setup installs could not be read: requirements.txt is too large"
    with pytest.raises(SetupFailed, match=words):
        prepare_environment(trial, head, git=GitRepository.open(shop.root), sandbox=ledger)
    assert ledger.asked == []


def test_what_came_before_the_trusted_revision_is_trusted(shop: Checkout) -> None:
    old = shop.commit("old", **{"requirements.txt": "zz-long-gone\n"})
    base = shop.commit("base", **{"requirements.txt": "attrs\n"})
    ledger = Ledger()
    prepare_environment(
        replace(TRIAL, base=base), old, git=GitRepository.open(shop.root), sandbox=ledger
    )
    assert ledger.asked


def test_a_repair_of_ones_own_checkout_may_not_bring_in_what_nobody_knows(shop: Checkout) -> None:
    mine = shop.commit("mine", **{"requirements.txt": "zz-mine\n"})
    repaired = shop.commit("repair", **{"requirements.txt": "zz-mine\nzz-a-models-dream\n"})
    git, ledger = GitRepository.open(shop.root), Ledger()
    trial = replace(TRIAL, trust="local")
    prepare_environment(trial, repaired, git=git, sandbox=ledger)  # one's own tree, as one wrote it
    with pytest.raises(SetupFailed, match="zz-a-models-dream"):
        prepare_environment(replace(trial, base=mine), repaired, git=git, sandbox=ledger)


# -- container images ----------------------------------------------------------------------------------------------

WORKFLOW = """\
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    container: {image: "%s"}
    steps: [{run: pytest}]
"""


def _complete(
    shop: Checkout, trial: Trial, rev: str, tests: repo_config.TestsConfig
) -> tuple[Trial, list[EnvSpec], tuple[str, ...]]:
    ledger = Ledger()
    done = complete_trial(
        trial, rev, tests=tests, git=GitRepository.open(shop.root), sandbox=ledger, minutes=1,
        today=date(2026, 1, 1), say=lambda _: None,
    )  # fmt: skip
    return done.trial, ledger.asked, done.notes


def test_what_a_command_installs_first_is_its_setup_where_nothing_is_inferred(
    shop: Checkout,
) -> None:
    rev = shop.commit("base", **{"README.md": "# Shop"})
    call = Trial(("sh", "-c", "cd web && pip install zz-own && ./check"))
    done, asked, _ = _complete(shop, call, rev, repo_config.TestsConfig())
    assert (done.setup, done.command_line) == (
        "(cd web && pip install zz-own)",
        "cd web && ./check",
    )
    assert (asked, done.rules.trusts_command) == ([], call.rules.trusts_command)
    titled = replace(call, title="pip install zz-own && a step of a job")
    done, _, _ = _complete(shop, titled, rev, repo_config.TestsConfig())
    assert (done.setup, done.command) == (None, call.command), "a title is no script"


@pytest.mark.parametrize(
    "image",
    [
        "169.254.169.254:5000/secret/app",
        "ghcr.io/another/company:1",
        "our-company:1",
        "localhost/python",
        "regreen-env:0123456789",
        "docker.io/library/regreen-env:0123456789",
        "983",
        "sha256:" + 64 * "a",
        "python@" + 64 * "a",
        "mcr.microsoft.com/devcontainers",
        "-python:3",
    ],
)
def test_a_pull_request_does_not_choose_the_image(shop: Checkout, image: str) -> None:
    base = shop.commit("base", **{"README.md": "# Shop"})
    devcontainer = shop.commit("box", **{".devcontainer.json": f'{{"image": "{image}"}}'})
    dockerfile = shop.commit("file", **{".devcontainer.json": "{}", "Dockerfile": f"FROM {image}"})
    mine = Trial(("sh", "run.sh"), trust="pull_request", base=base)
    for head in (devcontainer, dockerfile):
        trial, asked, notes = _complete(shop, mine, head, repo_config.TestsConfig())
        assert (trial.image, asked) == (None, [])
        assert "image" in notes[0]


def test_a_workflow_of_a_pull_request_does_not_either(shop: Checkout) -> None:
    base = shop.commit("base", **{".github/workflows/ci.yml": WORKFLOW % "ghcr.io/ours/ci:1"})
    head = shop.commit("head", **{"README.md": "# Shop"})
    git, ledger = GitRepository.open(shop.root), Ledger()
    for image, passes in {"ghcr.io/ours/ci:1": True, "ghcr.io/ours/other:1": False}.items():
        (job,) = plan_workflow(WORKFLOW % image)
        trial = replace(make_step_trial(job, trust="pull_request"), base=base)
        if passes:
            prepare_environment(trial, head, git=git, sandbox=ledger)
        else:
            with pytest.raises(UserError, match="a maintainer names it"):
                prepare_environment(trial, head, git=git, sandbox=ledger)
    assert [one.image for one in ledger.asked] == ["ghcr.io/ours/ci:1"]


@pytest.mark.parametrize(
    ("base", "image"),
    [
        ({}, "python:3.12-slim"),
        ({}, "docker.io/library/golang"),
        ({}, "mcr.microsoft.com/devcontainers/python:3"),
        ({"Dockerfile": "FROM --platform=x ghcr.io/ours/a:1 AS x"}, "ghcr.io/ours/a:1"),
        ({".devcontainer/devcontainer.json": '{"image": "ours/a"}'}, "docker.io/ours/a:latest"),
        ({".github/regreen.yml": "tests:\n  image: 'ours/a:2'"}, "ours/a:2"),
    ],
)
def test_images_that_the_base_names_or_everybody_knows_are_used(
    shop: Checkout, base: dict[str, str], image: str
) -> None:
    trusted = shop.commit("base", **{"README.md": "# Shop", **base})
    shop.commit("moved on", **dict.fromkeys(base, "x"))
    head = shop.commit("head", **{"NEW.md": "more"})
    trial = Trial(("true",), trust="pull_request", image=image, base=trusted)
    ledger = Ledger()
    prepare_environment(trial, head, git=GitRepository.open(shop.root), sandbox=ledger)
    assert ledger.asked[0].image == image


def test_the_configured_image_is_used_whatever_else_is_said(shop: Checkout) -> None:
    base = shop.commit("base", **{"README.md": "# Shop"})
    head = shop.commit("head", Dockerfile="FROM python:3.9\nRUN make")
    tests = repo_config.TestsConfig(image="ghcr.io/ours/pinned:1", command="sh other.sh")
    rules = InstallPolicy(images=frozenset({"ghcr.io/ours/pinned:1"}))
    mine = Trial(("sh", "run.sh"), trust="pull_request", base=base, rules=rules)
    seen = [_complete(shop, mine, rev, tests) for rev in (base, head)]
    assert [trial.image for trial, _, _ in seen] == ["ghcr.io/ours/pinned:1"] * 2
    assert {one.image for _, asked, _ in seen for one in asked} == {"ghcr.io/ours/pinned:1"}


@pytest.mark.parametrize(
    ("link", "target", "content", "setup"),
    [
        ("requirements.txt", "notes/list", "reqeusts\n", "pip install -r requirements.txt"),
        ("setup.cfg", "notes/list", "[options]\ninstall_requires =\n reqeusts\n", "pip install -e ."),
        ("package.json", "notes/list", '{"scripts": {"preinstall": "npx reqeusts-x"}}', "npm install"),
        ("lists", "notes", "reqeusts\n", "pip install -r lists/list"),
        ("lists", "../work/notes", "reqeusts\n", "pip install -r lists/list"),
        ("lists", "/work/notes", "reqeusts\n", "pip install -r lists/list"),
    ],
)  # fmt: skip
def test_a_symbolic_link_hides_nothing_that_a_setup_reads(
    shop: Checkout, link: str, target: str, content: str, setup: str
) -> None:
    base = shop.commit("base", **{"README.md": "a shop\n", "pyproject.toml": "[project]\nname='shop'\n"})  # fmt: skip
    shop.commit("list", **{"notes/list": content})
    (shop.root / link).symlink_to(target)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "link")
    asked = replace(TRIAL, setup=setup, base=base)
    with pytest.raises(SetupFailed, match=r"reqeusts|symbolic link"):
        prepare_environment(asked, shop.git("rev-parse", "HEAD"), git=GitRepository.open(shop.root), sandbox=Ledger())  # fmt: skip


def test_links_that_were_there_or_lead_to_harmless_files_are_no_hindrance(shop: Checkout) -> None:
    (shop.root / "lists").symlink_to("notes")
    (shop.root / "first").symlink_to("second")
    (shop.root / "second").symlink_to("notes/list")
    base = shop.commit("base", **{"notes/list": "attrs\n", "README.md": "a shop\n"})
    (shop.root / "CLAUDE.md").symlink_to("README.md")
    head = shop.commit("head", **{"README.md": "our shop\n"})
    git, sandbox = GitRepository.open(shop.root), Ledger()
    for path in ("lists/list", "first"):
        asked = replace(TRIAL, setup=f"pip install -r {path}", base=base)
        prepare_environment(asked, head, git=git, sandbox=sandbox)
    assert len(sandbox.asked) == 2
    worse = shop.commit("worse", **{"notes/list": "reqeusts\n"})
    for path in ("lists/list", "first"):
        asked = replace(TRIAL, setup=f"pip install -r {path}", base=base)
        with pytest.raises(SetupFailed, match="reqeusts"):
            prepare_environment(asked, worse, git=git, sandbox=sandbox)


def test_the_configured_image_makes_another_image_in_a_change_harmless(shop: Checkout) -> None:
    base = shop.commit("base", **{"README.md": "# Shop", "run.sh": "exit 0"})
    head = shop.commit("head", Dockerfile="FROM python:3.9")
    git, ledger = GitRepository.open(shop.root), Ledger()
    for image, unused in ((None, "Dockerfile:1"), ("ghcr.io/ours/pinned:1", "")):
        done = complete_trial(
            Trial(("sh", "run.sh")), base, tests=repo_config.TestsConfig(image=image), git=git, sandbox=ledger,
            minutes=1, today=date(2026, 1, 1), say=lambda _: None, change=head,
        )  # fmt: skip
        assert done.unused == unused


def test_a_changed_target_of_a_linked_manifest_is_a_changed_environment(shop: Checkout) -> None:
    (shop.root / "requirements.txt").symlink_to("notes/list")
    revs = [
        shop.commit("one", **{"notes/list": "attrs\n"}),
        shop.commit("two", **{"README.md": "a shop\n"}),
        shop.commit("three", **{"notes/list": "attrs\nidna\n"}),
    ]
    sandbox = Ledger()
    for rev in revs:
        prepare_environment(replace(TRIAL, setup="pip install -r requirements.txt"), rev, git=GitRepository.open(shop.root), sandbox=sandbox)  # fmt: skip
    first, second, third = (one.inputs for one in sandbox.asked)
    assert first == second != third
