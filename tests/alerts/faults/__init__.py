"""The faults that fire alerts, for prove_alerts.py, by subject."""
from faults import citus, databases, edge, engines, keys, leases, ledger, limits, money, processes, router

MIB = 1 << 20
FLAGS = ("--gateway", "max_connections: 200", "--gateway", f"memory_budget_bytes: {48 * MIB}",
         "--router", "max_body_bytes: 300000", "--router", "ledger_wait_seconds: 3", "--ratelimits", "2", *money.FLAGS)
# The order matters: some faults change what later ones need.
FAULTS = (*limits.FAULTS, *engines.FAULTS, *edge.FAULTS, *keys.FAULTS, *processes.FAULTS, *router.FAULTS, *leases.FAULTS,
          *citus.FAULTS, *databases.FAULTS, *money.FAULTS, *ledger.FAULTS)
