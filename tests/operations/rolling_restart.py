"""Every process that has a second one is restarted, one after the other, under load: no request fails, no answer is cut."""
from operation import CALLS, ROUNDS, books_are_right, load, none_failed, record, start

cluster = start()
calls = load(cluster)
calls.more(CALLS)
restarts = 0
for _ in range(ROUNDS):
    for name, service in cluster.machine.project["services"].items():
        if not service["image"].startswith("tollgate/") or name == "operator" or name.startswith("engine-"):
            continue
        cluster.wait(f"all replicas are used before {name} is restarted", cluster.all_used)
        cluster.restart(name)
        restarts += 1
calls.more(CALLS)
calls.end()
none_failed(calls, "a rolling restart")
books_are_right(cluster, calls)
record("rolling_restart", calls, restarts=restarts)
