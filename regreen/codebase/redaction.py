"""Keeps secrets out of whatever leaves: prompts, comments, kept results, logs."""

from __future__ import annotations

import re
from typing import Any

from regreen.codebase import secret_patterns

_HIDDEN = "[hidden]"
# Each pattern is linear: one class repeated once, no alternatives inside a repetition.
_SECRETS = (
    re.compile(r"gh[pousr]_[A-Za-z0-9_.\-]{16,}"),  # GitHub, old and new ("ghs_APPID_JWT") forms
    re.compile(r"github_pat_[A-Za-z0-9_]{20,}"),
    re.compile(r"sk-ant-[A-Za-z0-9_\-]{16,}"),
    re.compile(r"sk-[A-Za-z0-9_\-]{32,}"),
    re.compile(r"AKIA[0-9A-Z]{16}"),
    re.compile(r"xox[abposr]-[A-Za-z0-9\-]{10,}"),
    re.compile(r"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"),  # JWT
    # credentials in a URL; a template's {user}:{password} is code, and none
    re.compile(r"(?<=://)[^/\s:@{}<>]{1,256}:(?![$%<{*])[^/\s@{}<>]{1,256}(?=@)"),
    re.compile(r"(?i)(?<=authorization: )[^\r\n]{8,512}"),
)
_PEM = "-----BEGIN "


def redact(text: str) -> str:
    """The text without credentials: those of a known shape, and random values that a line calls secret."""
    return secret_patterns.redact(redact_known(text))


def redact_known(text: str) -> str:
    """The text without credentials of a known shape: quick enough for logs of many megabytes."""
    for pattern in _SECRETS:
        text = pattern.sub(_HIDDEN, text)
    return _without_keys(text)


def redact_all(value: Any) -> Any:
    """A JSON value with every text in it redacted."""
    match value:
        case str():
            return redact(value)
        case dict():
            return {key: redact_all(one) for key, one in value.items()}
        case list() | tuple():
            return [redact_all(one) for one in value]
        case _:
            return value


def _without_keys(text: str) -> str:
    """Cut PEM private keys, by search and not by a pattern that could run long on hostile text."""
    at = text.find(_PEM)
    while at >= 0:
        head_end = text.find("-----", at + len(_PEM))
        if head_end >= 0 and "PRIVATE KEY" in text[at:head_end]:
            end = text.find("-----END ", head_end)
            tail = text.find("-----", end + 9) if end >= 0 else -1
            stop = tail + 5 if tail >= 0 else len(text)
            text = text[:at] + _HIDDEN + text[stop:]
            at = text.find(_PEM, at + len(_HIDDEN))
        else:
            at = text.find(_PEM, at + len(_PEM))
    return text
