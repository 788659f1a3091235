"""Service containers without containers: servers that the box has, started on the port that the job asks for."""

from __future__ import annotations

import re
import shlex

from regreen.fixers.expressions import Value, to_string
from regreen.fixers.job_plan import Service

_KINDS = {
    "postgres": "postgres",
    "postgis": "postgres",
    "pgvector": "postgres",
    "timescaledb": "postgres",
    "redis": "redis",
    "valkey": "redis",
    "memcached": "memcached",
}
_PORTS = {"postgres": 5432, "redis": 6379, "memcached": 11211}


def kind_of(image: str) -> str:
    """The server that an image runs, "" where no box can have it: `bitnami/redis:7` is redis."""
    bare = re.sub(r"[:@].*$", "", image.rsplit("/", 1)[-1]).lower()
    return _KINDS.get(bare.removesuffix("-stack-server").removesuffix("-stack"), "")


def service(name: str, image: str, declared: dict[str, Value]) -> Service:
    """A service as the workflow declares it."""
    env = declared.get("env")
    ports = declared.get("ports")
    return Service(
        name,
        image,
        {key: to_string(value) for key, value in env.items()} if isinstance(env, dict) else {},
        tuple(to_string(port) for port in ports) if isinstance(ports, list) else (),
    )


def ports_of(service: Service) -> dict[str, Value]:
    """What `job.services.NAME.ports` holds: the port of the machine for each of the container."""
    found: dict[str, Value] = {}
    for text in service.ports:
        host, _, inner = text.partition("/")[0].rpartition(":")
        found[inner] = host.rpartition(":")[2] or inner
    return found


def starting(services: tuple[Service, ...]) -> list[str]:
    """Bash that starts the services, and stops them when the script ends."""
    lines = [_start(one) for one in services if kind_of(one.image)]
    return [_COMMON.strip("\n"), *lines] if lines else []


def _start(service: Service) -> str:
    kind = kind_of(service.image)
    usual = _PORTS[kind]
    port = re.sub(r"\D", "", to_string(ports_of(service).get(str(usual), usual))) or str(usual)
    words = [f"rg_{kind}", shlex.quote(f"{service.name} ({service.image})"), port]
    if kind == "postgres":
        user = service.env.get("POSTGRES_USER") or "postgres"
        words += [shlex.quote(user), shlex.quote(service.env.get("POSTGRES_DB") or user)]
    return " ".join(words)


_COMMON = r"""
rg_stops=()
trap 'for rg_stop in "${rg_stops[@]}"; do eval "$rg_stop"; done' EXIT
rg_no_server() { echo "regreen: unsupported: service $1: this image has no $2 server" >&2; exit 1; }
rg_postgres() {
  local bin data="$HOME/.postgres-$2" new=
  bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
  [ -n "$bin" ] || bin=$(dirname "$(type -P initdb || echo /nowhere/x)")
  [ -x "$bin/initdb" ] || rg_no_server "$1" PostgreSQL
  if [ ! -d "$data" ]; then new=1; "$bin/initdb" -D "$data" -U "$3" -A trust -E UTF8 --no-sync >/dev/null || exit 1; fi
  rm -f "$data/postmaster.pid"
  "$bin/pg_ctl" -D "$data" -w -s -l "$HOME/.postgres.log" -o "-p $2 -k /tmp -c fsync=off -c listen_addresses=127.0.0.1" start \
    || { cat "$HOME/.postgres.log" >&2; exit 1; }
  rg_stops+=("'$bin/pg_ctl' -D '$data' -s -m fast stop")
  if [ -n "$new" ] && [ "$4" != postgres ]; then "$bin/createdb" -h 127.0.0.1 -p "$2" -U "$3" "$4"; fi
}
rg_redis() {
  local server; server=$(type -P redis-server || type -P valkey-server) || rg_no_server "$1" Redis
  "$server" --port "$2" --bind 127.0.0.1 --save '' --daemonize yes --dir /tmp >/dev/null
  rg_wait "$2" || rg_no_server "$1" "running Redis"
}
rg_memcached() {
  local server; server=$(type -P memcached) || rg_no_server "$1" memcached
  "$server" -d -l 127.0.0.1 -p "$2"
  rg_wait "$2" || rg_no_server "$1" "running memcached"
}
rg_wait() { local n; for n in 1 2 3 4 5 6 7 8 9 10; do (: < "/dev/tcp/127.0.0.1/$1") 2>/dev/null && return 0; sleep 0.3; done; return 1; }
"""
