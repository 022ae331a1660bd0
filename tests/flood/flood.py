"""Floods of connections and bodies against a gateway that also serves a well-behaved client:

    flood.py TEST-CLUSTER --size small|full [--record PAGE]

While each flood lasts the client must get every answer, in full and in time, the memory of the process must stay within
its budget, and afterwards nothing may be left: connections, descriptors, counted memory, running requests, holds.
--record appends the figures to a page in Markdown. Everything is on the loopback interface; 127.x.y.z are many hosts.
"""
import argparse
import concurrent.futures
import datetime
import glob
import http.client
import json
import os
import re
import selectors
import socket
import subprocess
import sys
import threading
import time
import urllib.request

CHAT = "/v1/chat/completions"
MIB = 1 << 20
SIZES = {
    # max_connections 0: the default, as far as the descriptors allow. slowest: seconds until the client gets a response
    # during a flood; a run of the small size may share the machine.
    "small": {"max_connections": 1_500, "budget": 128 * MIB, "idle": 2_000, "senders": 100, "readers": 100,
              "uploads": 24, "token_ms": 20, "seconds": 3, "slowest": 60},
    "full": {"max_connections": 0, "budget": 512 * MIB, "idle": 20_000, "senders": 1_000, "readers": 1_000,
             "uploads": 100, "token_ms": 50, "seconds": 60, "slowest": 5},
}
# A flood lasts until the client has this many responses: a busy machine needs more time.
PROBES = 10
# Bound on everything that must happen.
PATIENCE = 60
KEYLESS_GROWTH = 16 * MIB


def host(number):
    """The address of one of many hosts."""
    return f"127.{1 + number // 60_000}.{number // 250 % 240}.{1 + number % 250}"


class Failures(list):
    def check(self, good, text):
        if not good:
            self.append(text)
            print("FAILED:", text, flush=True)


