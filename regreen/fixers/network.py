"""A job that cannot work without a network: how it is told, and its trial with one where that is allowed."""

from __future__ import annotations

import re
from dataclasses import replace

from regreen.codebase.trial import Trial

ALLOWED_BY = "tests.allow_network"

# What names and addresses come to in a box without a network; a refused connection is no sign: that is localhost.
_SIGN = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Could not resolve host|nodename nor servname"
    r"|Network is unreachable|network is unreachable|\bENETUNREACH\b|\bEAI_AGAIN\b|\bgetaddrinfo ENOTFOUND\b|NameResolutionError"
    r"|failed to lookup address information|dial tcp: lookup [^\s:]{1,255}|unable to resolve host address"
    r"|UnknownHostException|Temporary failure resolving"
)


def sign_of_want(output: str) -> str:
    """The first line that shows a program looking for a network in vain; "" where there is none."""
    found = _SIGN.search(output)
    if found is None:
        return ""
    start = output.rfind("\n", 0, found.start()) + 1
    end = output.find("\n", found.end())
    return output[max(start, found.start() - 200) : end if end >= 0 else None].strip()[:300]


def is_for_want_of_network(message: str) -> bool:
    """Whether a failure's own message says so."""
    return _SIGN.search(message) is not None


def with_network(trial: Trial) -> Trial:
    """The same trial with a network while it runs; what people are shown says so."""
    *shell, script = trial.command
    if "RG_OFFLINE" in script:
        script = f"export RG_NETWORK=1\n{script}"
    title = (
        f"{trial.shown}\n# with a network: it cannot work without one, and {ALLOWED_BY} allows it"
    )
    return replace(
        trial,
        command=(*shell, script),
        title=title,
        limits=replace(trial.limits, network=True),
    )
