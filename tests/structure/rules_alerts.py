"""Rule: the alerts of Prometheus name metrics that the product or what it ships with has, and that docs/operations.md explains, and a
runbook."""
import re

import yaml

FOLDER = "deploy/prometheus/"
# What Prometheus itself records, and what rules record.
OWN = re.compile(r"\bup\{|\btollgate:\w+(?::\w+)*")

# Of what the product ships with.
THEIRS = re.compile(r"\b(?:patroni|etcd)_\w+")


def metrics_of(rule):
    # The buckets of a histogram are series of the metric that the code names.
    return {re.sub(r"_(?:bucket|count)$", "", name) for name in re.findall(r"\b(?:tollgate|process)_\w+", rule.get("expr", ""))}


def faults(text, sources, operations):
    """What is wrong with the text of the alert file. sources: all code as one text."""
    try:
        groups = yaml.safe_load(text)["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
    except (yaml.YAMLError, KeyError, TypeError) as error:
        yield f"not a file of alert groups: {error}"
        return
    names = [rule.get("alert") or rule.get("record") for rule in rules]
    for name in sorted({str(name) for name in names if names.count(name) > 1}):
        yield f"the alert {name} stands twice"
    for rule in rules:
        if "record" in rule:
            if set(rule) != {"record", "expr"}:
                yield f"{rule['record']}: a recorded series has a name and an expression"
            continue
        name = rule.get("alert")
        unknown = set(rule) - {"alert", "expr", "for", "labels", "annotations"}
        if not name or unknown:
            yield f"an alert without a name, or with unknown fields {sorted(unknown)}"
            continue
        if rule.get("labels", {}).get("severity") not in ("warning", "critical"):
            yield f"{name}: the severity is neither warning nor critical"
        for wanted in ("summary", "action", "runbook"):
            if not rule.get("annotations", {}).get(wanted):
                yield f"{name}: no {wanted}"
        theirs = sorted(set(THEIRS.findall(rule.get("expr", ""))))
        if not metrics_of(rule) and not theirs and not OWN.search(rule.get("expr", "")):
            yield f"{name}: no metric of ours"
        for metric in theirs:
            if metric not in operations:
                yield f"{name}: docs/operations.md does not explain {metric}"
        for metric in sorted(metrics_of(rule)):
            if f'"{metric}"' not in sources:
                yield f"{name}: no code has the metric {metric}"
            if metric not in operations:
                yield f"{name}: docs/operations.md does not explain {metric}"


def check_alerts(files, read):
    sources = "\n".join(read(path) for path in files if path.endswith((".cc", ".h")) and not path.endswith("_test.cc"))
    for path in sorted(files):
        if path.startswith(FOLDER) and path.endswith(".yml") and not path.endswith("/prometheus.yml"):
            for fault in faults(read(path), sources, read("docs/operations.md")):
                yield path, 1, fault
