"""Plans the steps of one job: scripts, actions, composite actions, each seeing what those before it leave."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from regreen.fixers import actions, artifacts
from regreen.fixers.called import called
from regreen.fixers.expressions import (
    UNKNOWN,
    Node,
    Value,
    from_plain,
    show,
    to_string,
    value_of,
)
from regreen.fixers.job_plan import WORKSPACE, Files, JobPlan, Step, Unsupported
from regreen.fixers.plan_context import (
    Context,
    Mappings,
    deep_value,
    environment,
    is_false,
    joined,
    mapping,
    need_mapping,
    text_of,
    unresolved,
)
from regreen.fixers.plan_context import (
    asked as _asked,
)
from regreen.fixers.planned_step import (
    Common,
    continues,
    default_name,
    env_context,
    inside,
    minutes,
)
from regreen.fixers.workflow_yaml import WorkflowError, load

BASH_UNSET = "bash -e {0}"
BASH = "bash --noprofile --norc -eo pipefail {0}"
_SHELLS = {
    "": BASH_UNSET,
    "bash": BASH,
    "sh": "sh -e {0}",
    "python": "python {0}",
    "pwsh": "pwsh -command \". '{0}'\"",
}
_TESTLIKE = re.compile(
    r"pytest|unittest|\btest|\btox\b|\bnox\b|ruff|flake8|mypy|pyright|pylint|black|lint|check|coverage|hatch|pre-commit|make|"
    r"\bcargo\b|\bgo (?:build|vet)|npm run|yarn|pnpm|jest|vitest|mocha|tsc|build",
    re.IGNORECASE,
)
_RUNS_CHECKS = re.compile(r"pre-commit run|ruff |black ")
_MAX_DEPTH = 10  # of composite actions and reusable workflows within each other


def looks_like_a_test(step: Step) -> bool:
    """Whether a step tests, lints or builds, as far as its command tells."""
    return bool(_TESTLIKE.search(step.run)) or bool(
        re.search(r"test|lint|check", step.name, re.IGNORECASE)
    )


def runs_checks(step: Step) -> bool:
    """Whether an action's own script checks something: pre-commit, ruff, black."""
    return step.kind == "setup" and bool(_RUNS_CHECKS.search(step.run))


@dataclass
class Draft:
    """A job while its steps are being planned."""

    context: Context
    env: dict[str, str]
    shell: str
    directory: str
    steps: list[Step] = field(default_factory=list)
    blocked: list[Unsupported] = field(default_factory=list)
    writes_env: bool = False
    checkouts: int = 0


