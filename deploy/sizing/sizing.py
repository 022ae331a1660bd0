#!/usr/bin/env python3
"""Calculates the processors, memory and database writes of a load.

  deploy/sizing/sizing.py --streams 1000 --tokens-per-second 50 --tokens-per-answer 300
  deploy/sizing/sizing.py --requests-per-second 500 --prompt-bytes 8000 --shape all-in-one --json
  deploy/sizing/sizing.py --figures            # its input figures, and the source of each
  deploy/sizing/sizing.py --write | --check    # the tables of docs/sizing.md

Arithmetic with the figures of figures.json: measured ones, each quoted from docs/performance.md, and assumed ones; and with citus.json,
which ./dev bench citus --medians deploy/sizing/citus.json writes. The ratios
hold on other machines; the absolute figures are those of one small virtual machine: measure yours with ./dev bench.
"""
import argparse
import dataclasses
import json
import math
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import citus  # noqa: E402

PAGE = HERE.parents[1] / "docs/sizing.md"
KIB, MIB, GIB = 1024, 1024**2, 1024**3
DATABASES = ("sqlite", "postgres", "citus")


class Figures:
    """The figures by name: figures.postgres_pairs."""

    def __init__(self, path=HERE / "figures.json"):
        self.tables = json.loads(path.read_text(encoding="utf-8"))
        for table in self.tables.values():
            for name, figure in table.items():
                setattr(self, name, figure["value"])
        self.citus = citus.Rows()


@dataclasses.dataclass
class Load:
    """The load by callers. Rates are per second."""
    requests: float = 0        # not streamed
    streams: int = 0           # that run at a time
    stream_tokens: float = 50  # of one stream
    answer_tokens: int = 300   # of an answer, streamed or not
    prompt_bytes: int = 2000
    keys: int = 0              # live virtual keys

    @property
    def streamed_answers(self):
        return self.streams * self.stream_tokens / self.answer_tokens

    @property
    def answers(self):
        """Each is a pair of hold and settlement."""
        return self.requests + self.streamed_answers

    @property
    def tokens(self):
        """Tokens of streams, per second."""
        return self.streams * self.stream_tokens

    @property
    def running(self):
        """At a time. An answer that is not streamed runs as long as a stream of its length."""
        return self.streams + self.requests * self.answer_tokens / self.stream_tokens


@dataclasses.dataclass
class Service:
    name: str
    cores: float        # that the load uses
    planned: float      # with room
    processes: int
    memory: float       # bytes, of all its processes


def prompt_us(size, small, at_100k, at_2m):
    """CPU of a prompt of this size beyond that of a small one: straight lines between the measured sizes."""
    first, second = 100_000, 2_000_000
    slope = (at_2m - at_100k) / (second - first)
    if size <= first:
        return (at_100k - small) * size / first
    return at_100k - small + slope * (size - first)


def whole_us(load, per_64, per_512):
    """CPU of the tokens of an answer that is not streamed, beyond its 64th."""
    return (per_512 - per_64) / 448 * max(0, load.answer_tokens - 64)


def service(figures, name, cores, memory, least):
    planned = cores / figures.plan_share
    processes = max(least, math.ceil(planned / figures.process_cores))
    return Service(name, cores, planned, processes, memory + processes * figures.process_mib * MIB)


def all_in_one(figures, load):
    f = figures
    per_request = f.allinone_request_us + prompt_us(load.prompt_bytes, f.allinone_request_8_us,
                                                    f.allinone_prompt_100k_us, f.allinone_prompt_2m_us)
    cores = (load.answers * per_request + load.tokens * f.allinone_token_us +
             load.requests * whole_us(load, f.allinone_request_us, f.allinone_request_512_us)) / 1e6
    body = (f.allinone_body_2m_kib - f.allinone_stream_kib) * KIB / 2_000_000
    memory = load.running * (f.allinone_stream_kib * KIB + body * load.prompt_bytes) + 2 * load.keys * f.key_bytes
    found = service(f, "all-in-one", cores, memory, 1)
    found.processes, found.memory = 1, memory + f.process_mib * MIB
    return [found]


