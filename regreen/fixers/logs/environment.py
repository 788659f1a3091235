"""Reads what broke before or around the tests: resolvers, lock files, networks, the runner itself; and env tables."""

from __future__ import annotations

import re

from regreen.fixers.logs.reader import Collector, Kind, shorten
from regreen.models import Failure

_PIP = (
    (re.compile(r"^ERROR: No matching distribution found for (?P<name>\S+)"), "no matching distribution"),
    (re.compile(r"^ERROR: Could not find a version that satisfies the requirement (?P<name>\S+)"), "no matching distribution"),
    (re.compile(r"^ERROR: (?P<name>ResolutionImpossible|Cannot install \S.*)"), "resolution impossible"),
    (re.compile(r"^ERROR: Package '?(?P<name>[\w.-]+)'? requires a different Python"), "requires a different Python"),
    (re.compile(r"^ERROR: (?:Failed building wheel for|Failed to build) (?P<name>\S+)"), "build failed"),
    (re.compile(r"^ERROR: Could not open requirements file:.* '(?P<name>[^']+)'"), "no such requirements file"),
    (re.compile(r"^ERROR: THESE PACKAGES DO NOT MATCH THE HASHES(?P<name>)"), "hash mismatch"),
    (re.compile(r"^ERROR: Invalid requirement: (?P<name>.+)$"), "invalid requirement"),
    (re.compile(r"^ *(?:×|error:) (?P<name>No solution found when resolving (?:dependencies|tool dependencies|script dependencies).*)"), "no solution"),
    (re.compile(r"^(?:error|  ×) ?:? (?P<name>The lockfile at `[^`]+` needs to be updated.*)"), "lock file out of date"),
    (re.compile(r"^error: (?P<name>Unable to find lockfile at `[^`]+`.*)"), "no lock file"),
    (re.compile(r"^ *(?:×|error:) (?P<name>Failed to (?:build|download|fetch|resolve)[ :].*)"), "build failed"),
    (re.compile(r"^(?P<name>pyproject\.toml changed significantly since poetry\.lock was last generated.*)"), "lock file out of date"),
    (re.compile(r"^(?P<name>Because .* version solving failed\.)"), "version solving failed"),
    (re.compile(r"^E: Unable to locate package (?P<name>\S+)"), "no such system package"),
)  # fmt: skip
_NPM = re.compile(r"^npm (?:ERR!|error) code (?P<code>E[A-Z0-9]+)$")
_NPM_SAID = re.compile(
    r"^npm (?:ERR!|error) (?!code |A complete log|errno |syscall |path |command )(?P<message>\S.*)$"
)
_NPM_MISSING = re.compile(r"^npm (?:ERR!|error) Missing script: \"?(?P<name>[^\"]+)\"?$")
_NPM_NOT_DEPENDENCY = {"ELIFECYCLE", "ENOENT"}
_JS = (
    (re.compile(r"^ *(?:ERR_PNPM_|\u2009?ERR_PNPM_)(?P<name>OUTDATED_LOCKFILE|NO_MATCHING_VERSION|FETCH_404|PEER_DEP_ISSUES|FROZEN_LOCKFILE\w*)"), "pnpm"),
    (re.compile(r"^error (?P<name>Couldn't find (?:any versions|package).*|Your lockfile needs to be updated.*|Found incompatible module.*)"), "yarn"),
    (re.compile(r"^➤ (?P<name>YN0028: .*|YN0035: .*)"), "yarn"),
    (re.compile(r"^error: (?P<name>lockfile had changes, but lockfile is frozen)"), "bun"),
)  # fmt: skip
_LIKELY = ("ERROR", "error", "ERR", "×", "E: ", "changed significantly", "version solving", "YN00")


class DependencyReader:
    """Reads pip, uv, poetry, npm, yarn, pnpm and apt where they could not get what was asked for."""

    kind: Kind = "dependency"

    def __init__(self) -> None:
        self._found = Collector()
        self._npm: tuple[str, list[str]] | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        if not line or not any(word in line for word in _LIKELY):
            return
        if line.startswith("npm "):
            self._npm_line(line)
            return
        for pattern, kind in (*_PIP, *_JS):
            if found := pattern.match(line):
                self._found.add(Failure(found["name"].strip(" ,") or kind, kind, shorten(line)))
                return

    def failures(self) -> list[Failure]:
        """What could not be had; pip says the same thing twice."""
        found = self._found.all()
        if self._npm is not None:
            code, said = self._npm
            found.append(Failure(f"npm {code}", code, shorten("\n".join(said))))
        unique = {(one.test, one.kind): one for one in reversed(found)}
        return list(reversed(unique.values()))

    def _npm_line(self, line: str) -> None:
        if code := _NPM.match(line):
            if code["code"] not in _NPM_NOT_DEPENDENCY:
                self._npm = (code["code"], [])
        elif missing := _NPM_MISSING.match(line):
            self._found.add(Failure(f"npm run {missing['name']}", "missing script", shorten(line)))
        elif self._npm is not None and (said := _NPM_SAID.match(line)) and len(self._npm[1]) < 20:
            self._npm[1].append(said["message"])


