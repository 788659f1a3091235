"""What each known action means where there is no GitHub: a tool to set up, a thing to leave out, or no way."""

from __future__ import annotations

import re
import shlex

from regreen.fixers.action_table import REFUSED, SKIPPED, SKIPPED_OUTPUTS
from regreen.fixers.action_words import Files, Inputs, Known, Meaning, given
from regreen.fixers.job_plan import WORKSPACE
from regreen.fixers.other_actions import OTHERS
from regreen.fixers.python_actions import (
    black,
    both,
    build_and_inspect,
    pip_tool,
    poetry,
    pre_commit,
    python_version,
    ruff,
    sdist,
    setup_python,
    setup_uv,
)
from regreen.fixers.toolchain_actions import (
    install_action,
    needs_tool,
    npm_tool,
    pixi,
    retry,
    rust,
    setup_go,
    setup_node,
)


def meaning(uses: str, inputs: Inputs, files: Files) -> Meaning:
    """What `uses: OWNER/NAME@REF` with these inputs comes to. Local actions (`./`) are the planner's."""
    name = uses.split("@", 1)[0].lower().rstrip("/")
    if uses.startswith("docker://"):
        return Meaning("unsupported", "a container image as a step cannot be had in the sandbox")
    if known := _KNOWN.get(name) or OTHERS.get(name):
        return known({**_said_by_ref(name, uses), **inputs}, files)
    if (reason := SKIPPED.get(name)) is not None:
        return Meaning("skip", reason, outputs=SKIPPED_OUTPUTS.get(name, {}))
    if (reason := REFUSED.get(name)) is not None:
        return Meaning("unsupported", reason)
    return Meaning("unsupported", "what this action does is not known here")


def _said_by_ref(name: str, uses: str) -> dict[str, str]:
    """`taiki-e/install-action@nextest` names its tool behind the @."""
    ref = uses.partition("@")[2]
    return {"tool": ref} if name == "taiki-e/install-action" and not ref.startswith("v") else {}


# --- the tree ---------------------------------------------------------------------------------------------------------


def _checkout(inputs: Inputs, files: Files) -> Meaning:  # noqa: PLR0911 - one line an option
    path = given(inputs, "path").removeprefix(f"{WORKSPACE}/").rstrip("/") or "."
    if path.startswith("/") or ".." in path.split("/"):
        return Meaning("unsupported", f"checks out outside the workspace, at {path}")
    repository, ref = given(inputs, "repository"), given(inputs, "ref")
    if repository:
        return _other_repository(repository, ref, path)
    if ref and not re.fullmatch(r"refs/(?:heads|pull)/\S+|[0-9a-f]{40}|main|master", ref):
        return Meaning("unsupported", f"checks out another revision, {ref}")
    submodules = given(inputs, "submodules").lower()
    if submodules in {"true", "recursive"} and files(".gitmodules") is not None:
        why = "submodules are cloned at their branches' heads"
        return Meaning("setup", why, run=_SUBMODULES, asks="git submodule update --init")
    if given(inputs, "lfs").lower() == "true" and b"filter=lfs" in (files(".gitattributes") or b""):
        return Meaning("unsupported", "large files (LFS) are not in the tree")
    if path in {".", "./"}:
        return Meaning("setup", "the tree is at the workspace")
    return Meaning(
        "setup",
        f"the tree is copied to {path}",
        run=_COPY_TREE.replace("PATH_HERE", shlex.quote(path)),
    )


# The tree that the sandbox brought is the job's own; a checkout into a folder takes it from there.
_COPY_TREE = """rg_tree=$(mktemp -d)
cp -a . "$rg_tree"
mkdir -p PATH_HERE
cp -a "$rg_tree"/. PATH_HERE/
rm -rf "$rg_tree"
"""
_SUBMODULES = """git config -f .gitmodules --get-regexp '\\.path$' | while read -r rg_key rg_path; do
  rg_url=$(git config -f .gitmodules --get "${rg_key%.path}.url")
  [ -n "$(ls -A "$rg_path" 2>/dev/null)" ] || git clone --quiet --depth 1 "$rg_url" "$rg_path"
done"""


