"""What is asked of the package indexes about a change's packages, and what their answers mean. Pure.

The question is put by the ecosystems' own clients (pip's session, npm), as the machine has configured them: this
program knows no index's address. It runs no code of any package.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from regreen.codebase.dependency import Declared, Dependency
from regreen.codebase.packages import Ecosystem, is_valid, normal

ANSWER = "package-index-answer.json"
MOST_ASKED = 25
_EXACT = re.compile(r"(?:==?=?)?\s*v?(\d[\w.+!-]{0,60})\Z")
_RANGE = re.compile(r"[\w.^~<>=|*+ -]{1,60}\Z")


@dataclass(frozen=True, slots=True)
class Answer:
    """What an index holds under one name: nothing, or versions with why each was withdrawn ("" where it was not)."""

    there: bool
    versions: Mapping[str, str]


Answers = Mapping[tuple[Ecosystem, str], Answer]


def to_ask(before: Declared, after: Declared) -> tuple[Dependency, ...]:
    """The packages of an index that are new, or whose version is."""
    known = {
        (one.ecosystem, normal(one.ecosystem, one.name), one.spec) for one in before.dependencies
    }
    return tuple(
        one
        for one in after.dependencies
        if one.source == "index"
        and one.ecosystem in {"pypi", "npm"}
        and is_valid(one.ecosystem, one.name)
        and (one.ecosystem, normal(one.ecosystem, one.name), one.spec) not in known
    )


def exact(one: Dependency) -> str:
    """The one version that is asked for; empty for a range."""
    match = _EXACT.match(one.spec.strip())
    return match[1] if match is not None else ""


def question(packages: Iterable[Dependency]) -> str:
    """The shell command that asks, in a tree of its own, and leaves the answer in the file `ANSWER`."""
    names = {one.name for one in packages if one.ecosystem == "pypi"}
    wanted = {
        (one.name, one.spec.strip() if _RANGE.match(one.spec.strip()) else "")
        for one in packages
        if one.ecosystem == "npm"
    }
    asked = json.dumps({"pypi": sorted(normal("pypi", n) for n in names), "npm": sorted(wanted)})
    return f"python -c {shlex.quote(_ASK)} {shlex.quote(asked)} {ANSWER}"


def read_answers(text: str) -> Answers:
    """The answers by ecosystem and name; what could not be asked is not among them."""
    found: dict[tuple[Ecosystem, str], Answer] = {}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return found
    for ecosystem in ("pypi", "npm"):
        rows = data.get(ecosystem) if isinstance(data, dict) else None
        for name, row in rows.items() if isinstance(rows, dict) else ():
            if isinstance(row, dict) and isinstance(row.get("there"), bool):
                held = row.get("versions")
                versions = held if isinstance(held, dict) else {}
                found[ecosystem, normal(ecosystem, name)] = Answer(
                    row["there"], {str(k)[:80]: str(v)[:300] for k, v in versions.items()}
                )
    return found


def answered(answers: Answers, one: Dependency) -> Answer | None:
    """What was answered about this package."""
    return answers.get((one.ecosystem, normal(one.ecosystem, one.name)))


def held(answer: Answer, version: str) -> str | None:
    """Why this version was withdrawn, "" where it was not; None where there is no such version."""
    wanted = _plain(version)
    for known, reason in answer.versions.items():
        if _plain(known) == wanted:
            return reason
    return None


def _plain(version: str) -> str:
    """A version without the spellings that mean nothing: `1.0` and `1.0.0`, `1.0-rc.1` and `1.0rc1`, a local part."""
    public = version.lower().partition("+")[0].removeprefix("v")
    joined = re.sub(
        r"(?<=\d)[._-]*(rc|c|alpha|a|beta|b|pre|preview|post|rev|r|dev)[._-]*", r"\1", public
    )
    for long, short in (("alpha", "a"), ("beta", "b"), ("preview", "rc"), ("pre", "rc")):
        joined = joined.replace(long, short)
    return re.sub(r"(?:\.0)+(?=$|[a-z])", "", joined)


# Runs in the box, under any Python since 3.6. Answers only what an index has surely said: a network that fails, an
# index that refuses and a client that is missing leave no row.
_ASK = r"""
import json, re, subprocess, sys
asked = json.loads(sys.argv[1])
found = {"pypi": {}, "npm": {}}
def session_of_pip():
    from pip._internal.commands.index import IndexCommand
    command = IndexCommand("index", "")
    options, _ = command.parse_args(["versions", "x", "--retries", "1", "--timeout", "15"])
    urls = [options.index_url] + list(options.extra_index_urls)
    return command._build_session(options), [] if options.no_index else [u for u in urls if u]
