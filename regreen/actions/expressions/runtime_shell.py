"""What is left of an expression when the run starts, as bash: outputs of earlier steps, GITHUB_ENV, how it went so far."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal as One

from regreen.actions.expressions.evaluation import (
    BinaryOperation,
    ContextName,
    FunctionCall,
    IndexAccess,
    LiteralValue,
    Negation,
    Node,
    format_node,
    to_string,
)
from regreen.domain.errors import UserError


class NotAtRunTime(UserError):
    """An expression that needs more than the run here can know."""


@dataclass(frozen=True)
class BashCode:
    """Bash that leaves a value in a variable: `lines` first, then `word` is the value, quoted."""

    lines: tuple[str, ...]
    word: str
    type: One["bool", "text", "json"]


class ExpressionCompiler:
    """Compiles expressions, one after the other, into variables of their own."""

    def __init__(self) -> None:
        self._count = 0

    def compile_value(self, node: Node) -> BashCode:
        """Bash for the value as text.

        Raises:
            NotAtRunTime: bash cannot know it.
        """
        match node:
            case LiteralValue(value):
                kind: One["bool", "text"] = "bool" if isinstance(value, bool) else "text"
                return BashCode((), shlex.quote(to_string(value)), kind)
            case IndexAccess():
                return self._compile_lookup(node)
            case Negation(of):
                inner = self.compile_value(of)
                return self._assign_variable(
                    "bool",
                    (*inner.lines, _truth_test_code(inner)),
                    'if [ "$rg_truth" = true ]; then REPLY=false; else REPLY=true; fi',
                )
            case BinaryOperation(operator, left, right):
                return self._compile_binary(operator, left, right)
            case FunctionCall(name, arguments):
                return self._compile_call(node, name, arguments)
            case ContextName():
                raise _make_refusal(node)

    def compile_condition(self, node: Node) -> list[str]:
        """Bash that sets `rg_truth` to true or false."""
        code = self.compile_value(node)
        return [*code.lines, _truth_test_code(code)]

    def _assign_variable(
        self, kind: One["bool", "text", "json"], lines: tuple[str, ...], last: str
    ) -> BashCode:
        self._count += 1
        name = f"rg_v{self._count}"
        return BashCode((*lines, f"{last}; {name}=$REPLY"), f'"${name}"', kind)

    def _compile_lookup(self, node: IndexAccess) -> BashCode:
        match node:
            case IndexAccess(
                IndexAccess(
                    IndexAccess(ContextName(root), LiteralValue(str() as step)),
                    LiteralValue(str() as what),
                ),
                LiteralValue(str() as name),
            ) if root.lower() == "steps" and what.lower() == "outputs":
                return self._assign_variable(
                    "text", (), f"rg_output {shlex.quote(step)} {shlex.quote(name)}"
                )
            case IndexAccess(
                IndexAccess(ContextName(root), LiteralValue(str() as step)),
                LiteralValue(str() as what),
            ) if root.lower() == "steps" and what.lower() in {"outcome", "conclusion"}:
                return self._assign_variable(
                    "text", (), f"rg_ended {shlex.quote(step)} {what.lower()}"
                )
            case IndexAccess(ContextName(root), LiteralValue(str() as name)) if (
                root.lower() == "env"
            ):
                return self._assign_variable("text", (), f"rg_env {shlex.quote(name)}")
            case IndexAccess(ContextName(root), LiteralValue(str() as name)) if (
                root.lower() == "job" and name.lower() == "status"
            ):
                return self._assign_variable("text", (), "rg_status")
            case _:
                raise _make_refusal(node)

    def _compile_binary(self, operator: str, left: Node, right: Node) -> BashCode:
        item, other = self.compile_value(left), self.compile_value(right)
        lines = (*item.lines, *other.lines)
        if operator in {"&&", "||"}:
            first, second = (other, item) if operator == "&&" else (item, other)
            kind = item.type if item.type == other.type else "text"
            choose = (
                f'if [ "$rg_truth" = true ]; then REPLY={first.word}; else REPLY={second.word}; fi'
            )
            return self._assign_variable(kind, (*lines, _truth_test_code(item)), choose)
        if operator in {"==", "!="}:
            how = "rg_same" if _are_both_text(left, right) else "rg_same_number"
            yes, no = ("true", "false") if operator == "==" else ("false", "true")
            return self._assign_variable(
                "bool",
                lines,
                f"if {how} {item.word} {other.word}; then REPLY={yes}; else REPLY={no}; fi",
            )
        return self._assign_variable(
            "bool",
            lines,
            f"if rg_ordered {item.word} {shlex.quote(operator)} {other.word}; then REPLY=true; else REPLY=false; fi",
        )

    def _compile_call(self, node: Node, name: str, arguments: tuple[Node, ...]) -> BashCode:
        if name in {"success", "failure", "cancelled", "always"}:
            return self._assign_variable("bool", (), f"rg_{name}")
        codes = [self.compile_value(argument) for argument in arguments]
        lines = tuple(line for code in codes for line in code.lines)
        words = " ".join(code.word for code in codes)
        if name in {"contains", "startswith", "endswith"}:
            return self._assign_variable(
                "bool", lines, f"if rg_{name} {words}; then REPLY=true; else REPLY=false; fi"
            )
        if name == "fromjson":
            return BashCode(lines, codes[0].word, "json")
        if name == "format":
            return self._assign_variable("text", lines, f"rg_format {words}")
        if name == "join":
            return BashCode(lines, codes[0].word, "text")
        raise _make_refusal(node)


def _truth_test_code(code: BashCode) -> str:
    """GitHub's truth of a value that bash holds as text."""
    false = {"bool": "false|''", "text": "''", "json": "''|false|0|null"}[code.type]
    return f"case {code.word} in {false}) rg_truth=false;; *) rg_truth=true;; esac"


