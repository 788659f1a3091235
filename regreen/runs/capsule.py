"""A capsule: one small file that says everything needed to repeat a run elsewhere, and what was seen.

Its digest is that of its content in canonical JSON. A capsule from elsewhere is untrusted: `decode_capsule` reads it
under limits, and what it names runs in the sandbox only.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

from regreen.domain.errors import SetupFailed, UserError
from regreen.domain.models import BoxLimits, PreparedEnv
from regreen.domain.ports import Box, Git, Sandbox
from regreen.domain.private_folders import make_private, write_private
from regreen.logs import failure_signature
from regreen.logs.failure_signature import FailureSignature
from regreen.runs.test_runs import CommandRun, run_fresh
from regreen.runs.trial import Trial, constrain_versions, make_env_spec, open_box
from regreen.secrets.redaction import HIDDEN_MARK, redact_secrets

CapsuleKind = Literal["why", "prove", "fix", "bisect", "claim"]
CapsuleOutcome = Literal["pass", "fail", "infra"]

MAX_CAPSULE_BYTES = 64 * 1024
_MAX_OVERLAY_BYTES = 192 * 1024
_MAX_UNPACKED_BYTES = 512 * 1024
_MAX_SIGNATURE_TESTS = 20
_COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}==[A-Za-z0-9][A-Za-z0-9.!+_-]{0,63}")

# Prints the interpreter and each distribution with a digest of its files. Paths outside of the site folder, byte code
# and what the installer wrote itself differ between machines; a project installed from the tree is no package.
_PROBE = r"""
import hashlib, importlib.metadata as m, json, platform, re, sys
found = {}
for d in m.distributions():
    name = re.sub(r"[-_.]+", "-", d.metadata["Name"] or "").lower()
    if not name or name in found or d.read_text("direct_url.json"):
        continue
    rows = [r for r in (d.read_text("RECORD") or "").splitlines() if "sha256=" in r and ".dist-info/" not in r and not r.startswith("..")]
    found[name] = [d.version, hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()[:12]]
