#!/usr/bin/env python3
"""Writes the dashboards of panels.py as Grafana's JSON: build.py [FOLDER], default: this folder.

Needs grafana-foundation-sdk (requirements.txt); ./dev dashboards has it and runs this.
"""
import json
import pathlib
import re
import sys

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models

import panels

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = common_models.DataSourceRef(type_val="prometheus", uid="${datasource}")
# Each selector names the processes that the page shows.
MATCHERS = 'job=~"$job",instance=~"$instance"'
SELECTOR = re.compile(r"\b((?:tollgate|gen_ai_server|gen_ai_client|process)_\w+|up\b)(?:\{([^}]*)\})?")
WIDTHS = {"stat": 4, "graph": 8}
HEIGHTS = {"stat": 4, "graph": 8}


def select(expr):
    """The query with the matchers in every selector."""
    return SELECTOR.sub(
        lambda found: found.group(1) + "{" + ",".join(filter(None, [found.group(2), MATCHERS])) + "}", expr)


def target(query, number):
    made = (prometheus.Dataquery().expr(select(query.expr)).datasource(SOURCE).ref_id(chr(ord("A") + number))
            .legend_format(query.legend or "__auto"))
    return made


def panel(row):
    if row.kind == "stat":
        made = stat.Panel().reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    else:
        made = timeseries.Panel().fill_opacity(10).show_points(common_models.VisibilityMode.NEVER).legend(
            common.VizLegendOptions().display_mode(common_models.LegendDisplayMode.LIST)
            .placement(common_models.LegendPlacement.BOTTOM).show_legend(True))
        if row.stacked:
            made = made.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL))
        if row.lowest is not None:
            made = made.min(row.lowest)
    made = (made.title(row.title).description(row.description).datasource(SOURCE).unit(row.unit)
            .span(WIDTHS[row.kind]).height(HEIGHTS[row.kind]))
    if row.bad_above is not None:
        steps = [models.Threshold(value=None, color="green"), models.Threshold(value=row.bad_above, color="red")]
        made = made.thresholds(dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
    for number, query in enumerate(row.queries):
        made = made.with_target(target(query, number))
    return made


def variable(name, query):
    return (dashboard.QueryVariable(name).label(name.title()).datasource(SOURCE).query(query).multi(True)
            .include_all(True).all_value(".+").refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(models.VariableSort.ALPHABETICAL_ASC)
            .current(models.VariableOption(text=["All"], value=["$__all"])))


def build(page):
    made = (dashboard.Dashboard(f"Tollgate / {page.title}").uid(f"tollgate-{page.name}").tags(["tollgate"])
            .description(page.description).readonly().time("now-1h", "now").refresh("30s")
            .tooltip(models.DashboardCursorSync.CROSSHAIR).timezone("browser")
            .link(dashboard.DashboardLink("Tollgate").type(models.DashboardLinkType.DASHBOARDS)
                  .tags(["tollgate"]).as_dropdown(True).keep_time(True).include_vars(True))
            .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
            .with_variable(variable("job", 'label_values(tollgate_build_info, job)'))
            .with_variable(variable("instance", 'label_values(tollgate_build_info{job=~"$job"}, instance)')))
    for title, rows in page.rows:
        made = made.with_row(dashboard.Row(title))
        for row in rows:
            made = made.with_panel(panel(row))
    return json.dumps(made.build(), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for page in panels.PAGES:
        (folder / f"{page.name}.json").write_text(build(page))


if __name__ == "__main__":
    main()
