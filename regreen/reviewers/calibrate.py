"""How sure to be of a claim: a small logistic model over what was seen, never a number from a model's mouth."""

from __future__ import annotations

import math

from regreen.models import Proof, Signals, Verdict

# The prior: of the issues that one of twelve review tools raised alone .20 held, of those that two others raised
# too .62; a reader that tries to refute and cannot is worth about as much again. A test that fails on the head and
# passes on the base settles it.
_ALONE = math.log(0.20 / 0.80)
_AGREED = math.log(0.62 / 0.38) - _ALONE
_THIRD = 0.5
_VERDICT: dict[Verdict, float] = {"holds": 2.4, "unsure": -0.6, "refuted": -2.6, "unread": 0.0}
_PROOF: dict[Proof, float] = {"proven": 5.0, "red_on_head": 1.2, "not_run": 0.0, "disproven": -4.0}


def confidence(signals: Signals) -> float:
    """The probability that a maintainer who tries it agrees with the claim, between .01 and .99."""
    logit = _ALONE
    if signals.readers >= 2:
        logit += _AGREED + (_THIRD if signals.readers >= 3 else 0.0)
    # A verdict weighs by how certain its reader is: none at .5, whole at .9 and above.
    weight = min(1.0, max(0.0, (signals.certainty - 0.5) / 0.4))
    logit += _VERDICT[signals.verdict] * (weight if signals.verdict != "unread" else 1.0)
    logit += 0.8 * (signals.sure - 0.6)
    logit += _PROOF[signals.proof]
    return min(0.99, max(0.01, 1 / (1 + math.exp(-logit))))
