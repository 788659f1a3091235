"""Writes a finished review on its pull request, with the token of a workflow; for `regreen review --post`."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regreen.bot import messages
from regreen.bot.flows.review import post_overflow
from regreen.bot.messages.markup import has_marker
from regreen.domain.errors import UserError
from regreen.domain.github import GitHub, GitHubServer, NotAllowed, ValidationFailed
from regreen.domain.models import Review

_MAX_EVENT_BYTES = 25 * 1024**2
# Who writes with a workflow's token: https://docs.github.com/en/actions/concepts/security/github_token
WORKFLOW_LOGIN = "github-actions[bot]"


@dataclass(frozen=True, slots=True)
class PostTarget:
    """Where a review is written, and with what."""

    repo: str
    number: int
    head: str
    api_url: str
    token: str = field(repr=False)


def read_target() -> PostTarget:
    """The pull request that the workflow runs for.

    Raises:
        UserError: a variable or the event's pull request is missing.
    """
    names = ("GITHUB_TOKEN", "GITHUB_REPOSITORY", "GITHUB_EVENT_PATH")
    if missing := [name for name in names if not os.environ.get(name)]:
        message = f"--post needs {', '.join(missing)}: run it in a workflow for a pull request"
        raise UserError(message)
    try:
        pull = _read_pull()
        number, head = int(pull["number"]), str(pull["head"]["sha"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = "--post: the workflow's event has no pull request; use `on: pull_request`"
        raise UserError(message) from error
    api_url = os.environ.get("GITHUB_API_URL") or GitHubServer().api_url
    return PostTarget(
        os.environ["GITHUB_REPOSITORY"], number, head, api_url, os.environ["GITHUB_TOKEN"]
    )


def is_fork_event() -> bool:
    """Whether the workflow runs for a pull request whose branch is in another repository."""
    try:
        pull = _read_pull()
        return bool(
            pull["head"]["repo"] is None
            or pull["head"]["repo"]["full_name"] != pull["base"]["repo"]["full_name"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _read_pull() -> dict[str, Any]:
    with Path(os.environ["GITHUB_EVENT_PATH"]).open("rb") as file:
        pull: dict[str, Any] = json.loads(file.read(_MAX_EVENT_BYTES))["pull_request"]
    return pull


def post_review(github: GitHub, target: PostTarget, review: Review) -> str:
    """Post the findings that do not stand on the pull request yet; return what happened, in a sentence.

    The review is pinned to the pull request's head: what a workflow checks out by default is a merge commit that
    GitHub accepts no review for.

    Raises:
        OutsideError: GitHub cannot be reached, or failed.
    """
    number = target.number
    try:
        ours = [one.body for one in github.review_comments(number) if one.ours]
        fresh = tuple(
            finding
            for finding in review.findings
            if not any(has_marker(body, "finding", finding.fingerprint) for body in ours)
        )
        if not fresh:
            return "nothing new to post"
        new = replace(review, findings=fresh)
        names = "\n".join(sorted(finding.fingerprint for finding in fresh))
        digest = hashlib.sha256(names.encode()).hexdigest()[:16]
        mark = messages.make_marker("review", number, target.head, digest)
        body = messages.review_body(new)
        again = messages.reproduce_review(review)
        comments = [messages.finding_comment(finding, again) for finding in fresh]
        try:
            posted = github.post_review(number, target.head, mark, body, comments)
            post_overflow(github, number, replace(new, head=target.head))
        except ValidationFailed:
            # GitHub does not say which comment it rejects; all findings must still be visible.
            text = messages.review_without_comments(new)
            github.post_review(number, target.head, mark, text, [])
            return "GitHub refused the inline comments; the findings are in the review's text"
    except NotAllowed as error:
        return f"the token may not write reviews, as on a fork's pull request; nothing was posted ({error})"
    except ValidationFailed as error:
        return f"GitHub refused the review of {target.head[:12]}; nothing was posted ({error})"
    if not posted:
        return f"nothing new to post: a review of {target.head[:12]} has these findings"
    return f"posted {len(fresh)} of {len(review.findings)} findings on #{number}"
