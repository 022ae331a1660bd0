"""A Tollgate of real processes that sends its traces somewhere, and its clients."""
import http.client
import json
import os
import re
import secrets
import socket
import subprocess
import tempfile
import time

CHAT = "/v1/chat/completions"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def new_ids():
    return secrets.token_hex(16), secrets.token_hex(8)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def usage(self):
        """Token usage as reported to the client: (prompt, completion)."""
        if "text/event-stream" in self.headers["content-type"]:
            events = [json.loads(line[6:]) for line in self.body.split("\n") if line.startswith("data: {")]
            usage = next(event["usage"] for event in reversed(events) if event.get("usage"))
        else:
            usage = json.loads(self.body)["usage"]
        return usage["prompt_tokens"], usage["completion_tokens"]


class World:
    def __init__(self, program, port, tcp, settings="", scheme="", flags=()):
        self.targets = tempfile.NamedTemporaryFile(prefix="tollgate-tracing-", suffix=".json")
        command = [program, "--keep-requests", "--prometheus", self.targets.name, *(["--tcp"] if tcp else []), "--host",
                   f"tracing: {{otlp_endpoint: '{scheme}127.0.0.1:{port}'{settings}}}", *flags]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("Tollgate did not start")
        self.facts = json.loads(line)
        with open(self.targets.name, encoding="utf-8") as file:
            self.ops = {group["labels"]["instance"]: int(group["targets"][0].rsplit(":", 1)[1]) for group in json.load(file)}

    def stop(self):
        """Duration of the orderly stop in seconds."""
        begin = time.monotonic()
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait(60) != 0:
            raise AssertionError("Tollgate did not stop cleanly")
        self.targets.close()
        return time.monotonic() - begin

    def get(self, port, path, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return Answer(answer.status, answer.headers, body)

    def ask(self, body, headers=None, key="roomy", path=CHAT):
        """body: members of the request, or its text. key: of the facts, or a secret."""
        connection = http.client.HTTPConnection("127.0.0.1", self.facts["port"], timeout=30)
        if isinstance(body, dict):
            body = json.dumps({"model": "sim/model", "messages": [{"role": "user", "content": "hello there"}]} | body)
        all_headers = {"content-type": "application/json", "authorization": "Bearer " + self.facts["keys"].get(key, key)}
        connection.request("POST", path, body.encode(), all_headers | (headers or {}))
        answer = connection.getresponse()
        try:
            text = answer.read().decode()
        except http.client.IncompleteRead as cut:
            text = cut.partial.decode()
        connection.close()
        return Answer(answer.status, answer.headers, text)

    def engine_requests(self, tag):
        return json.loads(self.get(self.facts["engine_port"], f"/sim/requests/{tag}").body)["requests"]

    def receipt(self, request_id, key):
        found = self.get(self.facts["port"], "/api/v1/generation?id=" + request_id,
                         {"authorization": "Bearer " + self.facts["keys"][key]})
        if found.status != 200:
            raise AssertionError(found.body)
        return json.loads(found.body)["data"]

    def metric(self, name, **labels):
        """The sum over all processes."""
        total = 0
        for port in self.ops.values():
            for line in self.get(port, "/metrics").body.split("\n"):
                found = re.fullmatch(name + r"(?:\{(.*)\})? (\S+)", line)
                if found and all(f'{key}="{value}"' in (found[1] or "") for key, value in labels.items()):
                    total += float(found[2])
        return total

    def memory_kib(self):
        """A metric summed over all processes."""
        total = 0
        for pid in self.facts["pids"]:
            with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                total += int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])
        return total

    def log_lines(self, text):
        """Log lines of all processes that contain this text."""
        lines = []
        for name in os.listdir(self.facts["dir"]):
            path = os.path.join(self.facts["dir"], name)
            if name.endswith(".log") and os.path.isfile(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    lines += [json.loads(line) for line in file if text in line and line.startswith("{")]
        return lines
