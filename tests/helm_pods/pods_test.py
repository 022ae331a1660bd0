"""The pods of the chart do their work: with mutual TLS, as unprivileged users on read-only roots, and with the NetworkPolicies
in force. A simulated Kubernetes API server cannot show this, since its pods do not run."""
import concurrent.futures
import contextlib
import glob
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "helm")]

import chart  # noqa: E402
from node import ROOT, Node  # noqa: E402

DOMAIN = "gate.example"
READY_SECONDS = 240
PRODUCTION = {
    "trustedProxies": ["10.0.0.0/8"],
    "secrets": {"existingSecret": "given"},
    "tls": {"mode": "secrets", "trustDomain": DOMAIN, "secrets": {"prefix": "given-tls-"}},
    "postgresql": {"mode": "builtin"}, "redis": {"mode": "builtin"}, "simulatedEngines": {"enabled": True},
    "operator": {"enabled": True}, "autoscaling": {"mode": "none"},
    "streams": {"longestSeconds": 60, "noticeSeconds": 1, "preStopSeconds": 1},
    # The third router is started by the test of scaling.
    "services": {"billing": {"checkpoints": True}, "inference-router": {"replicas": 3}},
}
# Checks of the doctor next to a process of a service, with its files and in its network.
DOCTOR = {"auth": ["database"], "billing": ["database"], "catalog": ["engine"], "dashboard": [], "gateway": ["process", "machine"],
          "inference-router": ["machine"], "ratelimit": ["redis"]}
# Findings that are expected here: a database without fsync, a low file limit, a catalog without access to engines.
OF_THIS_TEST = ("fsync is off", "the process may open", "cannot be reached: Timeout")
TRYING = {
    "trustedProxies": ["none"],
    "secrets": {"generate": True}, "tls": {"mode": "off"}, "postgresql": {"mode": "builtin"}, "redis": {"mode": "builtin"},
    "simulatedEngines": {"enabled": True}, "operator": {"enabled": True}, "autoscaling": {"mode": "none"}, "defaults": {"replicas": 1},
}


def given_secrets(folder):
    """Objects that an installation makes itself: the output of ./dev secrets, as Secrets."""
    subprocess.run([f"{ROOT}/deploy/make-certificates", f"{folder}/tls"], check=True, capture_output=True,
                   env={**os.environ, "TOLLGATE_TRUST_DOMAIN": DOMAIN})
    given = {"given": {}}
    for key in ("pepper", "seal_key", "webhook_seal_key", "postgres_password", "redis_password", "dashboard_token",
                "idempotency_key", "reasoning_key"):
        given["given"][key] = os.urandom(32).hex().encode()
    for key in ("audit_checkpoint_key", "ledger_checkpoint_key"):
        given["given"][key] = subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519"], check=True, capture_output=True).stdout
    for place in glob.glob(f"{folder}/tls/**/certificate.pem", recursive=True):
        owner = os.path.relpath(os.path.dirname(place), f"{folder}/tls").replace("operators/", "operator-")
        files = {"tls.crt": "certificate.pem", "tls.key": "private_key.pem", "ca.crt": "authority.pem"}
        given[f"given-tls-{owner}"] = {}
        for key, name in files.items():
            with open(f"{os.path.dirname(place)}/{name}", "rb") as file:
                given[f"given-tls-{owner}"][key] = file.read()
    return given


