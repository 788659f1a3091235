"""Bug and security patterns of Go, Rust and Java: the tree-sitter queries of `code_patterns.toml`, held against the merge base."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from regreen.code.file_languages import language_of, parser_for
from regreen.code.paths import is_test
from regreen.code.symbols import MAX_PARSED_BYTES, is_slow_to_query, node_text, walk_nodes
from regreen.domain.models import Dimension, Severity
from regreen.reviewers.analyzers.baseline import (
    Diagnostic,
    commentable_range,
    make_analyzer_claim,
    select_new_diagnostics,
)
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.markdown_sanitizer import count_noun

if TYPE_CHECKING:
    from tree_sitter import Node, Query

_FUNCTIONS = frozenset(
    {
        "function_declaration",
        "method_declaration",
        "func_literal",
        "function_item",
        "closure_expression",
        "constructor_declaration",
        "lambda_expression",
    }
)
_NAMED_FUNCTIONS = _FUNCTIONS - {"func_literal", "closure_expression", "lambda_expression"}
_LOOPS = frozenset(
    {
        "for_statement",
        "enhanced_for_statement",
        "while_statement",
        "do_statement",
        "for_expression",
        "while_expression",
        "loop_expression",
    }
)
_LEAVES = frozenset({"return_statement", "throw_statement", "return_expression"})
_IDENTIFIERS = frozenset({"identifier", "field_identifier", "shorthand_field_identifier"})
_MAX_HITS = 300
_MIN_SURE_CONFIDENCE = 0.85
_BACKSLASH = re.compile(r"\\(?!\")")


@dataclass(frozen=True, slots=True)
class PatternRule:
    """A row of `code_patterns.toml`, which explains its fields; `queries` by language."""

    severity: Severity
    confidence: float
    title: str
    why: str
    security: bool = False
    cwe: int = 0
    requires: str = ""
    unless: str = ""
    file: str = ""
    code: str = ""
    request: str = ""
    queries: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Table:
    rules: Mapping[str, PatternRule]
    sources: Mapping[str, re.Pattern[str]]
    sanitizers: Mapping[str, re.Pattern[str]]
    numbers: Mapping[str, re.Pattern[str]]


@cache
def load_patterns() -> _Table:
    """The rules, with the languages that they have a query for."""
    table = resources.files("regreen.reviewers.analyzers.compiled").joinpath("code_patterns.toml")
    rows = tomllib.loads(table.read_text("utf-8"))
    sources, sanitizers, numbers = (
        {language: re.compile(text) for language, text in rows.pop(name).items()}
        for name in ("sources", "sanitizers", "numbers")
    )
    rules = {}
    for name, row in rows.items():
        # a query has escapes of its own: a backslash of a pattern stands for itself
        queries = {key: _BACKSLASH.sub(r"\\\\", row.pop(key)) for key in sources if key in row}
        rules[name] = PatternRule(**row, queries=queries)
    return _Table(rules, sources, sanitizers, numbers)


class CodePatterns:
    """Looks for the patterns of one dimension in changed Go, Rust and Java files."""

    def __init__(self, *, security: bool) -> None:
        self._security = security
        self.name = "security patterns" if security else "bug patterns"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report what is new against the merge base."""
        known = load_patterns().sources
        files = [f for f in context.files if f.status != "deleted" and language_of(f.path) in known]
        if not files:
            return ReviewerReport()
        found = [
            hit
            for f in files
            if not (self._security and is_test(f.path))
            for hit in find_patterns(f.path, context.head_text(f.path), security=self._security)
        ]
        new = select_new_diagnostics(
            context,
            found,
            lambda: [
                hit
                for f in context.change.files
                if language_of(f.old_path) in known
                for hit in find_patterns(
                    f.old_path, context.base_text(f.old_path), security=self._security
                )
            ],
            sure=lambda h: load_patterns().rules[h.rule].confidence >= _MIN_SURE_CONFIDENCE,
        )
        read = f"{self.name} in {count_noun(len(files), 'file')}"
        return ReviewerReport(tuple(_make_claim(h, context) for h in _drop_doubles(new)), read=read)