def cluster(figures, load):
    f = figures
    least = f.redundant
    # What bodies and long answers cost is measured for all processes together: half each for gateway and router.
    shared = (load.answers * prompt_us(load.prompt_bytes, f.cluster_request_8_us, f.cluster_prompt_100k_us, f.cluster_prompt_2m_us) +
              load.requests * whole_us(load, f.cluster_request_us, f.cluster_request_512_us)) / 2
    body = (f.cluster_body_2m_kib - f.cluster_stream_kib) * KIB / 2_000_000
    running = load.running * (f.cluster_stream_kib * KIB + body * load.prompt_bytes) / 2

    def cores(request_us, token_us, more=0.0):
        return (load.answers * request_us + load.tokens * token_us + more) / 1e6

    services = [
        service(f, "gateway", cores(f.gateway_request_us, f.gateway_token_us, shared), running, least),
        service(f, "inference-router", cores(f.router_request_us, f.router_token_us, shared), running, least),
        service(f, "billing", cores(f.billing_request_us, f.billing_token_us), 0, least),
        service(f, "ratelimit", cores(f.ratelimit_request_us, f.ratelimit_token_us), 0, least),
    ]
    services[0].memory += services[0].processes * load.keys * f.key_bytes
    for name in ("auth", "catalog", "dashboard"):
        quiet = service(f, name, f.quiet_cores * f.plan_share, 0, least)
        if name == "auth":
            quiet.memory += quiet.processes * load.keys * f.key_bytes
        services.append(quiet)
    return services


@dataclasses.dataclass
class Database:
    kind: str
    pairs: float        # per second: holds that are settled
    writes: float       # operations per second: holds, extensions, settlements
    planned_rate: float  # pairs per second that one server is planned with
    servers: int
    cores: float        # of all servers, planned; an upper bound for PostgreSQL, 0 for SQLite: it is in the process
    fits: bool
    note: str


def database(figures, load, kind):
    f = figures
    pairs = load.answers
    extensions = max(0, math.ceil(load.answer_tokens / f.slice_tokens) - 1)
    writes = pairs * (2 + extensions)
    if kind == "citus":
        used, operations = citus.needs(f, f.citus, pairs, writes)
        coordinator, workers = used["coordinator"] / f.plan_share, used["workers"] / f.plan_share
        fits = coordinator <= f.server_cores
        note = (f"a coordinator with {cores_text(coordinator)} processors and {citus.workers(f, used['workers'])} workers with "
                f"{cores_text(workers)} together, {operations:.1f} operations per batch")
        return Database(kind, pairs, writes, citus.limit(f, f.citus), 1 + citus.workers(f, used["workers"]), coordinator + workers, fits, note)
    rate = {"sqlite": f.sqlite_pairs, "postgres": f.postgres_pairs}[kind] * f.plan_share
    # An extension is a write like the others.
    fits = writes / 2 <= rate
    if kind == "sqlite":
        return Database(kind, pairs, writes, rate, 1, 0, fits, "in the process of the ledger")
    note = "one server" if fits else f"one server of the measured size takes {rate:,.0f} pairs/s"
    return Database(kind, pairs, writes, rate, 1, postgres_cores(f, writes) / f.plan_share, fits, note)


def postgres_cores(figures, writes):
    """Load of one server; its batches take operations of any workspaces."""
    f = figures
    operations = min(f.batch_limit, max(1.0, writes * f.batch_wait_ms / 1000 / f.connections))
    cost = citus.postgres_costs(f.citus)
    return writes / 2 * citus.pair_us(cost, operations) / 1e6


def network(figures, load, shape):
    """Bytes per second: from clients, to clients, and between gateways and routers."""
    answer = load.requests * load.answer_tokens * figures.text_bytes_per_token
    down = load.tokens * figures.event_bytes + answer
    up = load.answers * load.prompt_bytes
    return {"from clients": up, "to clients": down, "gateway to router and back": 0 if shape == "all-in-one" else up + down,
            "log": load.answers * figures.log_bytes}


