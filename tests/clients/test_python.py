"""The official openai client for Python against a running Tollgate. Facts about it come in the environment variable
TOLLGATE_FACTS (tollgate-test-cluster prints them)."""
import json
import os
import time
import threading
import unittest

import openai

FACTS = json.loads(os.environ["TOLLGATE_FACTS"])
MODEL = FACTS["model"]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def client(key="good", retries=0):
    return openai.OpenAI(api_key=FACTS["keys"].get(key, key), base_url=f"http://127.0.0.1:{FACTS['port']}/v1",
                         max_retries=retries, timeout=30)


def ask(content, sim=None, **more):
    request = {"model": MODEL, "messages": [{"role": "user", "content": content}], **more}
    if sim is not None:
        request["extra_body"] = {"x_sim": sim}
    return request


class OpenAiClient(unittest.TestCase):
    def setUp(self):
        self.good = client()

    def create(self, *args, **more):
        return self.good.chat.completions.create(**ask(*args, **more))

    def test_models_are_listed(self):
        self.assertIn(MODEL, [entry.id for entry in self.good.models.list()])
        with self.assertRaises(openai.NotFoundError):
            self.good.models.retrieve("sim")

    def test_chat_whole_and_streamed_say_the_same(self):
        whole = self.create("hello there", {"tokens": 9})
        self.assertEqual(whole.choices[0].finish_reason, "stop")
        self.assertEqual(whole.usage.completion_tokens, 9)
        self.assertTrue(whole._request_id)
        text, usage = "", None
        for chunk in self.create("hello there", {"tokens": 9}, stream=True, stream_options={"include_usage": True}):
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            usage = chunk.usage or usage
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(usage.completion_tokens, 9)

    def test_reasoning_is_apart(self):
        message = self.create("think", {"reasoning_tokens": 5, "tokens": 3}).choices[0].message
        self.assertTrue(message.reasoning_content)
        self.assertTrue(message.content)

    def test_tools_there_and_back(self):
        question = ask("please use get_weather now", tools=[WEATHER])
        call = self.good.chat.completions.create(**question)
        self.assertEqual(call.choices[0].finish_reason, "tool_calls")
        message = call.choices[0].message
        self.assertEqual(message.tool_calls[0].function.name, "get_weather")
        self.assertIn("city", json.loads(message.tool_calls[0].function.arguments))
        arguments = ""
        for chunk in self.good.chat.completions.create(**question, stream=True):
            for part in chunk.choices[0].delta.tool_calls or []:
                arguments += part.function.arguments or ""
        self.assertEqual(arguments, message.tool_calls[0].function.arguments)
        question["messages"] += [message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"}]
        end = self.good.chat.completions.create(**question)
        self.assertEqual(end.choices[0].finish_reason, "stop")

    def test_structured_output(self):
        schema = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
        answer = self.create("a person", response_format={
            "type": "json_schema", "json_schema": {"name": "person", "schema": schema}})
        self.assertIsInstance(json.loads(answer.choices[0].message.content)["age"], int)

    def test_errors_have_their_classes_and_codes(self):
        cases = [
            ("sk-tollgate-nonsense", {}, None, openai.AuthenticationError, 401, "invalid_api_key"),
            ("broke", {}, None, openai.APIStatusError, 402, "insufficient_credits"),
            ("disabled", {}, None, openai.PermissionDeniedError, 403, "virtual_key_blocked"),
            ("good", {"model": "sim/none"}, None, openai.NotFoundError, 404, "model_unavailable"),
            ("good", {"max_tokens": -1}, None, openai.BadRequestError, 400, "bad_request"),
            ("good", {}, {"status": 503}, openai.InternalServerError, 503, "service_unavailable"),
            ("good", {}, {"status": 429}, openai.RateLimitError, 429, "rate_limited"),
        ]
        for key, more, sim, kind, status, code in cases:
            for stream in (False, True):
                with self.subTest(code=code, stream=stream):
                    with self.assertRaises(kind) as caught:
                        request = {**ask("x", sim), **more}
                        client(key).chat.completions.create(**request, stream=stream)
                    self.assertEqual(caught.exception.status_code, status)
                    self.assertEqual(caught.exception.code, code)
                    self.assertTrue(caught.exception.request_id)

    def test_error_within_a_stream_is_raised(self):
        with self.assertRaises(openai.APIError):
            for _ in self.create("x", {"tokens": 20, "cut_after_tokens": 4}, stream=True):
                pass

    def test_retries_wait_as_long_as_they_are_told(self):
        running = client("limited").chat.completions.create(
            **ask("x", {"tokens": 100000, "token_ms": 10}), stream=True)
        begun = time.monotonic()
        timer = threading.Timer(0.3, running.close)
        timer.start()
        answer = client("limited", retries=2).chat.completions.create(**ask("x"))
        timer.join()
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertGreaterEqual(time.monotonic() - begun, 0.9)


if __name__ == "__main__":
    unittest.main(verbosity=2)
