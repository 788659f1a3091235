"""Packages that are new or moved, held against what an index says: asked by the real clients of a small index here."""

from __future__ import annotations

import ensurepip
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from regreen.packages.dependency import DeclaredPackages, Dependency
from regreen.packages.manifests_and_locks import read_declared
from regreen.reviewers.analyzers.dependency_changes import (
    ANSWER_FILE,
    IndexAnswer,
    IndexAnswers,
    concerns_of_index_answer,
    exact_version,
    make_index_query,
    read_answers,
    select_new_index_packages,
    withdrawal_reason,
)

FILES = {
    "files": [
        {"filename": "good_thing-1.0.tar.gz", "yanked": False},
        {"filename": "good_thing-1.1-py3-none-any.whl", "yanked": "broke on <Tuesdays>"},
        {"filename": "good-thing-1.1.tar.gz", "yanked": True},
        {"filename": "good_thing-1.2-py3-none-any.whl", "yanked": True},
        {"filename": "good_thing-1.2.tar.gz", "yanked": False},
    ]
}
PAGE = '<a href="#" data-yanked="">old_page-0.9.tar.gz</a>\n<a href="#">old_page-1.0-py3-none-any.whl</a>'
NPM = {
    "name": "old-pad", "dist-tags": {"latest": "1.3.0"},
    "versions": {
        "1.2.0": {"name": "old-pad", "version": "1.2.0"},
        "1.3.0": {"name": "old-pad", "version": "1.3.0", "deprecated": "use padStart"},
    },
}  # fmt: skip
PAGES: dict[str, tuple[int, str, str]] = {
    "/simple/good-thing/": (200, "application/vnd.pypi.simple.v1+json", json.dumps(FILES)),
    "/simple/old-page/": (200, "text/html", PAGE),
    "/simple/refused/": (403, "text/html", "no"),
    "/npm/old-pad": (200, "application/json", json.dumps(NPM)),
}


