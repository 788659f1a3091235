"""How far a stated confidence can be trusted: a plot, the same as a table, and each rule's record."""

from __future__ import annotations

from math import sqrt

from flask import request

from regreen.bot.dashboard.frame import filters
from regreen.bot.dashboard.html import Safe, link, table, tag, text
from regreen.bot.dashboard.reader import Reader
from regreen.bot.outcomes import Outcomes
from regreen.listing import Shelf
from regreen.repo_config import RepoConfig
from regreen.reviewers.learning import Bin, Outcome, calibration, statistics

_SIDE, _LEFT, _TOP = 320, 44, 12
_Z = 1.645  # the middle 90 % of a normal distribution


def calibration_page(shelf: Shelf, reader: Reader) -> Safe:
    """What people made of the posted findings, against the confidence that these had."""
    repo = request.args.get("repo", "").strip()
    everything = [o for o in Outcomes(shelf).all() if reader.may_see(o.repo)]
    kept = [o for o in everything if not repo or o.repo == repo]
    bins = calibration(kept)
    lead = tag("p", "A dot on the dashed line means: of the findings posted at that confidence, just so many were right, as people showed by thumbs, replies, resolved threads and taken suggestions. The bar holds the true share nine times in ten.")  # fmt: skip
    above = filters({"repo": tuple(sorted({o.repo for o in everything}))})
    if not kept:
        return text(above, tag("p", "No feedback yet.", class_="none"))
    return text(
        above, lead, _plot(bins), tag("h2", "The same as a table"), _bins(bins),
        tag("h2", "Rule by rule"), _rules(kept, shelf),
    )  # fmt: skip


def _bins(bins: tuple[Bin, ...]) -> Safe:
    rows = []
    for one in bins:
        low, high = _likely(one)
        rows.append((f"{one.low:.2f} to {one.high:.2f}", one.count, f"{one.mean:.2f}", f"{one.right / one.count:.2f}", f"{low:.2f} to {high:.2f}"))  # fmt: skip
    head = ("posted at", "findings", "mean confidence", "share right", "which may be")
    return table(head, rows, caption="Calibration")


def _rules(kept: list[Outcome], shelf: Shelf) -> Safe:
    """Acceptance by rule and repository, with the confidence that each needs by now."""
    default = RepoConfig().review.min_confidence
    rows = []
    for repo in sorted({o.repo for o in kept}):
        _, needed = Outcomes(shelf).lessons(repo, default)
        for rule in statistics(kept, needed, repo, default):
            share = f"{rule.right / rule.count:.0%}"
            rows.append((rule.rule, link(f"/reviews?repo={repo}", repo), rule.count, rule.right, share, f"{rule.threshold:.2f}"))  # fmt: skip
    head = ("rule", "repository", "findings", "right", "accepted", "posted from")
    return table(head, rows, caption="Acceptance by rule")


def _plot(bins: tuple[Bin, ...]) -> Safe:
    def x(share: float) -> float:
        return _LEFT + share * _SIDE

    def y(share: float) -> float:
        return _TOP + (1 - share) * _SIDE

    def line(x1: float, y1: float, x2: float, y2: float, name: str) -> Safe:
        return tag("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=name)  # fmt: skip

    parts = [line(x(0), y(0), x(1), y(0), "axis"), line(x(0), y(0), x(0), y(1), "axis"), line(x(0), y(0), x(1), y(1), "ideal")]  # fmt: skip
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(tag("text", f"{share:g}", x=f"{x(share):.1f}", y=f"{y(0) + 16:.1f}", text_anchor="middle"))  # fmt: skip
        parts.append(tag("text", f"{share:g}", x=f"{x(0) - 6:.1f}", y=f"{y(share) + 4:.1f}", text_anchor="end"))  # fmt: skip
    for one in bins:
        low, high = _likely(one)
        parts.append(line(x(one.mean), y(low), x(one.mean), y(high), "span"))
        said = f"{one.right} of {one.count} right at {one.mean:.2f}"
        dot = tag("circle", tag("title", said), cx=f"{x(one.mean):.1f}", cy=f"{y(one.right / one.count):.1f}", r=f"{min(9.0, 3 + sqrt(one.count) / 2):.1f}", class_="dot")  # fmt: skip
        parts.append(dot)
    width, height = _LEFT + _SIDE + 16, _TOP + _SIDE + 40
    parts.append(tag("text", "share that was right", transform=f"translate(10 {y(0.5):.0f}) rotate(-90)", text_anchor="middle"))  # fmt: skip
    parts.append(tag("text", "stated confidence", x=f"{x(0.5):.0f}", y=str(height - 6), text_anchor="middle"))  # fmt: skip
    return tag("svg", *parts, viewBox=f"0 0 {width} {height}", width=str(width), role="img", class_="plot", aria_label="Share of findings that were right, by stated confidence; the table below has the numbers")  # fmt: skip


def _likely(one: Bin) -> tuple[float, float]:
    """Where the true share lies nine times in ten (Wilson)."""
    n, share = one.count, one.right / one.count
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return max(0.0, middle - half), min(1.0, middle + half)
