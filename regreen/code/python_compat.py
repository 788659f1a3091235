"""Python source written for 3.12 and later, made readable for an older parser.

Since 3.12 the expressions inside an f-string may hold any quote, backslash or comment (PEP 701). Where the
running parser refuses them, each such string is rewritten as a call that spans the same lines, and the call
is turned back into a `JoinedStr` in the tree (conversions and format specifications are left out).
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass

from typing_extensions import override

from regreen.code.python_calls import parse_syntax_tree

MAX_CHARACTERS = 2_000_000
_F_STRING_CALL = "__f_string__"
_MAX_DEPTH = 12
_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |(?<!\w)(?P<prefix>[rR]?[fFbBuU]?|[fFbB][rR])(?P<quote>'''|\"\"\"|'|")
    |(?P<open>[\[({])|(?P<close>[\])}])|(?P<end>\n)""",
    re.VERBOSE,
)
_F_STRING_START = re.compile(r"(?<!\w)(?:[fF][rR]?|[rR][fF])['\"]")


class UnparsableSource(Exception):
    """The text is no Python that can be read; the message says why."""


def parse_python_or_explain(text: str) -> ast.Module:
    """The syntax tree of a Python file.

    Raises:
        Unparsable: it is too large, nested too deeply, or no Python.
    """
    if len(text) > MAX_CHARACTERS:
        msg = f"larger than {MAX_CHARACTERS:,} characters"
        raise UnparsableSource(msg)
    try:
        return _parse_checked(text)
    except SyntaxError as error:
        problem = f"syntax error in line {error.lineno}: {error.msg}"
    if sys.version_info >= (3, 12) or not _F_STRING_START.search(text):
        raise UnparsableSource(problem)
    try:
        return _FStringRestorer().restore_tree(_parse_checked(_rewrite_f_strings(text)))
    except SyntaxError as error:
        raise UnparsableSource(problem) from error
    except RecursionError as error:
        raise UnparsableSource("nested too deeply") from error


def _parse_checked(text: str) -> ast.Module:
    try:
        return parse_syntax_tree(text)
    except (RecursionError, MemoryError) as error:
        raise UnparsableSource("nested too deeply") from error
    except UnicodeEncodeError as error:
        raise UnparsableSource("not UTF-8, and it declares no known encoding") from error
    except ValueError as error:
        msg = f"not Python: {error}"
        raise UnparsableSource(msg) from error


@dataclass(slots=True)
class _StringPiece:
    """One string token: where it stands, and how it reads after rewriting."""

    start: int
    end: int
    text: str
    is_f: bool


def _rewrite_f_strings(text: str) -> str:
    """Every run of adjacent strings that holds an f-string, as one call over the same lines."""
    return _rewrite_range(text, 0, len(text), 0)


def _rewrite_range(text: str, start: int, stop: int, depth: int) -> str:
    out: list[str] = []
    run: list[_StringPiece] = []
    here = start
    brackets = depth  # inside a replacement field line ends mean nothing
    position = start
    while (match := _TOKEN.search(text, position, stop)) is not None:
        position = match.end()
        if match["comment"] is not None:
            continue
        if match["quote"] is not None:
            piece = _read_string(text, match, stop, depth)
            if (
                run
                and text[run[-1].end : piece.start].strip(" \t\r\n\\\f")
                and not _is_only_comments(text[run[-1].end : piece.start])
            ):
                here = _write_string_pieces(text, run, here, out)
                run = []
            run.append(piece)
            position = piece.end
            continue
        if match["open"] is not None:
            brackets += 1
        elif match["close"] is not None:
            brackets = max(0, brackets - 1)
        if (match["end"] is None or not brackets) and text[match.start() - 1] != "\\":
            here = _write_string_pieces(text, run, here, out)
            run = []
    here = _write_string_pieces(text, run, here, out)
    out.append(text[here:stop])
    return "".join(out)


def _is_only_comments(gap: str) -> bool:
    return all(
        not line.strip() or line.lstrip().startswith(("#", "\\")) for line in gap.split("\n")
    )


def _write_string_pieces(text: str, run: list[_StringPiece], here: int, out: list[str]) -> int:
    if not any(piece.is_f for piece in run):
        return here
    out.append(text[here : run[0].start] + _F_STRING_CALL + "(")
    for one, following in zip(run, [*run[1:], None], strict=True):
        out.append(one.text + ",")
        if following is not None:
            out.append(text[one.end : following.start])
    out.append(")")
    return run[-1].end


