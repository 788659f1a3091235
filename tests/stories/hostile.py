"""What acts in a Markdown text on GitHub: used to look at everything that Regreen wrote there."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

from regreen.secrets.markdown_sanitizer import remove_hidden
from tests.stories.story import SeenPull

OURS = re.compile(r"</?(?:details|summary|sub)>|<!-- regreen:[a-z]+:[\w:.~-]+ -->")
MENTION = re.compile(r"(?<![\w`])@(?=[A-Za-z0-9])")
REFERENCE = re.compile(r"(?<![\w&])#\d+|\bGH-\d+", re.IGNORECASE)
ADDRESS = re.compile(r"https?://|\bwww\.[a-z]", re.IGNORECASE)
FORMULA = re.compile(r"\$(?![\s\d\u200b])")
COMMAND = re.compile(r"^[\s>]*/[a-z]+", re.MULTILINE)
_GAP = "\u200b"


def written(pull: SeenPull) -> list[str]:
    """Everything that Regreen put on a pull request, as it was sent."""
    raw = pull.raw
    texts = [c.body for c in raw.issue.comments if c.user.type == "Bot"]
    texts += [r.body or "" for r in raw.reviews if r.app]
    texts += [c.body for t in raw.threads for c in t.comments if c.user.type == "Bot"]
    check = pull.check
    texts += [check.summary or "", check.text or "", check.title or ""]
    return texts


# where a finding stands, at the commit under review
_OWN_LINES = re.compile(
    r"http://127\.0\.0\.1:\d+/acme/shop/blob/[0-9a-f]{40}/shop/\w+\.py#L\d+(-L\d+)?"
)


def acts(text: str) -> list[str]:
    """What in a text would do something, or hide something, once GitHub has rendered it."""
    found: list[str] = []
    for token in _tokens(MarkdownIt("commonmark").enable("table").parse(text)):
        found += _of_token(token)
    found += [f"command {m[0]!r}" for m in COMMAND.finditer(text)]
    kept = text.replace(_GAP, "")
    found += ["hidden characters"] if remove_hidden(kept) != kept else []
    return found


def _tokens(tokens: list[Token]) -> list[Token]:
    return [inner for t in tokens for inner in (t, *_tokens(t.children or []))]


def _of_token(token: Token) -> list[str]:
    match token.type:
        case "link_open" if _OWN_LINES.fullmatch(str(token.attrs["href"])):
            return []
        case "image" | "link_open":
            return [f"{token.type} {token.attrs}"]
        case "html_block" | "html_inline":
            rest = OURS.sub("", token.content)
            markup = ["markup " + rest.strip()] if "<" in rest else []
            return markup + _in_words(rest)
        case "fence" if token.info.strip() in {"mermaid", "math", "geojson", "topojson", "stl"}:
            return [f"rendered fence {token.info}"]
        case "text":
            return _in_words(token.content)
        case _:
            return []


def _in_words(text: str) -> list[str]:
    looks = (("mention", MENTION), ("reference", REFERENCE), ("address", ADDRESS), ("formula", FORMULA))  # fmt: skip
    return [f"{name} in {text[:60]!r}" for name, look in looks if look.search(text)]
