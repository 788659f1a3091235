"""How a page is rendered, and for whom: the templates, their filters, and the policy that lets nothing foreign run."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from typing import Any
from urllib.parse import urlencode

from flask import Response, g, request
from jinja2 import ChainableUndefined, Environment, PackageLoader
from markupsafe import Markup

from regreen.bisect.report import RUN_PARTS
from regreen.bot.messages.causes import advise, is_unreproduced, may_be_made_flaky
from regreen.domain.text_limits import format_seconds
from regreen.packages.lock_edits import PackageUpgrade
from regreen.reviewers.summary import WITHHELD_WORDS, describe_on_base
from regreen.secrets.markdown_sanitizer import count_noun, describe_confidence
from regreen.secrets.redaction import redact_secrets

RESULT_TITLES = {
    "review": "Review",
    "fix": "Fix",
    "bisect": "Bisection",
    "why": "Red check",
    "prove": "Proof",
}
JOB_TITLES = {
    "why": "red check",
    "prove": "proof",
    "bisect": "bisection",
    "tick": "scheduled run",
    "care": "maintenance",
}
_CAUSE_WORDS = {
    "change": "the change",
    "main": "the base branch",
    "world": "a package",
    "neighbour": "another change",
    "infrastructure": "the CI machine",
    "flaky": "a flaky test",
    "unknown": "not found",
}
FORM_TOKEN_FIELD = "form_token"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody who may look. `reads` None is the operator, who sees everything.

    `secret` is what the tokens in their forms are made from; `session` is where their sign-in is kept.
    """

    name: str
    secret: bytes
    reads: frozenset[str] | None = None
    writes: frozenset[str] = frozenset()
    session: str = ""

    @property
    def repos(self) -> tuple[str, ...] | None:
        """The repositories to show, None for all."""
        return None if self.reads is None else tuple(sorted(self.reads))

    def may_see(self, repo: str | None) -> bool:
        """Whether what belongs to a repository may be shown; what belongs to none is the operator's."""
        return self.reads is None or repo in self.reads

    def may_act(self, repo: str | None) -> bool:
        """Whether this reader may cancel and repeat what belongs to a repository: as GitHub's right to write."""
        return self.reads is None or repo in self.writes

    def form_token(self) -> str:
        """What a form of ours carries, and a page of somebody else cannot know."""
        return hmac.new(self.secret, b"form:" + self.name.encode(), hashlib.sha256).hexdigest()

    def has_form_token(self, token: str) -> bool:
        """Whether a form comes from one of this reader's pages."""
        return hmac.compare_digest(token.encode(), self.form_token().encode())


_TEMPLATE_FOLDER = resources.files("regreen.dashboard").joinpath("templates")
# Both stand in each page and are allowed by their hash.
_STYLE_SHEET = _TEMPLATE_FOLDER.joinpath("style.css").read_text("utf-8")
_PAGE_SCRIPT = _TEMPLATE_FOLDER.joinpath("page.js").read_text("utf-8")


def _csp_hash(block: str) -> str:
    return "'sha256-" + b64encode(hashlib.sha256(block.encode()).digest()).decode() + "'"


_CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src {_csp_hash(_STYLE_SHEET)}; script-src {_csp_hash(_PAGE_SCRIPT)}; connect-src 'self'; "
    "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def render_page(
    template: str, title: str, reader: Viewer | None, *, status: int = 200, **values: object
) -> Response:
    """A whole page from a template. Without a reader (nobody has signed in) it has no menu."""
    page = _ENVIRONMENT.get_template(template).render(
        title=title,
        reader=reader,
        here=request.path,
        arguments=request.args,
        **{"web_url": g.get("web_url", ""), "observes": g.get("observes"), **values},
    )
    return add_security_headers(Response(page, status, mimetype="text/html"))


def render_message(
    title: str,
    message: str,
    reader: Viewer | None,
    *,
    status: int = 200,
    link: tuple[str, str] | None = None,
) -> Response:
    """A page of one sentence, with the address and the words of a link below it."""
    return render_page("message.html", title, reader, status=status, message=message, link=link)


def add_security_headers(answer: Response) -> Response:
    """The answer with the headers that keep a browser from doing more than it should."""
    answer.headers["Content-Security-Policy"] = _CONTENT_SECURITY_POLICY
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Referrer-Policy"] = "same-origin"  # our own forms show where they come from
    answer.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    answer.headers["Cache-Control"] = "no-store"
    return answer


