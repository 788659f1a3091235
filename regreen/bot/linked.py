"""The issues that a pull request says it mends: part of what its author means to do."""

from __future__ import annotations

import logging
import re

from regreen.bot.desk import Desk
from regreen.errors import OutsideError, UserError
from regreen.forge import ISSUES, GitHub, Pull
from regreen.reviewers.shorten import shortened
from regreen.webhooks.events import Where

_MENDS = re.compile(r"\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?):?\s+#(\d{1,9})\b", re.IGNORECASE)
_MOST = 2
_ISSUE_ROOM, _BODY_ROOM = 1500, 4000
_log = logging.getLogger(__name__)


def intent(desk: Desk, where: Where, pull: Pull) -> str:
    """The description with the linked issues' words behind it, within what a review reads of it.

    An issue that cannot be read is left out: intent helps a review, and stops none.
    """
    numbers = list(dict.fromkeys(int(n) for n in _MENDS.findall(pull.body[:20_000])))[:_MOST]
    if not numbers:
        return pull.body
    github = desk.github(where, ISSUES)
    issues = [text for n in numbers if n != pull.number and (text := _issue(github, n))]
    linked = "\n\n".join(issues)
    said = shortened(pull.body, _BODY_ROOM - len(linked) - 2)
    return f"{said}\n\n{linked}".strip()


def _issue(github: GitHub, number: int) -> str:
    try:
        issue = github.issue_text(number)
    except (OutsideError, UserError) as error:
        _log.info("issue %s#%d is not read: %s", github.repo, number, error)
        return ""
    return shortened(f"Issue #{number}: {issue.title}\n{issue.body}", _ISSUE_ROOM)
