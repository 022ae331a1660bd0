"""Real engines (llama.cpp's server, on a model of random weights) behind a Tollgate of real processes."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import secrets
import signal
import socket
import struct
import subprocess
import tempfile
import time

import tiny_model

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTEXT = 4096  # tokens, of each request
ENGINE_KEY = "sk-engine-" + secrets.token_hex(16)


def program():
    """llama.cpp's server as `./dev parts llama-server` builds it; None: not built."""
    parts = os.environ.get("TOLLGATE_PARTS") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tollgate", "parts")
    version = re.search(r"^llama_cpp=(\S+)$", (ROOT / "tests/parts/get").read_text(encoding="utf-8"), re.M)[1]
    path = pathlib.Path(parts, f"llama-server-{version}", "llama-server")
    return path if os.access(path, os.X_OK) else None


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(what, condition, seconds=30):
    """Waits at least two minutes until the condition returns a value, and returns it."""
    seconds = max(seconds, 120)
    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if found := condition():
                return found
        if time.monotonic() > until:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.01)


def call(port, method, path, body=None, headers=None, timeout=60):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"content-type": "application/json"} | (headers or {}))
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


class Engine:
    """One llama-server, on a port of its own that it keeps."""

    def __init__(self, server, model, folder, name, *flags, key=""):
        self.port = free_port()
        self.log = open(f"{folder}/{name}.log", "ab")
        self.headers = {"authorization": "Bearer " + key} if key else {}
        self.command = [server, "-m", model, "--host", "127.0.0.1", "--port", str(self.port), "--alias", "tiny", "-t", "1", "-tb", "1",
                        "-c", str(2 * CONTEXT), "--parallel", "2", "--jinja", "--no-webui", "--metrics",
                        *(["--api-key", key] if key else []), *flags]
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        wait_for("the engine", lambda: call(self.port, "GET", "/health")[0] == 200)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
        self.log.close()

    def metrics(self):
        """Metrics of the engine, by name."""
        text = call(self.port, "GET", "/metrics", headers=self.headers)[2]
        return {name: float(value) for name, value in re.findall(r"^llamacpp:(\w+) (\S+)$", text, re.M)}

    def running(self):
        return int(self.metrics()["requests_processing"])

    def tokens(self):
        """Prompt tokens processed by the engine, excluding cached ones, and tokens generated."""
        figures = self.metrics()
        return int(figures["prompt_tokens_total"]), int(figures["tokens_predicted_total"])

    def window(self):
        """Tokens of one request."""
        return json.loads(call(self.port, "GET", "/props", headers=self.headers)[2])["default_generation_settings"]["n_ctx"]


