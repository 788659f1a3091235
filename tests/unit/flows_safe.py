"""The same handlers as `flows_vulnerable`, written as the documentation advises: nothing may be said of them."""

from __future__ import annotations

CASES: list[tuple[str, str]] = [
    (
        "sql-injection",
        """\
import sqlite3
from flask import Blueprint, request, g, current_app
bp = Blueprint("users", __name__)
def get_db():
    if "db" not in g:
        g.db = sqlite3.connect(current_app.config["DATABASE"])
    return g.db
@bp.route("/find", methods=("GET", "POST"))
def find():
    if request.method == "POST":
        name = request.form["username"]
        user = get_db().execute("SELECT * FROM user WHERE username = ?", (name,)).fetchone()
        return {"u": user["id"]}
    return {}
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import text
app = Flask(__name__)
db = SQLAlchemy(app)
COLUMNS = {"id": "id", "date": "created_at"}
@app.get("/orders/<status>")
def orders(status):
    sort = COLUMNS.get(request.args.get("sort", "id"), "id")
    stmt = text(f"SELECT id FROM orders WHERE status = :s ORDER BY {sort}")
    return {"n": db.session.execute(stmt, {"s": status}).scalar()}
""",
    ),
    (
        "command-injection",
        """\
from flask import Flask, request
import subprocess, ipaddress
app = Flask(__name__)
@app.post("/ping")
def ping():
    payload = request.get_json(force=True)
    target = str(ipaddress.ip_address(payload.get("host", "127.0.0.1")))
    out = subprocess.check_output(f"ping -c 1 {target}", shell=True, text=True)
    return {"out": out}
""",
    ),
    (
        "command-injection",
        """\
from flask import Flask, request
import subprocess
app = Flask(__name__)
@app.post("/ping")
def ping():
    target = request.get_json(force=True)["host"]
    out = subprocess.check_output(["ping", "-c", "1", "--", target], text=True)
    return {"out": out}
""",
    ),
    (
        "path-traversal",
        """\
import os
from flask import Flask, request, send_from_directory
app = Flask(__name__)
UPLOADS = "/srv/uploads"
@app.route("/download")
def download():
    return send_from_directory(UPLOADS, request.args["name"], as_attachment=True)
""",
    ),
    (
        "path-traversal",
        """\
import os
from flask import Flask, request
from werkzeug.utils import secure_filename
app = Flask(__name__)
@app.post("/upload")
def upload():
    f = request.files["file"]
    f.save(os.path.join(app.config["UPLOAD_FOLDER"], secure_filename(f.filename)))
    return {"ok": True}
""",
    ),
    (
        "template-injection",
        """\
from flask import Flask, request, render_template_string
app = Flask(__name__)
@app.route("/hello")
def hello():
    return render_template_string("Hello {{ name }}", name=request.args.get("name", ""))
""",
    ),
    (
        "open-redirect",
        """\
from urllib.parse import urlparse, urljoin
from flask import Flask, request, redirect, url_for, abort
app = Flask(__name__)
def is_safe_url(target):
    ref = urlparse(request.host_url)
    test = urlparse(urljoin(request.host_url, target))
    return test.scheme in ("http", "https") and ref.netloc == test.netloc
@app.route("/login", methods=["POST"])
def login():
    nxt = request.args.get("next")
    if not is_safe_url(nxt):
        return abort(400)
    return redirect(nxt or url_for("index"))
""",
    ),
    (
        "xss",
        """\
from flask import Flask, request, make_response
from markupsafe import escape
app = Flask(__name__)
@app.errorhandler(404)
def missing(error):
    resp = make_response("<h1>Not found: {}</h1>".format(escape(request.path)), 404)
    return resp
""",
    ),
    (
        "xss",
        """\
from flask import Flask
app = Flask(__name__)
@app.route("/user/<int:number>")
def user(number):
    return f"<h1>{number}</h1>"
""",
    ),
    (
        "xss",
        """\
from flask import Flask, request, jsonify
app = Flask(__name__)
@app.route("/echo")
def echo():
    return jsonify(message="Hello " + request.args["n"])
""",
    ),
    (
        "unsafe-deserialization",
        """\
import json
from flask import Flask, request
app = Flask(__name__)
@app.put("/model")
def model():
    loaded = json.load(request.stream)
    return {"kind": type(loaded).__name__}
""",
    ),
    (
        "ssrf",
        """\
from flask import Flask, request
from urllib.parse import urlsplit
import urllib.request
app = Flask(__name__)
ALLOWED = {"example.com", "example.org"}
@app.post("/preview")
def preview():
    url = request.form["url"]
    if urlsplit(url).hostname not in ALLOWED:
        return {"error": "host"}, 400
    with urllib.request.urlopen(url, timeout=5) as page:
        return {"size": len(page.read())}
""",
    ),
    (
        "ssrf",
        """\
from flask import Flask, request
import requests
app = Flask(__name__)
@app.get("/item")
def item():
    r = requests.get("https://api.example.com/items", params={"id": request.args["id"]}, timeout=3)
    return r.json()
""",
    ),
    (
        "code-injection",
        """\
import ast
from flask import Flask, request
app = Flask(__name__)
@app.route("/calc")
def calc():
    expr = request.args.get("expr", "1")
    return {"v": ast.literal_eval(expr)}
""",
    ),
    (
        "xxe",
        """\
from flask import Flask, request
from defusedxml.ElementTree import fromstring
app = Flask(__name__)
@app.post("/xml")
def xml():
    return {"root": fromstring(request.get_data()).tag}
""",
    ),
    (
        "xxe",
        """\
import xml.sax
from xml.sax import handler
import io
from flask import Flask, request
app = Flask(__name__)
@app.post("/xml")
def parse():
    p = xml.sax.make_parser()
    p.setFeature(handler.feature_external_ges, False)
    p.setContentHandler(handler.ContentHandler())
    p.parse(io.BytesIO(request.data))
    return {}
""",
    ),
    (
        "ldap-injection",
        """\
import ldap
from ldap.filter import escape_filter_chars
from flask import Flask, request
app = Flask(__name__)
@app.get("/who")
def who():
    con = ldap.initialize("ldap://directory")
    rows = con.search_s("ou=people,dc=x", ldap.SCOPE_SUBTREE, "(cn=%s)" % escape_filter_chars(request.args["cn"]))
    return {"n": len(rows)}
""",
    ),
    (
        "xpath-injection",
        """\
from lxml import etree
from flask import Flask, request
app = Flask(__name__)
TREE = etree.parse("users.xml")
@app.get("/who")
def who():
    found = TREE.xpath("//user[@name=$n]", n=request.args["n"])
    return {"ok": bool(found)}
""",
    ),
    (
        "log-injection",
        """\
import logging
from flask import Flask, request
app = Flask(__name__)
log = logging.getLogger(__name__)
@app.post("/login")
def login():
    log.warning("failed login for %r", request.form["user"])
    return {}, 403
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request
from flask.views import MethodView
import psycopg2
from psycopg2 import sql
app = Flask(__name__)
class Items(MethodView):
    def __init__(self):
        self.conn = psycopg2.connect("dbname=x")
    def delete(self, item_id):
        with self.conn.cursor() as cur:
            cur.execute(sql.SQL("DELETE FROM {} WHERE id = %s").format(sql.Identifier(request.args["t"])), (item_id,))
        return {}
app.add_url_rule("/items/<item_id>", view_func=Items.as_view("items"))
""",
    ),
    (
        "sql-injection",
        """\
from django.db import connection
from django.http import JsonResponse
def report(request):
    year = request.GET.get("year", "2020")
    with connection.cursor() as cursor:
        cursor.execute("SELECT SUM(total) FROM sales WHERE year = %s", [year])
        row = cursor.fetchone()
    return JsonResponse({"sum": row[0]})
""",
    ),
    (
        "sql-injection",
        """\
from django.shortcuts import render
from .models import Person
def people(request):
    last = request.POST["last"]
    rows = Person.objects.raw("SELECT * FROM app_person WHERE last_name = %s", [last])
    return render(request, "people.html", {"rows": rows})
""",
    ),
    (
        "sql-injection",
        """\
from django.views.generic import ListView
from .models import Entry
class Entries(ListView):
    model = Entry
    def get_queryset(self):
        name = self.request.GET.get("name")
        return Entry.objects.filter(headline__contains=name).order_by("-pub_date")
""",
    ),
    (
        "xss",
        """\
from django.http import HttpResponse
from django.utils.html import escape
def greet(request):
    return HttpResponse("Hello " + escape(request.GET["name"]))
""",
    ),
    (
        "xss",
        """\
from django.http import HttpResponse
def greet(request):
    return HttpResponse("Hello " + request.GET["name"], content_type="text/plain")
""",
    ),
    (
        "xss",
        """\
from django.utils.html import format_html
from django.shortcuts import render
def page(request):
    note = format_html("<i>{}</i>", request.GET.get("note", ""))
    return render(request, "page.html", {"note": note})
""",
    ),
    (
        "open-redirect",
        """\
from django.http import HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
def leave(request):
    nxt = request.GET.get("next", "/")
    if not url_has_allowed_host_and_scheme(nxt, allowed_hosts={request.get_host()}):
        nxt = "/"
    return HttpResponseRedirect(nxt)
""",
    ),
    (
        "open-redirect",
        """\
from django.shortcuts import redirect
from django.views import View
class Done(View):
    def post(self, request, *args, **kwargs):
        return redirect("order-detail", pk=request.POST.get("order"))
""",
    ),
    (
        "path-traversal",
        """\
import os
from django.conf import settings
from django.http import FileResponse, Http404
def media(request, name):
    root = os.path.realpath(settings.MEDIA_ROOT)
    path = os.path.realpath(os.path.join(root, request.GET["f"]))
    if os.path.commonpath([root, path]) != root:
        raise Http404
    return FileResponse(open(path, "rb"))
""",
    ),
    (
        "command-injection",
        """\
import os, shlex
from django.http import HttpResponse
from django.views.decorators.http import require_POST
@require_POST
def convert(request):
    name = request.POST.get("file")
    os.system("convert %s out.png" % shlex.quote(name))
    return HttpResponse(status=204)
""",
    ),
    (
        "sql-injection",
        """\
from rest_framework.views import APIView
from rest_framework.response import Response
from django.db import connection
class Search(APIView):
    def post(self, request):
        limit = int(request.data["limit"])
        with connection.cursor() as c:
            c.execute(f"SELECT id FROM docs LIMIT {limit}")
            return Response(c.fetchall())
""",
    ),
    (
        "sql-injection",
        """\
from fastapi import FastAPI
import sqlite3
app = FastAPI()
@app.get("/items/{item_id}")
async def item(item_id: int):
    con = sqlite3.connect("x.db")
    return con.execute(f"select * from items where id = {item_id}").fetchall()
""",
    ),
    (
        "sql-injection",
        """\
from enum import Enum
from fastapi import APIRouter, Depends
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession
from .db import get_session
router = APIRouter()
class Field(str, Enum):
    name = "name"
    age = "age"
@router.get("/search")
async def search(field: Field, v: str, session: AsyncSession = Depends(get_session)):
    result = await session.execute(text("select * from t where " + field.value + " = :v"), {"v": v})
    return result.all()
""",
    ),
    (
        "sql-injection",
        """\
from fastapi import APIRouter, Depends
from sqlalchemy import select
from sqlalchemy.orm import Session
from .db import get_session, User
router = APIRouter()
@router.get("/users")
def users(name: str, session: Session = Depends(get_session)):
    return session.execute(select(User).where(User.name == name)).scalars().all()
""",
    ),
    (
        "path-traversal",
        """\
from pathlib import Path
from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse
app = FastAPI()
ROOT = Path("/srv/files").resolve()
@app.get("/files/{file_path:path}")
def get_file(file_path: str):
    path = (ROOT / file_path).resolve()
    if not path.is_relative_to(ROOT):
        raise HTTPException(404)
    return FileResponse(path)
""",
    ),
    (
        "path-traversal",
        """\
import shutil, uuid
from fastapi import FastAPI, UploadFile
app = FastAPI()
@app.post("/upload")
async def upload(file: UploadFile):
    with open(f"/data/{uuid.uuid4().hex}", "wb") as out:
        shutil.copyfileobj(file.file, out)
    return {}
""",
    ),
    (
        "ssrf",
        """\
import httpx
from fastapi import FastAPI
app = FastAPI()
@app.get("/proxy")
async def proxy(number: int):
    async with httpx.AsyncClient() as client:
        r = await client.get(f"https://api.internal/items/{number}")
    return r.status_code
""",
    ),
    (
        "xss",
        """\
from fastapi import FastAPI
app = FastAPI()
@app.get("/hi")
def hi(name: str = "you"):
    return f"<p>Hi {name}</p>"
""",
    ),
    (
        "xss",
        """\
import html
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
app = FastAPI()
@app.get("/hi")
def hi(name: str = "you"):
    return HTMLResponse(f"<p>Hi {html.escape(name)}</p>")
""",
    ),
    (
        "open-redirect",
        """\
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
app = FastAPI()
@app.get("/go")
async def go(request: Request):
    return RedirectResponse(f"/items/{request.query_params['to']}")
""",
    ),
    (
        "command-injection",
        """\
import asyncio
from fastapi import FastAPI, Form
app = FastAPI()
@app.post("/render")
async def render(name: str = Form()):
    proc = await asyncio.create_subprocess_exec("pandoc", "--", name)
    await proc.wait()
    return {}
""",
    ),
    (
        "unsafe-deserialization",
        """\
import yaml
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
async def load(request):
    body = await request.body()
    doc = yaml.safe_load(body)
    return JSONResponse({"n": len(doc)})
app = Starlette(routes=[Route("/load", load, methods=["POST"])])
""",
    ),
    (
        "sql-injection",
        """\
from aiohttp import web
import aiosqlite
routes = web.RouteTableDef()
@routes.get("/u/{name}")
async def handle(request):
    name = request.match_info["name"]
    async with aiosqlite.connect("x.db") as db:
        async with db.execute("select id from u where name=?", (name,)) as cur:
            row = await cur.fetchone()
    return web.json_response({"id": row[0]})
""",
    ),
    (
        "xss",
        """\
from aiohttp import web
async def handle(request):
    data = await request.post()
    return web.Response(text="hello " + data["who"])
app = web.Application()
app.add_routes([web.post("/", handle)])
""",
    ),
    (
        "command-injection",
        """\
import tornado.web, subprocess
class Main(tornado.web.RequestHandler):
    def get(self):
        mode = self.get_argument("m")
        if mode not in ("short", "long"):
            raise tornado.web.HTTPError(400)
        self.write({"out": subprocess.getoutput("report --" + mode)})
""",
    ),
    (
        "unsafe-deserialization",
        """\
import pickle
def load_cache(path):
    data = {"a": 1}
    blob = pickle.dumps(data)
    return pickle.loads(blob)
""",
    ),
    (
        "command-injection",
        """\
import argparse, subprocess
def main():
    p = argparse.ArgumentParser()
    p.add_argument("--jobs", type=int)
    a = p.parse_args()
    subprocess.run(f"make -j {a.jobs}", shell=True, check=True)
""",
    ),
    (
        "code-injection",
        """\
import os
DEBUG = os.environ.get("DEBUG") == "1"
def run():
    return eval("1 + 1")
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request
import sqlite3
app = Flask(__name__)
class Repo:
    def __init__(self, con): self.con = con
    def by_email(self, email):
        return self._one("email", email)
    def _one(self, col, value):
        return self.con.execute("select * from u where %s = ?" % col, (value,)).fetchone()
@app.get("/u")
def u():
    repo = Repo(sqlite3.connect("x"))
    return {"u": repo.by_email(request.args["email"])}
""",
    ),
    (
        "path-traversal",
        """\
import os, re
from flask import Flask, request, abort
app = Flask(__name__)
@app.get("/r")
def r():
    name = request.args["name"]
    if not re.fullmatch(r"[a-z0-9_]+", name):
        abort(400)
    with open(os.path.join("/srv/reports", name + ".txt")) as f:
        return {"t": f.read()}
""",
    ),
    (
        "template-injection",
        """\
from jinja2.sandbox import SandboxedEnvironment
from fastapi import FastAPI, Body
app = FastAPI()
@app.post("/mail")
def mail(body: str = Body(...)):
    return {"text": SandboxedEnvironment().from_string(body).render(user="x")}
""",
    ),
    (
        "code-injection",
        """\
import importlib
from flask import Flask, request
app = Flask(__name__)
PLUGINS = {"a": "plugins.a", "b": "plugins.b"}
@app.get("/run")
def run():
    mod = importlib.import_module(PLUGINS[request.args["plugin"]])
    return {"r": mod.run()}
""",
    ),
    (
        "command-injection",
        """\
from flask import Flask, request
import subprocess
app = Flask(__name__)
@app.get("/run")
def run():
    n = request.args.get("n", type=int)
    subprocess.run("head -n %d log" % n, shell=True)
    return {}
""",
    ),
    (
        "xss",
        """\
from flask import Flask, request, Response
app = Flask(__name__)
@app.get("/csv")
def csv():
    return Response("a," + request.args["a"], mimetype="text/csv")
""",
    ),
    (
        "ssrf",
        """\
from flask import Flask, request
import requests
app = Flask(__name__)
HOSTS = ["https://a.example", "https://b.example"]
@app.get("/x")
def x():
    base = HOSTS[int(request.args["i"])]
    return requests.get(base + "/status", timeout=2).json()
""",
    ),
    (
        "open-redirect",
        """\
from flask import Flask, request, redirect
app = Flask(__name__)
@app.get("/x")
def x():
    nxt = request.args.get("next", "/")
    if not nxt.startswith("/") or nxt.startswith("//") or "\\\\" in nxt:
        nxt = "/"
    return redirect(nxt)
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request
import sqlite3
app = Flask(__name__)
@app.get("/x")
def x():
    ids = request.args.getlist("id")
    marks = ",".join("?" * len(ids))
    con = sqlite3.connect("x")
    return {"r": con.execute(f"select * from t where id in ({marks})", ids).fetchall()}
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request
import uuid, sqlite3
app = Flask(__name__)
@app.get("/x")
def x():
    key = uuid.UUID(request.args["id"])
    con = sqlite3.connect("x")
    return {"r": con.execute(f"select * from t where id = '{key}'").fetchall()}
""",
    ),
    (
        "sql-injection",
        """\
from quart import Quart, request
import asyncpg
app = Quart(__name__)
@app.get("/x")
async def x():
    conn = await asyncpg.connect("postgres://")
    return {"r": await conn.fetch("SELECT * FROM t WHERE name = $1", request.args.get("name"))}
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request
import sqlite3
app = Flask(__name__)
ALLOWED = ("name", "date", "size")
@app.get("/x")
def x():
    col = request.args.get("sort", "name")
    if col not in ALLOWED:
        col = "name"
    d = "DESC" if request.args.get("desc") else "ASC"
    return {"r": sqlite3.connect("x").execute(f"select * from t order by {col} {d}").fetchall()}
""",
    ),
    (
        "path-traversal",
        """\
from pathlib import Path
from flask import Flask, request, abort, send_file
app = Flask(__name__)
ROOT = Path("/srv").resolve()
@app.get("/f")
def f():
    p = (ROOT / request.args["n"]).resolve()
    if ROOT not in p.parents:
        abort(404)
    return send_file(p)
""",
    ),
    (
        "path-traversal",
        """\
import os
from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse
app = FastAPI()
@app.get("/f/{name}")
def f(name: str):
    path = os.path.abspath(os.path.join("/srv", name))
    if not path.startswith("/srv/"):
        raise HTTPException(400)
    return FileResponse(path)
""",
    ),
    (
        "command-injection",
        """\
from enum import Enum
from fastapi import FastAPI
import subprocess
app = FastAPI()
class Mode(str, Enum):
    a = "a"
    b = "b"
@app.post("/x")
def x(mode: Mode, n: int):
    subprocess.run(f"tool --{mode.value} {n}", shell=True)
    return {}
""",
    ),
    (
        "xss",
        """\
from django.shortcuts import render
def v(request):
    return render(request, "a.html", {"name": request.GET.get("name")})
""",
    ),
    (
        "xss",
        """\
from flask import Flask, request, Response
import json
app = Flask(__name__)
@app.get("/j")
def j():
    return Response(json.dumps({"q": request.args.get("q")}), content_type="application/json")
""",
    ),
    (
        "ssrf",
        """\
import requests
from flask import Flask, request, abort
from urllib.parse import urlparse
app = Flask(__name__)
HOSTS = frozenset({"api.example.com"})
@app.get("/p")
def p():
    u = urlparse(request.args["u"])
    if u.scheme != "https" or u.hostname not in HOSTS:
        abort(400)
    return requests.get(u.geturl(), timeout=3).text
""",
    ),
    (
        "open-redirect",
        """\
from flask import Flask, request, redirect, url_for
app = Flask(__name__)
@app.post("/o")
def o():
    page = request.form["page"]
    return redirect(url_for("show", page=page))
""",
    ),
    (
        "unsafe-deserialization",
        """\
from fastapi import FastAPI, Request
import json, hmac, hashlib, os, pickle
app = FastAPI()
@app.post("/p")
async def p(request: Request):
    return json.loads(await request.body())
""",
    ),
    (
        "code-injection",
        """\
from flask import Flask, request
import operator
app = Flask(__name__)
OPS = {"+": operator.add, "-": operator.sub}
@app.get("/c")
def c():
    f = OPS[request.args["op"]]
    return {"r": f(float(request.args["a"]), float(request.args["b"]))}
""",
    ),
    (
        "template-injection",
        """\
from flask import Flask, request, render_template
app = Flask(__name__)
PAGES = {"a": "a.html", "b": "b.html"}
@app.get("/t")
def t():
    return render_template(PAGES.get(request.args["p"], "a.html"), x=request.args.get("x"))
""",
    ),
    (
        "command-injection",
        """\
import subprocess, re
from flask import Flask, request, abort
app = Flask(__name__)
BRANCH = re.compile(r"[A-Za-z0-9._-]+")
@app.post("/b")
def b():
    name = request.form["branch"]
    if not BRANCH.fullmatch(name):
        abort(400)
    subprocess.run(f"git checkout {name}", shell=True, check=True)
    return {}
""",
    ),
    (
        "sql-injection",
        """\
from sqlalchemy import text
from flask import Flask, request
app = Flask(__name__)
@app.get("/x")
def x():
    stmt = text("select * from t where a = :a and b = :b").bindparams(a=request.args["a"], b=request.args["b"])
    return {"r": app.session.execute(stmt).all()}
""",
    ),
]
