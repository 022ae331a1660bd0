"""The faults that fire alerts, for prove_alerts.py. A fault begins, lasts while its alerts come, and ends."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import sqlite3
import ssl
import threading
import time

import cluster

MIB = 1 << 20
FLAGS = ("--gateway", "max_connections: 200", "--gateway", f"memory_budget_bytes: {48 * MIB}",
         "--router", "max_body_bytes: 300000", "--ratelimits", "2")


class Fault:
    alerts = ()
    ends = True  # else with the next restart of the process

    def begin(self, observed):
        raise NotImplementedError

    def end(self, observed):
        pass


class Stopped(Fault):
    process = ""

    def begin(self, observed):
        self.pid = observed.pid_of(self.process)
        os.kill(self.pid, signal.SIGSTOP)

    def end(self, observed):
        os.kill(self.pid, signal.SIGCONT)


class Calls(Fault):
    """Calls that go on until the alerts have come."""

    def begin(self, observed):
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(observed,))
        self.thread.start()

    def run(self, observed):
        while not self.stop.is_set():
            with contextlib.suppress(OSError):
                self.call(observed)
            self.stop.wait(0.05)

    def end(self, observed):
        self.stop.set()
        self.thread.join()

    def call(self, observed):
        raise NotImplementedError


class CatalogStops(Stopped):
    """the catalog process hangs"""
    alerts = ("ProcessDown",)
    process = "catalog"


class LimiterStops(Calls):
    """one of two rate limiters hangs while requests come"""
    alerts = ("ReplicaNotUsed",)
    stopped = ("ratelimit",)

    def begin(self, observed):
        self.pids = [observed.pid_of(name) for name in self.stopped]
        for pid in self.pids:
            os.kill(pid, signal.SIGSTOP)
        super().begin(observed)

    def end(self, observed):
        for pid in self.pids:
            os.kill(pid, signal.SIGCONT)
        super().end(observed)

    def call(self, observed):
        observed.chat(key=observed.facts["keys"]["roomy"])


class LimitersStop(LimiterStops):
    """all rate limiters hang while requests come"""
    alerts = ("GatewayWithoutLimiter",)
    stopped = ("ratelimit", "ratelimit-2")


class RedisStops(Fault):
    """Redis is stopped"""
    alerts = ("LimiterWithoutRedis",)

    def begin(self, observed):
        observed.redis.terminate()
        observed.redis.wait()

    def end(self, observed):
        observed.start_redis()


class BillingStops(Stopped):
    """billing hangs while an answer ends"""
    alerts = ("SettlementsWait", "AuditCopyLags")
    process = "billing"

    def begin(self, observed):
        running = threading.Thread(target=observed.chat, args=({"tokens": 60, "token_ms": 100},), kwargs={"stream": True})
        running.start()
        router = observed.processes()["inference-router"]
        cluster.wait_for("a running answer", 10, lambda: "tollgate_router_running_requests 1" in observed.metrics_of(router))
        super().begin(observed)
        self.running = running

    def end(self, observed):
        super().end(observed)
        self.running.join()


class EngineErrors(Calls):
    """an engine answers 500"""
    alerts = ("EnginesFail", "AvailabilityBurnsFast", "AvailabilityBurns", "AvailabilityBurnsSlowly")

    def call(self, observed):
        observed.chat({"status": 500, "error_body": "no"})

    def end(self, observed):
        super().end(observed)
        for _ in range(5):
            observed.chat()


class SlowEngine(Fault):
    """an engine takes more than 5 s to its first token"""
    alerts = ("FirstTokenBurnsFast", "FirstTokenBurns", "FirstTokenBurnsSlowly")

    def begin(self, observed):
        self.running = [threading.Thread(target=observed.chat, args=({"tokens": 5, "delay_ms": 6000},), kwargs={"stream": True}) for _ in range(8)]
        for thread in self.running:
            thread.start()

    def end(self, observed):
        for thread in self.running:
            thread.join()
        for _ in range(30):
            observed.chat(stream=True)


class AbsurdUsage(Calls):
    """an engine reports absurd usage"""
    alerts = ("EngineUsageImplausible",)

    def call(self, observed):
        observed.chat({"tokens": 5, "usage": "absurd"}, stream=True)


class SilentEngine(Fault):
    """an engine hangs within an answer"""
    alerts = ("EngineAboveBounds",)

    def begin(self, observed):
        self.running = threading.Thread(target=observed.chat, args=({"tokens": 50, "hang_after_tokens": 5},), kwargs={"stream": True})
        self.running.start()

    def end(self, observed):
        self.running.join()


class Catalog(Fault):
    def begin(self, observed):
        self.file = pathlib.Path(observed.facts["dir"]) / "models.yaml"
        self.text = self.file.read_text()
        self.write(self.changed(self.text))

    def write(self, text):
        fresh = self.file.with_suffix(".new")
        fresh.write_text(text)
        os.replace(fresh, self.file)

    def end(self, observed):
        self.write(self.text)


class BadCatalog(Catalog):
    """the catalog file is not valid"""
    alerts = ("CatalogFileRefused",)

    def changed(self, text):
        return text + "\nno_such_field: 1\n"


class DeadEngines(Catalog):
    """all engines are at an address where nothing listens"""
    alerts = ("NoEngines",)

    def changed(self, text):
        return re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:9", text)


class DeadEngine(Catalog):
    """one engine of the catalog does not answer; it ends when it is taken out"""
    alerts = ("EngineDown",)

    def begin(self, observed):
        self.file = pathlib.Path(observed.facts["dir"]) / "models.yaml"
        self.text = self.file.read_text()  # has an engine that nothing listens for

    def end(self, observed):
        alive = f"http://127.0.0.1:{observed.facts['engine_port']}"
        self.write(re.sub(r"http://127\.0\.0\.1:\d+", alive, self.text))


class Idle(Fault):
    """connections that send nothing, of many hosts"""
    alerts = ("GatewayAlmostFull", "GatewayEvictsConnections")

    def begin(self, observed):
        self.open = []
        for number in range(260):
            with contextlib.suppress(OSError):
                self.open.append(socket.create_connection(("127.0.0.1", observed.facts["port"]), source_address=(f"127.7.0.{1 + number % 200}", 0)))

    def end(self, observed):
        for connection in self.open:
            connection.close()


class OneHost(Fault):
    """more connections of one host than its share"""
    alerts = ("GatewayRefusesConnections",)

    def begin(self, observed):
        self.open = []
        for _ in range(90):
            with contextlib.suppress(OSError):
                self.open.append(socket.create_connection(("127.0.0.1", observed.facts["port"]), source_address=("127.8.0.1", 0)))

    def end(self, observed):
        for connection in self.open:
            connection.close()


class Bodies(Fault):
    """bodies that fill the memory budget and do not end"""
    alerts = ("GatewayMemoryShort", "GatewayShedsLoad")

    def begin(self, observed):
        self.open = []
        context = ssl._create_unverified_context()
        for number in range(4):
            plain = socket.create_connection(("127.0.0.1", observed.facts["port"]))
            connection = context.wrap_socket(plain)
            connection.settimeout(5)
            head = ("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    f"Authorization: Bearer {observed.facts['keys']['good']}\r\nContent-Length: {6 * MIB}\r\n\r\n")
            with contextlib.suppress(OSError):
                connection.sendall(head.encode() + b'{"model":"' + b"x" * (5 * MIB))
            self.open.append(connection)

    def end(self, observed):
        for connection in self.open:
            connection.close()


class LargeBody(Calls):
    """bodies above the router's bound"""
    alerts = ("RouterRefusesRequests",)

    def call(self, observed):
        observed.call("POST", "/v1/chat/completions", None, {"model": "sim/model", "messages": [{"role": "user", "content": "word " * 70_000}], "max_tokens": 5})


