"""A ledger of the profile "full" is brought to that of the profile "scale", a coordinator of Citus and two workers. Then, under load of a
workspace on each, a worker is lost and comes back, and a third one joins. Calls of workspaces that are on the lost worker are refused until it is back, no other call fails, and none
when a piece of the ledger moves to the new worker. Every whole answer is charged once, and the ledger verifies."""
import json
import os
import sys
import time

from on_ha import lean
from operation import CALLERS, FULL, LONGEST, ROUNDS, Load, books_are_right, check, none_failed, record, start

import compose  # noqa: E402  operation knows where it is

WORKERS = ("citus-1", "citus-2")
# Starts containers like docker compose up, again or for the first time.
STOPPED = ("auth-1", "auth-2", "billing-1", "billing-2", "postgres")
STARTED = ("postgres", *WORKERS, "citus-join", "citus-distribute", "auth-1", "auth-2", "billing-1", "billing-2")
NEW = "citus-3"
TOKENS = LONGEST if FULL else 120
CALLS = CALLERS if FULL else CALLERS // 2
PIECES = 32 if FULL else 8
LOST_SECONDS = 4  # longer than admissions wait
SOON = 5  # seconds after a worker's return in which calls may still be refused, on a busy machine

if not os.path.exists("/usr/share/postgresql/15/extension/citus.control"):
    print("SKIPPED: no Citus", file=sys.stderr)
    sys.exit(77)


def sql(text):
    done = there["postgres"].execute("sh", "/etc/tollgate/citus", "sql", text, timeout=120)
    check(done.returncode == 0, f"{text}: {done.stderr}")
    return done.stdout.strip()


def piece(workspace):
    """The piece of the ledger with the workspace, and its server."""
    number, server = sql(f"""select shardid, nodename from citus_shards where table_name = 'wallet'::regclass and shardid =
        get_shard_id_for_distribution_column('wallet', ('x' || left(encode(sha256('{workspace}'), 'hex'), 4))::bit(16)::int % 1024)""").split("|")
    return number, server


def again(name):
    """Runs a container that ends once more, like docker compose up; returns its output."""
    before = len(there[name].log(1_000_000))
    there[name].start()
    cluster.machine.wait_healthy([name], 60)
    return there[name].log(1_000_000)[before:]


def answers(calls):
    """Waits for a few successful calls in a row."""
    calls.more(CALLS)
    return all(one["whole"] for one in calls.calls[-CALLS:])


def lose(name):
    """Returns when it was lost, and when it was back."""
    at, before = time.monotonic(), len(on_it.failed())
    there[name].kill()
    while len(on_it.failed()) == before:
        on_it.more(1)
    while time.monotonic() < at + LOST_SECONDS:
        of_others.more(1)
    there[name].start()
    cluster.machine.wait_healthy([name], 60)
    back = time.monotonic()
    on_it.more(CALLS)
    return at, back


def refusals():
    """For each loss: seconds from its end to the last refusal, and the number of refused calls. No other call has failed."""
    found = []
    failed = [one for one in on_it.failed() if one["at"] >= warm]
    for at, back in lost:
        those = [one for one in failed if one["at"] + one["seconds"] >= at and one["at"] <= back + SOON and not one["begun"] and
                 one["error"].startswith("503")]
        check(those, "no call was refused while a worker was lost: it had no workspace")
        found.append((round(max(one["at"] + one["seconds"] for one in those) - back, 1), len(those)))
        failed = [one for one in failed if one not in those]
    if failed:
        for name in ("billing-1", "billing-2", "postgres", *WORKERS):
            said = [line for line in there[name].log(1_000_000).split("\n") if any(text in line for text in ("warn", "ERROR", "WARNING", "FATAL"))]
            print(f"{name}:", *said[-20:], sep="\n", flush=True)
    check(not failed, f"calls failed while all servers were there: lost {lost}, {json.dumps(failed[:5], indent=1)}")
    return found


def grow():
    """Adds the third worker as described in docs/operations/citus.md; a full run rebalances all pieces."""
    there[NEW].start()
    cluster.machine.wait_healthy([NEW], 120)
    done = there["postgres"].execute("sh", "/etc/tollgate/citus", "join", NEW)
    check(done.returncode == 0 and f"{NEW}: may have pieces" in done.stdout, done.stdout + done.stderr)
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
    return round(took, 1)


def as_full(project):
    """The PostgreSQL of the profile "full", without workers."""
    services = project["services"]
    command = services["citus-distribute"]["command"]
    command[command.index("32")] = str(PIECES)
    coordinator.update(services["postgres"])
    usual = compose.load("full")["services"]["postgres"]
    services["postgres"] = {**coordinator, "image": usual["image"], "command": usual["command"]}
    for name in ("billing-1", "billing-2"):
        services[name]["depends_on"] = {other: one for other, one in services[name]["depends_on"].items() if not other.startswith("citus-")}
    return [*WORKERS, NEW, "citus-join", "citus-distribute", *lean(project)]


def become_scale():
    """With docker-compose.scale.yml, docs/operations/compose.md."""
    for name in STOPPED:
        check(there[name].stop() == (0, True), f"{name} did not stop in its time")
    there["postgres"].become(coordinator)
    for name in STARTED:
        before = {*there[name].service.get("depends_on", {}), *(["citus-distribute"] if name.startswith("billing-") else [])}
        cluster.machine.wait_healthy([other for other in STARTED if other in before], 120)
        there[name].start()
    cluster.machine.wait_healthy(STARTED, 120)


began = time.monotonic()
coordinator = {}
cluster = start(as_full, profile="scale,citus-3")
there = cluster.machine.containers
up = time.monotonic() - began
calls = Load(cluster, CALLERS // 2, 10)
calls.more(CALLS)
calls.end()
none_failed(calls, "calls of the profile full")
began_distribution = time.monotonic()
become_scale()
distributed = time.monotonic() - began_distribution
books_are_right(cluster, calls)
earlier = calls.calls
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
key = cluster.workspace(other)
on_it, of_others = Load(cluster, CALLERS // 2, TOKENS), Load(cluster, CALLERS // 2, TOKENS, key=key)
# Sessions of billing connect to workers at their first calls, which on a machine with much other work takes longer than admissions wait.
for calls in (on_it, of_others):
    cluster.wait("calls are answered", lambda: answers(calls), 60)
warm = time.monotonic()
lost = [lose(home) for _ in range(ROUNDS)]
moved = grow()
for calls in (on_it, of_others):
    calls.end()
on_it.calls = earlier + on_it.calls
for calls, workspace in ((on_it, "demo"), (of_others, other)):
    books_are_right(cluster, calls, workspace)
none_failed(of_others, "calls of workspaces that were on no lost worker", allowed=lambda one: one["at"] < warm)
refused = refusals()
record("citus_scale", on_it, calls_of_others=len(of_others.calls), up_s=round(up), distributed_s=round(distributed), refused=[one[1] for one in refused],
       last_refusal_after_return_s=[one[0] for one in refused], moved_s=moved, script_s=round(time.monotonic() - began))
