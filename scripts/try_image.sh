#!/bin/sh
# Tries the image `regreen` (or IMAGE) on this machine's engine: `demo` plays the main job inside, `compose` starts both files.
set -eu
cd "$(dirname "$0")/.."
image=${IMAGE:-regreen}
socket=${DOCKER_HOST:-unix:///var/run/docker.sock}
socket=${socket#unix://}
DOCKER_GID=$(stat -c %g "$socket")
export DOCKER_GID

try_demo() {
  log=$(mktemp)
  # Where no image of Python can be had, boxes hold this machine's own files, of which the base was made as well; what the
  # App shows a box lies in a folder that both see under one name.
  if ! docker image inspect python:3.11-slim >/dev/null 2>&1 && ! docker pull --quiet python:3.11-slim; then
    shared=$(mktemp -d)
    chmod 1777 "$shared"
    set -- --tmpfs "$(docker info --format '{{.DockerRootDir}}')" --volume "$shared:$shared" --env "TMPDIR=$shared"
  fi
  docker run --rm --no-healthcheck "$@" --volume "$socket:/var/run/docker.sock" --group-add "$DOCKER_GID" --read-only --tmpfs /tmp --cap-drop ALL \
    --security-opt no-new-privileges:true "$image" demo | tee "$log"
  # without a sandbox the demo leaves acts out and says so
  if grep -q "^Left out" "$log"; then exit 1; fi
  for said in "reviews #1" "'test' success" "broke it (verified" "main is red since"; do
    grep -qF "$said" "$log" || { echo "the demo did not say: $said" >&2; exit 1; }
  done
  rm "$log"
}

# Compose's second edition is a command of docker, its first one a program; both read the files.
compose() {
  if docker compose version >/dev/null 2>&1; then docker compose "$@"; else docker-compose "$@"; fi
}

# Waits until the App answers at an address; its log says why not.
await_app() {
  address=$1
  shift
  for _ in $(seq 90); do
    if curl --insecure --fail --silent --max-time 5 "$address/healthz" >/dev/null; then return; fi
    sleep 2
  done
  compose "$@" logs
  exit 1
}

try_compose() {
  work=$(mktemp -d)
  secret=$(openssl rand -hex 16)
  token=$(openssl rand -hex 16)
  openssl genrsa 2048 2>/dev/null >"$work/key.pem"
  {
    echo "REGREEN_APP_ID=1"
    echo "REGREEN_WEBHOOK_SECRET=$secret"
    echo "REGREEN_DASHBOARD_AUTH=$token"
    printf 'REGREEN_PRIVATE_KEY=%s\n' "$(awk '{printf "%s\\n", $0}' "$work/key.pem")"
  } >"$work/env"
  POSTGRES_PASSWORD=$(openssl rand -hex 16)
  export POSTGRES_PASSWORD ENV_FILE="$work/env" PUBLIC_HOST=localhost
  body='{"zen": "Keep it", "hook_id": 1}'
  for files in compose.yml compose.postgres.yml "compose.yml compose.proxy.yml"; do
    set -- --project-name regreen-try
    for file in $files; do set -- "$@" --file "packaging/$file"; done
    address=http://127.0.0.1:8000
    case $files in *proxy*) address=https://localhost ;; esac
    delivery=tried-with-$(echo "$files" | tr -c '[:alnum:]\n' -)
    compose "$@" up --detach
    await_app "$address" "$@"
    curl --insecure --fail --silent --show-error --output /dev/null --write-out "$files: a delivery is answered %{http_code}\n" \
      --header "X-GitHub-Event: ping" --header "X-GitHub-Delivery: $delivery" --header "Content-Type: application/json" \
      --header "X-Hub-Signature-256: sha256=$(printf %s "$body" | openssl dgst -sha256 -hmac "$secret" | sed 's/.* //')" \
      --data "$body" "$address/webhooks/github"
    compose "$@" restart
    await_app "$address" "$@"
    curl --insecure --fail --silent --show-error --user "x:$token" "$address/deliveries" | grep --quiet "$delivery" ||
      { echo "$files: the delivery is lost after a restart" >&2; exit 1; }
    echo "$files: the delivery is there after a restart"
    compose "$@" down --volumes
  done
  rm -r "$work"
}

what=$1
shift
"try_$what" "$@"
