"""Calls: into the repository's own functions, or into libraries that are known by name."""

from __future__ import annotations

import ast
import re

from regreen.taint import heap, namespaces, secrecy, sinks, validation
from regreen.taint.interpreter import Interpreter, TaintFlow
from regreen.taint.models import form_models, sources, string_methods
from regreen.taint.values import (
    BOTTOM,
    NONE_VALUE,
    TOP,
    WEAK_HASH,
    AbstractValue,
    BoundMethod,
    CallArguments,
    ClassRef,
    ExternalRef,
    FunctionRef,
    ModuleRef,
    ObjectRef,
    Taint,
    TrailStep,
    UnresolvedImport,
    join_values,
    make_external,
    make_reference,
    make_tainted,
    mark_decoded,
    mark_safe,
    mark_uncertain,
    project_part,
)


def evaluate_call(interp: Interpreter, node: ast.Call) -> AbstractValue:
    """What a call gives, after it has had its effects."""
    if isinstance(node.func, ast.Attribute):
        owner = interp.evaluate(node.func.value)
        args = _evaluate_arguments(interp, node)
        return interp.state.with_checks_applied(
            _call_method(interp, node, owner, node.func.attr, args)
        )
    callee = interp.evaluate(node.func)
    args = _evaluate_arguments(interp, node)
    return interp.state.with_checks_applied(_call_function(interp, node, callee, args))


