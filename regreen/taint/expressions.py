"""What an expression may be."""

from __future__ import annotations

import ast
import string
from collections.abc import Mapping, Sequence
from dataclasses import replace

from regreen.taint import arithmetic, calls, conditions, heap, namespaces, validation
from regreen.taint.interpreter import DEEPEST_NESTING, Interpreter
from regreen.taint.models import form_models, sources, string_methods
from regreen.taint.models.sources import PATH_SINKS
from regreen.taint.namespaces import module_member, resolve_imports
from regreen.taint.state import AbstractState, HeapObject
from regreen.taint.values import (
    BOTTOM,
    TOP,
    AbstractValue,
    AccessPath,
    BoundMethod,
    CallArguments,
    ClassRef,
    ExternalRef,
    FunctionRef,
    ModuleRef,
    ObjectRef,
    Scalar,
    UnresolvedImport,
    join_values,
    make_constant,
    make_external,
    make_reference,
    make_tainted,
    mark_safe,
    project_part,
)

_FILE_NAMES = frozenset({"name", "stem", "suffix"})


def evaluate_expression(interp: Interpreter, node: ast.expr) -> AbstractValue:
    """What `node` may be here; calls in it happen."""
    interp.run.spend_step()
    if interp.run.nesting >= DEEPEST_NESTING:
        interp.run.unfinished.add(interp.frame.path)
        return TOP
    interp.run.nesting += 1
    try:
        return _evaluate_node(interp, node)
    finally:
        interp.run.nesting -= 1


def _evaluate_node(interp: Interpreter, node: ast.expr) -> AbstractValue:  # noqa: C901, PLR0911, PLR0912
    match node:
        case ast.Constant():
            return (
                TOP
                if isinstance(node.value, complex) or node.value is ...
                else make_constant(node.value)
            )
        case ast.Name():
            return interp.state.with_checks_applied(
                resolve_imports(interp.run, interp.lookup_name(node.id))
            )
        case ast.Attribute():
            return interp.read_attribute(node, interp.evaluate(node.value))
        case ast.Call():
            return calls.evaluate_call(interp, node)
        case ast.JoinedStr():
            return arithmetic.concatenate_values(_evaluate_pieces(interp, node))
        case ast.FormattedValue():
            value = interp.evaluate(node.value)
            return (
                string_methods.make_number_value([value])
                if _is_numeric_format_spec(node.format_spec)
                else value
            )
        case ast.BinOp():
            return _evaluate_binary(interp, node)
        case ast.Subscript():
            return _evaluate_subscript(interp, node)
        case ast.IfExp():
            return _evaluate_conditional(interp, node)
        case ast.BoolOp():
            return _evaluate_boolean(interp, node)
        case ast.UnaryOp():
            return _evaluate_unary(interp, node)
        case ast.Compare():
            return conditions.evaluate_comparison_or_negation(interp, node)
        case ast.List() | ast.Tuple() | ast.Set():
            return _evaluate_sequence(interp, node)
        case ast.Dict():
            return _evaluate_dict(interp, node)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return _evaluate_comprehension(interp, node)
        case ast.Lambda():
            return make_reference(
                FunctionRef(
                    node,
                    interp.frame.path,
                    interp.run.register_closure(dict(interp.state.names), interp.frame.outer),
                )
            )
        case ast.NamedExpr():
            value = interp.evaluate(node.value)
            interp.assign_target(node.target, value)
            return value
        case ast.Await() | ast.Starred():
            return interp.evaluate(node.value)
        case ast.Yield() | ast.YieldFrom():
            if node.value is not None:
                interp.frame.yields.append(interp.evaluate(node.value))
            return TOP
        case _:
            return TOP


def _is_numeric_format_spec(spec: ast.expr | None) -> bool:
    """`{n:d}` raises for anything but a number."""
    if not isinstance(spec, ast.JoinedStr) or not spec.values:
        return False
    last = spec.values[-1]
    return isinstance(last, ast.Constant) and str(last.value)[-1:] in arithmetic.NUMERIC_CONVERSIONS


def _evaluate_pieces(interp: Interpreter, node: ast.JoinedStr) -> list[AbstractValue]:
    pieces = [interp.evaluate(part) for part in node.values]
    return [heap.flatten_to_text(interp.state, piece) for piece in pieces]


def _evaluate_binary(interp: Interpreter, node: ast.BinOp) -> AbstractValue:
    """`a + b + c + ...` nests to the left, sometimes hundreds deep: evaluated without recursion."""
    chain: list[ast.BinOp] = []
    first: ast.expr = node
    while isinstance(first, ast.BinOp):
        chain.append(first)
        first = first.left
    value = interp.evaluate(first)
    for link in reversed(chain):
        value = arithmetic.combine_operands(
            interp, link, link.op, value, interp.evaluate(link.right)
        )
    return value


