#!/bin/sh
# Installs what Cairn needs from Debian's packages. Idempotent and quiet: it asks dpkg first and calls apt only for
# what is missing, so a second run costs milliseconds. Works as root and with sudo.
#
#   scripts/setup.sh            what building and testing need
#   scripts/setup.sh --build    only what building and running need
#   scripts/setup.sh --bench    also what the benchmarks compare with
#
# Tests in a virtual machine run under Debian's own kernel: it is unpacked into /var/cache/cairn-vm, not installed.
set -eu

BUILD_PACKAGES="clang-19 lld-19 llvm-19 libclang-rt-19-dev cmake ninja-build ccache pkg-config
  liburing-dev libisal-dev librocksdb-dev libssl-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libpugixml-dev
  libcli11-dev libtomlplusplus-dev libboost-dev libcurl4-openssl-dev libprotobuf-dev protobuf-compiler libibverbs-dev python3"
TEST_PACKAGES="libgtest-dev libgmock-dev clang-tidy-19 clang-format-19 git
  awscli s3cmd rclone python3-boto3 curl fio groff-base strace
  qemu-system-x86 busybox-static kmod iproute2 ibverbs-providers tcpdump"
NODE_PACKAGES="nodejs npm"
# nginx starts a server on port 80, and all of them are large: only for those who ask for them.
BENCH_PACKAGES="nginx-light ucx-utils libgrpc++-dev libcapnp-dev capnproto"

# A node and an npm from elsewhere do as well, and Debian's npm would want to replace them.
if command -v node >/dev/null && command -v npm >/dev/null; then
  NODE_PACKAGES=""
fi

case "${1:-}" in
  --build) wanted="$BUILD_PACKAGES" ;;
  --bench) wanted="$BUILD_PACKAGES $TEST_PACKAGES $NODE_PACKAGES $BENCH_PACKAGES" ;;
  "") wanted="$BUILD_PACKAGES $TEST_PACKAGES $NODE_PACKAGES" ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

missing=""
for package in $wanted; do
  # "install ok installed" is the only state that means usable; a removed package keeps its configuration and a state.
  state=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$state" = "install ok installed" ] || missing="$missing $package"
done
guest_kernel=""
[ "${1:-}" = --build ] || [ -f "${CAIRN_VM_CACHE:-/var/cache/cairn-vm}/kernel/vmlinux" ] || guest_kernel=wanted
[ -n "$missing$guest_kernel" ] || exit 0

if [ "$(id -u)" = 0 ]; then
  as_root=""
elif command -v sudo >/dev/null; then
  as_root="sudo -E"
else
  echo "setup: these packages are missing and neither root nor sudo is at hand:$missing" >&2
  echo "setup: as root, run: apt-get install --no-install-recommends$missing" >&2
  exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
install_missing() {
  # shellcheck disable=SC2086  # a list of words on purpose
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >"$log" 2>&1
}
refresh() {
  $as_root apt-get update -qq >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
}
# The package lists may be absent (a fresh container) or stale: refresh them only when the first try fails.
if [ -n "$missing" ]; then
  echo "setup: installing$missing"
  if ! install_missing; then
    refresh
    install_missing || { tail -20 "$log" >&2; echo "setup: apt-get failed, see above" >&2; exit 1; }
  fi
fi
if [ -n "$guest_kernel" ]; then
  echo "setup: getting the kernel of the tests' virtual machine"
  vmrun="$(dirname "$0")/../tests/vm/vmrun"
  if ! $as_root "$vmrun" --setup >"$log" 2>&1; then
    refresh
    $as_root "$vmrun" --setup >"$log" 2>&1 || { tail -20 "$log" >&2; echo "setup: no kernel, see above" >&2; exit 1; }
  fi
fi
