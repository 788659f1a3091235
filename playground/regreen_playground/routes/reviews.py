"""Routes for reviews and comments on diffs."""

from __future__ import annotations

from regreen_playground.acts import reviews
from regreen_playground.acts.reviews import Draft
from regreen_playground.routes.pulls import the_pull
from regreen_playground.routes.wire import Api, Reply, RepoCall, integer, listed, optional, text_of
from regreen_playground.shape import pulls as shape
from regreen_playground.things import Json, Pull, Review, ReviewComment
from regreen_playground.world import Refused, World, thread_of


def routes(world: World) -> Api:
    """The routes."""
    api = Api(world, "reviews")
    _reviews(api)
    _comments(api)
    _one_comment(api)
    return api


def the_review(pull: Pull, number: int) -> Review:
    """The review a route names.

    Raises:
        Refused: there is none (404).
    """
    for one in pull.reviews:
        if one.id == number:
            return one
    raise Refused(404, "Not Found")


def _event(body: Json) -> str | None:
    event = optional(body, "event")
    if event is not None and event not in reviews.STATES:
        raise Refused(422, "Unprocessable Entity", [f"{event} is not a valid event"])
    return event


def _draft(data: object) -> Draft:
    if not isinstance(data, dict):
        raise Refused(422, "Unprocessable Entity", ["comments must be objects"])
    line, position = integer(data, "line"), integer(data, "position")
    subject = optional(data, "subject_type") or "line"
    if line is None and position is None and subject != "file":
        raise Refused(422, "Unprocessable Entity", ["line or position is required"])
    side, start_side = optional(data, "side") or "RIGHT", optional(data, "start_side")
    if side not in {"LEFT", "RIGHT"} or start_side not in {None, "LEFT", "RIGHT"}:
        raise Refused(422, "Unprocessable Entity", ["side must be LEFT or RIGHT"])
    return Draft(
        path=text_of(data, "path", "PullRequestReviewComment"),
        body=text_of(data, "body", "PullRequestReviewComment"),
        line=line,
        side=side,
        start_line=integer(data, "start_line"),
        start_side=start_side,
        position=position,
        subject=subject,
    )


def _reviews(api: Api) -> None:
    @api.on("GET", "/pulls/<int:number>/reviews", "pull_requests:read")
    def every(call: RepoCall, number: int) -> object:
        one = the_pull(call, number)
        shown = [each for each in one.reviews if each.state != "PENDING" or each.user is call.user]
        return listed([shape.review(call.world, one, each) for each in shown])

    @api.on("POST", "/pulls/<int:number>/reviews", "pull_requests:write")
    def create(call: RepoCall, number: int) -> object:
        one, body = the_pull(call, number), call.body()
        sent = body.get("comments")
        made = reviews.submit(
            call.world,
            one,
            call.user,
            event=_event(body),
            body=optional(body, "body") or "",
            commit=optional(body, "commit_id"),
            drafts=[_draft(each) for each in sent] if isinstance(sent, list) else [],
            app=call.app,
        )
        return shape.review(call.world, one, made)

    @api.on("GET", "/pulls/<int:number>/reviews/<int:review>", "pull_requests:read")
    def get(call: RepoCall, number: int, review: int) -> object:
        one = the_pull(call, number)
        return shape.review(call.world, one, the_review(one, review))

    @api.on("PUT", "/pulls/<int:number>/reviews/<int:review>", "pull_requests:write")
    def update(call: RepoCall, number: int, review: int) -> object:
        one = the_pull(call, number)
        found = the_review(one, review)
        found.body = text_of(call.body(), "body", "PullRequestReview")
        reviews.tell(call.world, one, found, "edited", call.user)
        return shape.review(call.world, one, found)

    @api.on("DELETE", "/pulls/<int:number>/reviews/<int:review>", "pull_requests:write")
    def delete(call: RepoCall, number: int, review: int) -> object:
        one = the_pull(call, number)
        found = the_review(one, review)
        if found.state != "PENDING":
            raise Refused(422, "Can not delete a non-pending pull request review")
        shown = shape.review(call.world, one, found)
        one.reviews.remove(found)
        one.threads = [each for each in one.threads if each.comments[0].review_id != found.id]
        return shown

    @api.on("POST", "/pulls/<int:number>/reviews/<int:review>/events", "pull_requests:write")
    def submit(call: RepoCall, number: int, review: int) -> object:
        one, body = the_pull(call, number), call.body()
        found, event = the_review(one, review), _event(body)
        if event is None:
            raise Refused(422, "Unprocessable Entity", ["event is required"])
        reviews.finish(call.world, one, found, event, optional(body, "body"))
        return shape.review(call.world, one, found)

    @api.on("PUT", "/pulls/<int:number>/reviews/<int:review>/dismissals", "pull_requests:write")
    def dismiss(call: RepoCall, number: int, review: int) -> object:
        one = the_pull(call, number)
        found = the_review(one, review)
        text_of(call.body(), "message", "PullRequestReview")
        reviews.dismiss(call.world, one, found, call.user)
        return shape.review(call.world, one, found)

    @api.on("GET", "/pulls/<int:number>/reviews/<int:review>/comments", "pull_requests:read")
    def comments(call: RepoCall, number: int, review: int) -> object:
        one = the_pull(call, number)
        found = reviews.comments_of(one, the_review(one, review))
        return listed([shape.review_comment(call.world, one, each) for each in found])