def _evaluate_arguments(interp: Interpreter, node: ast.Call) -> CallArguments:
    positional: list[AbstractValue] = []
    spread: AbstractValue | None = None
    for arg in node.args:
        value = interp.evaluate(arg)
        if isinstance(arg, ast.Starred):
            items = interp.state.known_elements(value)
            if items is not None:
                positional.extend(items)
            else:
                spread = join_values(spread or BOTTOM, interp.state.any_element(value))
        else:
            positional.append(value)
    keywords: dict[str, AbstractValue] = {}
    for keyword in node.keywords:
        value = interp.evaluate(keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
            continue
        for heap_object in interp.state.find_objects(value):
            keywords.update({k: v for k, v in heap_object.entries.items() if isinstance(k, str)})
        if value.taints:
            spread = join_values(spread or BOTTOM, value)
    return CallArguments(tuple(positional), keywords, spread)


def _call_function(
    interp: Interpreter, node: ast.Call, callee: AbstractValue, args: CallArguments
) -> AbstractValue:
    found: list[AbstractValue] = []
    names: list[str] = []
    for ref in callee.things:
        match ref:
            case FunctionRef() | ClassRef():
                found.append(interp.invoke_callee(node, make_reference(ref), args))
            case ExternalRef():
                names.append(ref.name)
            case ObjectRef():
                found.extend(_call_partial_or_instance(interp, node, ref, args))
            case ModuleRef() | BoundMethod() | UnresolvedImport():
                pass
    if names or not found:
        found.append(interp.call_library(node, tuple(names) or ("?",), args, callee))
    return join_values(*found)


def _call_partial_or_instance(
    interp: Interpreter, node: ast.Call, handle: ObjectRef, args: CallArguments
) -> list[AbstractValue]:
    heap_object = interp.state.find_object(handle.key)
    if heap_object is not None and heap_object.kind == "partial":
        given = {k[1]: v for k, v in heap_object.entries.items() if isinstance(k, tuple)}
        whole = CallArguments(
            (*(heap_object.items or ()), *args.positional), {**given, **args.keywords}, args.spread
        )
        return [_call_function(interp, node, heap_object.entries["function"], whole)]
    if heap_object is None or not isinstance(heap_object.of, ClassRef):
        return []
    return [
        interp.invoke_callee(
            node,
            namespaces.class_member(interp.run, heap_object.of, "__call__", make_reference(handle)),
            args,
        )
    ]


def _call_method(  # noqa: C901, PLR0912
    interp: Interpreter, node: ast.Call, owner: AbstractValue, name: str, args: CallArguments
) -> AbstractValue:
    found: list[AbstractValue] = []
    names: list[str] = []
    known = False
    for ref in owner.things:
        match ref:
            case ModuleRef():
                value = namespaces.module_member(interp.run, ref.name, name)
                found.append(_call_function(interp, node, value, args))
                known = True
            case ClassRef():
                checked = form_models.call_model_validator(interp, node, ref, name, args)
                if checked is None:
                    value = namespaces.class_member(interp.run, ref, name, None)
                    checked = interp.invoke_callee(node, value, args)
                found.append(checked)
                known = True
            case ObjectRef():
                given = _call_heap_object_method(interp, node, ref, name, args)
                if given is not None:
                    found.append(given)
                    known = True
            case ExternalRef():
                names.append(f"{ref.name}.{name}")
            case FunctionRef() | BoundMethod() | UnresolvedImport():
                pass
    called = tuple(names) or (f"?.{name}",)
    sinks.check_sinks(interp, node, called, _with_self(args, owner))
    found += _check_crypto_call(interp, node, called, args)
    if name == "update" and node.args:
        secrecy.report_broken_password_hash(
            interp.run, owner, node.args[0], args.find_argument(0) or TOP
        )
    if name == "relative_to" and args.positional:
        # it raises for what lies elsewhere
        validation.assume_below_folder(owner, args.positional[0], interp.state)
    text = string_methods.call_known_text_method(owner, name, args, interp.state)
    if text is not None:
        found.append(text)
        known = True
    if names and not owner.taints:
        found.append(interp.call_library(node, tuple(names), args, owner, checked=True))
    elif owner.taints and text is None:
        found.append(string_methods.call_tainted_method(owner, name, args, node))
    elif not known:
        found.append(interp.call_library(node, (f"?.{name}",), args, owner, checked=True))
    for dotted in names:
        read = sources.source_of_call(interp, dotted, node)
        if read is not None and owner.taints:
            found.append(read)
    return join_values(*found)


def _with_self(args: CallArguments, owner: AbstractValue) -> CallArguments:
    return CallArguments(args.positional, {**args.keywords, "self": owner}, args.spread)


def _call_heap_object_method(  # noqa: PLR0911
    interp: Interpreter, node: ast.Call, handle: ObjectRef, name: str, args: CallArguments
) -> AbstractValue | None:
    heap_object = interp.state.find_object(handle.key)
    if heap_object is None:
        return None
    if name in heap_object.entries and heap_object.kind == "instance":
        return _call_function(interp, node, heap_object.entries[name], args)
    if isinstance(heap_object.of, ClassRef):
        checked = form_models.call_schema_load(interp, handle, heap_object.of, name, args)
        if checked is not None:
            return checked
        value = namespaces.class_member(interp.run, heap_object.of, name, make_reference(handle))
        if value.things:
            return interp.invoke_callee(node, value, args)
        return None
    if heap_object.kind == "parser" and name in {"setFeature", "setProperty"}:
        interp.state.heap[handle.key] = string_methods.set_parser_feature(heap_object, args)
        return NONE_VALUE
    if heap_object.kind == "parser" and name == "parse":
        sinks.check_parse_call(interp, node, heap_object, args)
        return NONE_VALUE
    if (
        heap_object.kind == "pattern"
        and name in {"match", "fullmatch", "search"}
        and args.positional
    ):
        pattern = heap_object.entries.get("pattern", TOP)
        return string_methods.make_match(interp, node, pattern, args.positional[0], name)
    if heap_object.kind == "match":
        subject = heap_object.entries.get("subject", TOP)
        only = args.positional[0].single_constant if args.positional else ()
        part = project_part(subject, ("group", node.lineno, node.col_offset))
        if name == "group" and only and len(args.positional) == 1:
            part = validation.mark_safe_by_group(heap_object, part, only[0])
        return part if subject.taints else TOP
    outcome = heap.call_container_method(heap_object, name, args.positional, args.keywords)
    if outcome is None:
        return heap_object.any_element() if name in heap.READING_METHODS else None
    interp.state.heap[handle.key], value = outcome
    return value


def call_library(
    interp: Interpreter,
    node: ast.Call,
    names: tuple[str, ...],
    args: CallArguments,
    callee: AbstractValue,
    *,
    checked: bool = False,
) -> AbstractValue:
    """A call of something outside the repository."""
    found: list[AbstractValue] = []
    if not checked:
        sinks.check_sinks(interp, node, names, args)
        found += _check_crypto_call(interp, node, names, args)
    if len(names) == 1 and names[0] in sources.STRICT_PARSERS and len(args.positional) == 1:
        for taint in args.positional[0].taints:
            interp.state.mark_checked(taint.mark, sources.TEXT_SINKS)
    for name in names:
        value = sources.source_of_call(interp, name, node)
        if name in sources.WEAK_RANDOM:
            value = secrecy.make_random_value(interp, node, name, args.positional)
            if name.endswith(".shuffle") and args.positional:
                heap.store_slice(args.positional[0], value, interp.state)
        if value is None:
            value = string_methods.call_modelled_function(interp, node, name, args)
        found.append(
            _propagate_taints(interp, name, args, node, callee) if value is None else value
        )
    return join_values(*found)


def _propagate_taints(
    interp: Interpreter, name: str, args: CallArguments, node: ast.Call, callee: AbstractValue
) -> AbstractValue:
    taints: frozenset[Taint] = interp.state.collect_taints(*args.all_arguments())
    taints |= frozenset(t for t in callee.taints)
    result = make_external(f"{name}()")
    if not sources.passes_arguments_to_result(name) and any(
        set(arg.external_names()) & sources.REQUEST_OBJECTS for arg in args.all_arguments()
    ):
        taints |= sources.make_wrapped_request(interp, name, node).taints
    if (
        name in sources.CLEAN_FUNCTIONS
        or name.startswith("hashlib.")
        or sources.gives_no_text(name.rpartition(".")[2])
    ):
        taints = frozenset(t for t in taints if t.origin.startswith("weak-"))
    if name in sources.URL_BUILDERS and not taints:
        return AbstractValue(None, things=result.things, prefix="/-")  # some path of this site
    if not taints:
        codes = [
            arg
            for arg in args.all_arguments()
            if any(sources.MAC_NAME.match(external) for external in arg.external_names())
        ]
        return codes[0] if codes and sources.passes_arguments_to_result(name) else result
    value = make_tainted(taints)
    if name in sources.SANITIZERS:
        value = mark_safe(value, sources.SANITIZERS[name])
    elif name.endswith((".format", ".join")) and sources.is_markup(name.rpartition(".")[0]):
        value = mark_safe(value, sources.HTML_SINKS)
    elif name in sources.DECODERS:
        value = mark_decoded(value, (node.lineno, node.col_offset))
    elif not sources.passes_arguments_to_result(name):
        value = mark_uncertain(value)
        if sources.is_named_escape(name):
            value = mark_safe(value, sources.HTML_SINKS)
    return AbstractValue(
        None,
        value.taints,
        result.things if sources.passes_arguments_to_result(name) else frozenset(),
    )


# Calls that are unsafe whatever flows into them: broken hashes and ciphers, cookies that travel in the clear.

_WEAK_HASHES = frozenset({"md5", "md4", "md2", "sha1", "sha", "ripemd160", "sha-1", "md5-sha1"})
_HASH_NAMES = re.compile(
    r"(?:hashlib|Crypto\.Hash\.\w+|Cryptodome\.Hash\.\w+|cryptography\.hazmat\.primitives\.hashes)\.(\w+)\Z",
    re.IGNORECASE,
)
_WEAK_CIPHERS = re.compile(
    r"(?:Crypto|Cryptodome)\.Cipher\.(DES3?|ARC[24]|Blowfish|CAST)\.new\Z"
    r"|cryptography\.hazmat\.primitives\.ciphers\.(?:algorithms\.(ARC4|Blowfish|IDEA|TripleDES|CAST5|SEED)|modes\.(ECB))\Z"
)


def _check_crypto_call(
    interp: Interpreter, node: ast.Call, names: tuple[str, ...], args: CallArguments
) -> list[AbstractValue]:
    """Report the call where it is a misuse by itself; what it gives where that is a broken hash."""
    digests: list[AbstractValue] = []
    for name in names:
        broken = _find_broken_hash(name, args)
        if (
            broken is not None
            and args.keywords.get("usedforsecurity", args.find_argument(99)) is None
        ):
            _report_misuse(interp, node, "weak-hash", broken, certain=False)
            mark = ("hash", interp.frame.path, node.lineno)
            digest = sources.make_untrusted_value(interp, node, WEAK_HASH, mark, f"`{broken}`")
            digests.append(digest)
            at = int(name == "hashlib.new")
            if len(node.args) > at:
                secrecy.report_broken_password_hash(
                    interp.run, digest, node.args[at], args.find_argument(at) or TOP
                )
        cipher = _WEAK_CIPHERS.search(name)
        if cipher is not None:
            _report_misuse(
                interp, node, "weak-cipher", next(g for g in cipher.groups() if g), certain=True
            )
        if name.endswith(".new") and ".Cipher.AES" in name and _is_ecb(args):
            _report_misuse(interp, node, "weak-cipher", "AES in ECB mode", certain=True)
        if name.endswith(".set_cookie"):
            _report_insecure_cookie(interp, node, args)
    return digests


def _find_broken_hash(name: str, args: CallArguments) -> str | None:
    match = _HASH_NAMES.match(name)
    if match is None:
        return None
    wanted = match[1].lower()
    if wanted == "new":
        algorithm = args.find_argument(0, "name")
        text = algorithm.single_text if algorithm is not None else None
        wanted = (text or "").lower() if name.startswith("hashlib") else name.split(".")[2].lower()
    return wanted if wanted in _WEAK_HASHES else None


def _is_ecb(args: CallArguments) -> bool:
    mode = args.find_argument(1, "mode")
    return mode is not None and any(name.endswith("MODE_ECB") for name in mode.external_names())


def _report_insecure_cookie(interp: Interpreter, node: ast.Call, args: CallArguments) -> None:
    secure = args.find_argument(6, "secure")
    if args.spread is not None:
        return
    if secure is None:
        _report_misuse(interp, node, "insecure-cookie", "no `secure=True`", certain=False)
    elif secure.single_constant in ((False,), (None,)):
        _report_misuse(interp, node, "insecure-cookie", "`secure=False`", certain=True)


def _report_misuse(
    interp: Interpreter, node: ast.Call, rule: str, what: str, *, certain: bool
) -> None:
    end = node.end_lineno or node.lineno
    step = TrailStep(interp.frame.path, node.lineno, what)
    interp.run.flows.setdefault(
        (rule, interp.frame.path, node.lineno),
        TaintFlow(rule, interp.frame.path, node.lineno, end, what, "code", what, certain, (step,)),
    )
