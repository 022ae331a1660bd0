"""Addresses, keys and models of the running Tollgate (facts.h; tollgate-test-cluster prints them) and access to the
simulated engine behind it. Imported first: from then on a connection to anything but this machine fails the test."""
import json
import os
import socket
import time
import urllib.request

FACTS = json.loads(os.environ["TOLLGATE_FACTS"])
MODEL = FACTS["model"]
ROOT = f"http://127.0.0.1:{FACTS['port']}"  # base URL of the Messages clients
BASE_URL = ROOT + "/v1"  # base URL of all others
ENGINE = f"http://127.0.0.1:{FACTS['engine_port']}"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

_connect = socket.socket.connect


def _loopback_only(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
        raise AssertionError(f"a client tried to connect to {address}")
    return _connect(self, address)


socket.socket.connect = _loopback_only


def key(name):
    return FACTS["keys"].get(name, name)


def sim(**script):
    """A message with which the simulated engine scripts its answer; tests/support/README.md."""
    return "x_sim:" + json.dumps(script)


_tags = iter(range(1_000_000))


def new_tag():
    """Tags one request, so that it can be looked up at the engine."""
    return f"python-{os.getpid()}-{next(_tags)}"


def engine_requests(tag):
    with urllib.request.urlopen(f"{ENGINE}/sim/requests/{tag}") as answer:
        return json.load(answer)["requests"]


def until_aborted(tag):
    """Waits until the engine's only request with this tag was aborted."""
    deadline = time.monotonic() + 60
    while True:
        requests = engine_requests(tag)
        assert len(requests) <= 1, "the engine got two requests"
        if requests and requests[0]["aborted"]:
            return
        assert time.monotonic() < deadline, f"the engine request was not aborted: {requests}"
        time.sleep(0.005)


# (status, code, key, model, max_tokens, script)
REFUSALS = [
    (401, "invalid_api_key", "sk-tollgate-nonsense", MODEL, 100, {}),
    (402, "insufficient_credits", "broke", MODEL, 100, {}),
    (402, "insufficient_credits", "capped", MODEL, 100, {}),
    (403, "virtual_key_blocked", "disabled", MODEL, 100, {}),
    (403, "model_blocked", "narrow", MODEL, 100, {}),
    (404, "model_unavailable", "good", "sim/none", 100, {}),
    (503, "model_unavailable", "good", "sim/suspended", 100, {}),
    (400, "context_length_exceeded", "good", MODEL, 131_072, {}),
    (429, "rate_limited", "good", MODEL, 100, {"status": 429}),
    (500, "server_error", "good", MODEL, 100, {"status": 500}),
    (502, "server_error", "good", MODEL, 100, {"status": 502}),
    (503, "service_unavailable", "good", MODEL, 100, {"status": 503}),
]