def _read_string(text: str, match: re.Match[str], stop: int, depth: int) -> _StringPiece:
    prefix, quote = match["prefix"].lower(), match["quote"]
    if "f" not in prefix:
        end = _find_plain_end(text, match.end(), stop, quote)
        return _StringPiece(match.start(), end, text[match.start() : end], is_f=False)
    if depth >= _MAX_DEPTH:
        raise SyntaxError("f-strings nested too deeply")
    parts: list[str] = []
    opening = ("r" if "r" in prefix else "") + quote
    position = literal = match.end()
    while True:
        if position >= stop or (len(quote) == 1 and text[position] == "\n"):
            raise SyntaxError("unterminated f-string")
        if text.startswith(quote, position):
            break
        two = text[position : position + 2]
        if two[0] == "\\":
            position += 2
            if two == "\\N" and text.startswith("{", position) and "r" not in prefix:
                position = text.find("}", position) + 1 or stop
        elif two in ("{{", "}}"):
            position += 2
        elif two[0] == "{":
            parts.append(_quote_literal(text[literal:position], opening, quote))
            field, position = _rewrite_field(text, position + 1, stop, depth + 1)
            parts.append(field)
            literal = position
        else:
            position += 1
    parts.append(_quote_literal(text[literal:position], opening, quote))
    kept = [part for part in parts if part]
    return _StringPiece(match.start(), position + len(quote), ",".join(kept or ["''"]), is_f=True)


def _quote_literal(text: str, opening: str, quote: str) -> str:
    if not text:
        return ""
    plain = text.replace("{{", "{").replace("}}", "}")
    return f"{opening}{plain}{quote}"


def _find_plain_end(text: str, position: int, stop: int, quote: str) -> int:
    while position < stop:
        if text[position] == "\\":
            position += 2
        elif text.startswith(quote, position):
            return position + len(quote)
        elif len(quote) == 1 and text[position] == "\n":
            break
        else:
            position += 1
    raise SyntaxError("unterminated string")


def _rewrite_field(text: str, start: int, stop: int, depth: int) -> tuple[str, int]:
    """One `{...}`: its expression in parentheses, and where the text goes on."""
    end, position = _find_expression_end(text, start, stop, depth)
    expression = _rewrite_range(text, start, end, depth).rstrip()
    if expression.endswith("=") and expression[-2:-1] not in ("=", "!", "<", ">"):
        expression = expression[:-1]
    close = _find_specification_end(text, position, stop, depth)
    return f"({expression}{chr(10) * text.count(chr(10), end, close)})", close + 1


def _find_expression_end(text: str, position: int, stop: int, depth: int) -> tuple[int, int]:
    """Where the expression ends, and where what follows it begins."""
    brackets = 0
    while position < stop:
        match = _TOKEN.match(text, position, stop)
        if match is not None and match["quote"] is not None:
            position = _read_string(text, match, stop, depth).end
            continue
        if match is not None and match["comment"] is not None:
            position = match.end()
            continue
        character = text[position]
        if not brackets and (
            character in "}:" or (character == "!" and text[position + 1 : position + 2] != "=")
        ):
            return position, position
        if character in "([{":
            brackets += 1
        elif character in ")]}":
            brackets -= 1
        position += 1
    raise SyntaxError("unterminated field")


def _find_specification_end(text: str, position: int, stop: int, depth: int) -> int:
    """The index of the brace that closes the field."""
    while position < stop:
        if text[position] == "}":
            return position
        if text[position] == "{":
            if depth >= _MAX_DEPTH:
                raise SyntaxError("f-strings nested too deeply")
            _, position = _rewrite_field(text, position + 1, stop, depth + 1)
            continue
        position += 1
    raise SyntaxError("unterminated field")


class _FStringRestorer(ast.NodeTransformer):
    """Calls that stand for f-strings, turned back."""

    def restore_tree(self, tree: ast.Module) -> ast.Module:
        """The tree without the calls."""
        self.visit(tree)
        return tree

    @override
    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id != _F_STRING_CALL:
            return node
        values: list[ast.expr] = []
        for part in node.args:
            if isinstance(part, ast.JoinedStr):
                values.extend(part.values)
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                values.append(part)
            else:
                values.append(ast.copy_location(ast.FormattedValue(part, -1, None), part))
        return ast.copy_location(ast.JoinedStr(values), node)
