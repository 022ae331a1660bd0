"""The processes start from what the chart renders: its configuration, the secrets that it makes, certificates with the names
that it asks of cert-manager, its migrations, and its own test. Only addresses and folders differ from a cluster."""
import base64
import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import chart
from ports import free_ports

BIN = os.environ.get("TOLLGATE_BIN", "")
VALUES = chart.merged(chart.GIVEN, {"secrets": {"existingSecret": "", "generate": True}, "tls": {"trustDomain": "example.org"},
                                    "postgresql": {"sslMode": "disable"}, "services": {"billing": {"checkpoints": True}}, "operator": {"enabled": True}})


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def wait_for(what, check, seconds=120):
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what()}")
        time.sleep(0.05)


def status_of(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


class Processes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tollgate-helm-")
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o755)
        self.objects = chart.render(VALUES)
        self.running = {}
        self.addCleanup(self.kill_all)
        ports = chart.table()["ports"]
        self.ports = dict(zip([(service, port) for service in [*chart.SERVICES, "migrate"] for port in ports],
                              free_ports(len(ports) * (len(chart.SERVICES) + 1))))
        self.write_secrets()
        self.write_certificates()
        self.start_databases()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, text, *names):
        os.makedirs(os.path.dirname(self.path(*names)), exist_ok=True)
        with open(self.path(*names), "w", encoding="utf-8") as file:
            file.write(text)

    def write_secrets(self):
        secret = chart.named(self.objects, "Secret", "t-tollgate-secrets")["data"]
        for name, value in secret.items():
            self.write(base64.b64decode(value).decode(), "secrets", name)

    def write_certificates(self):
        """Makes certificates like cert-manager."""
        os.makedirs(self.path("tls"))
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "1", "-subj", "/CN=authority",
                "-keyout", self.path("tls/ca.key"), "-out", self.path("tls/ca.crt"))
        usages = {"digital signature": "keyUsage=critical,digitalSignature", "server auth": "serverAuth", "client auth": "clientAuth"}
        for one in self.objects:
            if one["kind"] != "Certificate" or one["spec"].get("isCA"):
                continue
            spec = one["spec"]
            to = self.path("tls", spec["secretName"])
            extended = ",".join(usages[usage] for usage in spec["usages"] if usage.endswith("auth"))
            self.write("\n".join(["subjectAltName=" + ",".join("URI:" + uri for uri in spec["uris"]), usages["digital signature"],
                                  "extendedKeyUsage=" + extended]), "tls", spec["secretName"], "extensions")
            openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-subj", "/CN=" + spec["commonName"],
                    "-keyout", to + "/tls.key", "-out", to + "/request")
            openssl("x509", "-req", "-in", to + "/request", "-CA", self.path("tls/ca.crt"), "-CAkey", self.path("tls/ca.key"),
                    "-CAcreateserial", "-days", "1", "-extfile", to + "/extensions", "-out", to + "/tls.crt")
            shutil.copy(self.path("tls/ca.crt"), to + "/ca.crt")

    def start(self, name, command, **options):
        with open(self.path(name + ".log"), "a", encoding="utf-8") as log:
            self.running[name] = subprocess.Popen(command, stdout=log, stderr=log, **options)

    def log(self, name):
        with open(self.path(name + ".log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-3000:]

    def start_databases(self):
        binaries = os.environ.get("TOLLGATE_PG_BIN") or max(glob.glob("/usr/lib/postgresql/*/bin"))
        # PostgreSQL refuses to run as root.
        self.nobody = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--"] if os.geteuid() == 0 else []
        os.makedirs(self.path("postgresql"))
        os.chmod(self.path("postgresql"), 0o777)
        data, (port, redis) = self.path("postgresql", "data"), free_ports(2)
        subprocess.run([*self.nobody, binaries + "/initdb", "-D", data, "-U", "tollgate", "-A", "scram-sha-256", "--pwfile",
                        self.path("secrets/postgres_password"), "-E", "UTF8", "--locale", "C"], check=True, capture_output=True, cwd="/")
        self.start("postgresql", [*self.nobody, binaries + "/postgres", "-D", data, "-p", str(port), "-k", self.path("postgresql"), "-h", "127.0.0.1",
                                  "-c", "fsync=off"], cwd="/")
        with open(self.path("secrets/postgres_password"), encoding="utf-8") as file:
            environment = {**os.environ, "PGPASSWORD": file.read().strip(), "PGUSER": "tollgate", "PGHOST": "127.0.0.1", "PGPORT": str(port)}
        wait_for(lambda: self.log("postgresql"), lambda: subprocess.run([binaries + "/pg_isready", "-q"], env=environment, check=False).returncode == 0)
        # Like the built-in server.
        with open(os.path.join(chart.CHART, "files/postgres/init.sql"), encoding="utf-8") as file:
            subprocess.run([binaries + "/psql", "-q", "-d", "postgres"], input=file.read(), text=True, env=environment, check=True)
        with open(self.path("secrets/redis_password"), encoding="utf-8") as file:
            options = f"port {redis}\nbind 127.0.0.1\nrequirepass {file.read()}\nsave \"\"\ndir {self.folder}\n"
        self.write(options, "redis.conf")
        self.start("redis", ["redis-server", self.path("redis.conf")])
        self.databases = {"pg.example:5432": f"127.0.0.1:{port}", "redis://r:6379": f"redis://127.0.0.1:{redis}"}

    def kill_all(self):
        for process in self.running.values():
            process.kill()
            process.wait()

    def local(self, service, text):
        """The configuration with addresses and folders of this machine."""
        numbers = chart.table()["ports"]
        for name, here in self.databases.items():
            text = text.replace(name, here)
        for other in chart.SERVICES:
            for port in ("grpc", "admin"):
                text = text.replace(f"t-tollgate-{other}:{numbers[port]}", f"127.0.0.1:{self.ports[other, port]}")
        text = text.replace(f"t-tollgate-api:{numbers['gateway']}", f"127.0.0.1:{self.ports['gateway', 'gateway']}")
        for port, number in numbers.items():
            text = re.sub(rf"(0\.0\.0\.0|127\.0\.0\.1):{number}\b", rf"\1:{self.ports.get((service, port))}", text)
        os.makedirs(self.path("data", service), exist_ok=True)
        text = text.replace("/run/secrets", self.path("secrets")).replace("/run/tls", self.path("tls", f"t-tollgate-tls-{service}"))
        text = text.replace("/run/catalog/catalog.yaml", os.path.join(chart.ROOT, "deploy/config/catalog.demo.yaml"))
        # The image has the pages in this folder.
        text = re.sub(r" *web_folder: .*\n", "", text)
        return text.replace("/var/lib/tollgate", self.path("data", service))

    def migrate(self, service):
        """The Job's own script, with the program and the health check of the image on its path."""
        job = chart.named(self.objects, "Job", f"t-tollgate-migrate-{service}")
        config = chart.named(self.objects, "ConfigMap", f"t-tollgate-migrate-{service}")["data"]["config.yaml"]
        self.write(self.local("migrate", config), f"migrate-{service}", "config.yaml")
        health = os.path.join(chart.ROOT, "deploy/docker/health")
        self.write(f'#!/bin/sh\nexec bash {health} {self.ports["migrate", "ops"]}\n', "bin", "tollgate-health")
        os.chmod(self.path("bin/tollgate-health"), 0o755)
        script = job["spec"]["template"]["spec"]["containers"][0]["command"][-1].replace("/etc/tollgate", self.path(f"migrate-{service}"))
        environment = {**os.environ, "PATH": f"{self.path('bin')}:{BIN}:{os.environ['PATH']}"}
        return subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=False)

    def test_all_start_find_each_other_and_stop(self):
        for service in ("auth", "billing"):
            done = self.migrate(service)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn('"stopped"', done.stderr)
        for service in chart.SERVICES:
            config = chart.named(self.objects, "ConfigMap", f"t-tollgate-{service}")["data"]["config.yaml"]
            self.write(self.local(service, config), f"{service}.yaml")
            self.start(service, [f"{BIN}/tollgate-{service}", "--config", self.path(f"{service}.yaml")])
        for service in chart.SERVICES:
            wait_for(lambda service=service: f"{service}: {self.log(service)}",
                     lambda service=service: status_of(self.ports[service, "ops"], "/readyz") == 200)
            self.assertEqual(status_of(self.ports[service, "ops"], "/healthz"), 200)
        # helm test.
        script = chart.named(self.objects, "Pod", "t-tollgate-test")["spec"]["containers"][0]["command"][-1]
        for name, service in (("api", "gateway"), ("web", "dashboard")):
            script = re.sub(rf"t-tollgate-{name} \d+", f"127.0.0.1 {self.ports[service, service]}", script)
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len(re.findall(r": (200|401)$", done.stdout, re.M)), 4, done.stdout)
        # The operator's pod reaches the admin services.
        pod = chart.named(self.objects, "Deployment", "t-tollgate-operator")["spec"]["template"]["spec"]["containers"][0]
        environment = {one["name"]: self.local("operator-admin", one["value"]) for one in pod["env"]}
        done = subprocess.run([f"{BIN}/tollgate", "workspace", "create", "Team A", "--id", "team-a"], capture_output=True, text=True,
                              timeout=60, check=False, env={"PATH": os.environ["PATH"], **environment})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for service, file in (("auth", "audit.checkpoints"), ("billing", "ledger.checkpoints")):
            wait_for(lambda file=file: file, lambda service=service, file=file: os.path.exists(self.path("data", service, file)))
        for service in reversed(chart.SERVICES):
            self.running[service].send_signal(signal.SIGTERM)
        for service in chart.SERVICES:
            self.assertEqual(self.running[service].wait(60), 0, self.log(service))
            self.assertNotIn("call refused", self.log(service))

    def test_a_migration_that_cannot_reach_its_database_fails(self):
        self.databases["pg.example:5432"] = f"127.0.0.1:{free_ports(1)[0]}"
        done = self.migrate("auth")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("start failed", done.stderr)
