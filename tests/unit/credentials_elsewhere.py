"""A second generated list of credentials, written apart from the first: other formats, other places to stand.

Nothing in it opens anything.
"""
# ruff: noqa: ARG005, S608 - every maker has the same signature; no statement is run

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable

Maker = Callable[[random.Random], tuple[str, str]]
L, U, D = string.ascii_lowercase, string.ascii_uppercase, string.digits
A = L + U + D


def r(g: random.Random, alphabet: str, n: int) -> str:
    return "".join(g.choice(alphabet) for _ in range(n))


def hx(g: random.Random, n: int) -> str:
    return r(g, "0123456789abcdef", n)


def pw(g: random.Random) -> str:
    """What a password manager makes, with signs."""
    drawn = [*g.sample(L, 4), *g.sample(U, 4), *g.sample(D, 3), *g.sample("!#%*+-=?@^_~", 2)]
    return "".join(drawn) + r(g, A, 5)


def pwa(g: random.Random) -> str:
    """The same without signs."""
    drawn = [*g.sample(L, 5), *g.sample(U, 5), *g.sample(D, 4), *r(g, A, 4)]
    g.shuffle(drawn)
    return "".join(drawn)


def u(g: random.Random) -> str:
    return str(uuid.UUID(int=g.getrandbits(128), version=4))


def b64(g: random.Random, n: int) -> str:
    return base64.b64encode(g.randbytes(n)).decode()


