"""A router loses its disk while billing is unreachable for it: the ledger charges what the lost settlements' last heartbeats said, no hold
stays open, the ledger verifies, and the router works on with an empty disk."""
import os
import shutil

from operation import CALLS, check, load, record, start

cluster = start()
there = cluster.machine.containers
calls = load(cluster)
calls.more(CALLS)
# Answers run at the router when its machine is lost with its disk.
router = there["router-1"]
router.kill()
volume = f"{cluster.folder}/volumes/router-1"
lost = sorted(os.listdir(volume))
check("outbox" in " ".join(lost), f"no outbox was on the disk: {lost}")
for one in os.scandir(volume):
    shutil.rmtree(one.path) if one.is_dir() else os.unlink(one.path)
calls.more(CALLS)
router.start()
cluster.machine.wait_healthy(["router-1"], 120)
calls.more(CALLS)
calls.end()
failed = calls.failed()
check(all(one["begun"] and one["streamed"] for one in failed), f"more than begun answers were lost: {failed}")
cluster.wait("no hold is open", lambda: '"open_holds": 0' in cluster.tollgate("--json", "balance", "demo")
             or '"open_holds":0' in cluster.tollgate("--json", "balance", "demo"), 180)
cluster.tollgate("verify-ledger", timeout=300)
whole = sum(one["whole"] for one in calls.calls)
check(whole <= cluster.requests() <= whole + len(failed), f"{whole} whole and {len(failed)} cut answers, {cluster.requests()} charged")
record("router_disk", calls, charged=cluster.requests())