def _evaluate_sequence(interp: Interpreter, node: ast.List | ast.Tuple | ast.Set) -> AbstractValue:
    kind = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set"}[type(node)]
    items: list[AbstractValue] = []
    exact = True
    for element in node.elts:
        value = interp.evaluate(element)
        if isinstance(element, ast.Starred):
            spread = interp.state.known_elements(value)
            if spread is None:
                exact = False
                spread = (interp.state.any_element(value),)
            items.extend(spread)
        else:
            items.append(value)
    if exact and len(items) <= 256:
        return interp.allocate_object(node, HeapObject(kind, items=tuple(items)))
    rest = join_values(*items) if items else BOTTOM
    return interp.allocate_object(node, HeapObject(kind, items=None, rest=rest))


def _evaluate_dict(interp: Interpreter, node: ast.Dict) -> AbstractValue:
    heap_object = HeapObject("dict")
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        value = interp.evaluate(value_node)
        if key_node is None:
            heap_object = replace(
                heap_object,
                rest=join_values(heap_object.rest, interp.state.any_element(value), TOP),
            )
            continue
        key = interp.evaluate(key_node)
        heap_object = heap.set_item(heap_object, key, value, sure=True)
        if key.taints:
            heap_object = replace(
                heap_object, rest=join_values(heap_object.rest, make_tainted(key.taints))
            )
    return interp.allocate_object(node, heap_object)


def _evaluate_conditional(interp: Interpreter, node: ast.IfExp) -> AbstractValue:
    true, false = interp.branch_states(node.test)
    values: list[AbstractValue] = []
    for way, branch in ((true, node.body), (false, node.orelse)):
        if way is not None:
            values.append(way.with_checks_applied(interp.with_state(way).evaluate(branch)))
            interp.state.heap.update(way.heap)
    return join_values(*values)


def _evaluate_boolean(interp: Interpreter, node: ast.BoolOp) -> AbstractValue:
    """`a or b`, `a and b`: any operand that can be the answer."""
    values: list[AbstractValue] = []
    way: AbstractState | None = interp.state.fork()
    for operand in node.values:
        if way is None:
            break
        value = interp.with_state(way).evaluate(operand)
        interp.state.heap.update(way.heap)
        verdict = conditions.evaluate_truth(way, value)
        last = operand is node.values[-1]
        stops = verdict is True if isinstance(node.op, ast.Or) else verdict is False
        goes_on = verdict is False if isinstance(node.op, ast.Or) else verdict is True
        if last or not goes_on:
            values.append(value)
        if stops:
            break
        true, false = conditions.refine_states(interp.with_state(way), operand)
        way = false if isinstance(node.op, ast.Or) else true
    return join_values(*values)


def _evaluate_unary(interp: Interpreter, node: ast.UnaryOp) -> AbstractValue:
    if isinstance(node.op, ast.Not):
        return conditions.evaluate_comparison_or_negation(interp, node)
    value = interp.evaluate(node.operand)
    only = value.single_constant
    if only and isinstance(only[0], int | float):
        number = only[0]
        if isinstance(node.op, ast.USub):
            return make_constant(-number)
        if isinstance(node.op, ast.Invert) and isinstance(number, int):
            return make_constant(-number - 1)
    return TOP


def _evaluate_subscript(interp: Interpreter, node: ast.Subscript) -> AbstractValue:
    value = interp.evaluate(node.value)
    if isinstance(node.slice, ast.Slice):
        return _evaluate_slice(interp, node.slice, value)
    key = interp.evaluate(node.slice)
    found: list[AbstractValue] = []
    for handle in value.heap_keys():
        heap_object = interp.state.find_object(handle)
        if heap_object is not None:
            found.append(heap.get_item(heap_object, key))
    if value.taints:
        only = key.single_constant
        found.append(
            project_part(
                value, ("key", only[0]) if only else ("item", node.lineno, node.col_offset)
            )
        )
    texts = value.known_constants
    if texts and key.known_constants is not None:
        found.extend(
            _index_constant_text(text, index) for text in texts for index in key.known_constants
        )
    found.extend(make_external(f"{name}[]") for name in value.external_names() if not value.taints)
    return interp.state.with_checks_applied(join_values(*found)) if found else TOP


def _index_constant_text(text: Scalar, index: Scalar) -> AbstractValue:
    if isinstance(text, str) and isinstance(index, int) and -len(text) <= index < len(text):
        return make_constant(text[index])
    return TOP


