"""Whether a configuration file can be read: JSON, TOML and YAML, by their own rules and nobody's schema."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import PurePosixPath

_LONGEST = 256 * 1024
"""Longer ones are data, and YAML is slow to read."""
_WITH_COMMENTS = re.compile(
    r"(?:^|/)(?:[tj]sconfig[^/]*|\.eslintrc|\.babelrc|devcontainer|api-extractor|\.swcrc|turbo|deno|biome|renovate)\.json$"
    r"|(?:^|/)\.(?:vscode|devcontainer|zed)/"
)
"""JSON whose readers take comments and trailing commas."""
_TEMPLATE = re.compile(r"\{\{|\{%|<%")
_PLACE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")


def is_document(path: str) -> bool:
    """Whether `syntax_fault` can say something of a file of this name."""
    pure = PurePosixPath(path)
    if pure.suffix == ".json":
        return not _WITH_COMMENTS.search(path)
    return pure.suffix in {".toml", ".yml", ".yaml"}


def syntax_fault(path: str, text: str) -> tuple[int, str] | None:
    """The line (from 1) at which a reader gives up, and why; None where the file is sound, long or a template."""
    # a workflow's `${{ }}` is filled in after it was read as YAML, a template's before
    if len(text) > _LONGEST or (_TEMPLATE.search(text) and not path.startswith(".github/")):
        return None
    match PurePosixPath(path).suffix:
        case ".json":
            return _json(text)
        case ".toml":
            return _toml(text)
        case _:
            return _yaml(text)


def _json(text: str) -> tuple[int, str] | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.lineno, error.msg
    except (ValueError, RecursionError):
        return None  # a number too long, a nesting too deep: limits of this reader
    return None


def _toml(text: str) -> tuple[int, str] | None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else text.count("\n") + 1
        return line, _PLACE.sub("", str(error))
    except RecursionError:
        return None
    return None


def _yaml(text: str) -> tuple[int, str] | None:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    from regreen.yaml_faults import fault

    try:
        for _ in YAML(typ="safe", pure=True).parse(text):
            pass
    except YAMLError as error:
        return fault(text, error)
    except (ValueError, RecursionError):
        return None
    return None