def _are_both_text(left: Node, right: Node) -> bool:
    return all(
        not isinstance(item, LiteralValue) or isinstance(item.value, str) for item in (left, right)
    ) and not any(
        isinstance(item, (BinaryOperation, Negation))
        or (isinstance(item, FunctionCall) and item.name != "format")
        for item in (left, right)
    )


def _make_refusal(node: Node) -> NotAtRunTime:
    return NotAtRunTime(f"the expression {format_node(node)} needs what only GitHub knows")


HELPER_FUNCTIONS = r"""
rg_output() { REPLY=; [ -f "$RG/outputs/$1/$2" ] && REPLY=$(cat "$RG/outputs/$1/$2"; printf x) && REPLY=${REPLY%x}; return 0; }
rg_ended() { REPLY=; [ -f "$RG/$2/$1" ] && REPLY=$(cat "$RG/$2/$1"); return 0; }
rg_env() { REPLY=; [ -f "$RG/env/$1" ] && REPLY=$(cat "$RG/env/$1"; printf x) && REPLY=${REPLY%x}; return 0; }
rg_status() { if [ -e "$RG/failed" ]; then REPLY=failure; else REPLY=success; fi; }
rg_success() { if [ -e "$RG/failed" ]; then REPLY=false; else REPLY=true; fi; }
rg_failure() { if [ -e "$RG/failed" ]; then REPLY=true; else REPLY=false; fi; }
rg_always() { REPLY=true; }
rg_cancelled() { REPLY=false; }
rg_same() { [ "${1,,}" = "${2,,}" ]; }
rg_number() {
  case "$1" in ''|false|null) REPLY=0;; true) REPLY=1;; *[!0-9.eE+-]*) REPLY=NaN;; *) REPLY=$1;; esac
}
rg_ordered() {
  local a b; rg_number "$1"; a=$REPLY; rg_number "$3"; b=$REPLY
  if [ "$a" = NaN ] || [ "$b" = NaN ]; then return 1; fi
  awk -v a="$a" -v b="$b" -v o="$2" 'BEGIN { a += 0; b += 0
    exit !((o == "<" && a < b) || (o == "<=" && a <= b) || (o == ">" && a > b) || (o == ">=" && a >= b) || (o == "==" && a == b)) }'
}
rg_same_number() { rg_ordered "$1" '==' "$2"; }
rg_contains() { case "${1,,}" in *"${2,,}"*) return 0;; esac; return 1; }
rg_startswith() { case "${1,,}" in "${2,,}"*) return 0;; esac; return 1; }
rg_endswith() { case "${1,,}" in *"${2,,}") return 0;; esac; return 1; }
rg_format() { local text=$1 at=0; shift; for arg; do text=${text//"{$at}"/"$arg"}; at=$((at + 1)); done; REPLY=$text; }
"""
