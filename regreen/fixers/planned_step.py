"""What every planned step has, whatever it does: its number, name, condition, environment, place."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from regreen.fixers.expressions import UNKNOWN, Value, to_string, truthy
from regreen.fixers.job_plan import WORKSPACE, Step
from regreen.fixers.plan_context import Context, Mappings, deep_value, text_of


@dataclass(frozen=True)
class Common:
    """What every step has, whatever it does."""

    number: int
    name: str
    env: dict[str, str]
    own: tuple[str, ...]
    id: str
    condition: str
    continues: bool
    timeout: float | None

    def step(
        self,
        kind: Literal["run", "setup", "skip"],
        *,
        run: str = "",
        shell: str = "",
        directory: str = ".",
        uses: str = "",
        why: str = "",
        outputs: dict[str, str] | None = None,
        python: str | None = None,
        pythons: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        inputs: dict[str, str] | None = None,
        calls: str = "",
        asks: str = "",
    ) -> Step:
        """The step, with what kind it is and what it does."""
        return Step(
            number=self.number,
            name=self.name,
            kind=kind,
            run=run,
            shell=shell,
            env=self.env | (env or {}),
            own_env=self.own,
            working_directory=directory,
            id=self.id,
            uses=uses,
            condition=self.condition,
            continues=self.continues,
            timeout_minutes=self.timeout,
            why=why,
            outputs=outputs or {},
            python=python,
            pythons=pythons,
            inputs=inputs or {},
            calls=calls,
            asks=asks,
        )


def env_context(env: Mapping[str, str], written: bool) -> Value:
    """The `env` context of a step; after somebody wrote GITHUB_ENV, names that nobody declared are unknown."""
    values: dict[str, Value] = {
        name: UNKNOWN if "${{" in text else text for name, text in env.items()
    }
    return {"*": UNKNOWN, **values} if written else values


def default_name(step: Mappings, context: Context) -> str:
    """How GitHub calls a step that has no name."""
    if "run" in step:
        lines = text_of(step.get("run"), context).strip().splitlines()
        return f"Run {lines[0]}" if lines else "Run"
    return f"Run {to_string(step.get('uses'))}"


def continues(value: Value, context: Context) -> bool:
    """Whether a failure of it is let pass, as far as that is known."""
    found = deep_value(value, context)
    return truthy(found) if found is not UNKNOWN else False


def minutes(value: Value, context: Context) -> float | None:
    """Its `timeout-minutes`."""
    found = deep_value(value, context)
    return found if isinstance(found, float) and not isinstance(found, bool) else None


def inside(directory: str) -> str:
    """A working directory, relative to the workspace where it lies in it."""
    path = directory.strip() or "."
    if path == WORKSPACE or path.startswith(f"{WORKSPACE}/"):
        path = path[len(WORKSPACE) :].lstrip("/") or "."
    return posixpath.normpath(path)
