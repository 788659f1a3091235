"""Reviews and comments on diffs: what GitHub takes, what it refuses, and the events that follow."""

from __future__ import annotations

from dataclasses import dataclass

from regreen_playground.acts.issues import too_long
from regreen_playground.difflines import FileChange, changes, hunk_up_to
from regreen_playground.events import emit
from regreen_playground.shape import pulls as shape
from regreen_playground.shape.pulls import merge_base
from regreen_playground.things import App, Json, Pull, Review, ReviewComment, Thread, User
from regreen_playground.world import Refused, World

STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}


@dataclass(frozen=True, slots=True)
class Draft:
    """A comment as it was sent, not yet checked against the diff."""

    path: str
    body: str
    line: int | None = None
    side: str = "RIGHT"
    start_line: int | None = None
    start_side: str | None = None
    position: int | None = None
    subject: str = "line"


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where in the diff a comment stands."""

    line: int | None
    side: str
    start_line: int | None
    start_side: str | None
    position: int | None
    hunk: str


def commentable(pull: Pull, commit: str) -> dict[str, FileChange]:
    """The diff that comments on `commit` are judged by."""
    return {one.path: one for one in changes(pull.base.git, merge_base(pull), commit)}


def anchor(draft: Draft, files: dict[str, FileChange]) -> Anchor | str:
    """Where a comment lands, or what is wrong with it."""
    change = files.get(draft.path)
    if change is None:
        return "Path could not be resolved"
    if draft.subject == "file":
        return Anchor(None, draft.side, None, None, None, "")
    if draft.line is None:
        return _by_position(draft, change)
    return _by_line(draft, change)


def _by_position(draft: Draft, change: FileChange) -> Anchor | str:
    for spot in change.spots():
        if spot.position == draft.position:
            side = "LEFT" if spot.right is None else "RIGHT"
            line = spot.left if side == "LEFT" else spot.right
            return Anchor(line, side, None, None, spot.position, hunk_up_to(change, spot))
    return "Position could not be resolved"


def _by_line(draft: Draft, change: FileChange) -> Anchor | str:
    end = change.spot(draft.side, draft.line or 0)
    if end is None:
        return "Line could not be resolved"
    start_side = None
    if draft.start_line is not None:
        start_side = draft.start_side or draft.side
        start = change.spot(start_side, draft.start_line)
        if start is None:
            return "Start line could not be resolved"
        if start.hunk != end.hunk:
            return "Start line and line must be in the same hunk"
        if start.position >= end.position:
            return "Start position must be before end position"
    hunk = hunk_up_to(change, end)
    return Anchor(draft.line, draft.side, draft.start_line, start_side, end.position, hunk)


def submit(
    world: World,
    pull: Pull,
    user: User,
    *,
    event: str | None,
    body: str,
    commit: str | None,
    drafts: list[Draft],
    app: App | None = None,
) -> Review:
    """Make one review with all its comments, or refuse it whole."""
    sha = _commit(pull, commit)
    too_long("PullRequestReview", body)
    if event in {"APPROVE", "REQUEST_CHANGES"} and user is pull.issue.user:
        verb = "approve" if event == "APPROVE" else "request changes on"
        raise Refused(422, "Unprocessable Entity", [f"Can not {verb} your own pull request"])
    if event in {"COMMENT", "REQUEST_CHANGES"} and not body and not drafts:
        raise Refused(422, "Unprocessable Entity", ["Body can't be blank"])
    files = commentable(pull, sha) if drafts else {}
    anchors = []
    wrong: list[object] = []
    for draft in drafts:
        too_long("PullRequestReviewComment", draft.body)
        found = anchor(draft, files)
        if isinstance(found, str):
            wrong.append(found)
        elif not draft.body.strip():
            wrong.append("Body can't be blank")
        else:
            anchors.append((draft, found))
    if wrong:
        raise Refused(422, "Unprocessable Entity", wrong)
    submitted = world.now() if event else None
    state = STATES[event] if event else "PENDING"
    review = Review(world.new_id(), user, body, state, sha, submitted, app)
    pull.reviews.append(review)
    made = [_new_comment(world, user, draft, at, review) for draft, at in anchors]
    pull.threads += [Thread(world.new_id(), [one]) for one in made]
    if event:
        tell(world, pull, review, "submitted", user)
        for one in made:
            tell_comment(world, pull, one, "created", user)
    return review


def finish(world: World, pull: Pull, review: Review, event: str, body: str | None) -> None:
    """Submit a pending review."""
    if review.state != "PENDING":
        raise Refused(422, "Unprocessable Entity", ["Review has already been submitted"])
    review.state, review.submitted = STATES[event], world.now()
    review.body = body if body is not None else review.body
    tell(world, pull, review, "submitted", review.user)
    for one in comments_of(pull, review):
        tell_comment(world, pull, one, "created", review.user)


def comments_of(pull: Pull, review: Review) -> list[ReviewComment]:
    """A review's comments."""
    every = [one for thread in pull.threads for one in thread.comments]
    return [one for one in every if one.review_id == review.id]


