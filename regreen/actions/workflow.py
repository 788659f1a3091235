"""Plans a workflow: every job of every matrix cell, its steps with known values filled in, and what is unsupported."""

from __future__ import annotations

import itertools
import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regreen.actions.driver import RUNNER_ENV
from regreen.actions.expressions.evaluation import (
    UNKNOWN,
    ContextName,
    EvaluationFailed,
    IndexAccess,
    LiteralValue,
    Node,
    Value,
    evaluate_scalar,
    split_template,
    to_string,
)
from regreen.actions.expressions.plan_context import (
    PlanContext,
    YamlMapping,
    as_mapping,
    evaluate_nested,
    fill_environment,
    fill_known_values,
    is_computed_matrix,
    is_false,
    reduce_step_condition,
    require_mapping,
)
from regreen.actions.job_plan import (
    WORKSPACE,
    Files,
    JobPlan,
    PlannedStep,
    ServiceContainer,
    UnsupportedFeature,
    no_files,
)
from regreen.actions.service_containers import (
    find_server_kind,
    map_container_ports_to_host,
    parse_service,
)
from regreen.actions.steps import JobDraft, StepPlanner, is_test_step, runs_checks
from regreen.code.workflow_document import WorkflowError, load_workflow
from regreen.domain.github import GitHubServer

# A job's matrix: the cells it makes, and the names that GitHub shows for them.

MAX_CELLS = 256
"""GitHub's own limit of jobs in one matrix."""
_MAX_NAME = 100

MatrixCell = dict[str, Value]


def expand_matrix(matrix: dict[str, Value]) -> list[MatrixCell]:
    """Every combination: the product, without what `exclude` names, with what `include` adds."""
    axes = {
        key: _axis_values(values)
        for key, values in matrix.items()
        if key not in {"include", "exclude"}
    }
    product: list[MatrixCell] = [{}]
    if axes:
        combinations = itertools.islice(itertools.product(*axes.values()), 4 * MAX_CELLS)
        product = [dict(zip(axes, values, strict=True)) for values in combinations]
    excluded = _list_entries(matrix.get("exclude"))
    product = [cell for cell in product if not any(_matches_entry(cell, item) for item in excluded)]
    if not axes:
        product = []
    return _apply_matrix_includes(product, _list_entries(matrix.get("include")))[:MAX_CELLS]


def _axis_values(values: Value) -> list[Value]:
    return values if isinstance(values, list) else [values]


def _list_entries(value: Value) -> list[MatrixCell]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _matches_entry(cell: MatrixCell, entry: MatrixCell) -> bool:
    return all(key in cell and _is_same_value(cell[key], value) for key, value in entry.items())


def _is_same_value(item: Value, other: Value) -> bool:
    if isinstance(item, dict) and isinstance(other, dict):
        return all(key in item and _is_same_value(item[key], value) for key, value in other.items())
    if isinstance(item, (dict, list)) or isinstance(other, (dict, list)):
        return json.dumps(item, default=str) == json.dumps(other, default=str)
    return to_string(item) == to_string(other)


def _apply_matrix_includes(
    product: list[MatrixCell], includes: list[MatrixCell]
) -> list[MatrixCell]:
    """An include that fits cells of the product extends them; one that fits none is a cell of its own."""
    extended = [dict(cell) for cell in product]
    alone: list[MatrixCell] = []
    for entry in includes:
        fitted = False
        for original, cell in zip(product, extended, strict=True):
            if all(
                key not in original or _is_same_value(original[key], value)
                for key, value in entry.items()
            ):
                cell.update({key: value for key, value in entry.items() if key not in original})
                fitted = True
        if not fitted:
            alone.append(dict(entry))
    return extended + alone


def default_job_name(name: str, cell: MatrixCell) -> str:
    """`name (3.11, ubuntu-latest)`, cut as GitHub cuts it."""
    words = [word for value in cell.values() for word in _texts_of_leaves(value) if word]
    if not words:
        return name
    full = f"{name} ({', '.join(words)})"
    return full if len(full) <= _MAX_NAME else full[: _MAX_NAME - 3] + "..."


