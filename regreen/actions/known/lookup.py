"""What each known action means outside GitHub: a tool to set up, something to leave out, or unsupported."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

from regreen.actions.job_plan import WORKSPACE
from regreen.actions.known import toolchains
from regreen.actions.known.toolchains import (
    PIP_INSTALL,
    ActionFunction,
    ActionInputs,
    ActionMeaning,
    Files,
    exact_requirement,
    first_input,
    parse_python_version,
    unless_installed,
)
from regreen.domain.github import GitHubServer


def find_meaning(uses: str, inputs: ActionInputs, files: Files) -> ActionMeaning:
    """The meaning of `uses: OWNER/NAME@REF` with these inputs. The planner handles local actions (`./`)."""
    name = uses.split("@", 1)[0].lower().rstrip("/")
    if uses.startswith("docker://"):
        return ActionMeaning(
            "unsupported", "a container image as a step cannot be had in the sandbox"
        )
    row = load_rows().get(name)
    if row is None:
        return ActionMeaning("unsupported", "what this action does is not known here")
    inputs = {**_tool_from_ref(name, uses), **inputs}
    if not row.does:
        return meaning_from_row(row, inputs)
    given_to = {called: fill_inputs(text, inputs) for called, text in row.inputs.items()}
    return ACTION_FUNCTIONS[row.does]({**inputs, **given_to}, files)


def _tool_from_ref(name: str, uses: str) -> dict[str, str]:
    """`taiki-e/install-action@nextest` names its tool after the @."""
    ref = uses.partition("@")[2]
    return {"tool": ref} if name == "taiki-e/install-action" and not ref.startswith("v") else {}


# --- the tree ---------------------------------------------------------------------------------------------------------


def _plan_checkout(inputs: ActionInputs, files: Files) -> ActionMeaning:  # noqa: PLR0911 - one line an option
    path = first_input(inputs, "path").removeprefix(f"{WORKSPACE}/").rstrip("/") or "."
    if path.startswith("/") or ".." in path.split("/"):
        return ActionMeaning("unsupported", f"checks out outside the workspace, at {path}")
    repository, ref = first_input(inputs, "repository"), first_input(inputs, "ref")
    if repository:
        server = first_input(inputs, "github-server-url") or GitHubServer().web_url
        return _clone_other_repository(server.rstrip("/"), repository, ref, path)
    if ref and not re.fullmatch(r"refs/(?:heads|pull)/\S+|[0-9a-f]{40}|main|master", ref):
        return ActionMeaning("unsupported", f"checks out another revision, {ref}")
    submodules = first_input(inputs, "submodules").lower()
    if submodules in {"true", "recursive"} and files(".gitmodules") is not None:
        why = "submodules are cloned at their branches' heads"
        return ActionMeaning(
            "setup", why, run=_CLONE_SUBMODULES, asks="git submodule update --init"
        )
    if first_input(inputs, "lfs").lower() == "true" and b"filter=lfs" in (
        files(".gitattributes") or b""
    ):
        return ActionMeaning("unsupported", "large files (LFS) are not in the tree")
    if path in {".", "./"}:
        return ActionMeaning("setup", "the tree is at the workspace")
    return ActionMeaning(
        "setup",
        f"the tree is copied to {path}",
        run=_COPY_TREE.replace("PATH_HERE", shlex.quote(path)),
    )


# The sandbox already holds the job's tree; a checkout into a folder copies it.
_COPY_TREE = """rg_tree=$(mktemp -d)
cp -a . "$rg_tree"
mkdir -p PATH_HERE
cp -a "$rg_tree"/. PATH_HERE/
rm -rf "$rg_tree"
"""
_CLONE_SUBMODULES = """git config -f .gitmodules --get-regexp '\\.path$' | while read -r rg_key rg_path; do
  rg_url=$(git config -f .gitmodules --get "${rg_key%.path}.url")
  [ -n "$(ls -A "$rg_path" 2>/dev/null)" ] || git clone --quiet --depth 1 "$rg_url" "$rg_path"
done"""


def _clone_other_repository(server: str, repository: str, ref: str, path: str) -> ActionMeaning:
    """A public repository is cloned in the network phase, without a token."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository) or not re.fullmatch(r"[\w./-]*", ref):
        return ActionMeaning("unsupported", f"checks out another repository, {repository}")
    if not re.fullmatch(r"https?://[\w.:-]+", server):
        return ActionMeaning("unsupported", f"checks out from another server, {server}")
    at, address = shlex.quote(path), shlex.quote(f"{server}/{repository}")
    run = (
        f"mkdir -p {at}\nrg_clone=$(mktemp -d)\n"
        f'git -C "$rg_clone" init --quiet\n'
        f'git -C "$rg_clone" fetch --quiet --depth 1 {address} {shlex.quote(ref or "HEAD")}\n'
        'git -C "$rg_clone" checkout --quiet FETCH_HEAD\n'
        f'{_EMPTY_WORKSPACE if path == "." else ""}cp -a "$rg_clone"/. {at}/'
    )
    why, asks = (
        f"{repository} is cloned in the network phase",
        f"git clone {address}",
    )
    return ActionMeaning("setup", why, run=run, asks=asks)


