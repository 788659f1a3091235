"""One command and everything needed to run it at any commit: the unit that reviews, fixes and bisections share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Event

from regreen.codebase.manifests import setup_inputs
from regreen.codebase.setup_guard import Rules, Tree, explained, refusals
from regreen.errors import SetupFailed
from regreen.models import Env, EnvSpec, Limits, RunResult, TreeEntry, Trust
from regreen.ports import Box, Git, Sandbox


@dataclass(frozen=True)
class Trial:
    """A command (argv, run at the root of a fresh checkout) with its preparation.

    Exit 0 is good, 125 means "cannot be tried here", anything else is a failure. `setup` is a shell command for
    the network phase, and may take `setup_timeout` seconds; `overlay` maps paths to bytes that are laid over every checkout; `timeout` is in seconds;
    `title` is how people know the command, where that is not how it is run. `asked` is what of the setup was written
    in the repository, where the rest is ours: the dependency guard judges that alone.
    `base` is a trusted revision: what a tree that does not descend to it asks to be installed beyond what `base`
    has must pass the dependency guard under `rules`, and so must all that a pull request's tree asks for.
    """

    command: tuple[str, ...]
    setup: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    overlay: Mapping[str, bytes] = field(default_factory=dict, hash=False)
    timeout: float = 900.0
    python: str | None = None
    image: str | None = None
    trust: Trust = "local"
    scope: str = "local"
    limits: Limits = field(default_factory=Limits)
    base: str | None = None
    rules: Rules = field(default_factory=Rules)
    title: str | None = None
    asked: str | None = None
    setup_timeout: float = 900.0

    @property
    def shown(self) -> str:
        """The command as a person would type it."""
        if self.title is not None:
            return self.title
        if len(self.command) == 3 and self.command[0] in {"bash", "sh"} and self.command[1] == "-c":
            return self.command[2]
        return shlex.join(self.command)


_TOOLS = frozenset(
    {
        "black",
        "coverage",
        "flake8",
        "isort",
        "mypy",
        "nose2",
        "nox",
        "pylint",
        "pyright",
        "pytest",
        "ruff",
        "tox",
    }
)


def missing_tool(command: Sequence[str], result: RunResult) -> str | None:
    """The tool of `python -m TOOL` where the box lacks it: such a run says nothing of the code."""
    if len(command) < 3 or command[1] != "-m" or command[2] not in _TOOLS or result.passed:
        return None
    there_is_none = result.stderr.rstrip().endswith(f"No module named {command[2]}")
    return command[2] if there_is_none else None


def prepare(
    trial: Trial, rev: str, *, git: Git, sandbox: Sandbox, cancel: Event | None = None
) -> Env:
    """The environment that `trial` needs at `rev`; found again where nothing it depends on has changed.

    Raises:
        SetupFailed: the setup command failed at this commit, or asks for what may not be installed.
        OutsideError: the sandbox engine failed.
    """
    spec = spec_of(trial, rev, git=git)
    return sandbox.prepare(spec, git.archive(rev, trial.overlay), cancel)


def spec_of(trial: Trial, rev: str, *, git: Git, inputs: str | None = None) -> EnvSpec:
    """What `prepare` asks the sandbox for, once the dependency guard has let it pass.

    Raises:
        SetupFailed: the guard refuses; the text says which name, why, and what to do.
    """
    refuse_unknown(trial, rev, git)
    if inputs is None:
        inputs = _inputs(trial.setup, trial.overlay, rev, git) if trial.setup else ""
    return EnvSpec(
        image=trial.image,
        python=trial.python,
        setup=trial.setup,
        inputs=inputs,
        trust=trial.trust,
        scope=trial.scope,
        env=trial.env,
        timeout_s=trial.setup_timeout,
        checked=True,
    )


def refuse_unknown(trial: Trial, rev: str, git: Git) -> None:
    """Ask the dependency guard about what a tree wants installed.

    Raises:
        SetupFailed: it refuses.
    """
    base = trial.base
    if not trial.setup or (base is None and trial.trust != "pull_request"):
        return
    if base is not None and (rev == base or git.is_ancestor(rev, base)):
        return
    trusted = _tree(base, git) if base is not None else None
    setup = trial.asked if trial.asked is not None else trial.setup
    found = refusals(setup, trial.env, _tree(rev, git), trusted, trial.rules)
    if found:
        reason = explained(found)
        message = f"the setup was not run: {reason}"
        raise SetupFailed(message, reason)


def _tree(rev: str, git: Git) -> Tree:
    files = {entry.path: entry.sha for entry in git.tree(rev) if entry.mode.startswith("100")}
    return Tree(files, lambda path: git.show(rev, path) if path in files else None)


def _inputs(setup: str, overlay: Mapping[str, bytes], rev: str, git: Git) -> str:
    """A digest of what the setup sees of the tree, with the overlay laid over it."""
    tree = {entry.path: entry for entry in git.tree(rev)}
    for path, content in overlay.items():
        tree[path] = TreeEntry(path, "100644", sha256(content).hexdigest(), len(content))
    return setup_inputs(
        setup,
        list(tree.values()),
        lambda path: overlay[path] if path in overlay else git.show(rev, path),
    )


def open_box(
    trial: Trial, rev: str, *, git: Git, sandbox: Sandbox, cancel: Event | None = None
) -> Box:
    """A fresh box with `rev` and the overlay at /work, prepared; run `trial.command` in it with `trial.env`."""
    env = prepare(trial, rev, git=git, sandbox=sandbox, cancel=cancel)
    return sandbox.open(env, git.archive(rev, trial.overlay), trial.limits)
