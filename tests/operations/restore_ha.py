"""The databases of the profile "ha" are restored to a point in time on all nodes, under load, by deploy/restore-database from a full and an
incremental backup of pgBackRest and the archived WAL; in full, then once more after both nodes have lost their disks. Callers get errors only while there is no primary; afterwards the cluster works without
a restart, both nodes have one new timeline and the same rows, the ledger verifies, and all charges until that time are there."""
import json
import os
import shutil
import subprocess
import time

from on_ha import NODES, Databases, environment
from operation import CALLS, FULL, HERE, check, load, record


def backup(kind):
    done = databases.there[databases.leader()].execute("tollgate-database", "backup", kind, timeout=300)
    check(done.returncode == 0, done.stdout + done.stderr)


def restore(target):
    """Exit code and output of the script."""
    done = subprocess.run([os.path.join(HERE, "../../deploy/restore-database"), target], env=there, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
    print(done.stdout, flush=True)
    return done.returncode, done.stdout


def paid(usd):
    payment = json.loads(cluster.tollgate("--json", "payment", "create", "--workspace", "demo", usd))["payment"]
    cluster.tollgate("payment", "confirm", "--workspace", "demo", payment, "--reference", f"statement {usd}")


def archived():
    return databases.sql(databases.leader(), "select last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 16777216) "
                         "from pg_stat_archiver") == "t"


def lose_both_disks():
    """All earlier charges are there, from the archive alone."""
    databases.sql(databases.leader(), "select pg_switch_wal()")
    cluster.wait("the WAL is archived", archived, 60)
    known = cluster.requests()
    for node in NODES:
        databases.there[node].kill()
        shutil.rmtree(f"{cluster.folder}/volumes/{node}")
    ended, _ = restore("latest")
    check(ended == 0, f"deploy/restore-database ended with {ended} after both disks were lost")
    check(cluster.requests() >= known, f"{known} requests were charged, {cluster.requests()} after both disks were lost")


databases = Databases()
cluster = databases.cluster
there = environment(cluster.machine, cluster.folder)
before_backup = databases.sql(databases.leader(), "select clock_timestamp()")
backup("full")
calls = load(cluster)
calls.more(CALLS)
if FULL:
    databases.switch_over()  # the archive then has two timelines
backup("incr")
paid("7")
calls.more(CALLS)
time.sleep(1.1)  # a backup's end is known to the second
until = databases.sql(databases.leader(), "select clock_timestamp()")
charged = cluster.requests()
timeline = databases.timeline(databases.leader())
calls.more(CALLS)
cluster.tollgate("workspace", "create", "Late", "--id", "late")
paid("9")
databases.sql(databases.leader(), "select pg_switch_wal()")
cluster.wait("the WAL is archived", archived, 60)

# Refused before any change.
for wrong in (before_backup, "2026-11-26 12:00:00", "2999-01-01 00:00:00+00"):
    check(restore(wrong)[0] == 2, f"it restores to {wrong}")
check(databases.both(), "a restore that was refused has changed something")

began = time.monotonic()
code, said = restore(until)
check(code == 0, f"deploy/restore-database ended with {code}")
took = time.monotonic() - began
for line in ("The ledger is consistent", "No differences", "nothing contradicts"):
    check(line in said, f"deploy/restore-database does not say \"{line}\"")
check(databases.both() and databases.leader() == NODES[0], "there is no standby")
timelines = [databases.timeline(node) for node in NODES]
check(timelines[0] == timelines[1] > timeline, f"timelines {timelines}, {timeline} before")


def answers():
    """Waits for ten successful calls in a row."""
    calls.more(10)
    return all(one["whole"] for one in calls.calls[-10:])


cluster.wait("calls are answered", answers, 120)
served = time.monotonic()
calls.more(CALLS)
calls.end()
failed = [one for one in calls.failed() if one["at"] > served]
check(not failed, f"calls failed after the restore: {failed[:3]}")
refused = calls.failed()
out = max(one["at"] + one["seconds"] for one in refused) - min(one["at"] for one in refused)
workspaces = [one["workspace_id"] for one in json.loads(cluster.tollgate("--json", "workspace", "list"))["workspaces"]]
check("demo" in workspaces and "late" not in workspaces, f"after the restore these workspaces are there: {workspaces}")
payments = json.loads(cluster.tollgate("--json", "payment", "list", "--workspace", "demo"))["payments"]
check(len(payments) == 1, f"after the restore these payments are there: {payments}")
check(cluster.requests() >= charged, f"{charged} requests were charged at the point in time, {cluster.requests()} after the restore")
cluster.tollgate("verify-ledger", timeout=300)
databases.wait_both()
for database in ("auth", "billing"):
    tables = "select string_agg(relname, ',' order by relname) from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
    names = databases.sql(NODES[0], tables, database)
    check(names and names == databases.sql(NODES[1], tables, database), f"the nodes have different tables of {database}")
check(databases.there[NODES[0]].execute("sh", "-c", "ls -d /var/lib/postgresql/before-*/PG_VERSION").returncode == 0,
      "what was on the node is gone")
if FULL:
    lose_both_disks()
record("restore_ha", calls, script_s=round(took), refused_for_s=round(out), timeline=timelines[0])
