"""Service containers without containers: servers that the box has, started on the port that the job asks for."""

from __future__ import annotations

import re
import shlex

from regreen.actions.expressions.evaluation import Value, to_string
from regreen.actions.job_plan import ServiceContainer

_SERVER_KINDS = {
    "postgres": "postgres",
    "postgis": "postgres",
    "pgvector": "postgres",
    "timescaledb": "postgres",
    "redis": "redis",
    "valkey": "redis",
    "memcached": "memcached",
    "mysql": "mysql",
    "mariadb": "mysql",
    "percona": "mysql",
}
_DEFAULT_PORTS = {"postgres": 5432, "redis": 6379, "memcached": 11211, "mysql": 3306}
SUBSTITUTE_MARK = "regreen: service: "


def find_server_kind(image: str) -> str:
    """The server that an image runs, "" where no box can have it: `bitnami/redis:7` is redis."""
    bare = re.sub(r"[:@].*$", "", image.rsplit("/", 1)[-1]).lower()
    return _SERVER_KINDS.get(bare.removesuffix("-stack-server").removesuffix("-stack"), "")


def parse_service(name: str, image: str, declared: dict[str, Value]) -> ServiceContainer:
    """A service as the workflow declares it."""
    env = declared.get("env")
    ports = declared.get("ports")
    return ServiceContainer(
        name,
        image,
        {key: to_string(value) for key, value in env.items()} if isinstance(env, dict) else {},
        tuple(to_string(port) for port in ports) if isinstance(ports, list) else (),
    )


def map_container_ports_to_host(service: ServiceContainer) -> dict[str, Value]:
    """What `job.services.NAME.ports` holds: the port of the machine for each of the container."""
    found: dict[str, Value] = {}
    for text in service.ports:
        host, _, inner = text.partition("/")[0].rpartition(":")
        found[inner] = host.rpartition(":")[2] or inner
    return found


def start_services(services: tuple[ServiceContainer, ...]) -> list[str]:
    """Bash that starts the services, and stops them when the script ends."""
    lines = [_start_command(service) for service in services if find_server_kind(service.image)]
    return [_SHARED_BASH.strip("\n"), *lines] if lines else []


def find_substituted_services(output: str) -> tuple[str, ...]:
    """Which services ran in another version than the workflow asks for, one sentence each."""
    lines = (line for line in output.splitlines() if line.startswith(SUBSTITUTE_MARK))
    return tuple(dict.fromkeys(line.removeprefix(SUBSTITUTE_MARK)[:200] for line in lines))


def _start_command(service: ServiceContainer) -> str:
    kind = find_server_kind(service.image)
    usual = _DEFAULT_PORTS[kind]
    port = re.sub(
        r"\D", "", to_string(map_container_ports_to_host(service).get(str(usual), usual))
    ) or str(usual)
    version = re.search(r":v?(\d+(?:\.\d+){0,2})[^/]*$", service.image.partition("@")[0])
    words = [f"{service.name} ({service.image})", port, version[1] if version else ""]
    env = service.env
    if kind == "postgres":
        user = env.get("POSTGRES_USER") or "postgres"
        words += [user, env.get("POSTGRES_DB") or user, env.get("POSTGRES_PASSWORD", "")]
    if kind == "mysql":
        words.append(_mysql_account_sql(env))
    return shlex.join([f"rg_{kind}", *words])


def _mysql_account_sql(env: dict[str, str]) -> str:
    """SQL that makes the database and the accounts, as the images of MySQL and MariaDB do at their first start."""

    def given(name: str) -> str:
        return env.get(f"MYSQL_{name}") or env.get(f"MARIADB_{name}") or ""

    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"

    root, user, password = quoted(given("ROOT_PASSWORD")), given("USER"), quoted(given("PASSWORD"))
    database = "`" + given("DATABASE").replace("`", "``") + "`"
    lines = ["DROP USER IF EXISTS ''@'localhost'"]
    if given("DATABASE"):
        lines.append(f"CREATE DATABASE {database}")
    if user:
        lines.append(f"CREATE USER {quoted(user)}@'%' IDENTIFIED BY {password}")
    if user and given("DATABASE"):
        lines.append(f"GRANT ALL ON {database}.* TO {quoted(user)}@'%'")
    lines += [
        f"CREATE USER 'root'@'%' IDENTIFIED BY {root}",
        "GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION",
        f"ALTER USER 'root'@'localhost' IDENTIFIED BY {root}",
    ]
    return ";\n".join(lines) + ";"


