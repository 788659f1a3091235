"""What a repository asks of pull requests: sign-off, the form of titles, its template, and who owns the files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from regreen.bot.messages.markup import code_span
from regreen.domain.errors import UserError
from regreen.domain.ports import Git

_RECENT_COMMITS = 30
_MIN_COMMITS = 5
_USUAL_SHARE = 0.6
_TYPED_SUBJECT = re.compile(r"[a-z]{2,12}(?:\([\w./ -]{1,40}\))?!?: \S")
_SIGN_OFF = re.compile(r"^Signed-off-by: .{1,200}@", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_MAX_TEMPLATE_CHARS = 5000
_MAX_NAMED_OWNERS = 6
_FOLDERS = ("", ".github/", "docs/")


@dataclass(frozen=True, slots=True)
class PullRequestCustoms:
    """What pull requests of a repository look like.

    Attributes:
        sign_off: commits end with `Signed-off-by:`.
        typed: titles begin with a type: "fix: ...".
        template: the text of new pull requests, without its comments.
        owners: pattern and owners of each line of CODEOWNERS.
    """

    sign_off: bool = False
    typed: bool = False
    template: str = ""
    owners: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def adapt_title(self, title: str) -> str:
        """A title in the form that the repository uses."""
        if not self.typed:
            return title
        first, _, rest = title.partition(" ")
        kind, text = (first.lower(), rest) if first in {"Fix", "Revert"} else ("fix", title)
        return f"{kind}: {text[:1].lower() + text[1:]}"[:72]

    def adapt_body(self, body: str, paths: tuple[str, ...]) -> str:
        """A body under the first heading of the template, and the owners of what it changes, who are not notified."""
        names = self._find_owners(paths)[:_MAX_NAMED_OWNERS]
        if names:
            body += f"\n\nCode owners: {', '.join(code_span(name) for name in names)}."
        if not self.template:
            return body
        first = _HEADING.search(self.template)
        cut = first.end() if first else 0
        return f"{self.template[:cut]}\n\n{body}\n\n{self.template[cut:].strip()}".strip()

    def _find_owners(self, paths: tuple[str, ...]) -> list[str]:
        found: dict[str, None] = {}
        for path in paths:
            lines = (
                owners
                for pattern, owners in reversed(self.owners)
                if _owner_pattern_covers(pattern, path)
            )
            found |= dict.fromkeys(next(lines, ()))
        return list(found)


def read_conventions(git: Git, rev: str) -> PullRequestCustoms:
    """The conventions that a revision's files and its latest commits show."""
    messages = _read_recent_messages(git, rev)
    signed = sum(bool(_SIGN_OFF.search(message)) for message in messages)
    typed = sum(bool(_TYPED_SUBJECT.match(message)) for message in messages)
    enough = max(_MIN_COMMITS, _USUAL_SHARE * len(messages))
    names = {entry.path.lower(): entry.path for entry in git.tree(rev)}
    return PullRequestCustoms(
        sign_off=signed >= enough or ".github/dco.yml" in names,
        typed=typed >= enough,
        template=_drop_comments(_read_first_existing(git, rev, names, "pull_request_template.md"))[
            :_MAX_TEMPLATE_CHARS
        ].strip(),
        owners=_parse_owners(_read_first_existing(git, rev, names, "codeowners")),
    )


def _drop_comments(text: str) -> str:
    """Text without HTML comments, one that is never closed included; what is left around one begins no other."""
    return _COMMENT.sub("", text).replace("<!--", "")


def _read_recent_messages(git: Git, rev: str) -> list[str]:
    """The messages of the latest commits that are no merges."""
    try:
        oldest = git.resolve(f"{rev}~{_RECENT_COMMITS}")
    except UserError:
        oldest = None  # the history is shorter
    commits = git.commits(oldest, rev, first_parent=True)
    return [git.message(one.sha) for one in commits if len(one.parents) < 2]


def _read_first_existing(git: Git, rev: str, names: dict[str, str], name: str) -> str:
    found = next((names[f + name] for f in _FOLDERS if f + name in names), None)
    data = git.show(rev, found, 100_000) if found else None
    return (data or b"").decode("utf-8", "replace").replace("\r\n", "\n")


def _parse_owners(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    rows = (line.partition(" #")[0].split() for line in text.split("\n"))
    return tuple((row[0], tuple(row[1:])) for row in rows if row and not row[0].startswith("#"))[
        :2000
    ]


def _owner_pattern_covers(pattern: str, path: str) -> bool:
    """Whether a pattern of CODEOWNERS covers a path, as gitignore reads it."""
    parts, steps = pattern.strip("/").split("/"), path.split("/")
    if parts.count("**") > 2:
        return False
    starts = range(1) if "/" in pattern.rstrip("/") else range(len(steps))
    return any(_owner_parts_cover(pattern, parts, steps[start:]) for start in starts)


def _owner_parts_cover(pattern: str, parts: list[str], steps: list[str]) -> bool:
    if not parts:  # a folder covers what is below it; `docs/*` covers its own files alone
        return not steps or not pattern.endswith("/*")
    if parts[0] == "**":
        return any(_owner_parts_cover(pattern, parts[1:], steps[n:]) for n in range(len(steps) + 1))
    if not steps or (pattern.endswith("/") and len(parts) == len(steps) == 1):
        return False
    matches = fnmatchcase(steps[0], parts[0])
    return matches and _owner_parts_cover(pattern, parts[1:], steps[1:])
