"""The Helm chart agrees with the product: the programs accept its configuration, and its ports, names of
certificates and callers are those of the code."""
import functools
import os
import re
import subprocess
import tempfile
import unittest

import chart

BIN = os.environ.get("TOLLGATE_BIN", "")
# Targets of a configuration: the called service and its port.
TARGETS = {"auth": ("auth", "grpc"), "ratelimit": ("ratelimit", "grpc"), "billing": ("billing", "grpc"), "catalog": ("catalog", "grpc"),
           "inference_routers": ("inference-router", "grpc"), "auth_admin": ("auth", "admin"), "billing_admin": ("billing", "admin"),
           "catalog_admin": ("catalog", "admin"), "router_admin": ("inference-router", "admin"), "gateways": ("gateway", "grpc")}


def read(path):
    with open(os.path.join(chart.ROOT, path), encoding="utf-8") as file:
        return file.read()


def service_names():
    """The services that a certificate may name (common/rpc/callers.cc), by the name of their bit."""
    return {bit: name for name, bit in re.findall(r'\{"([a-z-]+)", (k[A-Z]\w+)\}', read("common/rpc/callers.cc"))}


def allowed_by_code():
    """(from, to, port): pairs that rows of the services' tables allow."""
    names, found = {**service_names(), "kOperator": "operator"}, set()
    for folder in ("auth", "billing", "catalog", "inference_router", "ratelimit"):
        text = re.sub(r"//.*", "", read(f"services/{folder}/rpc/callers.h"))
        text = text.replace("kReaders}", re.search(r"kReaders = ([^;]+);", text)[1] + "}") if "kReaders" in text else text
        text = text.replace("rpc::kAdmins", "rpc::kDashboard | rpc::kOperator")
        for part in re.finditer(r"(kCallers|kAdminCallers)\[\] = \{(.*?)\n\};", text, re.S):
            port = "grpc" if part[1] == "kCallers" else "admin"
            rows = re.findall(r'\{"[\w.*/]+",([^}]+)\}', part[2])
            assert rows, folder
            for bit in re.findall(r"k[A-Z]\w+", " ".join(rows)):
                found.add((names[bit], folder.replace("_", "-"), port))
    return found


def in_table():
    return {(row["from"], row["to"], row["port"]) for row in chart.table()["calls"]}


@functools.lru_cache(maxsize=None)
def parsed(text):
    return chart.yaml.load(text, chart.Loader)


def loaded(objects):
    """{service: configuration}, without those of migrations."""
    return {one["metadata"]["labels"]["app.kubernetes.io/component"]: parsed(one["data"]["config.yaml"])
            for one in objects if one["kind"] == "ConfigMap" and "config.yaml" in one["data"]
            and one["metadata"]["labels"]["app.kubernetes.io/component"] != "migrate"}


def pods(objects):
    return {pod["metadata"]["labels"]["app.kubernetes.io/component"]: (owner, pod["spec"]) for owner, pod in chart.pod_templates(objects)}


