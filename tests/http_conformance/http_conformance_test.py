"""HTTP conformance towards real clients and raw sockets, in plain text and over TLS:

    http_conformance_test.py TEST-CLUSTER ENGINE-SIM

The clients are curl, Python's http.client and Node's fetch (undici); raw sockets send bytes that no client sends.
"""
import asyncio
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

CLUSTER, ENGINE = sys.argv[1:3]
CHAT = "/v1/chat/completions"
LIMIT = 16 * 1024 * 1024
NODE = shutil.which("node")


def setUpModule():
    global folder, authority
    folder = tempfile.mkdtemp()
    authority = folder + "/authority.pem"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=authority", "-keyout", folder + "/authority.key", "-out", authority)
    certify("edge")


def tearDownModule():
    shutil.rmtree(folder)


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def certify(name, names="DNS:localhost,IP:127.0.0.1", days=1):
    """Writes a new certificate and key for localhost, replacing those of that name. Negative days: it has expired."""
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name,
            "-keyout", folder + "/new.key", "-out", folder + "/new.csr")
    with open(folder + "/names", "w", encoding="utf-8") as file:
        file.write(f"subjectAltName={names}\n")
    openssl("x509", "-req", "-in", folder + "/new.csr", "-CA", authority, "-CAkey", folder + "/authority.key",
            "-CAcreateserial", "-days", str(days), "-extfile", folder + "/names", "-out", folder + "/new.pem")
    os.replace(folder + "/new.key", f"{folder}/{name}.key")
    os.replace(folder + "/new.pem", f"{folder}/{name}.pem")


def edge_tls(name="edge"):
    return f"edge_tls: {{certificate_file: {folder}/{name}.pem, private_key_file: {folder}/{name}.key}}"


