"""Options that several commands have, with the same words in each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def answered_as(name: str, *shapes: str) -> Callable[[_Command], _Command]:
    """`--format`; the first shape is the default."""
    kind = click.Choice(shapes)
    return click.option("--format", name, type=kind, default=shapes[0], help="How the answer is printed.")  # fmt: skip


def run_in(name: str) -> Callable[[_Command], _Command]:
    """`--sandbox`."""
    kind = click.Choice(["auto", "docker", "bwrap"])
    return click.option("--sandbox", name, type=kind, default="auto", help="Where foreign code runs; auto: Docker, else bubblewrap.")  # fmt: skip
