"""What clients do to the gateway, and its certificate for them."""
import contextlib
import re
import socket
import ssl
import threading
import time

from faults.base import Calls, Fault, Stopped

MIB = 1 << 20


def connect(observed, host="127.0.0.1", tls=True):
    """Connects from one of the machine's own addresses, which count as separate clients."""
    plain = socket.create_connection(("127.0.0.1", observed.facts["port"]), timeout=10, source_address=(host, 0))
    return ssl._create_unverified_context().wrap_socket(plain) if tls else plain


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


class AmbiguousRequest(Calls):
    """requests whose field Connection two parsers read differently"""
    alerts = ("GatewayAmbiguousRequests",)
    pause = 0.5

    def call(self, observed):
        with connect(observed) as connection:
            connection.sendall(b'GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: "close"\r\n\r\n')
            connection.recv(1000)


class HalfRequests(Fault):
    """clients that do not finish their TLS handshake, or their head"""
    alerts = ("GatewaySlowClients",)

    def begin(self, observed):
        self.open = [connect(observed, f"127.9.0.{1 + number}", tls=number % 2 == 0) for number in range(24)]
        for connection in self.open[::2]:
            connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost:")

    def end(self, observed):
        for connection in self.open:
            connection.close()


class ManyLargeBodies(Calls):
    """more large bodies at once than are decoded"""
    alerts = ("GatewayRefusesLargeBodies",)

    def begin(self, observed):
        # Enough memory for all of them.
        self.gateway = observed.replace("gateway", lambda text: re.sub("memory_budget_bytes: .*", f"memory_budget_bytes: {512 * MIB}", text))
        super().begin(observed)

    def call(self, observed):
        part = b'{"type":"text","text":"a"},'
        text = b'{"model":"sim/model","max_tokens":1,"messages":[{"role":"user","content":[' + part * 9_900 + part[:-1] + b"]}]}"
        head = ("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {observed.facts['keys']['roomy']}\r\nContent-Length: {len(text)}\r\n\r\n").encode()
        with contextlib.ExitStack() as opened:
            connections = [opened.enter_context(connect(observed, f"127.10.0.{1 + number % 4}")) for number in range(110)]
            for connection in connections:
                connection.sendall(head + text[:-1])
            for connection in connections:
                connection.sendall(text[-1:])
            for connection in connections:
                connection.recv(1000)

    def put_back(self, observed):
        observed.restore("gateway", self.gateway)


class RouterDoesNotRead(Stopped):
    """the router hangs while requests come"""
    alerts = ("GatewayLinkQueues",)
    process = "inference-router"

    def begin(self, observed):
        super().begin(observed)
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(observed,), daemon=True) for _ in range(24)]
        for thread in self.threads:
            thread.start()

    def run(self, observed):
        body = {"model": "sim/model", "messages": [{"role": "user", "content": "word " * 50_000}], "max_tokens": 5}
        while not self.stop.is_set():
            with contextlib.suppress(OSError):
                observed.call("POST", "/v1/chat/completions", observed.facts["keys"]["roomy"], body)

    def end(self, observed):
        self.stop.set()
        super().end(observed)
        for thread in self.threads:
            thread.join()


FAULTS = (Idle, OneHost, Bodies, EdgeCertificate, AmbiguousRequest, HalfRequests, ManyLargeBodies, RouterDoesNotRead)
