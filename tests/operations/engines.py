"""Engines behind one name come and go under load, as pods behind a headless service (each_address in the catalog): a new one gets requests
by itself, one that leaves the name gets no more and its answers end. No request fails, no answer is cut."""
import copy
import re

from operation import CALLS, Catalog, books_are_right, check, load, metric, none_failed, record, start

HOST = "engines"
ROUTERS = ("router-1", "router-2")
catalog = Catalog(re.sub(r"(?s)    engines:\n.*", f"""    engines:
      - id: sim
        kind: vllm
        base_url: http://{HOST}:8000
        each_address: true
        max_concurrency: 64
""", Catalog.demo()))


def behind_one_name(project):
    """Two engines, and a third one that is not started yet."""
    catalog.mount(project)
    services = project["services"]
    services["engine-sim-3"] = copy.deepcopy(services["engine-sim-2"])
    for number in (1, 2, 3):
        services[f"engine-sim-{number}"]["networks"] = {"engines": {"aliases": [HOST]}}
    return ["engine-sim-3"]


def of_engine(family, number):
    """Metrics of both routers."""
    engine = f"sim@{there[f'engine-sim-{number}'].addresses['engines']}"
    return [metric(cluster, router, f'{family}{{engine="{engine}"') for router in ROUTERS]


def known(number, by=len(ROUTERS)):
    """Whether this many routers know the engine and therefore its weight."""
    return sum(one > 0 for one in of_engine("tollgate_router_engine_weight", number)) == by


def works(number):
    return all(one > 0 for one in of_engine("tollgate_router_engine_requests_total", number))


cluster = start(behind_one_name)
there = cluster.machine.containers
calls = load(cluster)
calls.more(CALLS)
for number in (1, 2):
    cluster.wait(f"engine {number} has work of both routers", lambda: works(number))
check(known(3, by=0), "an engine that does not run is known")
there["engine-sim-3"].start()
cluster.wait("the new engine has work of both routers", lambda: works(3))
calls.more(CALLS)
there["engine-sim-1"].service["networks"] = {"engines": {}}  # it runs, but is no longer behind the name
cluster.wait("the engine is unknown", lambda: known(1, by=0))
# Its metrics stay until its last answer has ended.
cluster.wait("its answers have ended", lambda: sum(of_engine("tollgate_router_engine_running_requests", 1)) == 0, 120)
check(there["engine-sim-1"].stop()[1], "the engine did not stop in its time")
calls.more(CALLS)
check(known(2) and known(3), "an engine is missing")
calls.end()
none_failed(calls, "engines that come and go")
books_are_right(cluster, calls)
record("engines", calls)
