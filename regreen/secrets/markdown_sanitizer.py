"""Foreign words as Markdown that does nothing: no image, link, formula, mention, reference, command, markup, hidden letter.

Credentials go first: what keeps GitHub from making a link or a mention of a text would hide them from redaction.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from regreen.secrets.redaction import redact_secrets

_BLANK_CHARACTERS = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters that show nothing, besides those that Unicode itself calls format or control characters."""
_ZERO_WIDTH_SPACE = "\u200b"
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([A-Za-z0-9+#-]{0,20})")
_RENDERED_LANGUAGES = frozenset({"suggestion", "mermaid", "math", "geojson", "topojson", "stl"})
"""Fences that GitHub does not show as code: a button that commits, a picture, a map."""
_MAX_WORD_CHARS = 40
_COMMAND = re.compile(r"^((?:[ \t]|[-*+>][ \t])*)/(?=[A-Za-z])")
_SKIPS_CI = re.compile(
    r"(?i)(?<=\[)(?=skip |skip-ci\b|no[ -]ci\b|ci-skip\b|[a-z]{1,20} skip\])|(?<=skip-checks)(?=:)|(?<=\*{3})(?=no_ci)"
)
"""Where a text begins that GitHub or another CI service takes, in a commit's message, as a wish to run nothing."""
_ISSUE_SIGN = re.compile(r"#(?=\d)|(?<=GH)-(?=\d)|(?<=gh)-(?=\d)")


def count_noun(number: int, noun: str, many: str = "") -> str:
    """A number with its noun; `many` is the plural where that is not `noun` with an s."""
    return f"{number} {noun if number == 1 else many or noun + 's'}"


def format_probability(share: float) -> str:
    """A probability for people; rounding never claims certainty."""
    return f"{share:.1%}" if share < 0.9995 else ">99.9%"


def describe_confidence(confidence: float) -> str:
    """A finding's confidence with what it is a share of; rounding never claims certainty."""
    return f"{min(confidence, 0.99):.0%} likely to be right"


def format_line_ranges(lines: Iterable[int], most: int = 20) -> str:
    """Line numbers as ranges, such as "3-5, 9"; past so many ranges they are cut visibly."""
    spans = group_lines(lines)
    shown = [f"{a}" if a == b else f"{a}-{b}" for a, b in spans[:most]]
    return ", ".join(shown) + (", …" if len(spans) > most else "")


def group_lines(lines: Iterable[int]) -> list[tuple[int, int]]:
    """Line numbers as ranges of neighbours: the first and the last of each."""
    spans: list[tuple[int, int]] = []
    for line in sorted(set(lines)):
        if spans and line == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], line)
        else:
            spans.append((line, line))
    return spans


def remove_hidden(text: str) -> str:
    """The text without what a person does not see: control, format, direction and blank characters."""
    return "".join(c for c in text if c in "\n\t" or not _is_hidden(c))


def to_plain_line(text: str, limit: int = 1000) -> str:
    """One line for where no Markdown is rendered, or only HTML's text: nothing in it pings, links or refers."""
    return _break_links(_join_lines(text, limit))


def _join_lines(text: str, limit: int, *, keeps_blanks: bool = False) -> str:
    """The visible text on one line of at most `limit` characters; where it is longer, it ends after a word with an ellipsis.

    `keeps_blanks`: runs of blanks within a line stay, as code has them.
    """
    visible = redact_secrets(remove_hidden(text[: 4 * limit]))
    if keeps_blanks:
        rows = (row.replace("\t", " ").strip() for row in visible.splitlines())
        shown = " ".join(filter(None, rows)).split(" ")
    else:
        shown = visible.split()
    if len(text) > 4 * limit and shown and len(shown[-1]) < limit:
        shown.pop()  # it may be half a credential, which is not known for one
    line = " ".join(shown)
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    words, _, rest = cut.rpartition(" ")
    return f"{words if words and len(rest) <= _MAX_WORD_CHARS else cut}…"


def defuse_ci_skips(text: str) -> str:
    """The text without `[skip ci]` and its like: what we commit is to be checked."""
    return _SKIPS_CI.sub(_ZERO_WIDTH_SPACE, text)


