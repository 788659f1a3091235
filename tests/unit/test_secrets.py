"""Credentials: found by format, checksum and context; placeholders and hashes left alone; values never shown."""

from __future__ import annotations

import time

import pytest

from regreen.codebase.secret_patterns import find_secrets, mask, redact
from tests.unit.credentials import HARD_NEGATIVES, KINDS, negatives, positives


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


def test_no_finding_carries_the_value() -> None:
    for path, text in positives(seed=3, each=2):
        for secret in find_secrets(text, path):
            words = [word for word in text.replace('"', " ").split() if len(word) > 24]
            assert not any(word in repr(secret) for word in words)


def test_redaction_takes_every_credential_out_of_a_text() -> None:
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"
    log = f"cloning https://bot:{token}@github.com/a/b\nAuthorization: Bearer {token}\nplain words stay"
    clean = redact(log)
    assert token not in clean
    assert "plain words stay" in clean


def test_a_mask_keeps_the_kind_and_nothing_random() -> None:
    assert mask("ghp_abcdefghijklmnop", "GitHub token") == "ghp_…[20 characters]"
    assert mask("hunter2hunter2", "password") == "…[14 characters]"


def test_a_fixture_in_a_test_is_left_alone_but_a_real_token_still_counts_a_little() -> None:
    assert not is_found("tests/test_login.py", 'password = "Tr0ub4dor&3x"')
    found = find_secrets(
        'token = "ghp_aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"', "tests/test_login.py"
    )
    assert found
    assert max(secret.confidence for secret in found) < 0.8


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
