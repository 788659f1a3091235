"""What people made of our findings: read from GitHub, kept in the store, open to thresholds, `/stats` and dashboard."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict

from regreen.errors import OutsideError, UserError
from regreen.forge import PERMISSIONS, GitHub, Remark
from regreen.models import Signals
from regreen.records import Store
from regreen.reviewers.calibrate import Weights
from regreen.reviewers.learning import (
    RANKED,
    Bin,
    How,
    Outcome,
    calibration,
    restated,
    thresholds,
    tone,
    weights,
)

_SPACE = "outcomes"
_MAY_TEACH = PERMISSIONS.index("write")
_log = logging.getLogger(__name__)


class Outcomes:
    """Every outcome there is. One per finding: the word that tells most, the later of two that tell as much."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def note(self, outcome: Outcome) -> None:
        """Keep what became of a finding, unless something that tells more is known."""
        key = _key(outcome.repo, outcome.number, outcome.fingerprint)
        known = self._store.get(_SPACE, key)
        if known is not None and RANKED.index(_outcome(known).how) < RANKED.index(outcome.how):
            return
        self._store.put(_SPACE, key, json.dumps(asdict(outcome)))

    def withdraw(self, repo: str, number: int, fingerprint: str, how: How) -> None:
        """Forget what was noted in this way: a thread that was resolved is open again."""
        key = _key(repo, number, fingerprint)
        known = self._store.get(_SPACE, key)
        if known is not None and _outcome(known).how == how:
            self._store.delete(_SPACE, key)

    def all(self, repo: str = "") -> list[Outcome]:
        """The outcomes of one repository, or all of them."""
        found = self._store.items(_SPACE, f"{repo}#" if repo else "")
        return [_outcome(value) for _, value in found]

    def lessons(self, repo: str, default: float) -> tuple[Weights, dict[str, float]]:
        """What a model's claims are weighed with, and the confidence that each rule needs, where not the default."""
        known = self.all()
        now = weights(known)
        return now, thresholds(restated(known, now), repo, default)

    def calibration(self, repo: str = "") -> tuple[Bin, ...]:
        """Stated confidence against what came of it, for the dashboard to draw."""
        return calibration(self.all(repo))


def heard(github: GitHub, number: int, fingerprints: set[str]) -> dict[str, How]:
    """What people with write access said by reaction or reply of these findings on a pull request.

    Not being able to read it costs nothing but the lesson.
    """
    try:
        remarks = github.remarks(number)
        by_id = {r.id: name for r in remarks if r.ours for name in fingerprints if f"finding:{name}" in r.body}  # fmt: skip
        if not by_id:
            return {}
        teaches = _Teachers(github)
        found: dict[str, How] = {}
        for remark in remarks:
            for name, how in _said(remark, by_id, teaches):
                known = found.get(name)
                if known is None or RANKED.index(how) <= RANKED.index(known):
                    found[name] = how
    except (OutsideError, UserError) as error:
        _log.warning("feedback on %s#%d is not read: %s", github.repo, number, error)
        return {}
    return found


class _Teachers:
    """Who may teach: people with write access. A stranger's thumb moves nothing."""

    def __init__(self, github: GitHub) -> None:
        self._github = github
        self._known: dict[str, bool] = {}

    def __call__(self, login: str) -> bool:
        if login not in self._known:
            has = self._github.permission(login)
            self._known[login] = PERMISSIONS.index(has) >= _MAY_TEACH
        return self._known[login]


def _said(remark: Remark, by_id: dict[int, str], teaches: _Teachers) -> list[tuple[str, How]]:
    if remark.id in by_id:
        if any(teaches(login) for login in remark.down):
            return [(by_id[remark.id], "down")]
        return [(by_id[remark.id], "up")] if any(teaches(login) for login in remark.up) else []
    if remark.reply_to not in by_id or remark.by_bot:
        return []
    said = tone(remark.body)
    return [(by_id[remark.reply_to], said)] if said and teaches(remark.author) else []


def _key(repo: str, number: int, fingerprint: str) -> str:
    return f"{repo}#{number}/{fingerprint}"


def _outcome(value: str) -> Outcome:
    data = json.loads(value)
    signals = data.pop("signals")
    return Outcome(**data, signals=Signals(**signals) if signals else None)