def _drop_doubles(hits: Sequence[Diagnostic]) -> list[Diagnostic]:
    """One hit for each weakness of a line, by the surest rule."""
    rules = load_patterns().rules
    best: dict[tuple[str, int, int | str], Diagnostic] = {}
    for hit in sorted(hits, key=lambda h: -rules[h.rule].confidence):
        best.setdefault((hit.path, hit.line, rules[hit.rule].cwe or hit.rule), hit)
    return list(best.values())


def find_patterns(path: str, text: str | None, *, security: bool) -> Iterator[Diagnostic]:
    """All hits of these patterns in a file."""
    language = language_of(path)
    if text is None or language is None or len(text) > MAX_PARSED_BYTES:
        return
    import tree_sitter

    root = parser_for(language).parse(text.encode("utf-8", "surrogateescape")).root_node
    if is_slow_to_query(root):
        return
    seen: set[tuple[str, int]] = set()
    for name, rule in load_patterns().rules.items():
        if rule.security != security or language not in rule.queries:
            continue
        if rule.file and not re.search(rule.file, text):
            continue
        cursor = tree_sitter.QueryCursor(_compile_query(language, name))
        for _, captures in cursor.matches(root)[:_MAX_HITS]:
            match = _Match(language, {key: nodes[0] for key, nodes in captures.items()}, root)
            hit = match.nodes["hit"]
            place = (name, hit.start_byte)
            if place not in seen and match.satisfies(rule):
                seen.add(place)
                start, end = hit.start_point[0] + 1, hit.end_point[0] + 1
                title = match.fill_in(rule.title)
                yield Diagnostic(
                    name, path, start, min(end, start + 2), " ".join(title.split())[:200]
                )


@cache
def _compile_query(language: str, name: str) -> Query:
    import tree_sitter

    grammar = parser_for(language).language
    assert grammar is not None  # noqa: S101 - every parser of ours has one
    return tree_sitter.Query(grammar, load_patterns().rules[name].queries[language])


def _make_claim(hit: Diagnostic, context: ReviewContext) -> Claim:
    rule = load_patterns().rules[hit.rule]
    rows = (context.head_text(hit.path) or "").split("\n")
    dimension: Dimension = "security" if rule.security else "correctness"
    return make_analyzer_claim(
        f"patterns/{hit.rule}",
        rule.severity,
        hit.path,
        commentable_range(context, hit),
        dimension=dimension,
        title=hit.message,
        body=rule.why + (f" (CWE-{rule.cwe})" if rule.cwe else ""),
        confidence=round(rule.confidence * (0.9 if is_test(hit.path) else 1), 4),
        excerpt="\n".join(rows[hit.line - 1 : hit.end_line])[:500],
        source=f"pattern {hit.rule}",
        head=hit.message,
        base="not there",
        anywhere=True,
    )


class _Match:
    """One match of a query: its captured nodes, and what a rule asks of their surroundings."""

    def __init__(self, language: str, nodes: dict[str, Node], root: Node) -> None:
        self.language = language
        self.nodes = nodes
        self.root = root
        self.words: dict[str, str] = {}

    def text(self, name: str) -> str:
        """A capture's text, or a word that a check has set."""
        return self.words.get(name) or node_text(self.nodes.get(name))

    def fill_in(self, title: str) -> str:
        """The title with the texts of its captures."""
        return re.sub(r"\{(\w+)\}", lambda named: self.text(named[1]), title)

    def satisfies(self, rule: PatternRule) -> bool:
        """Whether the match is one of the rule."""
        around = node_text(self.function) if rule.requires or rule.unless else ""
        if rule.requires and not re.search(rule.requires, around):
            return False
        if rule.unless and re.search(rule.unless, around):
            return False
        if rule.request and not self._comes_from_request(self.nodes[rule.request]):
            return False
        return not rule.code or _CHECKS[rule.code](self)

    @property
    def function(self) -> Node:
        """The named function around the hit, or the file."""
        return _enclosing(self.nodes["hit"], _NAMED_FUNCTIONS) or self.root

    def _comes_from_request(self, value: Node) -> bool:
        """Whether an expression holds a source, or a variable of this function that was made from one and not sanitized."""
        table = load_patterns()
        source, sanitizer = table.sources[self.language], table.sanitizers[self.language]
        assigned = _read_assignments(self.function)
        waiting, seen = [value], set[str]()
        if sanitizer.search(node_text(value)):
            return False
        while waiting:
            node = waiting.pop()
            if source.search(node_text(node)):
                return True
            for inner in walk_nodes(node):
                name = node_text(inner) if inner.type == "identifier" else ""
                if not name or name in seen:
                    continue
                seen.add(name)
                made = assigned.get(name, [])
                guarded = any(
                    sanitizer.search(line) and re.search(rf"\b{re.escape(name)}\b", line)
                    for line in node_text(self.function).split("\n")
                )
                if not guarded:
                    waiting += made
        return False


