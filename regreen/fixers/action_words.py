"""The words in which the meaning of an action is said."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Inputs = Mapping[str, str]
Files = Callable[[str], bytes | None]


@dataclass(frozen=True)
class Meaning:
    """What an action comes to.

    `run` is a bash script that does the same, for the network phase; `outputs` are what later steps may ask
    for; `python` is the interpreter asked for; `why` explains a skip or a refusal. `asks` is what of `run` installs
    from the tree, or what the workflow chose: the rest is ours.
    """

    kind: Literal["setup", "skip", "unsupported"]
    why: str
    run: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None
    pythons: tuple[str, ...] = ()
    asks: str = ""


def given(inputs: Inputs, *names: str) -> str:
    """The first of these inputs that says something."""
    return next((inputs[name].strip() for name in names if inputs.get(name, "").strip()), "")


Known = Callable[[Inputs, Files], Meaning]
"""An action that is known: its inputs and the tree's files in, its meaning out."""

PIP = "python -m pip install --quiet --disable-pip-version-check"


def unless(tool: str) -> str:
    """Bash that goes on only where a tool is missing."""
    return f"type {tool} >/dev/null 2>&1 || "


def exactly(version: str) -> str:
    """The version as pip's requirement; "" where it is a range or a word."""
    return f"=={version}" if re.fullmatch(r"\d+(?:\.\d+)+", version) else ""
