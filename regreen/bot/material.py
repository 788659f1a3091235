"""What a question about a pull request is answered from: the change as the readers see it, and the thread it stands in."""

from __future__ import annotations

from collections.abc import Iterator

from regreen.adapters.git import GitRepository
from regreen.forge import GitHub, Pull, Remark
from regreen.repo_config import RepoConfig
from regreen.reviewers.dossier import dossiers, fence
from regreen.reviewers.related import related
from regreen.reviewers.review import ReviewJob, context_of
from regreen.reviewers.shorten import shortened

_PORTIONS = 2
_MOST_REST = 20_000
_LONGEST_REMARK = 4_000
_MOST_REMARKS = 20


def of_pull(
    github: GitHub, git: GitRepository, pull: Pull, config: RepoConfig, thread: int | None
) -> str:
    """The change with the code around it, what the readers leave out as it is, and the thread of a comment.

    Args:
        github: where the thread is read.
        git: where the code is read.
        pull: the pull request.
        config: the repository's own, of which the ignored paths count.
        thread: the comment that the question answers, where it stands on a line.
    """
    job = ReviewJob(
        base=pull.base_sha, head=pull.head_sha, title=pull.title, body=pull.body, config=config
    )
    context, _ = context_of(job, git=git, sandbox=None, model=None)
    portions, _ = dossiers(context, related, most=_PORTIONS)
    parts = [p.text for p in portions] or [fence("author", f"{pull.title}\n\n{pull.body}")]
    shown = {f.path for p in portions for f in p.files}
    rest = [f.path for f in context.change.files if f.path not in shown]
    if rest:
        diff = git.diff(context.merge_base, context.head, paths=rest)
        parts.append("# The rest of the change\n" + fence("diff", shortened(diff, _MOST_REST)))
    if thread is not None and (said := list(_said(github.remarks(pull.number), thread))):
        parts.append(
            "# The thread in which this is asked, its first remark first\n"
            + fence("thread", "\n\n".join(said[:_MOST_REMARKS]))
        )
    return "\n\n".join(parts)


def _said(remarks: list[Remark], root: int) -> Iterator[str]:
    for remark in remarks:
        if remark.id == root:
            at = "" if remark.line is None else f", line {remark.line}"
            yield f"On {remark.path}{at}:\n{remark.hunk[-_LONGEST_REMARK:]}"
        if root in {remark.id, remark.reply_to}:
            yield f"{remark.author}: {shortened(remark.body, _LONGEST_REMARK)}"
