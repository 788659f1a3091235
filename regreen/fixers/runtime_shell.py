"""What is left of an expression when the run starts, as bash: outputs of earlier steps, GITHUB_ENV, how it went so far."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal as One

from regreen.errors import UserError
from regreen.fixers.expressions import (
    Binary,
    Call,
    Index,
    Literal,
    Name,
    Node,
    Not,
    show,
    to_string,
)


class NotAtRunTime(UserError):
    """An expression that needs more than the run here can know."""


@dataclass(frozen=True)
class Code:
    """Bash that leaves a value in a variable: `lines` first, then `word` is the value, quoted."""

    lines: tuple[str, ...]
    word: str
    type: One["bool", "text", "json"]


class Compiler:
    """Compiles expressions, one after the other, into variables of their own."""

    def __init__(self) -> None:
        self._count = 0

    def value(self, node: Node) -> Code:
        """Bash for the value as text.

        Raises:
            NotAtRunTime: bash cannot know it.
        """
        match node:
            case Literal(value):
                kind: One["bool", "text"] = "bool" if isinstance(value, bool) else "text"
                return Code((), shlex.quote(to_string(value)), kind)
            case Index():
                return self._lookup(node)
            case Not(of):
                inner = self.value(of)
                return self._set(
                    "bool",
                    (*inner.lines, _truth(inner)),
                    'if [ "$rg_truth" = true ]; then REPLY=false; else REPLY=true; fi',
                )
            case Binary(operator, left, right):
                return self._binary(operator, left, right)
            case Call(name, arguments):
                return self._call(node, name, arguments)
            case Name():
                raise _refused(node)

    def holds(self, node: Node) -> list[str]:
        """Bash that sets `rg_truth` to true or false."""
        code = self.value(node)
        return [*code.lines, _truth(code)]

    def _set(self, kind: One["bool", "text", "json"], lines: tuple[str, ...], last: str) -> Code:
        self._count += 1
        name = f"rg_v{self._count}"
        return Code((*lines, f"{last}; {name}=$REPLY"), f'"${name}"', kind)

    def _lookup(self, node: Index) -> Code:
        match node:
            case Index(
                Index(Index(Name(root), Literal(str() as step)), Literal(str() as what)),
                Literal(str() as name),
            ) if root.lower() == "steps" and what.lower() == "outputs":
                return self._set("text", (), f"rg_output {shlex.quote(step)} {shlex.quote(name)}")
            case Index(Index(Name(root), Literal(str() as step)), Literal(str() as what)) if (
                root.lower() == "steps" and what.lower() in {"outcome", "conclusion"}
            ):
                return self._set("text", (), f"rg_ended {shlex.quote(step)} {what.lower()}")
            case Index(Name(root), Literal(str() as name)) if root.lower() == "env":
                return self._set("text", (), f"rg_env {shlex.quote(name)}")
            case Index(Name(root), Literal(str() as name)) if (
                root.lower() == "job" and name.lower() == "status"
            ):
                return self._set("text", (), "rg_status")
            case _:
                raise _refused(node)

    def _binary(self, operator: str, left: Node, right: Node) -> Code:
        one, other = self.value(left), self.value(right)
        lines = (*one.lines, *other.lines)
        if operator in {"&&", "||"}:
            first, second = (other, one) if operator == "&&" else (one, other)
            kind = one.type if one.type == other.type else "text"
            choose = (
                f'if [ "$rg_truth" = true ]; then REPLY={first.word}; else REPLY={second.word}; fi'
            )
            return self._set(kind, (*lines, _truth(one)), choose)
        if operator in {"==", "!="}:
            how = "rg_same" if _both_text(left, right) else "rg_same_number"
            yes, no = ("true", "false") if operator == "==" else ("false", "true")
            return self._set(
                "bool",
                lines,
                f"if {how} {one.word} {other.word}; then REPLY={yes}; else REPLY={no}; fi",
            )
        return self._set(
            "bool",
            lines,
            f"if rg_ordered {one.word} {shlex.quote(operator)} {other.word}; then REPLY=true; else REPLY=false; fi",
        )

    def _call(self, node: Node, name: str, arguments: tuple[Node, ...]) -> Code:
        if name in {"success", "failure", "cancelled", "always"}:
            return self._set("bool", (), f"rg_{name}")
        codes = [self.value(one) for one in arguments]
        lines = tuple(line for code in codes for line in code.lines)
        words = " ".join(code.word for code in codes)
        if name in {"contains", "startswith", "endswith"}:
            return self._set(
                "bool", lines, f"if rg_{name} {words}; then REPLY=true; else REPLY=false; fi"
            )
        if name == "fromjson":
            return Code(lines, codes[0].word, "json")
        if name == "format":
            return self._set("text", lines, f"rg_format {words}")
        if name == "join":
            return Code(lines, codes[0].word, "text")
        raise _refused(node)


def _truth(code: Code) -> str:
    """GitHub's truth of a value that bash holds as text."""
    false = {"bool": "false|''", "text": "''", "json": "''|false|0|null"}[code.type]
    return f"case {code.word} in {false}) rg_truth=false;; *) rg_truth=true;; esac"


def _both_text(left: Node, right: Node) -> bool:
    return all(
        not isinstance(one, Literal) or isinstance(one.value, str) for one in (left, right)
    ) and not any(
        isinstance(one, (Binary, Not)) or (isinstance(one, Call) and one.name != "format")
        for one in (left, right)
    )


def _refused(node: Node) -> NotAtRunTime:
    return NotAtRunTime(f"the expression {show(node)} needs what only GitHub knows")


HELPERS = r"""
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
