"""Cost of a ledger on Citus, from the measurements of ./dev bench citus (citus.json): CPU time of each part per batch and per
operation, as straight lines through two measured loads, and what follows for other loads and other numbers of workers."""
import json
import math
import pathlib
import statistics

HERE = pathlib.Path(__file__).resolve().parent
LEDGER_SHARDS = 1024
# Costs in the measured row: of a batch of one operation, and of a batch of many.
SINGLE, LARGE = "spread", "hot full"
PARTS = ("billing", "coordinator", "workers")
# Workers of the rows that the lines go through; the others check them. One workspace is on one worker, whatever their number, so
# that all rows measure the same thing.
FITTED = {SINGLE: ("1", "2"), LARGE: ("1", "2", "3", "4")}


class Rows:
    """The medians of ./dev bench citus --medians, by number of workers ("0": one PostgreSQL)."""

    def __init__(self, path=HERE / "citus.json"):
        found = json.loads(path.read_text(encoding="utf-8"))
        self.run, self.rows = found["run"], found["medians"]

    def part(self, workers, load, part):
        """CPU µs per pair; workers: all together."""
        billing, first, *others = self.rows[workers][load]["cpu_us"]
        return {"billing": billing, "coordinator": first, "workers": sum(others)}[part]

    def operations(self, workers, load):
        return 1 / self.rows[workers][load]["batches_per_operation"]

    def rest(self, part):
        """Processors of a server without any load."""
        rests = [self.rows[workers]["idle"]["ms_per_s"] for workers in FITTED[SINGLE]]
        return sum({"billing": rest[0], "coordinator": rest[1], "workers": sum(rest[2:])}[part] for rest in rests) / len(rests) / 1000

    def bytes_of_pair(self):
        """Growth of the database, without its log."""
        return self.rows["0"]["full"]["bytes"]


def costs(rows, part, points=None):
    """µs of a batch and of an operation. points: two loads, and the rows whose median counts."""
    (single, one), (large, many) = (
        (statistics.median(rows.part(workers, load, part) for workers in counts), statistics.median(rows.operations(workers, load) for workers in counts))
        for load, counts in (points or FITTED).items())
    batch = (single - large) / (2 / one - 2 / many)
    return batch, max(0.0, (large - 2 * batch / many) / 2)


def postgres_costs(rows):
    """Cost on one server: its batches take many workspaces."""
    return costs(rows, "coordinator", {"spread": ("0",), "full": ("0",)})


def pair_us(cost, operations):
    """CPU of a pair, which is two operations, in batches of this size."""
    return 2 * cost[1] + 2 * cost[0] / operations


def batch_operations(figures, writes):
    """Operations of one ledger shard that arrive while one may wait."""
    return max(1.0, writes * figures.batch_wait_ms / 1000 / LEDGER_SHARDS)


def needs(figures, rows, pairs, writes):
    """Processors that each part uses, by part, and operations per batch."""
    operations = batch_operations(figures, writes)
    used = {part: writes / 2 * pair_us(costs(rows, part), operations) / 1e6 + rows.rest(part) for part in PARTS}
    return used, operations


def limit(figures, rows):
    """Pairs per second at which the coordinator fills the largest server."""
    low, high = 0.0, 1e9
    for _ in range(100):
        middle = (low + high) / 2
        used, _ = needs(figures, rows, middle, 2 * middle)
        low, high = (middle, high) if used["coordinator"] / figures.plan_share <= figures.server_cores else (low, middle)
    return low


def workers(figures, cores):
    return max(figures.citus_workers, math.ceil(cores / figures.plan_share / figures.server_cores))


def number(us):
    return f"{us:,.0f}"


def apart(measured, modelled):
    return f"{100 * (modelled / measured - 1):+.0f} %"


def check_rows(rows):
    """Measured and calculated values, of the rows that define the lines and of the others."""
    names = {"spread": "1,000 workspaces, steady", "full": "1,000 workspaces, full", "hot": "one workspace, steady",
             "hot full": "one workspace, full"}
    found = []
    for load, name in names.items():
        for count in ("1", "2", "3", "4"):
            operations = rows.operations(count, load)
            measured = rows.part(count, load, "coordinator")
            modelled = pair_us(costs(rows, "coordinator"), operations)
            each = rows.rows[count][load]["cpu_us"][2:]
            # One workspace is on one worker, whatever their number.
            spread = load in ("spread", "full")
            busiest = sum(each) / len(each) if spread else max(each)
            calculated = pair_us(costs(rows, "workers"), operations) / (int(count) if spread else 1)
            fitted = count in FITTED.get(load, ())
            found.append([name, count, f"{operations:.1f}", number(measured), number(modelled), apart(measured, modelled),
                          number(busiest), number(calculated), apart(busiest, calculated), "fitted" if fitted else "predicted"])
    return ["load", "workers", "operations per batch", "coordinator, µs per pair: measured", "calculated", "off by",
            "a worker, µs per pair: measured", "calculated", "off by", ""], found


def measured_rows(rows):
    names = {"spread": "1,000 workspaces, 50 pairs/s", "full": "1,000 workspaces, full", "hot": "one workspace, 50 pairs/s",
             "hot full": "one workspace, full"}
    found = []
    for load, name in names.items():
        for count, row in rows.rows.items():
            one = row[load]
            billing, first, *others = one["cpu_us"]
            found.append([name, "PostgreSQL" if count == "0" else f"Citus, {count}", number(one["rate"]), f"{rows.operations(count, load):.1f}",
                          number(billing), number(first), " ".join(map(number, others)) or "-", number(sum(one["cpu_us"])),
                          "{:.0f} / {:.0f}".format(*one["authorize_ms"]), "{:.0f} / {:.0f}".format(*one["settle_ms"])])
    return ["load", "ledger on, workers", "pairs/s", "operations per batch", "CPU µs per pair: billing's part", "coordinator or PostgreSQL",
            "each worker", "all", "authorize p50 / p99, ms", "settle p50 / p99, ms"], found