def escape_line(text: str, limit: int = 1000) -> str:
    """One line of Markdown in which nothing but code spans is markup."""
    return _COMMAND.sub(r"\1\\/", "".join(_sanitize_inline(_join_lines(text, limit))))


def code_span(text: str, limit: int = 300) -> str:
    """A code span that nothing inside can close."""
    inner = _join_lines(text, limit, keeps_blanks=True).replace("<!--", f"<!{_ZERO_WIDTH_SPACE}--")
    if not inner:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", inner)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{ticks}{pad}{inner}{pad}{ticks}"


def code_block(text: str, language: str = "", limit: int = 1500) -> str:
    """A fenced block that nothing inside can close; hidden characters stand written out, line ends of Windows go."""
    text = redact_secrets(re.sub(r"\r(?=\n|\Z)", "", text[: 4 * limit]))
    cut = text if len(text) <= limit else text[:limit] + "\n…"
    shown = "".join(
        c if c in "\n\t" or not _is_hidden(c) else f"\\u{ord(c):04x}" for c in cut
    ).replace("<!--", f"<!{_ZERO_WIDTH_SPACE}--")
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{shown.strip(chr(10))}\n{ticks}"


def sanitize_markdown(text: str, limit: int = 4000) -> str:
    """Several lines of Markdown that keep their paragraphs, lists, headings and code, and nothing that acts."""
    rows = iter(redact_secrets(remove_hidden(text[: 4 * limit]))[:limit].split("\n"))
    return "\n".join(_sanitize_lines(rows)).strip()


def _sanitize_lines(rows: Iterator[str]) -> Iterator[str]:
    for row in rows:
        opened = _FENCE.match(row)
        if opened is None:
            yield _COMMAND.sub(r"\1\\/", "".join(_sanitize_inline(row)))
            continue
        mark, language = opened[1], opened[2].lower()
        inside: list[str] = []
        for inner in rows:
            if inner.strip().startswith(mark) and not inner.strip().strip(mark[0]):
                break
            inside.append(inner)
        known = "" if language in _RENDERED_LANGUAGES else language
        yield code_block(
            "\n".join(inside), known, limit=len(row) + sum(map(len, inside)) + len(inside)
        )


def _sanitize_inline(line: str) -> Iterator[str]:
    """A line's code spans as they are, and the rest with every sign of markup made a plain letter."""
    at = 0
    runs = [(m.start(), m.end()) for m in re.finditer(r"`+", line)]
    while runs:
        start, end = runs.pop(0)
        if start < at:
            continue
        close = next(((s, e) for s, e in runs if e - s == end - start), None)
        yield _escape_markup(line[at:start])
        if close is None:
            yield "\\`" * (end - start)
            at = end
            continue
        yield line[start : close[1]].replace("<!--", f"<!{_ZERO_WIDTH_SPACE}--")
        at = close[1]
    yield _escape_markup(line[at:])


def _escape_markup(text: str) -> str:
    text = (
        text.replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )
    # GitHub draws what stands between dollars, code spans too, as a formula: of any size, colour and wording
    text = text.replace("$", "\\$")
    return _break_links(text.replace("[", "\\[").replace("]", "\\]"))


def _break_links(text: str) -> str:
    """Text in which GitHub finds no person, address, issue, formula or marker of ours."""
    text = text.replace("$", f"${_ZERO_WIDTH_SPACE}")
    text = (
        text.replace("@", f"@{_ZERO_WIDTH_SPACE}")
        .replace("://", f":{_ZERO_WIDTH_SPACE}//")
        .replace("<!--", f"<!{_ZERO_WIDTH_SPACE}--")
    )
    text = re.sub(r"(?i)\bwww\.", lambda m: f"{m[0][:-1]}{_ZERO_WIDTH_SPACE}.", text)
    return _ISSUE_SIGN.sub(lambda m: f"{m[0]}{_ZERO_WIDTH_SPACE}", defuse_ci_skips(text))


def _is_hidden(letter: str) -> bool:
    if (
        letter in _BLANK_CHARACTERS
        or "\ufe00" <= letter <= "\ufe0f"
        or "\U000e0100" <= letter <= "\U000e01ef"
    ):
        return True
    return unicodedata.category(letter)[0] == "C"
