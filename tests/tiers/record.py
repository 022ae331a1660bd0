#!/usr/bin/env python3
"""After a run of ctest, record.py BUILD RESULTS PARTS prints the slowest suites with seconds and seconds of processor time, and
what was not run; and it notes the suites that passed, with the commit, in PARTS/green-suites.json. RESULTS is what ctest
--output-junit wrote. record.py --failed RESULTS prints the suites that failed."""
import collections
import json
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

import suites

SLOWEST = 20
OURS = {"programs", "pages"}  # what ./dev makes in any case; everything else that a suite needs is a part

Result = collections.namedtuple("Result", "name seconds ran passed output")


def results(file):
    for case in xml.etree.ElementTree.parse(file).getroot().iter("testcase"):
        status = case.get("status")
        yield Result(case.get("name"), float(case.get("time", 0)), status != "notrun", status == "run",
                     case.findtext("system-out") or "")


def processor_seconds(build, name):
    """What `time` measured; None: it was not there, or the suite was killed."""
    try:
        last = pathlib.Path(build, "test-times", name).read_text().split("\n")[-2].split()
        return float(last[1]) + float(last[2])
    except (OSError, IndexError, ValueError):
        return None


def table(build, ran):
    lines = [f"{len(ran)} suites, {sum(r.seconds for r in ran):.0f} s one after the other; the slowest:",
             "  seconds  processor  suite"]
    for result in sorted(ran, key=lambda r: -r.seconds)[:SLOWEST]:
        used = processor_seconds(build, result.name)
        lines.append(f"  {result.seconds:7.1f}  {'' if used is None else f'{used:.1f}':>9}  {result.name}")
    return "\n".join(lines)


def not_run(all_results, parts_of):
    """A line for each suite that was skipped, and for each that skipped tests."""
    for_want = re.compile(r"^.*(?:SKIPPED|NOT RUN|skip).*$", re.M)
    lines = []
    for result in all_results:
        if not result.ran:
            reason = for_want.search(result.output)
            parts = parts_of.get(result.name, [])
            lines.append(f"NOT RUN: {result.name}" + (f": {reason[0].strip()}" if reason else "")
                         + (f" (./dev parts {' '.join(parts)})" if parts else ""))
            continue
        skipped = sum(int(n) for n in re.findall(r"\[  SKIPPED \] (\d+) test|skipped=(\d+)", result.output) for n in n if n)
        if skipped:
            lines.append(f"NOT RUN: {skipped} tests of {result.name}")
    return lines


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
    if sys.argv[1] == "--failed":
        for result in results(sys.argv[2]):
            if result.ran and not result.passed:
                print(result.name)
        return
    build, file, parts = sys.argv[1:]
    found = list(results(file))
    parts_of = {suite.name: sorted(set(suite.needs) - OURS) for suite in suites.suites(build)}
    print(table(build, [result for result in found if result.ran]))
    print("\n".join(not_run(found, parts_of)))
    if suites.changed_since("HEAD") != []:
        return  # the working tree differs from the commit
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=suites.ROOT, check=True, capture_output=True,
                            text=True).stdout.strip()
    note_green(parts, [(result.name, result.seconds) for result in found if result.passed], commit, time.time())


if __name__ == "__main__":
    main()