def _texts_of_leaves(value: Value) -> list[str]:
    if isinstance(value, list):
        return [word for item in value for word in _texts_of_leaves(item)]
    if isinstance(value, dict):
        return [word for item in value.values() for word in _texts_of_leaves(item)]
    return [to_string(value)]


# Reads a matrix cell off the name that GitHub shows, where another job's script computed the matrix.

_MAX_VALUES = 30


def find_cell_by_shown_name(
    id_: str, template: str, matrix: Value, used: Sequence[str], shown: str
) -> MatrixCell | None:
    """The cell of a job that GitHub shows as `shown`; None where the name does not tell it.

    Args:
        id_: the job's key in the file.
        template: its `name:`, "" where it has none.
        matrix: what is known of `strategy.matrix`; unknown values stand for themselves.
        used: the keys of the matrix that the job speaks of, in their order.
        shown: the name on GitHub.
    """
    if "${{" in template:
        return _match_template(template, shown)
    listed = re.fullmatch(rf"{re.escape(template or id_)} \((.+)\)", shown)
    if listed is None or listed[1].endswith("..."):
        return None
    values = listed[1].split(", ")
    keys = _matrix_axes(matrix) or list(used)
    if len(keys) != len(values) or len(values) > _MAX_VALUES:
        return None
    return dict(zip(keys, values, strict=True))


def _matrix_axes(matrix: Value) -> list[str]:
    if not isinstance(matrix, dict) or matrix.get("include") is UNKNOWN:
        return []
    return [key for key in matrix if key not in {"include", "exclude"}]


def _match_template(template: str, shown: str) -> MatrixCell | None:
    """The values that put into the template make the name; the shortest where there is a choice."""
    pattern = ""
    paths: list[tuple[str, ...]] = []
    for part in split_template(template):
        if isinstance(part, str):
            pattern += re.escape(part)
        elif (path := _matrix_path(part)) is not None:
            pattern += (
                rf"(?P=v{paths.index(path)})" if path in paths else rf"(?P<v{len(paths)}>.+?)"
            )
            if path not in paths:
                paths.append(path)
        else:
            pattern += ".*?"
    if not paths or len(paths) > 6 or len(shown) > 300:
        return None
    found = re.fullmatch(pattern.strip(), shown.strip())
    if found is None:
        return None
    cell: MatrixCell = {}
    for path, value in zip(paths, found.groups(), strict=True):
        _set_value(cell, path, value)
    return cell


def _matrix_path(node: Node) -> tuple[str, ...] | None:
    """`matrix.a.b` as ("a", "b")."""
    keys: list[str] = []
    while isinstance(node, IndexAccess) and isinstance(node.key, LiteralValue):
        keys.insert(0, to_string(node.key.value))
        node = node.of
    return (
        tuple(keys)
        if isinstance(node, ContextName) and node.name.lower() == "matrix" and keys
        else None
    )


def _set_value(cell: MatrixCell, path: tuple[str, ...], value: str) -> None:
    where: dict[str, Value] = cell
    for key in path[:-1]:
        inner = where.setdefault(key, {"*": UNKNOWN})
        if not isinstance(inner, dict):
            return
        where = inner
    where[path[-1]] = value


def find_matrix_keys(job: Value) -> list[str]:
    """The keys of the matrix that a job's text uses, each once, in their order."""
    found = re.findall(
        r"\bmatrix\.([\w-]+)|\bmatrix\[['\"]([^'\"]+)['\"]\]", _join_nested_texts(job)
    )
    return list(dict.fromkeys(item or other for item, other in found))


def _join_nested_texts(value: Value) -> str:
    if isinstance(value, dict):
        return "\n".join(_join_nested_texts(item) for item in value.values())
    if isinstance(value, list):
        return "\n".join(_join_nested_texts(item) for item in value)
    return value if isinstance(value, str) else ""


