"""What has changed in the playground since one last looked, as lines a person can follow."""

from __future__ import annotations

from collections.abc import Iterator

from regreen_playground.acts.actions import ACTIONS
from regreen_playground.state import State
from regreen_playground.things import App, Repository

# Deliveries worth a line: what people and CI did, not the echo of what the App did.
TOLD = {
    ("pull_request", "opened"),
    ("workflow_run", "completed"),
    ("issue_comment", "created"),
    ("installation", "created"),
    ("push", None),
}


class News:
    """Remembers what was told, so that everything is told once."""

    def __init__(self, state: State, app: App) -> None:
        self._state = state
        self._app = app
        self._told: set[object] = set()

    def fresh(self) -> list[str]:
        """The lines since the last time."""
        with self._state.lock:
            every = list(self._every())
        fresh = [(key, line) for key, line in every if key not in self._told]
        self._told |= {key for key, _ in fresh}
        return [line for _, line in fresh]

    def _every(self) -> Iterator[tuple[object, str]]:
        yield from self._deliveries()
        for repository in list(self._state.repositories.values()):
            yield from self._checks(repository)
            yield from self._talk(repository)

    def _deliveries(self) -> Iterator[tuple[object, str]]:
        for one in list(self._app.deliveries):
            by_robot = f'"login": "{self._app.bot.login}"'.encode() in one.body[-2000:]
            told = (one.event, one.action) in TOLD and not by_robot
            if told and one.status != "pending":
                name = f"{one.event}.{one.action}" if one.action else one.event
                yield one.id, f"webhook {name} delivered, answered {one.status_code}"

    def _checks(self, repository: Repository) -> Iterator[tuple[object, str]]:
        for suite in list(repository.suites):
            for run in list(suite.runs):
                end = run.conclusion or run.status
                at = suite.head_sha[:7]
                if suite.app.slug == ACTIONS:
                    if run.conclusion:
                        yield (run.id, end), f"CI job '{run.name}' on {at}: {end}"
                    continue
                title = f": {run.title}" if run.title else ""
                yield (run.id, end), f"check '{run.name}' on {at} is {end}{title}"

    def _talk(self, repository: Repository) -> Iterator[tuple[object, str]]:
        bot = self._app.bot
        for issue in list(repository.issues.values()):
            kind = "pull request" if issue.pull else "issue"
            draft = "draft " if issue.pull and issue.pull.draft else ""
            by = issue.user.login
            yield (issue.id, "new"), f"{by} opens {draft}{kind} #{issue.number}: {issue.title}"
            if issue.state == "closed":
                yield (issue.id, "closed", issue.closed), f"{kind} #{issue.number} is closed"
            for comment in list(issue.comments):
                for reaction in list(comment.reactions):
                    if reaction.user is bot:
                        line = f"{bot.login} reacts with {reaction.content} on #{issue.number}"
                        yield reaction.id, line
                first = next((x for x in comment.body.splitlines() if _says(x)), "")
                yield (
                    (comment.id, comment.body),
                    f"{comment.user.login} on #{issue.number}: {first[:110]}",
                )
            if issue.pull is None:
                continue
            for review in list(issue.pull.reviews):
                lines = sum(t.comments[0].review_id == review.id for t in issue.pull.threads)
                if review.user is bot:
                    said = f"{lines} comment{'s' if lines != 1 else ''} on lines"
                    yield review.id, f"{bot.login} reviews #{issue.number}: {said}"


def _says(line: str) -> bool:
    """Whether a line of a comment is text of its own, no hidden marker and no quotation."""
    return bool(line.strip()) and not line.startswith(("<!--", "> "))
