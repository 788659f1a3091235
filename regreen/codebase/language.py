"""Which language a file is written in, by its name."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal

Language = Literal[
    "python", "javascript", "typescript", "tsx", "go", "rust", "java", "ruby",
    "config", "prose", "shell", "sql", "c", "web", "other",
]  # fmt: skip

PARSED: frozenset[str] = frozenset(
    {"python", "javascript", "typescript", "tsx", "go", "rust", "java", "ruby"}
)
"""Languages whose structure is read."""
PROSE: frozenset[str] = frozenset({"prose"})

_SUFFIXES: dict[str, Language] = {
    **dict.fromkeys((".py", ".pyi", ".pyw"), "python"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "javascript"),
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    ".tsx": "tsx",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    **dict.fromkeys((".rb", ".rake", ".gemspec"), "ruby"),
    **dict.fromkeys((".md", ".rst", ".txt", ".adoc", ".markdown"), "prose"),
    **dict.fromkeys(
        (".yml", ".yaml", ".json", ".toml", ".ini", ".cfg", ".conf", ".properties", ".env", ".xml"),
        "config",
    ),
    **dict.fromkeys((".sh", ".bash", ".zsh", ".ps1"), "shell"),
    ".sql": "sql",
    **dict.fromkeys((".c", ".h", ".cc", ".cpp", ".hpp", ".cxx"), "c"),
    **dict.fromkeys((".html", ".htm", ".css", ".scss", ".vue", ".svelte", ".jinja", ".j2"), "web"),
    **dict.fromkeys(
        (".cs", ".php", ".swift", ".kt", ".scala", ".ex", ".exs", ".lua", ".pl", ".r", ".tf"),
        "other",
    ),
}
_NAMES: dict[str, Language] = {
    "Dockerfile": "config",
    "Makefile": "shell",
    "Gemfile": "ruby",
    "Rakefile": "ruby",
    "LICENSE": "prose",
    "NOTICE": "prose",
    "AUTHORS": "prose",
    "CODEOWNERS": "config",
}
_CONFIG_TEXT = ("requirements", "constraints", "cmakelists")


def language_of(path: str) -> Language | None:
    """The language of a file, None where its name says nothing."""
    name = PurePosixPath(path).name
    if name in _NAMES:
        return _NAMES[name]
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in {".txt", ".in"} and name.lower().startswith(_CONFIG_TEXT):
        return "config"  # requirements.txt is no prose
    return _SUFFIXES.get(suffix)
