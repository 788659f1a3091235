"""GitHub over its REST and GraphQL interfaces; satisfies `forge.GitHub` and `forge.App`."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import cast
from urllib.parse import quote

import requests
from github import Auth

from regreen.adapters.github_shapes import (
    MAX_COMMENT,
    check_body,
    comment_of,
    inline_body,
    issue_of,
    job_of,
    pull_of,
    remark_of,
    repository_of,
    run_of,
    thread_of,
    time_of,
    with_marker,
)
from regreen.adapters.github_tokens import Tokens
from regreen.adapters.github_watch import Watch
from regreen.adapters.github_wire import Json, Wire
from regreen.adapters.pace import Pace, Turn
from regreen.adapters.seen import Seen
from regreen.adapters.written import Written, Wrote
from regreen.codebase.redaction import Clean, redact
from regreen.errors import OutsideError
from regreen.forge import (
    PERMISSIONS,
    RESOLVE,
    CheckRun,
    Comment,
    FailedDelivery,
    Gone,
    InlineComment,
    Installation,
    Issue,
    Permission,
    Pull,
    Reaction,
    Refused,
    Remark,
    Repository,
    Scope,
    Thread,
    WorkflowJob,
    WorkflowRun,
)
from regreen.ports import Clock

_ANNOTATIONS_A_CALL = 50
_DELIVERY_PAGES = 300  # a day away of an App with thirty thousand deliveries

_THREADS = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviewThreads(first: 50, after: $after) {
      pageInfo { hasNextPage endCursor }
      nodes { id isResolved comments(first: 20) { nodes { databaseId body url author { login } } } }
  } } } }
"""
_RESOLVE = "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { id } } }"


class GitHubApp:
    """The App, with its private key."""

    def __init__(
        self,
        *,
        app_id: int,
        private_key: str,
        api_url: str,
        clock: Clock,
        turn: Turn,
        watch: Watch | None = None,
        clean: Clean = redact,
    ) -> None:
        jwt = Auth.AppAuth(app_id, private_key)
        self._api_url = api_url
        self._watch = watch or Watch()
        self._wire = Wire(api_url, lambda: jwt, watch=self._watch)
        self._tokens = Tokens(self._wire, clock)
        self._clock = clock
        self._turn = turn
        self._clean = clean
        self._written = Written()
        self._seen = Seen()

    @cached_property
    def slug(self) -> str:
        """The App's name in URLs; it writes as `SLUG[bot]`."""
        return str(self._wire.get("/app")["slug"])

    def github(self, repo: str, installation: int, scope: Scope) -> RepositoryClient:
        """A client for one repository whose token can do no more than `scope`."""
        owner = f"installation/{installation}"
        return RepositoryClient(
            repo=repo,
            login=f"{self.slug}[bot]",
            api_url=self._api_url,
            auth=lambda: self._tokens.token(installation, repo, scope),
            resolving=lambda: self._tokens.token(installation, repo, RESOLVE),
            pace=Pace(self._clock, self._turn, owner),
            watch=self._watch.of(owner),
            written=self._written,
            seen=self._seen,
            clean=self._clean,
            forget=self._tokens.forget,
        )

    def installation_of(self, repo: str) -> int:
        """The installation that covers a repository."""
        return int(self._wire.get(f"/repos/{repo}/installation")["id"])

    def repositories(self, installation: int) -> list[Repository]:
        """The repositories that an installation covers."""
        body: dict[str, Json] = {"permissions": {"metadata": "read"}}
        answer = self._wire.post(f"/app/installations/{installation}/access_tokens", body)
        auth = Auth.Token(answer["token"])
        wire = Wire(
            self._api_url, lambda: auth, watch=self._watch.of(f"installation/{installation}")
        )
        return [repository_of(r) for r in wire.pages("/installation/repositories", "repositories")]

    def installations(self) -> list[Installation]:
        """Every installation."""
        return [
            Installation(
                i["id"], (i.get("account") or {}).get("login", ""), bool(i.get("suspended_at"))
            )
            for i in self._wire.pages("/app/installations")
        ]

    def failed_deliveries(self, since: datetime) -> list[FailedDelivery]:
        """Deliveries that failed and have not succeeded since, oldest first."""
        arrived: set[str] = set()
        failed: dict[str, FailedDelivery] = {}
        tries = Counter[str]()
        for item in self._wire.cursor_pages("/app/hook/deliveries", _DELIVERY_PAGES):
            at, guid, status = time_of(item["delivered_at"]), item["guid"], int(item["status_code"])
            if at < since:
                break
            tries[guid] += 1
            if 200 <= status < 300:
                arrived.add(guid)
            elif guid not in failed:  # the newest comes first
                failed[guid] = FailedDelivery(item["id"], guid, item["event"], at, status, 1)
        missed = (replace(d, tries=tries[g]) for g, d in failed.items() if g not in arrived)
        return sorted(missed, key=lambda d: d.at)

    def redeliver(self, delivery: FailedDelivery) -> None:
        """Ask GitHub to deliver once more."""
        self._wire.post(f"/app/hook/deliveries/{delivery.id}/attempts", {})


