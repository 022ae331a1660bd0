"""The chart on a real API server with real controllers: its objects are accepted, installed, upgraded, rolled back, scaled and
removed. Slow: ./dev prove kubernetes."""
import json
import os
import unittest

import api_server
import chart
from api_server import ApiError, ApiServer, wait_for

RELEASE = "t"
EVERYTHING = chart.merged(chart.GIVEN, {
    "operator": {"enabled": True}, "ingress": {"enabled": True, "host": "api.example.com", "dashboardHost": "d.example.com"},
    "gatewayApi": {"enabled": True, "parentRefs": [{"name": "edge"}], "hostnames": ["api.example.com"]},
    "monitoring": {"serviceMonitors": True, "rules": True, "dashboards": True}, "autoscaling": {"streamMetrics": True}})
FIGURES = {}


class Kubernetes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.failed = True  # until the end: the logs stay
        cls.server = ApiServer()
        cls.addClassCleanup(lambda: cls.server.stop(keep_logs=cls.failed))
        cls.server.prepare()

    @classmethod
    def tearDownClass(cls):
        print("KUBERNETES " + json.dumps(FIGURES), flush=True)

    def helm(self, *arguments, values=None, good=True):
        extra = ["--values", "-"] if values is not None else []
        done = chart.helm(*arguments, *extra, "--namespace", chart.NAMESPACE, "--kubeconfig", self.server.path("kubeconfig"),
                          stdin=json.dumps(values) if values is not None else None)
        if good:
            self.assertEqual(done.returncode, 0, f"{done.stdout}{done.stderr}; logs: {self.server.folder}")
        return done

    def upgrade(self, values, **arguments):
        return self.helm("upgrade", RELEASE, chart.CHART, "--wait", "--timeout", "10m", values=values, **arguments)

    def pods(self, component):
        selector = f"labelSelector=app.kubernetes.io/component%3D{component}"
        found = self.server.items(f"/api/v1/namespaces/{chart.NAMESPACE}/pods?{selector}")
        return [one for one in found if "deletionTimestamp" not in one["metadata"]]

    def running(self, component, count):
        """Returns the pods once `count` of them run and their headless name resolves to each."""
        pods = self.pods(component)
        ready = all(one["status"]["phase"] == "Running" and one["status"].get("podIP") for one in pods)
        selector = f"labelSelector=kubernetes.io/service-name%3Dt-tollgate-{component}"
        slices = self.server.items(f"/apis/discovery.k8s.io/v1/namespaces/{chart.NAMESPACE}/endpointslices?{selector}")
        addresses = {address for one in slices for endpoint in one["endpoints"] or [] for address in endpoint["addresses"]}
        return pods if ready and len(pods) == count and addresses == {one["status"]["podIP"] for one in pods} else None

    def names(self, component):
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in self.pods(component)}

    def workload(self, service, kind="deployments"):
        return f"/apis/apps/v1/namespaces/{chart.NAMESPACE}/{kind}/t-tollgate-{service}"

    def scale(self, service, kind, replicas):
        self.server.call("PATCH", self.workload(service, kind) + "/scale", {"spec": {"replicas": replicas}},
                         kind="application/merge-patch+json")
        wait_for(f"{replicas} {service}", lambda: len(self.pods(service)) == replicas)

    def test_1_the_server_takes_every_object_of_every_rendering(self):
        collections, seen = self.server.collections(), set()
        for _, objects in chart.rendered():
            for one in objects:
                if chart.digest(one) in seen:
                    continue
                seen.add(chart.digest(one))
                path = collections[one["apiVersion"], one["kind"]]
                try:
                    self.server.call("POST", path + "?dryRun=All&fieldValidation=Strict", one)
                except ApiError as error:
                    self.fail(f"{error}\n{json.dumps(one)}")
        FIGURES["objects"] = len(seen)
        # The API server refuses invalid objects, and a restricted namespace refuses unrestricted pods.
        wrong = chart.merged(chart.named(chart.render(), "Deployment", "t-tollgate-gateway"), {"spec": {"replicaz": 1}})
        with self.assertRaises(ApiError):
            self.server.call("POST", collections["apps/v1", "Deployment"] + "?dryRun=All&fieldValidation=Strict", wrong)
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "root"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
        with self.assertRaisesRegex(ApiError, "restricted"):
            self.server.call("POST", collections["v1", "Pod"] + "?dryRun=All", pod)

    def test_2_install_and_test(self):
        self.helm("install", RELEASE, chart.CHART, "--wait", "--timeout", "10m", values=EVERYTHING)
        for service in chart.SERVICES:
            # Autoscalers enforce their minimum.
            pods = wait_for(f"two of {service}", lambda service=service: self.running(service, 2))
            # Replicas run on different nodes, in different zones.
            nodes = {one["spec"]["nodeName"] for one in pods}
            self.assertEqual(len(nodes), 2, service)
        claims = self.server.items(f"/api/v1/namespaces/{chart.NAMESPACE}/persistentvolumeclaims")
        self.assertEqual({one["status"]["phase"] for one in claims}, {"Bound"})
        self.assertEqual({one["metadata"]["name"] for one in claims},
                         {f"data-t-tollgate-{service}-{number}" for service in ("auth", "inference-router") for number in (0, 1)})
        done = self.helm("test", RELEASE)
        self.assertIn("Succeeded", done.stdout)

    def test_3_disruption_budgets_hold(self):
        # One router may be evicted; while it ends its streams, the other one may not.
        first, second = sorted(self.names("inference-router"))
        path = f"/api/v1/namespaces/{chart.NAMESPACE}/pods/"
        budget = f"/apis/policy/v1/namespaces/{chart.NAMESPACE}/poddisruptionbudgets/t-tollgate-inference-router"
        wait_for("the budget", lambda: self.server.call("GET", budget)["status"].get("disruptionsAllowed") == 1)
        # Keeps the pod running, like a long stream.
        patch = "application/merge-patch+json"
        self.server.call("PATCH", path + first, {"metadata": {"finalizers": ["tests/stream"]}}, kind=patch)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction"}
        self.server.call("POST", path + first + "/eviction", {**eviction, "metadata": {"name": first}})
        with self.assertRaises(ApiError) as refused:
            self.server.call("POST", path + second + "/eviction", {**eviction, "metadata": {"name": second}})
        self.assertEqual(refused.exception.status, 429)
        self.server.call("PATCH", path + first, {"metadata": {"finalizers": None}}, kind=patch)
        wait_for("another router", lambda: self.running("inference-router", 2))

    def test_4_an_upgrade_migrates_first_and_replaces_what_changed(self):
        before = {service: self.names(service) for service in chart.SERVICES}
        changed = chart.merged(EVERYTHING, {"services": {"gateway": {"config": {"gateway": {"keep_alive_seconds": 20}}}}})
        self.upgrade(changed)
        wait_for("the old gateways to go", lambda: not set(self.names("gateway")) & set(before["gateway"]))
        for service in chart.SERVICES:
            self.assertEqual(self.names(service) == before[service], service != "gateway", service)
        # The jobs ran first: their events exist, and the jobs are deleted.
        events = self.server.items(f"/api/v1/namespaces/{chart.NAMESPACE}/events")
        done = {one["involvedObject"]["name"] for one in events if one["involvedObject"]["kind"] == "Job" and one["reason"] == "Completed"}
        self.assertEqual(done, {"t-tollgate-migrate-auth", "t-tollgate-migrate-billing"})
        self.assertEqual(self.server.items(f"/apis/batch/v1/namespaces/{chart.NAMESPACE}/jobs"), [])

    def test_5_scaling_one_service_keeps_disks_and_survives_an_upgrade(self):
        autoscaled = self.names("auth")
        for service, kind in (("inference-router", "statefulsets"), ("gateway", "deployments")):
            self.scale(service, kind, 4)
        claims = f"/api/v1/namespaces/{chart.NAMESPACE}/persistentvolumeclaims"
        disks = {one["metadata"]["name"] for one in self.server.items(claims)}
        self.assertEqual(len(disks), 6)
        # The chart does not set replicas: an upgrade keeps their number.
        self.upgrade(chart.merged(EVERYTHING, {"services": {"gateway": {"config": {"gateway": {"keep_alive_seconds": 25}}}}}))
        self.assertEqual(len(self.pods("inference-router")), 4)
        wait_for("four gateways", lambda: len(self.pods("gateway")) == 4)
        self.scale("inference-router", "statefulsets", 2)
        self.scale("gateway", "deployments", 2)
        self.assertEqual({one["metadata"]["name"] for one in self.server.items(claims)}, disks)
        self.assertEqual(self.names("auth"), autoscaled)
        # The autoscaler has its target (without a metrics server).
        scaler = f"/apis/autoscaling/v2/namespaces/{chart.NAMESPACE}/horizontalpodautoscalers/t-tollgate-inference-router"
        conditions = wait_for("the autoscaler", lambda: self.server.call("GET", scaler)["status"].get("conditions"))
        self.assertEqual([one["status"] for one in conditions if one["type"] == "AbleToScale"], ["True"])

    def test_6_roll_back(self):
        self.helm("rollback", RELEASE, "1", "--wait", "--timeout", "10m")
        config = self.server.call("GET", f"/api/v1/namespaces/{chart.NAMESPACE}/configmaps/t-tollgate-gateway")["data"]["config.yaml"]
        self.assertNotIn("keep_alive_seconds", config)
        deployment = self.server.call("GET", self.workload("gateway"))
        mark = deployment["spec"]["template"]["metadata"]["annotations"]["tollgate/config"]
        wait_for("the old pods", lambda: {one["metadata"]["annotations"]["tollgate/config"] for one in self.pods("gateway")} == {mark})

    def test_7_a_failed_migration_changes_nothing(self):
        before = {service: self.names(service) for service in chart.SERVICES}
        # No node can run the job: it times out.
        stuck = chart.merged(EVERYTHING, {"image": {"tag": "next"}, "migrations": {"timeoutSeconds": 3},
                                          "services": {"auth": {"resources": {"requests": {"cpu": "1000"}}}}})
        done = self.helm("upgrade", RELEASE, chart.CHART, "--timeout", "2m", values=stuck, good=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("pre-upgrade", done.stderr)
        self.assertEqual({service: self.names(service) for service in chart.SERVICES}, before)

    def test_8_generated_secrets_stay_over_upgrades(self):
        trying = chart.merged(chart.TRYING, {"fullnameOverride": "try"})
        self.helm("install", "try", chart.CHART, "--wait", "--timeout", "10m", values=trying)
        path = f"/api/v1/namespaces/{chart.NAMESPACE}/secrets/try-secrets"
        made = self.server.call("GET", path)["data"]
        self.assertEqual(len(made), 10)
        self.helm("upgrade", "try", chart.CHART, "--wait", "--timeout", "10m", values=trying)
        self.assertEqual(self.server.call("GET", path)["data"], made)
        self.helm("uninstall", "try", "--wait")
        # The pepper is kept for the next installation.
        self.assertEqual(self.server.call("GET", path)["data"], made)

    def test_9_uninstall_leaves_the_disks(self):
        self.helm("uninstall", RELEASE, "--wait")
        for service in chart.SERVICES:
            wait_for(f"{service} to go", lambda service=service: not self.pods(service))
        claims = self.server.items(f"/api/v1/namespaces/{chart.NAMESPACE}/persistentvolumeclaims")
        self.assertGreaterEqual(len(claims), 6)
        type(self).failed = False


if not os.access(os.path.join(api_server.PART, "kwok"), os.X_OK):
    raise unittest.SkipTest(f"no {api_server.PART}: get it with ./dev parts kubernetes")
