#!/usr/bin/env python3
"""After a run of ctest, record.py BUILD RESULTS PARTS prints the slowest suites, with seconds and seconds of processor time, and notes
the suites that passed, with the commit, in PARTS/green-suites.json. RESULTS is what ctest --output-junit wrote."""
import json
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree

import suites

SLOWEST = 20


def results(file):
    """(name, seconds, status) of each suite that ran; status is run, fail or notrun."""
    for case in xml.etree.ElementTree.parse(file).getroot().iter("testcase"):
        yield case.get("name"), float(case.get("time", 0)), case.get("status")


def processor_seconds(build, name):
    """What `time` measured; None: it was not there, or the suite was killed."""
    try:
        last = pathlib.Path(build, "test-times", name).read_text().split("\n")[-2].split()
        return float(last[1]) + float(last[2])
    except (OSError, IndexError, ValueError):
        return None


def table(build, rows):
    total = sum(seconds for _, seconds, _ in rows)
    lines = [f"{len(rows)} suites, {total:.0f} s one after the other; the slowest:", "  seconds  processor  suite"]
    for name, seconds, _ in sorted(rows, key=lambda row: -row[1])[:SLOWEST]:
        used = processor_seconds(build, name)
        lines.append(f"  {seconds:7.1f}  {'' if used is None else f'{used:.1f}':>9}  {name}")
    return "\n".join(lines)


def read_green(parts):
    try:
        return json.loads(pathlib.Path(parts, "green-suites.json").read_text())
    except (OSError, ValueError):
        return {}


def note_green(parts, passed, commit, now):
    green = read_green(parts)
    for name, seconds in passed:
        green[name] = {"commit": commit, "at": int(now), "seconds": round(seconds, 1)}
    file = pathlib.Path(parts, "green-suites.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(green, indent=1, sort_keys=True) + "\n")
    new.replace(file)


def main():
    build, file, parts = sys.argv[1:]
    rows = [row for row in results(file) if row[2] != "notrun"]
    print(table(build, rows))
    if suites.changed_since("HEAD") != []:
        return  # what ran is no commit
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=suites.ROOT, check=True, capture_output=True,
                            text=True).stdout.strip()
    note_green(parts, [(name, seconds) for name, seconds, status in rows if status == "run"], commit, time.time())


if __name__ == "__main__":
    main()
