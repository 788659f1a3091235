"""Conversion between GitHub's JSON and our values; pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from regreen.domain.github import (
    CheckRun,
    Comment,
    GitHubServer,
    InlineComment,
    Issue,
    PullRequest,
    Repository,
    ReviewComment,
    ReviewThread,
    WorkflowJob,
    WorkflowRun,
    WorkflowStep,
)

Json = Any

MAX_COMMENT = 65_000
_MAX_SUMMARY = 65_000


def with_marker(marker: str, body: str) -> str:
    """A text within GitHub's limit, with the marker by which it is found again."""
    room = MAX_COMMENT - len(marker) - 2
    cut = (
        body if len(body) <= room else body[: room - 40].rstrip() + "\n\n… cut: too long for GitHub"
    )
    return f"{cut}\n\n{marker}"


def check_body(check: CheckRun, annotations: Sequence[Any]) -> dict[str, Json]:
    """A check run as GitHub's JSON."""
    output: dict[str, Json] = {"title": check.title, "summary": check.summary[:_MAX_SUMMARY]}
    if check.text:
        output["text"] = check.text[:_MAX_SUMMARY]
    if annotations:
        output["annotations"] = [
            {
                "path": a.path,
                "start_line": a.start_line,
                "end_line": a.end_line,
                "annotation_level": a.level,
                "title": a.title[:255],
                "message": a.message[:60_000],
            }
            for a in annotations
        ]
    body: dict[str, Json] = {"name": check.name, "output": output}
    if check.details_url:
        body["details_url"] = check.details_url
    if check.conclusion is None:
        return {**body, "status": "in_progress"}
    actions = [
        {"label": b.label, "description": b.description, "identifier": b.identifier}
        for b in check.buttons
    ]
    return {**body, "status": "completed", "conclusion": check.conclusion, "actions": actions}


def inline_body(comment: InlineComment) -> dict[str, Json]:
    """One comment on lines as GitHub's JSON."""
    body: dict[str, Json] = {
        "path": comment.path,
        "line": comment.line,
        "side": comment.side,
        "body": comment.body[:MAX_COMMENT],
    }
    if comment.start_line < comment.line:
        body |= {"start_line": comment.start_line, "start_side": comment.side}
    return body


def parse_time(text: str) -> datetime:
    """Parse a time."""
    return datetime.fromisoformat(text)


def parse_repository(data: Json, server: GitHubServer) -> Repository:
    """Parse a repository."""
    return Repository(
        full_name=data["full_name"],
        id=data["id"],
        default_branch=data.get("default_branch") or "main",
        clone_url=server.clone_url(data["full_name"]),
        private=bool(data.get("private")),
        archived=bool(data.get("archived")),
        html_url=data["html_url"],
    )


def parse_pull(data: Json) -> PullRequest:
    """Parse a pull request."""
    head, base = data["head"], data["base"]
    author = data.get("user") or {"login": "ghost"}
    head_repo = (head.get("repo") or {}).get("id")
    return PullRequest(
        number=data["number"],
        title=data["title"],
        body=data.get("body") or "",
        state=data["state"],
        draft=bool(data.get("draft")),
        merged=bool(data.get("merged_at")),
        author=author["login"],
        author_is_bot=author.get("type") == "Bot",
        head_sha=head["sha"],
        head_ref=head["ref"],
        base_sha=base["sha"],
        base_ref=base["ref"],
        fork=head_repo is None or head_repo != base["repo"]["id"],
        html_url=data.get("html_url", ""),
    )


def parse_comment(data: Json) -> Comment:
    """Parse a comment."""
    author = (data.get("user") or {}).get("login", "ghost")
    return Comment(data["id"], data.get("body") or "", author, data.get("html_url", ""))


def parse_review_comment(data: Json, *, ours: bool, reactions: Sequence[Json]) -> ReviewComment:
    """Parse a comment on a line, with the people behind its thumbs."""
    user = data.get("user") or {}

    def thumbs(content: str) -> tuple[str, ...]:
        people = (r.get("user") or {} for r in reactions if r["content"] == content)
        return tuple(p["login"] for p in people if p.get("type") == "User")

    return ReviewComment(
        id=data["id"],
        body=data.get("body") or "",
        author=user.get("login", "ghost"),
        by_bot=user.get("type") != "User",
        ours=ours,
        reply_to=data.get("in_reply_to_id"),
        up=thumbs("+1"),
        down=thumbs("-1"),
        path=data.get("path") or "",
        line=data.get("line"),
        hunk=data.get("diff_hunk") or "",
    )


def parse_thread(node: Json) -> ReviewThread:
    """Parse a review thread of GraphQL."""
    comments = tuple(
        Comment(c["databaseId"], c["body"], (c.get("author") or {}).get("login", ""), c["url"])
        for c in node["comments"]["nodes"]
    )
    return ReviewThread(node["id"], bool(node["isResolved"]), comments)


def parse_workflow_run(data: Json) -> WorkflowRun:
    """Parse a workflow run."""
    return WorkflowRun(
        id=data["id"],
        name=data.get("name") or "",
        path=str(data.get("path") or "").partition("@")[0],
        event=data["event"],
        head_sha=data["head_sha"],
        head_branch=data.get("head_branch") or "",
        conclusion=data.get("conclusion"),
        attempt=data.get("run_attempt") or 1,
        html_url=data.get("html_url", ""),
        fork=(data.get("head_repository") or {}).get("id") != data["repository"]["id"],
    )


def parse_workflow_job(data: Json) -> WorkflowJob:
    """Parse a job of a workflow run."""
    steps = tuple(
        WorkflowStep(s["number"], s["name"], s.get("conclusion")) for s in data.get("steps") or ()
    )
    url = data.get("html_url") or ""
    return WorkflowJob(data["id"], data["name"], data.get("conclusion"), steps, url)


def parse_issue(data: Json) -> Issue:
    """Parse an issue."""
    return Issue(
        data["number"],
        data["title"],
        data.get("body") or "",
        data["state"],
        data.get("html_url", ""),
    )
