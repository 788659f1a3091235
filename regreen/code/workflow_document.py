"""A workflow or action file as values: events, jobs, steps, and the lines they stand on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from regreen.code.config_loaders import compose_bounded_yaml, locate_fault
from regreen.domain.errors import UserError

_NULL_WORDS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE_WORDS = frozenset({"true", "True", "TRUE"})
_FALSE_WORDS = frozenset({"false", "False", "FALSE"})
_INT_PATTERN = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT_PATTERN = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)

SECRET_REFERENCE = re.compile(r"\bsecrets\.(?!GITHUB_TOKEN\b)\w+", re.IGNORECASE)


class WorkflowError(UserError):
    """A workflow file that GitHub would refuse; the text says where and why."""


class WorkflowMapping(dict[str, Any]):
    """A mapping of a workflow file, with the lines (1-based) where it and its keys stand."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.key_lines: dict[str, int] = {}


@dataclass(slots=True)
class ParsedJob:
    """One job, or a composite action, with what its steps may do."""

    name: str
    steps: list[WorkflowMapping] = field(default_factory=list)
    line: int = 1
    has_secrets: bool = False
    writes: bool = False
    condition: str = ""


def is_workflow(path: str) -> bool:
    """Whether GitHub runs such a file."""
    return (
        re.search(r"(?:^|/)\.github/workflows/[^/]+\.ya?ml$|(?:^|/)action\.ya?ml$", path)
        is not None
    )


def load_workflow(text: str) -> Any:
    """The document as GitHub reads it: YAML 1.2, `on` is a key, numbers are floats, mappings are `WorkflowMapping`.

    Raises:
        WorkflowError: the text is no YAML that GitHub takes; the message holds the line.
    """
    try:
        node = compose_bounded_yaml(text)
    except (YAMLError, RecursionError, ValueError) as error:
        line, what = locate_fault(text, error)
        message = f"line {line}: {what}"
        raise WorkflowError(message) from error
    return _convert_node(node) if node is not None else None


def _convert_node(node: Node) -> Any:
    if isinstance(node, MappingNode):
        return _convert_mapping(node)
    if isinstance(node, SequenceNode):
        return [_convert_node(one) for one in node.value]
    assert isinstance(node, ScalarNode)  # noqa: S101 - the three kinds of node there are
    return _convert_scalar(node)


def _convert_mapping(node: MappingNode) -> Any:
    values = WorkflowMapping(node.start_mark.line + 1)
    for key_node, value_node in node.value:
        key = str(key_node.value)
        if key == "<<" and not key_node.style:
            raise _make_error(
                key_node,
                "merge keys ('<<') are not supported by GitHub; repeat the keys or use an alias",
            )
        if key in values:
            raise _make_error(key_node, f"the key {key!r} is there twice")
        values[key] = _convert_node(value_node)
        values.key_lines[key] = key_node.start_mark.line + 1
    return values


def _convert_scalar(node: ScalarNode) -> Any:
    text = str(node.value)
    if node.style:
        return text
    if text in _NULL_WORDS:
        return None
    if text in _TRUE_WORDS or text in _FALSE_WORDS:
        return text in _TRUE_WORDS
    if _INT_PATTERN.fullmatch(text):
        return float(int(text, 0) if text[:2] in {"0o", "0x"} else int(text[:300]))
    if _FLOAT_PATTERN.fullmatch(text):
        return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
    return text


def _make_error(node: Node, what: str) -> WorkflowError:
    return WorkflowError(f"line {node.start_mark.line + 1}: {what}")


def read_triggers(document: WorkflowMapping) -> dict[str, int]:
    """Event names and the lines they stand in."""
    value = document.get("on")
    if isinstance(value, WorkflowMapping):
        return {name: find_key_line(value, name) for name in value}
    names = value if isinstance(value, list) else [] if value is None else [value]
    return {str(name): find_key_line(document, "on") for name in names}


def find_key_line(mapping: WorkflowMapping, key: str | None) -> int:
    """The line (1-based) of a key; of the mapping itself where it has no such key."""
    return mapping.key_lines.get(key or "", mapping.line)


def read_jobs(document: WorkflowMapping) -> Iterator[ParsedJob]:
    """Every job of a workflow; of a composite action its steps, as one job."""
    jobs = document.get("jobs")
    top = document.get("permissions")
    if isinstance(jobs, WorkflowMapping):
        for name, job in jobs.items():
            if not isinstance(job, WorkflowMapping):
                continue
            steps = [step for step in job.get("steps") or [] if isinstance(step, WorkflowMapping)]
            if "uses" in job:
                steps = [job]
            granted = job.get("permissions", top)
            yield ParsedJob(
                str(name),
                steps,
                find_key_line(jobs, name),
                SECRET_REFERENCE.search(flatten_text(job)) is not None
                or job.get("secrets") == "inherit",
                grants_write(granted),
                str(job.get("if", "")),
            )
    runs = document.get("runs")
    if isinstance(runs, WorkflowMapping) and isinstance(runs.get("steps"), list):
        yield ParsedJob(
            "action",
            [step for step in runs["steps"] if isinstance(step, WorkflowMapping)],
            find_key_line(document, "runs"),
        )


def flatten_text(value: object, depth: int = 0) -> str:
    """Everything in it as text, up to a depth."""
    if depth > 8:
        return ""
    if isinstance(value, WorkflowMapping):
        return "\n".join(f"{k}: {flatten_text(v, depth + 1)}" for k, v in value.items())[:200_000]
    if isinstance(value, list):
        return "\n".join(flatten_text(v, depth + 1) for v in value)[:200_000]
    return str(value)


def grants_write(granted: object) -> bool:
    """Whether these permissions let a token write."""
    if isinstance(granted, WorkflowMapping):
        return any(str(level) == "write" for level in granted.values())
    return granted is None or str(granted) == "write-all"
