#!/usr/bin/env python3
"""Verifies a large ledger, and measures that and the yearly report of its busiest key.

    verify_proof.py BIN --requests N [--database URL] [--record PAGE]

Without --database: SQLite in a temporary folder. --record appends the figures to a page in Markdown.
"""
import argparse
import datetime
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time

LIMIT_MIB = 2048
LIMIT_REPORT_MS = 50


def verify(binary, url):
    """The report, the exit code, the seconds and the largest memory of one run, in MiB."""
    begin = time.monotonic()
    process = subprocess.Popen([binary, "verify", "--database", url, "--json"], stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return json.loads(output), process.returncode, time.monotonic() - begin, usage.ru_maxrss / 1024


def check_cli(tollgate, url, expected):
    """tollgate starts tollgate-billing for commands on the database."""
    if not os.path.exists(tollgate):
        return []
    done = subprocess.run([tollgate, "verify-ledger", "--database", url, "--json"], capture_output=True, text=True)
    archive = [tollgate, "ledger", "archive", "--database", url, "--to", tempfile.gettempdir(), "--before"]
    wrong = subprocess.run(archive + ["2026-13"], capture_output=True, text=True)
    none = subprocess.run(archive + ["2020-01"], capture_output=True, text=True)
    failures = []
    if json.loads(done.stdout) != expected or done.returncode != (1 if expected["violations"] else 0):
        failures.append(f"tollgate verify-ledger: {done}")
    if wrong.returncode != 2 or "is not a month" not in wrong.stderr:
        failures.append(f"tollgate ledger archive with a wrong month: {wrong}")
    if none.returncode != 0 or "No month can be archived" not in none.stdout:
        failures.append(f"tollgate ledger archive: {none}")
    return failures


def report_of_year(fill, url):
    """The report's line in the output of the fill program: requests and milliseconds."""
    done = subprocess.run([fill, url, "report"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def run(flags, url, path):
    failures = []
    fill = os.path.join(flags.bin, "tollgate-ledger-fill")
    begin = time.monotonic()
    subprocess.run([fill, url, str(flags.requests)], check=True)
    filled = time.monotonic() - begin
    year = report_of_year(fill, url)
    # Most requests of the busy key are charged; void ones are not in the report.
    if year["requests"] < flags.requests * 3 // 8 * 9 // 10:
        failures.append(f"the report lacks requests: {year}")
    if year["median_ms"] > LIMIT_REPORT_MS:
        failures.append(f"the report of a year takes too long: {year}")
    binary = os.path.join(flags.bin, "tollgate-billing")
    report, code, seconds, mib = verify(binary, url)
    if code != 0 or report["violations"]:
        failures.append(f"the ledger does not verify: {report}")
    if report["holds"] != flags.requests or report["usage_records"] != flags.requests:
        failures.append(f"not every request was verified: {report}")
    if mib > LIMIT_MIB:
        failures.append(f"{mib:.0f} MiB of memory")
    rows = [f"| {'SQLite' if path else 'PostgreSQL'} | {flags.requests:,} | {report['entries']:,} | {filled:.0f} s"
            f" | {seconds:.0f} s | {report['entries'] / seconds:,.0f} | {mib:.0f} MiB | {year['requests']:,}"
            f" | {year['first_ms']:.1f} / {year['median_ms']:.1f} / {year['slowest_ms']:.1f} ms |"]
    if path:
        with sqlite3.connect(path) as database:
            database.execute("UPDATE usage_record SET price_version = 4 WHERE id = (SELECT max(id) FROM usage_record)")
        database.close()
        changed, code, _, _ = verify(binary, url)
        if code != 1 or len(changed["violations"]) != 1 or "price version is 4" not in changed["violations"][0]:
            failures.append(f"a changed price version was not found: {changed}")
    failures += check_cli(os.path.join(flags.bin, "tollgate"), url, changed if path else report)
    return failures, rows


def record(page, rows):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    with open(page, "a", encoding="utf-8") as out:
        out.write(f"\n### verify, {datetime.date.today()}, commit {commit}\n\n"
                  "`tollgate-billing verify` as a process of its own, the memory is its largest resident size. The report: the\n"
                  "usage of the busiest key over the whole year, as `GET /api/v1/usage` computes it; 21 runs.\n\n"
                  "| database | requests | entries | filled in | verified in | entries/s | memory | requests of the key | its"
                  " report: first / median / slowest |\n|---|---|---|---|---|---|---|---|---|\n"
                  + "\n".join(rows) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--database")
    parser.add_argument("--record")
    flags = parser.parse_args()
    if flags.database:
        failures, rows = run(flags, flags.database, None)
    else:
        with tempfile.TemporaryDirectory(prefix="tollgate-ledger-") as folder:
            path = os.path.join(folder, "ledger.db")
            failures, rows = run(flags, "sqlite:" + path, path)
    print("\n".join(rows))
    for failure in failures:
        print("FAILED:", failure, file=sys.stderr)
    if flags.record and not failures:
        record(flags.record, rows)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