def version_of(file, name):
    stem = re.sub(r"\.(?:tar\.gz|tar\.bz2|zip|whl|egg|tgz|tar\.xz|tar\.Z|exe|msi|rpm)$", "", file)
    flat = lambda text: re.sub(r"[-_.]+", "-", text).lower()
    if file.endswith((".whl", ".egg")):
        return stem.split("-")[1] if "-" in stem else ""
    for at in range(len(stem)):
        if stem[at] == "-" and flat(stem[:at]) == name:
            return stem[at + 1:]
    return ""
def files_of(reply):
    if "json" in reply.headers.get("Content-Type", ""):
        return [(f["filename"], f.get("yanked", False)) for f in reply.json()["files"]]
    rows = re.findall(r"<a\s([^>]*)>\s*([^<]*?)\s*</a>", reply.text)
    out = []
    for attributes, name in rows:
        reason = re.search(r"data-yanked(?:=\"([^\"]*)\")?", attributes)
        out.append((name, (reason.group(1) or True) if reason else False))
    return out
def ask_pip():
    session, urls = session_of_pip()
    accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.2"
    for name in asked["pypi"]:
        versions, missing, unsure = {}, 0, False
        for url in urls:
            place = url.rstrip("/") + "/" + name + "/" + ("index.html" if url.startswith("file:") else "")
            reply = session.get(place, headers={"Accept": accept}, timeout=20)
            if reply.status_code == 404:
                missing += 1
                continue
            if reply.status_code != 200:
                unsure = True
                continue
            for file, yanked in files_of(reply):
                version = version_of(file, name)
                if not version:
                    continue
                reason = "" if not yanked else yanked if isinstance(yanked, str) else "no reason given"
                known = versions.get(version)
                if known is None or not reason or (known and isinstance(yanked, str)):
                    versions[version] = reason
        if versions:
            found["pypi"][name] = {"there": True, "versions": versions}
        elif missing and missing == len(urls) and not unsure:
            found["pypi"][name] = {"there": False}
def ask_npm():
    for name, spec in asked["npm"]:
        full = name + "@" + spec if spec else name
        done = subprocess.run(["npm", "view", full, "name", "version", "deprecated", "--json", "--fetch-retries=1"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
        data = json.loads(done.stdout.decode("utf-8", "replace") or "[]")
        if isinstance(data, dict) and "error" in data:
            error = data["error"] or {}
            if error.get("code") == "E404":
                words = str(error.get("summary", "")) + str(error.get("detail", ""))
                found["npm"].setdefault(name, {"there": "No match" in words, "versions": {}})
            continue
        rows = data if isinstance(data, list) else [data]
        if not rows:
            continue
        held = found["npm"].setdefault(name, {"there": True, "versions": {}})
        held["there"] = True
        for row in rows:
            if isinstance(row, dict) and "version" in row:
                held["versions"][row["version"]] = str(row.get("deprecated") or "")
for kind, ask in (("pypi", ask_pip), ("npm", ask_npm)):
    if asked[kind]:
        try:
            ask()
        except Exception as error:
            found.setdefault("problems", []).append(kind + ": " + str(error)[:200])
with open(sys.argv[2], "w") as file:
    json.dump(found, file)
"""