def format_subject(repo: str | None, number: int | None) -> str:
    """A repository, or an issue or pull request of one."""
    return (repo or "") if number is None else f"{repo}#{number}"


def format_json(document: str) -> str:
    """A JSON document for people, without credentials."""
    return redact_secrets(json.dumps(json.loads(document), indent=2, ensure_ascii=False))


def name_cause(cause: Mapping[str, Any]) -> str:
    """Who or what caused a failed check."""
    verdict = str(cause.get("verdict") or "unknown").replace("_", " ")
    if cause.get("checks") == []:  # it was asked for where no check had failed
        return "nothing failed"
    if is_unreproduced(cause):
        return "a flaky test or CI's environment"
    if may_be_made_flaky(cause):
        return "a flaky test, perhaps made so by the change"
    return _CAUSE_WORDS.get(verdict, verdict)


def _format_dollars(value: object) -> str:
    """An amount; nothing where nothing was spent."""
    usd = _parse_number(value)
    return f"${usd:,.3f}" if usd else ""


def _format_time(at: datetime) -> Markup:
    """A time, in UTC; the page's script shows it in the reader's zone."""
    shown = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    # a first page has 800 of them, and escaping takes most of the time; neither part can hold markup
    return Markup(f'<time datetime="{at.isoformat()}">{shown}</time>')  # noqa: S704


def _format_document_time(value: object) -> Markup | str:
    """A time of a document; as it stands there where it is none."""
    try:
        return _format_time(datetime.fromisoformat(str(value)))
    except ValueError:
        return str(value or "")


def _format_prose(text: object) -> Markup:
    """Text with what stands between backticks set as code; nothing else of it is markup."""
    parts = re.split(r"`([^`\n]+)`", str(text or ""))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts)
    )


def _describe_event(text: str) -> str:
    """What happened to which issue or pull request, and by whom, as far as a stored event says so."""
    event = json.loads(text)
    number, actor = event.get("number"), event.get("actor") or {}
    parts = (
        event.get("change"),
        f"#{number}" if number else "",
        f"by {actor['login']}" if actor.get("login") else "",
    )
    return " ".join(str(part) for part in parts if part)


def _format_share(value: object, digits: int = 2) -> str:
    return f"{value:.{digits}%}" if isinstance(value, int | float) else ""


def _format_count(value: object, noun: str) -> str:
    return count_noun(int(_parse_number(value)), noun)


def _list_mappings(value: object) -> list[Mapping[str, object]]:
    """The objects in a list of a document; none where it is no list."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list | tuple) else []


def _cut_size(text: object) -> str:
    """What a review says of a file, without the size at its end."""
    return re.sub(r"(?:^|[;,] )\+\d+ -\d+$", "", str(text))


def _number_steps(value: object) -> list[tuple[int, str]]:
    """The lines of a trail that say something, each with its place in the trail."""
    lines = [str(line) for line in value] if isinstance(value, list | tuple) else []
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _parse_number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _make_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("regreen.dashboard"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=ChainableUndefined,  # a result's document may lack any key
        finalize=lambda value: "" if value is None else value,
    )
    environment.globals |= {
        "describe_on_base": describe_on_base,
        "enumerate": enumerate,
        "form_token_field": FORM_TOKEN_FIELD,
        "format_subject": format_subject,
        "job_titles": JOB_TITLES,
        "package_upgrade": PackageUpgrade,
        "result_titles": RESULT_TITLES,
        "run_parts": RUN_PARTS,
        "script": Markup(_PAGE_SCRIPT),  # noqa: S704 - our own file
        "withheld_words": WITHHELD_WORDS,
        "style_sheet": Markup(_STYLE_SHEET),  # noqa: S704 - our own file
    }
    environment.filters |= {
        "advice": advise,
        "cause": name_cause,
        "class_name": lambda word: "".join(c for c in str(word) if c.isalnum()),
        "confidence": describe_confidence,
        "count": _format_count,
        "event": _describe_event,
        "document_time": _format_document_time,
        "dollars": _format_dollars,
        "mappings": _list_mappings,
        "number": _parse_number,
        "numbered_steps": _number_steps,
        "prose": _format_prose,
        "query": lambda values: urlencode({k: v for k, v in values.items() if v}),
        "redact": redact_secrets,
        "seconds": lambda value: format_seconds(_parse_number(value)) if value else "",
        "share": _format_share,
        "time": _format_time,
        "without_size": _cut_size,
    }
    return environment


_ENVIRONMENT = _make_environment()
