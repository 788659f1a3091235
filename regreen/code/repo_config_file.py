"""Reads `.github/regreen.yml`: its schema, and its faults with their lines."""

from __future__ import annotations

import difflib
import json
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from regreen.code.config_loaders import compose_bounded_yaml, locate_fault
from regreen.domain.errors import ConfigError, ConfigProblem
from regreen.domain.repo_config import RepoConfig


def config_schema() -> dict[str, Any]:
    """The JSON schema of `.github/regreen.yml`."""
    schema = RepoConfig.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Regreen's .github/regreen.yml",
        **{k: v for k, v in schema.items() if k != "title"},
    }


def parse_repo_config(text: str) -> RepoConfig:
    """Read `.github/regreen.yml`.

    Raises:
        ConfigError: it is no YAML, or has unknown keys or bad values; each with its line.
    """
    data, lines = _load_with_lines(text)
    if data is None:
        return RepoConfig()
    if not isinstance(data, dict):
        raise ConfigError(
            (ConfigProblem(1, "", "the file must hold a mapping such as 'review: {drafts: true}'"),)
        )
    try:
        # Through JSON, strictly: YAML's own objects must not decide what a value is.
        sections = {k: v for k, v in _to_json(data).items() if v is not None}
        return RepoConfig.model_validate_json(json.dumps(sections, default=str), strict=True)
    except ValidationError as error:
        problems = tuple(
            _make_problem(e["loc"], e["type"], e["msg"], lines) for e in error.errors()
        )
        raise ConfigError(tuple(sorted(problems, key=lambda p: p.line))) from None


def _to_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _to_json(v) for k, v in value.items()}
    return [_to_json(v) for v in value] if isinstance(value, list) else value


def _load_with_lines(text: str) -> tuple[object, dict[tuple[str | int, ...], int]]:
    if len(text) > 256 * 1024:
        raise ConfigError((ConfigProblem(1, "", "the file is larger than 256 KiB"),))
    try:
        node = compose_bounded_yaml(text)
        data = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        line, what = locate_fault(text, error)
        raise ConfigError((ConfigProblem(line, "", what),)) from None
    lines: dict[tuple[str | int, ...], int] = {}
    _record_key_lines(node, (), lines)
    return data, lines


def _record_key_lines(
    node: Any, at: tuple[str | int, ...], lines: dict[tuple[str | int, ...], int]
) -> None:
    """Note the line of every key and item under `node`."""
    if node is None:
        return
    lines.setdefault(at, node.start_mark.line + 1)
    if node.id == "mapping":
        for key, value in node.value:
            lines[(*at, str(key.value))] = key.start_mark.line + 1
            _record_key_lines(value, (*at, str(key.value)), lines)
    elif node.id == "sequence":
        for i, value in enumerate(node.value):
            _record_key_lines(value, (*at, i), lines)


def _make_problem(
    loc: tuple[str | int, ...], kind: str, message: str, lines: dict[tuple[str | int, ...], int]
) -> ConfigProblem:
    at = next((lines[loc[:n]] for n in range(len(loc), -1, -1) if loc[:n] in lines), 1)
    key = ".".join(str(part) for part in loc)
    if kind != "extra_forbidden":
        return ConfigProblem(at, key, message.removeprefix("Value error, "))
    known = _list_keys_at(loc[:-1])
    near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else "known here: " + ", ".join(known)
    return ConfigProblem(at, key, f"unknown key; {hint}")


def _list_keys_at(loc: tuple[str | int, ...]) -> list[str]:
    model: type[BaseModel] = RepoConfig
    for part in loc:
        if isinstance(part, int) or part not in model.model_fields:
            continue  # an item of a list, or a path pattern
        annotation = model.model_fields[part].annotation
        inner = [a for a in (annotation, *get_args(annotation)) if isinstance(a, type)]
        models = [a for a in inner if issubclass(a, BaseModel)]
        if not models:
            return []
        model = models[0]
    return list(model.model_fields)