print(json.dumps({"python": platform.python_version(), "machine": platform.machine(), "packages": found}))
"""
_PROBE_ARGV = (
    "sh",
    "-c",
    'p=$(command -v python || command -v python3) && exec "$p" -I -c "$0"',
    _PROBE,
)


@dataclass(frozen=True, slots=True)
class SeenEnvironment:
    """What a box really holds: the interpreter's full version, the machine, and `name==version` of each package.

    `digests` are those of the packages' files, in the same order. All empty where the box has no Python. `granted` are
    the limits of the box and of the command's time.
    """

    python: str = ""
    machine: str = ""
    versions: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    granted: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class CapsuleRecipe:
    """How the environment is made: as in `Trial`, with the digest of the files that its setup reads."""

    setup: str | None
    python: str | None
    image: str | None
    variables: tuple[tuple[str, str], ...]
    inputs: str
    setup_timeout: float


@dataclass(frozen=True, slots=True)
class ExpectedOutcome:
    """The outcome of a run, in how many of how many runs it was seen, and how it failed.

    `seen_with` binds it to what it was seen with: a digest of each ingredient.
    """

    outcome: CapsuleOutcome
    times: int
    runs: int
    signature: FailureSignature | None = None
    seen_with: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Capsule:
    """One run that can be repeated. `overlay` are text files that are laid over the checkout of `commit`."""

    kind: CapsuleKind
    commit: str
    tree: str
    command: tuple[str, ...]
    timeout: float
    limits: BoxLimits
    recipe: CapsuleRecipe
    environment: SeenEnvironment
    expected: ExpectedOutcome
    overlay: tuple[tuple[str, str], ...] = field(default=())

    @property
    def digest(self) -> str:
        """The address: SHA-256 of the canonical JSON."""
        return sha256(_canonical(asdict(self))).hexdigest()

    @property
    def seed(self) -> str | None:
        """The hash seed that the command ran with, None where it was random."""
        return dict(self.recipe.variables).get("PYTHONHASHSEED")

    def digest_ingredients(self) -> dict[str, str]:
        """A short digest of each ingredient, by name."""
        parts: dict[str, object] = {
            "tree": [self.commit, self.tree, self.overlay],
            "command": [self.command, self.timeout],
            "limits": asdict(self.limits),
            "setup": asdict(self.recipe),
            "python": [self.environment.python, self.environment.machine],
            "packages": [self.environment.versions, self.environment.digests],
        }
        return {name: sha256(_canonical(part)).hexdigest()[:16] for name, part in parts.items()}

    def make_trial(self) -> Trial:
        """The trial that it repeats, as a local one: nothing of it is trusted."""
        recipe = self.recipe
        return Trial(
            self.command,
            setup=recipe.setup,
            env=recipe.variables,
            overlay={path: text.encode() for path, text in self.overlay},
            timeout=self.timeout,
            python=recipe.python,
            image=recipe.image,
            scope=f"capsule:{self.digest[:16]}",
            limits=self.limits,
            setup_timeout=recipe.setup_timeout,
        )


def observe_environment(
    trial: Trial, rev: str, *, git: Git, sandbox: Sandbox, env: PreparedEnv | None = None
) -> SeenEnvironment:
    """What a fresh box for the trial at `rev` holds; `env` as in `open_box`.

    Raises:
        SetupFailed: the setup failed.
        OutsideError: the sandbox engine failed.
    """
    with open_box(trial, rev, git=git, sandbox=sandbox, env=env) as box:
        return observe_box(box, trial)


def observe_box(box: Box, trial: Trial) -> SeenEnvironment:
    """What an open box for the trial holds. Ask before the trial's command runs, which may change it.

    Raises:
        OutsideError: the sandbox engine failed.
    """
    result = box.run(_PROBE_ARGV, timeout=60, env=dict(trial.env))
    granted = tuple(
        (name, float(value))
        for name, value in {**asdict(trial.limits), "timeout": trial.timeout}.items()
    )
    try:
        document = json.loads(result.stdout) if result.passed and not result.truncated else {}
        packages = sorted(document.get("packages", {}).items())
        return SeenEnvironment(
            str(document.get("python", "")),
            str(document.get("machine", "")),
            tuple(f"{name}=={version}" for name, (version, _) in packages),
            tuple(str(digest) for _, (_, digest) in packages),
            granted,
        )
    except (ValueError, TypeError, AttributeError, RecursionError):
        return SeenEnvironment(granted=granted)


def make_capsule(
    kind: CapsuleKind,
    trial: Trial,
    rev: str,
    expected: ExpectedOutcome,
    *,
    git: Git,
    sandbox: Sandbox,
    seen: Mapping[str, SeenEnvironment] | None = None,
) -> Capsule:
    """The capsule of some runs of one trial at one commit; credentials in it are hidden.

    Args:
        kind: which command's verdict it supports.
        trial: what was run.
        rev: the commit.
        expected: what was seen there.
        git: the repository.
        sandbox: where it ran: what a box for it holds is looked up.
        seen: what boxes were observed to hold, by the key of their environment.

    Raises:
        UserError: it would be larger than `MAX_CAPSULE_BYTES`, or its environment cannot be made again.
        OutsideError: the sandbox engine failed.
    """
    laid = trial.read_overlay(rev, git)
    if sum(map(len, laid.values())) > _MAX_OVERLAY_BYTES:
        message = f"the files laid over the checkout are larger than {_MAX_OVERLAY_BYTES // 1024} KB, so no capsule is made"
        raise UserError(message)
    spec = make_env_spec(trial, rev, git=git)
    env = sandbox.prepare(spec, git.archive(rev, laid))
    environment = (seen or {}).get(env.key) or observe_environment(
        trial, rev, git=git, sandbox=sandbox, env=env
    )
    signature = expected.signature
    if signature is not None:
        shorter = (signature.tests[:_MAX_SIGNATURE_TESTS], signature.says[:_MAX_SIGNATURE_TESTS])
        signature = replace(signature, tests=shorter[0], says=shorter[1])
        signature = failure_signature.hide_credentials(signature)
    recipe = CapsuleRecipe(
        redact_secrets(trial.setup) if trial.setup else None,
        trial.python,
        trial.image,
        tuple((name, _hide_value(name, value)) for name, value in trial.env),
        spec.inputs,
        trial.setup_timeout,
    )
    capsule = Capsule(
        kind,
        git.resolve(rev),
        git.tree_id(rev) or "",
        tuple(redact_secrets(word) for word in trial.command),
        trial.timeout,
        trial.limits,
        recipe,
        environment,
        replace(expected, signature=signature),
        tuple(
            sorted(
                (path, redact_secrets(data.decode("utf-8", "replace")))
                for path, data in laid.items()
            )
        ),
    )
    bound = tuple(sorted(capsule.digest_ingredients().items()))
    capsule = replace(capsule, expected=replace(capsule.expected, seen_with=bound))
    encode_capsule(capsule)
    return capsule


def expect_runs(runs: Sequence[CommandRun]) -> ExpectedOutcome:
    """What a capsule says of some runs, at least one: the last one's outcome is the expected one."""
    last = runs[-1]
    outcome = find_outcome(last)
    signature = failure_signature.read_signature(last.result) if outcome == "fail" else None
    return ExpectedOutcome(
        outcome, sum(find_outcome(run) == outcome for run in runs), len(runs), signature
    )


