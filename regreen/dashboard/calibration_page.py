"""How far a stated confidence can be trusted: a plot, the same as a table, and each rule's record."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from flask import Response, request

from regreen.bot.feedback import OutcomeStore
from regreen.dashboard.rendering import render_page
from regreen.dashboard.viewer import Viewer
from regreen.domain.list_queries import DashboardStore
from regreen.domain.repo_config import RepoConfig
from regreen.domain.state_records import FindingOutcome
from regreen.reviewers.learning import (
    CalibrationBin,
    RuleStats,
    calibration_bins,
    rule_statistics,
)

_Z_SCORE = 1.645  # the middle 90 % of a normal distribution


@dataclass(frozen=True, slots=True)
class _PlottedBin:
    """Findings of about the same confidence; the true share lies from `least` to `most` nine times in ten."""

    low: float
    high: float
    count: int
    right: int
    mean: float
    share: float
    least: float
    most: float
    radius: float


def show_calibration(shelf: DashboardStore, reader: Viewer) -> Response:
    """What people made of the posted findings, against the confidence that these had."""
    repo = request.args.get("repo", "").strip()
    visible = [o for o in OutcomeStore(shelf).list_outcomes() if reader.may_see(o.repo)]
    outcomes = [o for o in visible if not repo or o.repo == repo]
    return render_page(
        "calibration.html",
        "Calibration",
        reader,
        repos=sorted({o.repo for o in visible}),
        bins=[_plot_bin(bin_) for bin_ in calibration_bins(outcomes)],
        rules=_list_rules(outcomes, shelf),
    )


def _list_rules(
    outcomes: list[FindingOutcome], shelf: DashboardStore
) -> list[tuple[str, RuleStats]]:
    """Acceptance by repository and rule, with the confidence that each needs by now."""
    default = RepoConfig().review.min_confidence
    rules = []
    for repo in sorted({o.repo for o in outcomes}):
        _, needed = OutcomeStore(shelf).learned_thresholds(repo, default)
        rules += [(repo, rule) for rule in rule_statistics(outcomes, needed, repo, default)]
    return rules


def _plot_bin(bin_: CalibrationBin) -> _PlottedBin:
    """Where a bin stands in the plot, with Wilson's interval for its share."""
    n, share = bin_.count, bin_.right / bin_.count
    scale = 1 + _Z_SCORE**2 / n
    middle = (share + _Z_SCORE**2 / (2 * n)) / scale
    half = _Z_SCORE / scale * sqrt(share * (1 - share) / n + _Z_SCORE**2 / (4 * n**2))
    return _PlottedBin(
        low=bin_.low,
        high=bin_.high,
        count=n,
        right=bin_.right,
        mean=bin_.mean,
        share=share,
        least=max(0.0, middle - half),
        most=min(1.0, middle + half),
        radius=min(9.0, 3 + sqrt(n) / 2),
    )