def plan_workflow(
    yaml_text: str,
    job: str | None = None,
    event: str = "push",
    files: Files = no_files,
    repository: str | None = None,
    *,
    shown: str = "",
    server: GitHubServer = GitHubServer(),  # noqa: B008 - frozen
) -> tuple[JobPlan, ...]:
    """Every job of a workflow, one plan a matrix cell, in the file's order.

    Args:
        yaml_text: the workflow file.
        job: only this job (its id in the file).
        event: what triggered the run.
        files: gives a file of the repository, for local actions, reusable workflows, version files.
        repository: "owner/name", where it is known.
        shown: the name of the job in question on GitHub; it tells the values of a matrix that another job computed.
        server: the GitHub that runs the workflow.

    Raises:
        WorkflowError: GitHub would refuse the file; the message says where.
    """
    document = load_workflow(yaml_text)
    listed = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(listed, dict):
        message = "not a workflow: a mapping with `jobs:` is needed"
        raise WorkflowError(message)
    planner = JobPlanner(
        document, make_github_context(event, repository, server), files, shown=shown
    )
    plans = tuple(planner.plan_jobs(job))
    if job is not None and not plans:
        known = ", ".join(listed)
        message = f"there is no job {job!r}; the file has {known}"
        raise WorkflowError(message)
    return plans


def make_github_context(
    event: str,
    repository: str | None,
    server: GitHubServer = GitHubServer(),  # noqa: B008 - frozen
) -> dict[str, Value]:
    """What expressions may know before a run: the event's shape, not its content."""
    is_pull = event in {"pull_request", "pull_request_target"}
    owner, _, name = (repository or "").partition("/")
    return {
        "event_name": event,
        "ref": "refs/pull/1/merge" if is_pull else "refs/heads/main",
        "ref_name": "1/merge" if is_pull else "main",
        "ref_type": "branch",
        "head_ref": "feature" if is_pull else "",
        "base_ref": "main" if is_pull else "",
        "repository": repository or UNKNOWN,
        "repository_owner": owner or UNKNOWN,
        "workspace": WORKSPACE,
        "server_url": server.web_url,
        "api_url": server.api_url,
        "graphql_url": server.graphql_url,
        "run_id": "1",
        "run_number": "1",
        "run_attempt": "1",
        "token": "",
        "event": {
            "*": UNKNOWN,
            "repository": {"*": UNKNOWN, "name": name or UNKNOWN, "default_branch": "main"},
        },
        "*": UNKNOWN,
    }


# From a workflow's document to plans: its jobs, their matrix cells, the reusable workflows they call.

_MAX_DEPTH = 10  # of reusable workflows within each other


@dataclass(frozen=True)
class _RunnerMachine:
    """Where a job runs."""

    runs_on: str
    image: str
    services: tuple[ServiceContainer, ...]


