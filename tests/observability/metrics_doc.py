#!/usr/bin/python3
"""Writes docs/metrics.md from the descriptions of metrics in the code; with --check only compares."""
import pathlib
import sys

import metric_sources

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/metrics.md"
# Sections by prefix of the name, the most specific one first.
PARTS = (
    ("tollgate_gateway_", "Gateway"),
    ("tollgate_http_", "HTTP servers (gateway, dashboard)"),
    ("tollgate_router_", "Inference router"),
    ("gen_ai_", "Inference router, by OpenTelemetry's semantic conventions for generative AI"),
    ("tollgate_billing_", "Billing"),
    ("tollgate_auth_", "Auth"),
    ("tollgate_ratelimit_", "Ratelimit"),
    ("tollgate_catalog_", "Catalog"),
    ("tollgate_dashboard_", "Dashboard"),
    ("tollgate_rpc_", "Calls between processes (all)"),
    ("", "Every process"),
)


def link(text, folder, page, anchor=""):
    return f"[{text}]({folder}{page}.md{anchor})"


HEAD = f"""# Metrics

Generated from the code by `./dev metrics`: do not edit. Each process serves its metrics at `/metrics` of
`host.ops_listen`; what to alert on is in {link('Health and metrics', '', 'operations', '#health-and-metrics')}, dashboards are in
{link('deploy/grafana', '../deploy/grafana/', 'README')}, what to do about each alert in {link('runbooks', 'runbooks/', 'README')}.

A histogram has the series `_bucket`, `_sum` and `_count`. Counters with a closed set of labels are there from the start
with 0, so that their first increase is seen; those of an endpoint, an engine, a caller or a code come with the first event.
"""


def table(rows):
    yield "| metric | type | labels | meaning |"
    yield "|---|---|---|---|"
    for metric in rows:
        labels = " ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | {metric.type} | {labels} | {metric.help.replace('|', chr(92) + '|')} |"


def page():
    left = dict(sorted(metric_sources.read(ROOT).items()))
    lines = [HEAD]
    for prefix, title in PARTS:
        rows = [metric for name, metric in left.items() if name.startswith(prefix)]
        left = {name: metric for name, metric in left.items() if not name.startswith(prefix)}
        lines += [f"## {title}", "", *table(rows), ""]
    return "\n".join(lines).rstrip() + "\n"


def main():
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text)
        return 0
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    print("docs/metrics.md is not what the code says: run ./dev metrics", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
