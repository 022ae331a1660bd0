"""Runs the services of docker-compose.yml as a container engine would, with the programs of this build: each has the files
of its image, its mounts, its user without a privilege, a read-only root, only its networks, and processes of its own, which all end
with the first one."""
import contextlib
import os
import re
import shlex
import signal
import socket
import struct
import subprocess
import threading
import time

import compose
from compose import ROOT

# Users of the images, and programs of their entry points.
USERS = {"haproxy": 99, "postgres": 999, "redis": 999, "nobody": 65534, "472": 472, "10001:10001": 10001, "": 10001}
HAPROXY = ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
PROMETHEUS = ["prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
# Stands in for the entry point of PostgreSQL's image; Citus's image has the same one.
POSTGRES_IMAGES = ("postgres", "citusdata/citus")
POSTGRES = """#!/bin/sh
set -e
export PGDATA=/var/lib/postgresql/data PATH=$PATH:/usr/lib/postgresql/15/bin
shift
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth=scram-sha-256 --no-sync >/dev/null
  postgres -c fsync=off "$@" -c listen_addresses= & server=$!
  until pg_isready -q; do kill -0 $server && sleep 0.1; done
  export PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
  psql -q -U "$POSTGRES_USER" -d postgres -c "CREATE DATABASE $POSTGRES_USER TEMPLATE template0"
  for file in /docker-entrypoint-initdb.d/*; do [ ! -e "$file" ] || psql -q -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_USER" -f "$file"; done
  kill -INT $server && wait $server
fi
exec postgres -c listen_addresses='*' -c fsync=off "$@"
"""
# Images with only Debian's programs, and our files in them.
DEBIANS = {"patroni": {"deploy/postgres/database": "tollgate-database"}, "etcd": {"deploy/docker/health": "tollgate-health"}}
READ_ONLY = ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/share/zoneinfo", "usr/share/postgresql", "usr/share/prometheus", "etc/ssl"]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def entry_points():
    """{image: command} of our images, from the Dockerfile."""
    found, image = {}, ""
    with open(f"{ROOT}/deploy/docker/Dockerfile", encoding="utf-8") as file:
        for line in file:
            if stage := re.match(r"FROM \S+ AS (\S+)", line):
                image = stage[1]
            if line.startswith("ENTRYPOINT"):
                found[image] = [one.strip(' "') for one in line[line.index("[") + 1:line.index("]")].split(",")]
    return found


class Names:
    """The name server of one network's containers: names and aliases of what runs and shares a network with who asks."""

    def __init__(self, machine, address):
        self.machine = machine
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            query, client = self.socket.recvfrom(1024)
            with contextlib.suppress(IndexError, struct.error, UnicodeDecodeError):
                self.socket.sendto(self.answer(query, client[0]), client)

    def answer(self, query, client):
        labels, place = [], 12
        while query[place]:
            labels.append(query[place + 1:place + 1 + query[place]].decode())
            place += 1 + query[place]
        kind = struct.unpack("!H", query[place + 1:place + 3])[0]
        addresses = self.machine.lookup(".".join(labels).lower(), client)
        records = addresses if kind == 1 else []
        head = query[:2] + struct.pack("!HHHHH", 0x8580 | (0 if addresses else 3), 1, len(records), 0, 0)
        return head + query[12:place + 5] + b"".join(
            b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 1, 4) + socket.inet_aton(one) for one in records)