# Arguments: name, port, version asked for, then what the kind of server needs.
_SHARED_BASH = r"""
rg_stops=()
trap 'for rg_stop in "${rg_stops[@]}"; do eval "$rg_stop"; done' EXIT
rg_no_server() { echo "regreen: unsupported: service $1: this image has no $2 server" >&2; exit 1; }
rg_stood_in() { case "$4." in "$2".*) ;; *) if [ -n "$2" ]; then echo "MARK$1 was run as $3 $4" >&2; fi ;; esac; }
rg_number() { "$@" 2>/dev/null | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1; }
rg_postgres() {
  local bin=/usr/lib/postgresql/$3/bin data="$HOME/.postgres-$2" new= auth=trust
  [ -x "$bin/initdb" ] || bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
  [ -n "$bin" ] || bin=$(dirname "$(type -P initdb || echo /nowhere/x)")
  [ -x "$bin/initdb" ] || rg_no_server "$1" PostgreSQL
  rg_stood_in "$1" "$3" PostgreSQL "$(rg_number "$bin/postgres" --version)"
  if [ -n "$6" ]; then auth=scram-sha-256; fi
  if [ ! -d "$data" ]; then new=1; "$bin/initdb" -D "$data" -U "$4" -A "$auth" --pwfile=<(echo "$6") -E UTF8 --no-sync >/dev/null || exit 1; fi
  rm -f "$data/postmaster.pid"
  "$bin/pg_ctl" -D "$data" -w -s -l "$HOME/.postgres.log" -o "-p $2 -k /tmp -c fsync=off -c listen_addresses=127.0.0.1" start \
    || { cat "$HOME/.postgres.log" >&2; exit 1; }
  rg_stops+=("'$bin/pg_ctl' -D '$data' -s -m fast stop")
  if [ -n "$new" ] && [ "$5" != postgres ]; then PGPASSWORD=$6 "$bin/createdb" -h 127.0.0.1 -p "$2" -U "$4" "$5"; fi
}
rg_mysql() {
  local server data="$HOME/.mysql-$2" socket="/tmp/mysql-$2.sock" product=MySQL
  server=$(PATH=$PATH:/usr/sbin; type -P mariadbd || type -P mysqld) || rg_no_server "$1" MySQL
  if "$server" --version | grep -q MariaDB; then product=MariaDB; fi
  case "$1" in *mariadb*) set -- "$1" "$2" "$3" "$4" MariaDB ;; *) set -- "$1" "$2" "$3" "$4" MySQL ;; esac
  rg_stood_in "$1" "$([ "$5" = "$product" ] && echo "$3" || echo "$5")" "$product" "$(rg_number "$server" --version)"
  if [ ! -d "$data" ]; then
    if [ "$product" = MariaDB ]; then mariadb-install-db --no-defaults --datadir="$data" --auth-root-authentication-method=normal --skip-test-db >"$HOME/.mysql.log" 2>&1
    else "$server" --no-defaults --initialize-insecure --datadir="$data" >"$HOME/.mysql.log" 2>&1; fi || { cat "$HOME/.mysql.log" >&2; exit 1; }
    printf '%s\n' "$4" > "$data/regreen.sql"
  fi
  "$server" --no-defaults --datadir="$data" --port="$2" --bind-address=127.0.0.1 --socket="$socket" --pid-file="$socket.pid" </dev/null >>"$HOME/.mysql.log" 2>&1 &
  rg_stops+=("kill $!; wait $!")
  rg_wait "$2" || { cat "$HOME/.mysql.log" >&2; rg_no_server "$1" "running $product"; }
  if [ -e "$data/regreen.sql" ]; then
    $(type -P mariadb || type -P mysql) --no-defaults -u root -S "$socket" < "$data/regreen.sql" || exit 1
    rm "$data/regreen.sql"
  fi
}
rg_redis() {
  local server; server=$(type -P redis-server || type -P valkey-server) || rg_no_server "$1" Redis
  rg_stood_in "$1" "$3" "$(basename "$server")" "$(rg_number "$server" --version)"
  "$server" --port "$2" --bind 127.0.0.1 --save '' --daemonize yes --dir /tmp >/dev/null
  rg_wait "$2" || rg_no_server "$1" "running Redis"
}
rg_memcached() {
  local server; server=$(type -P memcached) || rg_no_server "$1" memcached
  rg_stood_in "$1" "$3" memcached "$(rg_number "$server" --version)"
  "$server" -d -l 127.0.0.1 -p "$2"
  rg_wait "$2" || rg_no_server "$1" "running memcached"
}
rg_wait() { local n; for n in $(seq 200); do (: < "/dev/tcp/127.0.0.1/$1") 2>/dev/null && return 0; sleep 0.3; done; return 1; }
""".replace("MARK", SUBSTITUTE_MARK)
