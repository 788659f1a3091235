"""YAML as GitHub reads it: 1.2, `on` is a key, anchors yes, merge keys no, a key twice is an error."""

from __future__ import annotations

import re

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from regreen.errors import UserError
from regreen.fixers.expressions import Value
from regreen.yaml_faults import fault

MAX_VALUES = 100_000
"""More values than this, aliases counted each time, is an attack and no workflow."""
MAX_DEPTH = 100
MAX_BYTES = 1024 * 1024

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


class WorkflowError(UserError):
    """A workflow file that GitHub would refuse; the text says where and why."""


def load(text: str) -> Value:
    """The document as plain values, numbers as floats.

    Raises:
        WorkflowError: the text is no YAML that GitHub takes; the message holds the line.
    """
    if len(text) > MAX_BYTES:
        message = f"a workflow file may have {MAX_BYTES} characters, this one has {len(text)}"
        raise WorkflowError(message)
    reader = YAML(typ="safe", pure=True)
    try:
        node = reader.compose(text)
    except (YAMLError, RecursionError, ValueError) as error:
        line, what = fault(text, error)
        message = f"line {line}: {what}"
        raise WorkflowError(message) from error
    return _Converter().convert(node, 0) if node is not None else None


class _Converter:
    """Nodes to values, counting, so that aliases of aliases cannot grow without end."""

    def __init__(self) -> None:
        self._values = 0

    def convert(self, node: Node, depth: int) -> Value:
        self._values += 1
        if self._values > MAX_VALUES or depth > MAX_DEPTH:
            raise _error(node, "too large or too deep, or an alias that holds itself")
        if isinstance(node, MappingNode):
            return self._mapping(node, depth)
        if isinstance(node, SequenceNode):
            return [self.convert(one, depth + 1) for one in node.value]
        assert isinstance(node, ScalarNode)  # noqa: S101 - the three kinds of node there are
        return _scalar(node)

    def _mapping(self, node: MappingNode, depth: int) -> Value:
        values: dict[str, Value] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                raise _error(key_node, "a key must be a plain word")
            key = str(key_node.value)
            if key == "<<" and not key_node.style:
                raise _error(
                    key_node,
                    "merge keys ('<<') are not supported by GitHub; repeat the keys or use an alias",
                )
            if key in values:
                raise _error(key_node, f"the key {key!r} is there twice")
            values[key] = self.convert(value_node, depth + 1)
        return values


def _scalar(node: ScalarNode) -> Value:
    text = str(node.value)
    if node.style:
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text):
        return float(int(text, 0) if text[:2] in {"0o", "0x"} else int(text[:300]))
    if _FLOAT.fullmatch(text):
        return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
    return text


def _error(node: Node, what: str) -> WorkflowError:
    return WorkflowError(f"line {node.start_mark.line + 1}: {what}")