def comment(
    world: World, pull: Pull, user: User, draft: Draft, *, commit: str, app: App | None = None
) -> ReviewComment:
    """One comment on the diff, outside any review of several."""
    sha = _commit(pull, commit)
    too_long("PullRequestReviewComment", draft.body)
    at = anchor(draft, commentable(pull, sha))
    if isinstance(at, str):
        what = "path" if at.startswith("Path") else "line"
        detail: Json = {
            "resource": "PullRequestReviewComment",
            "code": "custom",
            "field": f"pull_request_review_thread.{what}",
            "message": f"pull_request_review_thread.{what} must be part of the diff",
        }
        raise Refused(422, "Validation Failed", [detail])
    review = Review(world.new_id(), user, "", "COMMENTED", sha, world.now(), app)
    pull.reviews.append(review)
    made = _new_comment(world, user, draft, at, review)
    pull.threads.append(Thread(world.new_id(), [made]))
    tell(world, pull, review, "submitted", user)
    tell_comment(world, pull, made, "created", user)
    return made


def reply(
    world: World, pull: Pull, thread: Thread, user: User, body: str, *, app: App | None = None
) -> ReviewComment:
    """Answer in a thread."""
    too_long("PullRequestReviewComment", body)
    first = thread.comments[0]
    review = Review(world.new_id(), user, "", "COMMENTED", first.commit, world.now(), app)
    pull.reviews.append(review)
    subject = first.subject
    draft = Draft(first.path, body, first.line, first.side, subject=subject)
    at = Anchor(
        first.line, first.side, first.start_line, first.start_side, first.position, first.hunk
    )
    made = _new_comment(world, user, draft, at, review)
    made.reply_to = first.id
    thread.comments.append(made)
    tell(world, pull, review, "submitted", user)
    tell_comment(world, pull, made, "created", user)
    return made


def resolve(world: World, pull: Pull, thread: Thread, user: User, resolved: bool = True) -> None:
    """Resolve a thread, or open it again."""
    if resolved == (thread.resolved_by is not None):
        return
    thread.resolved_by = user if resolved else None
    payload: Json = {
        "thread": {
            "node_id": f"PRRT_{thread.id}",
            "comments": [shape.review_comment(world, pull, one) for one in thread.comments],
        },
        "pull_request": shape.pull(world, pull),
    }
    action = "resolved" if resolved else "unresolved"
    emit(world, pull.base, "pull_request_review_thread", action, payload, user)


def dismiss(world: World, pull: Pull, review: Review, sender: User) -> None:
    """Take back an approval or a request for changes."""
    if review.state not in {"APPROVED", "CHANGES_REQUESTED"}:
        raise Refused(422, "Unprocessable Entity", [f"Can not dismiss a {review.state} review"])
    review.state = "DISMISSED"
    tell(world, pull, review, "dismissed", sender)


def tell(world: World, pull: Pull, review: Review, action: str, sender: User) -> None:
    """Emit a `pull_request_review` event."""
    shown = shape.review(world, pull, review)
    shown["state"] = review.state.lower()
    shown.setdefault("submitted_at", None)
    payload: Json = {"review": shown, "pull_request": shape.pull(world, pull)}
    emit(world, pull.base, "pull_request_review", action, payload, sender)


def tell_comment(
    world: World,
    pull: Pull,
    one: ReviewComment,
    action: str,
    sender: User,
    *,
    more: Json | None = None,
) -> None:
    """Emit a `pull_request_review_comment` event."""
    payload: Json = {
        "comment": shape.review_comment(world, pull, one),
        "pull_request": shape.pull(world, pull),
        **(more or {}),
    }
    emit(world, pull.base, "pull_request_review_comment", action, payload, sender)


def _commit(pull: Pull, commit: str | None) -> str:
    sha = commit or pull.head_sha
    known = pull.base.git.commits(pull.head_sha, f"^{merge_base(pull)}")
    if sha not in {one.sha for one in known}:
        raise Refused(422, "Unprocessable Entity", ["Commit is not part of the pull request"])
    return sha


def _new_comment(
    world: World, user: User, draft: Draft, at: Anchor, review: Review
) -> ReviewComment:
    return ReviewComment(
        id=world.new_id(),
        user=user,
        body=draft.body,
        path=draft.path,
        subject="file" if draft.subject == "file" else "line",
        side=at.side,
        line=at.line,
        start_side=at.start_side,
        start_line=at.start_line,
        original_line=at.line,
        original_start_line=at.start_line,
        position=at.position,
        original_position=at.position,
        hunk=at.hunk,
        commit=review.commit,
        original_commit=review.commit,
        review_id=review.id,
        created=world.now(),
        updated=world.now(),
    )