class StepPlanner:
    """Plans steps one after the other; each sees the ids and the environment of those before it."""

    def __init__(
        self,
        draft: Draft,
        files: Files,
        *,
        prefix: str = "",
        depth: int = 0,
        gate: Node | None = None,
        earlier: Sequence[JobPlan] = (),
    ) -> None:
        self._draft = draft
        self._files = files
        self._prefix = prefix
        self._depth = depth
        self._gate = gate
        self._earlier = earlier

    def add(self, step: Mappings) -> None:
        """Plan one step of the workflow or of a composite action."""
        draft = self._draft
        context = draft.context
        asked = _asked(step.get("if"), context)
        if self._gate is not None:
            asked = joined(self._gate, asked)
        env = environment(step.get("env"), context, draft.env)
        inner = draft.env | env
        context = {**context, "env": env_context(inner, draft.writes_env)}
        id_ = to_string(step.get("id"))
        common = Common(
            number=len(draft.steps) + 1,
            name=text_of(step.get("name"), context) or default_name(step, context),
            env=inner,
            own=tuple(env),
            id=f"{self._prefix}{id_}" if id_ else "",
            condition=show(asked),
            continues=continues(step.get("continue-on-error"), context),
            timeout=minutes(step.get("timeout-minutes"), context),
        )
        if is_false(asked):
            self._skip(
                common,
                to_string(step.get("uses")),
                f"its condition is false: {to_string(step.get('if'))}",
            )
            self._know(id_, {"outputs": {}, "outcome": "skipped", "conclusion": "skipped"})
        elif "run" in step:
            self._run(step, common, context, id_)
        elif "uses" in step:
            self._uses(step, common, context, id_, asked)
        else:
            message = f"step {common.number}: neither `run` nor `uses`"
            raise WorkflowError(message)

    def _run(self, step: Mappings, common: Common, context: Context, id_: str) -> None:
        draft = self._draft
        script = text_of(step.get("run"), context, keep=True)
        shell = text_of(step.get("shell"), context) or draft.shell
        line = _SHELLS.get(shell, shell if "{0}" in shell else "")
        if not line or shell.startswith(("pwsh", "powershell", "cmd")):
            draft.blocked.append(
                Unsupported(f"shell: {shell}", "this shell is not to be had here", common.number)
            )
        directory = text_of(step.get("working-directory"), context) or draft.directory
        draft.blocked += [
            Unsupported(name, "comes from another job", common.number)
            for name in unresolved(script)
        ]
        where = inside(directory)
        calls = called(script, where, self._files)
        draft.steps.append(
            common.step("run", run=script, shell=line or shell, directory=where, calls=calls)
        )
        if re.search(r"GITHUB_ENV|set-env|::set-env", script):
            draft.writes_env = True
        self._know(id_, {"outputs": {"*": UNKNOWN}, "outcome": UNKNOWN, "conclusion": UNKNOWN})

    def _uses(
        self, step: Mappings, common: Common, context: Context, id_: str, asked: Node
    ) -> None:
        uses = text_of(step.get("uses"), context)
        given = {
            key.lower(): text_of(value, context) for key, value in mapping(step.get("with")).items()
        }
        if uses.startswith("./"):
            self._local(uses, given, common, id_, asked)
            return
        meant = self._artifact(uses, given) or actions.meaning(uses, given, self._files)
        draft = self._draft
        if meant.kind == "unsupported":
            draft.blocked.append(Unsupported(uses, meant.why, common.number))
            self._skip(common, uses, meant.why)
            self._know(
                id_, {"outputs": {"*": UNKNOWN}, "outcome": "success", "conclusion": "success"}
            )
            return
        outputs: Value = (
            from_plain(meant.outputs) if meant.outputs or meant.kind == "setup" else {"*": UNKNOWN}
        )
        self._know(id_, {"outputs": outputs, "outcome": "success", "conclusion": "success"})
        if meant.kind == "skip":
            self._skip(common, uses, meant.why, dict(meant.outputs), given)
            return
        draft.env |= dict(meant.env)
        draft.writes_env = draft.writes_env or "GITHUB_ENV" in meant.run
        directory = given.get("working-directory", "")
        draft.steps.append(
            common.step(
                "setup",
                run=meant.run,
                shell=BASH,
                directory=inside(directory),
                uses=uses,
                why=meant.why,
                outputs=dict(meant.outputs),
                python=meant.python,
                pythons=meant.pythons,
                env=dict(meant.env),
                inputs=given,
                asks=meant.asks,
            )
        )

    def _artifact(self, uses: str, given: dict[str, str]) -> actions.Meaning | None:
        """A download of what one earlier job makes: that job is run first, in the network phase."""
        if uses.split("@", 1)[0].lower() != "actions/download-artifact" or given.get("pattern"):
            return None
        name = given.get("name") or ""
        makers = [job for job in self._earlier if name in artifacts.uploads(job)]
        if len(makers) != 1 or (script := artifacts.producing(makers[0], name)) is None:
            return None
        run = f"{script}\n{artifacts.download(given, name)}"
        steps = makers[0].steps
        asks = "\n".join(step.run if step.kind == "run" else step.asks for step in steps)
        return actions.Meaning(
            "setup", f"runs job {makers[0].id} first, for its artifact {name}", run=run, asks=asks
        )

    def _skip(
        self,
        common: Common,
        uses: str,
        why: str,
        outputs: dict[str, str] | None = None,
        inputs: dict[str, str] | None = None,
    ) -> None:
        self._draft.steps.append(
            common.step("skip", uses=uses, why=why, outputs=outputs or {}, inputs=inputs or {})
        )

    def _know(self, id_: str, value: Value) -> None:
        if id_:
            steps = self._draft.context["steps"]
            if isinstance(steps, dict):
                self._draft.context["steps"] = {**steps, id_: value}

    # -- composite actions -----------------------------------------------------------------------------------------

    def _local(
        self, uses: str, given: dict[str, str], common: Common, id_: str, asked: Node
    ) -> None:
        base = posixpath.normpath(uses)
        content = next(
            (
                found
                for name in ("action.yml", "action.yaml")
                if (found := self._files(posixpath.normpath(posixpath.join(base, name))))
                is not None
            ),
            None,
        )
        why = ""
        document: Value = load(content.decode("utf-8", "replace")) if content is not None else None
        runs = mapping(mapping(document).get("runs"))
        using = to_string(runs.get("using"))
        if content is None:
            why = "the action's file is not in the repository"
        elif using != "composite":
            why = f"a local action that runs on {using or 'nothing'}, not a composite one"
        elif self._depth >= _MAX_DEPTH:
            why = "composite actions call each other too deep"
        if why:
            self._draft.blocked.append(Unsupported(uses, why, common.number))
            self._skip(common, uses, why)
            self._know(
                id_, {"outputs": {"*": UNKNOWN}, "outcome": "success", "conclusion": "success"}
            )
            return
        self._composite(base, mapping(document), runs, given, common, id_, asked)

    def _composite(  # noqa: PLR0917 - one caller
        self,
        base: str,
        document: Mappings,
        runs: Mappings,
        given: dict[str, str],
        common: Common,
        id_: str,
        asked: Node,
    ) -> None:
        outer = self._draft
        inputs: Mappings = {
            name: deep_value(mapping(declared).get("default"), outer.context)
            for name, declared in mapping(document.get("inputs")).items()
        }
        inputs = {name: "" if value is None else value for name, value in inputs.items()}
        inputs.update(given)
        github = {**mapping(outer.context["github"]), "action_path": f"{WORKSPACE}/{base}"}
        inner = Draft(
            {**outer.context, "inputs": inputs, "github": github, "steps": {}},
            {**common.env, "GITHUB_ACTION_PATH": f"{WORKSPACE}/{base}"},
            "",
            "",
            steps=outer.steps,
            blocked=outer.blocked,
            writes_env=outer.writes_env,
        )
        prefix = f"{self._prefix}{id_ or f'step{common.number}'}."
        steps = runs.get("steps")
        planned = StepPlanner(
            inner,
            self._files,
            prefix=prefix,
            depth=self._depth + 1,
            gate=asked,
            earlier=self._earlier,
        )
        for step in steps if isinstance(steps, list) else []:
            planned.add(need_mapping(step, f"a step of {base}"))
        outer.writes_env = inner.writes_env
        outer.env |= {
            key: value
            for key, value in inner.env.items()
            if key not in common.env and key != "GITHUB_ACTION_PATH"
        }
        outputs: Mappings = {
            name: _output(mapping(declared).get("value"), inner.context)
            for name, declared in mapping(document.get("outputs")).items()
        }
        self._know(id_, {"outputs": outputs, "outcome": UNKNOWN, "conclusion": UNKNOWN})


def _output(value: Value, context: Context) -> Value:
    return value_of(value, context) if isinstance(value, str) else value
