"""The App's own routes: who it is, where it is installed, its tokens, its deliveries, its registration."""

from __future__ import annotations

import secrets
from datetime import timedelta

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from regreen_playground.events import again
from regreen_playground.routes.callers import allows, the_app, the_token
from regreen_playground.routes.wire import Api, Call, Reply, RepoCall, counted, link_to, listed
from regreen_playground.shape import apps as shape
from regreen_playground.shape.people import full_user, permission_flags, repository
from regreen_playground.things import App, Delivery, Installation, Json, Token
from regreen_playground.world import Refused, World, slug_of

LIFE = timedelta(hours=1)


def new_key() -> tuple[str, bytes]:
    """A fresh RSA key: the private half in PEM, and the public half in PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private.decode(), public


def register(  # noqa: PLR0917 - an App's registration form, top to bottom
    world: World,
    name: str,
    owner: str,
    permissions: dict[str, str],
    events: tuple[str, ...],
    hook_url: str,
    secret: str,
    *,
    keys: tuple[str, bytes] | None = None,
) -> tuple[App, str]:
    """Register an App; it and its private key, which only the caller keeps."""
    private, public = keys or new_key()
    number, slug = world.new_id(), slug_of(name)
    app = App(
        id=number,
        slug=slug,
        name=name,
        owner=world.add_user(owner),
        bot=world.add_user(f"{slug}[bot]", "Bot"),
        client_id=f"Iv1.{number:016x}",
        permissions={"metadata": "read", **permissions},
        events=events,
        hook_url=hook_url,
        secret=secret,
        public_key=public,
        created=world.now(),
        client_secret=secrets.token_hex(20),
    )
    world.apps[number] = app
    return app, private


def routes(world: World) -> Api:
    """The routes."""
    api = Api(world, "apps")
    _identity(api)
    _installations(api)
    _people(api)
    _tokens(api)
    _deliveries(api)
    _registration(api)
    return api


def _identity(api: Api) -> None:
    @api.plain("GET", "/app")
    def get_app(call: Call) -> object:
        app = the_app(call.caller)
        mine = [one for one in call.world.installations.values() if one.app is app]
        return {**shape.integration(call.world, app), "installations_count": len(mine)}

    @api.plain("GET", "/apps/<slug>")
    def by_slug(call: Call, slug: str) -> object:
        return shape.integration(call.world, call.world.app_by_slug(slug))


def _installations(api: Api) -> None:
    @api.plain("GET", "/app/installations")
    def installations(call: Call) -> object:
        app = the_app(call.caller)
        mine = [one for one in call.world.installations.values() if one.app is app]
        return listed([shape.installation(call.world, one) for one in mine])

    @api.plain("GET", "/app/installations/<int:number>")
    def one_installation(call: Call, number: int) -> object:
        return shape.installation(call.world, _mine(call, number))

    @api.plain("DELETE", "/app/installations/<int:number>")
    def uninstall(call: Call, number: int) -> object:
        del call.world.installations[_mine(call, number).id]
        return Reply(204)

    @api.plain("GET", "/repos/<owner>/<repo>/installation")
    def of_repository(call: Call, owner: str, repo: str) -> object:
        app, found = the_app(call.caller), call.world.repository(f"{owner}/{repo}")
        for one in call.world.installations_on(found):
            if one.app is app:
                return shape.installation(call.world, one)
        raise Refused(404, "Not Found")

    def of_account(call: Call, login: str) -> object:
        app, account = the_app(call.caller), call.world.user(login)
        for one in call.world.installations.values():
            if one.app is app and one.account is account:
                return shape.installation(call.world, one)
        raise Refused(404, "Not Found")

    api.plain("GET", "/users/<login>/installation")(of_account)
    api.plain("GET", "/orgs/<login>/installation")(of_account)


def _people(api: Api) -> None:
    @api.plain("GET", "/users/<login>")
    def one_user(call: Call, login: str) -> object:
        return full_user(call.world, call.world.user(login))

    @api.plain("GET", "/user")
    def myself(call: Call) -> object:
        if call.caller.token is not None:
            raise Refused(403, "Resource not accessible by integration")
        return full_user(call.world, call.user)


def _tokens(api: Api) -> None:
    @api.plain("POST", "/app/installations/<int:number>/access_tokens")
    def create(call: Call, number: int) -> object:
        installation = _mine(call, number)
        if installation.suspended:
            raise Refused(403, "This installation has been suspended")
        body = call.body()
        permissions = _permissions(installation, body)
        token = Token(
            text=f"ghs_{installation.app.id}_{secrets.token_urlsafe(30)}",
            installation=installation,
            permissions=permissions,
            repositories=_repositories(call.world, installation, body),
            expires=call.world.now() + LIFE,
        )
        call.world.tokens[token.text] = token
        return Reply(201, shape.token(call.world, token))

    @api.plain("DELETE", "/installation/token")
    def revoke(call: Call) -> object:
        del call.world.tokens[the_token(call.caller).text]
        return Reply(204)

    @api.plain("GET", "/installation/repositories")
    def repositories(call: Call) -> object:
        token = the_token(call.caller)
        mine = [one for one in call.world.repositories.values() if token.covers(one)]
        write = allows(token.permissions, "contents:write")
        flags = permission_flags("write" if write else "read")
        shown = [{**repository(call.world, one), "permissions": flags} for one in mine]
        chosen = "all" if token.repositories is None else "selected"
        return counted("repositories", shown, repository_selection=chosen)

    @api.on("GET", "/collaborators/<login>/permission", "metadata:read")
    def permission(call: RepoCall, login: str) -> object:
        from regreen_playground.world import level

        who = call.world.user(login)
        word = level(call.repo, who)
        coarse = {"maintain": "write", "triage": "read"}.get(word, word)
        shown = {
            **full_user(call.world, who),
            "permissions": permission_flags(word),
            "role_name": word,
        }
        return {"permission": coarse, "role_name": word, "user": shown}

    @api.on("GET", "/collaborators/<login>", "metadata:read")
    def is_collaborator(call: RepoCall, login: str) -> object:
        if login.lower() == call.repo.owner.login.lower() or (
            login.lower() in call.repo.collaborators
        ):
            return Reply(204)
        raise Refused(404, "Not Found")


def _deliveries(api: Api) -> None:
    @api.plain("GET", "/app/hook/config")
    def config(call: Call) -> object:
        app = the_app(call.caller)
        return {
            "content_type": "json",
            "insecure_ssl": "0",
            "secret": "********",
            "url": app.hook_url,
        }

    @api.plain("PATCH", "/app/hook/config")
    def set_config(call: Call) -> object:
        app, body = the_app(call.caller), call.body()
        app.hook_url = str(body.get("url", app.hook_url))
        app.secret = str(body.get("secret", app.secret))
        return {"content_type": "json", "insecure_ssl": "0", "url": app.hook_url}

    @api.plain("GET", "/app/hook/deliveries")
    def deliveries(call: Call) -> object:
        done = [one for one in the_app(call.caller).deliveries if one.status != "pending"][::-1]
        wanted = call.asked("status")
        if wanted:
            done = [one for one in done if (one.status_code < 400) == (wanted == "success")]
        cursor, size = call.asked("cursor"), min(int(call.asked("per_page", "30")), 100)
        if cursor:
            if not cursor.startswith("v1_") or not cursor[3:].isdecimal():
                raise Refused(422, "Invalid cursor")
            done = [one for one in done if one.id < int(cursor[3:])]
        part = done[:size]
        headers = {}
        if len(done) > size:
            following = link_to(cursor=f"v1_{part[-1].id}")
            headers["Link"] = f'<{following}>; rel="next"'
        return Reply(200, [shape.delivery_item(one) for one in part], headers)

    @api.plain("GET", "/app/hook/deliveries/<int:number>")
    def one_delivery(call: Call, number: int) -> object:
        return shape.delivery(_delivery(the_app(call.caller), number))

    @api.plain("POST", "/app/hook/deliveries/<int:number>/attempts")
    def redeliver(call: Call, number: int) -> object:
        again(call.world, _delivery(the_app(call.caller), number))
        return Reply(202, {})


def _registration(api: Api) -> None:
    @api.plain("POST", "/app-manifests/<code>/conversions")
    def convert(call: Call, code: str) -> object:
        manifest = call.world.manifests.pop(code, None)
        if manifest is None:
            raise Refused(404, "Not Found")
        hook = manifest.get("hook_attributes")
        url = str(hook.get("url", "")) if isinstance(hook, dict) else ""
        wanted = manifest.get("default_permissions")
        events = manifest.get("default_events")
        secret = secrets.token_hex(20)
        app, pem = register(
            call.world,
            str(manifest.get("name") or "my-app"),
            str(manifest.get("owner") or "octocat"),
            {str(k): str(v) for k, v in wanted.items()} if isinstance(wanted, dict) else {},
            tuple(str(one) for one in events) if isinstance(events, list) else (),
            url,
            secret,
        )
        keys: Json = {
            "client_secret": app.client_secret,
            "webhook_secret": secret,
            "pem": pem,
        }
        return Reply(201, {**shape.integration(call.world, app), **keys})

    @api.plain("GET", "/rate_limit")
    def rate_limit(call: Call) -> object:
        rate: Json = {
            "limit": 5000,
            "used": 1,
            "remaining": 4999,
            "reset": int(call.world.clock.now().timestamp()) + 3600,
        }
        resources = {"core": rate, "search": {**rate, "limit": 30}, "graphql": rate}
        return {"resources": resources, "rate": rate}

    @api.plain("GET", "/meta")
    def meta(call: Call) -> object:  # noqa: ARG001 - every view takes the call
        return {"verifiable_password_authentication": False, "hooks": ["127.0.0.1/32"]}


def _mine(call: Call, number: int) -> Installation:
    app = the_app(call.caller)
    found = call.world.installations.get(number)
    if found is None or found.app is not app:
        raise Refused(404, "Not Found")
    return found


def _delivery(app: App, number: int) -> Delivery:
    for one in app.deliveries:
        if one.id == number:
            return one
    raise Refused(404, "Not Found")


def _permissions(installation: Installation, body: Json) -> dict[str, str]:
    asked = body.get("permissions")
    if asked is None:
        return dict(installation.permissions)
    if not isinstance(asked, dict):
        raise Refused(422, "The permissions requested are invalid.")
    for name, wanted in asked.items():
        known = wanted in {"read", "write", "admin"}
        if not known or not allows(installation.permissions, f"{name}:{wanted}"):
            raise Refused(422, "The permissions requested are not granted to this installation.")
    return {"metadata": "read", **{str(name): str(wanted) for name, wanted in asked.items()}}


def _repositories(world: World, installation: Installation, body: Json) -> set[int] | None:
    ids, names = body.get("repository_ids"), body.get("repositories")
    if ids is None and names is None:
        return installation.repositories
    chosen = set(ids) if isinstance(ids, list) else set()
    known = {one.id: one for one in world.repositories.values() if installation.covers(one)}
    for name in names if isinstance(names, list) else []:
        chosen |= {one.id for one in known.values() if one.name == name} or {-1}
    if not chosen or not chosen <= known.keys():
        said = "There is at least one repository that does not exist or is not accessible to"
        raise Refused(422, f"{said} the parent installation.")
    return chosen
