"""One command and everything needed to run it at any commit: the unit that reviews, fixes and bisections share."""

from __future__ import annotations

import posixpath
import re
import shlex
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from threading import Event
from typing import TypeVar, TypeVarTuple, cast
from weakref import WeakKeyDictionary

from regreen import isolation
from regreen.domain.errors import AnalysisFailed, SetupFailed
from regreen.domain.models import BoxLimits, EnvSpec, PreparedEnv, RunResult, TreeEntry, Trust
from regreen.domain.ports import Box, Git, Sandbox
from regreen.packages.container_image import (
    IMAGE_FILES,
    expand_image_name,
    find_image_names,
    is_public_image,
)
from regreen.packages.python_version import digest_setup_inputs
from regreen.packages.setup_guard import (
    InstallPolicy,
    InstallRefusal,
    SourceTree,
    explain_refusals,
    find_changed_inputs,
    find_refusals,
)
from regreen.shell.tools import load_tools

_MAX_IMAGE_FILE = 512 * 1024
_MAX_LINK_STEPS = 40  # as Linux follows them
_MAX_LINKED_FILES = 50_000
_OPAQUE_LINK = (
    "is a symbolic link that is new or changed and leads to no file of the repository: "
    "what a setup would read through it cannot be judged"
)
UNTESTABLE_EXIT_CODE = 125
"""What a command exits with where it cannot be tried, as `git bisect run` has it."""
_Ts = TypeVarTuple("_Ts")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Trial:
    """A command (argv, run at the root of a fresh checkout) with its preparation.

    Exit 0 is good, `UNTESTABLE_EXIT_CODE` that it cannot be tried here, anything else is a failure. `setup` is a shell command for
    the network phase, and may take `setup_timeout` seconds; `overlay` maps paths to bytes that are laid over every
    checkout, `carried` paths to bytes that are laid over a checkout that lacks the path; `timeout` is in seconds;
    `host_programs` as in `EnvSpec`. `title` is how people know the command, where that is not how it is run. `asked` is what of the setup was written
    in the repository, where the rest is ours: the dependency guard judges that alone.
    `base` is a trusted revision: what a tree that does not descend to it asks to be installed beyond what `base`
    has must pass the dependency guard under `rules`, and so must all that a pull request's tree asks for; an image
    that a pull request runs in must be one that `rules` or `base` name, or that everybody knows.
    """

    command: tuple[str, ...]
    setup: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    overlay: Mapping[str, bytes] = field(default_factory=dict, hash=False)
    carried: Mapping[str, bytes] = field(default_factory=dict, hash=False)
    timeout: float = 900.0
    python: str | None = None
    image: str | None = None
    trust: Trust = "local"
    scope: str = "local"
    limits: BoxLimits = field(default_factory=BoxLimits)
    base: str | None = None
    rules: InstallPolicy = field(default_factory=InstallPolicy)
    title: str | None = None
    asked: str | None = None
    setup_timeout: float = 900.0
    host_programs: bool = False

    @property
    def command_line(self) -> str:
        """The command as a person would type it."""
        if self.title is not None:
            return self.title
        if len(self.command) == 3 and self.command[0] in {"bash", "sh"} and self.command[1] == "-c":
            return self.command[2]
        return shlex.join(self.command)

    @property
    def setup_to_type(self) -> str:
        """The setup as a person types it: what the repository wrote, without what only enters the tree in the box."""
        lines = [line.strip() for line in self.judged_setup.splitlines()]
        return "\n".join(line for line in lines if line not in {"", "cd /work"})

    @property
    def judged_setup(self) -> str:
        """What of the setup the dependency guard judges."""
        return (self.setup if self.asked is None else self.asked) or ""

    def add_to_setup(self, more: str) -> Trial:
        """The trial with `more` after its setup; the guard judges `more` even where it trusts the setup's own words."""
        own = () if self.rules.trusts_command else (self.judged_setup,)
        return replace(
            self,
            setup=f"{self.setup}\n{more}" if self.setup else more,
            asked="\n".join((*own, more)),
            rules=replace(self.rules, trusts_command=False),
        )

    def read_overlay(self, rev: str, git: Git) -> Mapping[str, bytes]:
        """What is laid over a checkout of `rev`."""
        lacking = {p: data for p, data in self.carried.items() if git.tree_id(rev, p) is None}
        return {**lacking, **self.overlay} if lacking else self.overlay


