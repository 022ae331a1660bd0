"""A running cluster of docker-compose.yml, with a workspace, a key, and callers of the official client."""
import atexit
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import compose
from compose import ROOT
from facts_test import COLLECTOR
from machine import Machine

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "api.example.test"
CALLERS = 6


class Load:
    """Callers of the official client, with a key of the workspace "demo" or another. tokens: of the longest answers; the engine sends 60 a
    second."""

    def __init__(self, cluster, callers=CALLERS, tokens=60, model="demo/sim-small", key=""):
        self.process = subprocess.Popen(
            [f"{cluster.packages}/python/venv/bin/python", f"{HERE}/load.py", f"https://{NAME}:8443/v1", key or cluster.key, str(callers), str(tokens),
             model],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={"PATH": "/usr/bin:/bin", "SSL_CERT_FILE": f"{cluster.secrets}/tls/authority.pem", "NO_PROXY": "*"})
        self.calls = []
        # Read immediately: callers block when the pipe is full.
        self.lines = queue.SimpleQueue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with self.process.stdout:
            for line in self.process.stdout:
                self.lines.put(line)
        self.lines.put(None)

    def more(self, count):
        """Waits until this many more calls have ended."""
        for _ in range(count):
            line = self.lines.get()
            assert line, "the callers ended"
            self.calls.append(json.loads(line))

    def end(self):
        """Waits for the calls that run."""
        self.process.stdin.close()
        for line in iter(self.lines.get, None):
            self.calls.append(json.loads(line))
        assert self.process.wait(200) == 0

    def failed(self):
        return [one for one in self.calls if not one["whole"]]


class Cluster:
    """The profile "full", or others. change(project) may change what the file says before it runs; it returns the names of services
    that are not started yet. before_up(machine) may change the containers."""

    def __init__(self, programs, web, packages, change=lambda project: [], before_up=lambda machine: None, profile="full"):
        self.packages = packages
        self.folder = tempfile.mkdtemp(prefix="tollgate-compose-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o755)
        self.secrets = f"{self.folder}/secrets"
        self.environment = {"TOLLGATE_SECRETS": self.secrets, "TOLLGATE_EDGE_NAMES": f"DNS:{NAME}"}
        self.make_secrets()
        project = compose.load(profile, self.environment)
        project["services"]["operator"] = compose.load("operator", self.environment)["services"]["operator"]
        absent = ["grafana/grafana"] + ([] if os.path.exists(COLLECTOR) else ["otel/opentelemetry-collector-contrib"])
        for image in absent:
            print(f"NOT RUN: {image}, which cannot be had here", file=sys.stderr)
        later = change(project)
        self.machine = Machine(self.folder, project, programs, web, COLLECTOR, absent)
        atexit.register(self.machine.end)
        self.operator = self.machine.containers["operator"]
        # A separate, permanent container for commands.
        self.operator.command = lambda: ["sleep", "infinity"]
        before_up(self.machine)
        self.machine.up(not_yet=["operator", *later])
        self.operator.start()
        self.wait("the operator's container", lambda: self.operator.execute("tollgate", "--help").returncode == 0, 30)
        with open("/etc/hosts", "a", encoding="utf-8") as file:
            file.write(f"{self.machine.containers['load-balancer'].addresses['outside']} {NAME}\n")
        self.key = self.workspace("demo")

    def make_secrets(self, *options):
        if os.path.exists(self.secrets):
            os.chmod(self.secrets, 0o700)
        done = subprocess.run([f"{ROOT}/dev", "secrets", *options], env={**os.environ, **self.environment}, capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, done.stderr
        os.chmod(self.secrets, 0o755)  # a container engine mounts regardless of the permissions of parent folders

    def tollgate(self, *arguments, timeout=60):
        done = self.operator.execute("tollgate", *arguments, timeout=timeout)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def workspace(self, name):
        """Creates a workspace with credit; returns one of its keys."""
        self.tollgate("workspace", "create", name.title(), "--id", name)
        self.tollgate("credit", "add", "--workspace", name, "50")
        return json.loads(self.tollgate("--json", "key", "create", "--workspace", name, "--name", "test"))["secret"]  # shown once

    def requests(self, workspace="demo"):
        """What the ledger has charged the workspace for."""
        return json.loads(self.tollgate("--json", "usage", workspace))["usage"][-1]["requests"]  # the last row is the sum

    def get(self, name, network, port, path):
        with urllib.request.urlopen(f"http://{self.machine.containers[name].addresses[network]}:{port}{path}", timeout=30) as answer:
            return answer.read().decode()

    def all_used(self):
        """Whether all processes use all replicas, and the load balancer has every running gateway."""
        gateways = [one for one in self.machine.of("gateway") if one.runs()]
        for one in gateways + [one for one in self.machine.of("inference-router") if one.runs()]:
            for line in self.get(one.name, "inside", 9464, "/metrics").split("\n"):
                if line.startswith("tollgate_rpc_replica_ejected{") and not line.endswith(" 0"):
                    return False
        up = [line for line in self.get("load-balancer", "monitoring", 8404, "/metrics").split("\n")
              if line.startswith('haproxy_server_status{proxy="gateways"') and 'state="UP"' in line and line.endswith(" 1")]
        return len(up) == len(gateways)

    def wait(self, what, condition, timeout=90):
        timeout = max(timeout, 180)  # a busy machine delays everything
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, what
            time.sleep(0.2)

    def restart(self, name):
        """docker compose stop and up of one container."""
        container = self.machine.containers[name]
        ended = container.stop()
        assert ended == (0, True), f"{name}: {ended} {container.log()}"
        container.start()
        self.machine.wait_healthy([name], 120)
