#!/bin/bash
# Every kind of test, with all that it needs installed and built:
#   ./test.sh          what CI runs; at most 20 minutes on 2 cores
#   ./test.sh --all    and what takes longer: all clients, tools and brokers, more kills, the unit tests as released
#                      and under the thread sanitizer, and fuzzing (FUZZ_SECONDS a target, 120 by default)
# Each step's output is in build/test-logs/STEP.log. A step that fails does not stop the next ones. The last line is the
# sum of all: N passed, N failed, N skipped. The status is 1 if anything failed.
set -uo pipefail
cd "$(dirname "$0")" || exit 1

all=
case $#,${1:-} in
  0,) ;;
  1,--all) all=1 ;;
  *) sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac

logs=build/test-logs
rm -rf "$logs"
mkdir -p "$logs" || exit 1

# Runs a command as a step: step NAME KIND SECONDS_MAX COMMAND... (kinds: see scripts/summary.py).
step() {
  local name=$1 kind=$2 limit=$3 status
  shift 3
  printf '[%4d s] %s\n' $SECONDS "$name"
  # INT first: it lets Python tests end what they started.
  timeout --signal=INT --kill-after=60 "$limit" "$@" </dev/null >"$logs/$name.log" 2>&1 &
  child=$!
  wait $child
  status=$?
  child=
  echo "$name $kind $status" >>"$logs/steps"
  [ $status = 0 ] && return
  printf -- '--- %s failed (status %d); the end of %s:\n' "$name" $status "$logs/$name.log"
  tail -n 40 "$logs/$name.log"
  printf -- '---\n'
  return $status
}
child=
trap '[ -z "$child" ] || { kill -INT $child; wait $child; }; exit 130' INT TERM HUP

printf '[%4d s] packages\n' $SECONDS
if ! scripts/install.sh build test ${all:+all}; then
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi

jobs=$(scripts/jobs.sh)
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs CTEST_PARALLEL_LEVEL=$jobs PYTHONDONTWRITEBYTECODE=1

# Configures a preset and builds its targets as far as they go.
build() {  # NAME PRESET [TARGET...]
  # shellcheck disable=SC2016
  step "$1" build 1800 bash -c 'cmake --preset "$0" && cmake --build --preset "$0" -- -k 0 "$@"' "${@:2}"
}
unit_tests() {  # NAME PRESET
  step "$1" tests 600 ctest --preset "$2" --no-tests=error --output-junit "$PWD/$logs/$1.xml"
}
python_tests() {  # NAME SECONDS_MAX PROGRAM MODULES_AT_A_TIME FOLDER...
  local name=$1 limit=$2 program=$3 at_a_time=$4
  shift 4
  step "$name" tests "$limit" env MIRRORPID="$PWD/$program" \
    python3 scripts/run_python_tests.py --results "$logs/$name.xml" --jobs "$at_a_time" "$@"
}

step format check 300 scripts/check_format.sh
build build-release release mirrorpid kafka_client librdkafka_job verbatim_mirror_tool  # the last three are for the tests on real Kafka
step demo check 120 build/release/mirrorpid demo
build build-dev dev
unit_tests unit-tests dev
python_tests script-tests 120 build/dev/mirrorpid "$jobs" tests/scripts tests/support
python_tests proxy-tests 600 build/dev/mirrorpid "$jobs" tests/proxy
python_tests proxy-tests-release 600 build/release/mirrorpid "$jobs" tests/proxy  # memory tells nothing with sanitizers
if [ "$all" ]; then export MIRRORPID_LONG=1 MIRRORPID_CLIENT_TABLE="$PWD/$logs/clients.md"; fi
# Brokers fill the machine by themselves.
python_tests end-to-end "$([ "$all" ] && echo 7200 || echo 1800)" build/release/mirrorpid 1 tests/end_to_end

if [ "$all" ]; then
  build build-release-tests release
  unit_tests unit-tests-release release
  step memory check 300 build/release/tests/mapping/mapping_tests '[.memory]'
  build build-tsan tsan
  unit_tests unit-tests-tsan tsan
  build build-fuzz fuzz
  fuzz_seconds=${FUZZ_SECONDS:-120}
  for corpus in tests/fuzz/corpus/*/; do
    name=$(basename "$corpus")
    target=$(find build/fuzz -type f -name "${name}_fuzz")
    mkdir -p "build/fuzz-corpus/$name"  # what is found new goes here; the repository's seeds are read only
    step "fuzz-$name" check $((fuzz_seconds + 300)) "$target" -max_total_time="$fuzz_seconds" -timeout=10 \
      -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$logs/fuzz-$name-" \
      "build/fuzz-corpus/$name" "$corpus"
  done
fi

printf '[%4d s] done\n' $SECONDS
exec python3 scripts/summary.py "$logs"
