"""Sends a JSON document to an address that the operator names."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import requests

from regreen.domain.errors import OutsideError

_TIMEOUT_S = 15


def post_json(url: str, body: Mapping[str, object]) -> None:
    """Post a document; the address, which may be a secret, is in no message.

    Raises:
        OutsideError: it cannot be reached, or refuses.
    """
    try:
        requests.post(url, json=body, timeout=_TIMEOUT_S).raise_for_status()
    except requests.RequestException as error:
        response = error.response
        what = f"answers {response.status_code}" if response is not None else "does not answer"
        message = f"{urlsplit(url).hostname} {what}"
        raise OutsideError(message) from None