def find_missing_tool(command: Sequence[str], result: RunResult) -> str | None:
    """The program that the box lacks where the command could not start: such a run says nothing of the code."""
    if result.passed or result.ended != "exit":
        return None
    last = result.stderr.rstrip().rpartition("\n")[2]
    if result.exit_code in _NOT_FOUND_CODES and (found := _COMMAND_NOT_FOUND.search(last)):
        return found[1] or found[2]
    missing = _NO_PROGRAM_MODULE.fullmatch(last)
    called = re.search(rf"-m {missing[1]}\b", " ".join(command)) if missing else None
    return (
        missing[1]
        if missing and called and missing[1] in load_tools().programs["python_modules"]
        else None
    )


def describe_missing_tool(tool: str, *, setup: str | None) -> str:
    """What to do about a program that the box lacks."""
    if setup:
        return f"{tool} is not installed in the sandbox, and the setup does not install it; give --setup or tests.setup a command that does"
    return (
        f"{tool} is not installed in the sandbox; say what installs it with --setup or tests.setup"
    )


# bash, dash, and an `exec` of the box itself.
_COMMAND_NOT_FOUND = re.compile(
    r"([\w.+/-]{1,100}): (?:command )?not found$|exec: \"?([\w.+/-]{1,100})\"?: |'([\w.+/-]{1,100})'$"
)
_NO_PROGRAM_MODULE = re.compile(r"\S{0,200}python[\d.]*: No module named ([\w.]{1,100})")
_NOT_FOUND_CODES = (127, 126)


def prepare_environment(
    trial: Trial, rev: str, *, git: Git, sandbox: Sandbox, cancel: Event | None = None
) -> PreparedEnv:
    """The environment that `trial` needs at `rev`; found again where nothing it depends on has changed.

    Raises:
        SetupFailed: the setup command failed at this commit, or asks for what may not be installed.
        OutsideError: the sandbox engine failed.
    """
    spec = make_env_spec(trial, rev, git=git)
    return sandbox.prepare(spec, git.archive(rev, trial.read_overlay(rev, git)), cancel)


def make_env_spec(trial: Trial, rev: str, *, git: Git, inputs: str | None = None) -> EnvSpec:
    """What `prepare` asks the sandbox for, once the dependency guard has let it pass.

    Raises:
        SetupFailed: the guard refuses; the text says which name, why, and what to do.
    """
    _check_requested_image(trial, rev, git)
    check_requested_packages(trial, rev, git)
    if inputs is None:
        over = tuple(sorted(trial.read_overlay(rev, git).items()))
        inputs = (
            _read_once(_digest_inputs, git, (rev, None), trial.setup, over) if trial.setup else ""
        )
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
        host_programs=trial.host_programs,
    )


def _check_requested_image(trial: Trial, rev: str, git: Git) -> None:
    """Refuse an image that a pull request's own files chose: another repository's, or one of the operator's registry.

    The engine pulls outside of a setup's filter, and with the operator's credentials.
    """
    if trial.image is None or trial.trust != "pull_request" or trial.image in trial.rules.images:
        return
    image = expand_image_name(trial.image)
    if is_public_image(image):
        return
    trusted = {trial.base, git.merge_base(trial.base, rev)} if trial.base else set()
    for known in filter(None, trusted):
        for entry in git.tree(known):
            if IMAGE_FILES.fullmatch(entry.path):
                text = (git.show(known, entry.path, _MAX_IMAGE_FILE) or b"").decode(
                    "utf-8", "replace"
                )
                if image in find_image_names(text):
                    return
    reason = (
        f"a pull request may not choose the image {trial.image}. If it is meant: a maintainer names it on the base "
        "branch, or as `tests.image` in .github/regreen.yml on the default branch"
    )
    message = f"the setup was not run: {reason}"
    raise SetupFailed(message, reason)


