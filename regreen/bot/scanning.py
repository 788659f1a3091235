"""A review's findings handed to GitHub's code scanning, where the repository wants them there."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import replace

from regreen.bot.desk import Desk
from regreen.codebase.redaction import redact_all
from regreen.errors import OutsideError, UserError
from regreen.forge import CODE_SCANNING, Pull
from regreen.models import Finding, Review
from regreen.reviewers.sarif import sarif
from regreen.webhooks.events import Where


def hand_over(desk: Desk, where: Where, pull: Pull, found: Review, *, standing: Sequence[Finding], key: str) -> str:  # fmt: skip
    """Upload once for each review; why it was refused, or "".

    What still stands from earlier pushes goes with it: an upload replaces the one before, and closes what it lacks.
    """
    if desk.store.get("code-scanning", key) is not None:
        return ""
    everything = replace(found, findings=(*found.findings, *standing))
    whole = json.dumps(redact_all(sarif(everything)))
    packed = base64.b64encode(gzip.compress(whole.encode(), mtime=0)).decode()
    try:
        github = desk.github(where, CODE_SCANNING)
        github.upload_sarif(pull.head_sha, f"refs/pull/{pull.number}/head", packed)
    except (OutsideError, UserError) as error:
        # the review is said all the same: a repository without code scanning must not lose it
        return f"Code scanning did not take the findings: {error}"
    desk.store.put("code-scanning", key, pull.head_sha)
    return ""