class Container:
    def __init__(self, machine, name, service):
        self.machine, self.name = machine, name
        self.become(service)
        self.folder, self.process, self.addresses = f"{machine.folder}/{name}", None, {}
        # Sources of the programs in our images, and of the project's files. Tests of upgrades change them.
        self.programs, self.root = machine.programs, ROOT
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        for place, network in enumerate(compose.networks(service)):
            address, prefix = machine.place(network)
            self.addresses[network] = address
            link = f"c{len(machine.containers)}e{place}"
            run("ip", "link", "add", link, "type", "veth", "peer", "name", f"eth{place}", "netns", name)
            run("ip", "link", "set", link, "master", network, "up")
            run("ip", "-n", name, "address", "add", f"{address}/{prefix}", "dev", f"eth{place}")
            run("ip", "-n", name, "link", "set", f"eth{place}", "up")

    def become(self, service):
        """Uses another description from its next start on, in the same networks."""
        self.service, self.image = service, service["image"].split(":")[0]

    def command(self):
        given = self.service.get("command", [])
        if self.image.startswith("tollgate/"):
            return self.machine.entries[self.image.removeprefix("tollgate/")] + given
        return {"haproxy": HAPROXY, "prom/prometheus": PROMETHEUS, "prom/alertmanager": ["prometheus-alertmanager", *given],
                "otel/opentelemetry-collector-contrib": [f"{self.machine.collector}", *given]}.get(self.image, given)

    def uid(self):
        return USERS[self.service.get("user", "")]

    def dress(self, command):
        """The command as the container's user, without a privilege, in the container's environment."""
        environment = [f"{name}={value}" for name, value in self.service.get("environment", {}).items()]
        return ["setpriv", f"--reuid={self.uid()}", f"--regid={self.uid()}", "--clear-groups", "--no-new-privs", "--bounding-set=-all",
                "--inh-caps=-all", "env", "-i", "PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/usr/lib/postgresql/15/bin",
                *environment, *command]

    def mounts(self):
        """(source, place, read-only)"""
        for text in self.service.get("volumes", []):
            source, place, *options = text.split(":")
            if not source.startswith((".", "/")):
                source = f"{self.machine.folder}/volumes/{source}"
                os.makedirs(source, exist_ok=True)
                os.chown(source, self.uid(), self.uid())  # as the folder in the image
            yield os.path.normpath(os.path.join(self.root, source)), place.lstrip("/"), "ro" in options
        for secret in self.service.get("secrets", []):
            yield os.path.join(ROOT, self.machine.project["secrets"][secret]["file"]), f"run/secrets/{secret}", True
        kind = self.image.removeprefix("tollgate/")
        for source, place in DEBIANS.get(kind, {}).items():
            yield f"{ROOT}/{source}", f"usr/local/bin/{place}", True
        if self.image != kind and kind not in DEBIANS:
            for program in ("tollgate", "tollgate-billing") if kind == "operator" else (f"tollgate-{kind}",):
                yield f"{self.programs}/{program}", f"usr/local/bin/{program}", True
            yield f"{ROOT}/deploy/docker/health", "usr/local/bin/tollgate-health", True
            if kind == "dashboard":
                yield self.machine.web, "usr/share/tollgate/web", True
        if self.image.startswith("otel/"):
            yield self.machine.collector, self.machine.collector.lstrip("/"), True
        if self.image in POSTGRES_IMAGES:
            yield f"{self.machine.folder}/docker-entrypoint.sh", "usr/local/bin/docker-entrypoint.sh", True

    def script(self):
        """Makes the container's file system and becomes its process."""
        lines = ["set -e", f"mount -t tmpfs root {self.folder}/root", f"cd {self.folder}/root", "mkdir -p etc proc dev tmp run"]
        for folder in READ_ONLY:
            lines.append(f"mkdir -p {folder}; if [ -d /{folder} ]; then mount --bind -o ro /{folder} {folder}; fi")
        lines += ["ln -s usr/bin bin; ln -s usr/sbin sbin; ln -s usr/lib lib; ln -s usr/lib64 lib64", "cp /etc/ld.so.cache /etc/nsswitch.conf etc/",
                  "mount --bind /dev dev", "mount -t tmpfs -o mode=1777,size=64m shm dev/shm", "mount -t proc proc proc",
                  f"echo 'nameserver {self.machine.gate(next(iter(self.addresses)))}' > etc/resolv.conf", "echo '127.0.0.1 localhost' > etc/hosts",
                  f"printf '%s\\n' 'root:x:0:0::/:/bin/sh' 'tollgate:x:{self.uid()}:{self.uid()}::/:/bin/sh' > etc/passwd"]
        for text in self.service.get("tmpfs", []):
            place, _, options = text.partition(":")
            lines.append(f"mkdir -p .{place}; mount -t tmpfs -o {options or 'mode=1777'} tmpfs .{place}")
        for source, place, read_only in self.mounts():
            make = f"mkdir -p {place}" if os.path.isdir(source) else f"mkdir -p {os.path.dirname(place)}; touch {place}"
            lines.append(f"{make}; mount --bind {'-o ro' if read_only else ''} {source} {place}")
        if self.service.get("read_only"):
            lines.append("mount -o remount,ro .")
        lines.append(f"exec chroot . {shlex.join(self.dress(self.command()))}")
        return "\n".join(lines)

    def start(self, output=None):
        os.makedirs(f"{self.folder}/root", exist_ok=True)
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.name, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", self.script()],
                stdin=subprocess.DEVNULL, stdout=output or log, stderr=output or log, start_new_session=True)

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def first(self):
        """The id of the container's first process, the child of unshare; 0: not started, or ended."""
        with contextlib.suppress(OSError):
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="utf-8") as file:
                found = file.read().split()
                return int(found[0]) if found else 0
        return 0

    def execute(self, *command, timeout=60):
        """docker compose exec."""
        return subprocess.run(["nsenter", "-t", str(self.first()), "-n", "-m", "-r", "-w", *self.dress(list(command))],
                              capture_output=True, text=True, errors="replace", timeout=timeout, check=False)

    def healthy(self):
        """Whether a container that does its work and ends has ended."""
        if self.name in self.machine.once:
            return self.process is not None and self.process.poll() == 0
        check = self.service.get("healthcheck")
        if not self.runs() or not check:
            return self.runs()
        kind, *command = check["test"]
        command = command if kind == "CMD" else ["sh", "-c", *command]
        try:
            return self.execute(*command, timeout=20).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def signal(self, number):
        """docker compose kill -s."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.first() or self.process.pid, number)

    def kill(self):
        """Kills all of its processes at once."""
        if self.runs():
            self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """docker compose stop; (exit code, whether it ended in its time)."""
        self.signal(getattr(signal, self.service.get("stop_signal", "SIGTERM")))
        try:
            return self.process.wait(compose.seconds(self.service.get("stop_grace_period", "10s"))), True
        except subprocess.TimeoutExpired:
            self.kill()
            return self.process.returncode, False

    def log(self, most=2000):
        with open(f"{self.folder}/log", encoding="utf-8", errors="replace") as file:
            return file.read()[-most:]


class Machine:
    """The services of a profile. absent: images without a stand-in here."""

    def __init__(self, folder, project, programs, web, collector="", absent=("grafana/grafana",)):
        self.folder, self.project, self.programs, self.web, self.collector = folder, project, programs, web, collector
        self.entries, self.containers, self.used = entry_points(), {}, {}
        self.once = {name for name, service in project["services"].items() if service.get("restart") == "no"}
        with open(f"{folder}/docker-entrypoint.sh", "w", encoding="utf-8") as file:
            file.write(POSTGRES)
        os.chmod(file.name, 0o755)
        run("mkdir", "-p", "/run/netns")
        run("mount", "-t", "tmpfs", "netns", "/run/netns")
        run("ip", "link", "set", "lo", "up")
        run("sysctl", "-q", "-w", "net.ipv4.ip_forward=0")  # networks do not reach each other
        self.subnets = {}
        for number, (name, network) in enumerate(project["networks"].items()):
            given = ((network or {}).get("ipam") or {}).get("config")
            self.subnets[name] = given[0]["subnet"] if given else f"10.99.{number}.0/24"
            run("ip", "link", "add", name, "type", "bridge")
            run("ip", "address", "add", f"{self.gate(name)}/24", "dev", name)
            run("ip", "link", "set", name, "up")
        for name, service in project["services"].items():
            if service["image"].split(":")[0] not in absent:
                self.containers[name] = Container(self, name, service)
        self.names = [Names(self, self.gate(name)) for name in project["networks"]]

    def another(self, name, its_name, command):
        """A container of the same service, with another command."""
        one = Container(self, its_name, {**self.project["services"][name], "command": command})
        # A new object: name servers are iterating over the old one.
        self.containers = {**self.containers, its_name: one}
        return one

    def gate(self, network):
        return self.subnets[network].replace(".0/24", ".1")

    def place(self, network):
        self.used[network] = self.used.get(network, 1) + 1
        return self.subnets[network].replace(".0/24", f".{self.used[network]}"), 24

    def lookup(self, name, client):
        """Resolves like Docker: the addresses in the first network of the caller that knows the name."""
        who = next((one for one in self.containers.values() if client in one.addresses.values()), None)
        for network in sorted(who.addresses if who else []):
            found = [one.addresses[network] for one in self.containers.values() if one.runs() and network in one.addresses and
                     (name == one.name or name in compose.networks(one.service)[network])]
            if found:
                return found
        return []

    def of(self, component):
        return [one for one in self.containers.values() if compose.component(one.name) == component]

    def wait_healthy(self, names, timeout):
        deadline, waiting = time.monotonic() + max(timeout, 240), list(names)
        while waiting:
            waiting = [name for name in waiting if not self.containers[name].healthy()]
            for name in waiting:
                if not self.containers[name].runs():
                    if name in self.once:
                        raise AssertionError(f"{name} ended with {self.containers[name].process.returncode}: {self.containers[name].log()}")
                    self.containers[name].start()  # restart: unless-stopped
            if waiting and time.monotonic() > deadline:
                raise AssertionError("\n".join(f"{name} is not healthy: {self.containers[name].log()}" for name in waiting))
            if waiting:
                time.sleep(0.2)

    def up(self, timeout=240, not_yet=()):
        """docker compose up --wait: each service starts when its dependencies are healthy."""
        pending = {name: one for name, one in self.containers.items() if name not in not_yet}
        wanted = list(pending)
        while pending:
            ready = [name for name, one in pending.items() if not set(one.service.get("depends_on", {})) & set(pending)]
            for name in ready:
                self.wait_healthy([other for other in pending[name].service.get("depends_on", {}) if other in self.containers], timeout)
                pending.pop(name).start()
        self.wait_healthy(wanted, timeout)

    def end(self):
        for one in self.containers.values():
            if one.process:
                one.kill()