class Asked:
    """A sent request."""

    def __init__(self, port, path, body, headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.connection.request("POST", path, json.dumps(body), {"content-type": "application/json"} | headers)

    def leave(self):
        """The client disconnects, at once."""
        self.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class Stream(Asked):
    """An answer while it arrives."""

    def __init__(self, port, path, body, headers):
        super().__init__(port, path, body, headers)
        self.socket = self.connection.sock  # a connection that will be closed forgets it
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def events(self):
        """The data of each event, parsed; the end marker as it is."""
        for line in self.answer:
            if line.startswith(b"data: "):
                data = line[6:].strip().decode()
                yield data if data == "[DONE]" else json.loads(data)

    def leave(self):
        self.connection.sock = self.socket
        super().leave()
        self.answer.close()


class World:
    def __init__(self, cluster, server):
        self.folder = tempfile.TemporaryDirectory(prefix="tollgate-llama-")
        self.closing = contextlib.ExitStack()
        self.closing.callback(self.folder.cleanup)
        try:
            self.start(cluster, server)
        except BaseException:
            self.closing.close()
            raise

    def start(self, cluster, server):
        folder = self.folder.name
        model = f"{folder}/tiny.gguf"
        tiny_model.write(model, (ROOT / "LICENSE").read_text(encoding="utf-8"))

        def engine(name, *flags, key=""):
            made = Engine(server, model, folder, name, *flags, key=key)
            self.closing.callback(made.close)
            return made

        self.chat = engine("chat", key=ENGINE_KEY)
        self.pair = [engine("one"), engine("two")]
        # A prompt of more than 512 tokens is more than its batch can take.
        self.embed = engine("embed", "--embedding", "--pooling", "mean", "-ub", "512")
        targets = f"{folder}/targets.json"
        self.process = subprocess.Popen(
            [cluster, "--prometheus", targets, "--engine", self.url(self.chat)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.closing.callback(self.stop)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("Tollgate did not start")
        self.facts = json.loads(line)
        self.port = self.facts["port"]
        self.ops = int(json.loads(pathlib.Path(targets).read_text(encoding="utf-8"))[0]["targets"][0].rpartition(":")[2])
        self.key = self.facts["keys"]["roomy"]
        pathlib.Path(folder, "engine.key").write_text(ENGINE_KEY, encoding="utf-8")
        pathlib.Path(self.facts["dir"], "models.yaml").write_text(self.catalog(), encoding="utf-8")
        wait_for("the catalog", lambda: "tiny/chat" in self.get("/v1/models"))
        for name in ("chat", "one", "two", "embed"):
            wait_for("the engine " + name, lambda: self.metric("engine_available", name) == 1)

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait(60) != 0:
            raise AssertionError("Tollgate did not stop cleanly")

    def close(self):
        self.closing.close()

    @staticmethod
    def url(engine):
        return f"http://127.0.0.1:{engine.port}"

    def catalog(self):
        models = [("chat", "chat", CONTEXT, "chat, tools, reasoning"), ("text", "chat", CONTEXT, "completion"),
                  ("wide", "chat", 131072, "chat"),  # larger than its engine's window
                  ("pair", "pair", CONTEXT, "chat"), ("embed", "embed", CONTEXT, "embedding")]
        text = "models:\n"
        for name, pool, window, capabilities in models:
            text += (f"  - {{id: tiny/{name}, engine_model: tiny, pool: {pool}, context_window: {window}, capabilities: [{capabilities}], "
                     'input_usd_per_million: "1", output_usd_per_million: "3", documentation_url: "https://example.test/tiny", '
                     'created: "2026-01-02"}\n')
        pools = {"chat": [("chat", self.chat)], "pair": list(zip(("one", "two"), self.pair)), "embed": [("embed", self.embed)]}
        text += "pools:\n"
        for pool, engines in pools.items():
            text += f"  - name: {pool}\n    engines:\n"
            for name, engine in engines:
                key = f", api_key: '${{file:{self.folder.name}/engine.key}}'" if engine.headers else ""
                text += f"      - {{id: {name}, kind: llamacpp, base_url: '{self.url(engine)}', max_concurrency: 2{key}}}\n"
        return text

    def get(self, path):
        return call(self.port, "GET", path, headers=self.auth())[2]

    def auth(self):
        return {"authorization": "Bearer " + self.key}

    def ask(self, path, **body):
        """The answer to a request, parsed, with its status."""
        status, headers, text = call(self.port, "POST", path, body, self.auth())
        self.last_id = headers["x-request-id"]
        return status, json.loads(text)

    def stream(self, path, **body):
        return Stream(self.port, path, {"stream": True} | body, self.auth())

    def receipt(self, answer_id):
        """The receipt of the ledger, once the request is booked."""
        def booked():
            status, _, text = call(self.port, "GET", "/api/v1/generation?id=" + answer_id, headers=self.auth())
            receipt = json.loads(text).get("data", {})
            return receipt if status == 200 and receipt["status"] != "running" else None
        return wait_for("the receipt", booked)

    def usage(self):
        """Tokens in the ledger of all requests so far: uncached prompt tokens, and answer tokens."""
        # An abandoned request is booked a moment later.
        wait_for("the end of all requests", lambda: self.metric("running_requests") == 0)
        totals = json.loads(self.get("/api/v1/usage"))["totals"]
        return totals["input_tokens"] - totals["cached_tokens"], totals["output_tokens"]

    def metric(self, name, engine=None):
        """A metric of the router, summed over its labels."""
        text = call(self.ops, "GET", "/metrics")[2]
        lines = re.findall(rf"^tollgate_router_{name}(?:\{{(.*)\}})? (\S+)$", text, re.M)
        return sum(float(value) for labels, value in lines if engine is None or f'engine="{engine}"' in labels)
