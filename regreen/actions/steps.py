"""Plans the steps of one job: scripts, actions, composite actions, each seeing what those before it leave."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from regreen.actions import driver
from regreen.actions.expressions.evaluation import (
    UNKNOWN,
    Node,
    Value,
    evaluate_scalar,
    format_node,
    from_json_value,
    is_truthy,
    to_string,
)
from regreen.actions.expressions.plan_context import (
    PlanContext,
    YamlMapping,
    as_mapping,
    evaluate_nested,
    fill_environment,
    fill_known_values,
    find_names_from_other_jobs,
    is_false,
    join_conditions,
    require_mapping,
)
from regreen.actions.expressions.plan_context import reduce_step_condition as _asked
from regreen.actions.expressions.runtime_shell import NotAtRunTime
from regreen.actions.job_plan import WORKSPACE, Files, JobPlan, PlannedStep, UnsupportedFeature
from regreen.actions.known import lookup
from regreen.code.workflow_document import WorkflowError, load_workflow
from regreen.shell.called_scripts import read_called_scripts

BASH_UNSET = "bash -e {0}"
BASH_COMMAND = "bash --noprofile --norc -eo pipefail {0}"
_SHELL_COMMANDS = {
    "": BASH_UNSET,
    "bash": BASH_COMMAND,
    "sh": "sh -e {0}",
    "python": "python {0}",
    "pwsh": "pwsh -command \". '{0}'\"",
}
_TEST_COMMAND = re.compile(
    r"pytest|unittest|\btest|\btox\b|\bnox\b|ruff|flake8|mypy|pyright|pylint|black|lint|check|coverage|hatch|pre-commit|make|"
    r"\bcargo\b|\bgo (?:build|vet)|npm run|yarn|pnpm|jest|vitest|mocha|tsc|build",
    re.IGNORECASE,
)
_RUNS_CHECKS = re.compile(r"pre-commit run|ruff |black ")
_MAX_DEPTH = 10  # of composite actions and reusable workflows within each other


def is_test_step(step: PlannedStep) -> bool:
    """Whether a step tests, lints or builds, judging by its command and name."""
    return bool(_TEST_COMMAND.search(step.run)) or bool(
        re.search(r"test|lint|check", step.name, re.IGNORECASE)
    )


def runs_checks(step: PlannedStep) -> bool:
    """Whether an action's own script checks something: pre-commit, ruff, black."""
    return step.kind == "setup" and bool(_RUNS_CHECKS.search(step.run))


@dataclass
class JobDraft:
    """A job while its steps are being planned."""

    context: PlanContext
    env: dict[str, str]
    shell: str
    directory: str
    steps: list[PlannedStep] = field(default_factory=list)
    blocked: list[UnsupportedFeature] = field(default_factory=list)
    writes_env: bool = False


