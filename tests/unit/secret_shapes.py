"""Credentials of every shape, drawn anew for each run: nothing here is one, and no scanner takes it for one."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable

_ALL = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_BASE32 = string.ascii_uppercase + "234567"


def shapes(seed: int) -> dict[str, tuple[str, str]]:
    """By name: a text with a gap, and the secret that belongs there."""
    dice = random.Random(seed)

    def some(length: int, letters: str = _ALL) -> str:
        return "".join(dice.choice(letters) for _ in range(length))

    def packed(size: int) -> str:
        return base64.urlsafe_b64encode(dice.randbytes(size)).decode().rstrip("=")

    web_token = ".".join(("eyJ" + packed(20), "eyJ" + packed(40), packed(32)))
    hex40: Callable[[], str] = lambda: some(40, _HEX)  # noqa: E731 - a name for what is drawn often
    found = {
        **{
            prefix: ("{}", f"{prefix}_{some(36)}") for prefix in ("ghp", "gho", "ghu", "ghs", "ghr")
        },
        "GitHub, new": ("{}", f"ghs_123456_{web_token}"),
        "GitHub, fine-grained": ("{}", f"github_pat_{some(22)}_{some(59)}"),
        "GitHub, old, named": ("GITHUB_TOKEN={}", hex40()),
        "GitHub, old, header": ("Authorization: token {}", hex40()),
        "GitHub, old, URL": ("https://{}@github.com/o/r.git", hex40()),
        "GitHub, old, OAuth": ("https://{}:x-oauth-basic@github.com/o/r", hex40()),
        "GitHub, old, query": ("https://api.github.com/user?access_token={}", hex40()),
        "GitHub, old, App": ("https://x-access-token:{}@github.com/o/r.git", f"v1.{hex40()}"),
        "Anthropic": ("{}", f"sk-ant-api03-{some(93)}AA"),
        "Anthropic, OAuth": ("{}", f"sk-ant-oat01-{some(80)}"),
        "OpenAI": ("{}", f"sk-proj-{some(60)}"),
        "AWS": ("{}", "AKIA" + some(16, _BASE32)),
        "AWS, passing": ("{}", "ASIA" + some(16, _BASE32)),
        "AWS, secret": ("aws_secret_access_key = {}", some(40)),
        "Google": ("{}", "AIza" + some(35)),
        "Google, OAuth": ("{}", "GOCSPX-" + some(28)),
        "Slack": ("{}", f"xoxb-{some(12, string.digits)}-{some(12, string.digits)}-{some(24)}"),
        "Slack, App": ("{}", f"xapp-1-A{some(10)}-{some(13, string.digits)}-{some(64, _HEX)}"),
        "Stripe": ("{}", "sk_live_" + some(24)),
        "npm": ("{}", "npm_" + some(36)),
        "PyPI": ("{}", "pypi-AgEIcHlwaS5vcmc" + some(100)),
        "GitLab": ("{}", "glpat-" + some(20)),
        "Hugging Face": ("{}", "hf_" + some(34)),
        "SendGrid": ("{}", f"SG.{some(22)}.{some(43)}"),
        "Docker Hub": ("{}", "dckr_pat_" + some(27)),
        "DigitalOcean": ("{}", "dop_v1_" + some(64, _HEX)),
        "JSON web token": ("{}", web_token),
        "URL": ("postgresql://bot:{}@db.corp.net:5432/x", some(14)),
        "URL without a user": ("redis://:{}@cache.corp.net:6379/0", some(20)),
        "bearer": ("Authorization: Bearer {}", some(40)),
        "basic": ("authorization: basic {}", packed(24)),
        "header in JSON": ('{{"Authorization": "Bearer {}"}}', some(40)),
        "header in Python": ("{{'Authorization': 'token {}'}}", hex40()),
        "key in a header": ("x-api-key: {}", some(40)),
        "password": ("password={}", some(16) + "7"),
        "password in YAML": ("password: {}", some(16) + "7"),
        "secret in JSON": ('"client_secret": "{}"', hex40()),
        "webhook's secret": ("REGREEN_WEBHOOK_SECRET={}", some(40)),
        "cookie": ("Set-Cookie: session={}", some(43)),
        "netrc": ("machine github.com login bot password {}", some(24) + "7"),
        "curl": ("curl -u bot:{} https://x.corp.net/z", some(18) + "7"),
        "query": ("https://x.corp.net/a?token={}&b=1", some(32)),
        "Azure": ("AccountKey={};EndpointSuffix=core.windows.net", packed(64)),
    }
    for kind in ("RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY"):
        body = "\n".join(packed(48) for _ in range(5))
        found[kind] = (f"-----BEGIN {kind}-----\n{{}}\n-----END {kind}-----", body)
    return found


AROUND = (
    "{}",
    "it failed with {} and then stopped",
    'value "{}" is wrong',
    "2026-11-21T10:00:00Z ERROR fetch: {}",
    "`{}`",
)


def leaks(text: str, secret: str) -> bool:
    """Whether the secret, or most of a line of it, is in the text."""
    return any(line in text or line[4:-4] in text for line in secret.split("\n"))
