"""Traces of real processes: tracing_test.py TEST-CLUSTER. As one process and as a cluster: one trace per request through
gateway, services and engine; failures whatever the head samples; nothing that waits for a collector; no secrets."""
import collections
import glob
import json
import os
import pathlib
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import grpc

from receiver import Receiver
from world import CHAT, World, free_port, new_ids

PROGRAM = sys.argv[1]
SERVER, CLIENT = 2, 3
# Clocks are read in each process: nanoseconds that a child may seem to begin before its parent.
SKEW = 3_000_000
GENERATE = "tollgate.inference.v1.InferenceService/Generate"
ACQUIRE = "tollgate.ratelimit.v1.RateLimitService/Acquire"
AUTHORIZE = "tollgate.billing.v1.BillingService/Authorize"
METER = "tollgate.billing.v1.MeteringService/Meter"
VERIFY = "tollgate.auth.v1.AuthService/VerifyKey"
CHAT_SPAN = "POST /v1/chat/completions"
ATTEMPT = "chat sim/model"
# Spans of a request whose key is cached.
PARENTS = {"authenticate": CHAT_SPAN, "admit": CHAT_SPAN, "authorize": CHAT_SPAN, "route": CHAT_SPAN, "stream": CHAT_SPAN,
           ACQUIRE: "admit", AUTHORIZE: "authorize", GENERATE: "route", ATTEMPT: GENERATE, "settle": GENERATE, METER: "settle"}
SERVICES = {CHAT_SPAN: "gateway", "route": "gateway", ACQUIRE: "ratelimit", AUTHORIZE: "billing", METER: "billing",
            GENERATE: "inference-router", ATTEMPT: "inference-router", VERIFY: "auth"}


def collector_program():
    """OpenTelemetry's collector with the receiver otlp and the exporter file, or None."""
    if program := os.environ.get("TOLLGATE_COLLECTOR"):
        return program
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    parts = os.environ.get("TOLLGATE_PARTS") or os.path.join(cache, "tollgate", "parts")
    return next(iter(sorted(glob.glob(os.path.join(parts, "collector-*", "otelcol")))), None)


