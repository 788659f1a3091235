"""What a revision may have installed, against the revision that is trusted: real git, and a sandbox that must not be reached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import pytest

from regreen.adapters.git.repository import GitRepository
from regreen.domain.errors import SetupFailed
from regreen.domain.models import BoxLimits, DoctorCheck, EnvSpec, PreparedEnv
from regreen.domain.ports import Box
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