def cores_text(cores):
    if 0 < cores < 0.01:
        return "under 0.01"
    return f"{cores:,.2f}" if cores < 10 else f"{cores:,.0f}"


def bytes_text(size):
    for unit, name in ((GIB, "GiB"), (MIB, "MiB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}" if size < 10 * unit else f"{size / unit:,.0f} {name}"
    return f"{size / KIB:,.0f} KiB"


def rate_text(size):
    bits = size * 8
    for unit, name in ((1e9, "Gbit/s"), (1e6, "Mbit/s")):
        if bits >= unit:
            return f"{bits / unit:,.1f} {name}"
    return f"{bits / 1e3:,.0f} kbit/s"


def table(head, rows):
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)])


def services_table(services):
    rows = [[s.name, cores_text(s.cores), cores_text(s.planned), str(s.processes), bytes_text(s.memory)] for s in services]
    if len(services) > 1:
        rows.append(["together", cores_text(sum(s.cores for s in services)), cores_text(sum(s.planned for s in services)),
                     str(sum(s.processes for s in services)), bytes_text(sum(s.memory for s in services))])
    return table(["service", "processors used", "planned", "processes, at least", "memory"], rows)


def report(figures, load, shape, kind):
    services = all_in_one(figures, load) if shape == "all-in-one" else cluster(figures, load)
    base = database(figures, load, kind)
    flows = network(figures, load, shape)
    lines = [services_table(services), "",
             f"database ({kind}): {base.pairs:,.0f} pairs/s, {base.writes:,.0f} writes/s; {base.servers} server(s), "
             f"{cores_text(base.cores)} processors planned: {base.note}"]
    if kind in ("sqlite", "postgres") and not base.fits:
        lines.append("  this is above what one such ledger was measured with: it does not fit")
    if kind == "citus" and not base.fits:
        lines.append(f"  the coordinator does not fit one server: it ends at {base.planned_rate:,.0f} pairs/s")
    lines.append("per million answers: " + ", ".join(f"{name} {usd:.3f} USD" for name, usd in prices(figures, load, services, base).items()))
    lines.append("network: " + ", ".join(f"{name} {rate_text(size)}" for name, size in flows.items()))
    return "\n".join(lines)


def prices(figures, load, services, base):
    return {"services": usd_per_million(figures, sum(s.planned for s in services), load.answers),
            "database": usd_per_million(figures, base.cores, load.answers),
            "disk of the ledger": disk_usd_per_million(figures, figures.citus.bytes_of_pair())}


def as_json(figures, load, shape, kind):
    services = all_in_one(figures, load) if shape == "all-in-one" else cluster(figures, load)
    return json.dumps({"load": dataclasses.asdict(load), "services": [dataclasses.asdict(s) for s in services],
                       "database": dataclasses.asdict(database(figures, load, kind)),
                       "usd_per_million": prices(figures, load, services, database(figures, load, kind)),
                       "network_bytes_per_second": network(figures, load, shape)}, indent=2)


# The tables of docs/sizing.md.

def loads():
    return [("1,000 requests/s of 64 tokens, not streamed", Load(requests=1000, answer_tokens=64)),
            ("1,000 streams of 50 tokens/s, 300 tokens each", Load(streams=1000)),
            ("10,000 such streams", Load(streams=10_000)),
            ("100,000 such streams", Load(streams=100_000))]


def machines_table(figures):
    rows = []
    for name, load in loads():
        one, many = all_in_one(figures, load)[0], cluster(figures, load)
        fits = database(figures, load, "sqlite").fits
        rows.append([name, f"{load.answers:,.0f}",
                     f"{cores_text(one.planned)}, {bytes_text(one.memory)}" if fits else "above one ledger on SQLite",
                     f"{cores_text(sum(s.planned for s in many))}, {bytes_text(sum(s.memory for s in many))}",
                     rate_text(network(figures, load, "cluster")["to clients"])])
    return table(["load", "pairs/s", "all-in-one: processors, memory", "cluster without its database", "to clients"], rows)


