"""Checks properties of docker-compose.yml and of the files of its profiles "ha" and "scale": hardened containers, pinned images, networks that let through what the table
of callers needs, and configurations that the programs themselves accept."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import compose  # noqa: E402
from compose import ROOT  # noqa: E402

PARTS = os.environ.get("TOLLGATE_PARTS", os.path.expanduser("~/.cache/tollgate/parts"))
COMPOSE = f"{PARTS}/docker-compose-v2.40.3/docker-compose"
COLLECTOR = f"{PARTS}/collector-v0.160.0/otelcol"
# With docker-compose.scale.yml and the optional third worker.
SCALE = "scale,citus-3"
NODES = ("citus-1", "citus-2", "citus-3")
# Containers that end, one after the other.
ONCE = ("citus-join", "citus-distribute")
# One replica is enough, or the projects of these services describe how to run several.
SINGLE = {"load-balancer", "postgresql", "redis", "prometheus", "alertmanager", "otel-collector", "grafana"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


class FactsTest(unittest.TestCase):
    def setUp(self):
        self.full, self.minimal, self.ha, self.scale = (compose.load(profile) for profile in ("full", "minimal", "ha", SCALE))
        # Both PostgreSQL services with that name.
        changed = {f"{name} of scale": self.scale["services"][name] for name in ("postgres",)}
        self.all = {**self.scale["services"], **compose.load()["services"], **self.ha["services"], **changed}

    def sharing(self, project, one, other):
        there = compose.networks(project["services"][one])
        return [name for name in compose.networks(project["services"][other]) if name in there]

    def test_every_container_is_hardened(self):
        for name, service in self.all.items():
            with self.subTest(name):
                self.assertTrue(service["read_only"])
                self.assertEqual(service["cap_drop"], ["ALL"])
                self.assertEqual(service["security_opt"], ["no-new-privileges:true"])
                self.assertNotIn(service.get("user", "10001"), ("root", "0"))
                self.assertNotIn("privileged", service)
                self.assertTrue(service["pids_limit"])
                self.assertTrue(service["logging"]["options"]["max-size"])
                for mount in service.get("volumes", []):
                    # Mounts of this machine's files are read-only.
                    self.assertTrue(not mount.startswith(".") or mount.endswith(":ro"), mount)
                    self.assertNotIn("docker.sock", mount)
                if name in ONCE:
                    self.assertEqual(service["restart"], "no")
                elif name not in ("operator", "otel-collector"):
                    self.assertTrue(service["healthcheck"]["test"])
                    self.assertEqual(service["restart"], "unless-stopped")

    def test_images_are_pinned_and_ours_run_as_their_user(self):
        for name, service in self.all.items():
            image = service["image"]
            if not image.startswith("tollgate/"):
                self.assertRegex(image, r":v?\d+\.\d+(\.\d+)?(-[a-z]+\d*)?$", name)
        stages, bases = {}, set()
        for line in read("deploy/docker/Dockerfile").splitlines():
            if found := re.match(r"FROM (\S+) AS (\S+)", line):
                stage = found[2]
                stages[stage] = stages.get(found[1], "root")
                bases |= set() if found[1] in stages else {found[1]}
            elif line.startswith("USER "):
                stages[stage] = line.split()[1]
        self.assertEqual(bases, {"${BASE}"})
        self.assertRegex(read("deploy/docker/Dockerfile"), r"(?m)^ARG BASE=debian:bookworm-\d{8}-slim(@sha256:[0-9a-f]{64})?$")
        for service in self.all.values():
            if service["image"].startswith("tollgate/"):
                self.assertEqual(stages[service["build"]["target"]], "10001:10001", service["image"])

    def test_every_image_and_the_base_of_ours_can_be_one_with_a_digest(self):
        variables = set(re.findall(r"TOLLGATE_IMAGE_[A-Z_]+(?=:-)", "".join(read(f"docker-compose{one}.yml") for one in ("", ".ha", ".scale"))))
        digests = {name: f"r.example/{name.lower()}@sha256:{number:064x}" for number, name in enumerate(sorted(variables))}
        taken = set()
        for name, service in [one for profiles in ("", "ha", SCALE) for one in compose.load(profiles, digests)["services"].items()]:
            self.assertRegex(service["image"], r"^r\.example/\w+@sha256:[0-9a-f]{64}$", name)
            taken.add(service["image"])
            if "build" in service:
                self.assertEqual(service["build"]["args"]["BASE"], digests["TOLLGATE_IMAGE_BASE"], name)
        self.assertEqual(taken, set(digests.values()) - {digests["TOLLGATE_IMAGE_BASE"]})
        # One name for one image.
        usual = {service["image"] for service in self.all.values()}
        self.assertEqual(len(usual), len(taken))
        # Without the variable, the base image is the Dockerfile's.
        self.assertEqual({service["build"]["args"]["BASE"] for service in self.all.values() if "build" in service},
                         set(re.findall(r"(?m)^ARG BASE=(\S+)$", read("deploy/docker/Dockerfile"))))
        page = read("docs/operations/compose.md")
        for name in variables:
            self.assertIn(f"`{name.removeprefix('TOLLGATE_IMAGE_')}`", page)

    def test_the_full_profile_has_two_of_what_may_be_two(self):
        count = {}
        for name in self.full["services"]:
            count[compose.component(name)] = count.get(compose.component(name), 0) + 1
        self.assertEqual({name for name, number in count.items() if number == 1}, SINGLE)
        self.assertEqual({number for name, number in count.items() if name not in SINGLE}, {2})
        # The profile has all its dependencies.
        for project in (self.full, self.minimal, self.ha, compose.load("scale"), self.scale):
            for name, service in project["services"].items():
                self.assertLessEqual(set(service.get("depends_on", {})), set(project["services"]), name)

    def test_the_profile_ha_is_the_full_one_with_databases_that_fail_over(self):
        own = {name: one for name, one in self.ha["services"].items() if name not in self.full["services"]}
        self.assertEqual(set(self.full["services"]) - set(self.ha["services"]), {"postgres", "redis"})
        self.assertEqual(set(own), {f"{name}-{number}" for name, most in (("etcd", 3), ("postgres", 2), ("redis", 2), ("sentinel", 3))
                                    for number in range(1, most + 1)})
        for name, service in self.ha["services"].items():
            # Other services are unchanged.
            if name in self.full["services"] and compose.component(name) not in ("auth", "billing", "ratelimit", "prometheus"):
                self.assertEqual(service, self.full["services"][name], name)
        # Members differ by their names and volumes, and no two have one volume but that of the backups.
        mounted = [mount.split(":")[0] for one in own.values() for mount in one["volumes"] if not mount.startswith((".", "/"))]
        self.assertEqual({name for name in mounted if mounted.count(name) > 1}, {"backup"})
        for name, service in own.items():
            for same in ("ETCD_INITIAL_CLUSTER", "ETCDCTL_ENDPOINTS"):
                service.get("environment", {}).pop(same, None)
            self.assertEqual(str(service).replace(name, "X"), str(own[name[:-1] + "1"]).replace(name[:-1] + "1", "X"))
            self.assertLessEqual({mount.split(":")[0] for mount in service["volumes"] if not mount.startswith((".", "/"))},
                                 set(self.ha["volumes"]))
        # Only the database nodes and Prometheus, which has neither their certificate nor their password, reach etcd.
        reach = {compose.component(one) for one in self.ha["services"] if self.sharing(self.ha, one, "etcd-1")}
        self.assertEqual(reach, {"etcd", "postgresql", "prometheus"})
        self.assertEqual({compose.component(one) for one in self.ha["services"] if "consensus" in compose.networks(self.ha["services"][one])},
                         {"etcd", "postgresql"})
        prometheus, before = dict(self.ha["services"]["prometheus"]), dict(self.full["services"]["prometheus"])
        more = {compose.place(one): one for one in prometheus.pop("volumes")}
        for mount in before.pop("volumes"):
            there = more.pop(compose.place(mount))
            self.assertEqual(there, mount.replace("/full/", "/ha/"))
        self.assertEqual(list(more), ["/run/tls/authority.pem"])
        self.assertEqual({**prometheus.pop("networks")}, {**before.pop("networks"), "watching": {}})
        self.assertEqual(prometheus, before)
        self.assertNotIn("secrets", prometheus)
        for number in (1, 2, 3):
            there = self.all[f"etcd-{number}"]["environment"]
            self.assertEqual((there["ETCD_CLIENT_CERT_AUTH"], there["ETCD_PEER_CLIENT_CERT_AUTH"]), ("true", "true"))
        # Auth, billing and the limiters are configured with the names of members.
        for name in ("auth-1", "auth-2", "billing-1", "billing-2"):
            self.assertEqual(self.ha["services"][name]["environment"]["TOLLGATE_DATABASE_HOSTS"], "postgres-1:5432,postgres-2:5432")
        self.assertEqual(set(re.findall(r"sentinel-\d", self.ha["services"]["ratelimit-2"]["environment"]["TOLLGATE_REDIS_URL"])),
                         {name for name in own if name.startswith("sentinel")})

    def test_the_profile_scale_is_the_full_one_with_a_ledger_on_several_servers(self):
        scale, full = self.scale["services"], self.full["services"]
        own = {name: one for name, one in scale.items() if name not in full}
        self.assertEqual(set(own), {*NODES, *ONCE})
        self.assertEqual(set(full) - set(scale), set())
        self.assertEqual(set(scale) - set(compose.load("scale")["services"]), {"citus-3"})
        for name, service in full.items():
            waits = {"citus-distribute"} if name in ("billing-1", "billing-2") else set()
            there = dict(scale[name])
            self.assertEqual(set(there.get("depends_on", {})) - set(service.get("depends_on", {})), waits, name)
            # Other services are unchanged.
            if name != "postgres":
                self.assertEqual({**there, "depends_on": 0}, {**service, "depends_on": 0}, name)
        # The coordinator keeps PostgreSQL's configuration; workers differ by their names and volumes.
        self.assertLessEqual(set(full["postgres"]["volumes"]), set(scale["postgres"]["volumes"]))
        self.assertEqual({scale[name]["image"] for name in ("postgres", "citus-join", *NODES)}, {scale["postgres"]["image"]})
        for name in NODES:
            self.assertEqual({**scale[name], "profiles": 0} if name == "citus-1" else
                             yaml.safe_load(yaml.safe_dump({**scale[name], "profiles": 0}).replace(name, "citus-1")),
                             {**scale["citus-1"], "profiles": 0})
            self.assertEqual(scale[name]["command"][2:], ["run", name])
            for same in ("user", "stop_signal", "stop_grace_period", "secrets", "tmpfs", "environment", "shm_size"):
                self.assertEqual(scale[name][same], scale["postgres"][same], (name, same))
            # A certificate for its name, which other nodes verify.
            self.assertIn(name, re.search(r"(?m)^servers=\((.*)\)$", read("deploy/make-certificates"))[1].split())
            # Only the nodes, and the containers that register workers, reach workers.
            self.assertEqual({one for one in scale if self.sharing(self.scale, one, name)}, {"postgres", "citus-join", *NODES})
        self.assertIn("sslmode=verify-full sslrootcert=/run/tls/authority.pem", read("deploy/postgres/citus"))
        # Each waits for the previous one to end.
        for name, before in (("citus-distribute", "citus-join"), ("billing-1", "citus-distribute"), ("billing-2", "citus-distribute")):
            self.assertEqual(scale[name]["depends_on"][before], {"condition": "service_completed_successfully"})

    def test_the_profile_scale_distributes_all_tables_of_billing(self):
        """The command knows every component that has migrations in billing's database."""
        sources = [path for folder in ("services/billing", "common/audit") for path in glob.glob(f"{ROOT}/{folder}/**/*.*", recursive=True)
                   if path.endswith((".h", ".cc")) and not path.endswith("_test.cc")]
        text = "".join(read(path) for path in sources)
        self.assertEqual(len(re.findall(r"\{(?:\w+::)?k\w*Component, ", read("services/billing/command/all_schemas.cc"))), len(set(re.findall(r'Component = "(.*)"', text))))
        self.assertNotIn('Migrate("', text)

    def test_networks_let_through_what_the_table_of_callers_has(self):
        table = yaml.safe_load(read("deploy/helm/tollgate/files/callers.yaml"))
        for project in (self.full, self.minimal, self.ha, self.scale):
            by = {}
            for name in [*project["services"], "operator"]:
                by.setdefault(compose.component(name), []).append(name)
            project["services"]["operator"] = self.all["operator"]
            for call in table["calls"]:
                for caller in by.get(call["from"], []):
                    for callee in by.get(call["to"], []):
                        self.assertTrue(self.sharing(project, caller, callee), (caller, callee))
            # Only services of the table reach the databases.
            for data in ("postgresql", "redis"):
                callers = {one["from"] for one in table["calls"] if one["to"] == data} - {"migrate"}
                reach = {compose.component(name) for name in project["services"]
                         if any(self.sharing(project, name, one) for one in by[data])}
                self.assertLessEqual(callers, reach)
                watches = {"prometheus"} if data == "postgresql" and project is self.ha else set()  # without a password
                self.assertEqual(reach - {"postgresql", "redis", "etcd", "citus", *ONCE}, {"auth", "billing", "ratelimit"} | watches)

    def test_engines_reach_inference_routers_and_nothing_else(self):
        for project in (self.full, self.minimal, self.ha, self.scale):
            engines = [name for name in project["services"] if name.startswith("engine-")]
            self.assertTrue(engines)
            for engine in engines:
                self.assertEqual(list(compose.networks(project["services"][engine])), ["engines"])
                self.assertEqual({compose.component(name) for name in project["services"] if self.sharing(project, engine, name)},
                                 {"inference-router", "engine-sim"})
            self.assertTrue(project["networks"]["engines"]["internal"])
            self.assertEqual({name for name, network in project["networks"].items() if not (network or {}).get("internal")}, {"outside"})

    def test_only_the_load_balancer_can_be_reached_from_other_machines(self):
        opened = compose.load("full", {"TOLLGATE_LISTEN": "0.0.0.0"})["services"]
        for name, service in opened.items():
            for port in service.get("ports", []):
                self.assertEqual(port.startswith("127.0.0.1:"), not (name == "load-balancer" and port.endswith((":8443", ":8444"))), port)
        for service in self.full["services"].values():
            for port in service.get("ports", []):
                self.assertTrue(port.startswith("127.0.0.1:"), port)

    def test_no_secret_is_in_the_environment_or_a_command(self):
        for name, service in self.all.items():
            for key, value in service.get("environment", {}).items():
                self.assertTrue(key.endswith("_FILE") or not re.search("PASSWORD|TOKEN|SECRET|PEPPER", key), f"{name}: {key}={value}")
            # It mounts exactly the files that its configuration names.
            config = next((mount.split(":")[0] for mount in service.get("volumes", []) if "/config.yaml" in mount), "")
            if "config/cluster" in config:
                named = set(re.findall(r"/run/secrets/(\w+)", read(config)))
                self.assertEqual(named, set(service.get("secrets", [])), name)

    def test_prometheus_asks_every_process_of_its_profile(self):
        for project, name in ((self.full, "full/prometheus.yml"), (self.minimal, "prometheus.yml"), (self.ha, "ha/prometheus.yml"),
                              (self.scale, "full/prometheus.yml")):
            scraped = {target for job in yaml.safe_load(read(f"deploy/prometheus/{name}"))["scrape_configs"]
                       for static in job["static_configs"] for target in static["targets"]}
            ours = {f"{one}:9464" for one, service in project["services"].items()
                    if service["image"].startswith("tollgate/") and not one.startswith(("engine-", "etcd-", "postgres-", "citus-"))}
            self.assertEqual({one for one in scraped if one.endswith(":9464")}, ours)
            databases = {f"{one}:{port}" for one in project["services"] for start, port in (("postgres-", 8008), ("etcd-", 2381)) if one.startswith(start)}
            self.assertEqual({one for one in scraped if one.endswith((":8008", ":2381"))}, databases)
            prometheus = next(one for one in project["services"] if compose.component(one) == "prometheus")
            for target in scraped:
                self.assertTrue(self.sharing(project, prometheus, target.split(":")[0]), target)

    def test_stops_wait_for_answers(self):
        """A stop lasts longer than the process waits for its answers, and that is longer than a minute and a half."""
        for name, config in (("gateway-1", "gateway"), ("router-1", "inference-router")):
            host = yaml.safe_load(read(f"deploy/config/cluster/{config}.yaml"))["host"]
            self.assertGreaterEqual(host["drain_seconds"], 100)
            self.assertGreater(compose.seconds(self.all[name]["stop_grace_period"]), host["drain_seconds"] + 5)
        self.assertGreater(compose.seconds(self.all["load-balancer"]["stop_grace_period"]),
                           compose.seconds(re.search(r"hard-stop-after (\S+)", read("deploy/haproxy/haproxy.cfg"))[1]))


