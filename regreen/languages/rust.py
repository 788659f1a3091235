"""Rust."""

from __future__ import annotations

from regreen.domain.languages import Language
from regreen.languages.quarantine import MarkerAbove

RUST = Language(
    title="Rust",
    files=frozenset({"rust"}),
    manifests=frozenset({"Cargo.toml"}),
    gaps=frozenset(
        {"contracts", "syntax tree", "checkers", "bug patterns", "data flow", "conventions", "assertions",
         "test results", "coverage", "edits", "mutants", "warm engine"}
    ),
    quarantine=MarkerAbove("#[ignore = {reason}]"),
)  # fmt: skip