class JobPlanner:
    """Plans the jobs of one workflow document."""

    def __init__(
        self,
        document: YamlMapping,
        github: YamlMapping,
        files: Files,
        inputs: YamlMapping | None = None,
        *,
        depth: int = 0,
        shown: str = "",
    ) -> None:
        self._document = document
        self._shown = shown
        self._files = files
        self._depth = depth
        self._github = github
        self._inputs = _workflow_inputs(document, inputs)
        self._outputs: dict[str, Value] = {}
        self._planned_jobs: list[JobPlan] = []

    @property
    def _server_env(self) -> dict[str, str]:
        """What a runner of another GitHub than github.com says of it."""
        names = {f"GITHUB_{key.upper()}": key for key in ("server_url", "api_url", "graphql_url")}
        says = {name: to_string(self._github.get(key)) for name, key in names.items()}
        return {name: value for name, value in says.items() if RUNNER_ENV[name] != value}

    def plan_jobs(self, wanted: str | None) -> Iterator[JobPlan]:
        """The plans, in the file's order; only the job `wanted` where it is given."""
        for name, job in as_mapping(self._document.get("jobs")).items():
            plans = self._plan_job_or_unsupported(name, require_mapping(job, f"job {name!r}"))
            self._planned_jobs.extend(plans)
            if wanted in {None, name}:
                yield from plans
            elif (wanted or "").startswith(f"{name}/"):
                yield from (plan for plan in plans if plan.id == wanted)

    def _plan_job_or_unsupported(self, name: str, job: YamlMapping) -> list[JobPlan]:
        """The plans of one job; an expression that fails on its values fails this job, not the file."""
        try:
            return list(self._plan_cells(name, job))
        except EvaluationFailed as error:
            return [
                JobPlan(
                    name,
                    name,
                    {},
                    False,
                    (UnsupportedFeature("expression", str(error)),),
                    "",
                    (),
                    (),
                )
            ]

    def _plan_cells(self, name: str, job: YamlMapping) -> Iterator[JobPlan]:
        context = self._make_base_context()
        matrix = evaluate_nested(as_mapping(job.get("strategy")).get("matrix"), context)
        dynamic = is_computed_matrix(matrix)
        if dynamic and (replaced := self._matrix_from_name(name, job, matrix)) is not None:
            matrix, dynamic = replaced, False
        every: list[dict[str, Value]] = (
            [{}] if matrix is None or dynamic else expand_matrix(as_mapping(matrix))
        )
        for at, cell in enumerate(every):
            context = self._make_base_context()
            context["matrix"] = {"*": UNKNOWN} if dynamic else cell
            context["strategy"] = {
                "fail-fast": True,
                "job-index": float(at),
                "job-total": float(len(every)),
                "max-parallel": float(len(every)),
            }
            blocked = (
                [UnsupportedFeature("matrix", "its values are computed by another job")]
                if dynamic
                else []
            )
            if "uses" in job:
                yield from self._plan_called_workflow(name, job, context, cell, blocked)
            else:
                yield self._plan_cell(name, job, context, cell, blocked)

    def _matrix_from_name(self, name: str, job: YamlMapping, matrix: Value) -> YamlMapping | None:
        """A matrix of the one cell that the name on GitHub identifies; its other values stay unknown."""
        shown = self._shown.split(" / ")[0] if "uses" in job else self._shown
        template = to_string(job.get("name")) if job.get("name") is not None else ""
        cell = (
            find_cell_by_shown_name(name, template, matrix, find_matrix_keys(job), shown)
            if shown
            else None
        )
        return None if cell is None else {key: [value] for key, value in cell.items()}

    def _remember_outputs_for_later_jobs(
        self, name: str, job: YamlMapping, draft: JobDraft
    ) -> None:
        """What later jobs may ask of this one, as far as its steps' outputs are known without running them."""
        outputs: YamlMapping = {"*": UNKNOWN}
        for key, value in as_mapping(job.get("outputs")).items():
            outputs[key] = (
                evaluate_scalar(value, draft.context) if isinstance(value, str) else value
            )
        self._outputs[name] = {"result": "success", "outputs": outputs}

    def _make_base_context(self) -> PlanContext:
        return {
            "github": self._github,
            "env": {},
            "vars": {"*": UNKNOWN},
            "secrets": {"*": UNKNOWN},
            "inputs": self._inputs,
            "needs": {"*": UNKNOWN, **self._outputs},
            "job": {"*": UNKNOWN, "status": UNKNOWN},
            "runner": {
                "os": "Linux",
                "arch": "X64",
                "temp": "/home/regreen/_temp",
                "tool_cache": "/env/tools",
                "name": "regreen",
                "debug": "",
                "environment": "github-hosted",
            },
            "steps": {},
            "matrix": {},
            "strategy": {},
            "jobs": {"*": UNKNOWN},
        }

    def _job_name(
        self, name: str, job: YamlMapping, context: PlanContext, cell: dict[str, Value]
    ) -> str:
        """The job's name as GitHub shows it: the template filled in, or the cell's values behind it."""
        given = to_string(job.get("name")) if job.get("name") is not None else ""
        if "${{" in given:
            return fill_known_values(given, context).strip() or default_job_name(name, cell)
        return default_job_name(given or name, cell)

    # -- reusable workflows --------------------------------------------------------------------------------------

    def _plan_called_workflow(
        self,
        name: str,
        job: YamlMapping,
        context: PlanContext,
        cell: dict[str, Value],
        blocked: list[UnsupportedFeature],
    ) -> Iterator[JobPlan]:
        uses = to_string(job.get("uses"))
        shown = self._job_name(name, job, context, cell)
        problem = ""
        document: Value = None
        if not uses.startswith("./"):
            problem = "a reusable workflow of another repository"
        elif self._depth >= _MAX_DEPTH:
            problem = "reusable workflows call each other too deep"
        elif (content := self._files(posixpath.normpath(uses))) is None:
            problem = "the file is not in the repository"
        else:
            document = load_workflow(content.decode("utf-8", "replace"))
        if problem or not isinstance(document, dict):
            blocked = [*blocked, UnsupportedFeature(uses, problem or "not a workflow")]
            yield JobPlan(name, shown, cell, False, tuple(blocked), "", (), ())
            return
        given = {
            key: evaluate_nested(value, context)
            for key, value in as_mapping(job.get("with")).items()
        }
        rest = self._shown.removeprefix(f"{shown} / ")
        inner = JobPlanner(
            document, self._github, self._files, given, depth=self._depth + 1, shown=rest
        )
        for item in inner.plan_jobs(None):
            yield _copy_plan_as_called_job(
                item,
                f"{name}/{item.id}",
                f"{shown} / {item.name}",
                cell | item.matrix,
                tuple(blocked),
            )

    # -- one job ---------------------------------------------------------------------------------------------------

    def _plan_cell(
        self,
        name: str,
        job: YamlMapping,
        context: PlanContext,
        cell: dict[str, Value],
        blocked: list[UnsupportedFeature],
    ) -> JobPlan:
        runs_on, trouble = _read_runner(job.get("runs-on"), context)
        blocked += trouble
        env = self._server_env | fill_environment(self._document.get("env"), context, {})
        context["env"] = dict(env)
        env |= fill_environment(job.get("env"), context, env)
        context["env"] = dict(env)
        image, services, containers = _read_containers(job, context)
        blocked += containers
        context["job"] = {
            "*": UNKNOWN,
            "status": UNKNOWN,
            "services": {
                service.name: {"ports": map_container_ports_to_host(service), "*": UNKNOWN}
                for service in services
            },
        }
        run_defaults = as_mapping(
            as_mapping(self._document.get("defaults")).get("run")
        ) | as_mapping(as_mapping(job.get("defaults")).get("run"))
        draft = JobDraft(
            context,
            env,
            fill_known_values(run_defaults.get("shell"), context),
            fill_known_values(run_defaults.get("working-directory"), context),
            blocked=blocked,
        )
        steps = job.get("steps")
        for step in steps if isinstance(steps, list) else []:
            planned = StepPlanner(draft, self._files, earlier=self._planned_jobs)
            planned.plan_step(require_mapping(step, f"a step of job {name!r}"))
        self._remember_outputs_for_later_jobs(name, job, draft)
        shown = self._job_name(name, job, context, cell)
        return _make_job_plan(
            name, shown, job, cell, draft, _RunnerMachine(runs_on, image, services)
        )


