"""The Helm chart: every switch both ways renders to objects that the Kubernetes API takes, that fit each other, and that
the restricted pod security standard lets run."""
import glob
import json
import os
import shutil
import tempfile
import unittest

import chart
from schemas import Schemas

class Every(unittest.TestCase):
    """Rules of every object of every rendering."""

    def each(self, *kinds):
        seen = set()
        for values, objects in chart.rendered():
            for one in objects:
                key = chart.digest(one)
                if (not kinds or one["kind"] in kinds) and key not in seen:
                    seen.add(key)
                    yield one

    def test_the_api_takes_each_object(self):
        schemas = Schemas(os.path.join(chart.PART, "schemas"))
        faults, kinds = set(), set()
        for one in self.each():
            faults.update(schemas.faults(one))
            kinds.add((one["apiVersion"], one["kind"]))
        self.assertEqual(sorted(faults), [])
        # Every object of the chart was rendered; a misspelt field is detected.
        self.assertEqual({kind for _, kind in schemas.custom} - {kind for _, kind in kinds}, set())
        self.assertGreaterEqual(len(kinds), 18)
        wrong = chart.merged(chart.named(chart.rendered()[0][1], "Deployment", "t-tollgate-gateway"), {"spec": {"replica": 1}})
        self.assertEqual(len(schemas.faults(wrong)), 1)
        wrong = chart.merged(chart.named(chart.rendered()[0][1], "Certificate", "t-tollgate-gateway"), {"spec": {"uri": 1}})
        self.assertEqual(len(schemas.faults(wrong)), 1)

    def test_names_are_unique_and_references_lead_somewhere(self):
        for values, objects in chart.rendered():
            names = [(one["kind"], one["metadata"]["name"]) for one in objects]
            self.assertEqual(len(names), len(set(names)), values)
            # Provided by the installation, or made by cert-manager.
            secrets = {"given", "keys", "edge", "pg-ca", "redis-ca"}
            secrets |= {one["spec"]["secretName"] for one in objects if one["kind"] == "Certificate"}
            secrets |= {one["metadata"]["name"] for one in objects if one["kind"] == "Secret"}
            maps = {"given-catalog"} | {one["metadata"]["name"] for one in objects if one["kind"] == "ConfigMap"}
            given_tls = values.get("tls", {}).get("mode") == "secrets"
            for owner, pod in chart.pod_templates(objects):
                spec, where = pod["spec"], owner["metadata"]["name"]
                claims = {one["metadata"]["name"] for one in owner["spec"].get("volumeClaimTemplates", [])}
                volumes = {one["name"] for one in spec.get("volumes", [])} | claims
                for container in spec["containers"]:
                    mounted = [one["name"] for one in container.get("volumeMounts", [])]
                    self.assertEqual(set(mounted), volumes, where)
                    paths = [one["mountPath"] for one in container.get("volumeMounts", [])]
                    self.assertEqual(len(paths), len(set(paths)), where)
                for volume in spec.get("volumes", []):
                    if "configMap" in volume:
                        self.assertIn(volume["configMap"]["name"], maps, where)
                    if "secret" in volume and not (given_tls and volume["name"] == "tls"):
                        self.assertIn(volume["secret"]["secretName"], secrets, where)
                if spec.get("serviceAccountName"):
                    self.assertIsNotNone(chart.named(objects, "ServiceAccount", spec["serviceAccountName"]))

    def test_selectors_find_their_pods_and_ports_exist(self):
        for _, objects in chart.rendered():
            pods = list(chart.pod_templates(objects))
            for one in objects:
                if one["kind"] in ("Service", "PodDisruptionBudget"):
                    wanted = one["spec"]["selector"]
                    wanted = wanted.get("matchLabels", wanted)
                    found = [pod for _, pod in pods if wanted.items() <= pod["metadata"]["labels"].items()]
                    self.assertEqual(len(found), 1, one["metadata"]["name"])
                    ports = {port["name"] for part in found[0]["spec"]["containers"] for port in part["ports"]}
                    for port in one["spec"].get("ports", []):
                        self.assertIn(port["targetPort"], ports, one["metadata"]["name"])
                if one["kind"] in ("Deployment", "StatefulSet"):
                    labels = one["spec"]["template"]["metadata"]["labels"]
                    self.assertLessEqual(one["spec"]["selector"]["matchLabels"].items(), labels.items())
                if one["kind"] in ("HorizontalPodAutoscaler", "ScaledObject"):
                    target = one["spec"]["scaleTargetRef"]
                    scaled = chart.named(objects, target["kind"], target["name"])
                    self.assertIsNotNone(scaled, target)
                    # Two owners of `replicas` would conflict.
                    self.assertNotIn("replicas", scaled["spec"])
                if one["kind"] == "ServiceMonitor":
                    wanted = one["spec"]["selector"]["matchLabels"].items()
                    services = [s for s in objects if s["kind"] == "Service" and wanted <= s["metadata"]["labels"].items()]
                    self.assertEqual(len(services), 1, one["metadata"]["name"])
                    self.assertIn("ops", [port["name"] for port in services[0]["spec"]["ports"]])
                    # Alerts and dashboards select the job of the product's own prometheus.yml.
                    self.assertEqual(services[0]["metadata"]["labels"][one["spec"]["jobLabel"]], "tollgate")
                if one["kind"] in ("Ingress", "HTTPRoute"):
                    name = one["metadata"]["name"]
                    service = chart.named(objects, "Service", name)
                    text = json.dumps(one)
                    for port in service["spec"]["ports"]:
                        self.assertIn(f'"name": "{name}"', text)
                        self.assertRegex(text, rf'"(port|number)": {port["port"]}\b')

    def test_pods_are_restricted_and_have_no_token(self):
        for values, objects in chart.rendered():
            for owner, pod in chart.pod_templates(objects):
                where, spec = f"{owner['kind']} {owner['metadata']['name']}", pod["spec"]
                self.assertIs(spec["automountServiceAccountToken"], False, where)
                self.assertTrue(spec["securityContext"]["runAsNonRoot"], where)
                self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"}, where)
                for key in ("hostNetwork", "hostPID", "hostIPC"):
                    self.assertNotIn(key, spec, where)
                for volume in spec.get("volumes", []):
                    self.assertTrue(set(volume) - {"name"} <= {"configMap", "secret", "emptyDir"}, where)
                for container in spec["containers"]:
                    security = container["securityContext"]
                    self.assertIs(security["allowPrivilegeEscalation"], False, where)
                    self.assertIs(security["readOnlyRootFilesystem"], True, where)
                    self.assertEqual(security["capabilities"], {"drop": ["ALL"]}, where)
                    self.assertIn("requests", container["resources"], where)
            for one in objects:
                if one["kind"] == "ServiceAccount":
                    self.assertIs(one["automountServiceAccountToken"], False)


