"""Who is calling: an App by its JWT, an installation by its token, a person by theirs; and what they may do."""

from __future__ import annotations

import base64
import binascii
import json
import time
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from flask import request

from regreen_playground.things import App, Repository, Token, User
from regreen_playground.world import Refused, World, at_least, level

MAY_NOT = "Resource not accessible by integration"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking: an App (`token` None: by JWT), a person (`through` the App they signed in to), or nobody."""

    user: User | None = None
    app: App | None = None
    token: Token | None = None
    through: App | None = None


def identify(world: World) -> Caller:
    """Who the Authorization header says is calling.

    Raises:
        Refused: what it says is wrong or outdated (401).
    """
    kind, _, text = request.headers.get("Authorization", "").partition(" ")
    text = text.strip()
    if not text:
        return Caller()
    if kind.lower() == "basic":
        try:
            text = base64.b64decode(text).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            raise Refused(401, "Bad credentials") from None
    if text.count(".") == 2:
        return Caller(app=app_of_jwt(world, text))
    return of_token(world, text)


def of_token(world: World, text: str) -> Caller:
    """Whose token this is.

    Raises:
        Refused: nobody's, or too old (401), or the installation sleeps (403).
    """
    token = world.tokens.get(text)
    if token is not None:
        installation = token.installation
        if world.clock.now() >= token.expires or installation.id not in world.installations:
            raise Refused(401, "Bad credentials")
        if installation.suspended:
            raise Refused(403, "This installation has been suspended")
        return Caller(installation.app.bot, installation.app, token)
    if text in world.signed_in:
        app, person = world.signed_in[text]
        return Caller(person, through=app)
    for user in world.users.values():
        if user.token == text and user.type == "User":
            return Caller(user)
    raise Refused(401, "Bad credentials")


def app_of_jwt(world: World, text: str) -> App:
    """The App that signed this JWT with its key.

    Raises:
        Refused: signature, times or issuer do not hold (401).
    """
    undecodable = Refused(401, "A JSON web token could not be decoded")
    head, payload, signature = text.split(".")
    try:
        header, claims = json.loads(_unpad(head)), json.loads(_unpad(payload))
        signed = _unpad(signature)
    except (ValueError, binascii.Error):
        raise undecodable from None
    if not isinstance(header, dict) or not isinstance(claims, dict) or header.get("alg") != "RS256":
        raise undecodable
    issuer = str(claims.get("iss"))
    app = next((a for a in world.apps.values() if issuer in {str(a.id), a.client_id}), None)
    if app is None or not app.public_key:
        raise Refused(401, "Integration not found")
    key = load_pem_public_key(app.public_key)
    if not isinstance(key, RSAPublicKey):
        raise undecodable
    try:
        key.verify(signed, f"{head}.{payload}".encode(), PKCS1v15(), SHA256())
    except InvalidSignature:
        raise undecodable from None
    now, issued, expires = time.time(), claims.get("iat"), claims.get("exp")
    if not isinstance(expires, int) or expires <= now:
        said = "must be a numeric value representing the future time at which the assertion expires"
        raise Refused(401, f"'Expiration time' claim ('exp') {said}")
    if expires > now + 600 + 60:
        raise Refused(401, "'Expiration time' claim ('exp') is too far in the future")
    if not isinstance(issued, int) or issued > now + 60:
        said = "must be an Integer representing the time that the assertion was issued"
        raise Refused(401, f"'Issued at' claim ('iat') {said}")
    return app


def _unpad(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def the_app(caller: Caller) -> App:
    """The App that calls with its JWT.

    Raises:
        Refused: the call came with something else (401).
    """
    if caller.app is None or caller.token is not None:
        raise Refused(401, "A JSON web token could not be decoded")
    return caller.app


def the_token(caller: Caller) -> Token:
    """The installation token of this call.

    Raises:
        Refused: the call came with something else (401, 403).
    """
    if caller.token is None:
        raise Refused(403 if caller.user else 401, "Requires an installation access token")
    return caller.token


def visible(world: World, caller: Caller, full_name: str, needs: str, method: str) -> Repository:
    """The repository, if this caller may do what the route does.

    Raises:
        Refused: 404 where it must not even be known, 403 where only the permission is missing.
    """
    repository = world.repository(full_name)
    reading = method in {"GET", "HEAD"}
    if caller.token is not None:
        if not caller.token.covers(repository):
            if repository.private:
                raise Refused(404, "Not Found")
            if not reading:
                raise Refused(403, MAY_NOT)
            return repository
        if needs and not any(allows(caller.token.permissions, one) for one in needs.split()):
            raise Refused(403, MAY_NOT)
        return repository
    if caller.app is not None:
        raise Refused(401, "Bad credentials")
    if caller.user is None:
        if repository.private:
            raise Refused(404, "Not Found")
        if not reading:
            raise Refused(401, "Requires authentication")
        return repository
    if level(repository, caller.user) == "none":
        raise Refused(404, "Not Found")
    open_to_all = ("issues:", "pull_requests:")
    writes = not reading and not needs.startswith(open_to_all)
    if writes and not at_least(repository, caller.user, "write"):
        raise Refused(403, "Must have push access to repository")
    return repository


def allows(permissions: dict[str, str], need: str) -> bool:
    """Whether a set of permissions holds one "name:level"."""
    order = {"read": 1, "write": 2, "admin": 3}
    name, _, wanted = need.partition(":")
    if name == "metadata":
        return True
    return order.get(permissions.get(name, ""), 0) >= order[wanted]