def find_outcome(run: CommandRun) -> CapsuleOutcome:
    """How a run ended, as capsules and verdicts count it."""
    return "pass" if run.is_green else "fail" if run.failed else "infra"


def _hide_value(name: str, value: str) -> str:
    """A variable's value, unless it is a credential by its shape or by its name."""
    return value if redact_secrets(f"{name}={value}") == f"{name}={value}" else HIDDEN_MARK


def find_hidden(capsule: Capsule) -> list[str]:
    """What the capsule does not hold because it looked like a credential: it cannot be repeated without it."""
    named = [
        f"the value of the variable {name}"
        for name, value in capsule.recipe.variables
        if value == HIDDEN_MARK
    ]
    texts = (capsule.recipe.setup or "", *capsule.command, *(text for _, text in capsule.overlay))
    return [
        *named,
        *(["a value that was hidden"] if any(HIDDEN_MARK in text for text in texts) else []),
    ]


def encode_capsule(capsule: Capsule) -> bytes:
    """The capsule's file: JSON for people to read, and packed where that would be too large.

    Raises:
        UserError: it is larger than `MAX_CAPSULE_BYTES`.
    """
    content = asdict(capsule)
    data = _canonical({"version": 1, "digest": capsule.digest, "capsule": content}) + b"\n"
    if MAX_CAPSULE_BYTES < len(data) <= _MAX_UNPACKED_BYTES:
        packed = b64encode(zlib.compress(_canonical(content), 9)).decode()
        data = _canonical({"version": 2, "digest": capsule.digest, "packed": packed}) + b"\n"
    if len(data) > MAX_CAPSULE_BYTES:
        message = (
            f"the capsule would have {len(data):,} bytes; at most {MAX_CAPSULE_BYTES:,} are allowed"
        )
        raise UserError(message)
    return data


KeepCapsule = Callable[[Capsule], str]
"""Stores a capsule and returns the command that repeats it, "" where there is none."""


def write_capsule(capsule: Capsule, folder: Path) -> Path:
    """Write the capsule into a folder under its digest, and return its path."""
    place = make_private(folder) / f"{capsule.digest}.json"
    write_private(place, encode_capsule(capsule).decode())
    return place


def load_capsule(place: Path) -> Capsule:
    """Read a capsule's file.

    Raises:
        UserError: it cannot be read, or is no capsule, or its digest is another.
    """
    try:
        with place.open("rb") as file:
            return decode_capsule(file.read(MAX_CAPSULE_BYTES + 1))
    except OSError as error:
        message = f"cannot read the capsule {place}: {error.strerror or error}"
        raise UserError(message) from error


def decode_capsule(data: bytes) -> Capsule:
    """Parse and verify a capsule's file.

    Raises:
        UserError: it is too large, is no capsule, or its digest is another.
    """
    if len(data) > MAX_CAPSULE_BYTES:
        message = f"a capsule has at most {MAX_CAPSULE_BYTES:,} bytes; this one has more"
        raise UserError(message)
    try:
        capsule, digest = _parse_document(data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)[:200]
        message = f"this is no capsule: {what}; a capsule is the file that `regreen why` or `regreen prove` names"
        raise UserError(message) from error
    if digest != capsule.digest:
        message = "the capsule was altered: its content does not match its digest; get it again from where it was made"
        raise UserError(message)
    return capsule


def _parse_document(data: bytes) -> tuple[Capsule, object]:
    document = json.loads(data)
    if document["version"] not in {1, 2}:
        raise ValueError("it has another version than this program reads, which are 1 and 2")
    content = document["capsule"] if document["version"] == 1 else _unpack(document["packed"])
    capsule = _parse_capsule(content)
    if _canonical(asdict(capsule)) != _canonical(content):
        raise ValueError("it holds values that no capsule has")
    return capsule, document["digest"]


def _unpack(packed: str) -> dict[str, Any]:
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(b64decode(packed, validate=True), _MAX_UNPACKED_BYTES)
    except zlib.error as error:
        raise ValueError("what is packed cannot be unpacked") from error
    if not reader.eof:
        raise ValueError("what is packed is too large")
    content: dict[str, Any] = json.loads(data)
    return content


