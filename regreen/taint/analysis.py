"""The entry point: the flows from untrusted input to harm in a repository's files."""

from __future__ import annotations

import ast
import time
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import resources

from regreen.domain.models import Severity
from regreen.taint import (
    calls,
    conditions,
    expressions,
    invocation,
    namespaces,
    secrecy,
    statements,
)
from regreen.taint.interpreter import (
    DEEPEST_CALL,
    NODES_PER_ROOT,
    AnalysisRun,
    CallFrame,
    EntryPoint,
    Interpreter,
    OutOfSteps,
    TaintFlow,
)
from regreen.taint.models import entry_points
from regreen.taint.models.handlers import (
    call_request_hooks,
    call_through_own_decorators,
    prepare_parameters,
)
from regreen.taint.program import Program
from regreen.taint.state import AbstractState
from regreen.taint.values import AbstractValue, CallArguments, ClassRef, FunctionRef, make_reference


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A row of the table."""

    cwe: int
    title: str
    severity: Severity
    confidence: float
    harm: str
    mend: str


_TABLE = tomllib.loads(
    resources.files("regreen.taint.models").joinpath("rules.toml").read_text("utf-8")
)
TAINT_RULES = {name: TaintRule(**row) for name, row in _TABLE["rules"].items()}
ORIGIN_CONFIDENCE: dict[str, float] = _TABLE["origin_confidence"]
DOUBTFUL_CONFIDENCE = 0.65


def flow_confidence(rule: str, origin: str, *, certain: bool) -> float:
    """The share of such flows that are real defects."""
    prior = TAINT_RULES[rule].confidence * ORIGIN_CONFIDENCE.get(origin, 0.5)
    return round(prior if certain else prior * DOUBTFUL_CONFIDENCE, 3)


# A function that takes too many steps is analysed again with this depth of calls.
_SHALLOW_CALL_DEPTH = 3


class ProgramInterpreter(Interpreter):
    """The interpreter with its transfer functions, each in the module of its kind of syntax."""

    __slots__ = ()

    evaluate = expressions.evaluate_expression
    read_attribute = expressions.evaluate_attribute
    execute = statements.execute_body
    assign_target = statements.assign_target
    branch_states = conditions.branch_states
    invoke_callee = invocation.invoke_callee
    call_library = calls.call_library


@dataclass(frozen=True, slots=True)
class TaintAnalysis:
    """The flows found, and the files that were not (wholly) read, with why."""

    flows: tuple[TaintFlow, ...]
    unread: dict[str, str]


def analyse_program(
    program: Program,
    paths: Iterable[str],
    seconds: float = 60.0,
    is_wanted: Callable[[str, int, bool], bool] = lambda _path, _line, _begins: True,
) -> TaintAnalysis:
    """Analyse the functions of these files, and what they call anywhere in the program.

    `is_wanted` says by path, first line, and whether untrusted values may enter there or in what is called, which
    functions are analysed by themselves.
    """
    run = AnalysisRun(program, time.process_time() + seconds, ProgramInterpreter)
    unread: dict[str, str] = {}
    for path in paths:
        if time.process_time() > run.deadline:
            unread[path] = "out of time"
            continue
        module = program.load_module(path)
        if module is None:
            unread[path] = program.unread.get(path, "not readable")
            continue
        try:
            _walk_module(run, path, is_wanted)
        except RecursionError:
            unread[path] = "nested too deeply"
    for path in run.unfinished & set(paths):
        unread.setdefault(path, "too complex to follow everywhere")
    secrecy.report_stored_values(run)
    flows = sorted(run.flows.values(), key=lambda flow: (flow.path, flow.line, flow.rule))
    return TaintAnalysis(tuple(flows), unread)


def _walk_module(run: AnalysisRun, path: str, is_wanted: Callable[[str, int, bool], bool]) -> None:
    run.left = NODES_PER_ROOT
    namespaces.module_environment(run, path)
    wanted = [item for item in run.pending if item[0].module == path]
    run.pending = [item for item in run.pending if item[0].module != path]
    while wanted:
        function, owner = wanted.pop(0)
        begins = (
            run.may_bring_taint(function)
            or entry_points.find_entry_point(run, function, owner) is not None
        )
        if is_wanted(path, function.node.lineno, begins):
            _walk_root(run, function, owner)
        wanted += [item for item in run.pending if item[0].module == path]
        run.pending = [item for item in run.pending if item[0].module != path]


def _walk_root(run: AnalysisRun, function: FunctionRef, owner: ast.ClassDef | None) -> None:
    for run.deepest in (DEEPEST_CALL, _SHALLOW_CALL_DEPTH):
        if _walk_function(run, function, owner):
            return
    run.unfinished.add(function.module)


def _walk_function(run: AnalysisRun, function: FunctionRef, owner: ast.ClassDef | None) -> bool:
    """Walk one function by itself; False when that took too many steps."""
    run.left, run.nesting, run.stack = NODES_PER_ROOT, 0, [function.node]
    entry = entry_points.find_entry_point(run, function, owner)
    frame = CallFrame(
        function.module, function.node, (id(function.node),), 0, function.closure, entry
    )
    state = AbstractState({}, {}, {}, run.shared)
    interp = run.interpret(frame, state)
    run.entry = entry
    try:
        bound = _self_value(interp, function, owner, entry)
        state.names = entry_points.make_arguments(interp, function, bound)
        if entry is not None:
            prepare_parameters(interp, function, owner)
            call_request_hooks(interp, function)
        if entry is None or not call_through_own_decorators(interp, function):
            frame.closure = run.new_closure(state.names, function.closure)
            invocation.walk_body(interp, function)
            run.closures[frame.closure] = (state.names, function.closure)
    except OutOfSteps:
        return False
    finally:
        run.entry = None
        run.answers.clear()
    return True


def _self_value(
    interp: Interpreter, function: FunctionRef, owner: ast.ClassDef | None, entry: EntryPoint | None
) -> AbstractValue | None:
    if owner is None or isinstance(function.node, ast.Lambda):
        return None
    if any(
        isinstance(d, ast.Name) and d.id == "staticmethod" for d in function.node.decorator_list
    ):
        return None
    cls = ClassRef(owner, function.module, function.closure)
    if any(isinstance(d, ast.Name) and d.id == "classmethod" for d in function.node.decorator_list):
        return make_reference(cls)
    value = invocation.make_instance(interp, owner, cls, CallArguments())
    if entry is not None:
        entry_points.set_request(interp, value, entry.framework, function.node)
    return value
