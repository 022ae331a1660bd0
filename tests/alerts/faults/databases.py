"""PostgreSQL managed by Patroni, with etcd, next to the observed cluster: monitored like in deploy/prometheus/ha, without TLS."""
import json
import pathlib
import urllib.request

import cluster
from faults.base import Fault

# Programs of the newest PostgreSQL.
BIN = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), default=pathlib.Path("none/none")).parent
# A process namespace, which ends with its first process; etcd and Patroni run as nobody.
NODE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "setpriv", "--pdeathsig", "KILL", "--reuid", "nobody", "--regid", "nogroup",
        "--clear-groups", "--")


class Databases(Fault):
    """Three etcd, a primary and its synchronous standby."""
    patience = 90

    @staticmethod
    def possible():
        return all(pathlib.Path(program).exists() for program in ("/usr/bin/patroni", "/usr/bin/etcd", BIN / "initdb"))

    def begin(self, observed):
        self.observed = observed
        self.folder = pathlib.Path(observed.folder) / f"databases-{type(self).__name__}"
        self.folder.mkdir()
        pathlib.Path(observed.folder).chmod(0o711)
        self.folder.chmod(0o777)
        self.ports = {name: [cluster.free_port() for _ in range(count)] for name, count in (
            ("client", 3), ("peer", 3), ("rest", 2), ("postgres", 2))}
        self.running = {}
        for number in range(3):
            self.start_etcd(number)
        for number in range(2):
            self.start_node(number)
        cluster.wait_for("a primary and its standby", 90, lambda: self.standby() is not None and self.says(1 - self.standby(), "patroni_primary"))
        self.targets = pathlib.Path(f"{observed.folder}/targets-databases.json")
        self.targets.write_text(json.dumps([
            {"targets": [f"127.0.0.1:{port}"], "labels": {"job": job, "instance": f"{job}-{number + 1}"}}
            for job, kind in (("patroni", "rest"), ("etcd", "client")) for number, port in enumerate(self.ports[kind])]))
        cluster.wait_for("their scrapes", 30, lambda: len(observed.query('up{job=~"patroni|etcd"} == 1')) == 5)
        self.fault()

    def fault(self):
        raise NotImplementedError

    def start_etcd(self, number):
        client, peer = (f"http://127.0.0.1:{self.ports[kind][number]}" for kind in ("client", "peer"))
        members = ",".join(f"etcd{one}=http://127.0.0.1:{port}" for one, port in enumerate(self.ports["peer"]))
        self.running[f"etcd{number}"] = self.observed.start(
            f"etcd{number}", *NODE, "/usr/bin/etcd", "--name", f"etcd{number}", "--data-dir", str(self.folder / f"etcd{number}"),
            "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", members, "--unsafe-no-fsync", "--logger", "zap")

    def start_node(self, number):
        name = f"node{number}"
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        (folder / "data/postmaster.pid").unlink(missing_ok=True)  # a process id of the ended namespace
        rest, postgres = (f"127.0.0.1:{self.ports[kind][number]}" for kind in ("rest", "postgres"))
        config = {
            "scope": "tollgate", "name": name, "restapi": {"listen": rest, "connect_address": rest},
            "etcd3": {"hosts": [f"127.0.0.1:{port}" for port in self.ports["client"]]},
            "bootstrap": {"dcs": {"ttl": 20, "loop_wait": 2, "retry_timeout": 7, "synchronous_mode": True,
                                  "postgresql": {"use_pg_rewind": True, "parameters": {"shared_buffers": "32MB", "wal_log_hints": "on"}}},
                          "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, {"auth": "trust"}]},
            "postgresql": {"listen": postgres, "connect_address": postgres, "data_dir": str(folder / "data"), "bin_dir": str(BIN),
                           "pgpass": str(folder / "pgpass"),
                           "authentication": {"superuser": {"username": "tollgate"}, "replication": {"username": "replicator"}},
                           "parameters": {"unix_socket_directories": str(folder), "fsync": "off"},
                           "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]}}
        file = self.folder / f"{name}.yaml"
        file.write_text(json.dumps(config))  # JSON is YAML
        self.running[name] = self.observed.start(name, *NODE, "/usr/bin/patroni", str(file))

    def says(self, number, metric):
        text = cluster.get(f"http://127.0.0.1:{self.ports['rest'][number]}/metrics")
        return f'\n{metric}{{scope="tollgate"}} 1\n' in text

    def standby(self):
        """The number of the synchronous standby."""
        return next((number for number in range(2) if self.says(number, "patroni_sync_standby")), None)

    def kill(self, name):
        self.running[name].kill()
        self.running[name].wait()

    def put_back(self, observed):
        self.targets.write_text("[]")
        for name in reversed(list(self.running)):
            self.kill(name)


class LostMember(Databases):
    """a member of etcd is killed; it is started again"""
    alerts = ("EtcdMemberMissing",)

    def fault(self):
        self.kill("etcd2")

    def end(self, observed):
        self.start_etcd(2)


class LostStandby(Databases):
    """the standby is killed; it is started again"""
    alerts = ("DatabaseWithoutStandby",)

    def fault(self):
        self.lost = self.standby()
        self.kill(f"node{self.lost}")

    def end(self, observed):
        self.start_node(self.lost)


class LostPrimary(Databases):
    """the primary is killed; the standby is promoted automatically"""
    alerts = ("DatabaseWithoutPrimary",)

    def fault(self):
        self.kill(f"node{1 - self.standby()}")


class LostConsensus(Databases):
    """two of three members of etcd are killed, so that Patroni ends the primary; they are started again"""
    alerts = ("DatabaseWithoutPrimary",)

    def fault(self):
        for number in (1, 2):
            self.kill(f"etcd{number}")

    def end(self, observed):
        for number in (1, 2):
            self.start_etcd(number)


class Paused(Databases):
    """Patroni is paused, and resumed"""
    alerts = ("DatabaseFailoverPaused",)

    def pause(self, value):
        asked = urllib.request.Request(f"http://127.0.0.1:{self.ports['rest'][0]}/config", json.dumps({"pause": value}).encode(),
                                       {"Content-Type": "application/json"}, method="PATCH")
        with cluster.DIRECT.open(asked, timeout=10):
            pass

    def fault(self):
        self.pause(True)

    def end(self, observed):
        self.pause(None)


FAULTS = (LostMember, LostStandby, LostPrimary, LostConsensus, Paused)