def _enclosing(node: Node, kinds: frozenset[str]) -> Node | None:
    parent = node.parent
    while parent is not None and parent.type not in kinds:
        parent = parent.parent
    return parent


def _read_assignments(function: Node) -> dict[str, list[Node]]:
    """The values that each local variable is given, an annotated parameter's own declaration included."""
    found: dict[str, list[Node]] = {}
    for node in walk_nodes(function):
        if node.type in {
            "short_var_declaration",
            "assignment_statement",
            "assignment_expression",
            "let_declaration",
        }:
            left, right = (
                node.child_by_field_name("left") or node.child_by_field_name("pattern"),
                node.child_by_field_name("right") or node.child_by_field_name("value"),
            )
            for name in walk_nodes(left) if left is not None and right is not None else ():
                if name.type == "identifier" and right is not None:
                    found.setdefault(node_text(name), []).append(right)
        elif node.type in {"variable_declarator", "var_spec"}:
            value, named = node.child_by_field_name("value"), node.child_by_field_name("name")
            if value is not None:
                found.setdefault(node_text(named), []).append(value)
        elif node.type in {"formal_parameter", "range_clause"}:
            named = node.child_by_field_name("name") or node.child_by_field_name("left")
            for part in node_text(named).split(","):
                found.setdefault(part.strip(), []).append(node)
    return found


# Checks that a row names by `code`: each decides over one match.


def _indexes(match: _Match) -> bool:
    """The loop's body indexes the list by the variable."""
    index, held = re.escape(match.text("index")), re.escape(match.text("list"))
    body = match.text("body")
    return bool(
        re.search(
            rf"(?<![\w.]){held}\s*(?:\[\s*{index}\s*\]|\.(?:get|charAt)\(\s*{index}\s*\))", body
        )
    ) and not re.search(rf"\b{index}\s*(?:<|>=|==)\s*(?:len\(|{held}\.)", body)


def _has_same_list(match: _Match) -> bool:
    return match.text("a") == match.text("b")


def _has_same_text(match: _Match) -> bool:
    text = match.text("a")
    return text == match.text("b") and not _has_effect(match.nodes["a"])


def _has_effect(node: Node) -> bool:
    """Whether a second evaluation may give something else: calls, increments, receives, floats' own test for NaN."""
    calls = {
        "call_expression",
        "method_invocation",
        "macro_invocation",
        "update_expression",
        "object_creation_expression",
        "inc_statement",
    }
    return any(
        n.type in calls or n.type.endswith("await_expression") for n in walk_nodes(node)
    ) or "<-" in node_text(node)


def _has_same_operands(match: _Match) -> bool:
    operator = _operator_of(match.nodes["hit"])
    if operator not in {"==", "<", ">", "<=", ">=", "&&", "||", "-", "/", "%", "^", "!="}:
        return False
    left = match.text("left")
    if left != match.text("right") or _has_effect(match.nodes["left"]):
        return False
    # `x != x` asks for NaN; constants such as `1 / 1` and shifts of flags are written on purpose
    return operator not in {"!=", "=="} | ({"/"} if left.isdecimal() else set()) or (
        operator == "=="
        and not re.search(r"(?i)nan|float|double", node_text(match.function)[:2000])
    )


def _operator_of(node: Node) -> str:
    return node_text(node.child_by_field_name("operator"))


