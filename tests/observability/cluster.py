"""A cluster of real processes with a real Prometheus that scrapes it, and a caller, for the tests in this folder."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def get(url, form=None, timeout=30):
    data = urllib.parse.urlencode(form).encode() if form else None
    with DIRECT.open(url, data, timeout=timeout) as answer:
        return answer.read().decode()


def wait_for(what, seconds, condition):
    """Waits at least two minutes until the condition returns a value, and returns it: a busy machine delays
    everything."""
    seconds = max(seconds, 120)
    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if found := condition():
                return found
        if time.monotonic() > until:
            raise SystemExit(f"{what}: not within {seconds} s")
        time.sleep(0.1)


class Daemons:
    """Processes that are stopped with this object."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tollgate-observed-")
        self.running = []

    def start(self, name, *command, **more):
        with open(f"{self.folder}/{name}.log", "ab") as log:
            process = subprocess.Popen(command, cwd=self.folder, **({"stdout": log, "stderr": log} | more))
        self.running.append(process)
        return process

    def log(self, name):
        return pathlib.Path(f"{self.folder}/{name}.log").read_text(errors="replace")[-3000:]

    def close(self):
        for process in reversed(self.running):
            if process.stdin:
                process.stdin.close()  # the cluster stops in an orderly way
            elif process.poll() is not None:
                continue
            else:
                process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Observed(Daemons):
    """The cluster with every feature that has metrics: TLS, Redis, checkpoints, archive."""

    def __init__(self, bin_folder, flags=(), rules=(), scrape="1s"):
        super().__init__()
        self.bin = pathlib.Path(bin_folder).resolve()
        self.scrape, self.rules = scrape, rules
        self.targets = f"{self.folder}/targets.json"
        try:
            self.make_secrets()
            self.redis_port = free_port()
            self.start_redis()
            self.start_cluster(flags)
            self.start_prometheus()
        except BaseException:
            self.close()
            raise

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=self.folder)

    def renew_certificates(self):
        subprocess.run([ROOT / "deploy/make-certificates", f"{self.folder}/tls"], check=True, capture_output=True)

    def make_secrets(self):
        self.renew_certificates()
        self.make_edge_certificate(days=90)
        self.openssl("genpkey", "-algorithm", "ed25519", "-out", "checkpoint.pem")
        os.mkdir(f"{self.folder}/archive")

    def make_edge_certificate(self, days):
        """Replaces both files by renaming, as a renewal does."""
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", str(days),
                     "-subj", "/CN=localhost", "-keyout", "edge.key.new", "-out", "edge.pem.new")
        for name in ("edge.key", "edge.pem"):
            os.replace(f"{self.folder}/{name}.new", f"{self.folder}/{name}")

    def start_redis(self):
        self.redis = self.start("redis", "redis-server", "--port", str(self.redis_port), "--bind", "127.0.0.1", "--save", "")

    def start_cluster(self, flags):
        key = f"{self.folder}/checkpoint.pem"
        command = [str(self.bin / "tollgate-test-cluster"), "--tcp", "--certificates", f"{self.folder}/tls",
                   "--engine-concurrency", "64", "--redis-url", f"redis://127.0.0.1:{self.redis_port}", "--prometheus", self.targets,
                   "--gateway", f"edge_tls: {{certificate_file: {self.folder}/edge.pem, private_key_file: {self.folder}/edge.key}}",
                   "--auth", f"audit_checkpoint_key_file: {key}", "--auth", f"audit_checkpoint_file: {self.folder}/audit.checkpoints",
                   "--auth", "audit_checkpoint_seconds: 1",
                   # An unreachable trace collector, and a mail server.
                   "--host", f"tracing: {{otlp_endpoint: '127.0.0.1:{free_port()}'}}",
                   "--auth", f"people: {{smtp_url: 'smtp://127.0.0.1:{free_port()}', mail_from: gate@example.test, "
                             "public_url: 'https://gate.example.test'}",
                   "--billing", f"checkpoint_key_file: {key}", "--billing", f"checkpoint_file: {self.folder}/ledger.checkpoints",
                   "--billing", "checkpoint_seconds: 1", "--billing", "retention_months: 12",
                   "--billing", f"archive_folder: {self.folder}/archive", *flags]
        self.cluster = self.start("cluster", *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  env=os.environ | {"TOLLGATE_BIN": str(self.bin)})
        line = self.cluster.stdout.readline()
        if not line:
            raise SystemExit("no cluster: " + self.log("cluster"))
        self.facts = json.loads(line)

    def tell(self, line):
        """"kill NAME" or "start NAME" to the cluster."""
        self.cluster.stdin.write(line.encode() + b"\n")
        self.cluster.stdin.flush()
        answer = json.loads(self.cluster.stdout.readline())
        if "error" in answer:
            raise SystemExit(f"{line}: {answer['error']}")

    def config(self, name):
        return pathlib.Path(f"{self.facts['dir']}/{name}.yaml").read_text()

    def replace(self, name, edit=lambda text: text, binary=None, prefix=(), **more):
        """Runs a process of the cluster with another configuration or program, or within another command, at the same addresses."""
        config = pathlib.Path(f"{self.folder}/{name}.yaml")
        config.write_text(edit(self.config(name)))
        program = binary or self.bin / f"tollgate-{re.sub(r'-[0-9]+$', '', name)}"
        self.tell(f"kill {name}")
        process = self.start(name, *prefix, str(program), "--config", str(config), **more)
        address = self.processes()[name]
        try:
            wait_for(f"{name} with another configuration", 30, lambda: get(f"http://{address}/readyz"))
        except SystemExit as failure:
            raise SystemExit(f"{failure}\n{self.log(name)}") from failure
        return process

    def restore(self, name, process):
        """Ends a process of replace() and starts the cluster's own."""
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.tell(f"start {name}")

    def start_prometheus(self):
        self.port = free_port()
        config = {"global": {"scrape_interval": self.scrape, "evaluation_interval": self.scrape},
                  "rule_files": [str(rule) for rule in self.rules],
                  "scrape_configs": [{"job_name": "tollgate", "file_sd_configs": [{"files": [self.targets, f"{self.folder}/targets-*.json"]}]}]}
        pathlib.Path(f"{self.folder}/prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        self.start("prometheus", "prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/tsdb",
                   f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn")
        wait_for("Prometheus", 30, lambda: get(f"http://127.0.0.1:{self.port}/-/ready"))

    def processes(self):
        """Address for operators by name."""
        return {group["labels"]["instance"]: group["targets"][0] for group in json.loads(pathlib.Path(self.targets).read_text())}

    def pid_of(self, name):
        """The process that listens at this address."""
        port = int(self.processes()[name].rpartition(":")[2])
        inodes = {row.split()[9] for row in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
                  if row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A"}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                for link in (process / "fd").iterdir():
                    with contextlib.suppress(OSError):
                        if os.readlink(link)[8:-1] in inodes:
                            return int(process.name)
        raise SystemExit(f"{name} is not running")

    def metrics_of(self, address):
        return get(f"http://{address}/metrics")

    def query(self, expr):
        answer = json.loads(get(f"http://127.0.0.1:{self.port}/api/v1/query", {"query": expr}))
        return answer["data"]["result"] if answer["data"]["resultType"] == "vector" else [answer["data"]]

    def call(self, method, path, key=None, body=None, headers=None):
        """Status and body of one call to the gateway."""
        context = ssl._create_unverified_context()  # the certificate is this test's own
        connection = http.client.HTTPSConnection("127.0.0.1", self.facts["port"], timeout=60, context=context)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key or self.facts['keys']['good']}"} | (headers or {})
        connection.request(method, path, body if isinstance(body, (bytes, type(None))) else json.dumps(body), headers)
        answer = connection.getresponse()
        read = answer.status, answer.read().decode(errors="replace")
        connection.close()
        return read

    def chat(self, sim=None, key=None, **more):
        body = {"model": "sim/model", "messages": [{"role": "user", "content": "x_sim:" + json.dumps(sim or {"tokens": 20, "token_ms": 2})}]}
        return self.call("POST", "/v1/chat/completions", key, body | more)

    def operator(self, *command, certificate="operators/admin"):
        """The command line, as an operator with a certificate."""
        folder = f"{self.folder}/tls/{certificate}"
        done = subprocess.run([self.bin / "tollgate", "--json", "--auth-target", self.facts["auth_admin"], "--billing-target",
                               self.facts["billing_admin"], "--tls-ca", f"{folder}/authority.pem", "--tls-cert", f"{folder}/certificate.pem",
                               "--tls-key", f"{folder}/private_key.pem", *command], capture_output=True, text=True,
                              env=os.environ | {"XDG_STATE_HOME": self.folder})
        return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout + done.stderr
