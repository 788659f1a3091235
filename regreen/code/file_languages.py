"""Which language a file is written in, by its name, and how its structure is read (`languages.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tree_sitter

_CONFIG_TEXT = ("requirements", "constraints", "cmakelists")


@dataclass(frozen=True, slots=True)
class LanguageRow:
    """One row of `languages.toml`, whose comments describe each field."""

    suffixes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    stub_suffixes: tuple[str, ...] = ()
    inline_tests: str = ""
    grammar: str = ""
    query: str = ""
    query_of: str = ""
    family: str = ""
    folder_modules: tuple[str, ...] = ()
    package_folders: bool = False
    folder_imports: bool = False


_NO_LANGUAGE = LanguageRow()


@lru_cache(maxsize=16_384)
def language_of(path: str) -> str | None:
    """The language of a file, None where its name says nothing."""
    name = path.rpartition("/")[2]
    by_name, by_suffix = _languages_by_ending()
    if name in by_name:
        return by_name[name]
    stem, dot, ending = name.rpartition(".")
    suffix = (dot + ending).lower() if stem and ending else ""
    if suffix in {".txt", ".in"} and name.lower().startswith(_CONFIG_TEXT):
        return "config"  # requirements.txt is no prose
    return by_suffix.get(suffix)


def language_row(path: str) -> LanguageRow:
    """What the table knows of a file's language; an empty row where its name says nothing."""
    return load_languages().get(language_of(path) or "", _NO_LANGUAGE)


def language_family(path: str) -> str:
    """Languages that call each other count as one."""
    return language_row(path).family or str(language_of(path))


def has_outline(path: str) -> bool:
    """Whether the structure of this file's language is read."""
    return bool(language_row(path).grammar)


def is_stub(path: str) -> bool:
    """Whether a file only declares types."""
    return path.endswith(language_row(path).stub_suffixes)


def is_prose(path: str) -> bool:
    """Whether a file is text for people."""
    return language_of(path) == "prose"


@cache
def load_languages() -> Mapping[str, LanguageRow]:
    """Read the table that comes with the program."""
    document = tomllib.loads((files("regreen.code") / "languages.toml").read_text("utf-8"))
    return {name: _read_row(row) for name, row in document.items()}


def _read_row(row: Mapping[str, Any]) -> LanguageRow:
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    return LanguageRow(**values)


@cache
def _languages_by_ending() -> tuple[Mapping[str, str], Mapping[str, str]]:
    rows = load_languages().items()
    return (
        {ending: name for name, row in rows for ending in row.names},
        {ending: name for name, row in rows for ending in row.suffixes},
    )


@cache
def parser_for(language: str) -> tree_sitter.Parser:
    """A parser for a language that has a grammar."""
    import tree_sitter

    return tree_sitter.Parser(_load_grammar(language))


@cache
def query_for(language: str) -> tree_sitter.Query:
    """The compiled query for a language that has a grammar."""
    import tree_sitter

    row = load_languages()[language]
    query = row.query or load_languages()[row.query_of].query
    return tree_sitter.Query(_load_grammar(language), query)


@cache
def _load_grammar(language: str) -> tree_sitter.Language:
    import tree_sitter

    package, function = load_languages()[language].grammar.split(".")
    pointer: object = getattr(import_module(package), function)()
    return tree_sitter.Language(pointer)