class GatewayStops(Stopped):
    """a gateway stops while a key is made"""
    alerts = ("KeyChangesActLate",)
    process = "gateway"

    def begin(self, observed):
        super().begin(observed)
        observed.operator("key", "create", "--workspace", observed.facts["workspaces"]["good"], "--name", "late")
        time.sleep(2)  # longer than the bound
        os.kill(self.pid, signal.SIGCONT)


class WrongCaller(Fault):
    """the certificate of a gateway is used for an admin call"""
    alerts = ("CallsRefusedBetweenProcesses",)

    def begin(self, observed):
        observed.operator("workspace", "list", certificate="gateway")


class EdgeCertificate(Fault):
    """the certificate for clients has 5 days left; it is renewed"""
    alerts = ("EdgeCertificateExpires",)

    def begin(self, observed):
        observed.make_edge_certificate(days=5)
        observed.call("GET", "/v1/models")

    def end(self, observed):
        observed.make_edge_certificate(days=90)
        time.sleep(2)  # files are read once a second
        observed.call("GET", "/v1/models")


class OwnCertificate(Fault):
    """a certificate for calls has 5 days left; it is renewed"""
    alerts = ("CertificateExpires",)

    def begin(self, observed):
        folder = f"{observed.folder}/tls"
        name = pathlib.Path(f"{observed.folder}/name.cnf")
        name.write_text("subjectAltName=URI:spiffe://tollgate/svc/catalog\n")
        observed.openssl("req", "-new", "-key", f"{folder}/catalog/private_key.pem", "-subj", "/CN=catalog", "-out", "short.csr")
        observed.openssl("x509", "-req", "-in", "short.csr", "-CA", f"{folder}/authority.pem", "-CAkey", f"{folder}/authority.key",
                         "-set_serial", "4711", "-days", "5", "-extfile", str(name), "-out", "short.pem")
        os.replace(f"{observed.folder}/short.pem", f"{folder}/catalog/certificate.pem")

    def end(self, observed):
        observed.renew_certificates()


