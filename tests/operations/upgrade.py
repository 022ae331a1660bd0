"""Every process of the version before is replaced by this version's, one after the other under load, in the order of docs/operations/upgrade.md;
then every one goes back. No request fails, no answer is cut, whichever versions call each other.

TOLLGATE_BEFORE is a checkout of the version before with its programs in build/release/bin."""
import os

from operation import CALLS, books_are_right, check, load, none_failed, record, start

BEFORE = os.environ["TOLLGATE_BEFORE"]
# The owner of a database first: its new tables and columns exist before another process uses them.
ORDER = ["auth", "billing", "catalog", "ratelimit", "router", "gateway", "dashboard"]


def from_before(machine):
    for container in ours(machine):
        container.programs, container.root = f"{BEFORE}/build/release/bin", BEFORE


def ours(machine):
    return [one for one in machine.containers.values() if one.image.startswith("tollgate/") and one.image != "tollgate/engine-sim"]


def replace(cluster, calls, programs, root, order):
    for service in order:
        for replica in ("1", "2"):
            container = cluster.machine.containers[f"{service}-{replica}"]
            cluster.wait(f"all replicas are used before {container.name} is replaced", cluster.all_used)
            container.programs, container.root = programs, root
            cluster.restart(container.name)
            calls.more(CALLS // 4)  # both versions run


cluster = start(before_up=from_before)
new = cluster.machine.programs
check(BEFORE in " ".join(source for source, _, _ in cluster.machine.containers["gateway-1"].mounts()), "the version before does not run")
calls = load(cluster)
calls.more(CALLS)
replace(cluster, calls, new, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), ORDER)
calls.more(CALLS)
replace(cluster, calls, f"{BEFORE}/build/release/bin", BEFORE, list(reversed(ORDER)))
calls.more(CALLS)
calls.end()
none_failed(calls, "an upgrade and the way back")
books_are_right(cluster, calls)
record("upgrade", calls, services=len(ORDER))
