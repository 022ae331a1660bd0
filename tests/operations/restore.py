"""The database is lost and restored from pg_basebackup and archived WAL to a point in time, under load. Callers get errors only while it is
unreachable; afterwards the cluster works without a restart, the ledger verifies, and all charges until that time are there."""
import json
import shutil
import time

from operation import CALLS, check, load, on_postgres, query, record, start


def with_archive(project):
    shell = project["services"]["postgres"]["command"]
    check("archive_mode=off" in shell[2], "the compose file does not say archive_mode")
    shell[2] = shell[2].replace("archive_mode=off", "archive_mode=on")
    return []


def sql(text):
    return query(cluster, text)


cluster = start(with_archive)
postgres = cluster.machine.containers["postgres"]
on_postgres(cluster, "pg_basebackup", "-h", "127.0.0.1", "-U", "tollgate", "-D", "/archive/base", "-X", "none", "-c", "fast")
calls = load(cluster)
calls.more(CALLS)
until = sql("select clock_timestamp()")
charged = cluster.requests()
calls.more(CALLS)
cluster.tollgate("workspace", "create", "Late", "--id", "late")
sql("select pg_switch_wal()")
cluster.wait("the WAL is archived", lambda: sql("select last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 16777216) from pg_stat_archiver") == "t", 60)

postgres.kill()
lost = time.monotonic()
data = f"{cluster.folder}/volumes/postgres"
shutil.rmtree(data)
shutil.move(f"{cluster.folder}/volumes/archive/base", data)
with open(f"{data}/postgresql.auto.conf", "a", encoding="utf-8") as file:
    file.write(f"restore_command = 'cp /archive/%f %p'\nrecovery_target_time = '{until}'\nrecovery_target_action = promote\n")
open(f"{data}/recovery.signal", "w", encoding="utf-8").close()
postgres.start()
cluster.machine.wait_healthy(["postgres"], 120)
cluster.wait("the recovery ends", lambda: sql("select pg_is_in_recovery()") == "f", 120)
back = time.monotonic()
cluster.machine.wait_healthy([name for name in cluster.machine.containers if name.startswith(("billing-", "auth-"))], 120)


def answers():
    """Waits for ten successful calls in a row."""
    calls.more(10)
    return all(one["whole"] for one in calls.calls[-10:])


cluster.wait("calls are answered", answers, 120)
served = time.monotonic()
calls.more(CALLS)
calls.end()
# Calls that began earlier may have waited for the database.
failed = [one for one in calls.failed() if one["at"] > served]
check(not failed, f"calls failed after the restore: {failed[:3]}")
there = [one["workspace_id"] for one in json.loads(cluster.tollgate("--json", "workspace", "list"))["workspaces"]]
check("demo" in there and "late" not in there, f"after the restore these workspaces are there: {there}")
check(cluster.requests() >= charged, f"{charged} requests were charged at the point in time, {cluster.requests()} after the restore")
cluster.tollgate("verify-ledger", timeout=300)
letters = len(json.loads(cluster.tollgate("--json", "deadletter", "list")).get("dead_letters", []))
record("restore", calls, lost_s=round(back - lost), served_again_s=round(served - lost), dead_letters=letters)
