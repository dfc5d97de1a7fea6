#!/bin/bash
# Says which C++ files clang-format 19 would change; `scripts/check_format.sh --fix` changes them.
set -euo pipefail
cd "$(dirname "$0")/.."
how=(--dry-run --Werror)
if [ "${1:-}" = --fix ]; then how=(-i); fi
find codec mapping config proxy tests -name '*.[ch]pp' -print0 | xargs -0 clang-format-19 "${how[@]}"