class Configuration(unittest.TestCase):
    def test_gateway_and_dashboard_trust_the_proxies_that_are_listed(self):
        for given, trusted in ((["10.0.0.0/8"], ["10.0.0.0/8"]), (["none"], [])):
            settings = loaded(chart.render(chart.merged(chart.GIVEN, {"trustedProxies": given})))
            for service in ("gateway", "dashboard"):
                self.assertEqual(settings[service][service]["trusted_proxies"], trusted, service)

    def test_the_programs_take_every_configuration(self):
        seen, kinds = set(), set()
        with tempfile.TemporaryDirectory() as folder:
            for name in ("pepper", "postgres_password", "dashboard_token"):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write("0123456789abcdef0123456789abcdef\n")
            for _, objects in chart.rendered():
                for one in objects:
                    if one["kind"] != "ConfigMap" or "config.yaml" not in one["data"]:
                        continue
                    name, text = one["metadata"]["name"], one["data"]["config.yaml"]
                    service = next(each for each in chart.SERVICES if name.endswith("-" + each))
                    if text in seen:
                        continue
                    seen.add(text)
                    kinds.add(("migrate" in name, service))
                    path = os.path.join(folder, "config.yaml")
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text.replace("/run/secrets", folder))
                    done = subprocess.run([f"{BIN}/tollgate-{service}", "--config", path, "--check-config"], capture_output=True,
                                          text=True, check=False)
                    self.assertEqual(done.returncode, 0, f"{done.stdout}{done.stderr}\n{text}")
        self.assertEqual(len(kinds), len(chart.SERVICES) + 2)
        done = subprocess.run([f"{BIN}/tollgate-gateway", "--config", "/dev/stdin", "--check-config"], input="gatewai: {}", text=True,
                              capture_output=True, check=False)
        self.assertNotEqual(done.returncode, 0)

    def test_what_it_reads_is_mounted_and_what_is_mounted_is_read(self):
        made = set(re.findall(r"\w+", re.search(r"for name in (pepper[\w\s\\]+); do", read("dev"))[1])) | {"audit_checkpoint_key"}
        for values, objects in chart.rendered():
            for service, (owner, spec) in pods(objects).items():
                if service not in chart.SERVICES:
                    continue
                text = chart.yaml.dump(loaded(objects)[service])
                extra = set(values.get("defaults", {}).get("extraSecretKeys", [])) | {"stripe"}
                wanted = set(re.findall(r"/run/secrets/(\w+)", text))
                items = {item["key"] for volume in spec["volumes"] if volume["name"] == "secrets" for item in volume["secret"]["items"]}
                self.assertEqual(wanted - extra, items - extra, service)
                # ./dev secrets makes them; the ledger's checkpoints are an option of the chart.
                self.assertLessEqual(wanted - extra - {"ledger_checkpoint_key"}, made)
                mounts = {mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
                for path in re.findall(r"(/(?:run|var/lib)/[\w-]+)", text):
                    self.assertIn(path, mounts, service)
                claims = owner["spec"].get("volumeClaimTemplates", [])
                self.assertEqual(bool(claims), owner["kind"] == "StatefulSet", service)

    def test_streams_end_before_the_pod_is_killed(self):
        for values, objects in chart.rendered():
            for service, (_, spec) in pods(objects).items():
                if service not in chart.SERVICES:
                    continue
                config = loaded(objects)[service]
                drain = config["host"].get("drain_seconds", 30)
                [_, before] = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
                self.assertGreaterEqual(spec["terminationGracePeriodSeconds"], drain + int(before) + 10, service)
                if service == "gateway":
                    notice = config["gateway"]["drain_notice_seconds"]
                    self.assertGreaterEqual(drain - notice, 1800)
                    self.assertLessEqual(notice, drain / 2)
                if service == "inference-router":
                    self.assertGreaterEqual(drain, 1800)
        longer = chart.render(chart.merged(chart.GIVEN, {"streams": {"longestSeconds": 7200, "noticeSeconds": 60, "preStopSeconds": 20}}))
        self.assertGreaterEqual(pods(longer)["gateway"][1]["terminationGracePeriodSeconds"], 7200 + 60 + 20)


class Ports(unittest.TestCase):
    def test_processes_listen_where_containers_and_services_say(self):
        for values, objects in chart.rendered():
            for service, config in loaded(objects).items():
                host = config["host"]
                listens = {"ops": host["ops_listen"], "grpc": host.get("grpc_listen"), "admin": host.get("admin_grpc_listen"),
                           "gateway": config.get("gateway", {}).get("listen"), "dashboard": config.get("dashboard", {}).get("listen"),
                           "webhooks": config.get("billing", {}).get("payments", {}).get("webhook_listen")}
                wanted = {name: int(address.rsplit(":", 1)[1]) for name, address in listens.items() if address}
                container = pods(objects)[service][1]["containers"][0]
                self.assertEqual({port["name"]: port["containerPort"] for port in container["ports"]}, wanted, service)
                for one in objects:
                    if one["kind"] == "Service" and one["metadata"]["labels"]["app.kubernetes.io/component"] == service:
                        for port in one["spec"]["ports"]:
                            self.assertEqual(port["port"], wanted[port["targetPort"]], one["metadata"]["name"])

    def test_names_lead_to_every_replica(self):
        objects = chart.render()
        for service, config in loaded(objects).items():
            for field, target in config.get("targets", {}).items():
                [address] = target if isinstance(target, list) else [target]
                name, port = address.split(":")
                found = chart.named(objects, "Service", name)["spec"]
                self.assertEqual(found["clusterIP"], "None", name)
                # Callers use the health protocol; a name without addresses would not resolve.
                self.assertTrue(found["publishNotReadyAddresses"])
                to, port_name = TARGETS[field]
                self.assertEqual(found["selector"]["app.kubernetes.io/component"], to, f"{service}: {field}")
                self.assertIn((port_name, int(port)), [(one["name"], one["port"]) for one in found["ports"]])


class Callers(unittest.TestCase):
    def test_the_table_is_what_the_code_allows(self):
        code, table = allowed_by_code(), in_table()
        self.assertGreater(len(code), 12)
        # Every admin server serves tollgate.admin.v1 to people's front and operators; the dashboard lists all processes.
        self.assertIn('kAdminApi = {"tollgate.admin.v1.*", kAdmins}', read("common/rpc/callers.h"))
        # Operators may call ProcessInfo as well; the chart's policies admit them to the admin ports only.
        self.assertIn('"tollgate.common.v1.ProcessInfoService/*", rpc::kAdmins', read("common/host/process_info.h"))
        listens = chart.table()["listens"]
        admins = {(who, to, "admin") for who in ("dashboard", "operator") for to in listens if "admin" in listens[to]}
        listed = {("dashboard", to, port) for to in listens for port in ("grpc", "admin") if port in listens[to]}
        pairs = {row for row in table if row[2] in ("grpc", "admin")}
        self.assertEqual(pairs - code - admins - listed, set(), "the table has what the code refuses")
        self.assertEqual(code - pairs, set(), "the code allows what the table lacks")

    def test_the_table_is_what_processes_are_told_to_call(self):
        told = set()
        for _, objects in chart.rendered():
            for service, config in loaded(objects).items():
                told |= {(service, *TARGETS[field]) for field in config.get("targets", {})}
                if "gateway_url" in config.get("dashboard", {}):
                    told.add((service, "gateway", "gateway"))
                if "postgresql:5432" in config.get(service, {}).get("sql", {}).get("url", ""):
                    told.add((service, "postgresql", "postgresql"))
                if "redis:6379" in config.get("ratelimit", {}).get("redis_url", ""):
                    told.add((service, "redis", "redis"))
            if "operator" in pods(objects):
                for env in pods(objects)["operator"][1]["containers"][0]["env"]:
                    if env["name"] in ("TOLLGATE_AUTH", "TOLLGATE_BILLING"):
                        told.add(("operator", env["name"][9:].lower(), "admin"))
        others = {("migrate", "postgresql", "postgresql"), ("inference-router", "engine-sim", "engine"),
                  ("test", "gateway", "gateway"), ("test", "dashboard", "dashboard")}
        self.assertEqual(in_table(), told | others)

    def test_policies_let_through_the_table_and_nothing_else(self):
        ports = chart.table()["ports"]
        for values, objects in chart.rendered():
            policies = {one["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]: one["spec"]
                        for one in objects if one["kind"] == "NetworkPolicy"}
            if not policies:
                self.assertIs(values["networkPolicy"]["enabled"], False)
                continue
            labels = {pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod["metadata"]["labels"] for _, pod in chart.pod_templates(objects)}
            self.assertEqual(set(policies), set(labels))

            def let(rules, side, other, port):
                for rule in rules:
                    if port not in [one.get("port", port) for one in rule["ports"]]:
                        continue
                    for peer in rule.get(side, []):
                        if set(peer) == {"podSelector"} and peer["podSelector"]["matchLabels"].items() <= labels[other].items():
                            return True
                return False

            for one in labels:
                self.assertEqual(policies[one]["policyTypes"], ["Ingress", "Egress"])
                for other in labels:
                    for name, port in ports.items():
                        wanted = (one, other, name) in in_table()
                        self.assertEqual(let(policies[one]["egress"], "to", other, port), wanted, (one, other, name))
                        self.assertEqual(let(policies[other]["ingress"], "from", one, port), wanted, (one, other, name))


class Certificates(unittest.TestCase):
    def test_they_carry_the_names_that_processes_check(self):
        objects = chart.render(chart.merged(chart.GIVEN, {"tls": {"trustDomain": "example.org", "certManager": {"operators": ["ada"]}},
                                                          "operator": {"enabled": True, "name": "ada"}}))
        wanted = {f"spiffe://example.org/svc/{name}" for name in service_names().values()}
        self.assertEqual(len(wanted), len(chart.SERVICES))
        issued = {}
        for one in objects:
            if one["kind"] == "Certificate" and not one["spec"].get("isCA"):
                [uri] = one["spec"]["uris"]
                issued[uri] = one["spec"]
        self.assertEqual(set(issued), wanted | {"spiffe://example.org/operator/ada"})
        for uri, spec in issued.items():
            self.assertIn("client auth", spec["usages"])
            self.assertEqual("server auth" in spec["usages"], "/svc/" in uri)
            component = uri.rsplit("/", 1)[1] if "/svc/" in uri else "operator"
            volumes = {volume["name"]: volume for volume in pods(objects)[component][1]["volumes"]}
            self.assertEqual(volumes["tls"]["secret"]["secretName"], spec["secretName"])
        for service, config in loaded(objects).items():
            self.assertEqual(config["host"]["tls"]["trust_domain"], "example.org", service)
        env = {one["name"]: one["value"] for one in pods(objects)["operator"][1]["containers"][0]["env"]}
        self.assertEqual(env["TOLLGATE_TRUST_DOMAIN"], "example.org")

    def test_without_them_plain_text_is_said(self):
        for config in loaded(chart.render(chart.TRYING)).values():
            self.assertNotIn("tls", config["host"])
            self.assertTrue(config["host"]["insecure_plaintext"])
        for config in loaded(chart.render()).values():
            self.assertNotIn("insecure_plaintext", config["host"])


class Version(unittest.TestCase):
    def test_it_is_that_of_the_product(self):
        version = re.search(r"project\(tollgate VERSION ([\d.]+)", read("CMakeLists.txt"))[1]
        self.assertEqual(chart.values_of(os.path.join(chart.CHART, "Chart.yaml"))["appVersion"], version)
        images = re.findall(r"^FROM runtime(?:-sql)? AS ([\w-]+)$", read("deploy/docker/Dockerfile"), re.M)
        for _, objects in chart.rendered():
            for _, pod in chart.pod_templates(objects):
                for container in pod["spec"]["containers"]:
                    name = re.search(r"tollgate/([\w-]+)[:@]", container["image"])
                    self.assertTrue(name is None or name[1] in images, container["image"])