def _workflow_inputs(document: YamlMapping, given: YamlMapping | None) -> YamlMapping:
    """What `inputs.x` is: given by the caller, else the default that the workflow declares."""
    call = as_mapping(as_mapping(document.get("on")).get("workflow_call"))
    if given is None:
        asked_for = as_mapping(call.get("inputs"))
        return {name: as_mapping(item).get("default", UNKNOWN) for name, item in asked_for.items()}
    values: YamlMapping = {}
    for name, declared in as_mapping(call.get("inputs")).items():
        kind = to_string(as_mapping(declared).get("type"))
        value = as_mapping(declared).get("default")
        values[name] = (
            value if value is not None else {"boolean": False, "number": 0.0}.get(kind, "")
        )
    return values | given


def _make_job_plan(  # noqa: PLR0917 - all of them belong to one job
    name: str,
    shown: str,
    job: YamlMapping,
    cell: dict[str, Value],
    draft: JobDraft,
    machine: _RunnerMachine,
) -> JobPlan:
    condition, skipped = job.get("if"), ""
    if condition is not None and is_false(reduce_step_condition(condition, draft.context)):
        skipped = to_string(condition)
    last = _last_relevant_step(draft.steps)
    standing = tuple(item for item in draft.blocked if item.step is None or item.step <= last)
    minutes = evaluate_nested(job.get("timeout-minutes"), draft.context)
    needs = job.get("needs")
    return JobPlan(
        id=name,
        name=shown,
        matrix=cell,
        supported=not standing,
        unsupported=standing,
        image=machine.image or machine.runs_on,
        services=machine.services,
        steps=tuple(draft.steps),
        runs_on=machine.runs_on,
        timeout_minutes=minutes if isinstance(minutes, float) else None,
        skipped=skipped,
        needs=tuple(
            to_string(item)
            for item in (needs if isinstance(needs, list) else [needs] if needs else [])
        ),
    )


