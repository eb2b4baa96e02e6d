#!/usr/bin/env bash
# Runs all tests. The tests start their own Redis servers on free ports, and a browser; redis-server and Chromium are installed if
# they are missing.
# Set REDIS_SERVER_BIN to test against another server, such as Valkey, and RATELIMITS_TEST_BUDGET=long for longer runs.
set -euo pipefail
cd "$(dirname "$0")"

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

install_redis() {
  echo "== installing redis-server"
  if command -v apt-get >/dev/null; then
    as_root apt-get update -qq && as_root apt-get install -y -qq redis-server
  elif command -v dnf >/dev/null; then
    as_root dnf install -y -q redis || as_root dnf install -y -q valkey-compat-redis
  elif command -v brew >/dev/null; then
    brew install redis
  else
    echo "No apt-get, dnf or brew. Install redis-server or set REDIS_SERVER_BIN, then run this script again." >&2
    exit 1
  fi
}

install_chromium() {
  echo "== installing chromium and chromedriver"
  if command -v apt-get >/dev/null; then
    as_root apt-get update -qq && as_root apt-get install -y -qq chromium chromium-driver
  elif command -v dnf >/dev/null; then
    as_root dnf install -y -q chromium chromedriver
  elif command -v brew >/dev/null; then
    brew install --cask chromium chromedriver
  else
    echo "No apt-get, dnf or brew. Install Chromium and chromedriver, then run this script again." >&2
    exit 1
  fi
}

server="${REDIS_SERVER_BIN:-redis-server}"
if ! command -v "$server" >/dev/null; then
  if [ -n "${REDIS_SERVER_BIN:-}" ]; then
    echo "REDIS_SERVER_BIN is not a program: $REDIS_SERVER_BIN" >&2
    exit 1
  fi
  install_redis
fi
echo "== $("$server" --version)"
command -v chromedriver >/dev/null || install_chromium
echo "== $(chromedriver --version)"

# Most tests wait for servers, so more of them run at a time than there are cores.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-4}"

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
run() {
  echo "== $*"
  "$@" 2>&1 | tee -a "$log"
}

# Cargo builds the examples too, and a test runs each of them.
run cargo test --locked --workspace --features ratelimits/tls,ratelimits/actix,ratelimits/calendar,ratelimits/dashboard,ratelimits/metrics,ratelimits/overrides,ratelimits/serde,ratelimits/tonic
# With tokio's pausable clock, without TLS and integrations.
run cargo test --locked --features test-util --test paused
# With loom's atomics and mutex in the memory store, and so in a build of its own.
run env RUSTFLAGS="--cfg ratelimits_loom" cargo test --locked --profile loom -p loom-models
# The linker collects the inventory of policies.
run cargo run --locked --quiet -p inventory-test
for lto in false fat thin; do
  run env CARGO_PROFILE_RELEASE_LTO="$lto" cargo run --locked --quiet --release -p inventory-test
done
# Without Redis.
run cargo check --locked --no-default-features

awk '/^test result:/ { passed += $4; failed += $6; ignored += $8 } END {
  printf "== %d tests passed, %d failed, %d ignored\n", passed, failed, ignored
}' "$log"
echo "== against $("$server" --version)"
