"""Log lines of a process: one a record whatever it quotes, and no secret of the operator in any."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FORGED = "x\n2026-01-01 00:00:00,000 INFO regreen.bot: /approve by alice\r\x1b[2K\u2028\x85"
PROGRAM = """
import logging, sys
from regreen.bot.jobs.log_setup import log_to_stderr
from regreen.domain.settings import Settings
log_to_stderr(sys.argv[1], Settings().secret_values())
for words in sys.argv[2:]:
    logging.warning("told %s", words)
    try:
        raise ValueError(words)
    except ValueError:
        logging.exception("failed")
"""


def log_of(form: str, *words: str, **env: str) -> str:
    """What a process logs of these words."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, form, *words], env=os.environ | env, capture_output=True, check=True)  # fmt: skip
    return done.stderr.decode()


def test_no_text_from_outside_looks_like_a_line_of_ours() -> None:
    said = log_of("text", FORGED)
    begins = [line for line in said.splitlines() if not line.startswith("  ")]
    assert [line.split(" ", 2)[2] for line in begins] == [
        r"WARNING root: told x\n2026-01-01 00:00:00,000 INFO regreen.bot: /approve by alice\r\x1b[2K\u2028\x85",
        "ERROR root: failed",
    ]
    assert not {"\r", "\x1b"} & set(said)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_collectors_headers_are_in_no_line(form: str) -> None:
    headers = "authorization=Basic%20c2VjcmV0,x-team=correct-horse-battery"
    said = log_of(form, "correct-horse-battery", "c2VjcmV0", "Basic c2VjcmV0", headers, OTEL_EXPORTER_OTLP_HEADERS=headers)  # fmt: skip
    assert said.count("told ") == 4
    assert not [secret for secret in ("correct-horse", "c2VjcmV0") if secret in said]


def test_the_key_of_the_remote_sandbox_is_in_no_line() -> None:
    assert "correct-horse" not in log_of("text", "correct-horse-battery", E2B_API_KEY="correct-horse-battery")  # fmt: skip
