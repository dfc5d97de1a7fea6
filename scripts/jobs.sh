#!/bin/bash
# Prints how many compilers may run at once: one a core, but no more than fit in memory, for a file of coroutines under
# sanitizers takes up to 1 GB.
set -euo pipefail
cores=$(nproc)
memory_kib=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)  # a container's own, in bytes
if [ "$limit" != max ] && [ $((limit / 1024)) -lt "$memory_kib" ]; then memory_kib=$((limit / 1024)); fi
jobs=$((memory_kib / 1000000))
if [ "$jobs" -gt "$cores" ]; then jobs=$cores; fi
if [ "$jobs" -lt 1 ]; then jobs=1; fi
echo "$jobs"
