"""Every story's exchanges with GitHub are held against GitHub's own description: that this happens, and is said where it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from werkzeug.test import Client
from werkzeug.wrappers import Response

from tests.outside import CHECKER, is_missing, reason
from tests.stories.conftest import checked, violations


@pytest.mark.skipif(is_missing(CHECKER), reason=reason(CHECKER))
def test_an_answer_that_github_would_not_give_fails_a_story(tmp_path: Path) -> None:
    log = tmp_path / "violations.jsonl"
    wrong = Response(json.dumps({"id": "no number"}), mimetype="application/json")
    client = Client(checked(log)(wrong))
    client.get("/api/v3/repos/acme/shop", headers={"Authorization": "Bearer x"})
    assert {row["call"] for row in violations(log)} == {"GET /api/v3/repos/acme/shop -> 200"}


def test_a_run_without_the_description_says_so() -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("REGREEN_TEST_DATA", "COV", "PYTEST"))}  # fmt: skip
    own = "tests/stories/test_contract_checker.py::test_an_answer_that_github_would_not_give_fails_a_story"
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", own], env=env, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)  # fmt: skip
    assert "1 skipped" in done.stdout
    assert "tools/contract_check.py is missing: REGREEN_TEST_DATA is not set" in done.stdout
    assert "NOT CHECKED: no exchange with GitHub was held against its description" in done.stdout
