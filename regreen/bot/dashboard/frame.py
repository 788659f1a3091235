"""What is around every page: the head, the menu, the policy that lets nothing foreign run."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import urlencode

from flask import Response, request

from regreen.bot.dashboard.html import Content, Safe, link, tag, text
from regreen.bot.dashboard.reader import FIELD, Reader
from regreen.bot.dashboard.style import SCRIPT, STYLE


def _hash(block: str) -> str:
    return "'sha256-" + b64encode(hashlib.sha256(block.encode()).digest()).decode() + "'"


POLICY = (
    f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; connect-src 'self'; "
    "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_MENU = (
    ("/", "Overview"),
    ("/jobs", "Jobs"),
    ("/reviews", "Reviews"),
    ("/fixes", "Fixes"),
    ("/bisections", "Bisections"),
    ("/deliveries", "Deliveries"),
    ("/calibration", "Calibration"),
    ("/ledger", "Cost"),
    ("/audit", "Audit"),
)


def page(title: str, *body: Content, reader: Reader | None, status: int = 200) -> Response:
    """A whole page. Without a reader (nobody has signed in) it has no menu."""
    here = request.path
    menu = [
        link(path, name, aria_current="page" if path == here else None)
        for path, name in (_MENU if reader else ())
    ]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} · Regreen"),
        Safe(f"<style>{STYLE}</style>"),
    )
    top = tag(
        "header",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag("strong", "Regreen"),
        tag("nav", *menu, aria_label="Pages") if menu else "",
        _who(reader),
    )
    main = tag("main", tag("h1", title), *body, id="content")
    whole = tag("html", head, tag("body", top, main, Safe(f"<script>{SCRIPT}</script>")), lang="en")
    return guarded(Response("<!doctype html>\n" + whole, status, mimetype="text/html"))


def guarded(answer: Response) -> Response:
    """The answer with the headers that keep a browser from doing more than it should."""
    answer.headers["Content-Security-Policy"] = POLICY
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Referrer-Policy"] = "same-origin"  # our own forms show where they come from
    answer.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    answer.headers["Cache-Control"] = "no-store"
    return answer


def act(reader: Reader, to: str, label: str) -> Safe:
    """A form of one button, which only our own pages can send."""
    return tag(
        "form",
        tag("input", type="hidden", name=FIELD, value=reader.form_token()),
        tag("button", label),
        method="post",
        action=to,
        class_="act",
    )


def filters(fields: Mapping[str, tuple[str, ...]], hint: str = "") -> Safe:
    """The form above a list: a choice where a field has options, else a text; all of it goes into the address."""
    parts: list[Safe] = []
    for name, options in fields.items():
        value = request.args.get(name, "")
        label = tag("span", _LABELS.get(name, name))
        if options:
            choices = [tag("option", "any", value="")]
            for one in options:
                chosen = {"selected": "selected"} if one == value else {}
                choices.append(tag("option", one, value=one, **chosen))
            parts.append(tag("label", label, tag("select", *choices, name=name)))
        else:
            kind = "search" if name == "q" else "text"
            box = tag("input", type=kind, name=name, value=value, placeholder=hint if name == "q" else None)  # fmt: skip
            parts.append(tag("label", label, box))
    return tag("form", *parts, tag("button", "Show"), method="get", class_="filters", role="search")


def pager(after: str) -> Safe:
    """The way to the next page, with the filters as they are; and back to the newest."""
    kept = {k: v for k, v in request.args.items() if k != "after" and v}
    links: list[Content] = []
    if request.args.get("after"):
        links += [link(request.path + ("?" + urlencode(kept) if kept else ""), "Newest"), " "]
    if after:
        links.append(link(f"{request.path}?{urlencode({**kept, 'after': after})}", "Older", rel="next"))  # fmt: skip
    return tag("p", *links, class_="pager") if links else Safe("")


def _who(reader: Reader | None) -> Safe:
    if reader is None or not reader.session:
        return Safe("")
    return text(tag("span", reader.name), act(reader, "/sign-out", "Sign out"))


_LABELS = {"q": "words", "repo": "repository", "number": "issue or pull request"}
