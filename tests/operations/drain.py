"""One machine after the other is drained for maintenance under load, as docs/operations/restarts.md says: its engine by the admin API, then its
gateway, router and the rest, each while it works. It stays off while callers go on, comes back, and works again. No request fails, no
answer is cut. Finally a router that cannot reach billing is drained: it reports what its disk still has, and the ledger gets it afterwards."""
import contextlib
import http.client
import json
import ssl

from operation import (CALLS, NAME, ROUNDS, books_are_right, check, cut_from_billing, join_billing, load, metric, none_failed, record, secret,
                       start)

# First the entry, then the processes with running requests, then the services that they call.
ORDER = ["gateway", "router", "dashboard", "ratelimit", "catalog", "auth", "billing"]
RUNNING = {"gateway": "tollgate_http_requests_in_flight", "router": "tollgate_router_running_requests"}
WORK = {"gateway": "tollgate_http_requests_total", "router": "tollgate_router_engine_requests_total"}
LEFT = "stopped with settlements that the ledger has not acknowledged"

cluster = start()
there = cluster.machine.containers


def admin(method, path, body=None):
    """The admin API, through the load balancer; None: a router has not answered, the call is to be repeated."""
    trust = ssl.create_default_context(cafile=f"{cluster.secrets}/tls/authority.pem")
    with contextlib.closing(http.client.HTTPSConnection(NAME, 8444, context=trust, timeout=30)) as connection:
        connection.request(method, f"/admin/v1/{path}", body=None if body is None else json.dumps(body),
                           headers={"Authorization": f"Bearer {secret(cluster, 'dashboard_token')}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
    check(answer.status in (200, 503), f"{method} {path}: {answer.status} {text}")
    return json.loads(text) if answer.status == 200 else None


def outbox():
    return metric(cluster, "router-1", "tollgate_router_outbox_depth")


def running(engine):
    """The engines of all routers; every router must respond."""
    found = admin("GET", f"engines/{engine}")
    return int(found.get("runningRequests", 0)) if found and not found.get("silentRouters") else None


def change(engine, verb, reason, state):
    def done():
        found = admin("POST", f"engines/{engine}:{verb}", {"reason": reason})
        return found and found["state"] == state
    cluster.wait(f"{engine} is {state}", done)


def stop_while_it_works(name, family):
    """The stop waits for running requests; checks right before it that there are some."""
    cluster.wait(f"{name} has work", lambda: metric(cluster, name, family) > 0)
    check(there[name].stop() == (0, True), f"{name} did not stop in its time: {there[name].log()}")


def drain(number):
    engine = f"sim-{number}"
    change(engine, "drain", "maintenance", "ENGINE_STATE_DRAINED")
    cluster.wait(f"nothing runs on {engine}", lambda: running(engine) == 0, 120)
    check(there[f"engine-sim-{number}"].stop()[1], f"{engine} did not stop in its time")
    for service in ORDER:
        name = f"{service}-{number}"
        cluster.wait(f"all replicas are used before {name} is stopped", cluster.all_used)
        if service in RUNNING:
            stop_while_it_works(name, RUNNING[service])
        else:
            check(there[name].stop() == (0, True), f"{name} did not stop in its time: {there[name].log()}")
    check(LEFT not in there[f"router-{number}"].log(1_000_000), "a drained router left settlements on its disk")


def bring_back(number):
    names = [f"{service}-{number}" for service in reversed(ORDER)] + [f"engine-sim-{number}"]
    for name in names:
        there[name].start()
        cluster.machine.wait_healthy([name], 120)
    change(f"sim-{number}", "resume", "maintenance is over", "ENGINE_STATE_UP")
    cluster.wait("all replicas are used", cluster.all_used)
    for service, family in WORK.items():
        cluster.wait(f"{service}-{number} does its part", lambda: metric(cluster, f"{service}-{number}", family) > 0)
    cluster.wait(f"sim-{number} does its part", lambda: running(f"sim-{number}"))


calls = load(cluster)
calls.more(CALLS)
for _ in range(ROUNDS):
    for number in (1, 2):
        drain(number)
        calls.more(CALLS)
        bring_back(number)
        calls.more(CALLS)
router = there["router-1"]
cut_from_billing(cluster, router)
cluster.wait("answers end in the outbox", outbox, 60)
check(router.stop() == (0, True), f"a router without billing did not stop in its time: {router.log()}")
check(LEFT in router.log(1_000_000), "a router does not say that its disk has settlements")
join_billing(router)
router.start()
cluster.machine.wait_healthy(["router-1"], 120)
cluster.wait("the outbox is delivered", lambda: not outbox(), 60)
calls.more(CALLS)
calls.end()
none_failed(calls, "draining machines")
books_are_right(cluster, calls)
record("drain", calls, machines=2 * ROUNDS)