def _evaluate_slice(interp: Interpreter, node: ast.Slice, value: AbstractValue) -> AbstractValue:
    bounds: list[int | None] = []
    exact = True
    for part in (node.lower, node.upper, node.step):
        if part is None:
            bounds.append(None)
            continue
        only = interp.evaluate(part).single_constant
        if only and isinstance(only[0], int) and (part is not node.step or only[0]):
            bounds.append(only[0])
        else:
            exact = False
    items = interp.state.known_elements(value)
    if exact and items is not None:
        return interp.allocate_object(node, HeapObject("list", items=items[slice(*bounds)]))
    text = value.single_text
    if exact and text is not None:
        return make_constant(text[slice(*bounds)])
    if value.heap_keys():
        return interp.allocate_object(
            node, HeapObject("list", items=None, rest=interp.state.any_element(value))
        )
    # The beginning that is known is text of ours: what is cut out of it is, too.
    if exact and value.prefix and bounds[1] is not None and 0 <= bounds[1] <= len(value.prefix):
        return make_constant(value.prefix[slice(*bounds)])
    return project_part(
        value, ("slice", tuple(bounds) if exact else (node.lineno, node.col_offset))
    )


def evaluate_attribute(
    interp: Interpreter, node: ast.Attribute, owner: AbstractValue
) -> AbstractValue:
    """`owner.attr`."""
    found: list[AbstractValue] = []
    for ref in owner.things:
        match ref:
            case ModuleRef():
                found.append(module_member(interp.run, ref.name, node.attr))
            case ExternalRef():
                value = _evaluate_library_attribute(interp, ref.name, node)
                if value is not None:
                    found.append(value)
                elif not owner.taints:
                    found.append(make_external(f"{ref.name}.{node.attr}"))
            case ObjectRef():
                found.extend(_evaluate_object_attribute(interp, ref, node))
            case ClassRef() if node.attr == "__members__" and form_models.is_enumeration(ref.node):
                found.append(interp.allocate_object(node, HeapObject("dict", rest=TOP)))
            case ClassRef():
                found.append(namespaces.class_member(interp.run, ref, node.attr, None))
            case FunctionRef() | BoundMethod() | UnresolvedImport():
                pass
    if owner.taints:
        part = project_part(owner, ("attribute", node.attr))
        one_name = node.attr in _FILE_NAMES and "pathlib.Path()" in owner.external_names()
        found.append(mark_safe(part, PATH_SINKS) if one_name else part)
    if (
        set_here := interp.state.names.get(f"{getattr(node.value, 'id', '')}.{node.attr}")
    ) is not None:
        found.append(set_here)
    return interp.state.with_checks_applied(join_values(*found)) if found else TOP


def _evaluate_library_attribute(
    interp: Interpreter, name: str, node: ast.Attribute
) -> AbstractValue | None:
    """What is known of `sources.attribute`."""
    if name == "string" and isinstance(getattr(string, node.attr, None), str):
        return make_constant(getattr(string, node.attr))
    return heap.load_framework_attribute(
        interp.state, name, node.attr
    ) or sources.source_of_attribute(interp, name, node)


def _evaluate_object_attribute(
    interp: Interpreter, handle: ObjectRef, node: ast.Attribute
) -> Sequence[AbstractValue]:
    heap_object = interp.state.find_object(handle.key)
    if heap_object is None:
        return ()
    if node.attr in heap_object.entries:
        return (heap_object.entries[node.attr],)
    if isinstance(heap_object.of, ClassRef):
        value = namespaces.class_member(
            interp.run, heap_object.of, node.attr, make_reference(handle)
        )
        if any(
            isinstance(ref, FunctionRef) and namespaces.is_property(ref) for ref in value.things
        ):
            return (interp.invoke_callee(node, value, CallArguments()),)
        return (value,)
    if isinstance(heap_object.of, ExternalRef):
        return (make_external(f"{heap_object.of.name}.{node.attr}"),)
    return (heap_object.rest,) if heap_object.rest != BOTTOM else ()


Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def _evaluate_comprehension(interp: Interpreter, node: Comprehension) -> AbstractValue:
    """The container that a comprehension makes."""
    inner = interp.fork()
    unfit: Mapping[AccessPath, frozenset[str]] = {}
    for generator in node.generators:
        iterable = inner.evaluate(generator.iter)
        element = heap.make_loop_element(inner, generator.iter, iterable)
        inner.assign_target(generator.target, element)
        for condition in generator.ifs:
            alive, refused = inner.branch_states(condition)
            if alive is None:
                return interp.allocate_object(node, HeapObject("list"))
            if refused is not None and len(node.generators) == len(generator.ifs) == 1:
                unfit = validation.facts_of_every_element(iterable, refused)
            inner = interp.with_state(alive)
    if isinstance(node, ast.DictComp):
        key = inner.evaluate(node.key)
        value = join_values(
            inner.evaluate(node.value),
            make_tainted(key.taints) if key.taints else BOTTOM,
        )
        made = HeapObject("dict", rest=join_values(value, TOP))
    else:
        value = inner.evaluate(node.elt)
        made = HeapObject("list", items=None, rest=value)
    interp.state.heap.update(inner.state.heap)
    found = interp.allocate_object(node, made)
    if unfit:
        # An empty result means that every element failed the test: `bad = [k for k in given if k not in known]`.
        interp.run.refused_elements.update(dict.fromkeys(found.heap_keys(), unfit))
    return found
