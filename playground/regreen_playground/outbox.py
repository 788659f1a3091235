"""Sends what is in the outbox: signed over the raw bytes, with the headers GitHub sends, answers kept."""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import requests

from regreen_playground.things import Delivery
from regreen_playground.world import World

TIME_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the hook's receiver answered."""

    status: int
    headers: Mapping[str, str]
    body: str


Transport = Callable[[str, Mapping[str, str], bytes], Answer]


def over_http(url: str, headers: Mapping[str, str], body: bytes) -> Answer:
    """Post for real, with GitHub's time limit."""
    got = requests.post(url, data=body, headers=dict(headers), timeout=TIME_LIMIT_S)
    return Answer(got.status_code, dict(got.headers), got.text[:10_000])


def headers_for(delivery: Delivery) -> dict[str, str]:
    """The headers of one delivery, signatures included."""
    key = delivery.app.secret.encode()
    return {
        "Accept": "*/*",
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/playground",
        "X-GitHub-Delivery": delivery.guid,
        "X-GitHub-Event": delivery.event,
        "X-GitHub-Hook-ID": str(delivery.app.id),
        "X-GitHub-Hook-Installation-Target-ID": str(delivery.app.id),
        "X-GitHub-Hook-Installation-Target-Type": "integration",
        "X-Hub-Signature": "sha1=" + hmac.new(key, delivery.body, hashlib.sha1).hexdigest(),
        "X-Hub-Signature-256": "sha256=" + hmac.new(key, delivery.body, hashlib.sha256).hexdigest(),
    }


def send(world: World, delivery: Delivery, transport: Transport) -> None:
    """Deliver once and keep what was answered; a receiver that is away is recorded, never raised."""
    delivery.headers = headers_for(delivery)
    began = world.clock.monotonic()
    try:
        answer = transport(delivery.app.hook_url, delivery.headers, delivery.body)
    except requests.Timeout:
        delivery.status, delivery.status_code = "timed out", 504
    except requests.RequestException as error:
        delivery.status, delivery.status_code = "failed to connect to host", 502
        delivery.response = type(error).__name__
    else:
        delivery.status_code = answer.status
        delivery.status = "OK" if answer.status < 300 else f"Invalid HTTP Response: {answer.status}"
        delivery.response_headers = dict(answer.headers)
        delivery.response = answer.body
    delivery.duration = round(world.clock.monotonic() - began, 2)


def flush(world: World, transport: Transport) -> int:
    """Deliver everything that waits, in order; how many that were."""
    sent = 0
    while True:
        with world.lock:
            if not world.outbox:
                world.posted.clear()
                return sent
            delivery = world.outbox.pop(0)
        if delivery.app.hook_url:
            send(world, delivery, transport)
            sent += 1


class Postman:
    """Delivers in the background until it is told to stop."""

    def __init__(self, world: World, transport: Transport = over_http) -> None:
        self._world = world
        self._transport = transport
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._walk, name="playground-postman", daemon=True)
        self._thread.start()

    def _walk(self) -> None:
        while not self._over.is_set():
            self._world.posted.wait(0.5)
            if not self._over.is_set():
                flush(self._world, self._transport)

    def close(self) -> None:
        """Stop after the delivery under way."""
        self._over.set()
        self._world.posted.set()
        self._thread.join(timeout=TIME_LIMIT_S + 1)