class Cluster:
    def __init__(self, *flags):
        self.process = subprocess.Popen([CLUSTER, "--log-level", "warn", "--gateway", "keep_alive_seconds: 1", *flags],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("no cluster")
        self.facts = json.loads(line)

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait() != 0:
            raise AssertionError("Tollgate did not stop cleanly")


def question(stream=False, sim=None, **more):
    body = {"model": "sim/model", "messages": [{"role": "user", "content": "hello there"}], **more}
    if stream:
        body["stream"] = True
    if sim:
        body["x_sim"] = sim
    return json.dumps(body)


class Raw:
    """One connection, read in pieces as received: over TLS, record by record."""

    def __init__(self, port, tls, receive_buffer=0):
        plain = socket.socket()
        if receive_buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.settimeout(60)
        plain.connect(("127.0.0.1", port))
        self.socket = tls.wrap_socket(plain, server_hostname="localhost") if tls else plain
        self.pieces = []
        self.text = ""

    def send(self, text):
        self.socket.sendall(text.encode())

    def until(self, mark):
        """Reads until the text was received, or to the end; with "" to the end."""
        while not mark or mark not in self.text:
            try:
                piece = self.socket.recv(65536).decode()
            except TimeoutError as late:
                raise AssertionError(f"{mark!r} did not arrive, but {self.text!r}") from late
            if not piece:
                break
            self.pieces.append(piece)
            self.text += piece
        return self.text

    def close(self):
        self.socket.close()


class Conformance:
    tls = None  # the client's, of a cluster with TLS
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.aborts = []  # how long each took, in seconds
        cls.cluster = Cluster("--keep-requests", *cls.flags)
        cls.facts = cls.cluster.facts
        cls.port = cls.facts["port"]
        cls.key = cls.facts["keys"]["good"]
        cls.url = f"{cls.scheme}://localhost:{cls.port}"

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        if cls.aborts and min(cls.aborts) >= 0.5:
            raise AssertionError(f"no engine request was aborted in time: {cls.aborts}")

    def raw(self, **more):
        connection = Raw(self.port, self.tls, **more)
        self.addCleanup(connection.close)
        return connection

    def head(self, path=CHAT, fields="", method="POST", version="HTTP/1.1"):
        return (f"{method} {path} {version}\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n"
                f"Content-Type: application/json\r\n{fields}")

    def ask(self, body, fields="", **more):
        return self.head(fields=fields + f"Content-Length: {len(body)}\r\n\r\n", **more) + body

    def http(self):
        if self.tls:
            connection = http.client.HTTPSConnection("localhost", self.port, timeout=30, context=self.tls)
        else:
            connection = http.client.HTTPConnection("localhost", self.port, timeout=30)
        self.addCleanup(connection.close)
        return connection

    def curl(self, *arguments, path=CHAT, given=None):
        command = ["curl", "-sS", "--http1.1", "--max-time", "30", "--noproxy", "*", "--cacert", authority,
                   "-H", "Authorization: Bearer " + self.key, "-H", "Content-Type: application/json", *arguments,
                   self.url + path]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def node(self, script):
        """Runs the script, which may call `ask(path, body, more)`; returns its output."""
        start = f"""
            const headers = {{authorization: "Bearer {self.key}", "content-type": "application/json"}};
            const ask = (path, body, more) => fetch("{self.url}" + path, {{method: "POST", headers, body, ...more}});
        """
        environment = {**os.environ, "NODE_EXTRA_CA_CERTS": authority, "NO_PROXY": "localhost"}
        done = subprocess.run([NODE, "--input-type=module", "-e", start + script], capture_output=True, text=True,
                              timeout=60, check=False, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def engine_request(self, tag):
        connection = http.client.HTTPConnection("127.0.0.1", self.facts["engine_port"], timeout=60)
        connection.request("GET", "/sim/requests")
        found = [request for request in json.load(connection.getresponse())["requests"] if request["tag"] == tag]
        connection.close()
        return found[0] if found else None

    def expect_abort(self, tag, leave):
        deadline = time.monotonic() + 60
        while not (self.engine_request(tag) or {}).get("running"):
            self.assertLess(time.monotonic(), deadline)
        leave()
        self.expect_stopped(tag)

    def expect_stopped(self, tag):
        """The engine request must be aborted within 500 ms after the client disconnected (decision 7). A busy machine delays some:
        tearDownClass wants one that was in time."""
        began = time.monotonic()
        while self.engine_request(tag)["running"]:
            self.assertLess(time.monotonic(), began + 60)
        self.aborts.append(time.monotonic() - began)
        self.assertTrue(self.engine_request(tag)["aborted"])

    # Raw sockets.

    def test_stream_has_its_headers_and_every_event_arrives_in_one_piece(self):
        raw = self.raw()
        raw.send(self.ask(question(stream=True, sim={"tokens": 20, "token_ms": 40})))
        head = raw.until("0\r\n\r\n").split("\r\n\r\n")[0].lower()
        for field in ("content-type: text/event-stream; charset=utf-8", "cache-control: no-cache", "x-accel-buffering: no",
                      "x-request-id: ", "request-id: ", "transfer-encoding: chunked"):
            self.assertIn("\r\n" + field, head)
        # One read per event, unless the machine is busy enough that several are read at once.
        self.assertGreater(len(raw.pieces), 2)
        for piece in raw.pieces:
            self.assertTrue(piece.endswith(("\n\n\r\n", "0\r\n\r\n")), piece)

    def test_pipelined_requests_are_answered_in_order_behind_a_stream(self):
        raw = self.raw()
        raw.send(self.ask(question(stream=True, sim={"text": "first answer", "token_ms": 5})) +
                 self.ask(question(sim={"text": "second answer"})) + self.head("/v1/models", "\r\n", "GET") +
                 self.ask(question(stream=True, sim={"text": "fourth answer"}), "Connection: close\r\n"))
        text = raw.until("")
        marks = ["first", "[DONE]", "second answer", '"object":"list"', "fourth", "[DONE]"]
        places = [text.index(marks[0])]
        for mark in marks[1:]:
            places.append(text.index(mark, places[-1] + 1))
        self.assertEqual(text.count("HTTP/1.1 200 OK\r\n"), 4)

    def test_half_closed_client_gets_the_whole_response(self):
        for stream in (True, False):
            raw = self.raw()
            raw.send(self.ask(question(stream=stream, sim={"tokens": 30, "token_ms": 20})))
            if self.tls:
                # SSLSocket.unwrap would wait for the peer's end: only the socket is half-closed.
                socket.socket.shutdown(raw.socket, socket.SHUT_WR)
            else:
                raw.socket.shutdown(socket.SHUT_WR)
            text = raw.until("")
            self.assertIn("data: [DONE]" if stream else '"finish_reason":"stop"', text)
            self.assertTrue(text.endswith("0\r\n\r\n" if stream else "}"), text[-200:])

    def test_expect_continue(self):
        body = question()
        raw = self.raw()
        raw.send(self.head(fields=f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"))
        self.assertEqual(raw.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n")
        raw.send(body)
        self.assertIn("HTTP/1.1 200 OK\r\n", raw.until('"usage"'))
        for path, length, status in ((CHAT, LIMIT + 1, 400), ("/v1/nothing", 10, 404)):
            raw = self.raw()
            raw.send(self.head(path, f"Expect: 100-continue\r\nContent-Length: {length}\r\n\r\n"))
            self.assertTrue(raw.until("").startswith(f"HTTP/1.1 {status} "), raw.text)
        raw = self.raw()
        raw.send(self.ask(question(), "Expect: 200-ok\r\n"))
        self.assertTrue(raw.until("").startswith("HTTP/1.1 400 "), raw.text)

    # Decision 46: the response is sent after the head, with and without Expect, whatever the length is.
    def test_a_caller_without_a_valid_key_is_refused_before_the_body(self):
        keys = self.cluster.facts["keys"]
        # The first key fails its checksum; the others are looked up.
        flipped = self.key[:-1] + ("a" if self.key[-1] != "a" else "b")
        for key, path, method, status in (
                (None, CHAT, "POST", 401), (None, "/v1/messages", "POST", 401), (flipped, CHAT, "POST", 401),
                (keys["revoked"], CHAT, "POST", 401), (keys["disabled"], CHAT, "POST", 403),
                (None, "/v1/nothing", "POST", 404), (self.key, CHAT, "HEAD", 404), (None, "/v1/models", "GET", 400),
                (self.key, CHAT, "POST", 400)):
            for length in (f"Content-Length: {LIMIT + 1}", f"Content-Length: {LIMIT}", "Transfer-Encoding: chunked"):
                too_large = length.endswith(str(LIMIT + 1))  # checked first, with the framing
                if key == self.key and method == "POST" and not too_large:
                    continue  # accepted
                for expect in ("", "Expect: 100-continue\r\n"):
                    with self.subTest(key=key, path=path, length=length, expect=expect):
                        raw = self.raw()
                        credential = f"Authorization: Bearer {key}\r\n" if key else ""
                        raw.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{credential}{expect}{length}\r\n\r\n")
                        wanted = 400 if too_large else status
                        self.assertTrue(raw.until("").startswith(f"HTTP/1.1 {wanted} "), raw.text)

    def test_chunked_body_with_extensions_and_trailers(self):
        body = question(sim={"text": "well read"})
        raw = self.raw()
        raw.send(self.head(fields="Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n") + f"1;a=b\r\n{body[0]}\r\n")
        raw.send(f'{len(body) - 1:X};x="y"\r\n{body[1:]}\r\n0\r\nAuthorization: Bearer none\r\nX: y\r\n\r\n')
        self.assertIn("well read", raw.until(""))

    def test_http_1_0_gets_a_plain_stream_that_ends_with_the_connection(self):
        raw = self.raw()
        raw.send(self.ask(question(stream=True, sim={"tokens": 5}), version="HTTP/1.0"))
        text = raw.until("")
        self.assertTrue(text.endswith("data: [DONE]\n\n"), text)
        self.assertNotIn("transfer-encoding", text)
        self.assertIn("connection: close", text)

    def test_head_is_get_without_a_body(self):
        for path in ("/v1/models", "/healthz"):
            raw = self.raw()
            raw.send(self.head(path, "\r\n", "HEAD") + self.head(path, "Connection: close\r\n\r\n", "GET"))
            first, get, body = raw.until("").split("\r\n\r\n", 2)
            self.assertTrue(first.startswith("HTTP/1.1 200 ") and get.startswith("HTTP/1.1 200 "), raw.text)
            self.assertIn(f"content-length: {len(body)}", first)

    def test_head_and_options_are_unmatched_methods(self):
        for path in (CHAT, "/v1/messages"):
            raw = self.raw()
            raw.send(self.head(path, "\r\n", "HEAD") + self.head(path, "Connection: close\r\n\r\n", "OPTIONS"))
            first, options = raw.until("").split("\r\n\r\n", 1)
            self.assertTrue(first.startswith("HTTP/1.1 404 ") and options.startswith("HTTP/1.1 404 "), raw.text)
            self.assertNotIn("content-length: 0", first)
            self.assertIn('"not_found"', options)

    def test_forwarded_headers_of_clients_are_ignored(self):
        fields = ("X-Forwarded-For: 6.6.6.6, nonsense\r\nX-Forwarded-For: ::1\r\nForwarded: for=6.6.6.6;proto=http\r\n"
                  "Via: 1.0 x, 1.1 y\r\nX-Forwarded-Proto: gopher\r\nX-Forwarded-Host: evil\r\nX-Real-IP: 6.6.6.6\r\n"
                  "Max-Forwards: 0\r\nProxy-Connection: close\r\nX-HTTP-Method-Override: DELETE\r\n")
        raw = self.raw()
        raw.send(self.ask(question(), fields) + self.ask(question(), "Connection: close\r\n"))
        self.assertEqual(raw.until("").count("HTTP/1.1 200 OK\r\n"), 2)

    def test_a_silent_stream_gets_comments(self):
        raw = self.raw()
        raw.send(self.ask(question(stream=True, sim={"tokens": 2, "delay_ms": 2500})))
        self.assertIn("\r\n: ", raw.until("[DONE]"))

    def test_client_disconnect_aborts_the_engine_request(self):
        for how in ("close", "reset", "before the first token"):
            tag = f"{self.scheme} {how}"
            sim = {"tokens": 1000, "token_ms": 20, "tag": tag}
            if how.startswith("before"):
                sim["delay_ms"] = 20_000
            raw = self.raw()
            raw.send(self.ask(question(stream=True, sim=sim)))
            if not how.startswith("before"):
                raw.until("data: ")
            if how == "reset":
                raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.expect_abort(tag, raw.close)

    def test_bodies_at_and_above_the_limit(self):
        for size, path, kind in ((LIMIT, CHAT, "context_length_exceeded"), (LIMIT + 1, CHAT, "bad_request"),
                                 (LIMIT + 1, "/v1/messages", "request_too_large")):
            start = question()
            body = start.replace("hello there", "x" * (size - len(start) + len("hello there")))
            connection = self.http()
            connection.request("POST", path, body, {"Authorization": "Bearer " + self.key})
            answer = connection.getresponse()
            self.assertEqual(answer.status, 400)
            self.assertIn(f'"{kind}"', answer.read().decode())

    # Unmodified clients.

    def test_python_reuses_its_connection(self):
        connection = self.http()
        for i in range(4):
            connection.request("POST", CHAT, question(stream=i % 2 == 0), {"Authorization": "Bearer " + self.key})
            if i == 0:
                used = connection.sock
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200)
            answer.read()
            self.assertIs(connection.sock, used)

    def test_curl_streams_gets_and_uploads(self):
        stream = self.curl("-N", "-d", question(stream=True, sim={"tokens": 5})).stdout
        self.assertTrue(stream.endswith("data: [DONE]\n\n"), stream)
        self.assertIn('"usage"', self.curl("-d", question()).stdout)
        self.assertTrue(self.curl("-0", "-N", "-d", question(stream=True)).stdout.endswith("[DONE]\n\n"))
        asked = self.curl("-v", "-H", "Expect: 100-continue", "-d", question())
        self.assertIn("< HTTP/1.1 100 Continue", asked.stderr)
        self.assertIn('"usage"', asked.stdout)
        chunked = self.curl("-X", "POST", "-H", "Transfer-Encoding: chunked", "-T", "-", given=question())
        self.assertIn('"usage"', chunked.stdout)
        self.assertIn("HTTP/1.1 200 ", self.curl("-I", path="/v1/models").stdout)
        reused = self.curl("-d", question(), "-o", os.devnull, "-w", "%{num_connects}", self.url + CHAT, "-o", os.devnull)
        self.assertEqual(reused.stdout, "10")

    def test_curl_gets_the_refusal_of_a_too_large_body(self):
        large = folder + "/large"
        with open(large, "wb") as file:
            file.write(b"x" * (LIMIT + 1_000_000))
        for fields in ("Expect:", "Expect: 100-continue"):
            for coding in ("A: b", "Transfer-Encoding: chunked"):
                answer = self.curl("-H", fields, "-H", coding, "--data-binary", "@" + large, "-w", "%{http_code}").stdout
                self.assertTrue(answer.endswith("400"), answer)
                self.assertIn("bad_request", answer)

    @unittest.skipUnless(NODE, "Node is not installed")
    def test_node_streams_and_gets_the_refusal_of_a_too_large_body(self):
        printed = self.node(f"""
            const stream = await ask("{CHAT}", JSON.stringify({question(stream=True)}));
            let text = "";
            for await (const piece of stream.body) text += Buffer.from(piece).toString();
            console.log(stream.status, text.endsWith("data: [DONE]\\n\\n"));
            for (let i = 0; i < 3; i++) {{
              const large = await ask("{CHAT}", "x".repeat({LIMIT + 1_000_000}));
              console.log(large.status, (await large.json()).error.code);
            }}
        """)
        self.assertEqual(printed.split("\n")[:4], ["200 true"] + ["400 bad_request"] * 3)

    @unittest.skipUnless(NODE, "Node is not installed")
    def test_abort_in_node_aborts_the_engine_request(self):
        tag = self.scheme + " undici"
        body = question(stream=True, sim={"tokens": 1000, "token_ms": 20, "tag": tag})
        script = f"""
            const abort = new AbortController();
            const stream = await ask("{CHAT}", JSON.stringify({body}), {{signal: abort.signal}});
            for await (const piece of stream.body) break;
            abort.abort();
            console.log("aborted");
        """
        self.assertEqual(self.node(script), "aborted\n")
        self.expect_stopped(tag)


class Plain(Conformance, unittest.TestCase):
    scheme = "http"


class Tls(Conformance, unittest.TestCase):
    scheme = "https"

    @classmethod
    def setUpClass(cls):
        cls.tls = ssl.create_default_context(cafile=authority)
        cls.flags = ("--gateway", edge_tls())
        super().setUpClass()

    def test_plain_text_on_a_tls_port_is_refused(self):
        raw = Raw(self.port, None)
        self.addCleanup(raw.close)
        raw.send(self.ask(question()))
        self.assertIn("https", raw.until(""))
        self.assertTrue(raw.text.startswith("HTTP/1.1 400 "))

    def test_a_renewed_certificate_is_used_without_breaking_streams(self):
        def serial():
            raw = Raw(self.port, self.tls)
            self.addCleanup(raw.close)
            return raw.socket.getpeercert()["serialNumber"]
        raw = self.raw()
        raw.send(self.ask(question(stream=True, sim={"tokens": 100, "token_ms": 20})))
        raw.until("data: ")
        before = serial()
        certify("edge")
        deadline = time.monotonic() + 60
        while serial() == before:
            self.assertLess(time.monotonic(), deadline)
        self.assertIn("[DONE]", raw.until("0\r\n\r\n"))

    def test_start_fails_and_names_an_unreadable_certificate_file(self):
        failed = subprocess.run([CLUSTER, "--gateway", edge_tls("missing")], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=60, check=False)
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("gateway.edge_tls: certificate_file: cannot read " + folder + "/missing.pem", failed.stderr)


class TlsFront:
    """Terminates TLS in front of a plain engine, and counts connections."""

    def __init__(self, engine_port, certificate="edge"):
        self.engine_port = engine_port
        self.handshakes = 0
        self.loop = asyncio.new_event_loop()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/{certificate}.pem", f"{folder}/{certificate}.key")
        context.set_alpn_protocols(["h2", "http/1.1"])
        server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=context))
        self.port = server.sockets[0].getsockname()[1]
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    async def serve(self, *client):
        self.handshakes += 1
        engine = await asyncio.open_connection("127.0.0.1", self.engine_port)
        await asyncio.gather(self.pump(client[0], engine[1]), self.pump(engine[0], client[1]))

    @staticmethod
    async def pump(source, sink):
        try:
            while piece := await source.read(65536):
                sink.write(piece)
                await sink.drain()
        except OSError:
            pass
        sink.close()


class HttpsEngine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        address = folder + "/engine.address"
        cls.engine = subprocess.Popen([ENGINE, "--listen", "127.0.0.1:0", "--address-file", address])
        deadline = time.monotonic() + 60
        while not os.path.exists(address) or not os.path.getsize(address):
            if time.monotonic() > deadline:
                raise AssertionError("no engine")
        with open(address, encoding="utf-8") as file:
            cls.engine_port = int(json.load(file)["http"].rsplit(":", 1)[1])
        cls.front = TlsFront(cls.engine_port)

    @classmethod
    def tearDownClass(cls):
        cls.front.stop()
        cls.engine.terminate()
        cls.engine.wait()

    def ask(self, cluster, **more):
        connection = http.client.HTTPConnection("127.0.0.1", cluster.facts["port"], timeout=30)
        connection.request("POST", CHAT, question(**more), {"Authorization": "Bearer " + cluster.facts["keys"]["good"]})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def test_engines_behind_tls_work_and_connections_are_reused(self):
        cluster = Cluster("--engine", f"https://localhost:{self.front.port}", "--router",
                          f"engine_authority_file: {authority}", "--threads", "1")
        self.addCleanup(cluster.stop)
        for i in range(20):
            status, text = self.ask(cluster, stream=i % 2 == 0, sim={"tokens": 50})
            self.assertEqual(status, 200, text)
            self.assertIn("[DONE]" if i % 2 == 0 else '"completion_tokens":50', text)
        self.assertLess(self.front.handshakes, 10)

    def test_an_engine_with_an_untrusted_certificate_is_unreachable(self):
        before = self.front.handshakes
        cluster = Cluster("--engine", f"https://localhost:{self.front.port}")
        self.addCleanup(cluster.stop)
        status, text = self.ask(cluster)
        # Before or after the first health check.
        self.assertIn((status, json.loads(text)["error"]["code"]),
                      ((502, "service_unavailable"), (503, "model_unavailable")))
        self.assertEqual(self.front.handshakes, before)

    def test_an_engine_with_a_wrong_certificate_is_down_and_the_log_says_why(self):
        certify("other-name", names="DNS:elsewhere.example")
        certify("expired", days=-1)
        trusted = ("--router", f"engine_authority_file: {authority}")
        for certificate, flags, reason in (
                ("other-name", trusted, "TLS: certificate: hostname mismatch"),
                ("expired", trusted, "TLS: certificate: certificate has expired"),
                ("edge", (), "TLS: certificate: unable to get local issuer certificate")):
            with self.subTest(reason):
                front = TlsFront(self.engine_port, certificate)
                self.addCleanup(front.stop)
                cluster = Cluster("--engine", f"https://localhost:{front.port}", *flags)
                self.addCleanup(cluster.stop)
                self.assertIn(reason, self.why_down(cluster))
                status, text = self.ask(cluster)
                self.assertEqual((status, json.loads(text)["error"]["code"]), (503, "model_unavailable"))
                self.assertEqual(front.handshakes, 0)

    @staticmethod
    def why_down(cluster):
        """The reason in the log once its first engine is down."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with open(cluster.facts["dir"] + "/allinone.log", encoding="utf-8") as log:
                for line in log:
                    if '"engine is down"' in line and '"sim-1"' in line:
                        return json.loads(line).get("reason", "none")
            time.sleep(0.05)
        return "it is not down"


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
