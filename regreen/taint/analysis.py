"""The entry point: the flows from untrusted input to harm in a repository's files, through the functions that they call."""

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
from regreen.taint.models import entry_points, form_models
from regreen.taint.models.handlers import (
    call_request_hooks,
    call_through_own_decorators,
    prepare_parameters,
)
from regreen.taint.namespaces import class_member
from regreen.taint.program import Program
from regreen.taint.state import (
    AbstractState,
    HeapObject,
    HelperAnswer,
    join_states,
    summarize_returns,
)
from regreen.taint.values import (
    BOTTOM,
    NONE_VALUE,
    TOP,
    AbstractValue,
    CallArguments,
    ClassRef,
    ExternalRef,
    FunctionRef,
    ObjectRef,
    TrailStep,
    add_step,
    join_values,
    make_reference,
    make_tainted,
    mark_uncertain,
)

# Calling what the repository defines: functions, methods, classes.


def invoke_callee(
    interp: Interpreter, node: ast.AST, callee: AbstractValue, args: CallArguments
) -> AbstractValue:
    """Call functions and classes of the repository."""
    found: list[AbstractValue] = []
    for ref in callee.things:
        if isinstance(ref, FunctionRef):
            found.append(_inline_call(interp, node, ref, args))
        elif isinstance(ref, ClassRef):
            found.append(make_instance(interp, node, ref, args))
        elif isinstance(ref, ExternalRef) and isinstance(node, ast.Call):
            found.append(interp.call_library(node, (ref.name,), args, TOP))
    if found:
        return join_values(*found)
    taints = args.taints
    return mark_uncertain(make_tainted(taints)) if taints else TOP


def make_instance(
    interp: Interpreter, node: ast.AST, cls: ClassRef, args: CallArguments
) -> AbstractValue:
    """A new object of the class, its `__init__` run."""
    checked = form_models.make_checked_object(interp, node, cls, args)
    if checked is not None:
        return checked
    key = (id(node), id(cls.node), interp.frame.context)
    interp.state.heap[key] = HeapObject("instance", of=cls, rest=BOTTOM)
    value = make_reference(ObjectRef(key))
    made = class_member(interp.run, cls, "__init__", value)
    if any(isinstance(ref, FunctionRef) for ref in made.things):
        interp.invoke_callee(node, made, args)
        return value
    fields = [
        item.target.id
        for item in cls.node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    ]
    heap_object = interp.state.heap[key]
    for name, given in (*zip(fields, args.positional, strict=False), *args.keywords.items()):
        heap_object = heap_object.with_entry(name, given)
    interp.state.heap[key] = heap_object
    made = class_member(interp.run, cls, "__post_init__", value)
    if any(isinstance(ref, FunctionRef) for ref in made.things):
        interp.invoke_callee(node, made, CallArguments())
    return value


def _inline_call(
    interp: Interpreter, node: ast.AST, function: FunctionRef, args: CallArguments
) -> AbstractValue:
    """Walk a function's body with these arguments."""
    interp.run.closures[interp.frame.closure] = (interp.state.names, interp.frame.outer)
    if interp.run.stack.count(function.node) > 1 or len(interp.run.stack) >= interp.run.deepest:
        taints = interp.state.collect_taints(*args.all_arguments())
        return mark_uncertain(make_tainted(taints)) if taints else TOP
    # Behind a handler every call counts (a factory decides which class is meant); elsewhere most do not.
    # What makes an object is always followed: its methods are called with what it was given.
    making = getattr(function.node, "name", "") in {"__init__", "__post_init__"}
    worth_it = making or interp.run.entry is not None or interp.run.may_bring_taint(function)
    if not worth_it and not _passes_taint_or_code(interp.state, function, args):
        return TOP
    here = TrailStep(
        interp.frame.path,
        getattr(node, "lineno", 1),
        f"passed to `{getattr(function.node, 'name', 'lambda')}`",
    )
    names = _bound_arguments(interp, function, args, here)
    inner = CallFrame(
        function.module,
        function.node,
        (*interp.frame.context, id(node))[-DEEPEST_CALL:],
        0,
        function.closure,
    )
    if function.node is interp.run.handler:
        inner.entry, interp.run.reached = interp.run.entry, True
    inner.closure = interp.run.register_closure(names, function.closure)
    body = interp.state.make_callee_state(names)
    if isinstance(node, ast.Call):
        _record_answers_of_parameters(interp, node, function, body)
    interp.run.stack.append(function.node)
    nesting, interp.run.nesting, before = interp.run.nesting, 0, len(interp.run.answers)
    try:
        value = execute_function_body(interp.run.interpret(inner, body), function)
    finally:
        interp.run.stack.pop()
        interp.run.nesting = nesting
    del interp.run.answers[before:]
    if inner.answer:
        interp.run.answers.append((node, inner.answer))
    interp.state.heap, interp.state.checked = body.heap, body.checked
    return value