def check_requested_packages(trial: Trial, rev: str, git: Git) -> None:
    """Ask the dependency guard about what a tree wants installed.

    Raises:
        SetupFailed: it refuses.
    """
    base = trial.base
    if not trial.setup or (base is None and trial.trust != "pull_request"):
        return
    if base is not None and (rev == base or git.is_ancestor(rev, base)):
        return
    found = _read_once(_refusals, git, (rev, base), trial.judged_setup, trial.env, trial.rules)
    if found:
        reason = explain_refusals(found)
        message = f"the setup was not run: {reason}"
        raise SetupFailed(message, reason)


# What was read of commits, as long as their repository is held: a repair opens dozens of boxes of the same few commits.
_ANSWERS: WeakKeyDictionary[Git, dict[object, object]] = WeakKeyDictionary()
_MOST_ANSWERS = 1000
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_Revisions = tuple[str, str | None]


def _read_once(
    function: Callable[[Git, _Revisions, *_Ts], _R], git: Git, revs: _Revisions, *args: *_Ts
) -> _R:
    """Read manifests and scripts of trees in a child process, those of the same commits once.

    Raises:
        SetupFailed: they cannot be read, so nothing of them is set up.
    """
    is_fixed = all(rev is None or _COMMIT.fullmatch(rev) for rev in revs)
    answers = _ANSWERS.setdefault(git, {}) if is_fixed else {}
    question = (function, revs, args)
    if question in answers:
        with suppress(KeyError):  # another thread may have made room
            return cast("_R", answers[question])
    try:
        with isolation.name_failed_input("what the setup installs"):
            answer = isolation.run_in_child(function, git, revs, *args)
    except AnalysisFailed as error:
        message = f"the setup was not run: {error}"
        raise SetupFailed(message, str(error)) from error
    if len(answers) >= _MOST_ANSWERS:
        answers.clear()
    answers[question] = answer
    return answer


def _refusals(
    git: Git,
    revs: _Revisions,
    setup: str,
    env: tuple[tuple[str, str], ...],
    rules: InstallPolicy,
) -> tuple[InstallRefusal, ...]:
    rev, base = revs
    tree, opaque = _read_tree_through_links(rev, git)
    trusted, known = _read_tree_through_links(base, git) if base is not None else (None, {})
    added = sorted(path for path, sha in opaque.items() if known.get(path) != sha)
    return (
        *(InstallRefusal(path, path, _OPAQUE_LINK) for path in added),
        *find_refusals(setup, env, tree, trusted, rules),
    )


def read_changed_inputs(setup: str, rev: str, base: str, git: Git) -> tuple[str, ...]:
    """The files from which `setup` installs in which `rev` differs from `base`, read in a child process.

    Raises:
        AnalysisFailed: they cannot be read.
    """
    return isolation.run_in_child(_find_inputs, setup, rev, base, git)


def _find_inputs(setup: str, rev: str, base: str, git: Git) -> tuple[str, ...]:
    return find_changed_inputs(
        setup, _read_tree_through_links(rev, git)[0], _read_tree_through_links(base, git)[0]
    )