class Gateway:
    def __init__(self, cluster, size):
        flags = ["--threads", "2", "--log-level", "warn", "--credit-usd", "100000",
                 "--gateway", f"memory_budget_bytes: {size['budget']}"]
        if size["max_connections"]:
            flags += ["--gateway", f"max_connections: {size['max_connections']}"]
        self.process = subprocess.Popen([cluster, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("no cluster")
        facts = json.loads(line)
        self.port, self.pid, self.key = facts["port"], facts["pids"][0], facts["keys"]["good"]
        self.probe = None
        [addresses] = glob.glob(facts["dir"] + "/*.addresses")
        with open(addresses, encoding="utf-8") as file:
            self.admin = json.load(file)["admin"]

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=60)

    def resident(self):
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def metrics(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{self.admin}/metrics", timeout=20) as answer:
            text = answer.read().decode()
        return {name: float(value) for name, value in re.findall(r"^(tollgate_\S+) (\S+)$", text, re.M)}

    def total(self, name, metrics=None):
        found = metrics or self.metrics()
        return sum(value for key, value in found.items() if key.split("{")[0] == name)

    def over(self, end, ready=lambda: True):
        """Whether a flood that began has lasted long enough."""
        now = time.monotonic()
        return now >= end and (now >= end + PATIENCE or (len(self.probe.seconds) >= PROBES and ready()))

    def last(self, seconds):
        end = time.monotonic() + seconds
        while not self.over(end):
            time.sleep(0.05)

    def metrics_when(self, good):
        """Metrics that satisfy the condition, or the last ones."""
        end = time.monotonic() + PATIENCE
        while not good(metrics := self.metrics()) and time.monotonic() < end:
            time.sleep(0.1)
        return metrics

    def connect(self, source, receive_buffer=0):
        connection = socket.socket()
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(PATIENCE)
        connection.bind((source, 0))
        connection.connect(("127.0.0.1", self.port))
        return connection

    def head(self, fields="", path=CHAT, key=True):
        credential = f"Authorization: Bearer {self.key}\r\n" if key else ""
        return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{credential}{fields}\r\n".encode()


class Probe(threading.Thread):
    """The client during a flood: one request after the other, each on a new connection. Also monitors the memory."""

    def __init__(self, gateway, may_be_shed=False):
        super().__init__()
        self.gateway, self.may_be_shed = gateway, may_be_shed
        self.done = threading.Event()
        self.seconds, self.wrong = [], []
        self.shed = self.most_resident = 0

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=PATIENCE, source_address=("127.0.9.9", 0))
        try:
            connection.request(method, path, body, {"Authorization": "Bearer " + self.gateway.key,
                                                    "Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers
        finally:
            connection.close()

    def once(self, number):
        text = f"answer number {number}"
        body = json.dumps({"model": "sim/model", "messages": [{"role": "user", "content": "hi"}], "x_sim": {"text": text}})
        for method, path, sent, wanted in (("GET", "/v1/models", None, '"sim/model"'), ("POST", CHAT, body, text)):
            start = time.monotonic()
            try:
                status, got, headers = self.ask(method, path, sent)
            except (OSError, http.client.HTTPException) as error:
                self.wrong.append(f"{method} {path}: {error!r}")
                continue
            self.seconds.append(time.monotonic() - start)
            if status == 503 and self.may_be_shed and headers["retry-after"]:
                self.shed += 1
            elif status != 200 or wanted not in got:
                self.wrong.append(f"{method} {path}: {status} {got[:200]}")

    def run(self):
        number = 0
        while not self.done.is_set():
            self.once(number)
            number += 1
            self.most_resident = max(self.most_resident, self.gateway.resident())
            self.done.wait(0.02)


def hold_connections(port, count, first_host, hosts):
    """A process of its own, so that the descriptors of several add up: opens connections, waits for the end of its
    standard input, then closes them. Every other one has been served before."""
    held = []
    for i in range(count):
        connection = socket.socket()
        connection.settimeout(PATIENCE)
        try:
            connection.bind((host(first_host + i % hosts), 0))
            connection.connect(("127.0.0.1", port))
            if i % 2:
                connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        except OSError:
            connection.close()
            continue
        held.append(connection)
    print(len(held), flush=True)
    sys.stdin.read()


def hold(gateway, count, hosts):
    most = 9_000
    pieces = [min(most, count - start) for start in range(0, count, most)]
    held = [subprocess.Popen([sys.executable, __file__, "--hold", str(gateway.port), str(piece), str(i * hosts), str(hosts)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE) for i, piece in enumerate(pieces)]
    opened = sum(int(process.stdout.readline()) for process in held)

    def release():
        for process in held:
            process.stdin.close()
            process.stdout.close()
            process.wait()
    return opened, release


def flood_idle(gateway, size, failures):
    opened, release = hold(gateway, size["idle"], 200)
    limit = gateway.metrics()["tollgate_http_connections_limit"]
    metrics = gateway.metrics_when(lambda one: one["tollgate_http_connections"] >= min(opened, limit) * 0.9)
    failures.check(opened >= size["idle"] * 0.99, f"only {opened} connections could be opened")
    failures.check(metrics["tollgate_http_connections"] <= limit, "more connections than the limit")
    failures.check(metrics["tollgate_http_connections"] >= min(opened, limit) * 0.9, "connections were lost")
    gateway.last(size["seconds"])
    release()
    return (f"{opened} opened, {metrics['tollgate_http_connections']:.0f} held at most {limit:.0f}, "
            f"{gateway.total('tollgate_http_connections_evicted_total'):.0f} evicted")


def flood_two_hosts(gateway, size, failures):
    _, release = hold(gateway, min(size["idle"], 9_000), 2)
    time.sleep(1)
    metrics = gateway.metrics()
    limit = metrics["tollgate_http_connections_limit"]
    held = metrics["tollgate_http_connections"]
    failures.check(held <= limit / 2 + 10, f"two hosts hold {held} of {limit}")
    gateway.last(size["seconds"])
    release()
    return f"{held:.0f} of {limit:.0f} connections"


def trickle(gateway, connections, seconds, send, ready=lambda: True):
    """Calls send(connection, second) for each connection every second."""
    end = time.monotonic() + seconds
    second = 0
    while not gateway.over(end, ready):
        for connection in connections:
            try:
                send(connection, second)
            except OSError:
                pass  # closed by the gateway: too slow
        second += 1
        time.sleep(max(0.1, min(1, end - time.monotonic())))


def flood_slow_senders(gateway, size, failures):
    """Half of them send a body with a valid key, half a head."""
    bodies, heads = [], []
    for i in range(size["senders"]):
        connection = gateway.connect(host(i % 100))
        if i % 2:
            connection.sendall(gateway.head(f"Content-Length: {MIB}\r\n"))
            bodies.append(connection)
        else:
            heads.append(connection)
    text = gateway.head("X-Slow: " + "x" * 500 + "\r\n", key=False)
    most = 0

    def send(connection, second):
        nonlocal most
        if connection is bodies[0]:
            most = max(most, gateway.total("tollgate_http_memory_bytes"))
        connection.sendall(b" " * 4096 if connection in slow_bodies else text[second:second + 1])
    slow_bodies = set(bodies)
    trickle(gateway, bodies + heads, size["seconds"], send)
    failures.check(most > 0, "slow bodies are not counted")
    for connection in bodies + heads:
        connection.close()
    return f"{len(bodies)} bodies, {len(heads)} heads, {most / MIB:.0f} MiB counted"


def flood_slow_readers(gateway, size, failures):
    """Half of them read a little every second, half nothing: those are given up 30 s after
    their buffers are full."""
    body = json.dumps({"model": "sim/model", "stream": True, "messages": [{"role": "user", "content": "hi"}],
                       "x_sim": {"tokens": 100_000, "token_ms": size["token_ms"]}}).encode()
    readers = []
    for i in range(size["readers"]):
        connection = gateway.connect(host(i % 100), receive_buffer=4096)
        connection.sendall(gateway.head(f"Content-Length: {len(body)}\r\n") + body)
        readers.append(connection)
    reading = set(readers[::2])
    most = 0

    def receive(connection, _):
        nonlocal most
        if connection is readers[0]:
            most = max(most, gateway.metrics()["tollgate_http_requests_in_flight"])
        if connection in reading:
            connection.recv(4096)
    trickle(gateway, readers, size["seconds"], receive, lambda: most >= size["readers"])
    running = gateway.metrics()["tollgate_http_requests_in_flight"]
    failures.check(most >= size["readers"], f"only {most} of {size['readers']} streams were running")
    failures.check(running >= len(reading) * 0.9, f"only {running} of the {len(reading)} that read are left")
    for connection in readers:
        connection.close()
    return f"{most:.0f} streams, {running:.0f} at the end"


def flood_without_key(gateway, size, failures):
    """12 connections at a time, each with the largest body, on known and unknown paths."""
    before = gateway.resident()
    end = time.monotonic() + size["seconds"]
    piece = b"x" * 65_536
    sent = [0] * 12
    answers = [{} for _ in range(12)]
    most = 0

    def flood(number):
        i = 0
        while not gateway.over(end):
            i += 1
            path = (CHAT, "/v1/nothing", "/v1/messages")[i % 3]
            expected = ("401", "404", "401")[i % 3]
            length = ("Content-Length: 16777216\r\n", "Transfer-Encoding: chunked\r\n")[i % 2]
            with gateway.connect(host(number)) as connection:
                try:
                    connection.sendall(gateway.head(length, path, key=False) + (b"1000000\r\n" if i % 2 == 1 else b""))
                    for _ in range(256):
                        connection.sendall(piece)
                        sent[number] += len(piece)
                    status = connection.recv(12).decode()[9:12]
                except OSError as error:
                    status = type(error).__name__
                answers[number][status == expected] = answers[number].get(status == expected, 0) + 1
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        running = [pool.submit(flood, number) for number in range(12)]
        while not all(one.done() for one in running):
            most = max(most, gateway.resident())
            time.sleep(0.01)
        for one in running:
            one.result()
    right, wrong = (sum(one.get(key, 0) for one in answers) for key in (True, False))
    failures.check(right > 0 and wrong == 0, f"{wrong} of {right + wrong} answers without a key were wrong")
    failures.check(most - before < KEYLESS_GROWTH, f"grown by {(most - before) / MIB:.0f} MiB without a key")
    return f"{sum(sent) / MIB:.0f} MiB sent, {right} refused, grown by {max(0, most - before) / MIB:.1f} MiB"


def flood_large_bodies(gateway, size, failures):
    """More bodies with a valid key than the budget has room for, none of them complete until all are sent."""
    text = json.dumps({"model": "sim/model", "messages": [{"role": "user", "content": "x" * (16 * MIB - 200)}]}).encode()
    choice = selectors.DefaultSelector()
    answers = {}
    for i in range(size["uploads"]):
        connection = gateway.connect(host(i))
        connection.setblocking(False)
        data = memoryview(gateway.head(f"Content-Length: {len(text)}\r\n") + text[:-1])
        choice.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, {"left": data, "got": b""})
    end = time.monotonic() + 120
    most = 0
    waiting = size["uploads"]
    while waiting and time.monotonic() < end:
        most = max(most, gateway.total("tollgate_http_memory_bytes") if len(answers) % 8 == 0 else 0)
        for key, events in choice.select(0.1):
            state, connection = key.data, key.fileobj
            try:
                if events & selectors.EVENT_READ:
                    piece = connection.recv(65_536)
                    state["got"] += piece
                    if not piece or b"\r\n\r\n" in state["got"]:
                        answers[connection] = state["got"]
                if events & selectors.EVENT_WRITE and state["left"]:
                    state["left"] = state["left"][connection.send(state["left"][:MIB]):]
            except OSError:
                answers.setdefault(connection, state["got"])
            if connection in answers:
                choice.unregister(connection)
                waiting -= 1
            elif not state["left"]:
                choice.modify(connection, selectors.EVENT_READ, state)
                if all(not one.data["left"] for one in choice.get_map().values()):
                    waiting = 0  # all accepted bodies have been sent
    taken = [one.fileobj for one in choice.get_map().values()]
    for connection in taken:
        connection.setblocking(True)
        connection.settimeout(PATIENCE)
        connection.sendall(text[-1:])
        answers[connection] = connection.recv(65_536)
    statuses = [answer[9:12].decode() for answer in answers.values()]
    shed = [answer for answer in answers.values() if answer[9:12] == b"503"]
    failures.check(all(b"\r\nretry-after: " in answer for answer in shed), "a 503 without Retry-After")
    # 400: the prompt does not fit the model's window, which only a body that was read in full can show.
    failures.check(set(statuses) <= {"400", "503"}, f"answers {sorted(set(statuses))}")
    failures.check(shed and "400" in statuses, f"{len(shed)} of {len(statuses)} were refused")
    for connection in list(answers):
        connection.close()
    return f"{statuses.count('400')} of {len(statuses)} bodies of 16 MiB were taken, {most / MIB:.0f} MiB counted"


FLOODS = [("idle connections", flood_idle, False), ("two hosts", flood_two_hosts, False),
          ("slow senders", flood_slow_senders, False), ("slow readers", flood_slow_readers, False),
          ("bodies without a key", flood_without_key, False), ("large bodies with a key", flood_large_bodies, True)]


def wait_until_empty(gateway, size, descriptors, name, failures):
    """Nothing is left of a flood. The gateway may linger for 30 s on refused clients."""
    end = time.monotonic() + 120
    left = None
    while time.monotonic() < end:
        metrics = gateway.metrics()
        left = {"connections": metrics["tollgate_http_connections"], "counted bytes": metrics["tollgate_http_memory_bytes"],
                "running": metrics["tollgate_http_requests_in_flight"],
                "descriptors": max(0, gateway.descriptors() - descriptors)}
        # Idle connections to the engine are kept: a few more than before, by how many large requests ran at a time.
        if left["descriptors"] <= size["uploads"]:
            left["descriptors"] = 0
        if not any(left.values()):
            return
        time.sleep(0.1)
    failures.check(False, f"left after {name}: {left}")


def run_flood(gateway, size, flood, base, failures):
    name, function, may_be_shed = flood
    probe = gateway.probe = Probe(gateway, may_be_shed)
    probe.start()
    try:
        result = function(gateway, size, failures)
    finally:
        probe.done.set()
        probe.join()
    seconds = sorted(probe.seconds) or [0]
    failures.check(len(seconds) >= PROBES, f"{name}: only {len(seconds)} probes")
    failures.check(not probe.wrong, f"{name}: {len(probe.wrong)} wrong answers, for example {probe.wrong[:1]}")
    failures.check(seconds[-1] < size["slowest"], f"{name}: an answer took {seconds[-1]:.1f} s")
    growth = probe.most_resident - base["resident"]
    # The budget counts bodies and unsent answers; sockets and the allocator need additional memory.
    failures.check(growth < size["budget"] * 1.1, f"{name}: grown by {growth / MIB:.0f} MiB")
    wait_until_empty(gateway, size, base["descriptors"], name, failures)
    row = (name, result, f"{len(seconds)}" + (f", {probe.shed} of them 503" if probe.shed else ""),
           f"{seconds[len(seconds) // 2] * 1e3:.0f} / {seconds[-1] * 1e3:.0f} ms", f"{growth / MIB:.0f} MiB")
    print(" | ".join(row), flush=True)
    return row


def record(page, size_name, size, rows):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    with open(page, "a", encoding="utf-8") as file:
        file.write(f"\n### flood, {size_name}, {datetime.date.today()}, commit {commit or 'unknown'}\n\n"
                   f"Memory budget {size['budget'] // MIB} MiB, {size['seconds']} s for each flood, {os.cpu_count()} processors.\n\n"
                   "| flood | what | answers to the client during it, all correct | median / slowest | growth of the process |\n"
                   "|---|---|---|---|---|\n")
        file.writelines("| " + " | ".join(row) + " |\n" for row in rows)


def main():
    if sys.argv[1] == "--hold":
        return hold_connections(*map(int, sys.argv[2:]))
    parser = argparse.ArgumentParser()
    parser.add_argument("cluster")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--record")
    flags = parser.parse_args()
    size = SIZES[flags.size]
    failures = Failures()
    gateway = Gateway(flags.cluster, size)
    try:
        warm = Probe(gateway)
        for number in range(300):  # the caches of the ledger's database fill
            warm.once(number)
        failures.check(not warm.wrong, f"before any flood: {warm.wrong[:1]}")
        base = {"resident": gateway.resident(), "descriptors": gateway.descriptors()}
        rows = [run_flood(gateway, size, flood, base, failures) for flood in FLOODS]
    finally:
        # A process that does not stop in an orderly way has crashed, or kept a hold.
        failures.check(gateway.stop() == 0, "Tollgate did not stop cleanly")
    if not failures and flags.record:
        record(flags.record, flags.size, size, rows)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