class StepPlanner:
    """Plans steps one after the other; each sees the ids and the environment of those before it."""

    def __init__(
        self,
        draft: JobDraft,
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

    def plan_step(self, step: YamlMapping) -> None:
        """Plan one step of the workflow or of a composite action."""
        draft = self._draft
        context = draft.context
        asked = _asked(step.get("if"), context)
        if self._gate is not None:
            asked = join_conditions(self._gate, asked)
        env = fill_environment(step.get("env"), context, draft.env)
        inner = draft.env | env
        context = {**context, "env": env_context(inner, draft.writes_env)}
        id_ = to_string(step.get("id"))
        common = StepCommon(
            number=len(draft.steps) + 1,
            name=fill_known_values(step.get("name"), context) or default_step_name(step, context),
            env=inner,
            own=tuple(env),
            id=f"{self._prefix}{id_}" if id_ else "",
            condition=format_node(asked),
            continues=continues_on_error(step.get("continue-on-error"), context),
            timeout=read_timeout_minutes(step.get("timeout-minutes"), context),
        )
        if is_false(asked):
            self._append_skipped_step(
                common,
                to_string(step.get("uses")),
                f"its condition is false: {to_string(step.get('if'))}",
            )
            self._record_outputs(
                id_, {"outputs": {}, "outcome": "skipped", "conclusion": "skipped"}
            )
        elif "run" in step:
            self._plan_script_step(step, common, context, id_)
        elif "uses" in step:
            self._plan_action_step(step, common, context, id_, asked)
        else:
            message = f"step {common.number}: neither `run` nor `uses`"
            raise WorkflowError(message)

    def _plan_script_step(
        self, step: YamlMapping, common: StepCommon, context: PlanContext, id_: str
    ) -> None:
        draft = self._draft
        script = fill_known_values(step.get("run"), context, keep_runtime=True)
        shell = fill_known_values(step.get("shell"), context) or draft.shell
        line = _SHELL_COMMANDS.get(shell, shell if "{0}" in shell else "")
        if not line or shell.startswith(("pwsh", "powershell", "cmd")):
            draft.blocked.append(
                UnsupportedFeature(
                    f"shell: {shell}", "this shell is not to be had here", common.number
                )
            )
        directory = fill_known_values(step.get("working-directory"), context) or draft.directory
        draft.blocked += [
            UnsupportedFeature(name, "comes from another job", common.number)
            for name in find_names_from_other_jobs(script)
        ]
        where = relative_to_workspace(directory)
        calls = read_called_scripts(script, where, self._files)
        draft.steps.append(
            common.make_step("run", run=script, shell=line or shell, directory=where, calls=calls)
        )
        if re.search(r"GITHUB_ENV|set-env|::set-env", script):
            draft.writes_env = True
        self._record_outputs(
            id_, {"outputs": {"*": UNKNOWN}, "outcome": UNKNOWN, "conclusion": UNKNOWN}
        )

    def _plan_action_step(
        self, step: YamlMapping, common: StepCommon, context: PlanContext, id_: str, asked: Node
    ) -> None:
        uses = fill_known_values(step.get("uses"), context)
        given = {
            key.lower(): fill_known_values(value, context)
            for key, value in as_mapping(step.get("with")).items()
        }
        if uses.startswith("./"):
            self._plan_local_action(uses, given, common, id_, asked)
            return
        server = to_string(as_mapping(context["github"]).get("server_url"))
        meant = self._plan_artifact_download(uses, given) or lookup.find_action_meaning(
            uses, {"github-server-url": server, **given}, self._files
        )
        draft = self._draft
        if meant.kind == "unsupported":
            draft.blocked.append(UnsupportedFeature(uses, meant.why, common.number))
            self._append_skipped_step(common, uses, meant.why)
            self._record_outputs(
                id_, {"outputs": {"*": UNKNOWN}, "outcome": "success", "conclusion": "success"}
            )
            return
        outputs: Value = (
            from_json_value(meant.outputs)
            if meant.outputs or meant.kind == "setup"
            else {"*": UNKNOWN}
        )
        self._record_outputs(
            id_, {"outputs": outputs, "outcome": "success", "conclusion": "success"}
        )
        if meant.kind == "skip":
            self._append_skipped_step(common, uses, meant.why, dict(meant.outputs), given)
            return
        draft.env |= dict(meant.env)
        draft.writes_env = draft.writes_env or "GITHUB_ENV" in meant.run
        directory = given.get("working-directory", "")
        draft.steps.append(
            common.make_step(
                "setup",
                run=meant.run,
                shell=BASH_COMMAND,
                directory=relative_to_workspace(directory),
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

    def _plan_artifact_download(
        self, uses: str, given: dict[str, str]
    ) -> lookup.ActionMeaning | None:
        """A download of what one earlier job makes: that job is run first, in the network phase."""
        if uses.split("@", 1)[0].lower() != "actions/download-artifact" or given.get("pattern"):
            return None
        name = given.get("name") or ""
        makers = [job for job in self._earlier if name in find_uploaded_artifacts(job)]
        if len(makers) != 1 or (script := make_producer_script(makers[0], name)) is None:
            return None
        run = f"{script}\n{make_download_script(given, name)}"
        steps = makers[0].steps
        asks = "\n".join(step.run if step.kind == "run" else step.asks for step in steps)
        return lookup.ActionMeaning(
            "setup", f"runs job {makers[0].id} first, for its artifact {name}", run=run, asks=asks
        )

    def _append_skipped_step(
        self,
        common: StepCommon,
        uses: str,
        why: str,
        outputs: dict[str, str] | None = None,
        inputs: dict[str, str] | None = None,
    ) -> None:
        self._draft.steps.append(
            common.make_step("skip", uses=uses, why=why, outputs=outputs or {}, inputs=inputs or {})
        )

    def _record_outputs(self, id_: str, value: Value) -> None:
        if id_:
            steps = self._draft.context["steps"]
            if isinstance(steps, dict):
                self._draft.context["steps"] = {**steps, id_: value}

    # -- composite actions -----------------------------------------------------------------------------------------

    def _plan_local_action(
        self, uses: str, given: dict[str, str], common: StepCommon, id_: str, asked: Node
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
        document: Value = (
            load_workflow(content.decode("utf-8", "replace")) if content is not None else None
        )
        runs = as_mapping(as_mapping(document).get("runs"))
        using = to_string(runs.get("using"))
        if content is None:
            why = "the action's file is not in the repository"
        elif using != "composite":
            why = f"a local action that runs on {using or 'nothing'}, not a composite one"
        elif self._depth >= _MAX_DEPTH:
            why = "composite actions call each other too deep"
        if why:
            self._draft.blocked.append(UnsupportedFeature(uses, why, common.number))
            self._append_skipped_step(common, uses, why)
            self._record_outputs(
                id_, {"outputs": {"*": UNKNOWN}, "outcome": "success", "conclusion": "success"}
            )
            return
        self._plan_composite(base, as_mapping(document), runs, given, common, id_, asked)

    def _plan_composite(  # noqa: PLR0917 - one caller
        self,
        base: str,
        document: YamlMapping,
        runs: YamlMapping,
        given: dict[str, str],
        common: StepCommon,
        id_: str,
        asked: Node,
    ) -> None:
        outer = self._draft
        inputs: YamlMapping = {
            name: evaluate_nested(as_mapping(declared).get("default"), outer.context)
            for name, declared in as_mapping(document.get("inputs")).items()
        }
        inputs = {name: "" if value is None else value for name, value in inputs.items()}
        inputs.update(given)
        github = {**as_mapping(outer.context["github"]), "action_path": f"{WORKSPACE}/{base}"}
        inner = JobDraft(
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
            planned.plan_step(require_mapping(step, f"a step of {base}"))
        outer.writes_env = inner.writes_env
        outer.env |= {
            key: value
            for key, value in inner.env.items()
            if key not in common.env and key != "GITHUB_ACTION_PATH"
        }
        outputs: YamlMapping = {
            name: _evaluate_output(as_mapping(declared).get("value"), inner.context)
            for name, declared in as_mapping(document.get("outputs")).items()
        }
        self._record_outputs(id_, {"outputs": outputs, "outcome": UNKNOWN, "conclusion": UNKNOWN})


def _evaluate_output(value: Value, context: PlanContext) -> Value:
    return evaluate_scalar(value, context) if isinstance(value, str) else value


# What every planned step has, whatever it does: its number, name, condition, environment, place.


@dataclass(frozen=True)
class StepCommon:
    """What every step has, whatever it does."""

    number: int
    name: str
    env: dict[str, str]
    own: tuple[str, ...]
    id: str
    condition: str
    continues: bool
    timeout: float | None

    def make_step(
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
    ) -> PlannedStep:
        """The step, with what kind it is and what it does."""
        return PlannedStep(
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
    """The `env` context of a step; after a step has written GITHUB_ENV, undeclared names are unknown."""
    values: dict[str, Value] = {
        name: UNKNOWN if "${{" in text else text for name, text in env.items()
    }
    return {"*": UNKNOWN, **values} if written else values


def default_step_name(step: YamlMapping, context: PlanContext) -> str:
    """How GitHub calls a step that has no name."""
    if "run" in step:
        lines = fill_known_values(step.get("run"), context).strip().splitlines()
        return f"Run {lines[0]}" if lines else "Run"
    return f"Run {to_string(step.get('uses'))}"


def continues_on_error(value: Value, context: PlanContext) -> bool:
    """Whether a failure of it is let pass, as far as that is known."""
    found = evaluate_nested(value, context)
    return is_truthy(found) if found is not UNKNOWN else False


def read_timeout_minutes(value: Value, context: PlanContext) -> float | None:
    """Its `timeout-minutes`."""
    found = evaluate_nested(value, context)
    return found if isinstance(found, float) and not isinstance(found, bool) else None


def relative_to_workspace(directory: str) -> str:
    """A working directory, relative to the workspace where it lies in it."""
    path = directory.strip() or "."
    if path == WORKSPACE or path.startswith(f"{WORKSPACE}/"):
        path = path[len(WORKSPACE) :].lstrip("/") or "."
    return posixpath.normpath(path)


# Artifacts between jobs: what one job uploads and another downloads, made here by running the first job before.

_BASH_COMMAND = "bash --noprofile --norc -eo pipefail {0}"
ARTIFACT_STORE = "/env/artifacts"
_BUILDS_PACKAGES = "hynek/build-and-inspect-python-package"


def find_uploaded_artifacts(job: JobPlan) -> dict[str, int]:
    """The artifacts that a job leaves, by name, with the number of the step that does it."""
    found: dict[str, int] = {}
    for step in job.steps:
        action = step.uses.split("@", 1)[0].lower()
        if action == "actions/upload-artifact":
            found[step.inputs.get("name") or "artifact"] = step.number
        elif action == _BUILDS_PACKAGES:
            found[f"Packages{step.inputs.get('upload-name-suffix', '')}"] = step.number
    return found


def make_producer_script(job: JobPlan, artifact: str) -> str | None:
    """A script that runs a job up to its upload on a copy of the tree, and puts the tree back; None where it cannot."""
    number = find_uploaded_artifacts(job).get(artifact)
    standing = [
        feature
        for feature in job.unsupported
        if feature.step is None or number is None or feature.step <= number
    ]
    if number is None or standing:
        return None
    steps = [_make_storing_step(step) for step in job.steps if step.number <= number]
    try:
        inner = driver.make_driver_script(steps)
    except NotAtRunTime:
        return None
    mark = f"RG_JOB_{re.sub(r'[^A-Za-z0-9]', '_', job.id)}"
    return "\n".join(
        [
            "rg_tree=$(mktemp -d)",
            'cp -a . "$rg_tree"',
            'mkdir -p "$HOME/.ci/jobs"',
            f"cat > \"$HOME/.ci/jobs/{mark}.sh\" <<'{mark}'",
            inner.rstrip("\n"),
            mark,
            f'RG_BASE="$HOME/.ci/jobs/{mark}" bash "$HOME/.ci/jobs/{mark}.sh"',
            "find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +",
            'cp -a "$rg_tree"/. .',
            'rm -rf "$rg_tree"',
        ]
    )


def make_download_script(inputs: Mapping[str, str], artifact: str) -> str:
    """A script that does what the download does."""
    path = shlex.quote(inputs.get("path", "").strip() or ".")
    return f"mkdir -p {path}\ncp -a {ARTIFACT_STORE}/{shlex.quote(artifact)}/. {path}/"


def _make_storing_step(step: PlannedStep) -> PlannedStep:
    """An upload as a copy into the store."""
    if step.uses.split("@", 1)[0].lower() != "actions/upload-artifact":
        return step
    name = step.inputs.get("name") or "artifact"
    patterns = [
        line.strip()
        for line in step.inputs.get("path", "").splitlines()
        if line.strip() and not line.startswith("!")
    ]
    return replace(
        step, kind="setup", run=_copy_to_artifact_store(patterns, name), shell=_BASH_COMMAND
    )


def _copy_to_artifact_store(patterns: list[str], name: str) -> str:
    bases = [_folder_before_wildcard(pattern) for pattern in patterns]
    root = bases[0] if len(set(bases)) == 1 else posixpath.commonpath(bases) if bases else "."
    where = f"{ARTIFACT_STORE}/{shlex.quote(name)}"
    lines = [f"mkdir -p {where}", "shopt -s globstar nullglob", f"cd {shlex.quote(root or '.')}"]
    for pattern in patterns:
        relative = posixpath.relpath(pattern.rstrip("/"), root or ".")
        lines.append(
            f'for rg_file in {_quote_glob(relative)}; do cp -a --parents "$rg_file" {where}/; done'
        )
    return "\n".join(lines)


def _quote_glob(pattern: str) -> str:
    """The pattern quoted but for its wildcards."""
    return "".join(
        part if part in {"*", "**", "?"} else shlex.quote(part)
        for part in re.split(r"(\*\*|\*|\?)", pattern)
        if part
    )


def _folder_before_wildcard(pattern: str) -> str:
    """The part of a path before its first wildcard; a file's directory is its root, a directory is its own."""
    parts = pattern.rstrip("/").split("/")
    plain: list[str] = []
    for part in parts:
        if re.search(r"[*?\[]", part):
            return "/".join(plain) or "."
        plain.append(part)
    if pattern.endswith("/") or "." not in parts[-1].lstrip("."):
        return "/".join(plain) or "."
    return "/".join(plain[:-1]) or "."
