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
  docker run --rm --volume "$socket:/var/run/docker.sock" --group-add "$DOCKER_GID" --read-only --tmpfs /tmp --cap-drop ALL \
    --security-opt no-new-privileges:true "$image" demo | tee "$log"
  # without a sandbox the demo leaves acts out and says so
  if grep -q "^Left out" "$log"; then exit 1; fi
  for said in "reviews #1" "'test' success" "broke it (verified" "main is red since"; do
    grep -qF "$said" "$log" || { echo "the demo did not say: $said" >&2; exit 1; }
  done
  rm "$log"
}

try_compose() {
  work=$(mktemp -d)
  openssl genrsa 2048 2>/dev/null >"$work/key.pem"
  {
    echo "REGREEN_APP_ID=1"
    echo "REGREEN_WEBHOOK_SECRET=$(openssl rand -hex 16)"
    echo "REGREEN_DASHBOARD_AUTH=$(openssl rand -hex 16)"
    printf 'REGREEN_PRIVATE_KEY=%s\n' "$(awk '{printf "%s\\n", $0}' "$work/key.pem")"
  } >"$work/env"
  POSTGRES_PASSWORD=$(openssl rand -hex 16)
  export POSTGRES_PASSWORD ENV_FILE="$work/env"
  for file in compose.yml compose.postgres.yml; do
    docker compose --project-name regreen-try --file "packaging/$file" up --detach --wait --wait-timeout 180 ||
      { docker compose --project-name regreen-try --file "packaging/$file" logs; exit 1; }
    curl --fail --silent --show-error http://127.0.0.1:8000/healthz
    docker compose --project-name regreen-try --file "packaging/$file" down --volumes
  done
  rm -r "$work"
}

"try_$1"
