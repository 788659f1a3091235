"""Credentials that a change adds. The value is masked before it becomes part of a claim."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from regreen.code.diff import FileChange
from regreen.domain.models import Severity, UnreadFile
from regreen.domain.text_limits import MAX_LINE, without_long_lines
from regreen.reviewers.analyzers.baseline import make_analyzer_claim
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.credential_detection import URL_CREDENTIALS, FoundSecret, find_secrets
from regreen.secrets.markdown_sanitizer import count_noun


@dataclass(frozen=True, slots=True)
class AddedSecrets:
    """Looks at every changed text file, lock and generated ones excepted."""

    name: str = "secrets"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report the credentials on added lines that stood nowhere in the change's files before."""
        files = [
            f
            for f in context.change.files
            if f.status != "deleted" and not f.binary and not f.is_submodule
        ]
        found: list[tuple[FileChange, FoundSecret]] = []
        unread: list[UnreadFile] = []
        partly: list[UnreadFile] = []
        for file in files:
            text = _scanned_text(context, file)
            if text is None:
                unread.append(UnreadFile(file.path, "not text, or too large to look for secrets"))
                continue
            if without_long_lines(text) != text:
                why = f"lines of over {MAX_LINE} characters: searched for known formats of secrets alone"
                partly.append(UnreadFile(file.path, why))
            secrets = find_secrets(text, file.path)
            found += [
                (file, secret) for secret in secrets if file.touches_lines(secret.line, secret.line)
            ]
        known = _count_old_secrets(context) if found else Counter[int]()
        claims = [_make_claim(file, secret) for file, secret in found if not known[secret.digest]]
        return ReviewerReport(
            tuple(claims),
            read=f"secrets looked for in {count_noun(len(files) - len(unread), 'file')}",
            is_narrow=True,
            unread=(*unread, *partly),
        )


def _scanned_text(context: ReviewContext, file: FileChange) -> str | None:
    """The whole file, so that a key's body is seen; from the diff alone where there is nothing more."""
    text = context.head_text(file.path)
    if text is not None or not file.hunks:
        return text if text is not None else ("" if not file.hunks else None)
    shown = {
        line.new: line.text for hunk in file.hunks for line in hunk.lines if line.new is not None
    }
    return "\n".join(shown.get(number, "") for number in range(1, max(shown, default=0) + 1))


def _count_old_secrets(context: ReviewContext) -> Counter[int]:
    """What stood in the change's files already: moving a secret does not add one."""
    known: Counter[int] = Counter()
    for file in context.change.files:
        if file.status == "added" or file.binary:
            continue
        text = context.base_text(file.old_path)
        if text is None:
            text = "\n".join(
                line.text for hunk in file.hunks for line in hunk.lines if line.kind != "+"
            )
        known.update(secret.digest for secret in find_secrets(text, file.old_path))
    return known


def _make_claim(file: FileChange, secret: FoundSecret) -> Claim:
    article = "An" if secret.kind[0] in "AEIOaeio" else "A"
    what = f"{article} {secret.kind} is in the code"
    if secret.kind == URL_CREDENTIALS:
        what = "A password stands in a URL"
    severity: Severity = "critical" if secret.confidence >= 0.93 else "high"
    return make_analyzer_claim(
        f"secrets/{secret.kind.lower().replace(' ', '-')}",
        severity,
        file.path,
        (secret.line, secret.line),
        dimension="security",
        title=f"{what}: `{secret.masked}`",
        body="Everybody who can read the repository, now or later, can use it. Revoke it first, then read it from the "
        "environment or a secret store: removing the line leaves it in the history. (CWE-798)",
        confidence=secret.confidence,
        excerpt=secret.masked,
        source="regreen secrets",
        head=secret.kind,
        # Never the line itself: the fingerprint is made of this.
        code=secret.masked,
    )
