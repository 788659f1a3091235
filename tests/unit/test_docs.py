"""The documents: their links lead somewhere, and the commands in them exist with every option that they show."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import click
import pytest

from regreen.cli import COMMANDS, cli
from regreen.domain.settings import Settings

TOP = Path(__file__).parents[2]
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_OUTPUT = re.compile(r"^```text\n.*?^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)|!\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_MAX_PARAGRAPH_WORDS = 80
_WORDS = re.compile(r"`[^`\n]*`|^[ \t]*\$? ?(?:\S*/)?regreen [^\n]*$", re.MULTILINE)


@cache
def _pages() -> tuple[Path, ...]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=TOP, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return tuple(TOP / name for name in listed.stdout.split())


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them from headings."""
    prose = _FENCE.sub("", page.read_text())
    found = (re.sub(r"[`*\[\]()]", "", heading).lower() for heading in _HEADING.findall(prose))
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", _pages(), ids=lambda p: str(p.relative_to(TOP)))
def test_every_link_leads_somewhere(page: Path) -> None:
    lost = []
    for one, other in _LINK.findall(_FENCE.sub("", page.read_text())):
        target = one or other
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in _anchors(there)):  # fmt: skip
            lost.append(target)
    assert lost == []


def _paragraphs(page: Path) -> list[str]:
    """The paragraphs and list items of a page, without headings, tables and blocks of code."""
    prose = re.sub(r"(?m)^#{1,6} .*$", "\n", _FENCE.sub("\n", page.read_text()))
    items = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", prose)
    return [item for item in items if not item.lstrip().startswith("|")]


@pytest.mark.parametrize(
    "page",
    [p for p in _pages() if p.parent == TOP / "docs" or p.parent.name == "adr" or p.name == "README.md"],
    ids=lambda p: str(p.relative_to(TOP)),
)  # fmt: skip
def test_no_paragraph_is_longer_than_a_reader_takes_in_at_once(page: Path) -> None:
    long = [item for item in _paragraphs(page) if len(item.split()) > _MAX_PARAGRAPH_WORDS]
    assert long == []


def _shown(page: Path) -> list[list[str]]:
    """Every `regreen ...` of a page, split into words; what is no whole command is left out."""
    found = []
    typed = _OUTPUT.sub("", page.read_text())
    for piece in _WORDS.findall(typed.replace("\\\n", " ")):
        line = piece.strip("` \t$").partition("  #")[0]
        line = re.sub(r"^\S*/regreen ", "regreen ", line).partition(" > ")[0]
        if line.startswith("regreen ") and "[--" not in line:
            try:
                found.append(shlex.split(line, comments=True)[1:])
            except ValueError:
                continue
    return found


@pytest.mark.parametrize("page", _pages(), ids=lambda p: str(p.relative_to(TOP)))
def test_every_command_that_is_shown_exists_with_its_options(page: Path) -> None:
    context, wrong = click.Context(cli), []
    for words in _shown(page):
        name, rest = words[0], words[1:]
        if not re.fullmatch(r"[a-z][a-z-]*", name):
            continue
        if name not in COMMANDS:
            wrong.append(words)
            continue
        command = cli.get_command(context, name)
        if isinstance(command, click.Group) and rest:
            command, rest = command.get_command(context, rest[0]), rest[1:]
        assert command is not None, words
        known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help", "-h"}
        before = rest[: rest.index("--")] if "--" in rest else rest
        used = {word.partition("=")[0] for word in before if word.startswith("--")}
        wrong += [[name, option] for option in sorted(used - known)]
    assert wrong == []


def test_every_function_that_is_named_for_others_exists() -> None:
    named = re.findall(r"`(regreen(?:\.\w+)+):(\w+)", (TOP / "docs/interface.md").read_text())
    assert ("regreen.bisect.bench", "make") in named
    for module, name in named:
        assert callable(getattr(importlib.import_module(module), name))


def test_every_setting_that_is_named_exists() -> None:
    fields = Settings.model_fields
    known = {f"REGREEN_{name.upper()}" for name in fields}
    aside = {"REGREEN_HOME", "REGREEN_ARGS", "REGREEN_INDEX_CREDENTIALS"}
    wrong = {}
    for page in _pages():
        named = set(re.findall(r"\bREGREEN_[A-Z_]+[A-Z]\b", page.read_text()))
        unknown = {n for n in named - known - aside if not n.startswith(("REGREEN_SOAK", "REGREEN_TEST", "REGREEN_PICTURES", "REGREEN_CI"))}  # fmt: skip
        if unknown:
            wrong[page.name] = sorted(unknown)
    assert wrong == {}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_of_a_help_page_is_a_command_that_exists(name: str, tmp_path: Path) -> None:
    context = click.Context(cli)
    command = cli.get_command(context, name)
    assert command is not None
    page = tmp_path / "help.md"
    page.write_text((command.epilog or "").replace("| regreen", "\nregreen"))
    for words in _shown(page):
        shown = cli.get_command(context, words[0])
        if isinstance(shown, click.Group):
            shown = shown.get_command(context, words[1])
        assert shown is not None
        known = {o for p in shown.params for o in (*p.opts, *p.secondary_opts)}
        before = words[: words.index("--")] if "--" in words else words
        assert {w.partition("=")[0] for w in before if w.startswith("--")} <= known


def test_the_glossary_says_where_each_word_is_defined() -> None:
    text = (TOP / "docs" / "glossary.md").read_text()
    places = re.findall(r"(?:`(\w+)` in )?`(regreen/[\w/]+\.(?:py|toml))`", text)
    assert len(places) > 60
    wrong = [
        (name, path)
        for name, path in places
        if not (TOP / path).is_file()
        or not re.search(rf"^(?:class |def |)\b{name}\b", (TOP / path).read_text(), re.MULTILINE)
    ]
    assert wrong == []