def _is_excluding(match: _Match) -> bool:
    """`x < 1 && x > 2` never holds, `x != 1 || x != 2` always."""
    sides = []
    for name in ("left", "right"):
        node = match.nodes[name]
        operator = _operator_of(node)
        a, b = node.child_by_field_name("left"), node.child_by_field_name("right")
        value = _read_constant(b)
        if a is None or value is None or _has_effect(a):
            return False
        sides.append((node_text(a), operator, value))
    (x, first, low), (y, second, high) = sides
    if x != y:
        return False
    if match.text("operator") == "||":
        return first == second == "!=" and low != high
    if {first, second} == {"=="}:
        return low != high
    if first in {">", ">="}:
        (first, low), (second, high) = (second, high), (first, low)
    plain = isinstance(low, int) and isinstance(high, int)
    if not plain or first not in {"<", "<="} or second not in {">", ">="}:
        return False
    return (high, "=" not in first + second) >= (low, True)


def _read_constant(node: Node | None) -> int | str | None:
    """A number, or a character by its code; other literals as their text."""
    text = node_text(node)
    if re.fullmatch(r"\d{1,18}(?:u8|u32|u64|usize|i32|i64|L)?", text):
        return int(re.match(r"\d+", text)[0])  # type: ignore[index]
    if re.fullmatch(r"b?'(?:[^'\\])'", text):
        return ord(text[-2])
    return text if re.fullmatch(r'"[^"\\]*"', text) else None


def _has_same_branches(match: _Match) -> bool:
    left, right = (" ".join(match.text(name).split()) for name in ("left", "right"))
    return left == right and len(left) > 8


def _has_crossed_fields(match: _Match) -> bool:
    """`{A: b, B: a}`: two fields that are each given the variable of the other's name."""
    given: dict[str, str] = {}
    for node in match.nodes["hit"].named_children:
        if node.type == "keyed_element":
            key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
        elif node.type == "field_initializer":
            key, value = node.child_by_field_name("field"), node.child_by_field_name("value")
        else:
            continue
        if value is not None and re.fullmatch(r"[\w.]{2,80}", node_text(value)):
            given[node_text(key).lower()] = node_text(value).rpartition(".")[2].lower()
    for field_name, variable in given.items():
        if variable != field_name and given.get(variable) == field_name:
            match.words |= {"first": field_name, "second": variable}
            return True
    return False


def _has_crossed_arguments(match: _Match) -> bool:
    """The arguments are named like two parameters of the same type of the function of this file, the wrong way round."""
    named = match.text("name")
    given = [
        re.sub(r"^[&*]+(?:mut )?", "", node_text(n))
        for n in match.nodes["arguments"].named_children
    ]
    functions = [
        n
        for n in walk_nodes(match.root)
        if n.type in _NAMED_FUNCTIONS and node_text(n.child_by_field_name("name")) == named
    ]
    if len(functions) != 1:
        return False
    wanted = _read_parameters(functions[0])
    if len(wanted) != len(given):
        return False
    short = [g.rpartition(".")[2].lower() if re.fullmatch(r"[\w.]{2,80}", g) else "" for g in given]
    for i, (a, kind) in enumerate(wanted):
        for j, (b, other) in enumerate(wanted[i + 1 :], i + 1):
            if kind == other and a != b and short[i] == b and short[j] == a:
                match.words |= {"first": given[i], "second": given[j]}
                return True
    return False


def _read_parameters(function: Node) -> list[tuple[str, str]]:
    """Name and type of each parameter, in lower case; the receiver left out."""
    parameters = function.child_by_field_name("parameters")
    found = []
    for node in parameters.named_children if parameters is not None else ():
        kind = node_text(node.child_by_field_name("type"))
        names = node.children_by_field_name("name") or node.children_by_field_name("pattern")
        found += [(node_text(n).removeprefix("mut ").lower(), kind) for n in names]
    return found


def _value_is_used(match: _Match) -> bool:
    """The right side reads a member of the value."""
    value = re.escape(match.text("value"))
    return bool(re.match(rf"!?\(?{value}\s*(?:\.\w|\[)", match.text("use")))


