"""Java."""

from __future__ import annotations

from regreen.domain.languages import Language
from regreen.languages.quarantine import MarkerAbove
from regreen.languages.toolchains import TableProjects

JAVA = Language(
    title="Java",
    files=frozenset({"java"}),
    manifests=frozenset({"pom.xml", "build.gradle", "build.gradle.kts"}),
    gaps=frozenset(
        {"contracts", "syntax tree", "checkers", "bug patterns", "data flow", "conventions", "assertions",
         "test results", "coverage", "edits", "mutants", "warm engine", "dependencies"}
    ),
    projects=TableProjects("java"),
    quarantine=MarkerAbove("@org.junit.jupiter.api.Disabled({reason})"),
)  # fmt: skip
