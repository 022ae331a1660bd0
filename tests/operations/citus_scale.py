"""The ledger of the profile "scale", on a coordinator of Citus and two workers: a worker is lost and comes back, and a third one joins, under
load of a workspace on each. Calls of workspaces that are on the lost worker are refused until it is back, no other call fails, and none
when a piece of the ledger moves to the new worker. Every whole answer is charged once, and the ledger verifies."""
import os
import sys
import time

from on_ha import lean
from operation import CALLERS, FULL, ROUNDS, books_are_right, check, load, none_failed, record, start

WORKERS = ("citus-1", "citus-2")
NEW = "citus-3"
CALLS = CALLERS
LOST_SECONDS = 5  # more than admissions wait for

if not os.path.exists("/usr/share/postgresql/15/extension/citus.control"):
    print("SKIPPED: no Citus", file=sys.stderr)
    sys.exit(77)


def sql(text):
    done = there["postgres"].execute("sh", "/etc/tollgate/citus", "sql", text, timeout=120)
    check(done.returncode == 0, f"{text}: {done.stderr}")
    return done.stdout.strip()


def piece(workspace):
    """The piece of the ledger that has the workspace, and its server."""
    number, server = sql(f"""select shardid, nodename from citus_shards where table_name = 'wallet'::regclass and shardid =
        get_shard_id_for_distribution_column('wallet', ('x' || left(encode(sha256('{workspace}'), 'hex'), 4))::bit(16)::int % 1024)""").split("|")
    return number, server


def again(name):
    """A container that ends is run once more, as by docker compose up; what it says."""
    before = len(there[name].log(1_000_000))
    there[name].start()
    cluster.machine.wait_healthy([name], 60)
    return there[name].log(1_000_000)[before:]


def answered(calls):
    """Whether a call that began just now is."""
    begun = time.monotonic()
    while True:
        calls.more(1)
        if calls.calls[-1]["at"] > begun:
            return calls.calls[-1]["whole"]


def lose(name):
    """Seconds from its return to the first answer, and refused calls."""
    before = len(on_it.calls)
    there[name].kill()
    lost = time.monotonic()
    while time.monotonic() < lost + LOST_SECONDS:
        of_others.more(1)
    there[name].start()
    cluster.machine.wait_healthy([name], 60)
    back = time.monotonic()
    cluster.wait("calls are answered", lambda: answered(on_it), 30)
    took = time.monotonic() - back
    on_it.more(CALLS)
    refused = [one for one in on_it.calls[before:] if not one["whole"]]
    check(refused, f"nothing was refused while {name} was lost: it had no workspace")
    wrong = [one for one in refused if one["begun"] or not one["error"].startswith("503") or one["at"] > back + took]
    check(not wrong, f"calls of workspaces on {name} failed otherwise: {wrong[:3]}")
    none_failed(of_others, f"calls of workspaces that are not on {name}")
    return round(took, 1), len(refused)


def grow():
    """The third worker, as docs/operations/citus.md says it; in full, all pieces are rebalanced."""
    there[NEW].start()
    cluster.machine.wait_healthy([NEW], 120)
    done = there["postgres"].execute("sh", "/etc/tollgate/citus", "join", NEW)
    check(done.returncode == 0 and f"{NEW}: may have pieces" in done.stdout, done.stdout + done.stderr)
    before = len(on_it.failed())
    began = time.monotonic()
    if FULL:
        sql("select citus_rebalance_start(shard_transfer_mode => 'force_logical')")
        cluster.wait("the pieces are rebalanced", lambda: sql("select state from citus_rebalance_status() order by job_id desc limit 1") == "finished",
                     300)
    else:
        number, server = piece("demo")
        sql(f"select citus_move_shard_placement({number}, '{server}', 5432, '{NEW}', 5432, 'force_logical')")
        check(piece("demo")[1] == NEW, f"the piece is on {piece('demo')}")
    took = time.monotonic() - began
    on_it.more(CALLS)
    of_others.more(CALLS)
    check(len(on_it.failed()) == before, f"calls failed while pieces moved: {on_it.failed()[before:][:3]}")
    none_failed(of_others, "pieces that move")
    return round(took, 1)


def with_third(project):
    return [NEW, *lean(project)]


began = time.monotonic()
cluster = start(with_third, profile="scale,citus-3")
there = cluster.machine.containers
up = time.monotonic() - began
check("The ledger is distributed" in there["citus-distribute"].log(), "the ledger was not distributed at the start")
for name, says in (("citus-join", "citus-2: may have pieces"), ("citus-distribute", "There is nothing to distribute")):
    said = again(name)
    check(says in said, f"{name} says at its second start: {said}")
check(sql("select count(*) from pg_tables where schemaname = 'public' and tablename <> 'schema_migration' and tablename not in "
          "(select logicalrelid::text from pg_dist_partition) and tablename not in "
          "(select inhrelid::regclass::text from pg_inherits)") == "0", "a table of billing is not distributed")
check(sql("select setting from pg_file_settings where name = 'shared_preload_libraries'") == "citus",
      "PostgreSQL without Citus would start on these files")
check(sql("select string_agg(distinct nodename, ' ' order by nodename) from citus_shards") == " ".join(WORKERS), "a worker has no piece")
home = piece("demo")[1]
other = next(name for name in (f"w{number}" for number in range(100)) if piece(name)[1] != home)
on_it, of_others = load(cluster, CALLERS // 2), load(cluster, CALLERS // 2, key=cluster.workspace(other))
on_it.more(CALLS)
of_others.more(CALLS)
lost = [lose(home) for _ in range(ROUNDS)]
moved = grow()
for calls, workspace in ((on_it, "demo"), (of_others, other)):
    calls.end()
    books_are_right(cluster, calls, workspace)
record("citus_scale", on_it, calls_of_others=len(of_others.calls), up_s=round(up), answered_after_return_s=[one[0] for one in lost],
       refused=[one[1] for one in lost], moved_s=moved, script_s=round(time.monotonic() - began))
