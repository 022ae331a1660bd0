"""Runs the pods of the rendered chart as a node would, with the programs of this build: each container has the files of its
image, the volumes of its pod, its user, a read-only root and its own network."""
import base64
import os
import re
import shlex
import signal
import subprocess
import time
import urllib.error
import urllib.request

from network import NODE, Names, Network, run, selects

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Stands in for the entry point of PostgreSQL's image.
POSTGRES = """set -e
if [ ! -d "$PGDATA" ]; then
  initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth=scram-sha-256 --no-sync >/dev/null
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  pg_ctl start --wait --silent -o '-c listen_addresses= -k /tmp'
  PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE") psql -q -h /tmp -U "$POSTGRES_USER" -d postgres -f /docker-entrypoint-initdb.d/init.sql
  pg_ctl stop --wait --silent
fi
exec postgres -c listen_addresses='*' -c fsync=off -k /tmp"""
READ_ONLY = ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/share/zoneinfo", "usr/share/postgresql", "etc/ssl"]


def entry_points():
    """{image: command} of the images, from the Dockerfile."""
    found, image = {}, ""
    with open(f"{ROOT}/deploy/docker/Dockerfile", encoding="utf-8") as file:
        for line in file:
            if stage := re.match(r"FROM \S+ AS (\S+)", line):
                image = stage[1]
            if line.startswith("ENTRYPOINT"):
                found[image] = [one.strip(' "') for one in line[line.index("[") + 1:line.index("]")].split(",")]
    return found


