"""Rule: the alerts of Prometheus name metrics that the product has and that docs/operations.md explains."""
import re

import yaml

ALERTS = "deploy/prometheus/alerts.yml"


def metrics_of(rule):
    # The buckets of a histogram are series of the metric that the code names.
    return {re.sub(r"_bucket$", "", name) for name in re.findall(r"\btollgate_\w+", rule.get("expr", ""))}


def faults(text, sources, operations):
    """What is wrong with the text of the alert file. sources: all code as one text."""
    try:
        groups = yaml.safe_load(text)["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
    except (yaml.YAMLError, KeyError, TypeError) as error:
        yield f"not a file of alert groups: {error}"
        return
    names = [rule.get("alert") for rule in rules]
    for name in sorted({str(name) for name in names if names.count(name) > 1}):
        yield f"the alert {name} stands twice"
    for rule in rules:
        name = rule.get("alert")
        unknown = set(rule) - {"alert", "expr", "for", "labels", "annotations"}
        if not name or unknown:
            yield f"an alert without a name, or with unknown fields {sorted(unknown)}"
            continue
        if rule.get("labels", {}).get("severity") not in ("warning", "critical"):
            yield f"{name}: the severity is neither warning nor critical"
        for wanted in ("summary", "action"):
            if not rule.get("annotations", {}).get(wanted):
                yield f"{name}: no {wanted}"
        if not metrics_of(rule):
            yield f"{name}: no metric of ours"
        for metric in sorted(metrics_of(rule)):
            if f'"{metric}"' not in sources:
                yield f"{name}: no code has the metric {metric}"
            if metric not in operations:
                yield f"{name}: docs/operations.md does not explain {metric}"


def check_alerts(files, read):
    if ALERTS not in files:
        return
    sources = "\n".join(read(path) for path in files if path.endswith(".cc") and not path.endswith("_test.cc"))
    for fault in faults(read(ALERTS), sources, read("docs/operations.md")):
        yield ALERTS, 1, fault
