"""A workflow or action file as values: events, jobs, steps, and the lines they stand on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

_LARGEST = 400_000
_DEEPEST = 200
SECRET = re.compile(r"\bsecrets\.(?!GITHUB_TOKEN\b)\w+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Risk:
    """One risk. `lines` are every line (1-based) that makes it, the most telling first; `key` tells it apart."""

    rule: str
    key: str
    lines: tuple[int, ...]
    title: str
    body: str
    severity: Literal["critical", "high", "medium", "low"]
    confidence: float


class NotYaml(Exception):
    """The file cannot be read as YAML; the message says why."""


@dataclass(slots=True)
class Job:
    """One job, or a composite action, with what its steps may do."""

    name: str
    steps: list[CommentedMap] = field(default_factory=list)
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


def loaded(text: str) -> object:
    """The document.

    Raises:
        NotYaml: it cannot be read.
    """
    if len(text) > _LARGEST:
        raise NotYaml("too large")
    if _too_deep(text):
        raise NotYaml("nested too deeply")
    try:
        return YAML(typ="rt").load(text)
    except YAMLError as error:
        problem = str(error).split("\n", maxsplit=1)[0]
        raise NotYaml(problem) from error
    except (
        RecursionError,
        ValueError,
        AttributeError,
        TypeError,
        KeyError,
        AssertionError,
    ) as error:
        # ruamel.yaml stumbles over damaged documents in more ways than its own exception.
        msg = f"not YAML: {type(error).__name__}"
        raise NotYaml(msg) from error


def _too_deep(text: str) -> bool:
    depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            if depth > _DEEPEST:
                return True
        elif character in "]}":
            depth = max(0, depth - 1)
    return any(len(line) - len(line.lstrip(" -?")) > 4 * _DEEPEST for line in text.split("\n"))


def triggers_of(document: CommentedMap) -> dict[str, int]:
    """Event names and the lines they stand in. YAML 1.1 reads the key `on` as true."""
    key = next((k for k in ("on", True) if k in document), None)
    if key is None:
        return {}
    line = line_of(document, key)
    value = document[key]
    if isinstance(value, CommentedMap):
        return {str(name): line_of(value, name) for name in value}
    if isinstance(value, CommentedSeq):
        return {str(name): line for name in value}
    return {str(value): line}


def line_of(mapping: CommentedMap | CommentedSeq, key: object) -> int:
    """The line (1-based) of a key or an index."""
    try:
        return (
            int(mapping.lc.key(key)[0]) + 1
            if isinstance(mapping, CommentedMap)
            else int(mapping.lc.item(key)[0]) + 1
        )
    except (KeyError, TypeError, IndexError, AttributeError):
        return int(getattr(mapping.lc, "line", 0) or 0) + 1


def jobs_of(document: CommentedMap) -> Iterator[Job]:
    """Every job of a workflow; of a composite action its steps, as one job."""
    jobs = document.get("jobs")
    top = document.get("permissions")
    if isinstance(jobs, CommentedMap):
        for name, job in jobs.items():
            if not isinstance(job, CommentedMap):
                continue
            steps = [step for step in job.get("steps") or [] if isinstance(step, CommentedMap)]
            if "uses" in job:
                steps = [job]
            granted = job.get("permissions", top)
            yield Job(
                str(name),
                steps,
                line_of(jobs, name),
                SECRET.search(flat(job)) is not None or job.get("secrets") == "inherit",
                writes(granted),
                str(job.get("if", "")),
            )
    runs = document.get("runs")
    if isinstance(runs, CommentedMap) and isinstance(runs.get("steps"), CommentedSeq):
        yield Job(
            "action",
            [step for step in runs["steps"] if isinstance(step, CommentedMap)],
            line_of(document, "runs"),
        )


def flat(value: object, depth: int = 0) -> str:
    """Everything in it as text, up to a depth."""
    if depth > 8:
        return ""
    if isinstance(value, CommentedMap):
        return "\n".join(f"{k}: {flat(v, depth + 1)}" for k, v in value.items())[:200_000]
    if isinstance(value, CommentedSeq):
        return "\n".join(flat(v, depth + 1) for v in value)[:200_000]
    return str(value)


def writes(granted: object) -> bool:
    """Whether these permissions let a token write."""
    if isinstance(granted, CommentedMap):
        return any(str(level) == "write" for level in granted.values())
    return granted is None or str(granted) == "write-all"
