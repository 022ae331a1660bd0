"""Scaling one service raises its limit: each router runs a number of requests at a time on an engine, so a second router runs as many
more. Callers wait in the routers' queues meanwhile; no request fails."""
import time

from operation import FULL, Catalog, Load, books_are_right, check, metric, none_failed, record, start

CALLERS, AT_A_TIME, ENGINES = 14, 3, 2
CALLS = 6 * CALLERS if FULL else 3 * CALLERS
catalog = Catalog(Catalog.demo().replace("max_concurrency: 64", f"max_concurrency: {AT_A_TIME}"))


def one_router(project):
    catalog.mount(project)
    return ["router-2"]


def measure(routers):
    """Answers of engines per second, and the highest number of concurrent requests."""
    def total(family):
        return sum(metric(cluster, name, family) for name in routers)
    ended, began, most = total("tollgate_router_engine_requests_total"), time.monotonic(), 0
    while total("tollgate_router_engine_requests_total") < ended + CALLS:
        most = max(most, total("tollgate_router_engine_running_requests"))
        check(time.monotonic() < began + 120, "engines do not answer")
        time.sleep(0.2)  # the engines share the two cores
    rate = CALLS / (time.monotonic() - began)
    calls.more(CALLS)
    return rate, most


cluster = start(one_router)
calls = Load(cluster, CALLERS, 120)
with_one, most_of_one = measure(["router-1"])
check(0 < most_of_one <= ENGINES * AT_A_TIME, f"{most_of_one} requests ran on engines that take {ENGINES * AT_A_TIME} of a router")
cluster.machine.containers["router-2"].start()
cluster.machine.wait_healthy(["router-2"], 120)
cluster.wait("both routers are used", cluster.all_used)
with_two, most_of_two = measure(["router-1", "router-2"])
check(most_of_two > ENGINES * AT_A_TIME, f"a second router, and not more than {most_of_two} requests at a time")
calls.end()
none_failed(calls, "a second router")
books_are_right(cluster, calls)
record("capacity", calls, answers_per_s_of_one=f"{with_one:.1f}", answers_per_s_of_two=f"{with_two:.1f}", most_at_a_time_of_one=round(most_of_one),
       most_at_a_time_of_two=round(most_of_two))
