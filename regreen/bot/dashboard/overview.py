"""The first page: each repository's health, what is broken, what was done this month and what it cost."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from urllib.parse import quote

from regreen.bot.care import SANDBOX_NOTE
from regreen.bot.dashboard.html import Content, Safe, link, place, state, table, tag, text, when
from regreen.bot.dashboard.lists import job_address
from regreen.bot.dashboard.reader import Reader
from regreen.errors import ConfigError, UserError
from regreen.listing import Look, Month, Shelf, Sought
from regreen.repo_config import BudgetConfig, parse_repo_config

_SPAN = timedelta(days=30)
_MARKS = 14
_DEFAULT = BudgetConfig()


def overview(shelf: Shelf, reader: Reader, now: datetime, web_url: str) -> Safe:
    """Every repository on one line, above them what the operator has to know, below them what goes on now."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    months = [m for m in shelf.months(today.replace(day=1), today) if m.repo and reader.may_see(m.repo)]  # fmt: skip
    looks = [one for one in shelf.looks(now - _SPAN) if reader.may_see(one.repo)]
    red = [(name, value) for name, value in shelf.regressions() if reader.may_see(name.rpartition("/")[0])]  # fmt: skip
    seen: dict[str, list[Look]] = {}
    for one in looks:
        seen.setdefault(one.repo, []).append(one)
    known = {repo: Month(repo) for repo in seen} | {m.repo: m for m in months}
    configs = dict(shelf.items("config"))
    rows = [
        _row(configs.get(repo), month, seen.get(repo, []), red, web_url)
        for repo, month in sorted(known.items())
    ]
    head = ("repository", "main, 30 days", "open regressions", "reviews", "repairs", "bisections", "cost this month", "today")  # fmt: skip
    shown = table(head, rows, caption="Repositories") if rows else _first_steps(reader, web_url)
    total = sum(m.usd for m in months)
    spent = tag("p", f"All together ${total:,.2f} this month.", class_="quiet") if months else ""
    return text(_warning(shelf, reader), shown, spent, _going_on(shelf, reader))


def _row(
    config: str | None,
    month: Month,
    looks: list[Look],
    red: list[tuple[str, str]],
    web_url: str,
) -> tuple[Content, ...]:
    repo, budget = month.repo, _budget(config)
    narrowed = "?repo=" + quote(repo, safe="")
    issues = [_regression(name, value, web_url) for name, value in red if name.rpartition("/")[0] == repo]  # fmt: skip
    return (
        link(f"/jobs{narrowed}", repo),
        _health(looks, bool(issues)),
        text(*issues) if issues else "none",
        link(f"/reviews{narrowed}", month.reviews) if month.reviews else 0,
        link(f"/fixes{narrowed}", month.fixes) if month.fixes else 0,
        link(f"/bisections{narrowed}", month.bisections) if month.bisections else 0,
        link(f"/ledger{narrowed}", _of(month.usd, budget.usd_per_month)),
        _of(month.usd_today, budget.usd_per_day),
    )


def _health(looks: list[Look], is_red: bool) -> Safe:
    """How main is now, and a mark for each of the last looks, the newest on the right."""
    if not looks:
        return state("red") if is_red else tag("span", "no schedule looks at it", class_="quiet")
    marks = [
        tag("a", tag("span", f"{word} ", when(look.at), class_="hidden"), href=job_address(look.job), title=f"{word}: {look.note[:80]}", class_=word)
        for look in reversed(looks[:_MARKS])
        for word in [_word(look)]
    ]  # fmt: skip
    return text(state(_word(looks[0])), " ", tag("span", *marks, class_="strip"))


def _word(look: Look) -> str:
    if look.state in {"waiting", "running"}:
        return "running"
    if look.state != "done":
        return look.state
    first = look.note.partition(":")[0].split(" ")[0]
    return {"still": "red", "failed": "flaky"}.get(first, first or "done")


def _regression(name: str, value: str, web_url: str) -> Safe:
    repo, _, schedule = name.rpartition("/")
    noted = json.loads(value)
    issue = str(noted.get("issue", ""))
    shown = f"{schedule}: #{issue}"
    if web_url and issue.isdecimal():
        return tag("div", tag("a", shown, href=f"{web_url}/{quote(repo)}/issues/{issue}", rel="noreferrer"))  # fmt: skip
    return tag("div", shown)


def _of(usd: float, budget: float | None) -> str:
    return f"${usd:,.2f}" if budget is None else f"${usd:,.2f} of ${budget:,.2f}"


def _budget(kept: str | None) -> BudgetConfig:
    """The budget by the configuration last read from a repository, the default where it has none."""
    try:
        return parse_repo_config(kept).budget if kept else _DEFAULT
    except (ConfigError, UserError):  # an older version took it
        return _DEFAULT


def _first_steps(reader: Reader, web_url: str) -> Safe:
    """What somebody does who sees this page for the first time."""
    if reader.reads is not None:
        told = "No repository yet: none that you may read on GitHub has used Regreen. Ask its owner to install the App there."
        return tag("p", told, class_="none")
    installs = link(f"{web_url}/settings/installations", "Install the App") if web_url else "Install the App"  # fmt: skip
    steps = (
        text(installs, " on a repository."),
        text("Open a pull request there, or write ", tag("code", "/help"), " under an issue: within a second a delivery stands under ", link("/deliveries", "Deliveries"), "."),
        text("Nothing comes? GitHub has to reach ", tag("code", "/webhooks/github"), " at this server's public address; the App's page on GitHub lists under Advanced what it tried. ", tag("code", "regreen doctor"), " checks the rest."),
    )  # fmt: skip
    return text(tag("p", "No repository yet."), tag("ol", *(tag("li", step) for step in steps)))


def _warning(shelf: Shelf, reader: Reader) -> Safe:
    """What the operator has to know first: without a sandbox nothing is repaired or bisected."""
    missing = shelf.get(*SANDBOX_NOTE)
    if not missing:
        return Safe("")
    told = f": {missing}" if reader.reads is None else "."
    return tag("p", f"No repairs and no bisections, reviews run no tests{told}", class_="warn")


def _going_on(shelf: Shelf, reader: Reader) -> Safe:
    running = shelf.list_jobs(Sought(repos=reader.repos, state="running", limit=20)).rows
    waiting = shelf.list_jobs(Sought(repos=reader.repos, state="waiting", limit=20)).rows
    rows = (
        (link(job_address(j.id), j.kind), place(j.repo, j.number), state(j.state), j.progress or j.note, when(j.created))
        for j in (*running, *waiting)
    )  # fmt: skip
    head = ("job", "where", "state", "what", "ordered")
    return tag("section", tag("h2", "Going on now"), table(head, rows, caption="Jobs going on", none="Nothing."), data_live="yes", aria_label="Going on now")  # fmt: skip
