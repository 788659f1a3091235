"""The one table of reviewers: what reads a change, and for which dimension. A new one is one line here."""

from __future__ import annotations

from regreen.models import Dimension
from regreen.reviewers.context import Reviewer
from regreen.reviewers.contracts import Contracts
from regreen.reviewers.correctness import Pyright, Ruff
from regreen.reviewers.coverage import Coverage
from regreen.reviewers.dependencies import Dependencies
from regreen.reviewers.go_contracts import GoContracts
from regreen.reviewers.mistakes import Mistakes
from regreen.reviewers.own_linters import OwnLinters
from regreen.reviewers.parsing import Parsing
from regreen.reviewers.readers import Readers
from regreen.reviewers.related import related
from regreen.reviewers.script_contracts import ScriptContracts
from regreen.reviewers.secrets import Secrets
from regreen.reviewers.security import Security
from regreen.reviewers.style import Conventions
from regreen.reviewers.vacuous import Vacuous
from regreen.reviewers.workflows import Workflows

Table = tuple[tuple[Dimension, Reviewer], ...]

REVIEWERS: Table = (
    ("correctness", Ruff()),
    ("correctness", Pyright()),
    ("correctness", Mistakes()),
    ("correctness", Parsing()),
    ("correctness", Contracts()),
    ("correctness", ScriptContracts()),
    ("correctness", GoContracts()),
    ("correctness", Vacuous()),
    ("correctness", Readers(related=related)),
    ("security", Security()),
    ("security", Secrets()),
    ("security", Dependencies()),
    ("security", Workflows()),
    ("style", Conventions()),
    ("style", OwnLinters()),
    ("coverage", Coverage()),
)
