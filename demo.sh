#!/bin/bash
# What mirrorpid is for, shown in a minute, with no cluster and no network: ./demo.sh
# Installs what is missing, builds the program and runs `mirrorpid demo` with the arguments given.
set -euo pipefail
cd "$(dirname "$0")"

scripts/install.sh build

log=build/demo-build.log
mkdir -p build
[ -x build/release/mirrorpid ] || echo "Building mirrorpid, a few minutes the first time (log: $log)" >&2

# Ninja's "[3/40] Building ..." lines, one over the other, for a person; nothing for a pipe.
show_progress() {
  [ -t 2 ] || exec cat >/dev/null
  local line
  while IFS= read -r line; do
    case $line in "["*/*"] "*) printf '\r\033[K%s' "${line:0:78}" >&2 ;; esac
  done
  printf '\r\033[K' >&2
}

CMAKE_BUILD_PARALLEL_LEVEL=$(scripts/jobs.sh)
export CMAKE_BUILD_PARALLEL_LEVEL
if ! cmake --workflow --preset demo </dev/null 2>&1 | tee "$log" | show_progress; then
  tail -n 60 "$log" >&2
  echo "demo.sh: the build failed; all of its output is in $log" >&2
  exit 1
fi

exec build/release/mirrorpid demo "$@"
