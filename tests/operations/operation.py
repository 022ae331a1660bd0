"""Shared by the scripts of this folder: a cluster of docker-compose.yml, its catalog, callers whose failures are counted, a line for the record.

    tests/operations/run PROGRAMS WEB PACKAGES SCRIPT

TOLLGATE_OPERATIONS=full makes answers of a minute and more rounds; without it they are short."""
import atexit
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "compose"))

from cluster import NAME, Cluster, Load  # noqa: E402, F401
from engine import environment  # noqa: E402, F401
from machine import run  # noqa: E402

FULL = os.environ.get("TOLLGATE_OPERATIONS") == "full"
# The longest answers: 60 tokens a second.
LONGEST = 3600 if FULL else 600
ROUNDS = 3 if FULL else 1
CALLERS = 12 if FULL else 8
# Number of answers that must end before and after each step.
CALLS = 2 * CALLERS


CLUSTERS = []


def start(change=lambda project: [], before_up=lambda machine: None, profile="full"):
    CLUSTERS.append(Cluster(*sys.argv[1:4], change, before_up, profile))
    return CLUSTERS[-1]


DEMO_CATALOG = "./deploy/config/catalog.demo.yaml"


class Catalog:
    """A catalog in place of the demonstration's, in one file that is mounted alone, so it keeps its inode."""

    def __init__(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
            self.path = file.name
        os.chmod(self.path, 0o644)
        atexit.register(os.unlink, self.path)
        self.write(text)

    @staticmethod
    def demo():
        with open(os.path.join(HERE, "../..", DEMO_CATALOG), encoding="utf-8") as file:
            return file.read()

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)

    def mount(self, project):
        for name in ("catalog-1", "catalog-2"):
            service = project["services"][name]
            service["volumes"] = [one.replace(DEMO_CATALOG, self.path) for one in service["volumes"]]
            check(any(one.startswith(self.path) for one in service["volumes"]), f"{name} has another catalog")


def load(cluster, **more):
    return Load(cluster, CALLERS, LONGEST, **more)


def metric(cluster, name, family):
    """The sum of a process's series with this prefix: a name, or a name with its first labels."""
    lines = cluster.get(name, "inside", 9464, "/metrics").split("\n")
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(family) and line[len(family)] in "{,} ")


def secret(cluster, name):
    with open(f"{cluster.secrets}/{name}", encoding="utf-8") as file:
        return file.read().strip()


def on_postgres(cluster, *command):
    """Output of a command in the database's container, which may connect to the database."""
    done = cluster.machine.containers["postgres"].execute("env", f"PGPASSWORD={secret(cluster, 'postgres_password')}", "PGSSLMODE=require",
                                                          *command, timeout=120)
    check(done.returncode == 0, f"{command}: {done.stderr}")
    return done.stdout.strip()


def query(cluster, text):
    return on_postgres(cluster, "psql", "-h", "127.0.0.1", "-U", "tollgate", "-d", "billing", "-Atc", text)


def check(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")


def cut_from_billing(cluster, router):
    """Drops everything that it sends to billing, without a reset, like a lost network."""
    billing = ", ".join(one.addresses["inside"] for one in cluster.machine.of("billing"))
    for command in ("add table inet cut", "add chain inet cut out { type filter hook output priority 0; }",
                    f"add rule inet cut out ip daddr {{ {billing} }} drop"):
        run("ip", "netns", "exec", router.name, "nft", command)


def join_billing(router):
    run("ip", "netns", "exec", router.name, "nft", "delete table inet cut")


# Log lines of gateways and routers that refuse a request, end its answer, or lose each other.
SAID = ('"request failed"', '"stream failed"', "could not be moved", '"level":"warn"', '"level":"error"')


def none_failed(calls, what, allowed=lambda call: False):
    """No call failed, except those that this operation may end."""
    failed = [one for one in calls.failed() if not allowed(one)]
    if failed:
        for process in CLUSTERS[-1].machine.of("gateway") + CLUSTERS[-1].machine.of("inference-router"):
            said = [line for line in process.log(1_000_000).split("\n") if any(text in line for text in SAID)]
            print(f"{process.name}:", *said[-20:], sep="\n", flush=True)
    check(not failed, f"{what}: {json.dumps(failed[:5], indent=1)}")


def books_are_right(cluster, calls, workspace="demo"):
    """The ledger verifies, and each whole answer was charged once."""
    cluster.tollgate("verify-ledger", timeout=300)
    whole = sum(one["whole"] for one in calls.calls)
    cluster.wait("every answer is charged", lambda: cluster.requests(workspace) >= whole, 60)
    check(cluster.requests(workspace) == whole, f"{whole} whole answers, {cluster.requests(workspace)} charged")


def record(name, calls, **more):
    longest = max((one["seconds"] for one in calls.calls), default=0)
    failed = sum(not one["whole"] for one in calls.calls)
    facts = {"calls": len(calls.calls), "failed": failed, "longest_s": round(longest), **more}
    print(f"OPERATION {name} " + " ".join(f"{key}={value}" for key, value in facts.items()), flush=True)