def _parse_capsule(value: dict[str, Any]) -> Capsule:
    """Build the capsule; each field is checked, because it comes from anywhere."""
    recipe, environment, expected = value["recipe"], value["environment"], value["expected"]
    limits = BoxLimits(**value["limits"])
    most = BoxLimits(
        memory=8 * 1024**3, disk=8 * 1024**3, tmp=2 * 1024**3, pids=4096, cpus=8.0, output=1024**2
    )
    numbers = {name: number for name, number in asdict(limits).items() if name != "network"}
    if limits.network is not False:
        raise ValueError("it asks for a network")
    if any(not _is_number(x) or not 0 < x <= asdict(most)[name] for name, x in numbers.items()):
        raise ValueError("its limits are not possible")
    for seconds in (value["timeout"], recipe["setup_timeout"]):
        if not _is_number(seconds) or not 0 < seconds <= 7200:
            raise ValueError("its time limit is not between 0 and 7200 seconds")
    if value["kind"] not in get_args(CapsuleKind) or expected["outcome"] not in get_args(
        CapsuleOutcome
    ):
        raise ValueError("its kind or outcome is unknown")
    if not (_COMMIT_ID.fullmatch(value["commit"]) and _COMMIT_ID.fullmatch(value["tree"])):
        raise ValueError("its commit or tree is no object id")
    overlay = tuple((_text(path), _text(text)) for path, text in value["overlay"])
    if any(
        path.startswith("/") or {"..", ".git", ""} & set(path.split("/")) for path, _ in overlay
    ):
        raise ValueError("a file would lie outside of the checkout")
    versions = tuple(_text(word) for word in environment["versions"])
    if any(not _REQUIREMENT.fullmatch(word) for word in versions):
        raise ValueError("a package is not given as name==version")
    times, runs = expected["times"], expected["runs"]
    if type(times) is not int or type(runs) is not int or not 1 <= times <= runs <= 10_000:
        raise ValueError("its counts are not possible")
    return Capsule(
        value["kind"],
        value["commit"],
        value["tree"],
        tuple(_text(word) for word in value["command"]),
        value["timeout"],
        limits,
        CapsuleRecipe(
            _optional(recipe["setup"]),
            _optional(recipe["python"]),
            _optional(recipe["image"]),
            tuple((_text(name), _text(word)) for name, word in recipe["variables"]),
            _text(recipe["inputs"]),
            recipe["setup_timeout"],
        ),
        SeenEnvironment(
            _text(environment["python"]),
            _text(environment["machine"]),
            versions,
            tuple(_text(word) for word in environment["digests"]),
            tuple(
                (_text(name), value) for name, value in environment["granted"] if _is_number(value)
            ),
        ),
        ExpectedOutcome(
            expected["outcome"],
            times,
            runs,
            failure_signature.from_json(expected["signature"]) if expected["signature"] else None,
            tuple((_text(name), _text(word)) for name, word in expected["seen_with"]),
        ),
        overlay,
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("a text is expected where it has something else")
    return value


def _optional(value: object) -> str | None:
    return None if value is None else _text(value)


def _canonical(value: object) -> bytes:
    """The same value as the same bytes, always: sorted keys, no blanks, ASCII."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()


# Repeating it.

_INSTALLERS = frozenset({"pip", "setuptools", "wheel", "uv"})  # they follow the machine
_OFFLINE_VARIABLES = (
    ("PIP_NO_INDEX", "1"),
    ("UV_OFFLINE", "1"),
    ("npm_config_offline", "true"),
    ("GOPROXY", "off"),
)
_MAX_REPEATS = 10


@dataclass(frozen=True, slots=True)
class Replay:
    """What became of a capsule here: `missing` and `seen` name what there is not, and what there is instead.

    `verdict` is None where the command was not run.
    """

    verdict: Literal["same", "different", "missing"] | None
    seen: dict[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


def replay_capsule(
    capsule: Capsule,
    *,
    git: Git,
    sandbox: Sandbox,
    offline: bool = False,
    attach: Callable[[Box, Trial], None] | None = None,
) -> Replay:
    """Repeat a capsule in the sandbox, and compare the ingredients and the outcome with what it says.

    Args:
        capsule: what to repeat; untrusted.
        git: a repository that has the commit.
        sandbox: where it runs.
        offline: the setup may reach no package index: what it installs has to lie in the tree.
        attach: receives the box before the command, which is then not run.

    Raises:
        OutsideError: the sandbox engine failed.
    """
    if found := _check_ingredients(capsule, git, sandbox):
        return found
    pins = [
        word for word in capsule.environment.versions if word.partition("==")[0] not in _INSTALLERS
    ]
    trial = (
        constrain_versions(capsule.make_trial(), pins)
        if capsule.recipe.setup
        else capsule.make_trial()
    )
    if offline:
        trial = replace(trial, env=(*trial.env, *_OFFLINE_VARIABLES))
    try:
        present = observe_environment(trial, capsule.commit, git=git, sandbox=sandbox)
    except SetupFailed as error:
        return Replay("missing", missing=(f"what its setup installs: {str(error)[:500]}",))
    if differences := _compare_environments(capsule.environment, present):
        return Replay("different", {"changed": ["environment"], "differences": differences})
    if attach is not None:
        with open_box(trial, capsule.commit, git=git, sandbox=sandbox) as box:
            attach(box, trial)
        return Replay(None, {"detail": "the box was opened; the command was not run"})
    return _repeat_command(capsule, trial, git=git, sandbox=sandbox)


def _check_ingredients(capsule: Capsule, git: Git, sandbox: Sandbox) -> Replay | None:
    """What cannot be the same before anything has run; None where all is there."""
    held = dict(capsule.expected.seen_with)
    altered = [
        name for name, digest in capsule.digest_ingredients().items() if held.get(name) != digest
    ]
    if altered:
        return Replay(
            "different",
            {"changed": altered, "detail": "the outcome was seen with other ingredients"},
        )
    if hidden := find_hidden(capsule):
        return Replay("missing", missing=tuple(hidden))
    if capsule.recipe.python is not None and capsule.recipe.python not in sandbox.pythons():
        return Replay("missing", missing=(f"Python {capsule.recipe.python}",))
    try:
        tree = git.tree_id(git.resolve(capsule.commit))
    except UserError:
        return Replay(
            "missing", missing=(f"the commit {capsule.commit}; fetch it into this repository",)
        )
    if tree != capsule.tree:
        return Replay("different", {"changed": ["tree"], "tree": tree})
    return None


def _repeat_command(capsule: Capsule, trial: Trial, *, git: Git, sandbox: Sandbox) -> Replay:
    """Run once where every run ended alike; otherwise until the recorded outcome is seen."""
    expected = capsule.expected
    most = 1 if expected.times == expected.runs else min(_MAX_REPEATS, 2 * expected.runs + 2)
    seen: dict[str, Any] = {}
    for number in range(1, most + 1):
        run = run_fresh(trial, capsule.commit, git=git, sandbox=sandbox)
        outcome = find_outcome(run)
        signature = failure_signature.read_signature(run.result) if outcome == "fail" else None
        seen = {
            "outcome": outcome,
            "runs": number,
            "signature": redact_secrets(signature.text) if signature else None,
        }
        if outcome == "infra" and expected.outcome != "infra":
            return Replay(
                "missing",
                seen,
                (f"a sandbox that runs it: {run.result.detail or run.result.ended}",),
            )
        alike = not (signature and expected.signature) or failure_signature.matches_any(
            signature, [expected.signature]
        )
        if outcome == expected.outcome and alike:
            return Replay("same", seen)
    return Replay("different", {"changed": ["outcome"], **seen})


def _compare_environments(expected: SeenEnvironment, present: SeenEnvironment) -> list[str]:
    """What differs, in words; installers are not compared."""
    found = [
        f"{name} {getattr(present, field_name) or 'none'} instead of {getattr(expected, field_name) or 'none'}"
        for name, field_name in (("Python", "python"), ("machine", "machine"))
        if getattr(present, field_name) != getattr(expected, field_name)
    ]
    granted = dict(expected.granted)
    found += [
        f"the limit {name} is {value:.12g} instead of {granted.get(name, 0.0):.12g}"
        for name, value in present.granted
        if granted.get(name) != value
    ]
    before, after = (
        {
            word.partition("==")[0]: (word, digest)
            for word, digest in zip(one.versions, one.digests, strict=False)
        }
        for one in (expected, present)
    )
    for name in sorted((before.keys() | after.keys()) - _INSTALLERS):
        old, new = before.get(name, ("none", "")), after.get(name, ("none", ""))
        if old[0] != new[0]:
            found.append(f"{new[0]} instead of {old[0]}")
        elif old[1] != new[1]:
            found.append(f"{name} has other files")
    return found[:50]
