"""A router loses its disk with settlements that billing has not received: it loses contact with billing, ends answers by its outbox, and is
killed. The ledger charges what the last heartbeats reported, no hold stays open, the ledger verifies, the router works on with an empty disk.

What callers may see, and nothing else: a stream that had begun there ends with an error."""
import os
import shutil
import time

from operation import CALLS, check, cut_from_billing, join_billing, load, metric, none_failed, query, record, start

# HoldState (services/billing/domain/types.h)
EXPIRED_CHARGED, EXPIRED_VOID = 4, 5


def holds(state):
    return int(query(cluster, f"SELECT count(*) FROM hold WHERE state = {state}"))


def may_fail(call, killing_at, killed_at):
    """Whether it ran when the router was lost, between the two times, and had begun."""
    return call["begun"] and call["streamed"] and call["at"] <= killed_at and killing_at <= call["at"] + call["seconds"]


cluster = start()
calls = load(cluster)
calls.more(CALLS)
router = cluster.machine.containers["router-1"]
cut_from_billing(cluster, router)
# Answers end there and are complete for their callers: the outbox has their settlements.
cluster.wait("answers end in the outbox", lambda: metric(cluster, router.name, "tollgate_router_outbox_depth") >= 2, 60)
expired = holds(EXPIRED_CHARGED) + holds(EXPIRED_VOID)
killing_at = time.monotonic()
router.kill()
killed_at = time.monotonic()
volume = f"{cluster.folder}/volumes/router-1"
lost = os.path.getsize(f"{volume}/outbox")
for one in os.scandir(volume):
    shutil.rmtree(one.path) if one.is_dir() else os.unlink(one.path)
calls.more(CALLS)
join_billing(router)
router.start()
cluster.machine.wait_healthy(["router-1"], 120)
calls.more(CALLS)
calls.end()
none_failed(calls, "calls that the lost router had not begun", allowed=lambda one: may_fail(one, killing_at, killed_at))
cluster.wait("no hold is open", lambda: query(cluster, "SELECT count(*) FROM hold WHERE state = 1") == "0", 180)
cluster.tollgate("verify-ledger", timeout=300)
whole, failed, charged = len(calls.calls) - len(calls.failed()), len(calls.failed()), cluster.requests()
free, by_heartbeat = holds(EXPIRED_VOID), holds(EXPIRED_CHARGED)
# Settlements that were lost cannot have arrived: their holds have ended by time.
check(free + by_heartbeat > expired, f"an outbox of {lost} bytes was lost, but no hold expired")
# A complete answer is free only if its settlement was lost before a heartbeat had reported output.
check(whole - free <= charged <= whole + failed, f"{whole} whole answers and {failed} cut ones, {charged} charged, {free} free by time-out")
record("router_disk", calls, charged=charged, expired_free=free, expired_charged=by_heartbeat)