def _branch_uses(match: _Match) -> bool:
    """The first statement of the branch reads a member of the value, and gives it no new value."""
    value, use = re.escape(match.text("value")), match.text("use")
    if re.search(rf"(?<![\w.]){value}\s*(?:,[^=\n]{{0,200}})?:?=[^=]", use) or not re.fullmatch(
        r"[\w.]+", match.text("value")
    ):
        return False
    if match.text("value").startswith("err"):
        return False
    called = re.search(rf"(?<![\w.\"']){value}\.\w+", use)
    # a method of a nil pointer may be called
    may_call = any(n.type == "nil" for n in walk_nodes(match.nodes["hit"]))
    return called is not None and not (may_call and use[called.end() :].startswith("("))


def _move_to_locked_exit(match: _Match) -> bool:
    """Between the lock and its unlock in the same block a nested statement returns without unlocking."""
    statement = match.nodes["hit"]
    block = statement.parent
    if block is None:
        return False
    unlock = {"Lock": "Unlock", "RLock": "RUnlock", "lock": "unlock"}[match.text("lock")]
    call = f"{match.text('mutex')}.{unlock}("
    match.words["unlock"] = call + ")"
    rest = [
        n for n in block.named_children if n.start_byte > statement.end_byte and n.type != "comment"
    ]
    whole = node_text(match.function)
    if call not in whole:
        return False
    for node in rest:
        text = node_text(node)
        if node.type in {"defer_statement", "try_statement", "go_statement"} or text.startswith(
            call
        ):
            return False
        for inner in walk_nodes(node):
            if inner.type in _LEAVES and _enclosing(inner, _FUNCTIONS) == _enclosing(
                statement, _FUNCTIONS
            ):
                held = (match.root.text or b"")[statement.end_byte : inner.start_byte]
                if call.encode() not in held:
                    match.nodes["hit"] = inner
                    return True
        if call in text:
            return False
    return False


def _in_loop(match: _Match) -> bool:
    """In a loop of the same function that goes on after it."""
    hit = match.nodes["hit"]
    around = _enclosing(hit, _LOOPS | _FUNCTIONS)
    if around is None or around.type not in _LOOPS:
        return False
    block = hit.parent
    rest = block.named_children if block is not None else []
    return not any(
        n.type in _LEAVES | {"break_statement"} and n.start_byte > hit.start_byte for n in rest
    )


def _not_in_loop(match: _Match) -> bool:
    around = _enclosing(match.nodes["hit"], _LOOPS | _FUNCTIONS)
    return around is None or around.type not in _LOOPS


def _more_follows(match: _Match) -> bool:
    """Statements that are no return follow in the same block."""
    hit = match.nodes["hit"]
    following = hit.next_named_sibling
    while following is not None and following.type == "comment":
        following = following.next_named_sibling
    return (
        following is not None
        and following.type not in _LEAVES
        and following.type != "statement_list"
    )


def _returns_error_only(match: _Match) -> bool:
    """The function goes on after it: a last `if err == nil { return err }` is only odd."""
    return _more_follows(match)


def _is_never_closed(match: _Match) -> bool:
    """Nothing in the function closes the value, returns it, keeps it or passes it on."""
    name = re.escape(match.text("a"))
    if match.text("a") == "_":
        return False
    text = node_text(match.function)
    rest = text[text.find(match.text("hit")) + len(match.text("hit")) :]
    handed = rf"(?<![\w.]){name}\b(?:\.Body)?"
    patterns = (
        rf"(?<![\w.]){name}(?:\.Body)?\.Close\b",
        rf"\breturn\b(?:[^\n(]*,)?\s*&?{handed}\s*(?:,|\n|\}})",
        rf"[=:]\s*&?{handed}\s*[,}}\n]",
        rf"\{{[^}}\n]*{handed}\s*[,}}]",
        rf"(?i)(?:close|cleanup|drain|new\w*|append|wrap\w*|handle\w*|with\w*|serve\w*)\w*\([^\n]*{handed}",
        rf"<-\s*{handed}",
        rf"go\s+\w[^\n]*{handed}",
    )
    return not any(re.search(p, rest) for p in patterns)


def _is_distinct_word(match: _Match) -> bool:
    """A cutset of letters that reads like a word."""
    word = match.text("word").strip('"')
    return (
        len(word) > 2
        and bool(re.search(r"[A-Za-z]{2}|/\w|\w/", word))
        and not re.fullmatch(r"(?:\\.|\W)+|0-9|[a-f0-9]{10,}", word)
    )


