# shellcheck shell=bash disable=SC2034  # who sources this uses the variables
# What scripts below tests/ share. Source it first: the script then runs at the top of the tree.
set -euo pipefail
# The folder of the script that runs, and the top of the tree.
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