def _last_relevant_step(steps: list[PlannedStep]) -> int:
    """The last step that is worth running again: unsupported features after it do not matter."""
    runs = [step for step in steps if step.run and step.kind == "run"]
    tests = [
        step
        for step in steps
        if step.run and step.kind != "skip" and (step.kind == "run" or runs_checks(step))
    ]
    wanted = [step for step in tests if is_test_step(step)] or runs
    return max((step.number for step in wanted), default=0)


def _copy_plan_as_called_job(
    plan: JobPlan,
    id_: str,
    name: str,
    cell: dict[str, Value],
    blocked: tuple[UnsupportedFeature, ...],
) -> JobPlan:
    every = (*blocked, *plan.unsupported)
    return JobPlan(
        id_,
        name,
        cell,
        not every,
        every,
        plan.image,
        plan.services,
        plan.steps,
        plan.runs_on,
        plan.timeout_minutes,
        plan.skipped,
        plan.needs,
    )


# --- the machine ------------------------------------------------------------------------------------------------------


def _read_runner(runs_on: Value, context: PlanContext) -> tuple[str, list[UnsupportedFeature]]:
    """The runner's label, and why it cannot be stood in for."""
    value = evaluate_nested(runs_on, context)
    if isinstance(value, dict):
        value = value.get("labels", value.get("group"))
    labels = [
        to_string(evaluate_nested(item, context))
        for item in (value if isinstance(value, list) else [value])
    ]
    shown = ", ".join(label for label in labels if label)
    lowered = shown.lower()
    if not shown:
        unknown = value is UNKNOWN
        return "", [] if unknown else [UnsupportedFeature("runs-on", "the job names no runner")]
    if re.search(r"windows|macos|mac-|darwin|osx", lowered):
        return shown, [
            UnsupportedFeature(f"runs-on: {shown}", "only Linux jobs can be run again here")
        ]
    if re.search(r"\barm(?:64|v\d)?\b|aarch64|s390x|ppc64|riscv", lowered):
        return shown, [
            UnsupportedFeature(f"runs-on: {shown}", "another processor than this machine has")
        ]
    if "gpu" in lowered or "cuda" in lowered:
        return shown, [UnsupportedFeature(f"runs-on: {shown}", "needs a graphics processor")]
    if not re.search(r"ubuntu|linux|debian", lowered) and ("self-hosted" in lowered):
        return shown, [
            UnsupportedFeature(f"runs-on: {shown}", "nothing is known about this runner")
        ]
    return shown, []


def _read_containers(
    job: YamlMapping, context: PlanContext
) -> tuple[str, tuple[ServiceContainer, ...], list[UnsupportedFeature]]:
    image = _read_image(job.get("container"), context)
    declared = as_mapping(evaluate_nested(job.get("services"), context))
    services = tuple(
        parse_service(name, shown, as_mapping(item))
        for name, item in declared.items()
        if (shown := _read_image(item, context))
    )
    blocked = [
        UnsupportedFeature(
            f"service {service.name} ({service.image})", "no server of this kind is started here"
        )
        for service in services
        if not find_server_kind(service.image)
    ]
    if image and services and not blocked:
        names = ", ".join(service.name for service in services)
        why = f"a job in a container of its own ({image}) finds them as the hosts {names}; a box has no name but localhost, and the servers are this machine's, not that image's"
        blocked = [UnsupportedFeature("services", why)]
    return image, services, blocked


def _read_image(asked: Value, context: PlanContext) -> str:
    value = evaluate_nested(asked, context)
    return fill_known_values(value.get("image") if isinstance(value, dict) else value, context)