CREDENTIALS: dict[str, Maker] = {
    # formats
    "azure devops pat": lambda g: (
        "ci/push.sh",
        f"AZURE_DEVOPS_EXT_PAT={r(g, L + '234567', 52)} az devops login",
    ),
    "artifactory": lambda g: ("pip.conf", f"api_key = AKCp8{r(g, A, 68)}"),
    "bitbucket app password": lambda g: ("deploy.py", f'APP_PASSWORD = "ATBB{r(g, A, 32)}"'),
    "gitlab runner": lambda g: ("config.toml", f'token = "GR1348941{r(g, A + "-_", 20)}"'),
    "netlify": lambda g: ("netlify.sh", f"netlify deploy --auth nfp_{r(g, A, 36)}"),
    "sonar": lambda g: ("sonar-project.properties", f"sonar.token=sqp_{hx(g, 40)}"),
    "sonar bare": lambda g: ("Jenkinsfile", f'sh "mvn sonar:sonar -Dsonar.login=squ_{hx(g, 40)}"'),
    "airtable": lambda g: (
        "sync.js",
        f'const base = new Airtable("pat{r(g, A, 14)}.{hx(g, 64)}").base(id)',
    ),
    "figma": lambda g: ("figma.ts", f'headers: {{ "X-Figma-Token": "figd_{r(g, A + "-_", 40)}" }}'),
    "dynatrace": lambda g: (
        "values.yaml",
        f"  paas: dt0c01.{r(g, U + '234567', 24)}.{r(g, U + '234567', 64)}",
    ),
    "prefect": lambda g: ("flow.py", f'login(key="pnu_{r(g, L + D, 36)}")'),
    "openrouter": lambda g: ("chat.py", f'client = OpenAI(api_key="sk-or-v1-{hx(g, 64)}")'),
    "xai": lambda g: ("chat.py", f'client = Client("xai-{r(g, A, 80)}")'),
    "perplexity": lambda g: (
        "q.sh",
        f'curl -H "Authorization: Bearer pplx-{r(g, A, 48)}" https://api.perplexity.ai',
    ),
    "deepseek": lambda g: (
        "chat.py",
        f'client = OpenAI(api_key="sk-{hx(g, 32)}", base_url="https://api.deepseek.com")',
    ),
    "brevo": lambda g: (
        "mail.php",
        f'$config->setApiKey("api-key", "xkeysib-{hx(g, 64)}-{r(g, A, 16)}");',
    ),
    "contentful": lambda g: (
        "cms.ts",
        f'createClient({{ accessToken: "CFPAT-{r(g, A + "-_", 43)}" }})',
    ),
    "easypost": lambda g: ("ship.rb", f'EasyPost.api_key = "EZAK{r(g, A, 54)}"'),
    "duffel": lambda g: ("fly.js", f'new Duffel({{ token: "duffel_live_{r(g, A + "_-", 43)}" }})'),
    "flutterwave": lambda g: ("pay.php", f'$fw = new Rave("FLWSECK-{hx(g, 32)}-X");'),
    "razorpay secret": lambda g: (
        "pay.py",
        f'client = razorpay.Client(auth=("rzp_live_{r(g, A, 14)}", "{r(g, A, 24)}"))',
    ),
    "braintree": lambda g: (
        "pay.rb",
        f'access_token: "access_token$production${r(g, L + D, 16)}${hx(g, 32)}"',
    ),
    "tailscale": lambda g: (
        "vpn.sh",
        f"tailscale up --authkey tskey-auth-k{r(g, A, 11)}CNTRL-{r(g, A, 32)}",
    ),
    "nuget": lambda g: ("publish.ps1", f"dotnet nuget push *.nupkg --api-key oy2{r(g, L + D, 43)}"),
    "1password service": lambda g: (
        ".env",
        "OP_SERVICE_ACCOUNT_TOKEN=ops_"
        + base64.urlsafe_b64encode(
            json.dumps(
                {
                    "signInAddress": "x.1password.com",
                    "muk": {"k": r(g, A, 43)},
                    "deviceUuid": r(g, L, 26),
                }
            ).encode()
        )
        .decode()
        .rstrip("="),
    ),
    "mapbox secret": lambda g: (
        "map.js",
        'mapboxgl.accessToken = "sk.'
        + base64.urlsafe_b64encode(json.dumps({"u": r(g, L, 8), "a": r(g, L + D, 25)}).encode())
        .decode()
        .rstrip("=")
        + f'.{r(g, A + "-_", 22)}"',
    ),
    "fcm": lambda g: (
        "push.py",
        f'push = FCMNotification(api_key="AAAA{r(g, A + "-_", 7)}:{r(g, A + "-_", 140)}")',
    ),
    "alibaba secret": lambda g: (
        "oss.go",
        f'client, err := oss.New(endpoint, "LTAI5t{r(g, A, 18)}", "{r(g, A, 30)}")',
    ),
    "yandex": lambda g: ("ya.py", f'API_KEY = "AQVN{r(g, A + "-_", 36)}"'),
    "okta": lambda g: ("okta.http", f"Authorization: SSWS 00{r(g, A + '-_', 40)}"),
    "cloudflare": lambda g: (".env.production", f"CLOUDFLARE_API_TOKEN={r(g, A + '-_', 40)}"),
    "datadog": lambda g: ("compose.yml", f"      - DD_API_KEY={hx(g, 32)}"),
    "vercel": lambda g: ("deploy.sh", f"vercel --prod --token {r(g, A, 24)}"),
    "asana": lambda g: (
        "asana.py",
        f'client = asana.Client.access_token("1/{r(g, D, 16)}:{hx(g, 32)}")',
    ),
    "launchdarkly": lambda g: ("flags.py", f'ldclient.set_config(Config(sdk_key="sdk-{u(g)}"))'),
    "clojars": lambda g: ("deploy.clj", f'(def token "CLOJARS_{r(g, L + D, 60)}")'),
    "typeform": lambda g: (
        "forms.js",
        f'createClient({{ token: "tfp_{r(g, A, 44)}_{r(g, A, 14)}" }})',
    ),
    # key material
    "putty key": lambda g: (
        "id.ppk",
        f"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 2\n{b64(g, 48)}\n{b64(g, 24)}\nPrivate-Lines: 1\n{b64(g, 36)}\nPrivate-MAC: {hx(g, 64)}",
    ),
    "key in json": lambda g: (
        "sa.json",
        '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----\\n'
        + "\\n".join(b64(g, 48) for _ in range(10))
        + '\\n-----END PRIVATE KEY-----\\n"}',
    ),
    "key in python": lambda g: (
        "keys.py",
        'KEY = """-----BEGIN EC PRIVATE KEY-----\n'
        + "\n".join(b64(g, 48) for _ in range(3))
        + '\n-----END EC PRIVATE KEY-----"""',
    ),
    "jwk private": lambda g: (
        "jwk.json",
        '{{"kty": "EC", "crv": "P-256", "x": "{}", "y": "{}", "d": "{}"}}'.format(
            *tuple(base64.urlsafe_b64encode(g.randbytes(32)).decode().rstrip("=") for _ in range(3))
        ),
    ),
    # places
    "netrc": lambda g: (".netrc", f"machine api.heroku.com login bot@corp.io password {u(g)}"),
    "netrc pw": lambda g: (".netrc", f"machine git.corp.io login bot password {pwa(g)}"),
    "pgpass": lambda g: (".pgpass", f"db.corp.io:5432:app:app_rw:{pwa(g)}"),
    "xml element": lambda g: ("settings.xml", f"      <password>{pwa(g)}</password>"),
    "xml attribute": lambda g: (
        "web.config",
        f'    <add key="PaymentApiKey" value="{r(g, A, 32)}" />',
    ),
    "php define": lambda g: ("wp-config.php", f"define( 'DB_PASSWORD', '{pw(g)}' );"),
    "wp salt": lambda g: (
        "wp-config.php",
        f"define('AUTH_KEY', '{r(g, A + '!@#%^&*()-_[]{}<>~`+=,.;:/?|', 64)}');".replace("\\", "a"),
    ),
    "sshpass": lambda g: ("copy.sh", f"sshpass -p '{pwa(g)}' scp a b:"),
    "mysql -p": lambda g: ("dump.sh", f"mysqldump -uroot -p{pwa(g)} app > a.sql"),
    "pgpassword": lambda g: ("dump.sh", f"PGPASSWORD={pwa(g)} psql -h db.corp.io -U app"),
    "sql identified by": lambda g: ("users.sql", f"CREATE USER 'app'@'%' IDENTIFIED BY '{pw(g)}';"),
    "sql role": lambda g: ("roles.sql", f"ALTER ROLE app WITH LOGIN PASSWORD '{pwa(g)}';"),
    "powershell": lambda g: (
        "a.ps1",
        f'$pass = ConvertTo-SecureString "{pw(g)}" -AsPlainText -Force',
    ),
    "powershell psc": lambda g: ("b.ps1", f'$AdminPassword = "{pw(g)}"'),
    "k8s secret data": lambda g: (
        "secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  password: "
        + base64.b64encode(pwa(g).encode()).decode(),
    ),
    "k8s stringData": lambda g: (
        "secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\nstringData:\n  api-token: "
        + r(g, A, 40),
    ),
    "systemd": lambda g: ("bot.service", f'Environment="BOT_API_TOKEN={r(g, A, 40)}"'),
    "jdbc": lambda g: (
        "App.java",
        f'String url = "jdbc:postgresql://db.corp.io/app?user=app&password={pwa(g)}";',
    ),
    "requirepass": lambda g: ("redis.conf", f"requirepass {pwa(g)}"),
    "basic header": lambda g: (
        "sync.py",
        'headers = {"Authorization": "Basic '
        + base64.b64encode(("deploy:" + pwa(g)).encode()).decode()
        + '"}',
    ),
    "go struct": lambda g: ("main.go", f'	cfg := Config{{User: "app", Password: "{pw(g)}"}}'),
    "rust": lambda g: ("main.rs", f'    let api_key = String::from("{r(g, A, 40)}");'),
    "kotlin": lambda g: ("Api.kt", f'const val CLIENT_SECRET = "{r(g, A, 40)}"'),
    "java annotation": lambda g: (
        "Api.java",
        f'    @Value("${{api.secret:{r(g, A, 32)}}}") String apiSecret;',
    ),
    "csharp": lambda g: (
        "Startup.cs",
        f'var cs = "Server=tcp:x.database.windows.net;Database=a;User ID=sa;Password={pwa(g)};Encrypt=true";',
    ),
    "swift": lambda g: ("Api.swift", f'static let apiSecret: String = "{r(g, A, 32)}"'),
    "dart": lambda g: ("api.dart", f"  static const String clientSecret = '{r(g, A, 40)}';"),
    "ruby hash": lambda g: ("db.rb", f"  :password => '{pw(g)}',"),
    "python kwargs": lambda g: (
        "db.py",
        f'conn = psycopg2.connect(host="db", user="app", password="{pw(g)}")',
    ),
    "python dict default": lambda g: (
        "s.py",
        f'SECRET_KEY = os.environ.get("SECRET_KEY", "{r(g, A + "!@#$%^&*(-_=+)", 50)}")',
    ),
    "js fallback": lambda g: ("s.js", f"const secret = process.env.JWT_SECRET || '{r(g, A, 40)}';"),
    "terraform": lambda g: ("main.tf", f'  master_password      = "{pwa(g)}"'),
    "tfvars json": lambda g: ("prod.tfvars.json", f'  "db_password": "{pwa(g)}",'),
    "ansible": lambda g: ("group_vars/all.yml", f"mysql_root_password: {pwa(g)}"),
    "helm values": lambda g: ("values.yaml", f'    adminPassword: "{pw(g)}"'),
    "compose map": lambda g: ("docker-compose.yml", f"      POSTGRES_PASSWORD: {pwa(g)}"),
    "workflow env": lambda g: (".github/workflows/ci.yml", f"          API_TOKEN: {r(g, A, 40)}"),
    "dockerfile env": lambda g: ("Dockerfile", f"ENV NPM_TOKEN {r(g, A, 36)}"),
    "toml": lambda g: ("app.toml", f'secret_key = "{hx(g, 64)}"'),
    "django": lambda g: ("settings.py", f"SECRET_KEY = '{r(g, L + D + '!@#$%^&*(-_=+)', 50)}'"),
    "mongo url": lambda g: (
        "db.js",
        f'mongoose.connect("mongodb+srv://app:{pwa(g)}@c0.ab12c.mongodb.net/app")',
    ),
    "git url": lambda g: (
        "fetch.sh",
        f"git clone https://oauth2:{r(g, A, 26)}@git.corp.io/a/b.git",
    ),
    "amqp url": lambda g: ("w.py", f'BROKER = "amqp://svc:{pwa(g)}@mq.corp.io:5672//"'),
    "ftp wget": lambda g: ("get.sh", f"wget --user=ci --password='{pwa(g)}' ftp://f.corp.io/x"),
    "aws secret": lambda g: (
        "s3.py",
        f'boto3.client("s3", aws_secret_access_key="{r(g, A + "/+", 40)}")',
    ),
    "aws ini": lambda g: ("credentials", f"aws_secret_access_key = {r(g, A + '/+', 40)}"),
    "log line": lambda g: ("notes.txt", f"2026-01-02 login ok token={r(g, A, 40)} user=bot"),
    "query string": lambda g: (
        "hook.py",
        f'URL = "https://api.corp.io/v1/x?api_key={r(g, A, 32)}&v=2"',
    ),
    "sas url": lambda g: (
        "blob.py",
        'U = "https://acc.blob.core.windows.net/c/b?sv=2022-11-02&sp=rl&sig='
        + b64(g, 32).replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
        + '"',
    ),
    "setter": lambda g: ("A.java", f'    ds.setPassword("{pw(g)}");'),
    "tuple auth": lambda g: ("a.py", f'requests.get(url, auth=("svc-ci", "{pw(g)}"))'),
    "json one line": lambda g: (
        "c.json",
        f'{{"host": "db", "db_password": "{pwa(g)}", "port": 5432}}',
    ),
    "encoded twice": lambda g: (
        "auth.json",
        '{"auths": {"https://registry.corp.io/v1/": {"auth": "'
        + base64.b64encode(("bot:" + pwa(g)).encode()).decode()
        + '"}}}',
    ),
}
INNOCENT: dict[str, Maker] = {
    "git sha pin": lambda g: (
        ".github/workflows/a.yml",
        f"      - uses: actions/checkout@{hx(g, 40)} # v4",
    ),
    "sri": lambda g: (
        "index.html",
        f'<script integrity="sha384-{b64(g, 48)}" crossorigin="anonymous"></script>',
    ),
    "docker digest": lambda g: ("Dockerfile", f"FROM python:3.12@sha256:{hx(g, 64)}"),
    "pip hash": lambda g: ("requirements.txt", f"flask==3.0.0 --hash=sha256:{hx(g, 64)}"),
    "lock": lambda g: ("poetry.lock", f'    {{file = "a.whl", hash = "sha256:{hx(g, 64)}"}},'),
    "uuid id": lambda g: ("conf.yaml", f"tenant_id: {u(g)}"),
    "uuid client": lambda g: ("app.ts", f'const clientId = "{u(g)}";'),
    "data uri": lambda g: ("logo.css", f'background: url("data:image/png;base64,{b64(g, 300)}")'),
    "font": lambda g: ("f.css", f"src: url(data:font/woff2;base64,{b64(g, 400)})"),
    "placeholder your": lambda g: ("config.py", 'API_KEY = "your-api-key-goes-here"'),
    "placeholder angle": lambda g: (".env.example", "TOKEN=<paste-token-here>"),
    "placeholder x": lambda g: ("a.py", 'token = "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"'),
    "placeholder stars": lambda g: ("a.yml", "password: '********'"),
    "env ref py": lambda g: ("a.py", 'password = os.environ["DB_PASSWORD"]'),
    "env ref js": lambda g: ("a.js", "const token = process.env.GITHUB_TOKEN;"),
    "env ref yaml": lambda g: ("a.yml", "  password: ${DB_PASSWORD:?must be set}"),
    "gha secret": lambda g: (
        ".github/workflows/a.yml",
        "          token: ${{ secrets.RELEASE_TOKEN }}",
    ),
    "jinja": lambda g: ("a.yml.j2", 'password: "{{ vault_db_password }}"'),
    "aws arn": lambda g: (
        "a.tf",
        f'secret_arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-{r(g, A, 6)}"',
    ),
    "gcp sm": lambda g: ("a.py", 'secret_name = "projects/42/secrets/db-password/versions/latest"'),
    "vault path": lambda g: ("a.yml", "  secret: vault:secret/data/app#db_password"),
    "op ref": lambda g: (".env", "DB_PASSWORD=op://prod/db/password"),
    "ssh pub": lambda g: (
        "authorized_keys",
        f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{r(g, A + '+/', 43)} me@host",
    ),
    "ssh rsa var": lambda g: (
        "a.tf",
        f'public_key = "ssh-rsa AAAAB3NzaC1yc2E{r(g, A + "+/", 300)} me"',
    ),
    "certificate": lambda g: (
        "ca.pem",
        "-----BEGIN CERTIFICATE-----\n"
        + "\n".join(b64(g, 48) for _ in range(8))
        + "\n-----END CERTIFICATE-----",
    ),
    "public key pem": lambda g: (
        "k.py",
        'KEY = """-----BEGIN PUBLIC KEY-----\n' + b64(g, 91) + '\n-----END PUBLIC KEY-----"""',
    ),
    "jwks public": lambda g: (
        "jwks.json",
        '{{"kty":"RSA","e":"AQAB","kid":"{}","n":"{}"}}'.format(
            hx(g, 20), base64.urlsafe_b64encode(g.randbytes(256)).decode().rstrip("=")
        ),
    ),
    "stripe publishable": lambda g: ("pay.js", f'const stripe = Stripe("pk_live_{r(g, A, 24)}");'),
    "recaptcha site": lambda g: (
        "index.html",
        f'<div class="g-recaptcha" data-sitekey="6Lc{r(g, A + "_-", 37)}"></div>',
    ),
    "ga": lambda g: ("ga.js", f'gtag("config", "G-{r(g, U + D, 10)}");'),
    "sentry dsn": lambda g: (
        "s.js",
        f'Sentry.init({{ dsn: "https://{hx(g, 32)}@o{r(g, D, 6)}.ingest.sentry.io/{r(g, D, 7)}" }});',
    ),
    "etag": lambda g: ("fixture.http", f'ETag: W/"{hx(g, 32)}"'),
    "trace id": lambda g: ("log.txt", f"traceparent: 00-{hx(g, 32)}-{hx(g, 16)}-01"),
    "content hash name": lambda g: (
        "manifest.json",
        f'"main.js": "static/js/main.{hx(g, 20)}.js",',
    ),
    "cache key": lambda g: ("a.yml", f"    key: deps-{hx(g, 40)}"),
    "bcrypt": lambda g: (
        "seed.sql",
        f"INSERT INTO users(password) VALUES ('$2b$12${r(g, A + './', 53)}');",
    ),
    "argon2": lambda g: (
        "seed.py",
        f'password="$argon2id$v=19$m=65536,t=3,p=4${b64(g, 16).rstrip("=")}${b64(g, 32).rstrip("=")}"',
    ),
    "django hash": lambda g: (
        "fixture.json",
        f'"password": "pbkdf2_sha256$600000${r(g, A, 22)}${b64(g, 32)}"',
    ),
    "sops": lambda g: (
        "secrets.enc.yaml",
        f"password: ENC[AES256_GCM,data:{b64(g, 18)},iv:{b64(g, 32)},tag:{b64(g, 16)},type:str]",
    ),
    "ansible vault": lambda g: (
        "vars.yml",
        "db_password: !vault |\n          $ANSIBLE_VAULT;1.1;AES256\n          " + hx(g, 80),
    ),
    "sealed secret": lambda g: (
        "sealed.yaml",
        "kind: SealedSecret\nspec:\n  encryptedData:\n    password: Ag" + b64(g, 300),
    ),
    "travis secure": lambda g: (".travis.yml", f'    - secure: "{b64(g, 256)}"'),
    "rails credentials": lambda g: (
        "config/credentials.yml.enc",
        f"{b64(g, 120)}--{b64(g, 12)}--{b64(g, 16)}",
    ),
    "kms blob": lambda g: ("serverless.yml", f'  encrypted_token: "AQICAH{b64(g, 120)}"'),
    "i18n": lambda g: (
        "en.json",
        '"password": "Enter your new password", "token": "One-time token"',
    ),
    "i18n de": lambda g: (
        "de.json",
        '"passwordForgotten": "Passwort vergessen?", "secretQuestion": "Sicherheitsfrage"',
    ),
    "min length": lambda g: ("a.py", f"PASSWORD_MIN_LENGTH = {g.randint(8, 16)}"),
    "type annotation": lambda g: ("a.py", "    password: SecretStr = Field(min_length=12)"),
    "ts type": lambda g: ("a.ts", "  accessToken: string | undefined;"),
    "token url": lambda g: ("a.py", 'TOKEN_URL = "https://login.corp.io/oauth2/v2.0/token"'),
    "secretKeyRef": lambda g: (
        "d.yaml",
        "            secretKeyRef:\n              name: db-credentials\n              key: postgres-password",
    ),
    "function call": lambda g: ("a.py", "token = generate_token(user, expires=3600)"),
    "getpass": lambda g: ("a.py", 'password = getpass.getpass("Password: ")'),
    "token class": lambda g: (
        "lexer.py",
        'token = Token(kind="IDENTIFIER", text=source[start:end])',
    ),
    "css class": lambda g: (
        "a.html",
        '<input type="password" name="password" autocomplete="current-password">',
    ),
    "eth": lambda g: ("a.ts", f'export const TOKEN_ADDRESS = "0x{hx(g, 40)}";'),
    "tx hash": lambda g: ("a.ts", f'const txHash = "0x{hx(g, 64)}";'),
    "ipfs": lambda g: ("a.ts", f'const cid = "Qm{r(g, A, 44)}";'),
    "model weights hash": lambda g: ("m.py", f'"sha256": "{hx(g, 64)}",'),
    "test fixture key": lambda g: ("tests/test_auth.py", f'API_KEY = "{r(g, A, 32)}"'),
    "spec fixture": lambda g: ("spec/auth_spec.rb", f"  let(:password) {{ '{pwa(g)}' }}"),
    "regex": lambda g: ("scan.py", r'PATTERN = re.compile(r"ghp_[A-Za-z0-9]{36}")'),
    "docs curl": lambda g: (
        "README.md",
        'curl -H "Authorization: Bearer $TOKEN" https://api.corp.io',
    ),
    "aws example": lambda g: (
        "a.md",
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ),
    "jwt io": lambda g: (
        "a.md",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
    ),
    "go.sum": lambda g: ("go.sum", f"github.com/a/b v1.2.3 h1:{b64(g, 32)}"),
    "nix hash": lambda g: ("default.nix", f'  sha256 = "{r(g, L + D, 52)}";'),
    "nix sri": lambda g: ("default.nix", f'  vendorHash = "sha256-{b64(g, 32)}";'),
    "gradle wrapper": lambda g: ("gradle-wrapper.properties", f"distributionSha256Sum={hx(g, 64)}"),
    "homebrew": lambda g: ("a.rb", f'  sha256 cellar: :any, arm64_sonoma: "{hx(g, 64)}"'),
    "terraform lock": lambda g: (".terraform.lock.hcl", f'    "h1:{b64(g, 32)}",'),
    "cursor": lambda g: ("a.json", f'"next_page_token": "{b64(g, 30)}"'),
    "csrf name": lambda g: ("a.js", 'const csrfTokenName = "X-XSRF-TOKEN-HEADER-NAME";'),
    "ssh fingerprint": lambda g: ("known.txt", f"SHA256:{b64(g, 32).rstrip('=')} host (ED25519)"),
    "known_hosts": lambda g: (
        "known_hosts",
        f"|1|{b64(g, 20)}|{b64(g, 20)} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{r(g, A, 43)}",
    ),
    "url local": lambda g: (
        "compose.yml",
        "DATABASE_URL: postgres://postgres:postgres@db:5432/app",
    ),
    "pgp public": lambda g: (
        "key.asc",
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n"
        + "\n".join(b64(g, 48) for _ in range(6))
        + "\n-----END PGP PUBLIC KEY BLOCK-----",
    ),
    "protobuf": lambda g: (
        "a_pb2.py",
        f'DESCRIPTOR = _pool.AddSerializedFile(b"\\n\\x0e{r(g, A, 80)}")',
    ),
    "svg path": lambda g: (
        "icon.tsx",
        f'<path d="M{g.random():.3f} {g.random():.3f}c{g.random():.3f} 0 1.2 {g.random():.3f} 1 {g.random():.3f}z"/>',
    ),
    "k8s label": lambda g: ("d.yaml", f"  pod-template-hash: {hx(g, 10)}"),
    "snapshot": lambda g: ("__snapshots__/a.snap", f'"accessToken": "{r(g, A, 40)}",'),
    "feature name": lambda g: (
        "a.py",
        'SECRET_SANTA_ENABLED = "feature-secret-santa-2024-rollout"',
    ),
    "key name": lambda g: ("a.py", 'API_KEY_HEADER = "X-Corp-Api-Key-V2"'),
    "secret name k8s": lambda g: (
        "d.yaml",
        "  imagePullSecrets:\n    - name: registry-pull-secret-eu1",
    ),
    "password prompt": lambda g: ("a.sh", 'read -s -p "Password for $USER: " PASSWORD'),
    "bash sub": lambda g: ("a.sh", "TOKEN=$(vault read -field=token auth/x)"),
    "ps ref": lambda g: ("a.ps1", "$Password = Get-Secret -Name Db -AsPlainText"),
    "terraform ref": lambda g: ("a.tf", "  password = random_password.db.result"),
    "terraform data": lambda g: ("a.tf", "  token = data.aws_ssm_parameter.token.value"),
    "helm ref": lambda g: ("a.yaml", "  password: {{ .Values.db.password | b64enc | quote }}"),
    "public vapid": lambda g: ("push.js", f'const VAPID_PUBLIC_KEY = "B{r(g, A + "-_", 86)}";'),
    "license header": lambda g: (
        "a.py",
        "# SPDX-License-Identifier: Apache-2.0 SPDX-FileCopyrightText 2026",
    ),
    "gist id": lambda g: ("a.md", f"https://gist.github.com/someone/{hx(g, 32)}"),
    "color tokens": lambda g: (
        "tokens.json",
        f'"colorToken": "#{hx(g, 6)}", "spacingToken": "{g.randint(4, 64)}px"',
    ),
}