class MailServerDown(Fault):
    """the mail server is down"""
    alerts = ("MailsWait",)
    ends = False

    def begin(self, observed):
        observed.operator("user", "invite", "ann@example.test", "-w", observed.facts["workspaces"]["good"], "--role", "owner")


class LedgerCheckpoints(Fault):
    """the file of the ledger's checkpoints cannot be written"""
    alerts = ("LedgerCheckpointsFail",)

    def begin(self, observed):
        self.file = f"{observed.folder}/ledger.checkpoints"
        os.rename(self.file, self.file + ".kept")
        os.mkdir(self.file)

    def end(self, observed):
        os.rmdir(self.file)
        os.rename(self.file + ".kept", self.file)


class RollUps(Calls):
    """the database refuses to write a roll-up"""
    alerts = ("LedgerRollUpsFail",)

    def change(self, observed, statement):
        with contextlib.closing(sqlite3.connect(f"{observed.facts['dir']}/billing.db", timeout=20)) as database:
            database.execute(statement)
            database.commit()

    def begin(self, observed):
        self.change(observed, "CREATE TRIGGER refused BEFORE INSERT ON workspace_quarter BEGIN SELECT RAISE(ABORT, 'refused'); END")
        super().begin(observed)

    def call(self, observed):
        observed.chat()

    def end(self, observed):
        super().end(observed)
        self.change(observed, "DROP TRIGGER refused")


class ChangedEntry(Fault):
    """an amount in the ledger is changed; it is put back"""
    alerts = ("LedgerDoesNotVerify",)

    def change(self, observed, by):
        database = sqlite3.connect(f"{observed.facts['dir']}/billing.db", timeout=20)
        database.execute("UPDATE entry SET amount = amount + ? WHERE workspace = ? AND sequence = 1", (by, observed.facts["workspaces"]["good"]))
        database.commit()
        database.close()
        observed.operator("verify-ledger")

    def begin(self, observed):
        self.change(observed, 1)

    def end(self, observed):
        self.change(observed, -1)


FAULTS = (CatalogStops, LimiterStops, LimitersStop, RedisStops, BillingStops, EngineErrors, SlowEngine, AbsurdUsage, SilentEngine, BadCatalog, DeadEngine,
          DeadEngines, Idle, OneHost, Bodies, LargeBody, GatewayStops, WrongCaller, EdgeCertificate, OwnCertificate, MailServerDown,
          LedgerCheckpoints, RollUps, ChangedEntry)
