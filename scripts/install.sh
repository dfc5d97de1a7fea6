#!/bin/bash
# Installs what is missing of the Debian packages in scripts/packages-GROUP.txt; does nothing when all are there.
#   scripts/install.sh build [test [all]]
set -euo pipefail
cd "$(dirname "$0")"

fail() { printf 'install.sh: %s\n' "$@" >&2; exit 1; }

[ $# -gt 0 ] || fail "which packages? build, test, all"
for group; do [ -f "packages-$group.txt" ] || fail "there is no list of packages called '$group'"; done

# shellcheck source=/dev/null
system=$(. /etc/os-release 2>/dev/null; echo "${ID:-} ${VERSION_ID:-}")
release=${system#debian }
case $system in
  "debian 12" | "debian 13") ;;
  *) fail "the packages are known by name for Debian 12 and 13 only, and this is another system." \
       "Install what scripts/packages-build.txt names (Boost 1.81 or later), then build with:" \
       "  cmake --workflow --preset demo" ;;
esac

missing=()
while read -r package; do
  if [[ $package == "("* ]]; then
    command=${package%%)*}
    if command -v "${command#(}" >/dev/null; then continue; fi
    package=${package#*) }
  fi
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
done < <(for group; do sed -n "/^#/d; s/^$release: *//; /:/d; /./p" "packages-$group.txt"; done)
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=(env DEBIAN_FRONTEND=noninteractive)
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || fail "needs root or sudo to install: ${missing[*]}"
  as_root=(sudo "${as_root[@]}")
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Another apt at work is waited for; dpkg's lock has an option for that, the lock of the package lists has none.
apt_get() {
  local deadline=$((SECONDS + 600))
  until "${as_root[@]}" apt-get -q -y -o DPkg::Lock::Timeout=600 "$@" </dev/null >"$log" 2>&1; do
    if grep -q 'Could not get lock' "$log" && [ $SECONDS -lt $deadline ]; then sleep 2; continue; fi
    tail -n 30 "$log" >&2
    fail "apt-get $1 failed; it was to install: ${missing[*]}"
  done
}

echo "Installing ${missing[*]}" >&2
apt_get update
apt_get install --no-install-recommends "${missing[@]}"
