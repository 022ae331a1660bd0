#!/usr/bin/python3
"""Every query of every panel returns data, and every metric is documented: panels_test.py BIN-FOLDER

Runs a cluster of real processes under a little load, scraped by a real Prometheus. Also: metrics have names by
Prometheus's rules (promtool), docs/metrics.md states for each its type, meaning and labels, and each metric that it names exists.
"""
import concurrent.futures
import json
import math
import pathlib
import re
import subprocess
import sys
import zlib

import cluster
import metric_sources

ROOT = cluster.ROOT
# Metrics that a cluster without these faults, or on SQLite, does not have, with the reason.
ABSENT = {}
# Panels that have no data here, with the reason. alert_cases.yml has the series of the first one.
EMPTY = {"Until evidence is due": "no dispute is open"}
# Seconds until each panel has data.
PATIENCE = 40


def load(observed):
    """Produces data for every panel."""
    keys = observed.facts["keys"]
    text = {"model": "sim/text", "prompt": "Once", "max_tokens": 20}
    stream = {"tokens": 40, "token_ms": 5}
    calls = [lambda: observed.chat(stream, stream=True), lambda: observed.chat(), lambda: observed.call("POST", "/v1/completions", None, text),
             lambda: observed.call("POST", "/v1/embeddings", None, {"model": "sim/embed", "input": "a"}),
             lambda: observed.call("GET", "/v1/models"), lambda: observed.call("GET", "/nothing-here"),
             lambda: observed.chat(key="sk-made-up-key"), lambda: observed.chat(key=keys["broke"]),
             lambda: observed.chat(key=keys["one_a_minute"]), lambda: observed.chat(key=keys["roomy"]),
             lambda: observed.chat({"status": 500, "error_body": "no"}),
             lambda: observed.call("POST", "/v1/messages", None, {"model": "sim/model", "max_tokens": 20, "messages": [{"role": "user", "content": "Hi"}]}),
             lambda: observed.call("POST", "/v1/chat/completions", None,
                                   zlib.compress(json.dumps({"model": "sim/model", "messages": [{"role": "user", "content": "Hi"}]}).encode()),
                                   {"Content-Encoding": "deflate"})]
    for call in calls:
        call()
    observed.operator("key", "create", "--workspace", observed.facts["workspaces"]["good"], "--name", "load")


def panels():
    """(page, panel, query) of the dashboards that are checked in."""
    for file in sorted((ROOT / "deploy/grafana").glob("*.json")):
        page = json.loads(file.read_text())
        for panel in page["panels"]:
            for target in panel.get("targets", ()):
                yield file.stem, panel["title"], target["expr"]


def substituted(expr):
    for name, value in (("$job", ".+"), ("$instance", ".+"), ("$__rate_interval", "30s")):
        expr = expr.replace(name, value)
    assert "$" not in expr, f"a variable that this test does not know: {expr}"
    return expr


def has_data(observed, expr):
    return any(not math.isnan(float(row["value"][1])) for row in observed.query(substituted(expr)))


def check_panels(observed):
    known = list(panels())
    assert EMPTY.keys() <= {panel for _, panel, _ in known}, "a panel of the list is gone"
    left = [row for row in known if row[1] not in EMPTY]
    assert len(left) > 100, "no dashboards"
    print(f"{len(left)} queries")

    def remaining():
        nonlocal left
        load(observed)
        left = [row for row in left if not has_data(observed, row[2])]
        return not left

    try:
        cluster.wait_for("data of all panels", PATIENCE, remaining)
    except SystemExit as late:
        return [f"{late}: {page}, {panel}: {expr}" for page, panel, expr in left]
    return []


def exposed(text):
    """name → (type, help, labels) of the text of /metrics."""
    found, helps = {}, dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.M))
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M):
        labels = set()
        for row in re.findall(rf"^{name}(?:_bucket|_sum|_count)?\{{(.*)\}} \S+$", text, re.M):
            labels.update(re.findall(r'(\w+)="', row))
        found[name] = (kind, helps[name].replace("\\\\", "\\"), labels - {"le"})
    return found


def check_documentation(observed):
    documented = metric_sources.read(ROOT)
    seen = set()
    for process, address in observed.processes().items():
        text = observed.metrics_of(address)
        named = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        if named.returncode:
            yield f"{process}: {named.stderr}"
        for name, (kind, help_text, labels) in exposed(text).items():
            seen.add(name)
            metric = documented.get(name)
            if metric is None:
                yield f"{process}: {name} is not documented"
            elif (metric.type, metric.help) != (kind, help_text.rstrip(".") + "."):
                yield f"{process}: {name} is documented as {metric}, it is {kind}: {help_text}"
            elif not labels <= set(metric.labels):
                yield f"{process}: {name} has the labels {labels}, documented are {metric.labels}"
    for name in sorted(set(documented) - seen - set(ABSENT)):
        yield f"no process has {name}, which is documented"
    for name in sorted(seen & set(ABSENT)):
        yield f"{name} is there, although: {ABSENT[name]}"


def main():
    rules = sorted((ROOT / "deploy/prometheus").glob("*rules*.yml")) + [ROOT / "deploy/prometheus/alerts.yml"]
    observed = cluster.Observed(sys.argv[1], rules=rules)
    try:
        faults = check_panels(observed) + list(check_documentation(observed))
    finally:
        observed.close()
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
