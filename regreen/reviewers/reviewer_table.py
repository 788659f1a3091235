"""The table of reviewers: which reads a change for which dimension. A new reviewer is one line here."""

from __future__ import annotations

from regreen.domain.models import Dimension
from regreen.reviewers.analyzers.added_secrets import AddedSecrets
from regreen.reviewers.analyzers.bug_patterns import BugPatterns
from regreen.reviewers.analyzers.compiled.code_patterns import CodePatterns
from regreen.reviewers.analyzers.compiled.compiled_contracts import GoContracts, ScriptContracts
from regreen.reviewers.analyzers.compiled.compiler_checks import CompilerChecks
from regreen.reviewers.analyzers.compiled.weakened_code import WeakenedCode
from regreen.reviewers.analyzers.correctness import Pyright, Ruff
from regreen.reviewers.analyzers.coverage import Coverage
from regreen.reviewers.analyzers.dependency_changes import DependencyChanges
from regreen.reviewers.analyzers.own_linters import OwnLinters
from regreen.reviewers.analyzers.python_contracts import PythonContracts
from regreen.reviewers.analyzers.python_security import PythonSecurity
from regreen.reviewers.analyzers.script_checkers import ScriptCheckers
from regreen.reviewers.analyzers.script_names import ScriptNames
from regreen.reviewers.analyzers.script_security import ScriptSecurity
from regreen.reviewers.analyzers.style import Conventions
from regreen.reviewers.analyzers.syntax import BrokenSyntax
from regreen.reviewers.analyzers.vacuous_tests import VacuousTests
from regreen.reviewers.analyzers.workflows import WorkflowRisks
from regreen.reviewers.context import Reviewer
from regreen.reviewers.model.model_reviewer import ModelReviewer
from regreen.reviewers.model.related_code import find_related_code

ReviewerTable = tuple[tuple[Dimension, Reviewer], ...]

REVIEWERS: ReviewerTable = (
    ("correctness", Ruff()),
    ("correctness", Pyright()),
    ("correctness", BugPatterns()),
    ("correctness", BrokenSyntax()),
    ("correctness", PythonContracts()),
    ("correctness", ScriptContracts()),
    ("correctness", GoContracts()),
    ("correctness", ScriptCheckers()),
    ("correctness", ScriptNames()),
    ("correctness", CompilerChecks()),
    ("correctness", CodePatterns(security=False)),
    ("correctness", WeakenedCode()),
    ("correctness", VacuousTests()),
    ("correctness", ModelReviewer(related=find_related_code)),
    ("security", PythonSecurity()),
    ("security", ScriptSecurity()),
    ("security", CodePatterns(security=True)),
    ("security", AddedSecrets()),
    ("security", DependencyChanges()),
    ("security", WorkflowRisks()),
    ("style", Conventions()),
    ("style", OwnLinters()),
    ("coverage", Coverage()),
)