def make_certificates(folder):
    """An authority with the certificates of a collector at 127.0.0.1 and of one that sends to it."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *new_key, "-days", "2", "-subj", "/CN=authority", "-keyout", "authority.key", "-out", "authority.pem")
    pathlib.Path(folder, "names").write_text("subjectAltName=IP:127.0.0.1\n", encoding="utf-8")
    for name in ("collector", "sender"):
        openssl("req", *new_key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial",
                "-days", "2", "-extfile", "names", "-out", f"{name}.pem")


def traceparent(trace, span, flags="00"):
    return f"00-{trace}-{span}-{flags}"


class TracingTest(unittest.TestCase):
    TCP = False

    def start(self, settings=", sample_ratio: 1", port=None, scheme="", credentials=None):
        if port is None:
            self.receiver = Receiver(credentials=credentials)
            self.addCleanup(self.check_receiver)
            port = self.receiver.port
        self.world = World(PROGRAM, port, self.TCP, settings, scheme)
        self.stopped = False
        self.addCleanup(self.stop)
        return self.world

    def stop(self):
        if not self.stopped:
            self.stopped = True
            self.took = self.world.stop()

    def check_receiver(self):
        self.receiver.stop()
        self.assertEqual(self.receiver.wrong, [])

    def by_name(self, spans):
        names = collections.Counter(span.name for span in spans)
        self.assertEqual([name for name, count in names.items() if count > 1], [], "each span once")
        return {span.name: span for span in spans}

    def check_tree(self, spans, parents, caller):
        """The spans of one request that succeeded."""
        found = self.by_name(spans)
        self.assertEqual(set(found), set(parents) | {CHAT_SPAN})
        self.assertEqual(found[CHAT_SPAN].parent, caller)
        for name, parent in parents.items():
            child, parent = found[name], found[parent]
            self.assertEqual(child.parent, parent.id, name)
            skew = SKEW if child.service != parent.service or child.scope != parent.scope else 0
            self.assertGreaterEqual(child.start, parent.start - skew, f"{name} begins before {parent.name}")
            self.assertLessEqual(child.end, parent.end + skew, f"{name} ends after {parent.name}")
        for name, span in found.items():
            service = SERVICES.get(name, span.service.removeprefix("tollgate-"))
            self.assertEqual(span.service, "tollgate-" + (service if self.TCP else "allinone"))
            self.assertFalse(span.failed, name)
            self.assertEqual(span.flags & 1, 1)
            self.assertNotIn("error.type", span.attributes)
        return found

    def test_one_trace_leads_from_the_client_to_the_engine(self):
        world = self.start()
        for stream in (False, True):
            with self.subTest(stream=stream):
                trace, caller = new_ids()
                tag, request_id = secrets.token_hex(8), "traced-" + secrets.token_hex(8)
                members = {"max_tokens": 20, "stream": stream, "x_sim": {"tokens": 7, "tag": tag}}
                if stream:
                    members["stream_options"] = {"include_usage": True}
                answer = world.ask(members, {"traceparent": traceparent(trace, caller), "x-request-id": request_id,
                                             "tracestate": "rojo=1, congo=t61"})
                self.assertEqual(answer.status, 200, answer.body)
                self.assertNotIn("traceparent", answer.headers)
                spans = self.receiver.wait_for(trace, [*PARENTS, CHAT_SPAN])
                # On the first request of a loop, the key is not cached.
                parents = PARENTS | ({VERIFY: "authenticate"} if any(span.name == VERIFY for span in spans) else {})
                found = self.check_tree(spans, parents, caller)
                engine = world.engine_requests(tag)
                self.assertEqual([one["traceparent"] for one in engine], [traceparent(trace, found[ATTEMPT].id, "01")])
                self.assertEqual(engine[0]["tracestate"], "rojo=1,congo=t61")
                self.check_numbers(found, answer, world.receipt(request_id, "roomy"), stream)
                lines = [line for line in world.log_lines(request_id) if line["message"] == "request"]
                self.assertEqual([line["trace_id"] for line in lines], [trace])

    def check_numbers(self, found, answer, receipt, stream):
        root, attempt = found[CHAT_SPAN].attributes, found[ATTEMPT].attributes
        tokens = (receipt["native_tokens_prompt"], receipt["native_tokens_completion"])
        self.assertEqual(answer.usage(), tokens)
        for attributes in (root, attempt, found[GENERATE].attributes):
            self.assertEqual((attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]), tokens)
            self.assertEqual(attributes["gen_ai.operation.name"], "chat")
            self.assertEqual(attributes["gen_ai.request.model"], "sim/model")
        self.assertEqual(root["http.response.status_code"], 200)
        self.assertEqual(root["http.request.method"], "POST")
        self.assertEqual(root["http.route"], "/v1/chat/completions")
        self.assertEqual(root["tollgate.streamed"], stream)
        self.assertEqual(root["gen_ai.request.max_tokens"], 20)
        self.assertIn(root["gen_ai.response.finish_reasons"], (["stop"], ["length"]))
        self.assertEqual(attempt["gen_ai.provider.name"], "vllm")
        self.assertEqual(found[CHAT_SPAN].kind, SERVER)
        self.assertEqual(found[ATTEMPT].kind, CLIENT)
        name, at = found[CHAT_SPAN].events[0]
        self.assertEqual(name, "first token")
        self.assertTrue(found["route"].start <= at <= found[CHAT_SPAN].end)
        self.assertEqual(found[ATTEMPT].events[0][0], "first token")

    def test_a_first_look_up_of_a_key_is_part_of_the_trace(self):
        world = self.start()
        trace, caller = new_ids()
        answer = world.ask({"max_tokens": 3}, {"traceparent": traceparent(trace, caller)}, key="one_a_minute")
        self.assertEqual(answer.status, 200, answer.body)
        found = self.check_tree(self.receiver.wait_for(trace, [*PARENTS, VERIFY]), PARENTS | {VERIFY: "authenticate"}, caller)
        self.assertEqual(found[VERIFY].kind, SERVER)

    def test_without_a_well_formed_traceparent_a_trace_begins(self):
        world = self.start()
        trace, span = new_ids()
        for bad in ("", traceparent(trace, span)[:-1], "ff" + traceparent(trace, span)[2:], traceparent(trace.upper(), span, "01"),
                    traceparent("0" * 32, span)):
            tag = secrets.token_hex(8)
            answer = world.ask({"max_tokens": 3, "x_sim": {"tag": tag}}, {"traceparent": bad, "tracestate": "a=1"} if bad else {})
            self.assertEqual(answer.status, 200)
            engine = world.engine_requests(tag)[0]
            made = engine["traceparent"].split("-")[1]
            self.assertNotEqual(made, trace)
            self.assertEqual(engine["tracestate"], "")
            spans = self.receiver.wait_for(made, [*PARENTS, CHAT_SPAN])
            root = self.by_name(spans)[CHAT_SPAN]
            self.assertEqual(root.parent, "")
            self.assertEqual(root.attributes["tollgate.request.id"], made, "the request's own id")

    def test_what_is_refused_by_its_head_ends_in_authenticate(self):
        world = self.start(", sample_ratio: 0")
        trace, caller = new_ids()
        head = (f"POST {CHAT} HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer sk-tg-none\r\nContent-Length: 9\r\n"
                f"traceparent: {traceparent(trace, caller, '01')}\r\n\r\n")
        with socket.create_connection(("127.0.0.1", world.facts["port"]), timeout=30) as client:
            client.sendall(head.encode())  # and no body
            self.assertIn(b" 401 ", client.recv(64))
        found = self.by_name(self.receiver.wait_for(trace, [CHAT_SPAN, "authenticate"]))
        for name in (CHAT_SPAN, "authenticate"):
            self.assertEqual(found[name].attributes["error.type"], "invalid_api_key")

    def test_every_failure_is_exported_though_nothing_is_sampled(self):
        world = self.start(", sample_ratio: 0")
        good, _ = new_ids()
        self.assertEqual(world.ask({"max_tokens": 3}, {"traceparent": traceparent(good, "1" * 16, "01")}).status, 200)
        engine_500 = {"x_sim": {"status": 500}}
        cases = [  # body, key, status, error, the stage that it ends in, spans beyond the gateway's
            ({}, "sk-tg-none", 401, "invalid_api_key", "authenticate", []),
            ("{", "roomy", 400, "bad_request", None, []),
            ({"model": "sim/none"}, "roomy", 404, "model_not_found", None, []),
            ({}, "broke", 402, "insufficient_credits", "authorize", []),
            (engine_500, "roomy", 500, "server_error", "route", [GENERATE, ATTEMPT]),
            ({"model": "sim/empty"}, "roomy", None, None, "route", [GENERATE]),
            ({"stream": True, "x_sim": {"tokens": 20, "cut_after_tokens": 5}}, "roomy", 200, None, "stream", [GENERATE, ATTEMPT]),
        ]
        for body, key, status, error, stage, more in cases:
            with self.subTest(body=body, key=key):
                trace, caller = new_ids()
                answer = world.ask(body, {"traceparent": traceparent(trace, caller, "01")}, key=key)
                spans = self.receiver.wait_for(trace, [CHAT_SPAN, stage or "authenticate", *more])
                root = next(span for span in spans if span.name == CHAT_SPAN)
                self.assertEqual(root.parent, caller)
                self.assertEqual(root.attributes["http.response.status_code"], answer.status)
                if status:
                    self.assertEqual(answer.status, status, answer.body)
                if error:
                    self.assertEqual(root.attributes["error.type"], error)
                self.assertTrue(root.attributes["error.type"])
                self.assertEqual(root.failed, answer.status >= 500 or answer.status == 200)
                stages = [span for span in spans if span.parent == root.id and "error.type" in span.attributes]
                self.assertEqual([span.name for span in stages], [stage] if stage else [])
                for span in stages:
                    self.assertEqual(span.attributes["error.type"], root.attributes["error.type"])
                self.assertEqual({span.flags & 1 for span in spans}, {0})
                for name in more:
                    part = next(span for span in spans if span.name == name)
                    self.assertTrue(part.failed, name)
        self.assertEqual(self.receiver.of(good), [])

    def test_a_flood_of_refusals_is_limited(self):
        world = self.start(", sample_ratio: 0")
        for _ in range(400):
            self.assertEqual(world.ask({}, key="sk-tg-none").status, 401)
        limited = world.metric("tollgate_tracing_failures_limited_total")
        self.stop()  # sends the rest
        roots = len([span for span in self.receiver.spans if span.name == CHAT_SPAN])
        self.assertGreaterEqual(roots, 90)
        self.assertLessEqual(roots + limited, 400)

    def test_the_head_samples_its_share_whatever_clients_say(self):
        world = self.start(", sample_ratio: 0.01")
        requests = 6000
        for i in range(requests):
            trace, caller = new_ids()
            headers = {"traceparent": traceparent(trace, caller, "01")} if i % 2 else {}
            if world.get(world.facts["port"], "/v1/models", headers).status != 200:
                self.fail("no list of models")
        self.stop()  # sends the rest
        traces = {span.trace for span in self.receiver.spans}
        # 60 are expected; the range is five standard deviations wide.
        self.assertGreater(len(traces), 22)
        self.assertLess(len(traces), 98)

    def test_a_trusted_clients_flag_decides(self):
        world = self.start(", sample_ratio: 0, trust_client_sampling: true")
        (sampled, caller), (not_sampled, _) = new_ids(), new_ids()
        for trace, flags in ((not_sampled, "00"), (sampled, "01")):
            self.assertEqual(world.ask({"max_tokens": 3}, {"traceparent": traceparent(trace, caller, flags)}).status, 200)
        self.receiver.wait_for(sampled, [*PARENTS, CHAT_SPAN])
        self.stop()
        self.assertEqual(self.receiver.of(not_sampled), [])

    def test_requests_do_not_notice_that_the_collector_is_away(self):
        port = free_port()
        world = self.start(", sample_ratio: 1, queue_bytes: 65536", port=port)
        for _ in range(50):
            self.assertEqual(world.ask({"max_tokens": 3}).status, 200)
        before_kib = world.memory_kib()
        for _ in range(400):
            self.assertEqual(world.ask({"max_tokens": 3}).status, 200)
        self.assertGreater(world.metric("tollgate_tracing_spans_total", result="queue_full"), 300)
        self.assertLess(world.memory_kib() - before_kib, 40 * 1024, "what waits is bounded")
        # The collector starts and receives the waiting spans.
        self.receiver = Receiver(port)
        self.addCleanup(self.check_receiver)
        trace, caller = new_ids()
        for _ in range(600):
            if self.receiver.spans:
                break
            time.sleep(0.1)
        self.assertTrue(self.receiver.spans)
        until = 200
        while not self.receiver.of(trace) and until:  # until there is room in every process
            until -= 1
            self.assertEqual(world.ask({"max_tokens": 3}, {"traceparent": traceparent(trace, caller)}).status, 200)
            time.sleep(0.1)
        self.assertTrue(self.receiver.of(trace))
        self.assertGreater(world.metric("tollgate_tracing_spans_total", result="exported"), 0)

    def test_a_collector_may_want_tls_and_a_certificate(self):
        with tempfile.TemporaryDirectory(prefix="tollgate-tracing-") as folder:
            make_certificates(folder)
            read = lambda name: pathlib.Path(folder, name).read_bytes()
            credentials = grpc.ssl_server_credentials([(read("collector.key"), read("collector.pem"))], read("authority.pem"), True)
            self.start(f", sample_ratio: 1, authority_file: {folder}/authority.pem, certificate_file: {folder}/sender.pem, "
                       f"private_key_file: {folder}/sender.key", scheme="https://", credentials=credentials)
            trace, caller = new_ids()
            self.assertEqual(self.world.ask({"max_tokens": 3}, {"traceparent": traceparent(trace, caller)}).status, 200)
            self.receiver.wait_for(trace, [*PARENTS, CHAT_SPAN])
            self.stop()

    def test_opentelemetrys_own_collector_takes_the_spans(self):
        program = collector_program()
        if program is None:
            self.skipTest("OpenTelemetry's collector is not there: TOLLGATE_COLLECTOR or a folder collector-* of the parts cache")
        with tempfile.TemporaryDirectory(prefix="tollgate-tracing-") as folder:
            port, out = free_port(), pathlib.Path(folder, "traces.json")
            config = {"receivers": {"otlp": {"protocols": {"grpc": {"endpoint": f"127.0.0.1:{port}"}}}},
                      "exporters": {"file": {"path": str(out), "flush_interval": "100ms"}},
                      "service": {"telemetry": {"metrics": {"level": "none"}},
                                  "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["file"]}}}}
            pathlib.Path(folder, "config.yaml").write_text(json.dumps(config), encoding="utf-8")
            with open(pathlib.Path(folder, "log"), "wb") as log:
                collector = subprocess.Popen([program, f"--config={folder}/config.yaml"], stdout=log, stderr=log)
            self.addCleanup(collector.wait)
            self.addCleanup(collector.terminate)
            self.start(port=port)
            trace, caller = new_ids()
            self.assertEqual(self.world.ask({"max_tokens": 3}, {"traceparent": traceparent(trace, caller)}).status, 200)
            names, until = set(), time.monotonic() + 60
            while not names >= {*PARENTS, CHAT_SPAN} and time.monotonic() < until:
                time.sleep(0.1)
                lines = out.read_text(encoding="utf-8").split("\n")[:-1] if out.exists() else []
                names = {span["name"] for line in lines for resource in json.loads(line)["resourceSpans"]
                         for scope in resource["scopeSpans"] for span in scope["spans"] if span["traceId"] == trace}
            self.assertGreaterEqual(names, {*PARENTS, CHAT_SPAN}, pathlib.Path(folder, "log").read_text(encoding="utf-8")[-2000:])
            self.assertEqual(self.world.metric("tollgate_tracing_spans_total", result="refused"), 0)
            self.stop()

    def test_a_collector_that_hangs_holds_nothing_up(self):
        with socket.socket() as hung:
            hung.bind(("127.0.0.1", 0))
            hung.listen(16)
            world = self.start(", sample_ratio: 1", port=hung.getsockname()[1])
            for _ in range(30):
                self.assertEqual(world.ask({"max_tokens": 3}).status, 200)
            self.stop()
            # One after the other, each within its two seconds.
            self.assertLess(self.took, 4 * len(world.ops) + 10)

    def test_spans_hold_no_text_of_a_request(self):
        world = self.start()
        canary = {name: f"canary{i}{secrets.token_hex(8)}" for i, name in enumerate(
            ("prompt", "output", "header", "model", "error", "user", "path", "query", "state"))}
        canary["request id"] = "own" + secrets.token_hex(8)  # log lines have it
        headers = {"x-request-id": canary["request id"], "user-agent": canary["header"], "x-forwarded-for": canary["header"],
                   "tracestate": "a=" + canary["state"]}
        messages = [{"role": "user", "content": canary["prompt"]}]
        answer = world.ask({"messages": messages, "user": canary["user"], "x_sim": {"text": canary["output"]}}, headers)
        self.assertIn(canary["output"], answer.body)
        world.ask({"messages": messages, "x_sim": {"status": 500, "error_body": {"error": {"message": canary["error"]}}}}, headers)
        world.ask({"messages": messages, "model": canary["model"]}, headers)
        world.ask({"prompt": canary["prompt"], "model": "outside/" + canary["model"], "messages": None}, headers,
                  path="/v1/completions")
        world.get(world.facts["port"], "/v1/" + canary["path"] + "?" + canary["query"], headers)
        for key in world.facts["keys"]:
            world.ask({"messages": messages}, headers, key=key)
        self.stop()
        self.assertGreater(len(self.receiver.spans), 50)
        for name, text in (canary | world.facts["keys"]).items():
            self.assertNotIn(text.encode(), self.receiver.bytes, name)
            if name in world.facts["keys"]:
                self.assertNotIn(text[-12:].encode(), self.receiver.bytes, name)


class ClusterTracingTest(TracingTest):
    TCP = True


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
