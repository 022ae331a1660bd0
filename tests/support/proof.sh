# shellcheck shell=bash disable=SC2034  # who sources this uses the variables
# Shared by the large proofs. A proof is an executable file tests/NAME/prove that ./dev prove NAME runs; its second line says
# "# prove: [ARGUMENTS] what it does (default)" for ./dev help. It sources this file first, builds, runs programs, and
# records their figures in docs/proofs.md.
# shellcheck source=tests/support/script.sh
source "$(dirname "${BASH_SOURCE[0]}")/script.sh"

proof=${here##*/}
proof=${proof//_/-}
commit=$(git rev-parse --short HEAD)
# For proofs that do not measure speed: any preset will do.
preset=${TOLLGATE_PRESET:-release}
# The programs of a cluster.
cluster=(tollgate-auth tollgate-ratelimit tollgate-billing tollgate-catalog tollgate-inference-router tollgate-gateway tollgate-dashboard)
# A file for each program that runs. The folder is kept when the proof fails.
logs=$(mktemp -d)
declare -A running=()
trap 'kill "${running[@]}" 2>/dev/null || true; rmdir "$logs" 2>/dev/null || true' EXIT

"$root/dev" packages build run test

# build PRESET TARGET…: also tells tests where the programs are, and sets tests to the folder of their own.
build() {
  "$root/dev" build "$@"
  export TOLLGATE_BIN=$root/build/$1/bin
  tests=build/$1/tests
}

# failed NAME…: shows the ends of these logs, without the lines of the product's own log, and ends the proof.
failed() {
  local name
  for name in "$@"; do
    say "$name failed; the end of its log:"
    grep -v '^{' "$logs/$name" | tail -n 60 >&2 || true
  done
  die "the proof failed; everything it wrote is in $logs"
}

# run NAME COMMAND…: runs a program, with the log $logs/NAME.
run() { "${@:2}" >"$logs/$1" 2>&1 || failed "$1"; }

# start NAME COMMAND…: the same, in parallel; finish waits for all of them.
start() {
  "${@:2}" >"$logs/$1" 2>&1 &
  running[$1]=$!
}

finish() {
  local name bad=()
  for name in "${!running[@]}"; do
    wait "${running[$name]}" || bad+=("$name")
    unset "running[$name]"
  done
  [[ ${#bad[@]} -eq 0 ]] || failed "${bad[@]}"
}

# rows WORD LOG…: the lines of these logs that begin with WORD, without it.
rows() { sed -n "s/^$1 //p" "${@:2}"; }

# record [DETAILS]: adds what the function section prints to docs/proofs.md, under a heading, and shows it. It ends the proof.
record() {
  local text
  text=$(mktemp)
  {
    printf '\n### %s, %s%s, commit %s\n\n' "$proof" "${1:+$1, }" "$(date -u +%F)" "$commit"
    section
  } >"$text"
  tee -a docs/proofs.md <"$text"
  rm -r "$logs" "$text"
}