def _record_answers_of_parameters(
    interp: Interpreter, node: ast.Call, function: FunctionRef, body: AbstractState
) -> None:
    """`require(name.isalnum())`: when the helper tests its parameter, it tests what was asked here."""
    names = [a.arg for a in (*function.node.args.posonlyargs, *function.node.args.args)]
    given = node.args
    for name, asked in zip(names[function.owner is not None :], given, strict=False):
        if isinstance(asked, ast.Starred):
            return
        answer = conditions.find_implications_of_truth(interp, asked, [])
        if answer is not None:
            body.answers[name] = answer


def _passes_taint_or_code(state: AbstractState, function: FunctionRef, args: CallArguments) -> bool:
    """Whether a call gets something worth following: an untrusted value, or code to call."""
    given = (
        args.all_arguments() if function.owner is None else (*args.all_arguments(), function.owner)
    )
    return any(
        state.collect_taints(value)
        or any(isinstance(t, FunctionRef | ClassRef) for t in value.things)
        for value in given
    )


def execute_function_body(interp: Interpreter, function: FunctionRef) -> AbstractValue:
    """Walk a body and join its returns; `body` becomes what holds after the call."""
    if isinstance(function.node, ast.Lambda):
        return interp.evaluate(function.node.body)
    alive = interp.execute(function.node.body)
    ways = list(interp.frame.returns)
    if alive:
        ways.append((NONE_VALUE, interp.state.fork()))
    interp.run.closures[interp.frame.closure] = (interp.state.names, interp.frame.outer)
    if interp.frame.yields:
        made = HeapObject("list", items=None, rest=join_values(*interp.frame.yields))
        return interp.allocate_object(function.node, made)
    if not ways:
        return BOTTOM
    interp.frame.answer = _summarize_checks_by_answer(ways)
    joined = join_states([way for _, way in ways])
    values = [way.with_checks_applied(value) for value, way in ways]
    if joined is not None:
        interp.state.replace_with(joined)
    return join_values(*values)


def _summarize_checks_by_answer(
    ways: list[tuple[AbstractValue, AbstractState]],
) -> HelperAnswer | None:
    """For a helper that answers yes or no: what was checked on the way to each."""
    if not any(way.checked for _, way in ways):
        return None
    return summarize_returns(
        [
            (
                conditions.evaluate_truth(way, value),
                [conditions.evaluate_truth(way, part) for part in way.known_elements(value) or ()],
                way,
            )
            for value, way in ways
        ]
    )


def _bound_arguments(
    interp: Interpreter, function: FunctionRef, args: CallArguments, here: TrailStep
) -> dict[str, AbstractValue]:
    node = function.node
    names: dict[str, AbstractValue] = {}
    positional = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    given = list(args.positional)
    if function.owner is not None:
        given.insert(0, function.owner)
    for name, value in zip(positional, given, strict=False):
        names[name] = add_step(value, here)
    rest = given[len(positional) :]
    if node.args.vararg is not None:
        packed = HeapObject("tuple", items=tuple(add_step(v, here) for v in rest))
        names[node.args.vararg.arg] = interp.allocate_object(node.args.vararg, packed)
    known = {*positional, *(a.arg for a in node.args.kwonlyargs)}
    extra = HeapObject("dict")
    for name, value in args.keywords.items():
        if name in known:
            names[name] = add_step(value, here)
        else:
            extra = extra.with_entry(name, add_step(value, here))
    if node.args.kwarg is not None:
        names[node.args.kwarg.arg] = interp.allocate_object(node.args.kwarg, extra)
    for name, default in _parameter_defaults(node):
        if name not in names:
            # Only what needs no evaluation in another scope.
            names[name] = interp.evaluate(default) if isinstance(default, ast.Constant) else TOP
    for name in known - names.keys():
        names[name] = args.spread if args.spread is not None else TOP
    return names


def _parameter_defaults(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
) -> list[tuple[str, ast.expr]]:
    positional = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    found = list(zip(reversed(positional), reversed(node.args.defaults), strict=False))
    found += [
        (a.arg, d)
        for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if d is not None
    ]
    return found


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
    invoke_callee = invoke_callee
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
            _walk_root_or_mark_unfinished(run, function, owner)
        wanted += [item for item in run.pending if item[0].module == path]
        run.pending = [item for item in run.pending if item[0].module != path]


def _walk_root_or_mark_unfinished(
    run: AnalysisRun, function: FunctionRef, owner: ast.ClassDef | None
) -> None:
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
        state.names = entry_points.make_parameter_values(interp, function, bound)
        if entry is not None:
            prepare_parameters(interp, function, owner)
            call_request_hooks(interp, function)
        if entry is None or not call_through_own_decorators(interp, function):
            frame.closure = run.register_closure(state.names, function.closure)
            execute_function_body(interp, function)
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
    value = make_instance(interp, owner, cls, CallArguments())
    if entry is not None:
        entry_points.give_request_to_view(interp, value, entry.framework, function.node)
    return value
