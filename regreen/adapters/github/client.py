"""GitHub over its REST and GraphQL interfaces; satisfies `domain.github.GitHub` and `domain.github.App`."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, cached_property
from typing import Any, cast
from urllib.parse import quote

import requests
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from github import Auth

from regreen.adapters.clock import SystemClock
from regreen.adapters.github.rate_limits import TakeTurn, WritePacer
from regreen.adapters.github.requester import (
    CallMonitor,
    EtagCache,
    GitHubRequester,
    Json,
    WriteCache,
    WriteRecord,
)
from regreen.adapters.github.tokens import InstallationTokens
from regreen.domain.errors import OutsideError
from regreen.domain.github import (
    PERMISSION_LEVELS,
    RESOLVE_SCOPE,
    CheckRun,
    Comment,
    FailedDelivery,
    FileComment,
    GitHubServer,
    InlineComment,
    Installation,
    Issue,
    NotFound,
    Permission,
    PullRequest,
    Reaction,
    Repository,
    ReviewComment,
    ReviewThread,
    RewriteReview,
    TokenScope,
    TreeChange,
    ValidationFailed,
    WorkflowJob,
    WorkflowRun,
    WorkflowStep,
)
from regreen.domain.ports import Clock
from regreen.secrets.redaction import CleanText, redact_secrets

# Conversion between GitHub's JSON and our values; pure.

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
    if check.started:
        body["started_at"] = f"{check.started.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
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


_MAX_ANNOTATIONS_PER_CALL = 50
_NO_COMMIT = "0" * 40
_DELIVERY_PAGES = 300  # a day away of an App with thirty thousand deliveries

_THREADS_QUERY = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviewThreads(first: 50, after: $after) {
      pageInfo { hasNextPage endCursor }
      nodes { id isResolved comments(first: 20) { nodes { databaseId body url author { login } } } }
  } } } }
"""
_RESOLVE_MUTATION = (
    "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { id } } }"
)
_REOPEN_MUTATION = _RESOLVE_MUTATION.replace("resolveReviewThread", "unresolveReviewThread")
_UPDATE_REFS_MUTATION = """
mutation($repository: ID!, $updates: [RefUpdate!]!) {
  updateRefs(input: {repositoryId: $repository, refUpdates: $updates}) { clientMutationId }
}
"""


@cache
def _load_key(pem: str) -> Any:
    """The key of a PEM text. Reading one takes twenty times as long as signing with it."""
    return load_pem_private_key(pem.encode(), password=None)