def _read_tree_through_links(rev: str, git: Git) -> tuple[SourceTree, dict[str, str]]:
    """The files of a tree as programs see them, through its symbolic links; and the links that stand for no file.

    A link to a folder shows what lies there, links in that folder excepted.
    """
    entries = git.tree(rev)
    files = {entry.path: entry.sha for entry in entries if entry.mode.startswith("100")}
    links = {entry.path: entry.sha for entry in entries if entry.mode == "120000"}
    paths = sorted(files)
    places = dict(zip(files, files, strict=True))
    opaque: dict[str, str] = {}
    targets = {
        link: posixpath.normpath(
            posixpath.join(
                posixpath.dirname(link), _whole(git, rev, link).decode("utf-8", "replace")
            )
        )
        for link in links
    }
    for link, sha in links.items():
        place = targets[link]
        for _ in range(_MAX_LINK_STEPS):
            place = targets.get(place, place)
        if place in files:
            places[link] = place
            continue
        opaque[link] = sha
        inside = paths[bisect_left(paths, f"{place}/") : bisect_left(paths, f"{place}0")]
        places |= {link + path.removeprefix(place): path for path in inside}
        if len(places) > len(files) + _MAX_LINKED_FILES:
            message = f"its symbolic links stand for more than {_MAX_LINKED_FILES:,} files"
            raise AnalysisFailed(message)
    shown = {path: files[place] for path, place in places.items()}
    return SourceTree(
        shown, lambda path: _whole(git, rev, places[path]) if path in places else None
    ), opaque


def _whole(git: Git, rev: str, path: str) -> bytes:
    data = git.show(rev, path)
    if data is None:
        message = f"{path} is too large"
        raise AnalysisFailed(message)
    return data


def _digest_inputs(
    git: Git, revs: _Revisions, setup: str, laid_over: tuple[tuple[str, bytes], ...]
) -> str:
    """A digest of what the setup sees of the tree, through its symbolic links, with the overlay laid over it."""
    rev, overlay = revs[0], dict(laid_over)
    tree = {entry.path: entry for entry in git.tree(rev)}
    seen, _ = _read_tree_through_links(rev, git)
    for path, sha in seen.files.items():
        if path not in tree or tree[path].mode == "120000":
            tree[path] = TreeEntry(path, "100644", sha, None)
    for path, content in overlay.items():
        tree[path] = TreeEntry(path, "100644", sha256(content).hexdigest(), len(content))
    return digest_setup_inputs(
        setup,
        list(tree.values()),
        lambda path: overlay[path] if path in overlay else seen.read(path),
    )


def open_box(
    trial: Trial,
    rev: str,
    *,
    git: Git,
    sandbox: Sandbox,
    env: PreparedEnv | None = None,
    cancel: Event | None = None,
) -> Box:
    """A fresh box with `rev` and the overlay at /work, prepared; run `trial.command` in it with `trial.env`.

    `env` is what `prepare_environment` returned for the same trial and revision; without it, it is asked here.
    """
    env = env or prepare_environment(trial, rev, git=git, sandbox=sandbox, cancel=cancel)
    return sandbox.open(env, git.archive(rev, trial.read_overlay(rev, git)), trial.limits)


def constrain_versions(trial: Trial, versions: Sequence[str]) -> Trial:
    """The trial whose setup may install these packages (`name==version`) in these versions only, by pip and uv."""
    held = make_constraints_file(versions)
    overlay = {**trial.overlay, **held}
    return replace(trial, overlay=overlay, env=(*trial.env, *make_constraint_variables(held)))


def make_constraints_file(constraints: Sequence[str]) -> dict[str, bytes]:
    """The versions as a file; its name contains a digest, because it identifies the environment."""
    if not constraints:
        return {}
    content = "\n".join(constraints).encode() + b"\n"
    return {f".regreen-constraints-{sha256(content).hexdigest()[:12]}.txt": content}


def make_constraint_variables(held: Mapping[str, bytes]) -> tuple[tuple[str, str], ...]:
    """The variables by which pip and uv find the file of `make_constraints_file`."""
    return tuple(
        (name, f"/work/{path}") for path in held for name in ("PIP_CONSTRAINT", "UV_CONSTRAINT")
    )