def _has_context(match: _Match) -> bool:
    """The enclosing function has a context as its first parameter, and does not start something that outlives it."""
    function = _enclosing(match.nodes["hit"], _FUNCTIONS)
    if function is None or function.type == "func_literal":
        return False
    given = re.match(
        r"\(\s*\w+ context\.Context\b", node_text(function.child_by_field_name("parameters"))
    )
    around = _enclosing(match.nodes["hit"], frozenset({"go_statement", "defer_statement"}))
    call = match.nodes["hit"].parent.parent if match.nodes["hit"].parent is not None else None
    derives = re.match(r"context\.With|\w*[lL]og|trace\.|otel|metric", node_text(call))
    return given is not None and around is None and not derives


def _is_empty_block(match: _Match) -> bool:
    return not match.nodes["body"].children[1:-1]


def _is_not_constant(match: _Match) -> bool:
    """A value of the expression is a variable: no literal, constant, placeholder list, name of a table or number."""
    return _names_value(match, _HARMLESS_NAME.search)


def _names_value(match: _Match, is_harmless: Callable[[str], object]) -> bool:
    sql = match.nodes.get("sql")
    for node in walk_nodes(match.nodes["values"]):
        if node.type not in _IDENTIFIERS or (sql is not None and node == sql):
            continue
        parent = node.parent
        calls = parent is not None and (
            parent.type in {"scoped_identifier", "macro_invocation"}
            or (
                parent.type
                in {
                    "selector_expression",
                    "field_expression",
                    "call_expression",
                    "method_invocation",
                }
                and node
                == (
                    parent.child_by_field_name("operand")
                    or parent.child_by_field_name("value")
                    or parent.child_by_field_name("name")
                    or parent.child_by_field_name("function")
                )
            )
        )
        name = node_text(node)
        if not calls and not is_harmless(name):
            return True
    if match.nodes["hit"].type == "macro_invocation":
        return any(not is_harmless(n) for n in re.findall(r"\{(\w+)\}", match.text("values")))
    return False


def _is_shell_value(match: _Match) -> bool:
    """A value of the expression is a variable that is no number."""
    made = match.nodes["values"]
    made = made.named_children[0] if made.type == "reference_expression" else made
    values = made.child_by_field_name("arguments") if _JOINS_TEXT.match(node_text(made)) else None
    template = values.named_children[0] if values is not None and values.named_children else None
    if template is not None and template.type.endswith(_STRING):
        verbs = {*re.findall(r"%[-+# 0,.\d*\[\]$]{0,20}([a-zA-Z%])", node_text(template))}
        if verbs and verbs <= {*"%bcdeEfgGotxX"}:
            return False
    declared = load_patterns().numbers[match.language].findall(_drop_texts(match.function))
    numbers = {*re.findall(r"\w+", " ".join(declared))}
    parts = _Match(match.language, {"hit": made, "values": values or made}, match.root)
    return _names_value(parts, lambda n: n in numbers or _HARMLESS_IN_SHELL.search(n))


def _drop_texts(node: Node) -> str:
    """The node's code with a space for each comment and each string."""
    code, start = node.text or b"", node.start_byte
    parts: list[bytes] = []
    for inner in walk_nodes(node):
        if inner.type.endswith(("comment", _STRING)) and inner.start_byte >= start:
            parts.append(code[start - node.start_byte : inner.start_byte - node.start_byte])
            start = inner.end_byte
    parts.append(code[start - node.start_byte :])
    return b" ".join(parts).decode("utf-8", "replace")


def _is_made_of_values(match: _Match) -> bool:
    """The expression, or what a variable was given in this function, joins text with a value."""
    value = match.nodes["values"]
    given = _read_assignments(match.function).get(node_text(value), [])
    for node in [value] if value.type == "binary_expression" else given:
        made = node.named_children[0] if node.type == "expression_list" else node
        joins = _JOINS_TEXT.match(node_text(made)) or made.type == "binary_expression"
        parts = _Match(match.language, {"hit": made, "values": made}, match.root)
        if joins and re.search(r'["`]', node_text(node)) and _is_shell_value(parts):
            return True
    return False


