"""A generated list of credentials, and of what only looks like one. Nothing in it opens anything."""
# ruff: noqa: ARG005 - every maker has the same signature

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import uuid
import zlib
from collections.abc import Callable, Iterator

Case = tuple[str, str]
Maker = Callable[[random.Random], Case]

_LETTERS = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_WORDS = [
    "apple",
    "river",
    "stone",
    "window",
    "printer",
    "garden",
    "coffee",
    "orange",
    "planet",
    "silver",
]


def _text(r: random.Random, length: int, letters: str = _LETTERS) -> str:
    return "".join(r.choice(letters) for _ in range(length))


def _checksummed(r: random.Random, prefix: str) -> str:
    body = _text(r, 30)
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return prefix + body + digits.rjust(6, "0")


def _encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _jwt(r: random.Random) -> str:
    claims = {"sub": str(r.randrange(10**6)), "iat": r.randrange(10**9), "name": _text(r, 8)}
    return f"{_encoded({'alg': 'HS256', 'typ': 'JWT'})}.{_encoded(claims)}.{_text(r, 43, _LETTERS + '-_')}"


_POSITIVE: list[Maker] = [
    lambda r: ("a.py", f'TOKEN = "{_checksummed(r, "ghp_")}"'),
    lambda r: ("a.py", f't = "{_checksummed(r, "ghs_")}"'),
    lambda r: ("a.py", f'x = "gho_{_text(r, 36)}"'),
    lambda r: ("a.py", f'x = "ghs_{r.randrange(10**6)}_{_jwt(r)}"'),
    lambda r: ("c.yml", f"token: github_pat_{_text(r, 22)}_{_text(r, 59)}"),
    lambda r: (".env", f"AWS_ACCESS_KEY_ID=AKIA{_text(r, 16, string.ascii_uppercase + '234567')}"),
    lambda r: (".env", f"AWS_SECRET_ACCESS_KEY={_text(r, 40, _LETTERS + '+/')}"),
    lambda r: ("a.py", f'aws_secret_access_key="{_text(r, 40, _LETTERS + "+/")}"'),
    lambda r: ("a.js", f'const key = "AIza{_text(r, 35, _LETTERS + "-_")}";'),
    lambda r: ("a.cs", f'"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={_text(r, 86, _LETTERS + "+/")}=="'),
    lambda r: ("a.py", f'slack = "xoxb-{_text(r, 12, string.digits)}-{_text(r, 12, string.digits)}-{_text(r, 24)}"'),
    lambda r: ("a.rb", f'Stripe.api_key = "sk_live_{_text(r, 24)}"'),
    lambda r: (".npmrc", f"//registry.example/:_authToken={_checksummed(r, 'npm_')}"),
    lambda r: (".pypirc", f"password = pypi-AgEIcHlwaS5vcmc{_text(r, 150, _LETTERS + '-_')}"),
    lambda r: ("id_rsa", "-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join(_text(r, 64, _LETTERS + "+/") for _ in range(10)) + "\n-----END RSA PRIVATE KEY-----"),
    lambda r: ("k", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "\n".join(_text(r, 70, _LETTERS + "+/") for _ in range(6)) + "\n-----END OPENSSH PRIVATE KEY-----"),
    lambda r: ("a.json", f'"private_key": "-----BEGIN PRIVATE KEY-----\\n{_text(r, 200, _LETTERS + "+/")}\\n-----END PRIVATE KEY-----\\n"'),
    lambda r: ("a.py", f'jwt = "{_jwt(r)}"'),
    lambda r: ("a.py", f'DB = "postgres://app:{_text(r, 16)}@db.prod.acme.io:5432/app"'),
    lambda r: ("a.yml", f"url: mongodb+srv://svc:{_text(r, 20)}@cluster0.ab1cd.mongodb.net/x"),
    lambda r: ("a.py", f'api_key = "{_text(r, 32)}"'),
    lambda r: ("a.js", f'const clientSecret = "{_text(r, 40, _LETTERS + "-_")}"'),
    lambda r: ("a.yaml", f"db_password: {_text(r, 9)}9a!Z"),
    lambda r: ("a.py", f'password = "{_text(r, 10)}#7kQ"'),
    lambda r: ("a.py", f'connect(host, password="{_text(r, 12)}4R")'),
    lambda r: ("a.go", f'apiToken := "{_text(r, 40, _HEX)}"'),
    lambda r: ("a.java", f'String secretKey = "{base64.b64encode(r.randbytes(32)).decode()}";'),
    lambda r: ("a.py", f'headers = {{"Authorization": "Bearer {_text(r, 48)}"}}'),
    lambda r: ("a.sh", f'curl -H "X-Api-Key: {_text(r, 40)}" https://api.acme.io'),
    lambda r: ("a.py", f'openai = "sk-proj-{_text(r, 60, _LETTERS + "-_")}"'),
    lambda r: ("a.py", f'k = "sk-ant-api03-{_text(r, 80, _LETTERS + "-_")}-{_text(r, 6)}AA"'),
    lambda r: ("a.py", f'hf = "hf_{_text(r, 34, string.ascii_letters)}"'),
    lambda r: ("a.py", f'sg = "SG.{_text(r, 22, _LETTERS + "-_")}.{_text(r, 43, _LETTERS + "-_")}"'),
    lambda r: ("a.sh", f"export DO_TOKEN=dop_v1_{_text(r, 64, _HEX)}"),
    lambda r: ("a.py", f'gl = "glpat-{_text(r, 20, _LETTERS + "-_")}"'),
    lambda r: ("a.tf", f'secret = "{_text(r, 24)}"'),
    lambda r: ("config.ini", f"secret_key = {_text(r, 50, _LETTERS + '!@^&*')}"),
    lambda r: ("a.json", f'"access_token": "{_text(r, 36)}"'),
    lambda r: ("a.py", f'tg = "{_text(r, 10, "123456789")}:AA{_text(r, 33, _LETTERS + "-_")}"'),
    lambda r: ("a.py", f'W = "https://hooks.slack.com/services/T{_text(r, 9, string.ascii_uppercase)}/B{_text(r, 9, string.ascii_uppercase)}/{_text(r, 24)}"'),
]  # fmt: skip

_NEGATIVE: list[Maker] = [
    lambda r: ("a.py", 'token = "your-api-token-here"'),
    lambda r: ("a.py", f'password = os.environ["{r.choice(_WORDS).upper()}_PASSWORD"]'),
    lambda r: ("a.yml", "token: ${{ secrets.GITHUB_TOKEN }}"),
    lambda r: ("a.py", f'commit = "{_text(r, 40, _HEX)}"'),
    lambda r: ("a.py", f'sha256 = "{hashlib.sha256(_text(r, 5).encode()).hexdigest()}"'),
    lambda r: ("a.py", f'request_id = "{uuid.UUID(int=r.getrandbits(128))}"'),
    lambda r: ("a.py", f'session_token_uuid = "{uuid.UUID(int=r.getrandbits(128))}"'),
    lambda r: ("a.json", f'"integrity": "sha512-{_text(r, 86, _LETTERS + "+/")}=="'),
    lambda r: ("requirements.txt", f"flask==3.0 --hash=sha256:{_text(r, 64, _HEX)}"),
    lambda r: ("a.py", 'api_key = "<YOUR_API_KEY>"'),
    lambda r: ("a.py", 'AWS_ACCESS_KEY_ID = "AKIAIOSFODNN7EXAMPLE"'),
    lambda r: (".env", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    lambda r: ("a.py", 'password = "changeme"'),
    lambda r: (".env", "DB_PASSWORD=password"),
    lambda r: ("a.yml", "url: postgres://postgres:postgres@localhost:5432/app"),
    lambda r: ("a.py", 'url = f"postgres://{user}:{password}@{host}/db"'),
    lambda r: ("a.py", f'token_url = "https://{r.choice(_WORDS)}.example.com/oauth/token"'),
    lambda r: ("a.py", f'secret_name = "prod/{r.choice(_WORDS)}/db-credentials"'),
    lambda r: ("a.py", f'password_field = "{r.choice(_WORDS)}Password"'),
    lambda r: ("a.py", "token = tokenizer.next_token()"),
    lambda r: ("a.py", 'ghp = "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"'),
    lambda r: ("a.css", f"background: url(data:image/png;base64,{_text(r, 200, _LETTERS + '+/')})"),
    lambda r: ("a.py", f'PUBLIC_KEY = "{base64.b64encode(r.randbytes(64)).decode()}"'),
    lambda r: ("a.pem", f"-----BEGIN PUBLIC KEY-----\n{_text(r, 64)}\n-----END PUBLIC KEY-----"),
    lambda r: ("a.pem", f"-----BEGIN CERTIFICATE-----\n{_text(r, 64)}\n-----END CERTIFICATE-----"),
    lambda r: ("a.py", 'print("-----BEGIN RSA PRIVATE KEY-----")'),
    lambda r: ("a.js", f'const passwordInput = document.getElementById("{r.choice(_WORDS)}-password-input")'),
    lambda r: ("a.py", f'access_token: str = Field(description="{r.choice(_WORDS)} token")'),
    lambda r: ("a.ts", "token: string;"),
    lambda r: ("a.py", 'j = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"'),
    lambda r: ("a.py", f'csrf_token = "{r.choice(_WORDS)}"'),
    lambda r: ("a.py", f'etag = "{_text(r, 32, _HEX)}"'),
    lambda r: ("a.py", f'secret = get_secret("{r.choice(_WORDS)}-{r.choice(_WORDS)}")'),
    lambda r: ("tests/test_a.py", f'token = "{_text(r, 32)}"'),
    lambda r: ("README.md", "export API_KEY=abc123def456ghi789"),
    lambda r: ("a.py", f'id = "{_text(r, 24, _HEX)}"'),
    lambda r: ("a.yaml", f'password: "{{{{ vault_{r.choice(_WORDS)}_password }}}}"'),
    lambda r: ("a.py", 'api_key_header = "X-API-Key"'),
    lambda r: ("a.py", f'SECRET_KEY = "django-insecure-{r.choice(_WORDS)}"'),
    lambda r: ("a.py", f'password_hash = "$2b$12${_text(r, 53, _LETTERS + "./")}"'),
    lambda r: ("a.py", f'token = "{r.choice(_WORDS)}_{r.choice(_WORDS)}_{r.choice(_WORDS)}"'),
    lambda r: ("a.py", 'max_tokens = "4096000000"'),
    lambda r: ("a.py", f'key = "{r.choice(_WORDS)}.{r.choice(_WORDS)}.{r.choice(_WORDS)}"'),
    lambda r: ("a.py", f'author = "{_text(r, 20)}"'),
    lambda r: ("a.go", f'const tokenKind = "{r.choice(_WORDS).title()}{r.choice(_WORDS).title()}"'),
    lambda r: ("a.py", f'password = "{r.choice(_WORDS)}{r.choice(_WORDS)}"'),
    lambda r: ("go.sum", f"github.com/x/y v1.2.3 h1:{_text(r, 43, _LETTERS + '+/')}="),
    lambda r: ("a.py", f'font = "{_text(r, 64, _LETTERS + "+/")}"'),
    lambda r: ("a.yml", f"uses: actions/checkout@{_text(r, 40, _HEX)}"),
    lambda r: ("a.tf", f'secret_arn = "arn:aws:secretsmanager:us-east-1:{_text(r, 12, string.digits)}:secret:{r.choice(_WORDS)}-AbCdEf"'),
    lambda r: ("a.js", f"apiKey: process.env.API_KEY_{r.choice(_WORDS).upper()}"),
]  # fmt: skip

KINDS = len(_POSITIVE)
HARD_NEGATIVES = len(_NEGATIVE)


def positives(seed: int, each: int) -> Iterator[Case]:
    """Files (path, text) with a credential in them."""
    yield from _made(_POSITIVE, seed, each)


def negatives(seed: int, each: int) -> Iterator[Case]:
    """Files (path, text) with none."""
    yield from _made(_NEGATIVE, seed, each)


def _made(makers: list[Maker], seed: int, each: int) -> Iterator[Case]:
    r = random.Random(seed)
    for _ in range(each):
        for maker in makers:
            yield maker(r)
