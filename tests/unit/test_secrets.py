"""Credentials: found by format, checksum and context; placeholders and hashes left alone; values never shown."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regreen.secrets.credential_detection import find_secrets, mask_credentials, mask_value
from tests.unit.changes import Story
from tests.unit.credentials import HARD_NEGATIVES, KINDS, negatives, positives
from tests.unit.credentials_elsewhere import CREDENTIALS, INNOCENT


def is_found(path: str, text: str) -> bool:
    return any(secret.confidence >= 0.8 for secret in find_secrets(text, path))


def test_precision_and_recall_hold_on_a_generated_list() -> None:
    real = [is_found(*case) for case in positives(seed=11, each=6)]
    innocent = [is_found(*case) for case in negatives(seed=11, each=6)]
    assert len(real) >= 6 * KINDS
    assert len(innocent) >= 6 * HARD_NEGATIVES
    recall = sum(real) / len(real)
    precision = sum(real) / (sum(real) + sum(innocent))
    assert recall >= 0.95
    assert precision >= 0.95


def test_they_hold_on_a_list_that_was_written_apart() -> None:
    rng = random.Random(29)
    real = [is_found(*make(rng)) for make in CREDENTIALS.values() for _ in range(4)]
    innocent = [is_found(*make(rng)) for make in INNOCENT.values() for _ in range(4)]
    assert sum(real) / len(real) >= 0.95
    assert sum(real) / (sum(real) + sum(innocent)) >= 0.95


VALUES = (
    "tR7uK9zmQx2wB4nL8v",
    "ghp_aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2",
    "q7Wz2Lk9Xv4Rt8Bn3Mp6Jc1Hd5Gf0Sa7",
)
QUOTED = f"""\
import subprocess
from flask import Flask, request

app = Flask(__name__)


@app.get("/x")
def x():
    con = connect(password="{VALUES[0]}"); con.execute("select " + request.args["q"])
    if request.args["q"] is "{VALUES[0]}": pass
    token = "{VALUES[1]}"; assert (token, "no")
    subprocess.run("curl -H 'Authorization: Bearer {VALUES[2]}' " + request.args["h"], shell=True)
    return {{}}
"""


@pytest.mark.parametrize("form", ["text", "json", "sarif", "markdown"])
def test_no_form_of_the_report_holds_a_value_that_stands_on_the_line_of_another_finding(
    tmp_path: Path, form: str
) -> None:
    # Given a change that puts credentials beside other faults
    Story(tmp_path).change(
        {"README": "x"},
        {"app.py": QUOTED, "requirements.txt": f"a @ git+https://u:{VALUES[0]}@h.io/a\n"},
    )
    # When it is reviewed
    done = subprocess.run(
        [sys.executable, "-m", "regreen", "review", "--base", "HEAD~1", "--format", form],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    # Then the faults are told, and no credential is
    assert "Command injection" in done.stdout
    assert not [value for value in VALUES if value in done.stdout + done.stderr]


def test_no_finding_carries_the_value() -> None:
    for path, text in positives(seed=3, each=2):
        for secret in find_secrets(text, path):
            words = [word for word in text.replace('"', " ").split() if len(word) > 24]
            assert not any(word in repr(secret) for word in words)


def test_redaction_takes_every_credential_out_of_a_text() -> None:
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"
    log = f"cloning https://bot:{token}@github.com/a/b\nAuthorization: Bearer {token}\nplain words stay"
    clean = mask_credentials(log)
    assert token not in clean
    assert "plain words stay" in clean


def test_a_mask_keeps_the_kind_and_nothing_random() -> None:
    assert mask_value("ghp_abcdefghijklmnop", "GitHub token") == "ghp_…[20 characters]"
    assert mask_value("hunter2hunter2", "password") == "…[14 characters]"


def test_a_fixture_in_a_test_is_left_alone_but_a_real_token_still_counts_a_little() -> None:
    assert not is_found("tests/test_login.py", 'password = "Tr0ub4dor&3x"')
    found = find_secrets(
        'token = "ghp_aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"', "tests/test_login.py"
    )
    assert found
    assert max(secret.confidence for secret in found) < 0.8


RANDOM = "q7Wz2Lk9Xv4Rt8Bn3Mp6Jc1Hd5Gf0Sa7"
WRITTEN = [
    ("auth.go", f'var jwtSecret = []byte("{RANDOM}")'),
    ("sync.py", f'session.headers["Authorization"] = "Basic {RANDOM}=="'),
    ("Makefile", f"\t./push --api-key {RANDOM[:-3]}BAr --env prod"),
    ("README.md", "Run `glab auth login --token glpat-Zk4Tq9Wb2Xn7Lm5Rv8Jd` first."),
    ("k.ts", f"const secret = process.env.JWT_SECRET || '{RANDOM}';"),
    ("k.ts", f"const apiKey: string = '{RANDOM}';"),
    ("k.rs", f'const API_KEY: &str = "{RANDOM}";'),
    ("K.kt", f'private val apiKey: String = "{RANDOM}"'),
    ("k.go", f'var apiSecret string = "{RANDOM}"'),
    ("Dockerfile", f"ENV API_TOKEN={RANDOM}"),
    ("deploy.sh", f"curl -sS -u svc:{RANDOM} https://api.acme.io"),
    ("backup.sh", "mysqldump -u root --password=tR7uK9#mQx2w app > dump.sql"),
    ("appsettings.json", '"Default": "Server=db;User Id=sa;Password=tR7uK9#mQx2w;"'),
    (".env", "DB_PASSWORD=tR7uK#9mQx2w"),
    (".env", "HEROKU_API_KEY=3f1c9a52-7be0-4d6e-9c11-5a0e8d27b46f"),
]
UNWRITTEN = [
    ("a.ts", 'const token = "0x8f3Cf7ad23Cd3CaDbD9735AFf958023239c6A063";'),
    ("a.py", 'TOKEN_RE = r"^[A-Za-z0-9_-]{20,}$"'),
    ("a.py", 'PASSWORD_PATTERN = "(?=.*[A-Z])(?=.*[0-9]).{8,}"'),
    ("a.py", 'url = "https://jo:a%20secret@acme.io/path"'),
    ("a.ts", 'const apiKey = process.env.API_KEY ?? throwMissing("API_KEY");'),
]


@pytest.mark.parametrize(("path", "text"), WRITTEN)
def test_a_credential_is_seen_however_a_language_writes_it(path: str, text: str) -> None:
    assert is_found(path, text)


@pytest.mark.parametrize(("path", "text"), UNWRITTEN)
def test_what_only_has_the_name_of_a_secret_is_left_alone(path: str, text: str) -> None:
    assert not is_found(path, text)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    ["a" * 2_000_000, "password = '" + "a" * 100_000, "://" * 100_000, "eyJ" * 100_000, "token=" * 50_000,
     "x" + "://a:" * 20_000, "= '" * 50_000, "-----BEGIN PRIVATE KEY-----\n" * 500, "\0\n\ud800", "key_" * 40_000 + "=1"],
    ids=range(10),
)  # fmt: skip
def test_hostile_text_ends_in_time(text: str) -> None:
    start = time.monotonic()
    find_secrets(text, ".env")
    assert time.monotonic() - start < 15