_INFRA = (
    (re.compile(r"No space left on device|ENOSPC\b", re.IGNORECASE), "disk full"),
    (re.compile(r"The runner has received a shutdown signal|lost communication with the server|The hosted runner encountered an error"), "runner lost"),
    (re.compile(r"^The operation was cancell?ed\.?$|^The job was canceled"), "cancelled"),
    (re.compile(r"has exceeded the maximum execution time of|The action '.*' has timed out after"), "timeout"),
    (re.compile(r"\b(?:HTTP(?: Error|/[\d.]+)?|status(?: code)?:?|error:) ?(?:429|50[0234])\b|429 Too Many Requests|50[234] (?:Bad Gateway|Service Unavailable|Gateway Time-?out)", re.IGNORECASE), "remote failed"),
    (re.compile(r"Could not resolve host|Temporary failure in name resolution|EAI_AGAIN|getaddrinfo ENOTFOUND|Connection (?:timed out|reset by peer)|ECONNRESET|ETIMEDOUT|TLS handshake timeout|Failed to establish a new connection"), "network"),
    (re.compile(r"(?:^|\s)Killed$|Out of memory: Killed|signal 9|SIGKILL|JavaScript heap out of memory|Cannot allocate memory"), "out of memory"),
    (re.compile(r"toomanyrequests:|API rate limit exceeded|Rate exceeded"), "rate limit"),
)  # fmt: skip
# Plain words first: a pattern of many cases on every line of a long log costs more than all the other readers.
_INFRA_HINT = (
    "space left", "enospc", "runner", "operation was cancel", "job was cancel", "exceeded", "timed out", "429", "500", "502", "503",
    "504", "resolve", "resolution", "eai_", "enotfound", "reset", "etimedout", "handshake", "new connection", "killed", "signal 9",
    "sigkill", "memory", "toomanyrequests", "rate limit",
)  # fmt: skip


class InfraReader:
    """Reads signs that the machine or the network failed, not the code. Weak: counts only where nothing else was found."""

    kind: Kind = "infra"

    def __init__(self) -> None:
        self._found = Collector()

    def feed(self, line: str) -> None:
        """Take the next line."""
        if len(self._found) >= 5:
            return
        lowered = line.lower()
        if not any(word in lowered for word in _INFRA_HINT):
            return
        for pattern, kind in _INFRA:
            if pattern.search(line):
                self._found.add(Failure("", kind, shorten(line)))
                return

    def failures(self) -> list[Failure]:
        """The signs."""
        return self._found.all()


_TOX4 = re.compile(r"^  (?P<name>[\w.{}-]+): FAIL\b(?P<why>.*)$")
_TOX3 = re.compile(
    r"^ERROR: +(?P<name>[\w.-]+): (?P<why>commands failed|InvocationError.*|InterpreterNotFound.*|could not install deps.*|.* failed.*)$"
)
_TOX_MISSING = re.compile(r"^(?P<name>[\w.-]+): skipped because (?P<why>.*)$")
_NOX = re.compile(r"^nox > \* (?P<name>\S.*): (?:failed|aborted)$")
_NOX_SESSION = re.compile(r"^nox > Session (?P<name>\S.*) (?:failed|aborted)(?P<why>[.:].*)$")
_NOX_COMMAND = re.compile(r"^nox > Command (?P<why>.*failed with exit code \d+.*)$")


class EnvironmentReader:
    """Reads tox's and nox's tables: which environment failed. Counts only where nothing inside it was found."""

    kind: Kind = "unknown"

    def __init__(self) -> None:
        self._found: dict[str, Failure] = {}
        self._why = ""

    def feed(self, line: str) -> None:
        """Take the next line."""
        if line.startswith("nox > "):
            if command := _NOX_COMMAND.match(line):
                self._why = command["why"]
            elif session := _NOX.match(line) or _NOX_SESSION.match(line):
                self._keep(session["name"], "nox", self._why)
        elif env := _TOX4.match(line) or _TOX3.match(line):
            self._keep(env["name"], "tox", env["why"].strip())

    def failures(self) -> list[Failure]:
        """The environments that failed."""
        return list(self._found.values())

    def _keep(self, name: str, tool: str, why: str) -> None:
        if len(self._found) < 500:
            self._found.setdefault(name, Failure(name, tool, shorten(why)))


_C_ERROR = re.compile(
    r"^(?P<path>[^\s:]+\.(?:c|cc|cpp|cxx|h|hpp|m|mm|pyx|zig|f90)):(?P<line>\d+):(?:(?P<col>\d+):)? (?:fatal )?error: (?P<message>.*)$"
)
_MAVEN = re.compile(r"^\[ERROR\] (?P<path>\S+\.(?:java|kt)):\[(?P<line>\d+),\d+\] (?P<message>.*)$")
_MAKE = re.compile(r"^make(?:\[\d+\])?: \*\*\* (?P<message>No rule to make target.*)$")


class BuildReader:
    """Reads C-like compilers, javac under maven, and make where it has no rule."""

    kind: Kind = "build"

    def __init__(self) -> None:
        self._found = Collector()

    def feed(self, line: str) -> None:
        """Take the next line."""
        if "rror" in line and (error := _C_ERROR.match(line) or _MAVEN.match(line)):
            test = f"{error['path']}:{error['line']}"
            self._found.add(
                Failure(
                    test, "error", shorten(error["message"]), error["path"], int(error["line"][:9])
                )
            )
        elif line.startswith("make") and (make := _MAKE.match(line)):
            self._found.add(Failure("make", "no rule", shorten(make["message"])))

    def failures(self) -> list[Failure]:
        """What did not build."""
        return self._found.all()