@contextmanager
def index(pages: Mapping[str, tuple[int, str, str]]) -> Iterator[str]:
    """A package index that holds a few pages."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind, text = pages.get(self.path, (404, "application/json", "{}"))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def asked(folder: Path, address: str, *packages: tuple[str, str, str]) -> IndexAnswers:
    """The answers of the index at this address to the question that a box would put."""
    wheels = sorted((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    if not wheels:
        pytest.skip("this Python ships no pip")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(sys.executable)
    env = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "HOME": str(folder),
        "PYTHONPATH": str(wheels[-1]),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": f"{address}/simple",
        "npm_config_registry": f"{address}/npm/",
        "npm_config_fetch_retries": "0",
    }
    wanted = [
        Dependency(name, "npm" if kind == "npm" else "pypi", spec) for kind, name, spec in packages
    ]
    subprocess.run(
        ["sh", "-c", make_index_query(wanted)], cwd=folder, env=env, check=True, timeout=60
    )
    return read_answers((folder / ANSWER_FILE).read_text())


def test_pip_is_told_what_was_withdrawn_and_what_is_missing(tmp_path: Path) -> None:
    names = ("Good.Thing", "old_page", "nobody-has-this", "refused")
    with index(PAGES) as address:
        answers = asked(tmp_path, address, *(("pypi", name, "") for name in names))
    assert answers["pypi", "good-thing"] == IndexAnswer(
        there=True, versions={"1.0": "", "1.1": "broke on <Tuesdays>", "1.2": ""}
    )
    assert answers["pypi", "old-page"].versions == {"0.9": "no reason given", "1.0": ""}
    assert answers["pypi", "nobody-has-this"].there is False
    assert ("pypi", "refused") not in answers


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_npm_is_told_what_its_authors_advise_against(tmp_path: Path) -> None:
    with index(PAGES) as address:
        answers = asked(
            tmp_path, address, ("npm", "old-pad", "^1.2.0"), ("npm", "gone-zz", "1.0.0")
        )
    assert answers["npm", "old-pad"].versions == {"1.2.0": "", "1.3.0": "use padStart"}
    assert answers["npm", "gone-zz"].there is False


def test_an_index_that_cannot_be_reached_says_nothing(tmp_path: Path) -> None:
    assert asked(tmp_path, "http://127.0.0.1:9", ("pypi", "good-thing", "==1.0")) == {}


def test_only_what_is_new_or_moved_and_comes_from_an_index_is_asked_about() -> None:
    before = read_declared("requirements.txt", "a==1\nb==1\n")
    after = read_declared(
        "requirements.txt", "A==1\nb==2\nc>=1\ngit+https://g.example/d#egg=d\n; rm -rf\n"
    )
    assert [(one.name, one.spec) for one in select_new_index_packages(before, after)] == [
        ("b", "==2"),
        ("c", ">=1"),
    ]
    shell = make_index_query(
        [Dependency("x'; rm -rf /; '", "npm", "$(id)"), Dependency("y", "npm", "`id`")]
    )
    words = subprocess.run(["sh", "-c", f"printf '%s\\n' {shell.removeprefix('python -c ')}"],
                           capture_output=True, text=True, check=True).stdout  # fmt: skip
    assert words.rstrip().endswith(f'["x\'; rm -rf /; \'", ""], ["y", ""]]}}\n{ANSWER_FILE}')


@pytest.mark.parametrize(
    ("asked_for", "known"),
    [("1.0", "1.0.0"), ("1.0.0", "1"), ("1.0-rc.1", "1.0rc1"), ("v2.1", "2.1"), ("1.0+local", "1.0"), ("1.0.beta2", "1.0b2")],
)  # fmt: skip
def test_versions_are_the_same_however_they_are_spelt(asked_for: str, known: str) -> None:
    assert withdrawal_reason(IndexAnswer(there=True, versions={known: "why"}), asked_for) == "why"
    assert withdrawal_reason(IndexAnswer(there=True, versions={"10.0": "why"}), asked_for) is None


def test_a_range_is_no_version() -> None:
    specs = ["==1.0", "1.2.3", "=1.2", "^1.2.3", ">=1", "==1.*", "", "==1.0,<2", "latest"]
    found = [exact_version(Dependency("x", "pypi", spec)) for spec in specs]
    assert found == ["1.0", "1.2.3", "1.2", "", "", "", "", "", ""]


ANSWERS: IndexAnswers = {
    ("pypi", "x"): IndexAnswer(there=True, versions={"1.0": "", "1.1": "bad `wheel`\nof it"}),
    ("pypi", "dead"): IndexAnswer(there=True, versions={"1": "abandoned", "2": "abandoned"}),
    ("pypi", "gone"): IndexAnswer(there=False, versions={}),
    ("npm", "@ours/y"): IndexAnswer(there=False, versions={}),
    ("npm", "pad"): IndexAnswer(there=True, versions={"1.3.0": "use padStart"}),
}


@pytest.mark.parametrize(
    ("ecosystem", "name", "spec", "kinds"),
    [
        ("pypi", "x", "==1.0", {}),
        ("pypi", "x", ">=1", {}),
        ("pypi", "X", "==1.1.0", {"yanked": True}),
        ("pypi", "x", "==7", {"no-such-version": True}),
        ("pypi", "dead", ">=1", {"yanked": True}),
        ("pypi", "gone", ">=1", {"unknown": True}),
        ("npm", "@ours/y", "^1", {"unknown": False}),
        ("npm", "pad", "1.3.0", {"deprecated": True}),
        ("pypi", "never-asked", "==1", {}),
    ],
)
def test_an_answer_is_said_where_it_matters(
    ecosystem: str, name: str, spec: str, kinds: dict[str, bool]
) -> None:
    one = Dependency(name, "npm" if ecosystem == "npm" else "pypi", spec)
    found = list(
        concerns_of_index_answer(one, ANSWERS, is_lock=False, is_new=True, own_index=False)
    )
    assert {c.kind: c.confidence >= 0.8 for c in found} == kinds
    assert all("`wheel`" not in c.detail and "\n" not in c.detail for c in found)


def test_what_the_usual_index_lacks_may_be_on_the_repository_s_own() -> None:
    for name, spec in (("gone", ">=1"), ("x", "==7")):
        one = Dependency(name, "pypi", spec)
        assert not list(
            concerns_of_index_answer(one, ANSWERS, is_lock=False, is_new=True, own_index=True)
        )


def test_a_lock_file_s_advice_is_kept_back() -> None:
    pad = Dependency("pad", "npm", "1.3.0")
    (concern,) = concerns_of_index_answer(pad, ANSWERS, is_lock=True, is_new=True, own_index=False)
    assert concern.confidence < 0.8


def test_answers_that_are_damaged_are_none() -> None:
    for text in ("", "[]", "{", '{"pypi": 1}', '{"pypi": {"x": {"there": "yes"}}}'):
        assert read_answers(text) == {}
    assert select_new_index_packages(DeclaredPackages(), DeclaredPackages()) == ()
