#!/usr/bin/python3
"""Fires alerts for real: prove_alerts.py BIN-FOLDER [--record PAGE [--note TEXT]] [--logs FOLDER] [ALERT...]

For each alert the fault that it names is made in a cluster of real processes that a real Prometheus watches; the alert must
fire, and end after the fault has. Windows, waiting times and thresholds of the shipped rules are shortened, as SHORTER
says; expressions stay. Alerts without a fault here are listed. The ledger is changed last.
"""
import argparse
import contextlib
import datetime
import pathlib
import re
import shutil
import subprocess
import sys
import time
import traceback

import yaml

# The cluster and its Prometheus.
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "observability"))

import cluster  # noqa: E402
import faults  # noqa: E402

ROOT = cluster.ROOT
FOLDER = ROOT / "deploy/prometheus"
# Seconds that replace the ranges of the rules.
WINDOWS = {"5m": 10, "10m": 15, "15m": 15, "30m": 12, "1h": 15, "2h": 15, "6h": 18, "26h": 15, "3d": 20, "1d": 15}
# Shortened durations: (alert, from, to).
SHORTER = (("MailsWait", "> 600", "> 5"), ("KeyDatabaseUnreachable", "> 30", "> 3"), ("SettlementsWait", "> 60", "> 3"), ("AuditCopyLags", "> 60", "> 3"), ("AuditOutboxFails", "> 10", "> 0"),
           ("GatewayEvictsConnections", "> 100", "> 5"), ("GatewaySlowClients", "> 1000", "> 5"),
           ("GatewayLinkQueues", "> 64e6", "> 2e6"), ("PaymentUnknown", "> 600", "> 3"), ("NoticesWait", "> 3600", "> 5"))


def shortened(rule):
    for name, before, after in SHORTER:
        if rule.get("alert") == name:
            assert before in rule["expr"], name
            rule["expr"] = rule["expr"].replace(before, after)
    rule["expr"] = re.sub(r"\[(\d+[mhd])\]", lambda found: f"[{WINDOWS[found.group(1)]}s]", rule["expr"])
    if "for" in rule:
        rule["for"] = "2s"
    return rule


def shipped_rules():
    names = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["rule_files"]
    groups = [group for name in names for group in yaml.safe_load((FOLDER / name).read_text())["groups"]]
    for group in groups:
        group["rules"] = [shortened(rule) for rule in group["rules"]]
    return groups


def seconds(number):
    return "-" if number is None else f"{number:.0f} s"


class Proof:
    def __init__(self, observed):
        self.observed, self.rows, self.failed = observed, [], []

    def firing(self, name):
        return bool(self.observed.query(f'ALERTS{{alertname="{name}",alertstate="firing"}}'))

    def wait(self, name, wanted, patience):
        """Seconds until the alert fires (or stops firing); None: not in time. A busy machine gets three minutes."""
        begin, patience = time.monotonic(), max(patience, 180)
        while time.monotonic() - begin < patience:
            with contextlib.suppress(OSError):
                if self.firing(name) == wanted:
                    return time.monotonic() - begin
            time.sleep(0.3)
        return None

    def prove(self, fault):
        try:
            self.run(fault)
        except (Exception, SystemExit) as failure:  # continue with the other alerts
            traceback.print_exc()
            self.failed.append(f"{type(fault).__name__}: {failure}")
            for undo in (fault.end, fault.put_back):
                with contextlib.suppress(Exception, SystemExit):
                    undo(self.observed)

    def run(self, fault):
        names = fault.alerts
        for name in names:  # an earlier fault may still fire it
            if not fault.fires_before and self.wait(name, False, fault.patience) is None:
                raise AssertionError(f"{name} fires before its fault")
        fault.begin(self.observed)
        fired = {name: self.wait(name, True, fault.patience) for name in names}
        fault.end(self.observed)
        for name in names:
            ended = self.wait(name, False, fault.patience) if fault.ends else 0
            good = fired[name] is not None and ended is not None
            self.rows.append((name, fault.__doc__, fired[name], ended if fault.ends else None))
            print(f"{'ok' if good else 'NOT'} {name}: {fault.__doc__} (fired after {seconds(fired[name])}, ended after {seconds(ended)})", flush=True)
            if not good:
                self.failed.append(f"{name}: {'did not fire' if fired[name] is None else 'did not end'}")
        fault.put_back(self.observed)


def record(page, rows, unproven, note):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    with open(page, "a") as out:
        out.write(f"\n### alerts, {datetime.date.today()}, commit {commit}\n\n")
        out.write("Each alert was fired by the fault that it names, in a cluster of real processes watched by a real Prometheus, with the\n"
                  "shipped expressions and short windows, and ended after the fault. Seconds are those of the short windows.\n\n")
        if note:
            out.write(f"{note}\n\n")
        out.write("| alert | fault | fired after s | ended after s |\n|---|---|---|---|\n")
        for name, text, fired, ended in sorted(rows):
            out.write(f"| {name} | {text} | {fired:.0f} | {'with a restart' if ended is None else f'{ended:.0f}'} |\n")
        if unproven:
            out.write(f"\nNot fired here, tested by `promtool` alone: {', '.join(unproven)}.\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("alerts", nargs="*")
    parser.add_argument("--record")
    parser.add_argument("--note", help="a sentence for the page, for example about the build")
    parser.add_argument("--logs", help="where files and logs of the cluster are copied to after a failure")
    options = parser.parse_args()
    groups = shipped_rules()
    every = [rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule]
    chosen = [fault() for fault in faults.FAULTS if fault.possible() and (not options.alerts or set(fault.alerts) & set(options.alerts))]
    unknown = [name for fault in chosen for name in fault.alerts if name not in every]
    assert not unknown, unknown
    rules = pathlib.Path(subprocess.run(["mktemp", "--suffix=.yml"], capture_output=True, text=True).stdout.strip())
    rules.write_text(yaml.safe_dump({"groups": groups}))
    observed = cluster.Observed(options.bin, flags=faults.FLAGS, rules=[rules])
    proof = Proof(observed)
    try:
        # Rules about an increase compare with earlier scrapes.
        cluster.wait_for("two scrapes of each process", 30, lambda: len(observed.query(
            "count_over_time(up[1m]) >= 2")) >= len(observed.processes()))
        for fault in chosen:
            proof.prove(fault)
        if proof.failed and options.logs:
            shutil.copytree(observed.facts["dir"], f"{options.logs}/cluster", dirs_exist_ok=True)
            shutil.copytree(observed.folder, f"{options.logs}/beside", dirs_exist_ok=True, ignore=shutil.ignore_patterns("tsdb", "disk"))
    finally:
        observed.close()
        rules.unlink()
    unproven = [name for name in every if name not in {row[0] for row in proof.rows}]
    without = [name for name in every if not any(name in fault.alerts for fault in faults.FAULTS if fault.possible())]
    print(f"{len(proof.rows) - len(proof.failed)} of {len(every)} alerts fired; no fault for: {', '.join(without)}")
    for failure in proof.failed:
        print("FAILED:", failure)
    if options.record and not proof.failed and not options.alerts:
        record(options.record, proof.rows, unproven, options.note)
    return 1 if proof.failed else 0


if __name__ == "__main__":
    sys.exit(main())
