"""Building blocks of the description of dashboards."""
import dataclasses
from typing import Optional


@dataclasses.dataclass(frozen=True)
class Query:
    expr: str
    legend: str = ""


@dataclasses.dataclass(frozen=True)
class Panel:
    title: str
    unit: str
    description: str
    queries: tuple
    kind: str = "graph"  # or stat
    stacked: bool = False
    lowest: Optional[float] = 0
    bad_above: Optional[float] = None


@dataclasses.dataclass(frozen=True)
class Page:
    name: str
    title: str
    description: str
    rows: tuple  # of (title, panels)


def rate(metric, by="", matchers=""):
    """Per second, summed over the processes, by these labels."""
    selector = metric + ("{" + matchers + "}" if matchers else "")
    return f"sum{' by (' + by + ')' if by else ''} (rate({selector}[$__rate_interval]))"


def quantile(q, metric, by="", matchers=""):
    labels = "le" + (", " + by if by else "")
    return f"histogram_quantile({q}, {rate(metric + '_bucket', labels, matchers)})"


def graph(title, unit, description, *queries, **more):
    made = tuple(query if isinstance(query, Query) else Query(*query) for query in queries)
    return Panel(title, unit, description, made, **more)


def stat(title, unit, description, expr, **more):
    return Panel(title, unit, description, (Query(expr),), kind="stat", **more)


def times(title, description, metric, by="", matchers=""):
    """Median, 95th and 99th percentile of a histogram of seconds."""
    end = " {{" + by + "}}" if by else ""
    return graph(title, "s", description, *((quantile(q, metric, by, matchers), name + end)
                                            for q, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))))