class ProgramsTest(unittest.TestCase):
    """Checks by the real programs."""

    def check(self, *command, **more):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_docker_compose_reads_what_we_read(self):
        if not os.path.exists(COMPOSE):
            self.skipTest("no docker compose: ./dev parts docker-compose")
        environment = {**os.environ, "TOLLGATE_SECRETS": "/secrets", "TOLLGATE_LISTEN": "0.0.0.0"}
        for profiles in ("minimal", "full", "ha", "scale", SCALE, "operator"):
            asked = [word for file in compose.files(profiles) for word in ("-f", file)] + [
                word for profile in profiles.split(",") for word in ("--profile", profile)]
            shown = yaml.safe_load(self.check(COMPOSE, *asked, "config", env=environment))
            ours = compose.load(profiles, environment)["services"]
            self.assertEqual(set(shown["services"]), set(ours))
            for name, service in ours.items():
                theirs = shown["services"][name]
                self.assertEqual(theirs["image"], service["image"])
                self.assertEqual(set(theirs.get("depends_on", {})), set(service.get("depends_on", {})), name)
                self.assertEqual({network: (one or {}).get("aliases", []) for network, one in theirs["networks"].items()},
                                 compose.networks(service))
                self.assertEqual(set(theirs.get("environment", {}).items()),
                                 {(key, str(value)) for key, value in service.get("environment", {}).items()})
                mounts = {(one["source"] if one["type"] == "volume" else os.path.relpath(one["source"], ROOT), one["target"])
                          for one in theirs.get("volumes", [])}
                self.assertEqual(mounts, {
                    (source if not source.startswith((".", "/")) else os.path.relpath(os.path.join(ROOT, source), ROOT), place)
                    for source, place in (one.split(":")[:2] for one in service.get("volumes", []))}, name)
                # "$$" is "$" for both; docker compose prints it as it was written.
                self.assertEqual([one.replace("$$", "$") for one in theirs.get("command") or []], service.get("command", []))
        done = subprocess.run([COMPOSE, "-f", "-", "config", "-q"], input="services: {a: {image: b, comand: [c]}}", text=True,
                              capture_output=True, check=False)
        self.assertNotEqual(done.returncode, 0, "it takes what is wrong, so its word proves nothing")

    def test_prometheus_and_alertmanager_take_their_files(self):
        for name, profile in (("prometheus", "full"), ("prometheus-minimal", "minimal"), ("prometheus", "ha")):
            with tempfile.TemporaryDirectory() as folder:
                for mount in compose.load(profile)["services"][name]["volumes"]:
                    source, place = mount.split(":")[:2]
                    if place.startswith("/etc/prometheus/"):
                        shutil.copy(f"{ROOT}/{source}", f"{folder}/{os.path.basename(place)}")
                # Each file that it names is mounted: promtool reads it.
                authority = f"{folder}/authority.pem"
                with open(f"{folder}/prometheus.yml", "r+", encoding="utf-8") as file:
                    text = file.read()
                    self.assertEqual("/run/tls/authority.pem" in text, profile == "ha")
                    file.seek(0)
                    file.write(text.replace("/run/tls/authority.pem", authority))
                    file.truncate()
                self.check("openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=test", "-keyout", "/dev/null", "-out", authority)
                self.check("promtool", "check", "config", f"{folder}/prometheus.yml")
        self.check("amtool", "check-config", f"{ROOT}/deploy/alertmanager/alertmanager.yml")

    def test_keys_are_made_only_in_a_folder_that_other_users_cannot_read(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            refused = subprocess.run([f"{ROOT}/deploy/make-certificates", folder], capture_output=True, text=True, check=False)
            self.assertEqual((refused.returncode, os.listdir(folder)), (1, []))
            self.assertIn(f"chmod 700 {folder}", refused.stderr)

    def test_haproxy_takes_its_file(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check(f"{ROOT}/deploy/make-certificates", f"{folder}/tls")
            text = read("deploy/haproxy/haproxy.cfg").replace("/run/edge-tls", f"{folder}/tls/servers/load-balancer")
            with open(f"{folder}/haproxy.cfg", "w", encoding="utf-8") as file:
                file.write(text.replace("/run/tls", f"{folder}/tls"))
            self.check("haproxy", "-c", "-f", file.name)

    def test_the_collector_takes_its_file(self):
        if not os.path.exists(COLLECTOR):
            self.skipTest("no collector: ./dev parts collector")
        with tempfile.TemporaryDirectory() as folder:
            self.check(f"{ROOT}/deploy/make-certificates", f"{folder}/tls")
            text = read("deploy/otel/collector.yaml").replace("/run/tls", f"{folder}/tls/servers/otel-collector")
            with open(f"{folder}/collector.yaml", "w", encoding="utf-8") as file:
                file.write(text.replace("/var/lib/otelcol", folder))
            self.check(COLLECTOR, "validate", f"--config={file.name}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
