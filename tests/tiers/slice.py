#!/usr/bin/env python3
"""Chooses which of the suites that only `./dev test all` runs come next: slice.py BUILD PARTS SECONDS prints them, one per line,
behind "touched" or "due", and on the standard error what it left out. First those whose files have changed since they last passed
(PARTS/green-suites.json), then those that passed longest ago or never here, until SECONDS are full."""
import sys

import record
import suites

LANES = 2  # ctest runs as many of these side by side


def order(candidates, green, is_touched):
    """Touched ones first; each group by the time of the last green run. Suites that never passed here come first in theirs, the
    shorter ones before the longer ones, so that many get a first run."""
    def key(suite):
        at = green.get(suite.name, {}).get("at", 0)
        return (not is_touched(suite), at, suite.seconds, suite.name)
    return sorted(candidates, key=key)


def fill(ordered, seconds):
    """(chosen, left out): takes each suite that still has room. Serial ones take all lanes. None is longer than half, since
    the last one to end may run alone."""
    chosen, left, used = [], [], 0.0
    for suite in ordered:
        cost = suite.seconds if suite.serial else suite.seconds / LANES
        if used + cost <= seconds and suite.seconds <= seconds / 2:
            chosen.append(suite)
            used += cost
        else:
            left.append(suite)
    return chosen, left


def main():
    build, parts, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    everything = suites.suites(build)
    targets, green = suites.Targets(build), record.read_green(parts)
    candidates = [s for s in everything if "test" not in s.labels and not s.fixture]
    touched, changes = set(), {}
    for suite in candidates:
        commit = green.get(suite.name, {}).get("commit")
        if commit and commit not in changes:
            paths = suites.changed_since(commit)
            changes[commit] = {s.name for s in suites.affected(everything, targets, paths)} if paths is not None else set()
        if commit and suite.name in changes[commit]:
            touched.add(suite.name)
    chosen, left = fill(order(candidates, green, lambda suite: suite.name in touched), seconds)
    for suite in chosen:
        print("touched" if suite.name in touched else "due", suite.name)
    print(f"slice: {len(chosen)} of {len(candidates)} further suites run; not: "
          + (", ".join(suite.name for suite in left) or "none"), file=sys.stderr)


if __name__ == "__main__":
    main()