class Pod:
    """One pod: its template, its address and, once started, its process."""

    def __init__(self, node, owner, template, name):
        self.node, self.owner, self.name = node, owner, name
        self.spec, self.labels = template["spec"], template["metadata"].get("labels", {})
        self.component = self.labels.get("app.kubernetes.io/component", name)
        self.container = self.spec["containers"][0]
        self.folder = f"{node.folder}/{name}"
        self.address = node.network.join(name)
        self.process, self.starts, self.ready = None, 0, False

    def command(self):
        container = self.container
        image = container["image"].rsplit("/", 1)[-1].split(":")[0].split("@")[0]
        if image == "postgres":
            return ["sh", "-c", POSTGRES]
        entry = container.get("command") or self.node.entries[image]
        return entry + container.get("args", [])

    def user(self):
        security = {**self.spec["securityContext"], **self.container["securityContext"]}
        assert security["runAsNonRoot"] and security["capabilities"] == {"drop": ["ALL"]} and \
            security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"], security
        return security["runAsUser"], security["runAsGroup"], security["fsGroup"]

    def dress(self, command):
        """The command as the container's user, without a privilege, in the container's environment."""
        user, group, volumes = self.user()
        environment = [f"{one['name']}={one['value']}" for one in self.container.get("env", [])]
        return ["setpriv", f"--reuid={user}", f"--regid={group}", f"--groups={volumes}", "--no-new-privs", "--bounding-set=-all",
                "--inh-caps=-all", "env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/lib/postgresql/15/bin", *environment, *command]

    def volume(self, volume):
        """The folder of a volume, made and filled."""
        folder = f"{self.folder}/volumes/{volume['name']}"
        group = self.user()[2]
        if "emptyDir" in volume or "claim" in volume:
            if "claim" in volume:  # kept under the name of the pod
                folder = f"{self.node.folder}/claims/{self.name}"
            os.makedirs(folder, exist_ok=True)
            os.chown(folder, 0, group)
            os.chmod(folder, 0o2770)
            return folder
        kind, source = ("Secret", volume["secret"]) if "secret" in volume else ("ConfigMap", volume["configMap"])
        data = self.node.data(kind, source.get("secretName") or source.get("name"))
        os.makedirs(folder, exist_ok=True)
        items = source.get("items") or [{"key": key, "path": key} for key in data]
        for item in items:
            path = f"{folder}/{item['path']}"
            with open(path, "wb") as file:
                file.write(data[item["key"]])
            os.chown(path, 0, group)
            os.chmod(path, source.get("defaultMode", 0o644))
        return folder

    def script(self):
        """Makes the container's file system and becomes its process."""
        place = f"{self.folder}/root"
        lines = ["set -e", f"mount -t tmpfs root {place}", f"cd {place}", "mkdir -p usr/local/bin etc proc dev tmp run var/lib/tollgate"]
        for folder in READ_ONLY:
            lines.append(f"mkdir -p {folder}; if [ -d /{folder} ]; then mount --bind -o ro /{folder} {folder}; fi")
        lines += ["ln -s usr/bin usr/sbin usr/lib usr/lib64 .", "cp /etc/ld.so.cache /etc/nsswitch.conf etc/", "mount --bind /dev dev",
                  "mount -t proc proc proc", f"cp {self.node.folder}/resolv.conf etc/"]
        lines.append("printf '%s\\n' 'root:x:0:0::/:/bin/sh' 'tollgate:x:10001:10001::/:/bin/sh' 'other:x:999:999::/:/bin/sh' > etc/passwd")
        image = self.container["image"].rsplit("/", 1)[-1].split(":")[0]
        programs = {f"tollgate-{image}": f"{self.node.programs}/tollgate-{image}", "tollgate-health": f"{ROOT}/deploy/docker/health"}
        if image == "operator":
            programs = {"tollgate": f"{self.node.programs}/tollgate"}
        for name, path in programs.items():
            if os.path.exists(path):
                lines.append(f"touch usr/local/bin/{name}; mount --bind -o ro {path} usr/local/bin/{name}")
        if image == "dashboard":
            lines.append(f"mkdir -p usr/share/tollgate/web; mount --bind -o ro {self.node.web} usr/share/tollgate/web")
        volumes = {one["name"]: one for one in self.spec.get("volumes", [])}
        for claim in self.owner["spec"].get("volumeClaimTemplates", []):
            volumes[claim["metadata"]["name"]] = {"name": claim["metadata"]["name"], "claim": True}
        for mount in self.container.get("volumeMounts", []):
            path, option = mount["mountPath"].lstrip("/"), "-o ro" if mount.get("readOnly") else ""
            lines.append(f"mkdir -p {path}; mount --bind {option} {self.volume(volumes[mount['name']])} {path}")
        lines += ["mount -o remount,ro .", f"exec chroot . {shlex.join(self.dress(self.command()))}"]
        return "\n".join(lines)

    def start(self):
        os.makedirs(f"{self.folder}/root", exist_ok=True)
        self.starts += 1
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen(["ip", "netns", "exec", self.name, "unshare", "-m", "sh", "-c", self.script()],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def execute(self, *command, timeout=30):
        """kubectl exec."""
        return subprocess.run(["nsenter", "-t", str(self.process.pid), "-n", "-m", "-r", "-w", *self.dress(list(command))],
                              capture_output=True, text=True, timeout=timeout, check=False)

    def execute_beside(self, program, *arguments, timeout=90):
        """kubectl debug: a program of another image, with the volumes, the user and the network of this container. The file is opened
        outside of the container's root."""
        with open(f"{self.node.programs}/{program}", "rb") as file:
            return subprocess.run(["nsenter", "-t", str(self.process.pid), "-n", "-m", "-r", "-w",
                                   *self.dress([f"/proc/self/fd/{file.fileno()}", *arguments])],
                                  capture_output=True, text=True, timeout=timeout, check=False, pass_fds=[file.fileno()])

    def port(self, name):
        return next(one["containerPort"] for one in self.container["ports"] if one["name"] == name)

    def probe(self, name):
        """Whether a probe succeeds; a container without that probe is healthy while it runs."""
        probe = self.container.get(name)
        if self.process.poll() is not None:
            return False
        if not probe:
            return True
        try:
            if "exec" in probe:
                return self.execute(*probe["exec"]["command"], timeout=20).returncode == 0
            get = probe["httpGet"]
            # More patient than a kubelet: this machine may be busy with other tests.
            with urllib.request.urlopen(f"http://{self.address}:{self.port(get['port'])}{get['path']}", timeout=10) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError, subprocess.TimeoutExpired):
            return False

    def metric(self, name):
        """The sum of a metric of the pod's process."""
        with urllib.request.urlopen(f"http://{self.address}:{self.port('ops')}/metrics", timeout=30) as answer:
            lines = answer.read().decode().split("\n")
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(rf"{name}[ {{]", line))

    def stop(self):
        """Stops a pod like a kubelet: the preStop command, SIGTERM, and SIGKILL after the grace. (exit code, when SIGTERM was sent,
        seconds in all)."""
        begin = time.monotonic()
        if hook := self.container.get("lifecycle", {}).get("preStop"):
            done = self.execute(*hook["exec"]["command"], timeout=60)
            assert done.returncode == 0, done.stderr
        told = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.ready = False
        try:
            code = self.process.wait(self.spec.get("terminationGracePeriodSeconds", 30) - (told - begin))
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        return code, told, time.monotonic() - begin

    def log(self):
        with open(f"{self.folder}/log", encoding="utf-8", errors="replace") as file:
            return file.read()


