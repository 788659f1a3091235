"""What happens to pull requests, and the events that follow."""

from __future__ import annotations

from regreen_playground.acts.issues import new_issue, set_state
from regreen_playground.acts.telling import tell_pull
from regreen_playground.difflines import moved
from regreen_playground.gitstore import Person
from regreen_playground.shape.people import user as shape_user
from regreen_playground.things import App, Json, Pull, Repository, User
from regreen_playground.world import Refused, World


def _invalid(message: str, field: str = "") -> Refused:
    detail: Json = {"resource": "PullRequest", "code": "custom", "message": message}
    if field:
        detail = {"resource": "PullRequest", "field": field, "code": "invalid"}
    return Refused(422, "Validation Failed", [detail])


def open_pull(
    world: World,
    base: Repository,
    user: User,
    *,
    head: Repository,
    head_ref: str,
    base_ref: str,
    title: str,
    body: str | None = None,
    draft: bool = False,
    maintainer_can_modify: bool = True,
    app: App | None = None,
) -> Pull:
    """Open a pull request."""
    head_sha, base_sha = head.git.branch(head_ref), base.git.branch(base_ref)
    if base_sha is None:
        raise _invalid("", "base")
    if head_sha is None:
        raise _invalid("", "head")
    for known in base.pulls.values():
        same = (known.head, known.head_ref, known.base_ref) == (head, head_ref, base_ref)
        if same and known.issue.state == "open":
            who = f"{head.owner.login}:{head_ref}"
            msg = f"A pull request already exists for {who}."
            raise _invalid(msg)
    if head is not base:
        base.git.take(head.git, f"refs/heads/{head_ref}", "refs/playground/incoming")
        base.git.delete_ref("refs/playground/incoming")
    if base.git.count(head_sha, base_sha) == 0:
        msg = f"No commits between {base_ref} and {head_ref}"
        raise _invalid(msg)
    issue = new_issue(world, base, user, title=title, body=body, app=app)
    pull = Pull(
        id=world.new_id(),
        issue=issue,
        base=base,
        base_ref=base_ref,
        base_sha=base_sha,
        head=head,
        head_ref=head_ref,
        head_sha=head_sha,
        draft=draft,
        maintainer_can_modify=maintainer_can_modify,
    )
    issue.pull = pull
    point_refs(pull)
    tell_pull(world, pull, "opened", user)
    return pull


def point_refs(pull: Pull) -> None:
    """Keep refs/pull/N/head and refs/pull/N/merge where GitHub has them."""
    git = pull.base.git
    git.set_ref(f"refs/pull/{pull.number}/head", pull.head_sha)
    merged = git.merge(pull.base_sha, pull.head_sha)
    if merged is None:
        git.delete_ref(f"refs/pull/{pull.number}/merge")
        return
    date = git.commit(pull.head_sha).committer.date
    robot = Person("GitHub", "noreply@example.com", date)
    message = f"Merge {pull.head_sha} into {pull.base_sha}"
    sha = git.write_commit(merged, [pull.base_sha, pull.head_sha], message, robot)
    git.set_ref(f"refs/pull/{pull.number}/merge", sha)


def synchronize(world: World, pull: Pull, sha: str, sender: User) -> None:
    """The head branch moved."""
    before = pull.head_sha
    if pull.head is not pull.base:
        pull.base.git.take(pull.head.git, f"refs/heads/{pull.head_ref}", "refs/playground/incoming")
        pull.base.git.delete_ref("refs/playground/incoming")
    pull.head_sha = sha
    pull.issue.updated = world.now()
    point_refs(pull)
    move_comments(pull)
    tell_pull(world, pull, "synchronize", sender, {"before": before, "after": sha})


def move_comments(pull: Pull) -> None:
    """Carry each review comment to the new head; lines that changed become outdated."""
    for thread in pull.threads:
        for one in thread.comments:
            if one.subject == "file" or one.side == "LEFT" or one.original_line is None:
                continue
            git, was = pull.base.git, one.original_commit
            one.line = moved(git, was, pull.head_sha, one.path, one.original_line)
            one.start_line = (
                one.line
                and one.original_start_line
                and moved(git, was, pull.head_sha, one.path, one.original_start_line)
            )
            one.position = one.original_position if one.line else None
            one.commit = pull.head_sha if one.line else one.commit


def set_draft(world: World, pull: Pull, draft: bool, sender: User) -> None:
    """Turn a pull into a draft, or ready."""
    if pull.draft != draft:
        pull.draft = draft
        tell_pull(world, pull, "converted_to_draft" if draft else "ready_for_review", sender)


def update(
    world: World,
    pull: Pull,
    sender: User,
    *,
    title: str | None = None,
    body: str | None = None,
    state: str | None = None,
    base_ref: str | None = None,
) -> None:
    """Change title, body, base or state."""
    changes: Json = {}
    if title is not None and title != pull.issue.title:
        changes["title"] = {"from": pull.issue.title}
        pull.issue.title = title
    if body is not None and body != pull.issue.body:
        changes["body"] = {"from": pull.issue.body or ""}
        pull.issue.body = body
    if base_ref is not None and base_ref != pull.base_ref:
        sha = pull.base.git.branch(base_ref)
        if sha is None:
            raise _invalid("", "base")
        changes["base"] = {"ref": {"from": pull.base_ref}, "sha": {"from": pull.base_sha}}
        pull.base_ref, pull.base_sha = base_ref, sha
    if changes:
        pull.issue.updated = world.now()
        tell_pull(world, pull, "edited", sender, {"changes": changes})
    if state is not None and set_state(world, pull.issue, sender, state):
        tell_pull(world, pull, "closed" if state == "closed" else "reopened", sender)


def request_reviewer(world: World, pull: Pull, reviewer: User, sender: User) -> None:
    """Ask somebody for a review."""
    if reviewer not in pull.reviewers:
        pull.reviewers.append(reviewer)
        asked: Json = {"requested_reviewer": shape_user(world, reviewer)}
        tell_pull(world, pull, "review_requested", sender, asked)


def merge(
    world: World, pull: Pull, sender: User, *, sha: str | None, message: str | None, squash: bool
) -> str:
    """Merge into the base branch; the new commit. The caller tells of the push."""
    git = pull.base.git
    if pull.issue.state != "open" or pull.draft:
        raise Refused(405, "Pull Request is not mergeable")
    if sha is not None and sha != pull.head_sha:
        raise Refused(409, "Head branch was modified. Review and try the merge again.")
    tip = git.branch(pull.base_ref) or pull.base_sha
    tree = git.merge(tip, pull.head_sha)
    if tree is None:
        raise Refused(405, "Pull Request is not mergeable")
    who = Person(sender.name, sender.email, world.now())
    source = f"{pull.head.owner.login}/{pull.head_ref}"
    text = message or f"Merge pull request #{pull.number} from {source}\n\n{pull.issue.title}"
    made = git.write_commit(tree, [tip] if squash else [tip, pull.head_sha], text, who)
    git.set_ref(f"refs/heads/{pull.base_ref}", made)
    pull.merged, pull.merged_by, pull.merge_commit = world.now(), sender, made
    set_state(world, pull.issue, sender, "closed")
    tell_pull(world, pull, "closed", sender)
    return made
