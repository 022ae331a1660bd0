"""Engines, what they answer, and the catalog that names them."""
import http.server
import json
import os
import pathlib
import re
import threading
import time

from faults.base import Calls, Fault


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


class LargeBody(Calls):
    """bodies above the router's limit"""
    alerts = ("RouterRefusesRequests",)

    def call(self, observed):
        body = {"model": "sim/model", "messages": [{"role": "user", "content": "word " * 70_000}], "max_tokens": 5}
        observed.call("POST", "/v1/chat/completions", None, body)


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
    fires_before = True

    def begin(self, observed):
        self.file = pathlib.Path(observed.facts["dir"]) / "models.yaml"
        self.text = self.file.read_text()  # names an engine without a listener

    def end(self, observed):
        alive = f"http://127.0.0.1:{observed.facts['engine_port']}"
        self.write(re.sub(r"http://127\.0\.0\.1:\d+", alive, self.text))


class Tokenizer(http.server.BaseHTTPRequestHandler):
    """An engine that reports a million tokens for every prompt."""

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.answer({"data": [{"id": "sim/model"}]})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer({"count": 1_000_000, "max_model_len": 131072, "tokens": []})

    def answer(self, body):
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class WrongTokenizer(Catalog):
    """the tokenizer of an engine counts more tokens than a prompt has bytes"""
    alerts = ("EnginePromptCountsImplausible",)

    def begin(self, observed):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tokenizer)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        super().begin(observed)
        body = {"model": "sim/model", "messages": [{"role": "user", "content": "Hello"}]}
        until = time.monotonic() + 8  # the catalog is read once a second
        while time.monotonic() < until:
            observed.call("POST", "/v1/messages/count_tokens", None, body)
            time.sleep(0.2)

    def changed(self, text):
        return re.sub(r"http://127\.0\.0\.1:\d+", f"http://127.0.0.1:{self.server.server_port}", text)

    def put_back(self, observed):
        self.server.shutdown()


FAULTS = (EngineErrors, SlowEngine, AbsurdUsage, SilentEngine, LargeBody, BadCatalog, WrongTokenizer, DeadEngine, DeadEngines)