_JOINS_TEXT = re.compile(r"fmt\.Sprintf\(|format!\(|String\.format\(")
_STRING = "string_literal"
_HARMLESS_IN_SHELL = re.compile(
    r"^[A-Z][A-Z0-9_]+$|^(?i:len|length|size|count|num|index|limit|offset|itoa|formatint|formatuint)$|(?i:quote|escape)"
)
_HARMLESS_NAME = re.compile(
    r"^[A-Z][A-Z0-9_]+$|(?i:table|column|placeholder|marks|schema|where|clause|cond|order|limit|offset|count|fields|index|prefix|suffix|quote|escape|len|size|num)"
)


def _joins_text(match: _Match) -> bool:
    """The statement itself is put together: it is no literal with its values beside it."""
    return any(
        n.type == "binary_expression" or node_text(n).startswith(("fmt.Sprintf", "String.format"))
        for n in walk_nodes(match.nodes["values"])
        if '"' in node_text(n) or "`" in node_text(n)
    )


def _names_secret(match: _Match) -> bool:
    """The function, or what the value is assigned to, is named for a secret."""
    if match.text("p") == "rand" and b'"math/rand' not in (match.root.text or b""):
        return False
    function = match.function
    name = node_text(function.child_by_field_name("name")) if function != match.root else ""
    around = _enclosing(
        match.nodes["hit"],
        frozenset(
            {
                "short_var_declaration",
                "assignment_statement",
                "assignment_expression",
                "variable_declarator",
                "let_declaration",
                "field_declaration",
                "var_spec",
            }
        ),
    )
    target = node_text(around).split("=", maxsplit=1)[0] if around is not None else ""
    parameters = (
        node_text(function.child_by_field_name("parameters")) if function != match.root else ""
    )
    what = (
        f"{name} {target}"
        if "rand" in match.text("p").lower() or "andom" in match.text("hit")
        else f"{name} {target} {parameters}"
    )
    return bool(_SECRET_NAME.search(what)) and not re.search(
        r"(?i)etag|checksum|cache_?key|fingerprint|bench|jitter|shuffle|backoff", what
    )


_SECRET_NAME = re.compile(
    r"(?i)passw|secret|token|session_?(?:id|key)|api_?key|nonce|salt|otp|signature|sign(?:ed|ing)?[A-Z_(\b]|hmac|csrf|credential|reset_?code|invite_?code|private_?key|auth(?:enticat|_?code|_?key)"
)
_BEHIND_OPTIONS = re.compile(
    r"""^\((?:\s*(?:ctx|\w+\.Context\(\)|context\.\w+\(\))\s*,|\s*(?:new\s+String\s*\[\]\s*\{|List\.of\(|Arrays\.asList\())?\s*"(?!(?:[^"]*/)?(?:[bdkz]a)?sh"|cmd|powershell|pwsh|env"|xargs")[^"]+"(?:\s*,\s*"[^"]*")*\s*,\s*"--\""""
)


def _may_be_option(match: _Match) -> bool:
    """Whether a command's values may be the program or an option: none is behind a literal program, no shell, and `--`."""
    return _BEHIND_OPTIONS.match(match.text("values")) is None


_CHECKS: Mapping[str, Callable[[_Match], bool]] = {
    "indexes": _indexes,
    "same_list": _has_same_list,
    "same_text": _has_same_text,
    "same_operands": _has_same_operands,
    "excluding": _is_excluding,
    "same_branches": _has_same_branches,
    "crossed_fields": _has_crossed_fields,
    "crossed_arguments": _has_crossed_arguments,
    "value_is_used": _value_is_used,
    "branch_uses": _branch_uses,
    "leaves_locked": _move_to_locked_exit,
    "in_loop": _in_loop,
    "not_in_loop": _not_in_loop,
    "more_follows": _more_follows,
    "returns_error_only": _returns_error_only,
    "never_closed": _is_never_closed,
    "distinct_word": _is_distinct_word,
    "has_context": _has_context,
    "empty_block": _is_empty_block,
    "not_constant": _is_not_constant,
    "shell_value": _is_shell_value,
    "made_of_values": _is_made_of_values,
    "joins_text": _joins_text,
    "named_secret": _names_secret,
    "may_be_option": _may_be_option,
}