class GitHubApp:
    """The App, with its private key."""

    def __init__(
        self,
        *,
        app_id: int,
        private_key: str,
        api_url: str,
        clock: Clock,
        turn: TakeTurn,
        watch: CallMonitor | None = None,
        clean: CleanText = redact_secrets,
    ) -> None:
        jwt = Auth.AppAuth(app_id, lambda: _load_key(private_key))
        self._api_url = api_url
        self._watch = watch or CallMonitor()
        self._wire = GitHubRequester(api_url, lambda: jwt, watch=self._watch)
        self._tokens = InstallationTokens(self._wire, clock)
        self._clock = clock
        self._turn = turn
        self._clean = clean
        self._written = WriteCache()
        self._seen = EtagCache()

    @cached_property
    def slug(self) -> str:
        """The App's name in URLs; it writes as `SLUG[bot]`."""
        return str(self._wire.get("/app")["slug"])

    def github(self, repo: str, installation: int, scope: TokenScope) -> RepositoryClient:
        """A client for one repository with a token limited to `scope`."""
        owner = f"installation/{installation}"
        return RepositoryClient(
            repo=repo,
            login=f"{self.slug}[bot]",
            api_url=self._api_url,
            auth=lambda: self._tokens.get_token(installation, repo, scope),
            resolving=lambda: self._tokens.get_token(installation, repo, RESOLVE_SCOPE),
            pace=WritePacer(self._clock, self._turn, owner),
            watch=self._watch.for_owner(owner),
            written=self._written,
            etags=self._seen,
            clean=self._clean,
            forget=self._tokens.forget_token,
        )

    def installation_of(self, repo: str) -> int:
        """The installation that covers a repository."""
        return int(self._wire.get(f"/repos/{repo}/installation")["id"])

    def repositories(self, installation: int) -> list[Repository]:
        """The repositories that an installation covers."""
        body: dict[str, Json] = {"permissions": {"metadata": "read"}}
        answer = self._wire.post(f"/app/installations/{installation}/access_tokens", body)
        auth = Auth.Token(answer["token"])
        wire = GitHubRequester(
            self._api_url, lambda: auth, watch=self._watch.for_owner(f"installation/{installation}")
        )
        return [
            parse_repository(r, GitHubServer(self._api_url))
            for r in wire.iterate_items("/installation/repositories", "repositories")
        ]

    def installations(self) -> list[Installation]:
        """Every installation."""
        return [
            Installation(
                i["id"], (i.get("account") or {}).get("login", ""), bool(i.get("suspended_at"))
            )
            for i in self._wire.iterate_items("/app/installations")
        ]

    def failed_deliveries(self, since: datetime) -> list[FailedDelivery]:
        """Deliveries that failed and have not succeeded since, oldest first."""
        arrived: set[str] = set()
        failed: dict[str, FailedDelivery] = {}
        tries = Counter[str]()
        for item in self._wire.iterate_cursor_pages("/app/hook/deliveries", _DELIVERY_PAGES):
            at, guid, status = (
                parse_time(item["delivered_at"]),
                item["guid"],
                int(item["status_code"]),
            )
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
        pace: WritePacer,
        written: WriteCache,
        etags: EtagCache,
        watch: CallMonitor,
        clean: CleanText,
        forget: Callable[[Auth.Auth], None],
    ) -> None:
        self.repo = repo
        self.server = GitHubServer(api_url)
        self._login = login
        self._auth = auth
        self._wire = GitHubRequester(api_url, auth, pace, etags, watch, clean=clean, forget=forget)
        self._resolving = GitHubRequester(
            api_url, resolving, pace, watch=watch, clean=clean, forget=forget
        )
        self._written = written
        self._at = f"/repos/{repo}"

    def token(self) -> str:
        """The installation token, for git over HTTPS only."""
        return self._auth().token

    # Reading

    def repository(self) -> Repository:
        """The repository, under its present name."""
        return parse_repository(self._wire.get(self._at), self.server)

    def pull(self, number: int) -> PullRequest:
        """A pull request."""
        return parse_pull(self._wire.get(f"{self._at}/pulls/{number}"))

    def pulls(self, *, head: str | None = None, head_sha: str | None = None) -> list[PullRequest]:
        """Open pull requests, of one head branch of this repository, or with one head commit."""
        if head_sha is not None:
            items = self._wire.iterate_items(f"{self._at}/commits/{head_sha}/pulls")
            # this list lacks fields that `pulls` has, so each number is read
            numbers = [p["number"] for p in items if p["state"] == "open"]
            return [p for p in map(self.pull, numbers) if p.head_sha == head_sha]
        owner = self.repo.partition("/")[0]
        wanted = f"{owner}:{head}" if head else None
        items = self._wire.iterate_items(f"{self._at}/pulls", state="open", head=wanted)
        return [parse_pull(p) for p in items]

    def find_merged_pull(self, sha: str) -> PullRequest | None:
        """The merged pull request that brought a commit."""
        items = self._wire.iterate_items(f"{self._at}/commits/{sha}/pulls")
        number = next((p["number"] for p in items if p.get("merged_at")), None)
        return self.pull(number) if number is not None else None

    def file(self, path: str, ref: str) -> bytes | None:
        """A file's bytes at a ref; None if it does not exist."""
        try:
            data = self._wire.get(f"{self._at}/contents/{quote(path)}", ref=ref)
        except NotFound:
            return None
        if not isinstance(data, dict) or data.get("type") != "file":
            return None
        return base64.b64decode(data.get("content") or "")

    def permission(self, login: str) -> Permission:
        """A person's permission in the repository."""
        try:
            data = self._wire.get(f"{self._at}/collaborators/{quote(login, safe='')}/permission")
        except NotFound:
            return "none"
        role = data.get("role_name") or data.get("permission")
        # a custom role is only known by its base role
        name = role if role in PERMISSION_LEVELS else data.get("permission")
        return cast("Permission", name) if name in PERMISSION_LEVELS else "none"

    def threads(self, number: int) -> list[ReviewThread]:
        """The review threads of a pull request."""
        return list(self._iterate_threads(number))

    def _iterate_threads(self, number: int) -> Iterator[ReviewThread]:
        owner, _, name = self.repo.partition("/")
        after = None
        while True:
            variables = {"owner": owner, "name": name, "number": number, "after": after}
            data = self._wire.run_graphql(_THREADS_QUERY, variables)
            threads = data["repository"]["pullRequest"]["reviewThreads"]
            yield from (parse_thread(node) for node in threads["nodes"])
            if not threads["pageInfo"]["hasNextPage"]:
                return
            after = threads["pageInfo"]["endCursor"]

    def review_comments(self, number: int) -> list[ReviewComment]:
        """Every comment on the lines of a pull request; thumbs are only read for our own."""
        return [
            self._parse_review_comment(item)
            for item in self._wire.iterate_items(f"{self._at}/pulls/{number}/comments")
        ]

    def _parse_review_comment(self, item: Json) -> ReviewComment:
        ours = self._is_ours(item, "")
        counts = item.get("reactions") or {}
        has_thumbs = ours and (counts.get("+1") or counts.get("-1"))
        path = f"{self._at}/pulls/comments/{item['id']}/reactions"
        return parse_review_comment(
            item, ours=ours, reactions=list(self._wire.iterate_items(path)) if has_thumbs else []
        )

    def workflow_run(self, run_id: int) -> WorkflowRun:
        """One run of a workflow."""
        return parse_workflow_run(self._wire.get(f"{self._at}/actions/runs/{run_id}"))

    def jobs(self, run_id: int) -> list[WorkflowJob]:
        """The jobs of a run's latest attempt."""
        path = f"{self._at}/actions/runs/{run_id}/jobs"
        return [
            parse_workflow_job(job)
            for job in self._wire.iterate_items(path, "jobs", filter="latest")
        ]

    def job_log(self, job_id: int, limit: int = 16 * 1024 * 1024) -> bytes:
        """A job's log, its last `limit` bytes."""
        where = self._wire.find_redirect(f"{self._at}/actions/jobs/{job_id}/logs")
        # GitHub's redirect carries its own signature, so our token is not sent
        tail = bytearray()
        try:
            with requests.get(where, stream=True, timeout=30) as answer:
                answer.raise_for_status()
                for chunk in answer.iter_content(64 * 1024):
                    tail += chunk
                    if len(tail) > 2 * limit:
                        del tail[:-limit]
        except requests.RequestException as error:
            msg = f"the log of job {job_id} cannot be fetched ({type(error).__name__})"
            raise OutsideError(msg) from error
        return bytes(tail[-limit:])

    def runs(
        self, branch: str, path: str | None = None, limit: int = 50, *, finished: bool = True
    ) -> list[WorkflowRun]:
        """The workflow runs of a branch, newest first; those that are not completed on request only."""
        status = {"status": "completed"} if finished else {}
        data = self._wire.get(
            f"{self._at}/actions/runs", branch=branch, per_page=min(limit, 100), **status
        )
        runs = [parse_workflow_run(r) for r in data["workflow_runs"]]
        return [r for r in runs if path is None or r.path == path]

    def rerun_failed_jobs(self, run_id: int) -> None:
        """Run the failed jobs of a completed workflow run once more."""
        self._wire.post(f"{self._at}/actions/runs/{run_id}/rerun-failed-jobs", {})

    def find_issue(self, marker: str) -> Issue | None:
        """The open issue that carries `marker`."""
        items = self._wire.iterate_items(f"{self._at}/issues", state="open", creator=self._login)
        for item in items:
            if "pull_request" not in item and self._is_ours(item, marker):
                return parse_issue(item)
        return None

    def issue_text(self, number: int) -> Issue:
        """An issue, or a pull request as an issue."""
        return parse_issue(self._wire.get(f"{self._at}/issues/{number}"))

    # Writing; each method finds an earlier write, so that a repetition writes nothing new

    def post_comment(self, number: int, marker: str, body: str) -> Comment:
        """Write the comment that carries `marker`, or edit it if it exists."""
        lists = f"{self._at}/issues/{number}/comments"
        return self._write_comment(marker, body, lists, f"{self._at}/issues/comments", lists)

    def reply(self, number: int, comment_id: int, marker: str, body: str) -> Comment:
        """Answer in a review thread, or edit the answer that carries `marker`."""
        lists = f"{self._at}/pulls/{number}/comments"
        return self._write_comment(
            marker, body, lists, f"{self._at}/pulls/comments", f"{lists}/{comment_id}/replies"
        )

    def _write_comment(self, marker: str, body: str, lists: str, edits: str, posts: str) -> Comment:
        """Write or edit the text with `marker`, given the addresses for listing, editing and posting."""
        text = with_marker(marker, body)
        known = self._written.get(lists, marker)
        if known is not None:
            try:
                return parse_comment(self._wire.patch(f"{edits}/{known.id}", {"body": text}))
            except NotFound:
                self._written.forget(lists, marker)  # somebody deleted it
        existing = next(
            (i for i in self._wire.iterate_items(lists) if self._is_ours(i, marker)), None
        )
        if existing is None:
            comment = parse_comment(self._wire.post(posts, {"body": text}))
        elif existing["body"] == text:
            comment = parse_comment(existing)
        else:
            comment = parse_comment(self._wire.patch(f"{edits}/{existing['id']}", {"body": text}))
        self._written.put(WriteRecord(comment.id), lists, marker)
        return comment

    def react(self, comment_id: int, reaction: Reaction, *, review: bool) -> None:
        """Put a reaction on a comment; GitHub counts a repeated one once."""
        kind = "pulls" if review else "issues"
        path = f"{self._at}/{kind}/comments/{comment_id}/reactions"
        self._wire.post(path, {"content": reaction})

    def post_check_run(self, check: CheckRun) -> int:
        """Create or update the check run with `external_id`; return its id."""
        key = (f"{self._at}/check-runs/{check.head_sha}", check.external_id)
        known = self._written.get(*key) or self._find_check(check)
        done = int(known.so_far) if known else 0
        pieces = [
            check.annotations[i : i + _MAX_ANNOTATIONS_PER_CALL]
            for i in range(done, len(check.annotations), _MAX_ANNOTATIONS_PER_CALL)
        ]
        for piece in pieces or [()]:
            body = check_body(check, piece)
            if known:
                self._wire.patch(f"{self._at}/check-runs/{known.id}", body)
            else:
                body |= {"head_sha": check.head_sha, "external_id": check.external_id}
                known = WriteRecord(int(self._wire.post(f"{self._at}/check-runs", body)["id"]), "0")
            known = WriteRecord(known.id, str(int(known.so_far) + len(piece)))
            self._written.put(known, *key)
        assert known is not None  # noqa: S101 - there is one piece at least
        return known.id

    def _find_check(self, check: CheckRun) -> WriteRecord | None:
        path = f"{self._at}/commits/{check.head_sha}/check-runs"
        for run in self._wire.iterate_items(
            path, "check_runs", check_name=check.name, filter="all"
        ):
            if run.get("external_id") == check.external_id:
                return WriteRecord(int(run["id"]), str(run["output"].get("annotations_count") or 0))
        return None

    def post_review(
        self, number: int, head_sha: str, marker: str, body: str, comments: Sequence[InlineComment]
    ) -> bool:
        """Post one review pinned to `head_sha`, unless one with `marker` exists; return whether it was posted."""
        path = f"{self._at}/pulls/{number}/reviews"
        if self._written.get(path, marker) is not None:
            return False
        if any(self._is_ours(item, marker) for item in self._wire.iterate_items(path)):
            return False
        review = self._wire.post(
            path,
            {
                "commit_id": head_sha,
                "event": "COMMENT",
                "body": with_marker(marker, body),
                "comments": [inline_body(comment) for comment in comments],
            },
        )
        self._written.put(WriteRecord(int(review["id"])), path, marker)
        return True

    def rewrite_reviews(self, number: int, rewrite: RewriteReview) -> None:
        """Replace the text of each of our reviews; see `GitHub`.

        https://docs.github.com/rest/pulls/reviews#update-a-review-for-a-pull-request
        """
        path = f"{self._at}/pulls/{number}/reviews"
        ours = []
        for item in self._wire.iterate_items(path):
            body, _, marker = (item.get("body") or "").rstrip().rpartition("\n\n")
            if self._is_ours(item, marker):
                ours.append((item, marker, body))
        urls = {marker: item.get("html_url") or "" for item, marker, _ in ours}
        for item, marker, body in ours:
            if (text := rewrite(marker, body, urls)) != body:
                self._wire.put(f"{path}/{item['id']}", {"body": with_marker(marker, text)})

    def post_file_comment(self, number: int, head_sha: str, comment: FileComment) -> bool:
        """Begin a thread on a file, unless one with the comment's marker exists; return whether it was posted.

        https://docs.github.com/rest/pulls/comments#create-a-review-comment-for-a-pull-request
        """
        path = f"{self._at}/pulls/{number}/comments"
        if self._written.get(path, comment.marker) is not None:
            return False
        if any(self._is_ours(item, comment.marker) for item in self._wire.iterate_items(path)):
            return False
        posted = self._wire.post(
            path,
            {
                "commit_id": head_sha,
                "path": comment.path,
                "subject_type": "file",
                "body": with_marker(comment.marker, comment.body),
            },
        )
        self._written.put(WriteRecord(int(posted["id"])), path, comment.marker)
        return True

    def resolve(self, thread_id: str, *, reopen: bool = False) -> None:
        """Resolve a review thread, or open it again."""
        mutation = _REOPEN_MUTATION if reopen else _RESOLVE_MUTATION
        self._resolving.run_graphql(mutation, {"id": thread_id})

    def create_commit(
        self, parent: str, changes: Sequence[TreeChange], message: str, *, sign_off: bool = False
    ) -> str:
        """Make a commit on `parent`; return its id.

        GitHub signs a commit for which a bot names neither author nor committer:
        https://docs.github.com/authentication/managing-commit-signature-verification/about-commit-signature-verification#signature-verification-for-bots
        """
        base = self._wire.get(f"{self._at}/git/commits/{parent}")["tree"]["sha"]
        entries = [self._make_tree_entry(change) for change in changes]
        tree = self._wire.post(f"{self._at}/git/trees", {"base_tree": base, "tree": entries})
        body = {"message": message, "tree": tree["sha"], "parents": [parent]}
        commit = self._wire.post(f"{self._at}/git/commits", body)
        if sign_off:  # only the answer tells who the author is
            author = commit["author"]
            line = f"Signed-off-by: {author['name']} <{author['email']}>"
            body |= {"message": f"{message.rstrip()}\n\n{line}\n"}
            commit = self._wire.post(f"{self._at}/git/commits", body)
        return str(commit["sha"])

    def _make_tree_entry(self, change: TreeChange) -> Json:
        entry: Json = {"path": change.path, "mode": change.mode, "type": "blob"}
        if change.submodule:
            return entry | {"type": "commit", "sha": change.submodule}
        if change.content is None:
            return entry | {"sha": None}
        try:
            return entry | {"content": change.content.decode("utf-8")}
        except UnicodeDecodeError:
            data = base64.b64encode(change.content).decode()
            blob = self._wire.post(f"{self._at}/git/blobs", {"content": data, "encoding": "base64"})
            return entry | {"sha": blob["sha"]}

    def move_branch(self, branch: str, sha: str, *, expect: str | None) -> None:
        """Create a branch, or move it from `expect` to `sha`, in one step that nobody's push can come between."""
        update = {
            "name": f"refs/heads/{branch}",
            "beforeOid": expect or _NO_COMMIT,
            "afterOid": sha,
        }
        repository = self._wire.get(self._at)["node_id"]
        variables = {"repository": repository, "updates": [update | {"force": True}]}
        self._wire.run_graphql(_UPDATE_REFS_MUTATION, variables)

    def open_pull(
        self, *, head: str, base: str, title: str, body: str, draft: bool = True
    ) -> PullRequest:
        """Open a pull request from a branch of this repository, or update the open one."""
        text = {"title": title[:250], "body": body[:MAX_COMMENT]}
        pulls = self.pulls(head=head)
        if pulls:
            return parse_pull(self._wire.patch(f"{self._at}/pulls/{pulls[0].number}", text))
        new = {**text, "head": head, "base": base, "draft": draft}
        try:
            return parse_pull(self._wire.post(f"{self._at}/pulls", new))
        except ValidationFailed as error:
            if "already exists" in str(error):
                msg = f"GitHub's list does not show the pull request from {head} yet"
                raise OutsideError(msg, retry_after=5) from error
            # free plans have no drafts in private repositories
            if draft and "draft" in str(error).lower():
                return parse_pull(self._wire.post(f"{self._at}/pulls", new | {"draft": False}))
            raise

    def delete_branch(self, branch: str, sha: str) -> bool:
        """Delete a branch if its tip is `sha`; return whether it existed."""
        name = f"heads/{quote(branch)}"
        try:
            if self._wire.get(f"{self._at}/git/ref/{name}")["object"]["sha"] != sha:
                return False
            self._wire.delete(f"{self._at}/git/refs/{name}")
        except (NotFound, ValidationFailed):  # 422: it is gone meanwhile
            return False
        return True

    def close_pull(self, number: int) -> None:
        """Close a pull request."""
        self._wire.patch(f"{self._at}/pulls/{number}", {"state": "closed"})

    def post_issue(self, marker: str, title: str, body: str, labels: Sequence[str] = ()) -> Issue:
        """Open the issue that carries `marker`, or edit the open one that does."""
        text = {"title": title[:250], "body": with_marker(marker, body)}
        place = f"{self._at}/issues"
        existing = self.find_issue(marker)
        known = self._written.get(place, marker)
        if existing is None and known is not None:
            existing = self.issue_text(known.id)
        if existing is not None and existing.state == "open":
            return parse_issue(self._wire.patch(f"{place}/{existing.number}", text))
        issue = parse_issue(self._wire.post(place, {**text, "labels": list(labels)}))
        self._written.put(WriteRecord(issue.number), place, marker)
        return issue

    def close_issue(self, number: int) -> None:
        """Close an issue."""
        done = {"state": "closed", "state_reason": "completed"}
        self._wire.patch(f"{self._at}/issues/{number}", done)

    def upload_sarif(self, commit: str, ref: str, sarif: str) -> None:
        """Hand a SARIF document (gzip, base64) to code scanning."""
        body = {"commit_sha": commit, "ref": ref, "sarif": sarif, "tool_name": "regreen"}
        self._wire.post(f"{self._at}/code-scanning/sarifs", body)

    def _is_ours(self, item: Json, marker: str) -> bool:
        """Whether we wrote it, with the marker at its end: copies by others and quotations do not count."""
        author = (item.get("user") or {}).get("login", "")
        return author == self._login and (item.get("body") or "").rstrip().endswith(marker)


def connect_with_token(repo: str, token: str, *, api_url: str, login: str) -> RepositoryClient:
    """A client for one repository with a token that somebody else made, such as a workflow's.

    Args:
        repo: the full name.
        token: the token.
        api_url: GitHub's address.
        login: who writes with the token; texts of others are not taken for our own.
    """
    auth = Auth.Token(token)
    return RepositoryClient(
        repo=repo,
        login=login,
        api_url=api_url,
        auth=lambda: auth,
        resolving=lambda: auth,
        pace=WritePacer(SystemClock(), lambda *_: 0.0, repo),
        watch=CallMonitor(),
        written=WriteCache(),
        etags=EtagCache(),
        clean=redact_secrets,
        forget=lambda _: None,
    )
