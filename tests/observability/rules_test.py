#!/usr/bin/python3
"""Prometheus's own tools check the rules: each alert has a case in which it fires and one in which it does not
(alert_cases.yml), and a runbook; the files load."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/prometheus"
CASES = yaml.safe_load((ROOT / "tests/observability/alert_cases.yml").read_text())
# Names of the operator's systems, and words of the code.
LABELS = {"address", "answer", "caller", "channel", "class", "clock", "code", "coding", "database", "endpoint", "engine", "error",
          "error_type", "file", "folder", "gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "gen_ai_token_type",
          "kind", "limit", "outcome", "part", "process", "reason", "reload", "result", "router", "service", "source", "stage", "state",
          "status", "step", "version"}


def rule_files():
    """The rule files that prometheus.yml loads."""
    return [FOLDER / name for name in yaml.safe_load((FOLDER / "prometheus.yml").read_text())["rule_files"]]


def alerts(files=None):
    """Rule by name."""
    groups = (group for file in files or rule_files() for group in yaml.safe_load(file.read_text())["groups"])
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


def unit_test(name, case, severity):
    """The format of promtool. A firing alert is a separate series, with the labels that its receiver sees."""
    expected = []
    if "labels" in case or severity:
        labels = {"alertname": name, "alertstate": "firing", "severity": severity} | case.get("labels", {})
        matchers = ",".join(f'{label}="{value}"' for label, value in labels.items())
        expected = [{"labels": f"ALERTS{{{matchers}}}", "value": 1}]
    return {"interval": "1m", "name": name,
            "input_series": [{"series": series, "values": values} for series, values in case["series"].items()],
            "promql_expr_test": [{"expr": f'ALERTS{{alertname="{name}",alertstate="firing"}}', "eval_time": case["at"],
                                  "exp_samples": expected}]}


class Rules(unittest.TestCase):
    maxDiff = None

    def promtool(self, *command):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_files_load(self):
        self.promtool("check", "config", "--syntax-only", str(FOLDER / "prometheus.yml"))
        self.promtool("check", "rules", *map(str, rule_files()))

    def test_every_file_of_rules_is_loaded(self):
        self.assertEqual({file.name for file in rule_files()} | {"prometheus.yml"}, {file.name for file in FOLDER.glob("*.yml")})

    def test_each_alert_has_a_case_and_each_case_an_alert(self):
        self.assertEqual(set(alerts()), set(CASES))

    def test_each_alert_fires_in_its_case_and_not_in_the_other(self):
        for rules in rule_files():
            # Rules over days of data are not evaluated each minute.
            step = "5m" if rules.stem == "slo" else "1m"
            tests = []
            for name, rule in alerts([rules]).items():
                tests.append(unit_test(name, CASES[name]["fires"], rule["labels"]["severity"]))
                tests.append(unit_test(name, CASES[name]["quiet"], None))
            with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
                yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": step, "tests": tests}, file)
                file.flush()
                self.promtool("test", "rules", file.name)

    def test_no_label_names_a_customer_or_a_request(self):
        """Metrics are read in plain text (ADR 0033). docs/metrics.md is made from the code."""
        labels = set()
        for line in (ROOT / "docs/metrics.md").read_text().splitlines():
            if line.startswith("| `"):
                labels |= set(re.findall(r"`(\w+)`", line.split(" | ")[2]))
        self.assertEqual(labels ^ LABELS, set(), "may a label of this name stand in plain text?")

    def test_each_alert_has_a_runbook_and_each_runbook_an_alert(self):
        pages = {page.relative_to(ROOT).as_posix() for page in (ROOT / "docs/runbooks").glob("*.md")} - {"docs/runbooks/README.md"}
        linked = {name: rule["annotations"].get("runbook") for name, rule in alerts().items()}
        self.assertEqual(set(linked.values()), pages)
        listed = (ROOT / "docs/runbooks/README.md").read_text()
        for name, page in linked.items():
            self.assertEqual(page, f"docs/runbooks/{name}.md")
            self.assertIn(f"[{name}]({name}.md)", listed)
            text = (ROOT / page).read_text()
            for heading in ("What it means", "Impact", "Check", "Action"):
                self.assertRegex(text, rf"(?m)^## {heading}\n\n\S", f"{page}: {heading}")


if __name__ == "__main__":
    unittest.main()
