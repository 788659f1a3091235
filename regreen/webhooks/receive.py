"""The door in: checks a delivery's signature over the raw body, has it made durable, and answers."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flask import Blueprint, Request, Response, request
from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge

from regreen.errors import OutsideError
from regreen.webhooks.events import Event
from regreen.webhooks.parse import Malformed, parse

MAX_BODY = 25 * 1024 * 1024
RETRY_AFTER_S = 30

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One webhook delivery that passed the door. `id` is the same when GitHub delivers it again."""

    id: str
    name: str
    event: Event


Accept = Callable[[Delivery], bool]
"""Makes a delivery and its work durable in one transaction; False where it was there already.

Raises `OutsideError` where it cannot, so that GitHub is never told that a lost delivery arrived.
"""


def is_signed(body: bytes, signature: str, secrets: Sequence[str]) -> bool:
    """Whether `signature` ("sha256=HEX") was made with one of `secrets` over exactly `body`."""
    given = signature.encode("utf-8", "replace")
    matches = False
    for secret in secrets:
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        # every secret is tried, so that the time does not tell which one matched
        matches |= hmac.compare_digest(b"sha256=" + digest.encode(), given)
    return matches


def blueprint(*, secrets: Sequence[str], accept: Accept) -> Blueprint:
    """`POST /webhooks/github`, as docs/interface.md says. No secret: every delivery is refused."""
    door = Blueprint("webhooks", __name__)

    @door.post("/webhooks/github")
    def github() -> Response:
        return _answer(request, secrets, accept)

    return door


def _answer(incoming: Request, secrets: Sequence[str], accept: Accept) -> Response:
    # one more than the limit, or a body in chunks would be cut there and taken for whole
    incoming.max_content_length = MAX_BODY + 1
    try:
        body = incoming.get_data(cache=False)
    except RequestEntityTooLarge:
        return _say(413, "larger than 25 MiB")
    except ClientDisconnected:
        return _say(400, "the body was cut off")
    except OSError:
        return _say(400, "the body did not arrive, or not in time")
    if len(body) > MAX_BODY:
        return _say(413, "larger than 25 MiB")
    if not is_signed(body, incoming.headers.get("X-Hub-Signature-256", ""), secrets):
        return _say(401, "the signature does not match")
    return _read(incoming, body, accept)


def _read(incoming: Request, body: bytes, accept: Accept) -> Response:
    delivery_id = incoming.headers.get("X-GitHub-Delivery", "")
    name = incoming.headers.get("X-GitHub-Event", "")
    if not _is_id(delivery_id) or not name:
        return _say(400, "X-GitHub-Delivery or X-GitHub-Event is missing or malformed")
    try:
        event = parse(name, json.loads(body))
    except (Malformed, ValueError, RecursionError) as error:
        _log.warning("delivery %s (%s) refused: %s", delivery_id, name[:40], error)
        return _say(400, "malformed payload")
    if event is None:
        return Response(status=204)
    return _keep(Delivery(delivery_id, name, event), accept)


def _keep(delivery: Delivery, accept: Accept) -> Response:
    try:
        is_new = accept(delivery)
    except OutsideError:
        _log.exception("delivery %s could not be made durable", delivery.id)
        answer = _say(503, "cannot be stored now; deliver it again")
        answer.headers["Retry-After"] = str(RETRY_AFTER_S)
        return answer
    return _say(202, "accepted" if is_new else "duplicate")


def _is_id(text: str) -> bool:
    return 0 < len(text) <= 64 and all(c.isascii() and (c.isalnum() or c in "-_") for c in text)


def _say(status: int, text: str) -> Response:
    return Response(text + "\n", status=status, mimetype="text/plain")