class Node:
    def __init__(self, folder, objects, given, programs, web):
        self.folder, self.objects, self.given = folder, objects, given
        self.programs, self.web, self.entries = programs, web, entry_points()
        self.network = Network()
        with open(f"{folder}/resolv.conf", "w", encoding="utf-8") as file:
            file.write(f"nameserver {NODE}\nsearch gate.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n")
        self.pods = {}
        for one in objects:
            if one["kind"] in ("Deployment", "StatefulSet"):
                for number in range(one["spec"]["replicas"]):
                    self.add(one, one["spec"]["template"], f"{one['metadata']['name']}-{number}")
        self.hooks = {}
        for one in objects:
            if one["kind"] in ("Job", "Pod"):
                self.hooks[one["metadata"]["name"]] = Pod(
                    self, one, one["spec"]["template"] if one["kind"] == "Job" else one, one["metadata"]["name"])
        everyone = [*self.pods.values(), *self.hooks.values()]
        policies = [one for one in objects if one["kind"] == "NetworkPolicy"]
        for pod in everyone:
            self.network.restrict(pod, policies, everyone)
        self.names = Names(self.lookup)

    def add(self, owner, template, name):
        self.pods[name] = Pod(self, owner, template, name)

    def of(self, component):
        return [one for one in self.pods.values() if one.component == component]

    def data(self, kind, name):
        """{key: bytes} of a ConfigMap or Secret of the chart, or of a Secret that an installation has."""
        if kind == "Secret" and name in self.given:
            return self.given[name]
        found = next((one for one in self.objects if one["kind"] == kind and one["metadata"]["name"] == name), None)
        assert found, f"{kind} {name} is neither in the chart nor given"
        decode = base64.b64decode if kind == "Secret" else str.encode
        return {key: decode(value) for key, value in found["data"].items()}

    def lookup(self, name):
        """The addresses of a Service; None: there is no such name."""
        name = name.lower().removesuffix(".gate.svc.cluster.local")
        service = next((one for one in self.objects if one["kind"] == "Service" and one["metadata"]["name"] == name), None)
        if not service:
            return None
        all_pods = service["spec"].get("publishNotReadyAddresses", False)
        return [pod.address for pod in self.pods.values()
                if pod.process and selects({"matchLabels": service["spec"]["selector"]}, pod.labels) and (pod.ready or all_pods)]

    def wait_ready(self, seconds, pods):
        """Waits until the readiness probes succeed; starts again what ended, as a kubelet does."""
        deadline = time.monotonic() + seconds
        waiting = list(pods)
        while waiting:
            for pod in waiting:
                if pod.process.poll() is not None:
                    pod.start()
                pod.ready = pod.probe("readinessProbe")
            waiting = [one for one in waiting if not one.ready]
            if waiting and time.monotonic() > deadline:
                raise AssertionError("\n".join(f"{one.name} is not ready: {one.log()[-1500:]}" for one in waiting))
            if waiting:
                time.sleep(0.3)

    def end(self):
        for pod in [*self.pods.values(), *self.hooks.values()]:
            if pod.process and pod.process.poll() is None:
                pod.process.kill()
                pod.process.wait()