def services_of_100k(figures):
    return services_table(cluster(figures, Load(streams=100_000)))


def usd_per_million(figures, cores, rate):
    """Price of the planned processors at this constant rate."""
    return cores * figures.processor_hour_usd / 3600 / rate * 1e6


def disk_usd_per_million(figures, bytes_each):
    return bytes_each * 1e6 / 1e9 * figures.gb_month_usd * figures.keep_months


def processes_text(found):
    return f"{found.processes} with {cores_text(found.planned)}"


def requests_loads():
    return [Load(requests=rate, answer_tokens=64) for rate in (1000, 10_000, 100_000)]


def requests_table(figures):
    rows = []
    for load in requests_loads():
        parts = {s.name: s for s in cluster(figures, load)}
        others = sum(s.planned for name, s in parts.items() if name not in ("gateway", "inference-router", "billing"))
        rows.append([f"{load.answers:,.0f}", processes_text(parts["gateway"]), processes_text(parts["inference-router"]),
                     processes_text(parts["billing"]), cores_text(others), f"{database(figures, load, 'postgres').writes:,.0f}"])
    return table(["requests/s", "gateways, processors", "routers", "billing", "other services, processors", "writes/s of the ledger"], rows)


def ledgers_table(figures):
    rows, f = [], figures
    for load in requests_loads():
        one, many = database(f, load, "postgres"), database(f, load, "citus")
        used, operations = citus.needs(f, f.citus, many.pairs, many.writes)
        installations = math.ceil(many.pairs / many.planned_rate)
        rows.append([f"{load.answers:,.0f}", f"{cores_text(one.cores)}{'' if one.fits else ', above the measured rate'}",
                     f"{operations:.1f}", cores_text(used["billing"] / f.plan_share), cores_text(used["coordinator"] / f.plan_share),
                     f"{citus.workers(f, used['workers'])} with {cores_text(used['workers'] / f.plan_share)}",
                     "nothing" if many.fits else f"the coordinator: {installations} installations"])
    return table(["requests/s", "one PostgreSQL, processors", "Citus: operations per batch", "billing's part", "coordinator",
                  "workers, together", "breaks first"], rows)


def costs_table(figures):
    rows, f = [], figures
    for load in requests_loads():
        services = sum(s.planned for s in cluster(f, load))
        used, _ = citus.needs(f, f.citus, load.answers, database(f, load, "citus").writes)
        money = [usd_per_million(f, cores, load.answers)
                 for cores in (services, database(f, load, "postgres").cores, sum(used.values()) / f.plan_share)]
        money += [disk_usd_per_million(f, f.citus.bytes_of_pair())]
        rows.append([f"{load.answers:,.0f}", *(f"{usd:.3f}" for usd in money)])
    return table(["requests/s", "services, USD", "ledger on one PostgreSQL", "ledger on Citus", "disk of the ledger"], rows)


def citus_measured_table(figures):
    return table(*citus.measured_rows(figures.citus))


def citus_check_table(figures):
    return table(*citus.check_rows(figures.citus))


def citus_costs_table(figures):
    rows = []
    for part in citus.PARTS:
        batch, operation = citus.costs(figures.citus, part)
        rows.append([{"billing": "billing's part", "workers": "workers, together"}.get(part, part), f"{batch:,.0f} µs", f"{operation:,.0f} µs",
                     f"{1000 * figures.citus.rest(part):,.0f} ms/s"])
    batch, operation = citus.postgres_costs(figures.citus)
    rows.append(["one PostgreSQL instead", f"{batch:,.0f} µs", f"{operation:,.0f} µs", "0 ms/s"])
    return table(["part", "each batch", "and each operation in it", "at rest"], rows)


def assumptions_table(figures):
    rows = [[figure["what"], f"{figure['value']:,} {figure['unit']}".strip(), figure["why"]]
            for figure in figures.tables["assumed"].values()]
    return table(["taken as given", "value", "why"], rows)