def _comments(api: Api) -> None:
    @api.on("GET", "/pulls/<int:number>/comments", "pull_requests:read")
    def of_pull(call: RepoCall, number: int) -> object:
        one = the_pull(call, number)
        found = sorted(
            (each for thread in one.threads for each in thread.comments), key=lambda c: c.id
        )
        return listed([shape.review_comment(call.world, one, each) for each in found])

    @api.on("GET", "/pulls/comments", "pull_requests:read")
    def of_repository(call: RepoCall) -> object:
        shown = [
            shape.review_comment(call.world, one, each)
            for one in call.repo.pulls.values()
            for thread in one.threads
            for each in thread.comments
        ]
        return listed(shown)

    @api.on("POST", "/pulls/<int:number>/comments", "pull_requests:write")
    def create(call: RepoCall, number: int) -> object:
        one, body = the_pull(call, number), call.body()
        answered = integer(body, "in_reply_to")
        if answered is not None:
            return _reply(call, number, answered)
        commit = text_of(body, "commit_id", "PullRequestReviewComment")
        made = reviews.comment(
            call.world, one, call.user, _draft(body), commit=commit, app=call.app
        )
        return Reply(201, shape.review_comment(call.world, one, made))

    @api.on("POST", "/pulls/<int:number>/comments/<int:comment>/replies", "pull_requests:write")
    def reply(call: RepoCall, number: int, comment: int) -> object:
        return _reply(call, number, comment)


def _reply(call: RepoCall, number: int, comment: int) -> Reply:
    one = the_pull(call, number)
    on, thread, _ = thread_of(call.repo, comment)
    if on != number:
        raise Refused(404, "Not Found")
    text = text_of(call.body(), "body", "PullRequestReviewComment")
    made = reviews.reply(call.world, one, thread, call.user, text, app=call.app)
    return Reply(201, shape.review_comment(call.world, one, made))


def _one_comment(api: Api) -> None:
    @api.on("GET", "/pulls/comments/<int:comment>", "pull_requests:read")
    def get(call: RepoCall, comment: int) -> object:
        number, _, one = thread_of(call.repo, comment)
        return _shown(call, number, one)

    @api.on("PATCH", "/pulls/comments/<int:comment>", "pull_requests:write")
    def update(call: RepoCall, comment: int) -> object:
        number, _, one = thread_of(call.repo, comment)
        old, one.body = one.body, text_of(call.body(), "body", "PullRequestReviewComment")
        one.updated = call.world.now()
        changed: Json = {"changes": {"body": {"from": old}}}
        reviews.tell_comment(
            call.world, the_pull(call, number), one, "edited", call.user, more=changed
        )
        return _shown(call, number, one)

    @api.on("DELETE", "/pulls/comments/<int:comment>", "pull_requests:write")
    def delete(call: RepoCall, comment: int) -> object:
        number, thread, one = thread_of(call.repo, comment)
        pull = the_pull(call, number)
        reviews.tell_comment(call.world, pull, one, "deleted", call.user)
        thread.comments.remove(one)
        if not thread.comments:
            pull.threads.remove(thread)
        return Reply(204)


def _shown(call: RepoCall, number: int, one: ReviewComment) -> Json:
    return shape.review_comment(call.world, the_pull(call, number), one)
