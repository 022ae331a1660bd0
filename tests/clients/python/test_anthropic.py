"""The official Anthropic client for Python."""
import unittest

from facts import CITY, MODEL, REFUSALS, ROOT, engine_requests, key, new_tag, sim, until_aborted
import anthropic

WEATHER = {"name": "get_weather", "description": "weather", "input_schema": CITY}
CLASSES = {
    400: anthropic.BadRequestError, 401: anthropic.AuthenticationError, 402: anthropic.APIStatusError,
    403: anthropic.PermissionDeniedError, 404: anthropic.NotFoundError, 429: anthropic.RateLimitError,
    500: anthropic.InternalServerError, 502: anthropic.InternalServerError,
    503: anthropic.InternalServerError,
}


def client(name="good", retries=0):
    return anthropic.Anthropic(api_key=key(name), base_url=ROOT, max_retries=retries, timeout=30)


def ask(content, **more):
    return {"model": MODEL, "max_tokens": 1000, "messages": [{"role": "user", "content": content}], **more}


class Messages(unittest.TestCase):
    def setUp(self):
        self.good = client()
        self.addCleanup(self.good.close)

    def create(self, content, **more):
        return self.good.messages.create(**ask(content, **more))

    def test_models_are_listed(self):
        self.assertIn(MODEL, [entry.id for entry in self.good.models.list()])

    def test_streamed_and_not_streamed_are_equal(self):
        whole = self.create(sim(reasoning_tokens=4, tokens=5))
        self.assertEqual([block.type for block in whole.content], ["thinking", "text"])
        self.assertEqual(whole.stop_reason, "end_turn")
        self.assertEqual(whole.usage.output_tokens, 9)
        self.assertEqual(whole.usage.cache_read_input_tokens, 0)
        self.assertTrue(whole._request_id)
        with self.good.messages.stream(**ask(sim(reasoning_tokens=4, tokens=5))) as stream:
            streamed = stream.get_final_message()
        self.assertEqual(streamed.content[0].thinking, whole.content[0].thinking)
        self.assertEqual(streamed.content[1].text, whole.content[1].text)
        self.assertEqual(streamed.usage.input_tokens, whole.usage.input_tokens)

    def test_tools_round_trip(self):
        question = ask("use get_weather", tools=[WEATHER])
        call = self.good.messages.create(**question)
        self.assertEqual(call.stop_reason, "tool_use")
        (use,) = [block for block in call.content if block.type == "tool_use"]
        self.assertIn("city", use.input)
        question["messages"] += [
            {"role": "assistant", "content": call.content},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "sunny"}]}]
        end = self.good.messages.create(**question)
        self.assertEqual(end.stop_reason, "end_turn")

    def test_count_tokens_equals_the_input_tokens_billed(self):
        request = ask("how long is this?", system="be short", tools=[WEATHER])
        billed = self.good.messages.create(**request).usage.input_tokens
        del request["max_tokens"]
        self.assertEqual(self.good.messages.count_tokens(**request).input_tokens, billed)

    def test_errors_have_their_classes_and_types(self):
        for status, code, name, model, max_tokens, script in REFUSALS:
            for stream in (False, True):
                request = ask(sim(**script), model=model, max_tokens=max_tokens, stream=stream)
                with self.subTest(code=code, stream=stream), self.assertRaises(CLASSES[status]) as caught:
                    client(name).messages.create(**request)
                self.assertEqual(caught.exception.status_code, status)
                self.assertEqual(caught.exception.body["type"], "error")
                self.assertEqual(caught.exception.body["error"]["code"], code)
                self.assertTrue(caught.exception.request_id)

    def test_error_within_a_stream_is_raised(self):
        with self.assertRaises(anthropic.APIError):
            for _ in self.create(sim(tokens=20, cut_after_tokens=4), stream=True):
                pass

    def test_429_of_an_engine_is_retried(self):
        tag = new_tag()
        script = sim(status=429, status_times=1, headers={"retry-after": "1"}, tag=tag)
        self.assertEqual(client(retries=2).messages.create(**ask(script)).stop_reason, "end_turn")
        self.assertEqual(len(engine_requests(tag)), 2)

    def test_closing_a_stream_aborts_the_engine_request(self):
        tag = new_tag()
        with self.create(sim(tokens=100000, token_ms=5, tag=tag), stream=True) as stream:
            next(iter(stream))
        until_aborted(tag)


if __name__ == "__main__":
    unittest.main(verbosity=2)