PARTS = {"machines": machines_table, "services": services_of_100k, "requests": requests_table, "ledgers": ledgers_table,
         "costs": costs_table, "citus measured": citus_measured_table, "citus costs": citus_costs_table,
         "citus check": citus_check_table, "assumptions": assumptions_table}


def fill(page, figures):
    """The page with each table as it is calculated now."""
    for name, make in PARTS.items():
        mark = re.compile(rf"(<!-- sizing\.py: {name} -->\n).*?(<!-- end -->)", re.S)
        if not mark.search(page):
            raise SystemExit(f"docs/sizing.md has no place for the table {name}: <!-- sizing.py: {name} --> … <!-- end -->")
        text = make(figures)
        page = mark.sub(lambda found, text=text: found.group(1) + text + "\n" + found.group(2), page)
    return page


def figures_text(figures):
    lines = []
    for name, figure in figures.tables["measured"].items():
        lines.append(f"{name} = {figure['value']} {figure['unit']}: {figure['what']}; docs/performance.md: {figure['quote']}")
    for name, figure in figures.tables["assumed"].items():
        lines.append(f"{name} = {figure['value']} {figure['unit']}: {figure['what']}; assumed: {figure['why']}")
    return "\n".join(lines)


def at_least(least, kind):
    def parse(text):
        number = kind(text)
        if not math.isfinite(number) or number < least:
            raise argparse.ArgumentTypeError(f"must be {least} or more")
        return number
    parse.__name__ = kind.__name__
    return parse


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests-per-second", type=at_least(0, float), default=0, help="answers that are not streamed")
    parser.add_argument("--streams", type=at_least(0, int), default=0, help="streams that run at a time")
    parser.add_argument("--tokens-per-second", type=at_least(0.1, float), default=50, help="of one stream (50)")
    parser.add_argument("--tokens-per-answer", type=at_least(1, int), default=300, help="of an answer, streamed or not (300)")
    parser.add_argument("--prompt-bytes", type=at_least(0, int), default=2000, help="of a request's body (2000)")
    parser.add_argument("--keys", type=at_least(0, int), default=0, help="live virtual keys")
    parser.add_argument("--shape", choices=("cluster", "all-in-one"), default="cluster")
    parser.add_argument("--database", choices=DATABASES, help="default: postgres, sqlite for the all-in-one")
    for name, what in (("processor-hour-usd", "price of a processor for an hour"), ("gb-month-usd", "of a GB of disk for a month"),
                       ("keep-months", "how long the ledger's rows are kept")):
        parser.add_argument("--" + name, type=at_least(0, float), help=what)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--figures", action="store_true", help="what it calculates with, and where each figure is from")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/sizing.md")
    parser.add_argument("--check", action="store_true", help="exit code 1 when they are not as calculated")
    asked = parser.parse_args(arguments)
    figures = Figures()
    for name in ("processor_hour_usd", "gb_month_usd", "keep_months"):
        if getattr(asked, name) is not None:
            setattr(figures, name, getattr(asked, name))
    if asked.figures:
        print(figures_text(figures))
        return 0
    if asked.write or asked.check:
        page = PAGE.read_text(encoding="utf-8")
        filled = fill(page, figures)
        if asked.write:
            PAGE.write_text(filled, encoding="utf-8")
        elif filled != page:
            print("docs/sizing.md is not what deploy/sizing/sizing.py calculates: run it with --write", file=sys.stderr)
            return 1
        return 0
    if asked.requests_per_second == 0 and asked.streams == 0:
        parser.error("a load is needed: --requests-per-second or --streams")
    load = Load(asked.requests_per_second, asked.streams, asked.tokens_per_second, asked.tokens_per_answer, asked.prompt_bytes, asked.keys)
    kind = asked.database or ("sqlite" if asked.shape == "all-in-one" else "postgres")
    print((as_json if asked.json else report)(figures, load, asked.shape, kind))
    return 0


if __name__ == "__main__":
    sys.exit(main())
