"""The result of planning a workflow: jobs, their steps and services, and what prevents running them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from regreen.actions.expressions.evaluation import Value

Files = Callable[[str], bytes | None]

WORKSPACE = "/work"


@dataclass(frozen=True)
class UnsupportedFeature:
    """What stands in the way of running a job here, and why; `step` is its number, None for the job itself."""

    what: str
    why: str
    step: int | None = None


@dataclass(frozen=True)
class ServiceContainer:
    """A service container that a job asks for: its variables, its ports as the workflow writes them."""

    name: str
    image: str
    env: dict[str, str] = field(default_factory=dict)
    ports: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlannedStep:
    """One step. `run` and `condition` keep as `${{ }}` what only the run itself knows.

    `kind` "run" is a command of the workflow's own, "setup" the script of an action (`run` may be empty), "skip"
    what is left out. `shell` is the command line that GitHub uses; `continues` says that its failure is let pass.
    `own_env` names what the step itself declares: GITHUB_ENV written earlier yields to that, not to the job's.
    `inputs` are what `with:` gives. `calls` is the text of the scripts and rules of the tree that `run` calls.
    `asks` is what of an action's script installs from the tree, or what the workflow chose. `why` explains a setup or a skip; `outputs` are the assumed outputs of an action that is left out.
    """

    number: int
    name: str
    kind: Literal["run", "setup", "skip"]
    run: str
    shell: str
    env: dict[str, str]
    working_directory: str
    id: str = ""
    uses: str = ""
    condition: str = "success()"
    continues: bool = False
    timeout_minutes: float | None = None
    why: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    python: str | None = None
    pythons: tuple[str, ...] = ()
    own_env: tuple[str, ...] = ()
    inputs: dict[str, str] = field(default_factory=dict)
    calls: str = ""
    asks: str = ""


@dataclass(frozen=True)
class JobPlan:
    """How one job, one matrix cell of it, would be run again. `skipped` holds the job's condition where it is false."""

    id: str
    name: str
    matrix: dict[str, Value]
    supported: bool
    unsupported: tuple[UnsupportedFeature, ...]
    image: str
    services: tuple[ServiceContainer, ...]
    steps: tuple[PlannedStep, ...]
    runs_on: str = ""
    timeout_minutes: float | None = None
    skipped: str = ""
    needs: tuple[str, ...] = ()

    @property
    def python(self) -> str | None:
        """The interpreter that the job's setup steps ask for; the last one wins, as on GitHub."""
        return next((step.python for step in reversed(self.steps) if step.python), None)


def no_files(path: str) -> bytes | None:
    """A repository of which nothing is known."""
    del path
    return None
