"""Questions to the package indexes about a change's packages, and the meaning of the answers. Pure.

The ecosystems' own clients (pip's session, npm) ask, as the machine has configured them: this program knows no
index's address. No code of any package runs.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files

from regreen.packages.dependency import DeclaredPackages, Dependency
from regreen.packages.popular_names import Ecosystem, is_valid, normalise_name

ANSWER_FILE = "package-index-answer.json"
MAX_ASKED_PACKAGES = 25
_EXACT_VERSION = re.compile(r"(?:==?=?)?\s*v?(\d[\w.+!-]{0,60})\Z")
_VERSION_RANGE = re.compile(r"[\w.^~<>=|*+ -]{1,60}\Z")


@dataclass(frozen=True, slots=True)
class IndexAnswer:
    """The versions of one name in an index, each with the reason for its withdrawal ("" if it was not withdrawn)."""

    there: bool
    versions: Mapping[str, str]


IndexAnswers = Mapping[tuple[Ecosystem, str], IndexAnswer]


def packages_to_ask(before: DeclaredPackages, after: DeclaredPackages) -> tuple[Dependency, ...]:
    """The packages of an index that are new or have a new version."""
    known = {
        (package.ecosystem, normalise_name(package.ecosystem, package.name), package.spec)
        for package in before.dependencies
    }
    return tuple(
        package
        for package in after.dependencies
        if package.source == "index"
        and package.ecosystem in {"pypi", "npm"}
        and is_valid(package.ecosystem, package.name)
        and (package.ecosystem, normalise_name(package.ecosystem, package.name), package.spec)
        not in known
    )


def exact_version(package: Dependency) -> str:
    """The exact version that is required; empty for a range."""
    match = _EXACT_VERSION.match(package.spec.strip())
    return match[1] if match is not None else ""


def make_index_query(packages: Iterable[Dependency]) -> str:
    """The shell command that asks, in a tree of its own, and writes the answer to the file `ANSWER_FILE`."""
    names = {name.name for name in packages if name.ecosystem == "pypi"}
    wanted = {
        (name.name, name.spec.strip() if _VERSION_RANGE.match(name.spec.strip()) else "")
        for name in packages
        if name.ecosystem == "npm"
    }
    question = json.dumps(
        {"pypi": sorted(normalise_name("pypi", n) for n in names), "npm": sorted(wanted)}
    )
    program = (files("regreen.packages") / "box_programs/index_query.py").read_text()
    return f"python -c {shlex.quote(program)} {shlex.quote(question)} {ANSWER_FILE}"


def read_answers(text: str) -> IndexAnswers:
    """The answers by ecosystem and name, without those that failed."""
    answers: dict[tuple[Ecosystem, str], IndexAnswer] = {}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return answers
    for ecosystem in ("pypi", "npm"):
        rows = data.get(ecosystem) if isinstance(data, dict) else None
        for name, row in rows.items() if isinstance(rows, dict) else ():
            if isinstance(row, dict) and isinstance(row.get("there"), bool):
                releases = row.get("versions")
                versions = releases if isinstance(releases, dict) else {}
                answers[ecosystem, normalise_name(ecosystem, name)] = IndexAnswer(
                    row["there"], {str(k)[:80]: str(v)[:300] for k, v in versions.items()}
                )
    return answers


def find_answer(answers: IndexAnswers, package: Dependency) -> IndexAnswer | None:
    """The answer about this package."""
    return answers.get((package.ecosystem, normalise_name(package.ecosystem, package.name)))


def withdrawal_reason(answer: IndexAnswer, version: str) -> str | None:
    """Why this version was withdrawn, "" if it was not; None if there is no such version."""
    wanted = _normalise_version(version)
    for known, reason in answer.versions.items():
        if _normalise_version(known) == wanted:
            return reason
    return None


def _normalise_version(version: str) -> str:
    """A normalised version: `1.0` and `1.0.0`, `1.0-rc.1` and `1.0rc1` are equal, local parts are dropped."""
    public = version.lower().partition("+")[0].removeprefix("v")
    joined = re.sub(
        r"(?<=\d)[._-]*(rc|c|alpha|a|beta|b|pre|preview|post|rev|r|dev)[._-]*", r"\1", public
    )
    for long, short in (("alpha", "a"), ("beta", "b"), ("preview", "rc"), ("pre", "rc")):
        joined = joined.replace(long, short)
    return re.sub(r"(?<!\.0)(?:\.0)++(?=$|[a-z])", "", joined)