class RepositoryClient:
    """One repository, with a token for it alone."""

    def __init__(
        self,
        *,
        repo: str,
        login: str,
        api_url: str,
        auth: Callable[[], Auth.Token],
        resolving: Callable[[], Auth.Token],
        pace: Pace,
        written: Written,
        seen: Seen,
        watch: Watch,
        clean: Clean,
        forget: Callable[[Auth.Auth], None],
    ) -> None:
        self.repo = repo
        self._login = login
        self._auth = auth
        self._wire = Wire(api_url, auth, pace, seen, watch, clean=clean, forget=forget)
        self._resolving = Wire(api_url, resolving, pace, watch=watch, clean=clean, forget=forget)
        self._written = written
        self._at = f"/repos/{repo}"

    def token(self) -> str:
        """The installation token, for git over HTTPS only."""
        return self._auth().token

    # Reading

    def repository(self) -> Repository:
        """The repository, under its present name."""
        return repository_of(self._wire.get(self._at))

    def pull(self, number: int) -> Pull:
        """A pull request."""
        return pull_of(self._wire.get(f"{self._at}/pulls/{number}"))

    def pulls(self, *, head: str | None = None, head_sha: str | None = None) -> list[Pull]:
        """Open pull requests, of one head branch of this repository, or with one head commit."""
        if head_sha is not None:
            found = self._wire.pages(f"{self._at}/commits/{head_sha}/pulls")
            # this list leaves out what `pulls` has, so the numbers are looked up
            numbers = [p["number"] for p in found if p["state"] == "open"]
            return [p for p in map(self.pull, numbers) if p.head_sha == head_sha]
        owner = self.repo.partition("/")[0]
        wanted = f"{owner}:{head}" if head else None
        found = self._wire.pages(f"{self._at}/pulls", state="open", head=wanted)
        return [pull_of(p) for p in found]

    def file(self, path: str, ref: str) -> bytes | None:
        """A file's bytes at a ref; None where there is none."""
        try:
            data = self._wire.get(f"{self._at}/contents/{quote(path)}", ref=ref)
        except Gone:
            return None
        if not isinstance(data, dict) or data.get("type") != "file":
            return None
        return base64.b64decode(data.get("content") or "")

    def permission(self, login: str) -> Permission:
        """What somebody may do in the repository."""
        try:
            data = self._wire.get(f"{self._at}/collaborators/{quote(login, safe='')}/permission")
        except Gone:
            return "none"
        role = data.get("role_name") or data.get("permission")
        # a custom role is only known by the base it extends
        name = role if role in PERMISSIONS else data.get("permission")
        return cast("Permission", name) if name in PERMISSIONS else "none"

    def threads(self, number: int) -> list[Thread]:
        """The review threads of a pull request."""
        return list(self._threads(number))

    def _threads(self, number: int) -> Iterator[Thread]:
        owner, _, name = self.repo.partition("/")
        after = None
        while True:
            variables = {"owner": owner, "name": name, "number": number, "after": after}
            data = self._wire.graphql(_THREADS, variables)
            found = data["repository"]["pullRequest"]["reviewThreads"]
            yield from (thread_of(node) for node in found["nodes"])
            if not found["pageInfo"]["hasNextPage"]:
                return
            after = found["pageInfo"]["endCursor"]

    def remarks(self, number: int) -> list[Remark]:
        """Every comment on the lines of a pull request; thumbs are read on our own."""
        return [
            self._remark(item) for item in self._wire.pages(f"{self._at}/pulls/{number}/comments")
        ]

    def _remark(self, item: Json) -> Remark:
        ours = self._is_ours(item, "")
        counts = item.get("reactions") or {}
        asked = ours and (counts.get("+1") or counts.get("-1"))
        path = f"{self._at}/pulls/comments/{item['id']}/reactions"
        return remark_of(item, ours=ours, reactions=list(self._wire.pages(path)) if asked else [])

    def workflow_run(self, run_id: int) -> WorkflowRun:
        """One run of a workflow."""
        return run_of(self._wire.get(f"{self._at}/actions/runs/{run_id}"))

    def jobs(self, run_id: int) -> list[WorkflowJob]:
        """The jobs of a run's latest attempt."""
        path = f"{self._at}/actions/runs/{run_id}/jobs"
        return [job_of(job) for job in self._wire.pages(path, "jobs", filter="latest")]

    def job_log(self, job_id: int, limit: int = 16 * 1024 * 1024) -> bytes:
        """A job's log, its last `limit` bytes."""
        where = self._wire.location(f"{self._at}/actions/jobs/{job_id}/logs")
        # GitHub's redirect carries its own signature: our token stays out of it
        kept = bytearray()
        try:
            with requests.get(where, stream=True, timeout=30) as answer:
                answer.raise_for_status()
                for chunk in answer.iter_content(64 * 1024):
                    kept += chunk
                    if len(kept) > 2 * limit:
                        del kept[:-limit]
        except requests.RequestException as error:
            msg = f"the log of job {job_id} cannot be fetched ({type(error).__name__})"
            raise OutsideError(msg) from error
        return bytes(kept[-limit:])

    def runs(self, branch: str, path: str | None = None, limit: int = 50) -> list[WorkflowRun]:
        """The completed workflow runs of a branch, newest first."""
        data = self._wire.get(
            f"{self._at}/actions/runs", branch=branch, status="completed", per_page=min(limit, 100)
        )
        runs = [run_of(r) for r in data["workflow_runs"]]
        return [r for r in runs if path is None or r.path == path]

    def find_issue(self, marker: str) -> Issue | None:
        """The open issue that carries `marker`."""
        found = self._wire.pages(f"{self._at}/issues", state="open", creator=self._login)
        for item in found:
            if "pull_request" not in item and self._is_ours(item, marker):
                return issue_of(item)
        return None

    def issue_text(self, number: int) -> Issue:
        """An issue, or a pull request as an issue."""
        return issue_of(self._wire.get(f"{self._at}/issues/{number}"))

    # Writing; each finds what it wrote before, so that doing it twice does it once

    def comment(self, number: int, marker: str, body: str) -> Comment:
        """Write the comment that carries `marker`, or edit it where it is there."""
        lists = f"{self._at}/issues/{number}/comments"
        return self._say(marker, body, lists, f"{self._at}/issues/comments", lists)

    def reply(self, number: int, comment_id: int, marker: str, body: str) -> Comment:
        """Answer in a review thread, or edit the answer that carries `marker`."""
        lists = f"{self._at}/pulls/{number}/comments"
        return self._say(
            marker, body, lists, f"{self._at}/pulls/comments", f"{lists}/{comment_id}/replies"
        )

    def _say(self, marker: str, body: str, lists: str, edits: str, posts: str) -> Comment:
        """Write or edit the text with `marker`: where texts are listed, edited and posted."""
        text = with_marker(marker, body)
        known = self._written.get(lists, marker)
        if known is not None:
            try:
                return comment_of(self._wire.patch(f"{edits}/{known.id}", {"body": text}))
            except Gone:
                self._written.forget(lists, marker)  # somebody deleted it
        there = next((i for i in self._wire.pages(lists) if self._is_ours(i, marker)), None)
        if there is None:
            said = comment_of(self._wire.post(posts, {"body": text}))
        elif there["body"] == text:
            said = comment_of(there)
        else:
            said = comment_of(self._wire.patch(f"{edits}/{there['id']}", {"body": text}))
        self._written.put(Wrote(said.id), lists, marker)
        return said

    def react(self, comment_id: int, reaction: Reaction, *, review: bool) -> None:
        """Put a reaction on a comment; the same one twice counts once on GitHub's side."""
        kind = "pulls" if review else "issues"
        path = f"{self._at}/{kind}/comments/{comment_id}/reactions"
        self._wire.post(path, {"content": reaction})

    def check_run(self, check: CheckRun) -> int:
        """Make the check run with `external_id`, or bring it up to date; its id."""
        key = (f"{self._at}/check-runs/{check.head_sha}", check.external_id)
        known = self._written.get(*key) or self._find_check(check)
        done = int(known.so_far) if known else 0
        pieces = [
            check.annotations[i : i + _ANNOTATIONS_A_CALL]
            for i in range(done, len(check.annotations), _ANNOTATIONS_A_CALL)
        ]
        for piece in pieces or [()]:
            body = check_body(check, piece)
            if known:
                self._wire.patch(f"{self._at}/check-runs/{known.id}", body)
            else:
                body |= {"head_sha": check.head_sha, "external_id": check.external_id}
                known = Wrote(int(self._wire.post(f"{self._at}/check-runs", body)["id"]), "0")
            known = Wrote(known.id, str(int(known.so_far) + len(piece)))
            self._written.put(known, *key)
        assert known is not None  # noqa: S101 - there is one piece at least
        return known.id

    def _find_check(self, check: CheckRun) -> Wrote | None:
        path = f"{self._at}/commits/{check.head_sha}/check-runs"
        for run in self._wire.pages(path, "check_runs", check_name=check.name, filter="all"):
            if run.get("external_id") == check.external_id:
                return Wrote(int(run["id"]), str(run["output"].get("annotations_count") or 0))
        return None

    def review(
        self, number: int, head_sha: str, marker: str, body: str, comments: Sequence[InlineComment]
    ) -> None:
        """Post one review pinned to `head_sha`, unless one with `marker` is there."""
        path = f"{self._at}/pulls/{number}/reviews"
        if self._written.get(path, marker) is not None:
            return
        if any(self._is_ours(item, marker) for item in self._wire.pages(path)):
            return
        made = self._wire.post(
            path,
            {
                "commit_id": head_sha,
                "event": "COMMENT",
                "body": with_marker(marker, body),
                "comments": [inline_body(comment) for comment in comments],
            },
        )
        self._written.put(Wrote(int(made["id"])), path, marker)

    def resolve(self, thread_id: str) -> None:
        """Resolve a review thread."""
        self._resolving.graphql(_RESOLVE, {"id": thread_id})

    def open_pull(self, *, head: str, base: str, title: str, body: str, draft: bool = True) -> Pull:
        """Open a pull request from a branch of this repository, or bring the open one up to date."""
        text = {"title": title[:250], "body": body[:MAX_COMMENT]}
        there = self.pulls(head=head)
        if there:
            return pull_of(self._wire.patch(f"{self._at}/pulls/{there[0].number}", text))
        new = {**text, "head": head, "base": base, "draft": draft}
        try:
            return pull_of(self._wire.post(f"{self._at}/pulls", new))
        except Refused as error:
            if "already exists" in str(error):
                msg = f"GitHub's list does not show the pull request from {head} yet"
                raise OutsideError(msg, retry_after=5) from error
            # free plans have no drafts in private repositories
            if draft and "draft" in str(error).lower():
                return pull_of(self._wire.post(f"{self._at}/pulls", new | {"draft": False}))
            raise

    def delete_branch(self, branch: str, sha: str) -> bool:
        """Delete a branch if it still stands at `sha`; whether it was there."""
        name = f"heads/{quote(branch)}"
        try:
            if self._wire.get(f"{self._at}/git/ref/{name}")["object"]["sha"] != sha:
                return False
            self._wire.delete(f"{self._at}/git/refs/{name}")
        except (Gone, Refused):  # 422: it is gone meanwhile
            return False
        return True

    def close_pull(self, number: int) -> None:
        """Close a pull request."""
        self._wire.patch(f"{self._at}/pulls/{number}", {"state": "closed"})

    def issue(self, marker: str, title: str, body: str, labels: Sequence[str] = ()) -> Issue:
        """Open the issue that carries `marker`, or edit the open one that does."""
        text = {"title": title[:250], "body": with_marker(marker, body)}
        place = f"{self._at}/issues"
        there = self.find_issue(marker)
        known = self._written.get(place, marker)
        if there is None and known is not None:
            there = self.issue_text(known.id)
        if there is not None and there.state == "open":
            return issue_of(self._wire.patch(f"{place}/{there.number}", text))
        made = issue_of(self._wire.post(place, {**text, "labels": list(labels)}))
        self._written.put(Wrote(made.number), place, marker)
        return made

    def close_issue(self, number: int) -> None:
        """Close an issue."""
        done = {"state": "closed", "state_reason": "completed"}
        self._wire.patch(f"{self._at}/issues/{number}", done)

    def upload_sarif(self, commit: str, ref: str, sarif: str) -> None:
        """Hand a SARIF document (gzip, base64) to code scanning."""
        body = {"commit_sha": commit, "ref": ref, "sarif": sarif, "tool_name": "regreen"}
        self._wire.post(f"{self._at}/code-scanning/sarifs", body)

    def _is_ours(self, item: Json, marker: str) -> bool:
        """A stranger who copies our marker must not be taken for us."""
        author = (item.get("user") or {}).get("login", "")
        return author == self._login and marker in (item.get("body") or "")
