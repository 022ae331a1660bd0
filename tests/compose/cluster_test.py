"""Runs the profile "full" of docker-compose.yml: a chat of the official client through the load balancer's TLS, one replica of
each service killed and stopped under load, failures counted."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import compose  # noqa: E402
from cluster import CALLERS, NAME, Cluster, Load  # noqa: E402

# Each fault has calls before, during and after it.
CALLS = 8


class ClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(PROGRAMS, WEB, PACKAGES)
        cls.machine = cls.cluster.machine

    def get(self, *place):
        return json.loads(self.cluster.get(*place))

    def test_1_a_chat_of_the_official_client_through_tls(self):
        load = Load(self.cluster)
        load.more(2 * CALLERS)
        load.end()
        self.assertEqual(load.failed(), [])
        for streamed in (True, False):
            self.assertTrue([one for one in load.calls if one["streamed"] == streamed and one["output"]])
        self.assertEqual(self.cluster.requests(), len(load.calls))

    def test_2_no_killed_replica_is_noticed_but_by_answers_that_it_had_begun(self):
        """The names are those of the compose file. Answers that had begun at a killed gateway, router or engine are lost."""
        begun = ("gateway", "inference-router", "engine-sim")
        for name in [one for one in self.machine.project["services"] if one.endswith("-2")] + ["redis"]:
            with self.subTest(name):
                container = self.machine.containers[name]
                self.cluster.wait("all replicas are used", self.cluster.all_used)
                load = Load(self.cluster)
                load.more(CALLS)
                container.kill()
                load.more(2 * CALLS)
                container.start()
                self.machine.wait_healthy([name], 120)
                load.more(CALLS)
                load.end()
                lost = [one for one in load.failed() if one["streamed"] and self.had_begun(one, name)] if compose.component(name) in begun else []
                self.assertEqual([one for one in load.failed() if one not in lost], [], name)
                self.assertLessEqual(len(lost), CALLERS)
                print(f"COMPOSE kill {name}: calls={len(load.calls)} lost_begun={len(lost)} failed=0", file=sys.stderr)

    @staticmethod
    def had_begun(call, name):
        """The load balancer may have received the head of a killed gateway's answer, and then does not retry, although the caller has received nothing."""
        return call["begun"] or (compose.component(name) == "gateway" and call["error"].startswith("APIConnectionError"))

    def test_3_no_stop_of_a_replica_is_noticed(self):
        for name in [one for one in self.machine.project["services"] if one.endswith("-1") and not one.startswith("engine-")]:
            with self.subTest(name):
                container = self.machine.containers[name]
                self.cluster.wait("all replicas are used", self.cluster.all_used)
                load = Load(self.cluster)
                load.more(CALLS)
                self.assertEqual(container.stop(), (0, True), container.log())
                load.more(CALLS)
                container.start()
                self.machine.wait_healthy([name], 120)
                load.more(CALLS)
                load.end()
                self.assertEqual(load.failed(), [], name)
                print(f"COMPOSE stop {name}: calls={len(load.calls)} failed=0", file=sys.stderr)

    def test_4_prometheus_reads_everything_and_has_its_alertmanager(self):
        def unread():
            targets = self.get("prometheus", "monitoring", 9090, "/api/v1/targets")["data"]["activeTargets"]
            absent = () if "otel-collector" in self.machine.containers else ("otel-collector",)
            return [(one["scrapeUrl"], one["lastError"]) for one in targets
                    if one["health"] != "up" and one["labels"]["job"] not in absent]
        self.cluster.wait("every target is read", lambda: unread() == [])
        self.cluster.wait("an Alertmanager", lambda: len(self.get("prometheus", "monitoring", 9090, "/api/v1/alertmanagers")["data"]["activeAlertmanagers"]) == 1)
        self.assertEqual(self.get("alertmanager", "monitoring", 9093, "/api/v2/status")["cluster"]["status"], "disabled")

    def test_5_plain_text_is_refused(self):
        """TLS between processes, at the databases, and at gateways; networks cannot reach each other."""
        there = self.machine.containers
        for caller, callee, network, port, reached in (
                ("gateway-1", "auth-1", "inside", 7000, True), ("engine-sim-1", "router-1", "engines", 9464, True),
                ("engine-sim-1", "auth-1", "inside", 7000, False), ("engine-sim-1", "postgres", "data", 5432, False),
                ("gateway-1", "postgres", "data", 5432, False), ("gateway-1", "engine-sim-1", "engines", 8000, False),
                ("load-balancer", "billing-1", "inside", 7001, False), ("load-balancer", "gateway-1", "edge", 8080, True)):
            done = there[caller].execute("bash", "-c", f"timeout 3 bash -c 'exec 3<>/dev/tcp/{there[callee].addresses[network]}/{port}'")
            self.assertEqual(done.returncode == 0, reached, (caller, callee, port))
        sql = ["env", f"PGPASSWORD={open(self.cluster.secrets + '/postgres_password', encoding='utf-8').read()}", "psql", "-h", "postgres",
               "-U", "tollgate", "-d", "billing", "-Atc", "select 1"]
        for mode, code in (("disable", 2), ("require", 0)):
            done = there["auth-1"].execute("env", f"PGSSLMODE={mode}", *sql)
            self.assertEqual(done.returncode, code, done.stderr)
        redis = there["ratelimit-1"].execute("timeout", "5", "redis-cli", "-h", "redis", "ping")
        self.assertNotIn("PONG", redis.stdout)
        # Without a certificate no connection lasts; with one it does.
        given = ["-cert", "/run/tls/certificate.pem", "-key", "/run/tls/private_key.pem"]
        for host, port in (("auth", 7000), ("billing", 7001), ("router-1", 7000)):
            for certificate in ([], given):
                done = there["gateway-1"].execute(
                    "bash", "-c", 'sleep 2 | openssl s_client -alpn h2 -tls1_3 -CAfile /run/tls/authority.pem -verify_return_error -quiet -no_ign_eof "$@"',
                    "_", "-connect", f"{host}:{port}", *certificate)
                self.assertEqual("error:" in done.stderr, not certificate, f"{host}: {done.stderr}")

    def test_6_the_dashboard_answers_behind_the_load_balancer(self):
        done = subprocess.run(["curl", "-sS", "--cacert", f"{self.cluster.secrets}/tls/authority.pem", f"https://{NAME}:8444/"],
                              capture_output=True, text=True, errors="replace", check=False)
        self.assertIn("<!doctype html", done.stdout.lower(), done.stderr)

    def test_7_the_books_are_right(self):
        self.cluster.tollgate("verify-ledger", timeout=120)


if __name__ == "__main__":
    PROGRAMS, WEB, PACKAGES = sys.argv[1:4]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
