#!/usr/bin/env bash
# Runs every test of the project, against a real Redis that the tests start for themselves on a free port.
# Installs redis-server first where it is missing. REDIS_SERVER_BIN names another server: a newer Redis, Valkey.
set -euo pipefail
cd "$(dirname "$0")"

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

install_redis() {
  echo "== redis-server is missing: installing it"
  if command -v apt-get >/dev/null; then
    as_root apt-get update -qq && as_root apt-get install -y -qq redis-server
  elif command -v dnf >/dev/null; then
    as_root dnf install -y -q redis || as_root dnf install -y -q valkey-compat-redis
  elif command -v brew >/dev/null; then
    brew install redis
  else
    echo "Neither apt, dnf nor brew is here. Install redis-server, or set REDIS_SERVER_BIN to one, and run this again." >&2
    exit 1
  fi
}

server="${REDIS_SERVER_BIN:-redis-server}"
if ! command -v "$server" >/dev/null; then
  if [ -n "${REDIS_SERVER_BIN:-}" ]; then
    echo "REDIS_SERVER_BIN is $REDIS_SERVER_BIN, which is no program." >&2
    exit 1
  fi
  install_redis
fi
echo "== $("$server" --version)"

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
run() {
  echo "== $*"
  "$@" 2>&1 | tee -a "$log"
}

# The examples are built first: a test runs each of them.
run cargo build --locked --examples --features tls
run cargo test --locked --workspace --features ratelimits/tls
# With tokio's clock, which tests can pause, and without TLS.
run cargo test --locked --features test-util --test paused
# Without Redis, for those who count in process only.
run cargo check --locked --no-default-features

awk '/^test result:/ { passed += $4; failed += $6; ignored += $8 } END {
  printf "== all tests ran: %d passed, %d failed, %d ignored\n", passed, failed, ignored
}' "$log"
echo "== against $("$server" --version)"