_EMPTY_WORKSPACE = "find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +\n"


ACTION_FUNCTIONS: dict[str, ActionFunction] = {
    "checkout": _plan_checkout,
    "setup-python": toolchains.setup_python,
    "setup-uv": toolchains.setup_uv,
    "setup-pdm": toolchains.setup_pdm,
    "poetry": toolchains.setup_poetry,
    "build-and-inspect": toolchains.build_packages,
    "pixi": toolchains.setup_pixi,
    "setup-node": toolchains.setup_node,
    "node-and-install": toolchains.setup_node_packages,
    "npm-install": toolchains.install_npm_packages,
    "npm-tool": toolchains.setup_npm_tool,
    "setup-go": toolchains.setup_go,
    "golangci-lint": toolchains.run_golangci_lint,
    "rust": toolchains.setup_rust,
    "cargo": toolchains.run_cargo,
    "crate": toolchains.install_crate,
    "install-action": toolchains.install_tools,
    "on-a-display": toolchains.run_on_display,
    "system-packages": toolchains.install_system_packages,
    "timezone": toolchains.set_timezone,
}
"""What `does` names in the table."""


__all__ = ["ActionMeaning", "find_meaning", "parse_python_version"]


# The rows of `known_actions.toml`, which explains its columns.


@dataclass(frozen=True)
class KnownActionRow:
    """One row of the table, for one or more actions that mean the same."""

    kind: Literal["setup", "skip", "unsupported"]
    actions: tuple[str, ...]
    why: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    install: Literal["", "pip", "npm", "go", "cargo", "image"] = ""
    tool: str = ""
    package: str = ""
    version: tuple[str, ...] = ()
    run: str = ""
    asks: bool = False
    does: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)


@cache
def load_rows() -> Mapping[str, KnownActionRow]:
    """The rows by the actions that they name."""
    text = (
        resources.files("regreen.actions.known").joinpath("known_actions.toml").read_text("utf-8")
    )
    found: dict[str, KnownActionRow] = {}
    for kind, table in tomllib.loads(text).items():
        for values_given in table:
            values: dict[str, Any] = {"kind": kind}
            values |= {k: tuple(v) if isinstance(v, list) else v for k, v in values_given.items()}
            row = KnownActionRow(**values)
            found.update(dict.fromkeys(row.actions, row))
    return found


def meaning_from_row(row: KnownActionRow, inputs: ActionInputs) -> ActionMeaning:
    """The meaning of a row without a function of its own, with these inputs."""
    if row.kind != "setup":
        return ActionMeaning(row.kind, row.why, outputs=row.outputs)
    if row.install == "npm":  # globs and options, one a line
        inputs = {name: value.replace("\n", " ") for name, value in inputs.items()}
    version = first_input(inputs, *row.version)
    run = fill_inputs(row.run, inputs).rstrip()
    before, prefix = _installation_script(row, version)
    why = row.why or (f"{row.tool} {version or 'latest'}" if not row.run else row.tool)
    return ActionMeaning(
        "setup",
        f"{why}, where the image has it" if row.install == "image" else why,
        run="\n".join(part for part in (before, f"{prefix}{run}") if part),
        asks=run if row.asks else "",
    )


def _installation_script(row: KnownActionRow, version: str) -> tuple[str, str]:
    """The script that installs a row's tool, and what goes before the name of the command that is installed."""
    tool, package = row.tool, row.package or row.tool
    match row.install:
        case "pip":
            wanted = f"'{package}{exact_requirement(version)}'" if row.version else package
            return f"{unless_installed(tool)}{PIP_INSTALL} {wanted}", ""
        case "npm":
            store = f'"$RUNNER_TOOL_CACHE/{tool}"'
            return f"npm install --silent --global --prefix {store} {package}", f"{store}/bin/"
        case "go":
            return f"{unless_installed(tool)}GOBIN=/env/bin go install {package}@latest", ""
        case "cargo":
            return f"{unless_installed(tool)}cargo install --quiet --locked {package}", ""
        case "image":
            missing = f"{{ echo 'no {tool} in this image' >&2; exit 1; }}"
            return f"command -v {tool} >/dev/null || {missing}", ""
        case _:
            return "", ""


def fill_inputs(template: str, inputs: ActionInputs) -> str:
    """A row's text with the action's inputs filled in."""
    return re.sub(
        r"\{([^{}|]*)(?:\| ([^{}]*))?\}",
        lambda found: _resolve_placeholder(found, inputs),
        template,
    )


def _resolve_placeholder(found: re.Match[str], inputs: ActionInputs) -> str:
    every = (first_input(inputs, *item.strip().split(", ")) for item in found[1].split(" + "))
    return " ".join(text for text in every if text) or found[2] or ""
