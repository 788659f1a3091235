"""`regreen mcp`, driven by the protocol's own client."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import sysconfig
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, TextContent
from regreen_playground.model import ScriptedModel, Use

from regreen.cli.mcp import CallLimits, CommandRunner
from regreen.domain.errors import UserError
from tests.stories.test_fixes import needs_sandbox
from tests.unit.changes import ENV
from tests.unit.changes import Story as Repository

PATCH = """\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@
 def f(x):
-    return x
+    return x + 1
"""


def with_client(
    folder: Path,
    use: Callable[[ClientSession], Awaitable[None]],
    *options: str,
    python: str = sys.executable,
    env: Mapping[str, str] = ENV,
) -> None:
    """Start the server on a repository with an uncommitted fault, and use it."""
    repo = Repository(folder / "repo")
    repo.change({"a.py": "def f(x):\n    return x\n"}, {"b.py": "x = 1\n"})
    (repo.root / "a.py").write_text("def f(x):\n    return y\n")
    without_key = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC_")}
    server = StdioServerParameters(
        command=python, args=["-m", "regreen", "mcp", "--repo", str(repo.root), *options], env={**without_key, **ENV, **env}
    )  # fmt: skip

    async def talk() -> None:
        async with (
            stdio_client(server) as (reading, writing),
            ClientSession(reading, writing) as client,
        ):
            await client.initialize()
            await use(client)

    asyncio.run(talk())


def read_document(result: CallToolResult) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(read_text(result))
    return document


def read_text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def test_an_agent_reviews_and_judges_through_the_protocol(tmp_path: Path) -> None:
    async def use(client: ClientSession) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == {"review", "fix", "bisect", "gate", "prove"}
        review = read_document(await client.call_tool("review", {}))
        assert [finding["rule"] for finding in review["findings"]] == ["ruff/F821"]
        gate = read_document(await client.call_tool("gate", {"patch": PATCH}))
        assert gate["verdict"] in {"allow", "needs_human", "deny"}

    with_client(tmp_path, use)


async def review_the_fault(client: ClientSession) -> None:
    review = read_document(await client.call_tool("review", {}))
    assert [finding["rule"] for finding in review["findings"]] == ["ruff/F821"]


def test_the_tools_work_where_regreen_is_installed_for_one_user(tmp_path: Path) -> None:
    base = tmp_path / "user"
    site = Path(sysconfig.get_path("purelib", "posix_user", {"userbase": str(base)}))
    site.mkdir(parents=True)
    places = (Path(__file__).parents[2], sysconfig.get_path("purelib"))
    (site / "installed.pth").write_text("".join(f"{place}\n" for place in places))
    python = str(getattr(sys, "_base_executable", sys.executable))
    with_client(tmp_path, review_the_fault, python=python, env={"PYTHONUSERBASE": str(base)})


def test_a_review_uses_the_sandbox_of_the_server(tmp_path: Path) -> None:
    # A setting that any command refuses unless the server's option takes its place.
    settings = {"REGREEN_SANDBOX": "unusable", "REGREEN_HOME": str(tmp_path / "home")}
    with_client(tmp_path, review_the_fault, "--model", "--sandbox", "bwrap", env=settings)


def test_what_an_agent_names_is_never_an_option(tmp_path: Path) -> None:
    async def use(client: ClientSession) -> None:
        outside = tmp_path / "outside"
        for tool, arguments in (
            ("review", {"base": f"--sarif-out={outside}"}),
            ("review", {"head": "no-such-revision"}),
            ("fix", {"command": []}),
            ("fix", {"command": ["true"], "rev": "--apply"}),
            ("gate", {"patch": PATCH, "base": f"--repo={tmp_path}"}),
        ):
            result = await client.call_tool(tool, arguments)
            assert result.isError, (tool, arguments)
            assert "Traceback" not in read_text(result)
        assert not outside.exists()

    with_client(tmp_path, use)


@needs_sandbox
@pytest.mark.sandbox
def test_a_command_of_an_agent_runs_in_the_sandbox(tmp_path: Path) -> None:
    async def use(client: ClientSession) -> None:
        command = ["sh", "-c", f"! test -e {tmp_path}"]
        fix = read_document(await client.call_tool("fix", {"command": command}))
        assert fix["outcome"] == "already_green"

    with_client(tmp_path, use)


def test_the_calls_of_one_server_share_its_minutes(tmp_path: Path) -> None:
    async def use(client: ClientSession) -> None:
        first = await client.call_tool("gate", {"patch": PATCH})
        assert read_document(first)["verdict"]
        for tool, arguments in (("gate", {"patch": PATCH}), ("review", {})):
            result = await client.call_tool(tool, arguments)
            assert result.isError
            assert "minutes for all calls of this server are used up" in read_text(result)

    with_client(tmp_path, use, "--total-minutes", "0.1")


def test_a_server_without_dollars_asks_no_model(tmp_path: Path) -> None:
    async def use(client: ClientSession) -> None:
        review = read_document(await client.call_tool("review", {}))
        assert review["cost"]["usd"] == 0

    with ScriptedModel(lambda _: Use("report", {"about": "Names.", "findings": []})) as endpoint:
        env = {
            "REGREEN_HOME": str(tmp_path / "home"),
            "ANTHROPIC_BASE_URL": endpoint.url,
            "ANTHROPIC_API_KEY": "scripted",
            "REGREEN_MODEL_PRICE": "1,1",
        }
        with_client(tmp_path / "none", use, "--model", "--total-usd", "0", env=env)
        assert endpoint.asked == []


class CostlyRunner(CommandRunner):
    """Takes down the options of each call, whose document says what it cost; a negative cost fails it."""

    def __init__(self, limits: CallLimits, *costs: float) -> None:
        super().__init__(Path(), "auto", limits)
        self.costs, self.asked = list(costs), list[tuple[str, ...]]()

    async def run_process(
        self,
        minutes: float,  # noqa: ARG002 - the signature of what it stands for
        name: str,  # noqa: ARG002
        *options: str,
        stdin: str,  # noqa: ARG002
    ) -> dict[str, Any]:
        self.asked.append(options)
        cost = self.costs.pop(0)
        if cost < 0:
            raise UserError("failed")
        return {"cost": {"usd": cost}}


def test_what_calls_cost_is_taken_from_the_dollars_of_the_server() -> None:
    runner = CostlyRunner(CallLimits(20.0, 600.0, 2.0), 0.25, -1, 0.75, 0.0)

    async def call() -> None:
        await runner.run_command("fix")
        with pytest.raises(UserError):
            await runner.run_command("fix")  # nobody knows what it cost: its whole share is gone
        await runner.run_command("review")
        await runner.run_command("review")

    asyncio.run(call())
    limits = ("--max-minutes", "20.0")
    assert runner.asked == [
        (*limits, "--max-usd", "1.0"),
        (*limits, "--max-usd", "1.0"),
        (*limits, "--max-usd", "0.75"),
        (*limits, "--no-model"),
    ]
