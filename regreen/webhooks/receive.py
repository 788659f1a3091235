"""The webhook endpoint: checks a delivery's signature over the raw body, stores the delivery, and answers."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flask import Blueprint, Request, Response, request
from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge

from regreen.domain.errors import OutsideError
from regreen.domain.events import Event
from regreen.webhooks.parse import MalformedPayload, parse

WEBHOOK_PATH = "/webhooks/github"
MAX_BODY_BYTES = 25 * 1024 * 1024
RETRY_AFTER_S = 30

_SIGNATURE_PATTERN = re.compile(r"sha256=[0-9a-f]{64}")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """One webhook delivery with a valid signature. `id` is the same when GitHub sends it again."""

    id: str
    name: str
    event: Event


AcceptDelivery = Callable[[WebhookDelivery], bool]
"""Makes a delivery and its work durable in one transaction; False where it was there already.

Raises `OutsideError` where it cannot, so that GitHub is never told that a lost delivery arrived.
"""


def is_well_formed(signature: str) -> bool:
    """Whether `signature` is well formed; a body with a malformed one is not read."""
    return _SIGNATURE_PATTERN.fullmatch(signature) is not None


def is_signed(body: bytes, signature: str, secrets: Sequence[str]) -> bool:
    """Whether `signature` ("sha256=HEX") was made with one of `secrets` over exactly `body`."""
    received = signature.encode("utf-8", "replace")
    matches = False
    for secret in secrets:
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        # every secret is tried, so that the time does not reveal which one matched
        matches |= hmac.compare_digest(b"sha256=" + digest.encode(), received)
    return matches


def make_blueprint(*, secrets: Sequence[str], accept: AcceptDelivery) -> Blueprint:
    """`POST /webhooks/github`, as in docs/interface.md. Without a secret every delivery is refused."""
    door = Blueprint("webhooks", __name__)

    @door.post(WEBHOOK_PATH)
    def github() -> Response:
        return _answer_request(request, secrets, accept)

    return door


def _answer_request(incoming: Request, secrets: Sequence[str], accept: AcceptDelivery) -> Response:
    # one more than the limit, so that a longer body or one in chunks is not cut and taken for whole
    incoming.max_content_length = MAX_BODY_BYTES + 1
    try:
        body = incoming.get_data(cache=False)
    except RequestEntityTooLarge:
        return _text_response(413, "larger than 25 MiB")
    except ClientDisconnected:
        return _text_response(400, "the body was cut off")
    except OSError:
        return _text_response(400, "the body did not arrive, or not in time")
    if len(body) > MAX_BODY_BYTES:
        return _text_response(413, "larger than 25 MiB")
    if not is_signed(body, incoming.headers.get("X-Hub-Signature-256", ""), secrets):
        return _text_response(401, "the signature does not match")
    return _read_delivery(incoming, body, accept)


def _read_delivery(incoming: Request, body: bytes, accept: AcceptDelivery) -> Response:
    delivery_id = incoming.headers.get("X-GitHub-Delivery", "")
    name = incoming.headers.get("X-GitHub-Event", "")
    if not _is_id(delivery_id) or not name:
        return _text_response(400, "X-GitHub-Delivery or X-GitHub-Event is missing or malformed")
    try:
        event = parse(name, json.loads(body))
    except (MalformedPayload, ValueError, RecursionError) as error:
        _log.warning("delivery %s (%s) refused: %s", delivery_id, name[:40], error)
        return _text_response(400, "malformed payload")
    if event is None:
        return Response(status=204)
    return _store_delivery(WebhookDelivery(delivery_id, name, event), accept)


def _store_delivery(delivery: WebhookDelivery, accept: AcceptDelivery) -> Response:
    try:
        is_new = accept(delivery)
    except OutsideError:
        _log.exception("delivery %s could not be stored", delivery.id)
        answer = _text_response(503, "cannot be stored now; deliver it again")
        answer.headers["Retry-After"] = str(RETRY_AFTER_S)
        return answer
    return _text_response(202, "accepted" if is_new else "duplicate")


def _is_id(text: str) -> bool:
    return 0 < len(text) <= 64 and all(c.isascii() and (c.isalnum() or c in "-_") for c in text)


def _text_response(status: int, text: str) -> Response:
    return Response(text + "\n", status=status, mimetype="text/plain")
