"""Reads `gate_words.toml`: the names, word families and line rules that the checks look for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from regreen.code.file_change import PatchedFile, ReasonLevel
from regreen.gate.facts import find_gained_line


@dataclass(frozen=True, slots=True)
class LineRule:
    """A pattern that a patch must not add to lines of some files."""

    says: str
    pattern: re.Pattern[str]
    level: ReasonLevel
    suffixes: frozenset[str]
    spared: frozenset[str]

    def applies_to(self, file: PatchedFile) -> bool:
        """Whether the rule is for files with this ending."""
        return (
            not self.suffixes or file.suffix in self.suffixes
        ) and file.suffix not in self.spared


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A line rule that a patch breaks, with the first added line that matches."""

    says: str
    level: ReasonLevel
    number: int
    line: str


@dataclass(frozen=True, slots=True)
class GateWords:
    """The compiled table."""

    names: Mapping[str, frozenset[str]]
    suffixes: Mapping[str, frozenset[str]]
    patterns: Mapping[str, re.Pattern[str]]
    refusals: Mapping[str, re.Pattern[str]]
    line_rules: Mapping[str, tuple[LineRule, ...]]


@cache
def load_gate_words() -> GateWords:
    """The shipped table."""
    table = tomllib.loads(
        resources.files("regreen.gate").joinpath("gate_words.toml").read_text("utf-8")
    )
    suffixes = {name: frozenset(group) for name, group in table["suffixes"].items()}
    patterns = {name: re.compile("|".join(words)) for name, words in table["patterns"].items()}
    for name, words in table["any_case_patterns"].items():
        patterns[name] = re.compile("|".join(words), re.IGNORECASE)
    refusals = {
        suffix: re.compile("|".join(words))
        for group, words in table["refusals"].items()
        for suffix in suffixes[group]
    }
    rules: dict[str, list[LineRule]] = {}
    for row in table["line_rules"]:
        rule = LineRule(
            row["says"],
            re.compile("|".join(row["patterns"])),
            row.get("level", "needs_human"),
            suffixes[row["suffixes"]] if "suffixes" in row else frozenset(),
            suffixes[row["except"]] if "except" in row else frozenset(),
        )
        rules.setdefault(row["family"], []).append(rule)
    return GateWords(
        {name: frozenset(words) for name, words in table["names"].items()},
        suffixes,
        patterns,
        refusals,
        {family: tuple(rows) for family, rows in rules.items()},
    )


def name_set(name: str) -> frozenset[str]:
    """The exact names of one row of `[names]`."""
    return load_gate_words().names[name]


def suffix_group(name: str) -> frozenset[str]:
    """The file endings of one row of `[suffixes]`."""
    return load_gate_words().suffixes[name]


def word_pattern(name: str) -> re.Pattern[str]:
    """The pattern of one word family."""
    return load_gate_words().patterns[name]


def refusal_pattern(suffix: str) -> re.Pattern[str] | None:
    """The pattern of refusals in files with this ending; None if unknown."""
    return load_gate_words().refusals.get(suffix)


def find_broken_rules(file: PatchedFile, family: str) -> Iterator[BrokenRule]:
    """The line rules of a family that the patch breaks in a file."""
    for rule in load_gate_words().line_rules[family]:
        if rule.applies_to(file) and (found := find_gained_line(file, rule.pattern)):
            yield BrokenRule(rule.says, rule.level, *found)
