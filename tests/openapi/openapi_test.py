"""docs/openapi.yaml against responses of a running Tollgate: openapi_test.py TEST-CLUSTER OPENAPI-FILE."""
import http.client
import json
import subprocess
import sys
import unittest

import jsonschema
import yaml

from strict_yaml import StrictLoader

CLUSTER, DOCUMENT = sys.argv[1:3]
QUESTION = [{"role": "user", "content": "Please use get_weather."}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
FLAT_TOOL = {"type": "function", "name": "get_weather", "parameters": SCHEMA}
MESSAGES_TOOL = {"name": "get_weather", "input_schema": SCHEMA}


class Reading(unittest.TestCase):
    def test_repeated_and_empty_keys_are_refused(self):
        for text in ("{a: 1, a: 2}", "{type: string, description: Exact, in decimals}"):
            with self.assertRaises(ValueError):
                yaml.load(text, StrictLoader)


class OpenApi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(DOCUMENT, encoding="utf-8") as file:
            cls.document = yaml.load(file, StrictLoader)
        cls.cluster = subprocess.Popen([CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        cls.facts = json.loads(cls.cluster.stdout.readline())
        cls.seen = set()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stdin.close()
        cls.cluster.stdout.close()
        if cls.cluster.wait() != 0:
            raise AssertionError("Tollgate did not stop cleanly")

    def schema(self, method, path, status, media):
        responses = self.document["paths"][path][method.lower()]["responses"]
        response = responses.get(str(status), responses["default"])
        if "$ref" in response:
            response = self.document["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
        return response["content"][media]["schema"]

    def check(self, value, schema):
        whole = {"components": self.document["components"], **schema}
        error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(whole).iter_errors(value))
        if error:
            self.fail(f"{error.message} at {list(error.absolute_path)}, of {json.dumps(value)[:2000]}")

    def call(self, method, path, body=None, key="good", query="", cost=False):
        """Makes the call, checks the response, and returns (status, body or list of events)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.facts["port"], timeout=30)
        self.addCleanup(connection.close)
        headers = {"content-type": "application/json"} if body is not None else {}
        if cost:
            headers["x-tollgate-include-cost"] = "true"
        if key:
            headers["authorization"] = "Bearer " + self.facts["keys"][key]
        connection.request(method, path + query, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        self.assertEqual(answer.headers["x-request-id"], answer.headers["request-id"])
        text = answer.read().decode()
        media = answer.headers["content-type"].split(";")[0]
        schema = self.schema(method, path, answer.status, media)
        kind = "ok" if answer.status == 200 else "error"
        self.seen.add((method, path, kind, media))
        if media == "application/json":
            self.check(json.loads(text), schema)
            return answer.status, json.loads(text)
        events = []
        for event in text.split("\n\n"):
            data = [line[6:] for line in event.split("\n") if line.startswith("data: ")]
            if not data or data == ["[DONE]"]:
                continue
            events.append(json.loads(data[0]))
            self.check(events[-1], schema)
            names = [line[7:] for line in event.split("\n") if line.startswith("event: ")]
            self.assertEqual(names, [events[-1]["type"]] if "type" in events[-1] else [])
            if "type" in events[-1]:
                self.seen.add(("event", events[-1]["type"]))
        return answer.status, events

    def both(self, path, body):
        """Makes the call without and with streaming, and asks for the cost."""
        for stream in (False, True):
            for cost in (False, True):
                status, _ = self.call("POST", path, {**body, "stream": stream}, cost=cost)
                self.assertEqual(status, 200)

    def test_chat_completions(self):
        chat = {"model": self.facts["model"], "messages": QUESTION}
        self.both("/v1/chat/completions", {**chat, "x_sim": {"tokens": 5, "reasoning_tokens": 3}, "n": 2})
        self.both("/v1/chat/completions", {**chat, "tools": [CHAT_TOOL], "logprobs": True, "top_logprobs": 2})
        _, chunks = self.call("POST", "/v1/chat/completions",
                              {**chat, "stream": True, "stream_options": {"include_usage": True}})
        self.assertEqual(chunks[-1]["choices"], [])
        _, chunks = self.call("POST", "/v1/chat/completions", {
            **chat, "stream": True, "x_sim": {"tokens": 9, "in_stream_error": "broken", "in_stream_error_after": 3}})
        self.assertIn("error", chunks[-1])
        self.assertEqual(self.call("POST", "/v1/chat/completions", {"model": self.facts["model"]})[0], 400)
        self.assertEqual(self.call("POST", "/v1/chat/completions", chat, key=None)[0], 401)
        self.assertEqual(self.call("POST", "/v1/chat/completions", chat, key="broke")[0], 402)

    def test_completions(self):
        body = {"model": "sim/text", "prompt": ["Once", "upon"], "logprobs": 1}
        self.both("/v1/completions", body)
        self.call("POST", "/v1/completions", {**body, "stream": True, "stream_options": {"include_usage": True}})
        self.assertEqual(self.call("POST", "/v1/completions", {**body, "model": self.facts["model"]})[0], 400)

    def test_embeddings(self):
        for form in ("float", "base64"):
            status, _ = self.call("POST", "/v1/embeddings",
                                  {"model": "sim/embed", "input": ["a", "b"], "encoding_format": form})
            self.assertEqual(status, 200)
        self.assertEqual(self.call("POST", "/v1/embeddings", {"model": self.facts["model"], "input": "a"})[0], 400)

    def test_responses(self):
        ask = {"model": self.facts["model"], "input": "Please use get_weather.", "instructions": "Be short."}
        self.both("/v1/responses", {**ask, "x_sim": {"tokens": 5, "reasoning_tokens": 3}})
        self.both("/v1/responses", {**ask, "tools": [FLAT_TOOL], "tool_choice": "required"})
        _, events = self.call("POST", "/v1/responses", {**ask, "stream": True, "max_output_tokens": 3})
        self.assertEqual(events[-1]["type"], "response.incomplete")
        _, events = self.call("POST", "/v1/responses", {
            **ask, "stream": True, "x_sim": {"tokens": 9, "in_stream_error": "broken", "in_stream_error_after": 3}})
        self.assertEqual(events[-1]["type"], "response.failed")
        self.assertEqual(self.call("POST", "/v1/responses", {"model": self.facts["model"]})[0], 400)

    def test_messages(self):
        ask = {"model": self.facts["model"], "max_tokens": 100, "messages": QUESTION}
        self.both("/v1/messages", {**ask, "x_sim": {"tokens": 5, "reasoning_tokens": 3}})
        self.both("/v1/messages", {**ask, "tools": [MESSAGES_TOOL], "tool_choice": {"type": "any"}})
        _, events = self.call("POST", "/v1/messages", {
            **ask, "stream": True, "x_sim": {"tokens": 9, "in_stream_error": "broken", "in_stream_error_after": 3}})
        self.assertEqual(events[-1]["type"], "error")
        self.assertEqual(self.call("POST", "/v1/messages", {**ask, "max_tokens": -1})[0], 400)

    def test_count_tokens(self):
        ask = {"model": self.facts["model"], "messages": QUESTION, "tools": [MESSAGES_TOOL]}
        self.assertEqual(self.call("POST", "/v1/messages/count_tokens", ask)[0], 200)
        self.assertEqual(self.call("POST", "/v1/messages/count_tokens", {})[0], 400)

    def test_input_tokens(self):
        ask = {"model": self.facts["model"], "input": "Please use get_weather.", "tools": [FLAT_TOOL]}
        self.assertEqual(self.call("POST", "/v1/responses/input_tokens", ask)[0], 200)
        self.assertEqual(self.call("POST", "/v1/responses/input_tokens", {})[0], 400)

    def test_generation(self):
        _, chat = self.call("POST", "/v1/chat/completions",
                            {"model": self.facts["model"], "messages": QUESTION, "usage": {"include": True}})
        status, receipt = self.call("GET", "/api/v1/generation", query="?id=" + chat["id"])
        self.assertEqual(status, 200)
        self.assertEqual(receipt["data"]["id"], chat["id"])
        self.assertEqual(float(receipt["data"]["total_cost"]), chat["usage"]["cost"])
        self.assertEqual(self.call("GET", "/api/v1/generation", query="?id=chatcmpl-none")[0], 404)
        self.assertEqual(self.call("GET", "/api/v1/generation")[0], 400)

    def test_models(self):
        for path in ("/v1/models", "/openai/v1/models"):
            status, models = self.call("GET", path, key=None)
            self.assertEqual(status, 200)
            self.assertTrue(models["data"])

    def test_health(self):
        self.assertEqual(self.call("GET", "/healthz", key=None), (200, {"status": "ok"}))

    def test_usage(self):
        self.call("POST", "/v1/chat/completions", {"model": self.facts["model"], "messages": QUESTION})
        self.assertEqual(self.call("GET", "/api/v1/usage")[0], 200)
        self.assertEqual(self.call("GET", "/api/v1/usage", key="limited", query="?range=24h")[0], 200)
        self.assertEqual(self.call("GET", "/api/v1/usage", query="?range=1y")[0], 400)

    def test_zz_everything_described_was_seen(self):
        """Runs last by its name: a description without a call that checks it may be wrong."""
        missing = []
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                for media in operation["responses"]["200"]["content"]:
                    if (method.upper(), path, "ok", media) not in self.seen:
                        missing.append(f"{method} {path} 200 {media}")
                # Public and without parameters: the catalog has no error responses, and health none while the process runs.
                if path.endswith("/models") or path == "/healthz":
                    continue
                if (method.upper(), path, "error", "application/json") not in self.seen:
                    missing.append(f"{method} {path} error")
        for name in ("MessageEvent", "ResponseEvent"):
            for event in self.document["components"]["schemas"][name]["oneOf"]:
                event = self.document["components"]["schemas"][event["$ref"].rsplit("/", 1)[1]]
                kind = event["properties"]["type"]
                for value in kind.get("enum", [kind.get("const")]):
                    if ("event", value) not in self.seen:
                        missing.append(f"event {value}")
        # A ping needs a silent engine, a refusal a refusing one.
        self.assertEqual(set(missing) - {"event ping", "event response.refusal.delta", "event response.refusal.done"},
                         set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