class Pods:
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tollgate-pods-")
        os.chmod(cls.folder, 0o755)
        cls.node = Node(cls.folder, chart.render(cls.values), given_secrets(cls.folder), PROGRAMS, WEB)
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.addClassCleanup(cls.node.end)
        first = [pod for pod in cls.node.pods.values() if pod.name not in cls.later]
        for pod in first:
            pod.start()
        cls.node.wait_ready(READY_SECONDS, first)
        operator = cls.node.of("operator")[0]
        for command in (["workspace", "create", "Demo", "--id", "demo"], ["credit", "add", "--workspace", "demo", "50"]):
            done = operator.execute("tollgate", *command)
            assert done.returncode == 0, done.stderr
        done = operator.execute("tollgate", "--json", "key", "create", "--workspace", "demo", "--name", "test")
        assert done.returncode == 0, done.stderr
        cls.key = json.loads(done.stdout)["secret"]  # shown once

    def post(self, address, port, path, tokens, read=None):
        """A streamed answer; `read` is called after its first line. (status, body, when it ended)."""
        body = {"model": "demo/sim-small", "stream": True, "max_tokens": tokens, "messages": [{"role": "user", "content": "hello"}],
                "x_sim": {"tokens": tokens, "reasoning_tokens": 0}}
        with contextlib.closing(http.client.HTTPConnection(address, port, timeout=120)) as connection:
            connection.request("POST", path, json.dumps(body), {
                "Authorization": f"Bearer {self.key}", "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"})
            answer = connection.getresponse()
            text = answer.readline()
            if read:
                read()
            text += answer.read()
            return answer.status, text.decode(), time.monotonic()

    def chat(self, gateway, tokens=40, read=None):
        return self.post(gateway.address, gateway.port("gateway"), "/v1/chat/completions", tokens, read)

    def assert_whole(self, status, text, _):
        self.assertEqual(status, 200, text)
        self.assertTrue(text.rstrip().endswith("data: [DONE]"), text[-500:])

    def assert_serves(self, gateway, ask=None):
        """Waits up to a minute: on a machine that is busy with other tests, processes look hung, and callers eject them for a while."""
        ask = ask or (lambda: self.chat(gateway))
        deadline, answer = time.monotonic() + 60, ask()
        while answer[0] == 503 and time.monotonic() < deadline:
            answer = ask()
        self.assert_whole(*answer)

    def hook(self, name):
        """Runs a pod of a hook to its end."""
        pod = self.node.hooks[name]
        pod.start()
        code = pod.process.wait(120)
        self.assertEqual(code, 0, pod.log()[-2000:])
        return pod.log()

    def test_1_every_gateway_answers_and_charges(self):
        for gateway in self.node.of("gateway"):
            self.assert_serves(gateway)
        done = self.node.of("operator")[0].execute("tollgate", "--json", "usage", "demo")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["usage"][-1]["requests"], len(self.node.of("gateway")))

    def test_2_helm_test_passes(self):
        self.assertIn("/v1/models: 200", self.hook("t-tollgate-test"))

    def test_8_nothing_that_the_pods_do_is_refused(self):
        name = {pod.address: pod.component for pod in self.everyone()}
        for pod in self.everyone():
            self.assertEqual({(name.get(a, a), name.get(b, b), port) for a, b, port in self.node.network.dropped(pod)}, set(), pod.name)

    def everyone(self):
        return [*self.node.pods.values(), *self.node.hooks.values()]


