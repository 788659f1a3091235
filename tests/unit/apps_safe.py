"""Small applications whose input is checked as people check it: listed, parsed, matched, resolved, signed, escaped."""

from __future__ import annotations

CASES: list[tuple[str, str]] = [
    (
        "command-injection",
        """\
import shlex
import subprocess

from flask import Flask, abort, jsonify, request

app = Flask(__name__)


@app.post("/tools/ping")
def ping():
    host = (request.get_json(silent=True) or {}).get("host", "")
    if host.startswith("-"):
        abort(400)
    command = f"ping -c 2 {shlex.quote(host)} | tail -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=10)
    return jsonify(output=done.stdout)
""",
    ),
    (
        "sql-injection",
        """\
from django.db import connection
from django.http import HttpResponseBadRequest, JsonResponse
from django.views import View


class OrderReport(View):
    sortable = {"date": "created_at", "total": "total", "customer": "customer_id"}

    def get(self, request):
        column = self.sortable.get(request.GET.get("sort", "date"))
        if column is None:
            return HttpResponseBadRequest("cannot sort by that")
        direction = "DESC" if request.GET.get("desc") else "ASC"
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT id, total FROM orders WHERE owner_id = %s ORDER BY {column} {direction}", [request.user.pk])
            return JsonResponse({"orders": cursor.fetchall()})
""",
    ),
    (
        "path-traversal",
        """\
from pathlib import Path

from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse

app = FastAPI()
UPLOADS = Path("/srv/uploads").resolve()


@app.get("/files/{name:path}")
async def download(name: str):
    target = (UPLOADS / name).resolve()
    if not target.is_relative_to(UPLOADS):
        raise HTTPException(404)
    if not target.is_file():
        raise HTTPException(404)
    return FileResponse(target)
""",
    ),
    (
        "ssrf",
        """\
from urllib.parse import urlsplit

import httpx
from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, field_validator

router = APIRouter()
TRUSTED = frozenset({"hooks.slack.com", "discord.com"})


class Hook(BaseModel):
    url: str


def trusted(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.hostname not in TRUSTED:
        raise HTTPException(422, "not a host we talk to")
    return url


@router.post("/test")
async def test_hook(hook: Hook):
    url = trusted(hook.url)
    async with httpx.AsyncClient(timeout=5) as client:
        answer = await client.post(url, json={"ping": True})
    return {"status": answer.status_code}
""",
    ),
    (
        "xss",
        """\
from html import escape

from flask import Blueprint, make_response, request
from markupsafe import Markup

bp = Blueprint("search", __name__)


def badge(label):
    return Markup("<span class='badge'>{}</span>").format(label)


@bp.route("/search")
def search():
    term = request.args.get("q", "")
    body = f"<p>Nothing found for <b>{escape(term)}</b> {badge(request.args.get('tag', ''))}</p>"
    return make_response("<html><body>" + body + "</body></html>")
""",
    ),
    (
        "open-redirect",
        """\
from django.contrib.auth import login
from django.http import HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme

from .forms import LoginForm


def safe_target(request):
    target = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(target, allowed_hosts={request.get_host()}, require_https=request.is_secure()):
        return target
    return "/"


def sign_in(request):
    form = LoginForm(request, data=request.POST)
    if form.is_valid():
        login(request, form.get_user())
    return HttpResponseRedirect(safe_target(request))
""",
    ),
    (
        "unsafe-deserialization",
        """\
import base64
import binascii
import hmac
import json
import os
import pickle

from flask import Flask, request, session

app = Flask(__name__)
KEY = os.environ["CART_KEY"].encode()


def load_cart(raw):
    try:
        return json.loads(base64.urlsafe_b64decode(raw))
    except (ValueError, binascii.Error):
        return {}


def load_cache(name):
    with open(f"/var/cache/shop/{name}.pkl", "rb") as file:
        return pickle.load(file)


@app.before_request
def restore_cart():
    raw = request.cookies.get("cart")
    session["cart"] = load_cart(raw) if raw else {}
    session["prices"] = load_cache("prices")
""",
    ),
    (
        "template-injection",
        """\
from flask import Flask, render_template_string, request

app = Flask(__name__)

TEMPLATES = {"short": "<p>{{ text }}</p>", "long": "<div><p>{{ text }}</p><small>{{ author }}</small></div>"}


@app.route("/preview", methods=["POST"])
def preview():
    kind = request.form.get("kind", "short")
    template = TEMPLATES.get(kind, TEMPLATES["short"])
    return render_template_string(template, text=request.form.get("text", ""), author=request.form.get("author"))
""",
    ),
    (
        "code-injection",
        """\
import ast
import operator

from aiohttp import web

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
routes = web.RouteTableDef()


def evaluate(node):
    match node:
        case ast.Expression(body):
            return evaluate(body)
        case ast.Constant(value) if isinstance(value, (int, float)):
            return value
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](evaluate(left), evaluate(right))
    raise ValueError("not arithmetic")


@routes.post("/calc")
async def calculate(request):
    data = await request.json()
    try:
        result = evaluate(ast.parse(data["expression"], mode="eval"))
        settings = ast.literal_eval(data.get("settings", "{}"))
    except (SyntaxError, ValueError) as error:
        raise web.HTTPBadRequest(text=str(error)) from error
    return web.json_response({"result": result, "settings": list(settings)})
""",
    ),
    (
        "sql-injection",
        """\
import sqlite3

from flask import Flask, abort, jsonify, request

app = Flask(__name__)
COLUMNS = {"name", "price", "colour"}


def where(filters):
    unknown = set(filters) - COLUMNS
    if unknown:
        abort(400, f"unknown filters: {sorted(unknown)}")
    clause = " AND ".join(f"{key} = ?" for key in filters)
    return clause or "1 = 1", list(filters.values())


@app.get("/products")
def products():
    clause, values = where(request.args.to_dict())
    with sqlite3.connect("shop.db") as db:
        return jsonify(db.execute("SELECT * FROM products WHERE " + clause, values).fetchall())
""",
    ),
    (
        "path-traversal",
        """\
from pathlib import Path

from django.conf import settings
from django.http import HttpResponse
from rest_framework.decorators import api_view
from werkzeug.utils import secure_filename


@api_view(["POST"])
def import_logo(request):
    upload = request.FILES["logo"]
    name = secure_filename(upload.name)
    destination = Path(settings.MEDIA_ROOT) / "logos" / name
    with open(destination, "wb") as out:
        for chunk in upload.chunks():
            out.write(chunk)
    return HttpResponse(status=201)
""",
    ),
    (
        "command-injection",
        """\
import argparse
import subprocess
import sys


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("database", choices=["shop", "users"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--extra", nargs="*", default=[])
    options = parser.parse_args(argv)
    subprocess.run(f"pg_dump -j {options.jobs} {options.database} > /backup/{options.database}.sql", shell=True, check=True)
    subprocess.run(["rsync", "-a", "/backup/", "--", *options.extra], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
""",
    ),
    (
        "xxe",
        """\
import defusedxml.ElementTree as safe
from fastapi import FastAPI, Request
from lxml import etree

app = FastAPI()
PARSER = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)


@app.post("/invoices")
async def upload(request: Request):
    body = await request.body()
    if request.headers.get("x-strict"):
        return {"number": safe.fromstring(body).findtext("number")}
    return {"number": etree.fromstring(body, parser=PARSER).findtext("number")}
""",
    ),
    (
        "ldap-injection",
        """\
import re

import ldap3
from flask import Flask, abort, jsonify
from ldap3.utils.conv import escape_filter_chars

app = Flask(__name__)
server = ldap3.Server("ldaps://directory.internal")
UID = re.compile(r"[a-z][a-z0-9]{2,15}")


@app.get("/people/<uid>")
def person(uid):
    with ldap3.Connection(server, auto_bind=True) as connection:
        connection.search("dc=example,dc=org", f"(uid={escape_filter_chars(uid)})", attributes=["cn"])
        return jsonify([e.entry_to_json() for e in connection.entries])


@app.get("/groups/<uid>")
def groups(uid):
    if UID.fullmatch(uid) is None:
        abort(404)
    with ldap3.Connection(server, auto_bind=True) as connection:
        connection.search("dc=example,dc=org", "(memberUid=" + uid + ")", attributes=["cn"])
        return jsonify([e.entry_to_json() for e in connection.entries])
""",
    ),
    (
        "ssrf",
        """\
import requests
from flask import Flask, Response, abort, request

app = Flask(__name__)
API = "https://api.example.com/v1"


@app.route("/proxy/<int:item>")
def proxy(item):
    lang = request.args.get("lang", "en")
    answer = requests.get(f"{API}/items/{item}", params={"lang": lang, "q": request.args.get("q")}, timeout=3)
    if answer.status_code != 200:
        abort(502)
    return Response(answer.content, content_type="application/json")


@app.route("/users")
def user():
    answer = requests.get(API + "/users/" + requests.utils.quote(request.args["name"], safe=""), timeout=3)
    return answer.json()
""",
    ),
    (
        "sql-injection",
        """\
from enum import Enum
from typing import Annotated
from uuid import UUID

from fastapi import Depends, FastAPI
from pydantic import BaseModel, conint
from sqlalchemy import create_engine, select, text
from sqlalchemy.orm import Session

from .models import User

app = FastAPI()
engine = create_engine("postgresql+psycopg:///shop")


class Sort(str, Enum):
    name = "name"
    created = "created"


class Page(BaseModel):
    number: int = 1
    size: conint(ge=1, le=100) = 20
    owner: UUID


def get_session():
    with Session(engine) as session:
        yield session


@app.post("/users")
def users(page: Page, sort: Sort, q: str = "", session: Session = Depends(get_session)):
    offset = page.size * (page.number - 1)
    sql = text(f"select id from users where owner = '{page.owner}' and name like :q order by {sort.value} limit {page.size} offset {offset}")
    ids = session.execute(sql, {"q": f"%{q}%"}).scalars().all()
    return session.scalars(select(User).where(User.id.in_(ids), User.name.ilike(f"%{q}%"))).all()
""",
    ),
    (
        "path-traversal",
        """\
import os

from flask import Flask, abort, request, send_file

app = Flask(__name__)
REPORTS = os.path.realpath("/var/reports")


def resolve(name):
    path = os.path.realpath(os.path.join(REPORTS, name))
    if not path.startswith(REPORTS + os.sep):
        abort(403)
    return path


@app.route("/reports")
def report():
    return send_file(resolve(request.args["name"]), as_attachment=True)


@app.route("/logs/<kind>")
def logs(kind):
    if kind not in ("access", "error"):
        abort(404)
    with open(os.path.join("/var/log/shop", kind + ".log")) as file:
        return file.read(), 200, {"Content-Type": "text/plain"}
""",
    ),
    (
        "command-injection",
        """\
import asyncio
import re

from tornado import web

BRANCH = re.compile(r"[\\w][\\w./-]*")


class BuildHandler(web.RequestHandler):
    async def post(self):
        branch = self.get_body_argument("branch", "main")
        if not BRANCH.fullmatch(branch):
            raise web.HTTPError(400)
        process = await asyncio.create_subprocess_shell(f"git fetch origin {branch} && make build", stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        other = await asyncio.create_subprocess_exec("git", "log", "--", self.get_argument("path"))
        await other.wait()
        self.write({"log": out.decode()})
""",
    ),
    (
        "unsafe-deserialization",
        """\
import hashlib
import hmac
import os
import pickle

import yaml
from django.core import signing
from django.http import HttpResponseBadRequest, JsonResponse

KEY = os.environ["KEY"].encode()


def import_settings(request):
    document = yaml.safe_load(request.FILES["file"].read())
    other = yaml.load(request.body, Loader=yaml.CSafeLoader)
    state = signing.loads(request.COOKIES["state"], max_age=3600)
    return JsonResponse({"keys": sorted(document), "more": len(other), "state": state})


def restore(request):
    payload = request.body
    want = hmac.new(KEY, payload, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(want, request.headers.get("X-Signature", "")):
        return HttpResponseBadRequest("bad signature")
    return JsonResponse(pickle.loads(payload))
""",
    ),
    (
        "xpath-injection",
        """\
from flask import Flask, abort, request
from lxml import etree

app = Flask(__name__)
USERS = etree.parse("users.xml")
BY_NAME = etree.XPath("//user[name/text()=$name]")


@app.route("/login", methods=["POST"])
def login():
    name = request.form["name"]
    found = USERS.xpath("//user[name/text()=$name and password/text()=$password]", name=name, password=request.form["password"])
    if not found:
        found = BY_NAME(USERS, name=name)
    return ("welcome", 200) if found else ("no", 401)


@app.route("/users/<name>")
def user(name):
    if not name.isalnum():
        abort(400)
    return str(len(USERS.xpath(f"//user[@login='{name}']")))
""",
    ),
    (
        "sql-injection",
        """\
from django.db.models import F
from rest_framework.response import Response
from rest_framework.views import APIView
from .models import Invoice
from .serializers import InvoiceFilter


class InvoiceList(APIView):
    def get(self, request):
        form = InvoiceFilter(data=request.query_params)
        form.is_valid(raise_exception=True)
        status = request.query_params.get("status", "open")
        rows = Invoice.objects.raw("SELECT * FROM billing_invoice WHERE status = %s", [status])
        more = Invoice.objects.filter(status=status).extra(where=["total > %s"], params=[request.GET["least"]])
        return Response([r.id for r in rows] + [m.id for m in more])
""",
    ),
    (
        "path-traversal",
        """\
import os
from uuid import UUID
from flask import Flask, abort, request, send_from_directory
from werkzeug.security import safe_join

app = Flask(__name__)
BASE = "/srv/avatars"


@app.route("/avatars/<name>")
def avatar(name):
    return send_from_directory(BASE, name)


@app.route("/raw")
def raw():
    path = safe_join(BASE, request.args["name"])
    if path is None:
        abort(404)
    with open(path, "rb") as file:
        return file.read()


@app.route("/exports")
def export():
    try:
        key = str(UUID(request.args["key"]))
    except ValueError:
        abort(404)
    return open(os.path.join(BASE, key + ".csv")).read(), {"Content-Type": "text/csv"}


@app.route("/common")
def common():
    path = os.path.realpath(os.path.join(BASE, request.args["p"]))
    if os.path.commonpath([BASE, path]) != BASE:
        abort(404)
    return open(path).read(), {"Content-Type": "text/plain"}
""",
    ),
    (
        "command-injection",
        """\
import ipaddress
import subprocess
from flask import Flask, abort, request

app = Flask(__name__)


@app.post("/trace")
def trace():
    address = request.form["address"]
    try:
        ipaddress.ip_address(address)
    except ValueError:
        abort(400)
    return subprocess.check_output(f"traceroute {address}", shell=True, text=True), {"Content-Type": "text/plain"}


@app.post("/clone")
def clone():
    url = request.form["url"]
    if not url.startswith("https://"):
        abort(400)
    subprocess.run(["git", "clone", "--", url, "/tmp/x"], check=True)
    return "ok"
""",
    ),
    (
        "ssrf",
        """\
import ipaddress
import socket
from urllib.parse import urlparse
import requests
from flask import Flask, abort, request

app = Flask(__name__)
HOSTS = {"images.example.com": "https://images.example.com", "cdn": "https://cdn.example.net"}


@app.route("/image")
def image():
    base = HOSTS.get(request.args["host"])
    if base is None:
        abort(400)
    return requests.get(base + "/" + request.args["name"], timeout=3).content


@app.route("/thumb")
def thumb():
    url = request.args["url"]
    host = urlparse(url).hostname
    if host is None or host not in HOSTS:
        abort(400)
    return requests.get(url, timeout=3).content
""",
    ),
    (
        "xss",
        """\
import bleach
from django.http import HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.html import format_html


def profile(request):
    bio = bleach.clean(request.GET.get("bio", ""), tags=["b", "i"])
    name = format_html("<h1>{}</h1>", request.GET["name"])
    page = render_to_string("profile.html", {"bio": bio, "raw": request.GET["bio"]})
    return HttpResponse(name + bio + page)


def text(request):
    return HttpResponse("hello " + request.GET["name"], content_type="text/plain")


def data(request):
    return JsonResponse({"name": request.GET["name"]})
""",
    ),
    (
        "open-redirect",
        """\
from urllib.parse import urlencode, urlparse
from flask import Blueprint, redirect, request, url_for

auth = Blueprint("auth", __name__)
PAGES = {"home": "/", "shop": "/shop"}


@auth.route("/logout")
def logout():
    target = request.args.get("next", "")
    parsed = urlparse(target)
    if parsed.scheme or parsed.netloc:
        target = url_for("index")
    return redirect(target)


@auth.route("/go/<page>")
def go(page):
    return redirect(PAGES.get(page, "/"))


@auth.route("/search")
def search():
    return redirect("/find?" + urlencode({"q": request.args["q"]}))


@auth.route("/user")
def user():
    return redirect(f"/users/{request.args['id']}/profile")
""",
    ),
    (
        "unsafe-deserialization",
        """\
import json
from itsdangerous import URLSafeSerializer, BadSignature
from flask import Flask, abort, current_app, request
import msgpack

app = Flask(__name__)


@app.post("/restore")
def restore():
    serializer = URLSafeSerializer(current_app.secret_key)
    try:
        state = serializer.loads(request.form["state"])
    except BadSignature:
        abort(400)
    extra = msgpack.unpackb(request.get_data(), raw=False)
    return {"n": len(state) + len(extra) + len(json.loads(request.form["more"]))}
""",
    ),
    (
        "code-injection",
        """\
import importlib
from enum import StrEnum
from fastapi import FastAPI, HTTPException

app = FastAPI()
PLUGINS = {"csv": "plugins.csv_export", "pdf": "plugins.pdf_export"}


class Action(StrEnum):
    run = "run"
    check = "check"


@app.post("/plugins/{plugin}/{action}")
def run_plugin(plugin: str, action: Action, payload: dict):
    if plugin not in PLUGINS:
        raise HTTPException(404)
    module = importlib.import_module(PLUGINS[plugin])
    return getattr(module, action.value)(**payload)
""",
    ),
    (
        "sql-injection",
        """\
from typing import Literal
import psycopg
from psycopg import sql
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

router = APIRouter()


class Filter(BaseModel):
    column: str = Field(pattern=r"^[a-z_]+$")
    order: Literal["asc", "desc"] = "asc"
    limit: int = Field(10, le=100)


@router.post("/rows/{table}")
async def rows(table: str, filter: Filter, request: Request):
    query = sql.SQL("SELECT * FROM {} ORDER BY {}").format(sql.Identifier(table), sql.Identifier(filter.column))
    async with request.app.state.pool.connection() as connection:
        a = await connection.execute(query)
        b = await connection.execute(f"SELECT 1 FROM t ORDER BY {filter.column} {filter.order} LIMIT {filter.limit}")
        return [await a.fetchall(), await b.fetchall()]
""",
    ),
    (
        "path-traversal",
        """\
from pathlib import Path
import re
import uuid
from flask import Flask, abort, request

app = Flask(__name__)
ROOT = Path("/srv/sites")
SLUG = re.compile(r"^[a-z0-9][a-z0-9-]{0,62}$")


@app.put("/sites/<site>")
def upload(site):
    if not SLUG.match(site):
        abort(404)
    folder = ROOT / site
    folder.mkdir(exist_ok=True)
    for file in request.files.values():
        suffix = Path(file.filename).suffix
        if suffix not in {".html", ".css"}:
            abort(400)
        file.save(folder / f"{uuid.uuid4().hex}{suffix}")
    (folder / Path(request.form["index"]).name).write_text("x")
    return "ok"
""",
    ),
    (
        "template-injection",
        """\
from jinja2 import Environment, FileSystemLoader, select_autoescape
from flask import Flask, abort, request
from string import Template

app = Flask(__name__)
env = Environment(loader=FileSystemLoader("templates"), autoescape=select_autoescape())
NAMES = ["welcome.html", "bye.html"]


@app.post("/mail")
def mail():
    data = request.get_json()
    if data["template"] not in NAMES:
        abort(400)
    page = env.get_template(data["template"]).render(name=data["name"])
    return {"text": page, "subject": Template("Dear $name").substitute(name=data["name"])}
""",
    ),
    (
        "command-injection",
        """\
import os
import shlex
from django.core.exceptions import BadRequest
from django.http import JsonResponse
from django.views.decorators.http import require_GET


def clean_domain(value):
    labels = value.split(".")
    if not all(label.isalnum() for label in labels):
        raise BadRequest("no domain")
    return value


@require_GET
def whois(request):
    domain = clean_domain(request.GET["domain"])
    with os.popen(f"whois {domain}") as pipe:
        text = pipe.read()
    lines = int(request.GET.get("lines", 10))
    with os.popen("tail -n %d /var/log/whois" % lines) as pipe:
        return JsonResponse({"text": text, "log": pipe.read(), "other": os.popen("id " + shlex.quote(request.GET["u"])).read()})
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request, abort
import sqlite3
app = Flask(__name__)
SORTS = {"name", "created"}
@app.route("/u")
def u():
    sort = request.args.get("sort", "name").lower()
    order = "DESC" if request.args.get("order") == "desc" else "ASC"
    if sort not in SORTS:
        sort = "name"
    ids = [int(i) for i in request.args.getlist("id")]
    marks = ",".join("?" * len(ids))
    db = sqlite3.connect("x")
    a = db.execute(f"SELECT * FROM u WHERE id IN ({marks}) ORDER BY {sort} {order}", ids).fetchall()
    b = db.execute("SELECT * FROM u WHERE id IN (%s)" % ",".join(str(int(i)) for i in request.args["ids"].split(","))).fetchall()
    return {"a": a, "b": b}
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request
from .models import User, db
app = Flask(__name__)
@app.route("/u")
def u():
    sort = request.args.get("sort", "name")
    column = getattr(User, sort, None) if sort in User.__table__.columns else User.name
    q = User.query.filter(User.name.ilike(f"%{request.args['q']}%")).order_by(column)
    rows = db.session.execute(db.select(User).filter_by(name=request.args["q"]))
    return {"u": [u.id for u in q.paginate(page=request.args.get("page", 1, type=int))]}
""",
    ),
    (
        "command-injection",
        """\
from flask import Flask, request, abort
import subprocess, re
app = Flask(__name__)
def valid_host(host):
    return bool(re.match(r"^[a-zA-Z0-9.-]{1,253}$", host))
@app.route("/ping")
def ping():
    host = request.args["host"]
    if not valid_host(host):
        abort(400)
    out = subprocess.getoutput(f"ping -c1 {host}")
    return {"out": out}
""",
    ),
    (
        "command-injection",
        """\
import subprocess, shlex
from flask import Flask, request
app = Flask(__name__)
TOOLS = {"ls": ["ls", "-l"], "df": ["df", "-h"]}
@app.route("/run")
def run():
    tool = TOOLS[request.args["tool"]]
    args = [shlex.quote(a) for a in request.args.getlist("arg")]
    a = subprocess.run(tool + ["--", request.args["path"]], capture_output=True)
    b = subprocess.run(" ".join(["tar", "-tf", *args]), shell=True, capture_output=True)
    return {"a": a.stdout.decode(), "b": b.stdout.decode()}
""",
    ),
    (
        "path-traversal",
        """\
import os
from django.core.exceptions import SuspiciousFileOperation
from django.core.files.storage import default_storage
from django.http import FileResponse, Http404
from django.utils._os import safe_join
from django.conf import settings
def download(request, name):
    path = safe_join(settings.MEDIA_ROOT, name)
    return FileResponse(open(path, "rb"))
def stored(request):
    return FileResponse(default_storage.open(request.GET["name"]))
def listed(request):
    name = request.GET["name"]
    if name not in os.listdir("/srv/x"):
        raise Http404
    return FileResponse(open(os.path.join("/srv/x", name), "rb"))
def by_id(request, pk: int):
    return FileResponse(open(f"/srv/x/{int(pk):08d}.pdf", "rb"))
""",
    ),
    (
        "path-traversal",
        """\
from pathlib import Path
from fastapi import FastAPI, HTTPException, UploadFile
import secrets, hashlib
app = FastAPI()
BASE = Path("/srv/uploads")
def inside(base: Path, name: str) -> Path:
    candidate = (base / name).resolve()
    try:
        candidate.relative_to(base.resolve())
    except ValueError:
        raise HTTPException(400)
    return candidate
@app.get("/f/{name:path}")
def get(name: str):
    return {"text": inside(BASE, name).read_text()}
@app.post("/f")
async def put(file: UploadFile):
    data = await file.read()
    target = BASE / hashlib.sha256(data).hexdigest()
    target.write_bytes(data)
    (BASE / f"{secrets.token_hex(8)}.bin").write_bytes(data)
    return {"name": target.name, "given": file.filename}
""",
    ),
    (
        "ssrf",
        """\
from urllib.parse import urlparse
import requests
from flask import Flask, request, abort
app = Flask(__name__)
def is_allowed(url):
    host = urlparse(url).netloc
    return host == "api.example.com" or host.endswith(".example.com")
@app.route("/p")
def p():
    url = request.args["url"]
    if not is_allowed(url):
        abort(403)
    return {"n": len(requests.get(url, timeout=2, allow_redirects=False).content)}
@app.route("/q")
def q():
    u = requests.compat.urljoin("https://api.example.com/", "items/%d" % int(request.args["id"]))
    return {"n": len(requests.get(u).content)}
@app.route("/r")
def r():
    key = request.args["region"]
    hosts = {"eu": "https://eu.example.com", "us": "https://us.example.com"}
    if key not in hosts:
        abort(400)
    return {"n": requests.get(f"{hosts[key]}/status/{request.args['x']}").status_code}
""",
    ),
    (
        "open-redirect",
        """\
from flask import Flask, request, redirect, url_for, abort
from urllib.parse import urlparse, urljoin
app = Flask(__name__)
def is_safe_url(target):
    ref_url = urlparse(request.host_url)
    test_url = urlparse(urljoin(request.host_url, target))
    return test_url.scheme in ("http", "https") and ref_url.netloc == test_url.netloc
@app.route("/login", methods=["POST"])
def login():
    nxt = request.args.get("next")
    if nxt and not is_safe_url(nxt):
        return abort(400)
    return redirect(nxt or url_for("index"))
@app.route("/go")
def go():
    return redirect(url_for("page", name=request.args["name"]))
@app.route("/back")
def back():
    target = request.form.get("next", "")
    if not target.startswith("/") or target.startswith("//"):
        target = "/"
    return redirect(target)
""",
    ),
    (
        "xss",
        """\
from flask import Flask, request, jsonify, render_template, escape
import json
app = Flask(__name__)
@app.route("/a")
def a():
    return render_template("a.html", name=request.args["n"])
@app.route("/b")
def b():
    return jsonify(name=request.args["n"])
@app.route("/c")
def c():
    return {"name": request.args["n"]}
@app.route("/d")
def d():
    return json.dumps({"n": request.args["n"]}), 200, {"Content-Type": "application/json"}
@app.route("/e")
def e():
    return f"<b>{escape(request.args['n'])}</b>"
@app.route("/f")
def f():
    n = int(request.args.get("n", 0))
    return f"<b>{n + 1}</b>"
@app.route("/g")
def g():
    resp = app.response_class(request.args["n"], mimetype="text/plain")
    return resp
""",
    ),
    (
        "xss",
        """\
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.html import escape, format_html_join, strip_tags
from django.contrib import messages
def a(request):
    messages.info(request, f"Hello {request.GET['n']}")
    return render(request, "a.html", {"n": request.GET["n"]})
def b(request):
    return HttpResponse("<ul>" + format_html_join("", "<li>{}</li>", ((x,) for x in request.GET.getlist("x"))) + "</ul>")
def c(request):
    return HttpResponse(escape(request.GET["n"]))
def d(request):
    return HttpResponse(status=int(request.GET["s"]))
""",
    ),
    (
        "unsafe-deserialization",
        """\
import json, csv, io, tomllib
from flask import Flask, request
import yaml
app = Flask(__name__)
@app.route("/import", methods=["POST"])
def imp():
    data = request.get_data()
    a = yaml.load(data, Loader=yaml.SafeLoader)
    b = list(yaml.safe_load_all(data))
    c = tomllib.loads(data.decode())
    d = list(csv.DictReader(io.StringIO(data.decode())))
    e = json.loads(data)
    return {"n": [len(x) for x in (a, b, c, d, e)]}
""",
    ),
    (
        "code-injection",
        """\
import ast, json
from flask import Flask, request, abort
from simpleeval import simple_eval
app = Flask(__name__)
OPS = {"sum": sum, "max": max}
class Report:
    def render_csv(self): return "csv"
    def render_pdf(self): return "pdf"
@app.route("/op")
def op():
    fn = OPS.get(request.args["op"])
    if fn is None:
        abort(400)
    kind = request.args.get("kind", "csv")
    if kind not in ("csv", "pdf"):
        abort(400)
    text = getattr(Report(), f"render_{kind}")()
    return {"v": fn([1, 2]), "w": ast.literal_eval(request.args["x"]), "t": text, "s": simple_eval(request.args["e"])}
""",
    ),
    (
        "template-injection",
        """\
from flask import Flask, request, render_template, render_template_string, abort
app = Flask(__name__)
THEMES = ("dark", "light")
@app.route("/t")
def t():
    theme = request.args.get("theme", "dark")
    if theme not in THEMES:
        abort(404)
    return render_template(f"themes/{theme}.html", q=request.args.get("q"))
@app.route("/u")
def u():
    return render_template_string("<p>{{ q }}</p>", q=request.args.get("q"))
""",
    ),
    (
        "ldap-injection",
        """\
import ldap
from ldap.filter import escape_filter_chars, filter_format
from flask import Flask, request
app = Flask(__name__)
@app.route("/l")
def l():
    c = ldap.initialize("ldaps://x")
    a = c.search_s("dc=x", ldap.SCOPE_SUBTREE, filter_format("(uid=%s)", [request.args["u"]]))
    b = c.search_s("dc=x", ldap.SCOPE_SUBTREE, "(cn=%s)" % escape_filter_chars(request.args["c"]))
    return {"a": len(a), "b": len(b)}
""",
    ),
    (
        "xxe",
        """\
from lxml import etree
from flask import Flask, request
import xml.etree.ElementTree as ET
app = Flask(__name__)
@app.route("/x", methods=["POST"])
def x():
    p = etree.XMLParser(resolve_entities=False)
    a = etree.fromstring(request.data, p)
    b = ET.fromstring(request.data)
    c = etree.fromstring(request.data)
    return {"a": a.tag, "b": b.findtext("name"), "c": c.tag}
""",
    ),
    (
        "path-traversal",
        """\
from flask import Flask, request, abort, send_file, session
import os, tempfile
app = Flask(__name__)
DIR = os.path.abspath("/srv/data")
def checked(name):
    full = os.path.abspath(os.path.join(DIR, name))
    if os.path.commonprefix([full, DIR + os.sep]) != DIR + os.sep:
        abort(403)
    return full
@app.route("/d")
def d():
    return send_file(checked(request.args["n"]))
@app.route("/e")
def e():
    name = os.path.basename(request.args["n"])
    return send_file(os.path.join(DIR, name))
@app.route("/f", methods=["POST"])
def f():
    ext = request.files["f"].filename.rsplit(".", 1)[-1].lower()
    if ext not in {"png", "jpg"}:
        abort(400)
    with tempfile.NamedTemporaryFile(suffix="." + ext, delete=False) as t:
        request.files["f"].save(t.name)
    session["theme"] = request.form.get("theme")
    return "ok"
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request, abort
from .db import connection
app = Flask(__name__)
COLUMNS = frozenset(["id", "name"])
def require_column(name):
    if name not in COLUMNS:
        raise ValueError(name)
    return name
def order_by(raw):
    desc = raw.startswith("-")
    name = raw[1:] if desc else raw
    require_column(name)
    return f"ORDER BY {name} {'DESC' if desc else 'ASC'}"
@app.get("/x")
def x():
    try:
        clause = order_by(request.args.get("sort", "id"))
    except ValueError:
        abort(400)
    limit = min(int(request.args.get("limit", 10)), 100)
    return {"r": connection.execute(f"SELECT * FROM t {clause} LIMIT {limit}").fetchall()}
""",
    ),
    (
        "sql-injection",
        """\
from enum import Enum
from flask import Flask, request, abort
from .db import connection
app = Flask(__name__)
class Column(Enum):
    ID = "id"
    NAME = "name"
@app.get("/x")
def x():
    try:
        column = Column(request.args["c"])
    except ValueError:
        abort(400)
    try:
        other = Column[request.args["d"].upper()]
    except KeyError:
        abort(400)
    rows = connection.execute(f"SELECT {column.value}, {other.value} FROM t WHERE a = ?", (request.args["a"],))
    return {"r": rows.fetchall()}
""",
    ),
    (
        "sql-injection",
        """\
from django.db import connection
from django.http import JsonResponse
from django.db.models import Q, Value
from django.shortcuts import get_object_or_404
from .models import Item
from .forms import SearchForm
TABLES = {"a": "app_a", "b": "app_b"}
def x(request, kind):
    table = TABLES.get(kind, "app_a")
    item = get_object_or_404(Item, slug=request.GET["slug"])
    items = Item.objects.filter(Q(name__icontains=request.GET["q"]) | Q(tag=request.GET["t"])).order_by("name")
    with connection.cursor() as c:
        c.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)} WHERE owner = %(o)s", {"o": request.GET["o"]})
        c.execute("SELECT * FROM %s WHERE id = %%s" % table, [item.pk])
    return JsonResponse({"n": items.count()})
""",
    ),
    (
        "command-injection",
        """\
import subprocess
from flask import Flask, request, abort
app = Flask(__name__)
ALPHABET = set("abcdefghijklmnopqrstuvwxyz0123456789-")
@app.post("/x")
def x():
    name = request.form["name"]
    if set(name) - ALPHABET:
        abort(400)
    level = {"low": 1, "high": 9}.get(request.form.get("level"), 5)
    subprocess.run(f"zip -{level} /tmp/{name}.zip /srv/{name}", shell=True)
    return "ok"
""",
    ),
    (
        "command-injection",
        """\
import subprocess, sys, os
from fastapi import FastAPI, Path, HTTPException
from pydantic import BaseModel, constr, Field
from typing import Annotated
app = FastAPI()
class Body(BaseModel):
    name: constr(pattern=r"^[a-z]{1,20}$")
    count: int = Field(gt=0)
    flags: list[int] = []
@app.post("/x/{branch}")
def x(branch: Annotated[str, Path(pattern=r"^[\\w-]+$")], body: Body):
    subprocess.run(f"make {body.name} N={body.count} B={branch}", shell=True)
    subprocess.run([sys.executable, "-m", "tool", branch, body.name])
    os.execv(sys.executable, [sys.executable, branch])
""",
    ),
    (
        "path-traversal",
        """\
import os, re
from flask import Flask, request, abort, send_from_directory
from werkzeug.utils import secure_filename
app = Flask(__name__)
ALLOWED = {"txt", "pdf"}
def allowed_file(filename):
    return "." in filename and filename.rsplit(".", 1)[1].lower() in ALLOWED
@app.post("/u")
def u():
    file = request.files["file"]
    if file and allowed_file(file.filename):
        filename = secure_filename(file.filename)
        file.save(os.path.join(app.config["UPLOAD_FOLDER"], filename))
        return {"name": filename}
    return {}
@app.get("/d/<path:p>")
def d(p):
    return send_from_directory(app.config["UPLOAD_FOLDER"], p)
@app.get("/e/<name>")
def e(name):
    if os.path.basename(name) != name or name.startswith("."):
        abort(400)
    with open(os.path.join("/srv", name)) as f:
        return {"t": f.read()}
@app.get("/y/<int:year>/<uuid:key>")
def y(year, key):
    return {"t": open(f"/srv/{year}/{key}.txt").read()}
""",
    ),
    (
        "path-traversal",
        """\
from pathlib import Path
from django.http import Http404, FileResponse
from django.utils.text import slugify, get_valid_filename
ROOT = Path("/srv/x").resolve()
def a(request, name):
    p = (ROOT / name).resolve()
    if ROOT not in p.parents:
        raise Http404
    return FileResponse(p.open("rb"))
def b(request):
    f = request.FILES["f"]
    (ROOT / slugify(request.POST["title"])).mkdir(exist_ok=True)
    with (ROOT / get_valid_filename(f.name)).open("wb") as out:
        out.write(f.read())
def c(request):
    known = {p.name: p for p in ROOT.iterdir()}
    try:
        return FileResponse(known[request.GET["n"]].open("rb"))
    except KeyError:
        raise Http404
""",
    ),
    (
        "ssrf",
        """\
import socket, ipaddress
from urllib.parse import urlparse, quote
import httpx
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, HttpUrl
app = FastAPI()
ALLOWED_HOSTS = {"api.github.com", "gitlab.com"}
def check(url: str) -> None:
    parsed = urlparse(url)
    if parsed.scheme != "https":
        raise HTTPException(400)
    if parsed.hostname not in ALLOWED_HOSTS:
        raise HTTPException(400)
@app.get("/x")
async def x(url: str):
    check(url)
    async with httpx.AsyncClient() as c:
        r = await c.get(url)
        s = await c.get(f"https://api.github.com/repos/{quote(url)}")
        t = await c.get("https://api.github.com/search", params={"q": url})
    return {"n": len(r.text)}
client = httpx.Client(base_url="https://api.github.com")
@app.get("/y/{owner}/{repo}")
def y(owner: str, repo: str):
    return client.get(f"/repos/{owner}/{repo}").json()
""",
    ),
    (
        "open-redirect",
        """\
from django.shortcuts import redirect, resolve_url
from django.http import HttpResponseRedirect
from django.urls import reverse
from django.conf import settings
from django.utils.http import url_has_allowed_host_and_scheme
def a(request):
    nxt = request.POST.get("next", request.GET.get("next"))
    if not url_has_allowed_host_and_scheme(url=nxt, allowed_hosts={request.get_host()}):
        nxt = resolve_url(settings.LOGIN_REDIRECT_URL)
    return HttpResponseRedirect(nxt)
def b(request, slug):
    return redirect("post-detail", slug=slug)
def c(request):
    return HttpResponseRedirect(reverse("x", kwargs={"q": request.GET["q"]}) + "?a=" + request.GET["a"])
def d(request):
    return HttpResponseRedirect(request.path + "?page=2")
def e(request):
    return redirect(request.META.get("HTTP_REFERER", "/"))
""",
    ),
    (
        "xss",
        """\
from flask import Flask, request, Response, make_response, stream_with_context
import csv, io, html
app = Flask(__name__)
@app.get("/csv")
def c():
    out = io.StringIO()
    csv.writer(out).writerow([request.args["a"]])
    return Response(out.getvalue(), mimetype="text/csv")
@app.get("/t")
def t():
    r = make_response(request.args["a"])
    r.mimetype = "text/plain"
    return r
@app.get("/u")
def u():
    r = make_response("hello " + html.escape(request.args["a"]))
    r.headers["X-Name"] = "x"
    return r
@app.get("/v")
def v():
    r = make_response(request.args["a"])
    r.headers["Content-Type"] = "application/octet-stream"
    return r
""",
    ),
    (
        "code-injection",
        """\
from flask import Flask, request, abort
import re, math
app = Flask(__name__)
SAFE = {"sqrt": math.sqrt}
@app.get("/x")
def x():
    expr = request.args["e"]
    if not re.fullmatch(r"[0-9]{1,6}", expr):
        abort(400)
    f = SAFE[request.args["f"]]
    return {"v": f(float(expr)), "w": eval(expr), "y": re.compile(request.args["r"]).pattern}
""",
    ),
    (
        "unsafe-deserialization",
        """\
import pickle, os, json, hashlib, hmac
from flask import Flask, request, abort, session
from cryptography.fernet import Fernet
app = Flask(__name__)
F = Fernet(os.environ["K"])
CACHE = {}
@app.get("/x")
def x():
    key = hashlib.sha256(request.full_path.encode()).hexdigest()
    if key in CACHE:
        return pickle.loads(CACHE[key])
    path = os.path.join("/var/cache", key)
    with open(path, "rb") as f:
        value = pickle.load(f)
    return {"v": value}
@app.get("/y")
def y():
    sig, _, body = request.get_data().partition(b".")
    good = hmac.new(app.secret_key, body, "sha256").hexdigest().encode()
    if not hmac.compare_digest(sig, good):
        abort(403)
    return {"v": pickle.loads(body)}
""",
    ),
]
