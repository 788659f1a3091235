"""Rust."""

from __future__ import annotations

from regreen.domain.languages import Language
from regreen.languages.quarantine import MarkerAbove
from regreen.languages.toolchains import TableProjects

RUST = Language(
    title="Rust",
    files=frozenset({"rust"}),
    manifests=frozenset({"Cargo.toml"}),
    gaps=frozenset(
        {"contracts", "syntax tree", "checkers", "bug patterns", "data flow", "conventions", "assertions",
         "test results", "coverage", "edits", "mutants", "warm engine", "dependencies"}
    ),
    projects=TableProjects("rust"),
    quarantine=MarkerAbove("#[ignore = {reason}]"),
)  # fmt: skip