class ProductionTest(Pods, unittest.TestCase):
    values, later = PRODUCTION, ["t-tollgate-inference-router-2"]

    def test_3_migrations_run_beside_the_version_before(self):
        for name in ("auth", "billing"):
            self.hook(f"t-tollgate-migrate-{name}")
        self.assert_serves(self.node.of("gateway")[0])

    def test_4_answers_outlive_the_stop_of_each_gateway_and_router(self):
        gateways, routers = self.node.of("gateway"), self.node.of("inference-router")[:2]
        for pod in [*gateways, *routers]:
            # Several answers, so that the stopping router has some of them.
            asked = [pod] * 4 if pod in gateways else gateways * 4
            with self.subTest(pod.name), concurrent.futures.ThreadPoolExecutor(len(asked) + 1) as pool:
                begun = threading.Barrier(len(asked) + 1, timeout=120)
                answers = [pool.submit(self.chat, one, 600, begun.wait) for one in asked]
                begun.wait()
                code, told, ended = pod.stop()
                for answer in answers:
                    if cut := answer.exception():
                        self.fail(f"{cut!r} with an answer; {pod.name} ended with {code} after {ended:.1f} s: {pod.log()[-4000:]}")
                    self.assert_whole(*answer.result())
                    self.assertGreater(answer.result()[2], told, "it ended before the pod was told to stop")
                self.assertEqual(code, 0, pod.log()[-1000:])
                self.assertLess(ended, pod.spec["terminationGracePeriodSeconds"])
            pod.start()
            self.node.wait_ready(READY_SECONDS, [pod])
            self.assert_serves(gateways[0])

    def test_5_a_router_that_died_comes_back_with_its_volume(self):
        router = self.node.of("inference-router")[0]
        router.process.kill()
        router.process.wait()
        self.assert_serves(self.node.of("gateway")[1])
        self.node.wait_ready(READY_SECONDS, [router])
        self.assertTrue(os.listdir(f"{self.folder}/claims/{router.name}"))

    def test_6_a_router_more_takes_its_part_and_one_less_is_not_missed(self):
        gateways, late = self.node.of("gateway"), self.node.pods[self.later[0]]
        late.start()
        self.node.wait_ready(READY_SECONDS, [late])
        # The gateway resolves its address within five seconds.
        deadline = time.monotonic() + 60
        while not late.metric("tollgate_router_engine_requests_total"):
            self.assertLess(time.monotonic(), deadline, late.log()[-1000:])
            for gateway in gateways:
                self.assert_serves(gateway)
        self.assertEqual(late.stop()[0], 0)
        for gateway in gateways * 3:
            self.assert_serves(gateway)

    def test_7_the_dashboard_shows_its_pages_and_passes_the_playground_on(self):
        for pod in self.node.of("dashboard"):
            with contextlib.closing(http.client.HTTPConnection(pod.address, pod.port("dashboard"), timeout=60)) as connection:
                connection.request("GET", "/")
                answer = connection.getresponse()
                self.assertEqual(answer.status, 200)
                self.assertIn("<!doctype html", answer.read().decode().lower())
            self.assert_serves(pod, lambda: self.post(pod.address, pod.port("dashboard"), "/playground/v1/chat/completions", 40))

    def test_8_every_call_of_the_table_of_callers_is_made(self):
        table = chart.table()
        used = set()
        for pod in self.everyone():
            used |= {(peer, pod.component, port) for (peer, port), packets in self.node.network.used(pod).items() if packets}
        unused = {(one["from"], one["to"], one["port"]) for one in table["calls"]
                  if (one["from"], one["to"], str(table["ports"][one["port"]])) not in used}
        self.assertEqual(unused, set())

    def test_9_the_doctor_sees_the_installation(self):
        """The commands of docs/operations/kubernetes.md: in the operator's pod, and next to a process of each service."""
        done = self.node.of("operator")[0].execute("tollgate", "--json", "doctor", timeout=90)
        found = {one["subject"].split(" ")[0]: one["result"] for one in json.loads(done.stdout)["checks"] if one["check"] == "process"}
        self.assertEqual((done.returncode, found), (0, {"auth": "ok", "billing": "ok"}), done.stdout)
        for name, looked_at in DOCTOR.items():
            with self.subTest(name):
                done = self.node.of(name)[0].execute_beside("tollgate", "--json", "doctor", "--config", "/etc/tollgate/config.yaml")
                checks = json.loads(done.stdout)["checks"]
                seen = {one["check"] for one in checks if one["result"] != "skipped"}
                self.assertTrue({"configuration", "certificate", *looked_at} <= seen, done.stdout)
                wrong = [one for one in checks if one["result"] in ("failure", "warning")
                         and not any(text in one["finding"] for text in OF_THIS_TEST)]
                self.assertEqual(wrong, [])

    def test_9_who_is_not_in_the_table_is_refused(self):
        """The last test: its refusals are counted."""
        engine, gateway = self.node.of("engine-sim")[0], self.node.of("gateway")[0]
        sql, auth = self.node.of("postgresql")[0], self.node.of("auth")[0]
        for caller, callee, port, reached in ((gateway, auth, 7000, True), (gateway, auth, 7001, False), (gateway, sql, 5432, False),
                                              (engine, auth, 7000, False), (engine, gateway, 8080, False), (auth, sql, 5432, True),
                                              (sql, auth, 7001, False)):
            done = caller.execute("bash", "-c", f"timeout 3 bash -c 'exec 3<>/dev/tcp/{callee.address}/{port}'")
            self.assertEqual(done.returncode == 0, reached, f"{caller.name} to {callee.name}:{port}")


class TryingTest(Pods, unittest.TestCase):
    """Plain text between the processes, secrets that the chart makes, one of everything."""
    values, later = TRYING, []


if __name__ == "__main__":
    PROGRAMS, WEB = sys.argv[1:3]
    chart.skip_without_helm()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
