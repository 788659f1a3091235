"""Installation tokens: each is asked for once, and nobody waits for somebody else's."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from github import Auth

from regreen.adapters.clock import SystemClock
from regreen.adapters.github.requester import GitHubRequester
from regreen.adapters.github.tokens import InstallationTokens
from regreen.domain.github import READ_SCOPE


class _GitHub(GitHubRequester):
    """Answers for "acme/slow" when it is told to."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9", lambda: Auth.Token("x"))
        self.asked: list[str] = []
        self.is_asked, self.may_answer = threading.Event(), threading.Event()

    def post(self, path: str, body: Any) -> Any:
        (repo,) = body["repositories"]
        self.asked.append(repo)
        if repo == "slow":
            self.is_asked.set()
            assert self.may_answer.wait(20)
        return {"token": f"{path} {repo}", "expires_at": "2999-01-01T00:00:00+00:00"}


def test_nobody_waits_for_a_token_of_another_repository() -> None:
    github = _GitHub()
    tokens = InstallationTokens(github, SystemClock())
    with ThreadPoolExecutor(3) as pool:
        slow = [pool.submit(tokens.get_token, 1, "acme/slow", READ_SCOPE) for _ in range(2)]
        assert github.is_asked.wait(20)
        quick = pool.submit(tokens.get_token, 1, "acme/quick", READ_SCOPE)
        try:
            assert quick.result(10).token.endswith("quick")
        finally:
            github.may_answer.set()
        assert slow[0].result(20) is slow[1].result(20)
    assert sorted(github.asked) == ["quick", "slow"], "and each is asked for once"
