"""Shared by the scripts about the profile "ha": its cluster without unneeded services, and queries to its databases."""
import json
import urllib.parse

from operation import check, environment, secret, start  # noqa: F401

NODES = ("postgres-1", "postgres-2")
REDIS = ("redis-1", "redis-2")
UNUSED = ("dashboard-1", "dashboard-2", "catalog-2", "alertmanager", "otel-collector", "grafana")


def lean(project):
    """Drops services: 31 are too many for a small machine."""
    for name in UNUSED:
        project["services"].pop(name, None)
    for service in project["services"].values():
        service["depends_on"] = {name: one for name, one in service.get("depends_on", {}).items() if name not in UNUSED}
    return []


class Databases:
    def __init__(self):
        self.cluster = start(lean, profile="ha")
        self.there = self.cluster.machine.containers
        self.wait_both()

    def sql(self, node, text, database="postgres"):
        done = self.there[node].execute("psql", "-XAtq", "-U", "postgres", "-d", database, "-c", text)
        return done.stdout.strip() if done.returncode == 0 else ""

    def leader(self):
        """The node that accepts writes; "": none."""
        return next((node for node in NODES if self.there[node].runs() and self.sql(node, "select pg_is_in_recovery()") == "f"), "")

    def standby(self):
        return next(node for node in NODES if node != self.leader())

    def both(self):
        """Whether one node is primary and the other has everything that it has acknowledged."""
        leader = self.leader()
        return leader and self.sql(leader, "select count(*) from pg_stat_replication where sync_state = 'sync'") == "1"

    def wait_both(self):
        self.cluster.wait("a primary and its synchronous standby", self.both, 120)

    def watched(self):
        """Whether Prometheus scrapes Patroni and etcd on each node, and sees the roles of the nodes."""
        def count(query):
            path = f"/api/v1/query?query={urllib.parse.quote(query)}"
            rows = json.loads(self.cluster.get("prometheus", "monitoring", 9090, path))["data"]["result"]
            return int(rows[0]["value"][1]) if rows else 0
        return [count(query) for query in ('sum(up{job="patroni"})', 'sum(up{job="etcd"})', 'sum(patroni_primary)', 'sum(patroni_sync_standby)',
                                           'sum(etcd_server_has_leader)')] == [2, 3, 1, 1, 3]

    def timeline(self, node):
        return int(self.sql(node, "select timeline_id from pg_control_checkpoint()"))

    def switch_over(self):
        old, new = self.leader(), self.standby()
        done = self.there[old].execute("patronictl", "-c", "/tmp/patroni.yml", "switchover", "--force", "--master", old, "--candidate", new)
        check(done.returncode == 0, done.stdout + done.stderr)
        self.cluster.wait(f"{new} leads", lambda: self.leader() == new, 60)
        self.wait_both()

    def redis(self, member, *command):
        done = self.there[member].execute("env", f"REDISCLI_AUTH={secret(self.cluster, 'redis_password')}", "redis-cli", "--tls", "--cacert",
                                          "/run/tls/authority.pem", *command)
        return done.stdout

    def redis_leader(self):
        """The response of a Sentinel without a password."""
        done = self.there["sentinel-3"].execute("redis-cli", "--tls", "--cacert", "/run/tls/authority.pem", "-p", "26379", "sentinel",
                                                "get-master-addr-by-name", "limits")
        return done.stdout.split("\n")[0]
