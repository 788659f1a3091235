"""Python."""

from __future__ import annotations

from regreen.domain.languages import Language
from regreen.languages.python.dependencies import PythonDependencies
from regreen.languages.python.edits import make_edits, make_mutants
from regreen.languages.python.project_setup import PythonProjects
from regreen.languages.python.test_tools import PYTHON_TESTS, PythonCoverage, PythonWarmDriver
from regreen.languages.quarantine import MarkerAbove

PYTHON = Language(
    title="Python",
    files=frozenset({"python"}),
    manifests=frozenset({"pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "requirements.txt"}),
    gaps=frozenset(),
    projects=PythonProjects(),
    tests=PYTHON_TESTS,
    coverage=PythonCoverage(),
    make_edits=make_edits,
    make_mutants=make_mutants,
    warm_driver=PythonWarmDriver(),
    dependencies=PythonDependencies(),
    quarantine=MarkerAbove("@pytest.mark.skip(reason={reason})", needs="import pytest"),
)