def _other_repository(repository: str, ref: str, path: str) -> Meaning:
    """A public repository is cloned in the network phase; GitHub's own ways in, with a token, there are none here."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository) or not re.fullmatch(r"[\w./-]*", ref):
        return Meaning("unsupported", f"checks out another repository, {repository}")
    at = shlex.quote(path)
    run = (
        f"mkdir -p {at}\nrg_clone=$(mktemp -d)\n"
        f'git -C "$rg_clone" init --quiet\n'
        f'git -C "$rg_clone" fetch --quiet --depth 1 https://github.com/{repository} {shlex.quote(ref or "HEAD")}\n'
        'git -C "$rg_clone" checkout --quiet FETCH_HEAD\n'
        f'{_EMPTY if path == "." else ""}cp -a "$rg_clone"/. {at}/'
    )
    why, asks = (
        f"{repository} is cloned in the network phase",
        f"git clone https://github.com/{repository}",
    )
    return Meaning("setup", why, run=run, asks=asks)


_EMPTY = "find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +\n"


_KNOWN: dict[str, Known] = {
    "actions/checkout": _checkout,
    "actions/setup-python": setup_python,
    "deadsnakes/action": setup_python,
    "useblacksmith/setup-python": setup_python,
    "useblacksmith/checkout": _checkout,
    "useblacksmith/setup-node": setup_node,
    "useblacksmith/setup-go": setup_go,
    "actions/setup-node": setup_node,
    "actions/setup-go": setup_go,
    "astral-sh/setup-uv": setup_uv,
    "hynek/setup-cached-uv": setup_uv,
    "yezz123/setup-uv": setup_uv,
    "astral-sh/ruff-action": ruff,
    "chartboost/ruff-action": ruff,
    "psf/black": black,
    "pre-commit/action": pre_commit,
    "tox-dev/action-pre-commit-uv": pre_commit,
    "snok/install-poetry": poetry,
    "abatilo/actions-poetry": poetry,
    "gerlero/install-poetry": poetry,
    "packetcoders/action-setup-cache-python-poetry": poetry,
    "pdm-project/setup-pdm": lambda inputs, files: both(
        setup_python, pip_tool("pdm", "pdm"), inputs, files
    ),
    "pypa/hatch": pip_tool("hatch", "hatch"),
    "wntrblm/nox": pip_tool("nox", "nox"),
    "excitedleigh/setup-nox": pip_tool("nox", "nox"),
    "extractions/setup-just": pip_tool("rust-just", "just", "just-version"),
    "taiki-e/install-action": install_action,
    "hynek/build-and-inspect-python-package": build_and_inspect,
    "prefix-dev/setup-pixi": pixi,
    "re-actors/checkout-python-sdist": sdist,
    "arduino/setup-task": pip_tool("go-task-bin", "task"),
    "pnpm/action-setup": npm_tool("pnpm", "version"),
    "oven-sh/setup-bun": npm_tool("bun", "bun-version"),
    "actions-rs/toolchain": rust,
    "actions-rust-lang/setup-rust-toolchain": rust,
    "dtolnay/rust-toolchain": rust,
    "moonrepo/setup-rust": rust,
    "hecrj/setup-rust-action": rust,
    "actions/setup-java": needs_tool("java", "Java"),
    "actions/setup-dotnet": needs_tool("dotnet", ".NET"),
    "ruby/setup-ruby": needs_tool("ruby", "Ruby"),
    "shivammathur/setup-php": needs_tool("php", "PHP"),
    "nick-fields/retry": retry,
    "nick-invision/retry": retry,
}


__all__ = ["Meaning", "meaning", "python_version"]
