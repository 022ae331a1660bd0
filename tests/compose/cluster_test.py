"""The profile "full" of docker-compose.yml, run: a chat of the official client through the load balancer's TLS, one replica of
each service killed and stopped under load, failures counted."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import compose  # noqa: E402
from compose import ROOT  # noqa: E402
from facts_test import COLLECTOR  # noqa: E402
from machine import Machine  # noqa: E402

NAME = "api.example.test"
CALLERS = 6
# Each fault has calls before, during and after it.
CALLS = 8


class Load:
    """Callers of the official client."""

    def __init__(self, address, key, authority):
        self.process = subprocess.Popen(
            [f"{PACKAGES}/python/venv/bin/python", f"{HERE}/load.py", f"https://{NAME}:8443/v1", key, str(CALLERS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={"PATH": "/usr/bin:/bin", "SSL_CERT_FILE": authority, "NO_PROXY": "*"})
        self.calls = []

    def more(self, count):
        """Waits until so many calls more have ended."""
        for _ in range(count):
            line = self.process.stdout.readline()
            assert line, "the callers ended"
            self.calls.append(json.loads(line))

    def end(self):
        self.process.stdin.close()
        with self.process.stdout:
            for line in self.process.stdout:
                self.calls.append(json.loads(line))
        assert self.process.wait(200) == 0

    def failed(self):
        return [one for one in self.calls if not one["whole"]]


class ClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tollgate-compose-")
        os.chmod(cls.folder, 0o755)
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        environment = {"TOLLGATE_SECRETS": f"{cls.folder}/secrets", "TOLLGATE_EDGE_NAMES": f"DNS:{NAME}"}
        done = subprocess.run([f"{ROOT}/dev", "secrets"], env={**os.environ, **environment}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        os.chmod(f"{cls.folder}/secrets", 0o755)  # the mode of the mount point does not matter to a container engine
        project = compose.load("full", environment)
        project["services"]["operator"] = compose.load("operator", environment)["services"]["operator"]
        absent = ["grafana/grafana"] + ([] if os.path.exists(COLLECTOR) else ["otel/opentelemetry-collector-contrib"])
        for image in absent:
            print(f"NOT RUN: {image}, which cannot be had here", file=sys.stderr)
        cls.machine = Machine(cls.folder, project, PROGRAMS, WEB, COLLECTOR, absent)
        cls.addClassCleanup(cls.machine.end)
        operator = cls.machine.containers.pop("operator")
        # A container of its own that stays, for commands.
        operator.command = lambda: ["sleep", "infinity"]
        cls.machine.up()
        operator.start()
        cls.machine.containers["operator"] = operator
        cls.operator = operator
        deadline = time.monotonic() + 30
        while operator.execute("tollgate", "--help").returncode != 0:
            assert time.monotonic() < deadline, operator.log()
            time.sleep(0.1)
        with open("/etc/hosts", "a", encoding="utf-8") as file:
            file.write(f"{cls.machine.containers['load-balancer'].addresses['outside']} {NAME}\n")
        for command in (["workspace", "create", "Demo", "--id", "demo"], ["credit", "add", "--workspace", "demo", "50"]):
            cls.tollgate(*command)
        cls.key = json.loads(cls.tollgate("--json", "key", "create", "--workspace", "demo", "--name", "test"))["secret"]  # shown once

    @classmethod
    def tollgate(cls, *arguments):
        done = cls.operator.execute("tollgate", *arguments)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def load(self):
        return Load(NAME, self.key, f"{self.folder}/secrets/tls/authority.pem")

    def get(self, name, network, port, path):
        with urllib.request.urlopen(f"http://{self.machine.containers[name].addresses[network]}:{port}{path}", timeout=30) as answer:
            return json.loads(answer.read())

    def all_used(self):
        """Whether no process has left a replica, and the load balancer has both gateways."""
        for one in self.machine.of("gateway") + self.machine.of("inference-router"):
            with urllib.request.urlopen(f"http://{one.addresses['inside']}:9464/metrics", timeout=30) as answer:
                lines = answer.read().decode().split("\n")
            if any(line.startswith("tollgate_rpc_replica_ejected{") and not line.endswith(" 0") for line in lines):
                return False
        with urllib.request.urlopen(f"http://{self.machine.containers['load-balancer'].addresses['monitoring']}:8404/metrics", timeout=30) as answer:
            text = answer.read().decode()
        return text.count('haproxy_server_status{proxy="gateways",server="gateway') and sum(
            line.startswith('haproxy_server_status{proxy="gateways"') and 'state="UP"' in line and line.endswith(" 1")
            for line in text.split("\n")) == 2

    def wait(self, what, condition, timeout=90):
        deadline = time.monotonic() + timeout
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.2)

    def test_1_a_chat_of_the_official_client_through_tls(self):
        load = self.load()
        load.more(2 * CALLERS)
        load.end()
        self.assertEqual(load.failed(), [])
        for streamed in (True, False):
            self.assertTrue([one for one in load.calls if one["streamed"] == streamed and one["output"]])
        charged = json.loads(self.tollgate("--json", "usage", "demo"))["usage"][-1]["requests"]
        self.assertEqual(charged, len(load.calls))

    def test_2_no_killed_replica_is_noticed_but_by_answers_that_it_had_begun(self):
        """The names are those of the compose file. Answers that had begun at a killed gateway, router or engine are lost."""
        begun = ("gateway", "inference-router", "engine-sim")
        for name in [one for one in self.machine.project["services"] if one.endswith("-2")] + ["redis"]:
            with self.subTest(name):
                container = self.machine.containers[name]
                self.wait("all replicas are used", self.all_used)
                load = self.load()
                load.more(CALLS)
                container.kill()
                load.more(2 * CALLS)
                container.start()
                self.machine.wait_healthy([name], 120)
                load.more(CALLS)
                load.end()
                lost = [one for one in load.failed() if one["streamed"] and one["begun"]] if compose.component(name) in begun else []
                self.assertEqual([one for one in load.failed() if one not in lost], [], name)
                self.assertLessEqual(len(lost), CALLERS)
                print(f"COMPOSE kill {name}: calls={len(load.calls)} lost_begun={len(lost)} failed=0", file=sys.stderr)

    def test_3_no_stop_of_a_replica_is_noticed(self):
        for name in [one for one in self.machine.project["services"] if one.endswith("-1") and not one.startswith("engine-")]:
            with self.subTest(name):
                container = self.machine.containers[name]
                self.wait("all replicas are used", self.all_used)
                load = self.load()
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
        self.wait("every target is read", lambda: unread() == [])
        self.wait("an Alertmanager", lambda: len(self.get("prometheus", "monitoring", 9090, "/api/v1/alertmanagers")["data"]["activeAlertmanagers"]) == 1)
        self.assertEqual(self.get("alertmanager", "monitoring", 9093, "/api/v2/status")["cluster"]["status"], "disabled")

    def test_5_plain_text_is_refused(self):
        """Between processes, by the databases, and by gateways; and networks do not reach each other."""
        there = self.machine.containers
        for caller, callee, network, port, reached in (
                ("gateway-1", "auth-1", "inside", 7000, True), ("engine-sim-1", "router-1", "engines", 9464, True),
                ("engine-sim-1", "auth-1", "inside", 7000, False), ("engine-sim-1", "postgres", "data", 5432, False),
                ("gateway-1", "postgres", "data", 5432, False), ("gateway-1", "engine-sim-1", "engines", 8000, False),
                ("load-balancer", "billing-1", "inside", 7001, False), ("load-balancer", "gateway-1", "edge", 8080, True)):
            done = there[caller].execute("bash", "-c", f"timeout 3 bash -c 'exec 3<>/dev/tcp/{there[callee].addresses[network]}/{port}'")
            self.assertEqual(done.returncode == 0, reached, (caller, callee, port))
        sql = ["env", f"PGPASSWORD={open(self.folder + '/secrets/postgres_password', encoding='utf-8').read()}", "psql", "-h", "postgres",
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
                    "bash", "-c", 'sleep 2 | openssl s_client -alpn h2 -tls1_3 -CAfile /run/tls/authority.pem -verify_return_error -quiet "$@"',
                    "_", "-connect", f"{host}:{port}", *certificate)
                self.assertEqual("error:" in done.stderr, not certificate, f"{host}: {done.stderr}")

    def test_6_the_dashboard_answers_behind_the_load_balancer(self):
        done = subprocess.run(["curl", "-sS", "--cacert", f"{self.folder}/secrets/tls/authority.pem", f"https://{NAME}:8444/"],
                              capture_output=True, text=True, check=False)
        self.assertIn("<!doctype html", done.stdout.lower(), done.stderr)

    def test_7_the_books_are_right(self):
        self.assertEqual(self.operator.execute("tollgate", "verify-ledger", timeout=120).returncode, 0)


if __name__ == "__main__":
    PROGRAMS, WEB, PACKAGES = sys.argv[1:4]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
