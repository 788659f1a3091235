"""Small applications with one hole each, through classes, helpers, dependencies and half-made checks."""

from __future__ import annotations

CASES: list[tuple[str, str]] = [
    (
        "command-injection",
        """\
import logging
import subprocess

from flask import Flask, abort, jsonify, request

app = Flask(__name__)
log = logging.getLogger(__name__)


class Pinger:
    def __init__(self, target: str, count: int = 3) -> None:
        self.target = target
        self.count = count

    def command(self) -> str:
        return "ping -c %d %s" % (self.count, self.target)

    def run(self) -> str:
        done = subprocess.run(self.command(), shell=True, capture_output=True, text=True, timeout=10)
        return done.stdout


@app.post("/tools/ping")
def ping():
    body = request.get_json(silent=True) or {}
    target = (body.get("host") or "").strip()
    if not target:
        abort(400)
    if len(target) > 253:
        abort(400, "too long")
    return jsonify(output=Pinger(target, 2).run())
""",
    ),
    (
        "sql-injection",
        """\
from django.db import connection
from django.http import JsonResponse
from django.views import View


def rows(cursor):
    names = [c[0] for c in cursor.description]
    return [dict(zip(names, r)) for r in cursor.fetchall()]


class OrderReport(View):
    columns = ("id", "customer_id", "total")

    def get(self, request, *args, **kwargs):
        sort = request.GET.get("sort", "id")
        direction = "DESC" if request.GET.get("desc") else "ASC"
        query = f"SELECT {', '.join(self.columns)} FROM orders ORDER BY {sort} {direction} LIMIT 100"
        with connection.cursor() as cursor:
            cursor.execute(query)
            return JsonResponse({"orders": rows(cursor)})
""",
    ),
    (
        "path-traversal",
        """\
import os
from pathlib import Path

from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse

app = FastAPI()
UPLOADS = Path("/srv/uploads")


@app.get("/files/{name:path}")
async def download(name: str, user: str = "anonymous"):
    target = UPLOADS / user / name
    if not target.exists():
        raise HTTPException(404)
    if os.path.splitext(name)[1] in {".py", ".pyc"}:
        raise HTTPException(403)
    return FileResponse(target)
""",
    ),
    (
        "ssrf",
        """\
import requests
from fastapi import APIRouter, Depends, HTTPException
from pydantic import BaseModel

router = APIRouter(prefix="/hooks")


class Hook(BaseModel):
    url: str
    secret: str | None = None


class Sender:
    def __init__(self):
        self.session = requests.Session()

    def test(self, url: str) -> int:
        answer = self.session.post(url, json={"ping": True}, timeout=5)
        return answer.status_code


def get_sender() -> Sender:
    return Sender()


@router.post("/test")
def test_hook(hook: Hook, sender: Sender = Depends(get_sender)):
    if not hook.url.startswith("http"):
        raise HTTPException(422, "only http")
    return {"status": sender.test(hook.url)}
""",
    ),
    (
        "xss",
        """\
from flask import Blueprint, make_response, request
from markupsafe import Markup

bp = Blueprint("search", __name__)
PAGE = "<html><body><h1>Results</h1>{body}</body></html>"


def badge(label):
    return Markup("<span class='badge'>" + label + "</span>")


@bp.route("/search")
def search():
    term = request.args.get("q", "")
    hits = []
    body = "<p>Nothing found for <b>" + term + "</b></p>" if not hits else "".join(hits)
    response = make_response(PAGE.format(body=body))
    response.headers["Content-Type"] = "text/html; charset=utf-8"
    return response
""",
    ),
    (
        "open-redirect",
        """\
from django.contrib.auth import authenticate, login
from django.http import HttpResponseRedirect
from django.shortcuts import render


def sign_in(request):
    if request.method != "POST":
        return render(request, "login.html", {"next": request.GET.get("next", "/")})
    user = authenticate(request, username=request.POST["username"], password=request.POST["password"])
    if user is None:
        return render(request, "login.html", {"error": True}, status=401)
    login(request, user)
    target = request.POST.get("next") or "/"
    if target.startswith("/admin") and not user.is_staff:
        target = "/"
    return HttpResponseRedirect(target)
""",
    ),
    (
        "unsafe-deserialization",
        """\
import base64
import pickle

from flask import Flask, request, session

app = Flask(__name__)


def load_cart(raw):
    try:
        return pickle.loads(base64.urlsafe_b64decode(raw))
    except (ValueError, pickle.UnpicklingError):
        return {}


@app.before_request
def restore_cart():
    raw = request.cookies.get("cart")
    if raw is not None:
        session["cart"] = load_cart(raw.encode("ascii"))
""",
    ),
    (
        "template-injection",
        """\
from flask import Flask, g, render_template_string, request

app = Flask(__name__)

GREETING = '''
<div class="welcome">
  <p>%s</p>
  <small>{{ config_name }}</small>
</div>
'''


@app.route("/preview", methods=["POST"])
def preview():
    g.text = request.form.get("text", "")
    template = GREETING % g.text
    return render_template_string(template, config_name="preview")
""",
    ),
    (
        "code-injection",
        """\
import ast
import operator

from aiohttp import web

OPERATORS = {"+": operator.add, "-": operator.sub}
routes = web.RouteTableDef()


@routes.post("/calc")
async def calculate(request: web.Request) -> web.Response:
    data = await request.json()
    expression = data["expression"]
    try:
        ast.parse(expression, mode="eval")
    except SyntaxError:
        raise web.HTTPBadRequest(text="no expression")
    result = eval(expression, {"__builtins__": {}}, {"x": float(data.get("x", 0))})
    return web.json_response({"result": result})
""",
    ),
    (
        "sql-injection",
        """\
import sqlite3
from contextlib import closing

from flask import Flask, g, jsonify, request

app = Flask(__name__)


def db():
    if "db" not in g:
        g.db = sqlite3.connect("shop.db")
    return g.db


def where(filters):
    parts = []
    for key, value in filters.items():
        parts.append("%s = '%s'" % (key, value.replace("'", "")))
    return " AND ".join(parts) or "1 = 1"


@app.get("/products")
def products():
    filters = request.args.to_dict()
    limit = int(filters.pop("limit", 20))
    sql = "SELECT * FROM products WHERE " + where(filters) + " LIMIT ?"
    with closing(db().cursor()) as cursor:
        cursor.execute(sql, (limit,))
        return jsonify(cursor.fetchall())
""",
    ),
    (
        "path-traversal",
        """\
import zipfile
from pathlib import Path

from django.conf import settings
from django.http import HttpResponse
from rest_framework.decorators import api_view


@api_view(["POST"])
def import_theme(request):
    archive = zipfile.ZipFile(request.FILES["theme"])
    root = Path(settings.MEDIA_ROOT) / "themes"
    count = 0
    for member in archive.infolist():
        if member.is_dir():
            continue
        destination = root / member.filename
        destination.parent.mkdir(parents=True, exist_ok=True)
        with open(destination, "wb") as out:
            out.write(archive.read(member))
        count += 1
    return HttpResponse(f"{count} files")
""",
    ),
    (
        "xxe",
        """\
from fastapi import FastAPI, Request, Response
from lxml import etree

app = FastAPI()


def parser():
    return etree.XMLParser(resolve_entities=True, no_network=False, huge_tree=True)


@app.post("/invoices")
async def upload(request: Request):
    body = await request.body()
    root = etree.fromstring(body, parser=parser())
    number = root.findtext("number")
    return Response(content=f"got {number}", media_type="text/plain")
""",
    ),
    (
        "ldap-injection",
        """\
import ldap3
from flask import Flask, abort, jsonify, request

app = Flask(__name__)
server = ldap3.Server("ldaps://directory.internal")


def find(connection, uid):
    query = f"(&(objectClass=person)(uid={uid}))"
    connection.search("ou=people,dc=example,dc=org", query, attributes=["cn", "mail"])
    return connection.entries


@app.get("/people/<uid>")
def person(uid):
    with ldap3.Connection(server, auto_bind=True) as connection:
        found = find(connection, uid)
    if not found:
        abort(404)
    return jsonify([entry.entry_to_json() for entry in found])
""",
    ),
    (
        "ssrf",
        """\
import urllib.request
from urllib.parse import urlparse

from flask import Flask, Response, request

app = Flask(__name__)
ALLOWED = ("example.com", "cdn.example.com")


@app.route("/proxy")
def proxy():
    url = request.values.get("url", "")
    parsed = urlparse(url)
    if parsed.scheme not in ("http", "https"):
        return "bad scheme", 400
    if not any(name in url for name in ALLOWED):
        return "not allowed", 403
    with urllib.request.urlopen(url, timeout=3) as upstream:
        return Response(upstream.read(), content_type=upstream.headers["Content-Type"])
""",
    ),
    (
        "sql-injection",
        """\
from typing import Annotated

from fastapi import Depends, FastAPI, Query
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

app = FastAPI()
engine = create_engine("postgresql+psycopg:///shop")


def get_session():
    with Session(engine) as session:
        yield session


class UserRepository:
    def __init__(self, session: Session):
        self._session = session

    def by_name(self, name: str, active: bool):
        clause = text(f"select id, name from users where name ilike '%{name}%' and active = :active")
        return self._session.execute(clause, {"active": active}).mappings().all()


@app.get("/users")
def users(name: Annotated[str, Query(min_length=2, max_length=40)], session: Annotated[Session, Depends(get_session)]):
    return UserRepository(session).by_name(name, True)
""",
    ),
    (
        "path-traversal",
        """\
import os

from flask import Flask, abort, current_app, request, send_file

app = Flask(__name__)
app.config["REPORTS"] = "/var/reports"


def resolve(name):
    base = current_app.config["REPORTS"]
    path = os.path.join(base, name)
    if not path.startswith(base):
        abort(403)
    return path


@app.route("/reports")
def report():
    name = request.args["name"]
    return send_file(resolve(name), as_attachment=True)
""",
    ),
    (
        "command-injection",
        """\
import asyncio
import re

from tornado import web

BRANCH = re.compile(r"[\\w./-]+")


class BuildHandler(web.RequestHandler):
    async def post(self):
        branch = self.get_body_argument("branch", "main")
        if not BRANCH.match(branch):
            raise web.HTTPError(400)
        process = await asyncio.create_subprocess_shell(
            f"git fetch origin {branch} && make build",
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
        self.write({"log": out.decode()})
""",
    ),
    (
        "unsafe-deserialization",
        """\
import yaml
from django.http import HttpResponseBadRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST


@csrf_exempt
@require_POST
def import_settings(request):
    upload = request.FILES.get("file")
    if upload is None or upload.size > 100_000:
        return HttpResponseBadRequest("no file, or too large")
    text = upload.read().decode("utf-8", "replace")
    document = yaml.load(text, Loader=yaml.UnsafeLoader)
    return JsonResponse({"keys": sorted(document)})
""",
    ),
    (
        "xpath-injection",
        """\
from flask import Flask, request
from lxml import etree

app = Flask(__name__)
USERS = etree.parse("users.xml")


def quoted(value):
    return "'" + value + "'"


@app.route("/login", methods=["POST"])
def login():
    name = request.form["name"]
    password = request.form["password"]
    conditions = ["name/text()=" + quoted(name), "password/text()=" + quoted(password)]
    found = USERS.xpath("//user[" + " and ".join(conditions) + "]")
    return ("welcome", 200) if found else ("no", 401)
""",
    ),
    (
        "sql-injection",
        """\
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView
from .models import Invoice


class InvoiceSerializer(serializers.ModelSerializer):
    class Meta:
        model = Invoice
        fields = "__all__"


class InvoiceList(APIView):
    def get_queryset(self):
        status = self.request.query_params.get("status", "open")
        return Invoice.objects.raw("SELECT * FROM billing_invoice WHERE status = '%s'" % status)

    def get(self, request, format=None):
        return Response(InvoiceSerializer(self.get_queryset(), many=True).data)
""",
    ),
    (
        "path-traversal",
        """\
import functools
import os
from flask import Flask, abort, request

app = Flask(__name__)


def needs_token(view):
    @functools.wraps(view)
    def inner(*args, **kwargs):
        if request.headers.get("X-Token") != app.config["TOKEN"]:
            abort(401)
        return view(*args, **kwargs)
    return inner


@app.route("/avatars/<path:name>", methods=["DELETE"])
@needs_token
def remove(name):
    os.unlink(os.path.join(app.root_path, "avatars", name))
    return "", 204
""",
    ),
    (
        "command-injection",
        """\
from dataclasses import dataclass
import subprocess
from flask import Flask, request

app = Flask(__name__)


@dataclass
class Job:
    source: str
    target: str
    quality: int = 80

    @classmethod
    def from_form(cls, form):
        return cls(source=form["source"], target=form.get("target", "out.webp"), quality=int(form["quality"]))

    def argv(self):
        return f"convert {self.source} -quality {self.quality} {self.target}"


@app.post("/convert")
def convert():
    job = Job.from_form(request.form)
    subprocess.check_call(job.argv(), shell=True)
    return "ok"
""",
    ),
    (
        "ssrf",
        """\
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.responses import JSONResponse
from starlette.routing import Route
import httpx


class Preview(HTTPEndpoint):
    async def get(self, request):
        link = request.query_params["link"]
        async with httpx.AsyncClient(follow_redirects=True) as client:
            page = await client.get(link)
        return JSONResponse({"length": len(page.text)})


app = Starlette(routes=[Route("/preview", Preview)])
""",
    ),
    (
        "xss",
        """\
from django.http import HttpResponse
from django.utils.safestring import mark_safe
from django.views.generic import TemplateView


class Profile(TemplateView):
    template_name = "profile.html"

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        bio = self.request.GET.get("bio", "")
        context["bio"] = mark_safe("<div>" + bio.replace("\\n", "<br>") + "</div>")
        return context
""",
    ),
    (
        "open-redirect",
        """\
from flask import Blueprint, redirect, request, url_for
from urllib.parse import urljoin

auth = Blueprint("auth", __name__)


@auth.route("/logout")
def logout():
    back = request.args.get("back") or request.referrer or url_for("index")
    return redirect(urljoin(request.host_url, back))
""",
    ),
    (
        "unsafe-deserialization",
        """\
import pickle
import zlib
from aiohttp import web


class Store:
    def decode(self, blob):
        return pickle.loads(zlib.decompress(blob))


async def restore(request):
    store = Store()
    data = await request.read()
    state = store.decode(data)
    return web.json_response({"n": len(state)})


app = web.Application()
app.router.add_post("/restore", restore)
""",
    ),
    (
        "code-injection",
        """\
import importlib
from fastapi import FastAPI, HTTPException

app = FastAPI()


@app.post("/plugins/{plugin}/{action}")
def run_plugin(plugin: str, action: str, payload: dict):
    try:
        module = importlib.import_module(plugin)
    except ImportError as error:
        raise HTTPException(404) from error
    return getattr(module, action)(**payload)
""",
    ),
    (
        "sql-injection",
        """\
import psycopg
from psycopg.rows import dict_row
from fastapi import APIRouter, Request

router = APIRouter()


async def fetch(pool, table, filters):
    clauses = " AND ".join(f"{name} = %({name})s" for name in filters)
    query = f"SELECT * FROM {table} WHERE {clauses}"
    async with pool.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, filters)
        return await cursor.fetchall()


@router.get("/rows/{table}")
async def rows(table: str, request: Request):
    return await fetch(request.app.state.pool, table, dict(request.query_params))
""",
    ),
    (
        "path-traversal",
        """\
import tarfile
from pathlib import Path
from flask import Flask, request

app = Flask(__name__)
ROOT = Path("/srv/sites")


@app.put("/sites/<site>")
def upload(site):
    folder = ROOT.joinpath(site)
    folder.mkdir(exist_ok=True)
    for name, file in request.files.items():
        file.save(folder / file.filename)
    return "ok"
""",
    ),
    (
        "template-injection",
        """\
from jinja2 import Environment
from flask import Flask, request

app = Flask(__name__)
env = Environment(autoescape=True)


class Mailer:
    def __init__(self, environment):
        self.environment = environment

    def render(self, source, **values):
        return self.environment.from_string(source).render(**values)


mailer = Mailer(env)


@app.post("/mail")
def mail():
    data = request.get_json()
    return {"text": mailer.render(data["template"], name=data["name"])}
""",
    ),
    (
        "command-injection",
        """\
import os
from django.http import JsonResponse
from django.views.decorators.http import require_GET


def _escape(value):
    return value.replace('"', '\\\\"')


@require_GET
def whois(request):
    domain = request.GET["domain"]
    with os.popen(f'whois "{_escape(domain)}"') as pipe:
        return JsonResponse({"text": pipe.read()})
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request
import pymysql
app = Flask(__name__)

class Search:
    def __init__(self, request):
        self.term = request.args.get("q", "").strip()
        self.page = request.args.get("page", 1, type=int)
    @property
    def clause(self):
        return "title LIKE '%{}%'".format(self.term)

@app.route("/s")
def s():
    search = Search(request)
    conn = pymysql.connect(host="db")
    with conn.cursor() as cur:
        cur.execute("SELECT id FROM posts WHERE " + search.clause + " LIMIT %s", (search.page,))
        return {"rows": cur.fetchall()}
""",
    ),
    (
        "command-injection",
        """\
from fastapi import FastAPI, UploadFile, File, Form
import subprocess, shutil, os
app = FastAPI()

@app.post("/transcode")
async def transcode(file: UploadFile = File(...), codec: str = Form("h264")):
    path = os.path.join("/tmp", "in.mp4")
    with open(path, "wb") as out:
        shutil.copyfileobj(file.file, out)
    proc = subprocess.Popen("ffmpeg -i %s -c:v %s /tmp/out.mp4" % (path, codec), shell=True)
    return {"code": proc.wait()}
""",
    ),
    (
        "path-traversal",
        """\
from django.http import FileResponse, Http404
from django.views import View
import os
class Download(View):
    root = "/srv/docs"
    def get(self, request, slug):
        name = request.GET.get("version", "latest") + ".pdf"
        full = os.path.join(self.root, slug, name)
        if not os.path.exists(full):
            raise Http404
        return FileResponse(open(full, "rb"))
""",
    ),
    (
        "xss",
        """\
from flask import Flask, request, Response
app = Flask(__name__)
def row(cells):
    return "<tr>" + "".join(f"<td>{c}</td>" for c in cells) + "</tr>"
@app.route("/table")
def table():
    cells = request.args.getlist("cell")
    html = ["<table>"]
    html.append(row(cells))
    html.append("</table>")
    return Response("\\n".join(html), mimetype="text/html")
""",
    ),
    (
        "ssrf",
        """\
from flask import Flask, request, jsonify
import urllib.request, json
app = Flask(__name__)
def fetch_json(url, timeout=3):
    req = urllib.request.Request(url, headers={"User-Agent": "x"})
    with urllib.request.urlopen(req, timeout=timeout) as r:
        return json.load(r)
@app.route("/avatar")
def avatar():
    host = request.args["host"]
    data = fetch_json("https://" + host + "/api/avatar")
    return jsonify(size=len(data))
""",
    ),
    (
        "open-redirect",
        """\
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
app = FastAPI()
@app.get("/callback")
def callback(request: Request, state: str = "/"):
    url = request.cookies.get("return_to", state)
    if "evil" in url:
        url = "/"
    return RedirectResponse(url, status_code=303)
""",
    ),
    (
        "code-injection",
        """\
from django.http import JsonResponse
def stats(request):
    fields = request.GET.getlist("f")
    rows = [1, 2]
    total = {}
    for f in fields:
        total[f] = eval("sum(r.%s for r in rows)" % f)
    return JsonResponse(total)
""",
    ),
    (
        "unsafe-deserialization",
        """\
from flask import Flask, request
import yaml
app = Flask(__name__)
@app.route("/import", methods=["POST"])
def imp():
    f = request.files["f"]
    cfg = yaml.load(f.stream, yaml.Loader)
    return {"n": len(cfg)}
""",
    ),
    (
        "sql-injection",
        """\
from sqlalchemy import text
from flask import Flask, request
from .db import session
app = Flask(__name__)
SORTS = ["name", "created"]
@app.route("/u")
def u():
    sort = request.args.get("sort", "name")
    if sort.lower() in SORTS or sort.startswith("-"):
        order = sort.lstrip("-")
    else:
        order = "name"
    return {"r": [dict(r) for r in session.execute(text("SELECT * FROM u ORDER BY " + order))]}
""",
    ),
    (
        "path-traversal",
        """\
from aiohttp import web
import pathlib
ROOT = pathlib.Path("/srv/static")
async def static(request):
    name = request.match_info["name"]
    path = ROOT / name
    if not str(path).startswith(str(ROOT)):
        raise web.HTTPForbidden()
    return web.FileResponse(path)
app = web.Application()
app.router.add_get("/static/{name:.*}", static)
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request, g
app = Flask(__name__)
class Query:
    def __init__(self, table):
        self.table, self.parts = table, []
    def where(self, column, value):
        self.parts.append(f"{column} = '{value}'")
        return self
    def sql(self):
        return f"SELECT * FROM {self.table} WHERE {' AND '.join(self.parts)}"
@app.get("/x")
def x():
    q = Query("users").where("name", request.args["name"]).where("active", 1)
    return {"rows": g.db.execute(q.sql()).fetchall()}
""",
    ),
    (
        "path-traversal",
        """\
from flask import Flask, request, send_file
app = Flask(__name__)
@app.get("/x")
def x():
    name = request.args["name"].replace("../", "")
    return send_file("/srv/files/" + name)
""",
    ),
    (
        "command-injection",
        """\
import os
from django.http import HttpResponse
def x(request):
    name = request.POST.get("name")
    if name is None or len(name) > 50 or name.isspace():
        return HttpResponse(status=400)
    os.system(f"useradd {name}")
    return HttpResponse("ok")
""",
    ),
    (
        "xss",
        """\
from django.http import HttpResponse
def x(request, slug):
    q = request.GET.get("q", "")
    if "<script" in q.lower():
        return HttpResponse(status=400)
    return HttpResponse("<p>%s</p>" % q)
""",
    ),
    (
        "ssrf",
        """\
import aiohttp
from fastapi import FastAPI, Query
app = FastAPI()
@app.get("/x")
async def x(url: str = Query(..., min_length=5)):
    async with aiohttp.ClientSession() as s:
        async with s.get(url) as r:
            return await r.json()
""",
    ),
    (
        "open-redirect",
        """\
from flask import Flask, request, redirect
app = Flask(__name__)
@app.get("/x")
def x():
    to = request.args.get("to", "/")
    if to.startswith("/") or to.startswith("https://example.com"):
        return redirect(to)
    return redirect("/")
""",
    ),
]