class Switches(unittest.TestCase):
    def test_the_schema_names_every_value_and_refuses_others(self):
        root = chart.schema()

        def compare(values, node, path):
            known = chart.properties(node, root)
            if not known or not isinstance(values, dict):
                return
            for key in values:
                self.assertIn(key, known, f"values.yaml has {path}{key}, the schema lacks it")
                compare(values[key], known[key], f"{path}{key}.")
            if path not in ("services.", "") and not path.startswith(("defaults.", "services.")) and "resources" not in path and values:
                self.assertEqual(set(values), set(known), f"values.yaml lacks some of {path}")

        compare(chart.values_of(), root, "")
        for wrong, message in [({"gatway": {}}, "gatway"), ({"tls": {"mode": "on"}}, "mode"), ({"services": {"mailer": {}}}, "mailer"),
                               ({"services": {"gateway": {"replica": 1}}}, "replica"), ({"services": {"gateway": {"webhooks": True}}}, "webhooks"),
                               ({"postgresql": {"port": "x"}}, "port"), ({"redis": {"url": "http://r"}}, "url"),
                               ({"image": {"digests": {"gatway": "sha256:" + "0" * 64}}}, "gatway"),
                               ({"image": {"digests": {"gateway": "sha256:" + "0" * 63}}}, "digests"),
                               ({"image": {"digests": {"gateway": "latest"}}}, "digests")]:
            objects, error = chart.template(chart.merged(chart.GIVEN, wrong))
            self.assertIsNone(objects, wrong)
            self.assertIn(message, error)

    def test_a_digest_replaces_the_tag_wherever_the_image_runs(self):
        """Also in Jobs, in the operator's pod and in what is for trying."""
        names = chart.schema()["properties"]["image"]["properties"]["digests"]["propertyNames"]["enum"]
        digests = {name: f"sha256:{number:064x}" for number, name in enumerate(names)}
        values = chart.merged(chart.TRYING, {"image": {"registry": "r.example/", "digests": digests}, "operator": {"enabled": True}})
        found, owners = {}, set()
        for owner, pod in chart.pod_templates(chart.render(values, extra=("--is-upgrade",))):
            owners.add(owner["kind"])
            for container in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]:
                if "tollgate/" in container["image"]:
                    name, _, digest = container["image"].removeprefix("r.example/tollgate/").partition("@")
                    found.setdefault(name, set()).add(digest)
                    self.assertEqual(digest, digests[name], owner["metadata"]["name"])
        self.assertEqual(set(found), set(names))
        self.assertEqual(owners, {"Deployment", "StatefulSet", "Job", "Pod"})

    def test_what_is_missing_is_said(self):
        for without, message in [("trustedProxies", "trustedProxies"), ("secrets", "secrets.existingSecret"), ("postgresql", "postgresql.host"), ("redis", "redis.url"),
                                 ("catalog", "catalog.file")]:
            values = {key: value for key, value in chart.GIVEN.items() if key != without}
            objects, error = chart.template(values)
            self.assertIsNone(objects, without)
            self.assertIn(message, error)
        for more, message in [({"ingress": {"enabled": True}}, "ingress.host"), ({"gatewayApi": {"enabled": True}}, "gatewayApi.parentRefs"),
                              ({"postgresql": {"caSecret": ""}}, "postgresql.caSecret"),
                              ({"operator": {"enabled": True, "name": "ada"}}, "operator.name")]:
            objects, error = chart.template(chart.merged(chart.GIVEN, more))
            self.assertIsNone(objects, more)
            self.assertIn(message, error)

    def test_lint_and_package(self):
        for values in (chart.GIVEN, chart.TRYING):
            done = chart.helm("lint", "--strict", chart.CHART, "--values", "-", stdin=json.dumps(values))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with tempfile.TemporaryDirectory() as folder:
            done = chart.helm("package", chart.CHART, "--destination", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            # Files from outside of the chart's folder (alerts, dashboards) are in the archive.
            [archive] = glob.glob(folder + "/*.tgz")
            everything = chart.merged(chart.GIVEN, {"monitoring": {"rules": True, "dashboards": True}, "postgresql": {"mode": "builtin"}})
            self.assertEqual(chart.render(everything, chart=archive), chart.render(everything))

    def test_each_of_several_database_servers_is_named_with_its_port(self):
        text = json.dumps(chart.render(chart.merged(chart.GIVEN, {"postgresql": {"host": "db-1,db-2", "port": 6432}})))
        for database in ("auth", "billing"):
            self.assertIn(f"@db-1:6432,db-2:6432/{database}?", text)

    def test_reports_are_read_on_the_standby_that_is_named(self):
        text = json.dumps(chart.render(chart.merged(chart.GIVEN, {"postgresql": {"host": "db-rw", "reportsHost": "db-ro"}})))
        self.assertIn("@db-rw:5432/billing?", text)
        self.assertIn("@db-ro:5432/billing?", text)
        self.assertNotIn("@db-ro:5432/auth?", text)

    def test_services_with_a_disk_are_stateful(self):
        objects = chart.render(chart.merged(chart.GIVEN, {"services": {"auth": {"checkpoints": False}, "billing": {"checkpoints": True}}}))
        stateful = {one["metadata"]["name"] for one in objects if one["kind"] == "StatefulSet"}
        self.assertEqual(stateful, {"t-tollgate-inference-router", "t-tollgate-billing"})
        router = chart.named(objects, "StatefulSet", "t-tollgate-inference-router")["spec"]
        self.assertEqual(router["persistentVolumeClaimRetentionPolicy"], {"whenDeleted": "Retain", "whenScaled": "Retain"})

    def test_the_first_install_runs_no_migration_and_an_upgrade_does(self):
        hooks = [one for one in chart.render() if one["kind"] == "Job"]
        self.assertEqual(sorted(one["metadata"]["name"] for one in hooks), ["t-tollgate-migrate-auth", "t-tollgate-migrate-billing"])
        for one in hooks:
            self.assertEqual(one["metadata"]["annotations"]["helm.sh/hook"], "pre-upgrade")

    def test_changed_configuration_replaces_the_pods_that_read_it_and_no_others(self):
        def marks(more):
            objects = chart.render(chart.merged(chart.GIVEN, more))
            return {owner["metadata"]["name"]: pod["metadata"]["annotations"]["tollgate/config"]
                    for owner, pod in chart.pod_templates(objects) if owner["kind"] in ("Deployment", "StatefulSet")}
        before, after = marks({}), marks({"services": {"gateway": {"config": {"gateway": {"keep_alive_seconds": 20}}}}})
        self.assertEqual([name for name in before if before[name] != after[name]], ["t-tollgate-gateway"])


class Monitoring(unittest.TestCase):
    def test_all_alerts_and_dashboards_of_the_product_are_in_it(self):
        objects = chart.render(chart.merged(chart.GIVEN, {"monitoring": {"rules": True, "dashboards": True}}))
        [rules] = [one for one in objects if one["kind"] == "PrometheusRule"]
        alerts = set()
        for path in glob.glob(os.path.join(chart.ROOT, "deploy/prometheus/**/*.yml"), recursive=True):
            for group in (chart.values_of(path) or {}).get("groups", []):
                alerts |= {rule.get("alert", rule.get("record")) for rule in group["rules"]}
        self.assertGreater(len(alerts), 10)
        self.assertEqual({rule.get("alert", rule.get("record")) for group in rules["spec"]["groups"] for rule in group["rules"]}, alerts)
        dashboards = glob.glob(os.path.join(chart.ROOT, "deploy/grafana/**/*.json"), recursive=True)
        made = {key for one in objects if "-dashboard-" in one["metadata"]["name"] for key in one.get("data", {})}
        self.assertEqual(made, {os.path.basename(path) for path in dashboards})

    def test_new_files_appear_by_themselves(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "tollgate")
            shutil.copytree(chart.CHART, copy)
            os.makedirs(copy + "/files/grafana/folder")
            text = json.dumps({"title": "New", "panels": [{"legendFormat": "{{instance}}"}]})
            for path, content in [("files/grafana/folder/New_One.json", text), ("files/prometheus/more.yml", "groups: [{name: more, rules: [{alert: More, expr: '1'}]}]"),
                                  ("files/prometheus/not_rules.yml", "scrape_configs: []")]:
                with open(os.path.join(copy, path), "w", encoding="utf-8") as file:
                    file.write(content)
            objects = chart.render(chart.merged(chart.GIVEN, {"monitoring": {"rules": True, "dashboards": True}}), chart=copy)
            dashboard = chart.named(objects, "ConfigMap", "t-tollgate-dashboard-new-one")
            self.assertEqual(dashboard["data"], {"New_One.json": text})
            [rules] = [one for one in objects if one["kind"] == "PrometheusRule"]
            self.assertIn("More", [rule.get("alert") for group in rules["spec"]["groups"] for rule in group["rules"]])

