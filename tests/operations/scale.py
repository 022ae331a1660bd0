"""Each service goes from two replicas to one, to three and back to two under load: no request fails, no answer is cut, and the third
replica does its part."""
import copy

from operation import CALLS, books_are_right, check, load, none_failed, record, start

SCALED = ["auth", "billing", "catalog", "ratelimit", "gateway", "router"]
# Metrics that show that a replica works.
WORK = {"gateway": "tollgate_http_requests_total", "router": "tollgate_router_engine_requests_total"}


def with_thirds(project):
    """Adds one replica of each service, under the shared name and with its own volume."""
    for name in SCALED:
        third = copy.deepcopy(project["services"][f"{name}-2"])
        third["volumes"] = [one.replace(f"{name}-2:", f"{name}-3:") for one in third.get("volumes", [])]
        project["services"][f"{name}-3"] = third
    return [f"{name}-3" for name in SCALED]


cluster = start(with_thirds)
calls = load(cluster)
calls.more(CALLS)
there = cluster.machine.containers
for name in SCALED:
    cluster.wait(f"all replicas are used before {name} is scaled", cluster.all_used)
    for replica in ("2",):
        check(there[f"{name}-{replica}"].stop() == (0, True), f"{name}-{replica} did not stop in its time")
    calls.more(CALLS)
    for replica in ("2", "3"):
        there[f"{name}-{replica}"].start()
    cluster.machine.wait_healthy([f"{name}-2", f"{name}-3"], 120)
    cluster.wait(f"all replicas of {name} are used", cluster.all_used)
    if name in WORK:
        def works():
            lines = cluster.get(f"{name}-3", "inside", 9464, "/metrics").split("\n")
            return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(WORK[name] + "{"))
        cluster.wait(f"{name}-3 does its part", works)
    calls.more(CALLS)
    check(there[f"{name}-3"].stop() == (0, True), f"{name}-3 did not stop in its time")
calls.more(CALLS)
calls.end()
none_failed(calls, "scaling")
books_are_right(cluster, calls)
record("scale", calls, services=len(SCALED))
