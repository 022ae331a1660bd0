"""The one description of the dashboards: pages, rows, panels, queries. build.py writes them as Grafana's JSON.

Queries name no job and no instance: build.py adds the matchers of the page's variables to each selector.
"""

import panels_edge
import panels_money
import panels_overview
import panels_router
from panel import Page

PAGES = (
    Page("overview", "Overview", "What callers get: requests, errors, times, tokens.", panels_overview.OVERVIEW),
    Page("money", "Money", "Holds, settlements, charges, payments; what the ledger refuses.", panels_money.MONEY),
    Page("limits", "Limits and keys", "Rate limits, virtual keys, changes, the audit log.", panels_overview.LIMITS),
    Page("router", "Router and engines", "Engines, first tokens, answers that ended early.", panels_router.ROUTER),
    Page("edge", "Edge", "Connections, memory and hostile clients of the gateways.", panels_edge.EDGE),
    Page("ledger", "Ledger store", "Commits, database, checkpoints, archive.", panels_money.LEDGER),
    Page("processes", "Processes", "Each process: CPU, memory, files, replicas, certificates.", panels_edge.PROCESSES),
)
