"""The official openai client for Python: models, chat, responses, completions, embeddings."""
import gzip
import json
import time
import unittest

from facts import (BASE_URL, CITY, MODEL, REFUSALS, engine_requests, key, new_tag, sim, until_aborted)
import httpx
import openai
import pydantic

WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": CITY}}
FLAT = {"type": "function", "name": "get_weather", "parameters": CITY, "strict": False}


class Person(pydantic.BaseModel):
    name: str
    age: int


def client(name="good", retries=0):
    return openai.OpenAI(api_key=key(name), base_url=BASE_URL, max_retries=retries, timeout=30)


def ask(content, **more):
    return {"model": MODEL, "messages": [{"role": "user", "content": content}], **more}


CLASSES = {
    400: openai.BadRequestError, 401: openai.AuthenticationError, 402: openai.APIStatusError,
    403: openai.PermissionDeniedError, 404: openai.NotFoundError, 429: openai.RateLimitError,
    500: openai.InternalServerError, 502: openai.InternalServerError,
    503: openai.InternalServerError,
}


class Chat(unittest.TestCase):
    def setUp(self):
        self.good = client()
        self.addCleanup(self.good.close)

    def create(self, content, **more):
        return self.good.chat.completions.create(**ask(content, **more))

    def test_models_are_listed(self):
        self.assertIn(MODEL, [entry.id for entry in self.good.models.list()])
        with self.assertRaises(openai.NotFoundError):
            self.good.models.retrieve("sim")

    def test_the_cost_is_in_the_usage_when_asked_for(self):
        whole = self.create("hello", extra_body={"usage": {"include": True}})
        self.assertIsInstance(whole.usage.cost, float)
        headers = {"x-tollgate-include-cost": "true"}
        last = list(self.create("hello", stream=True, extra_headers=headers))[-1]
        self.assertEqual(last.usage.cost, whole.usage.cost)
        receipt = self.good.get("../api/v1/generation", cast_to=object, options={"params": {"id": whole.id}})
        self.assertEqual(float(receipt["data"]["total_cost"]), whole.usage.cost)

    def test_input_tokens_of_a_response_are_counted(self):
        request = {"model": MODEL, "input": "how long is this?", "tools": [FLAT]}
        count = self.good.responses.input_tokens.count(**request)
        self.assertEqual(count.object, "response.input_tokens")
        self.assertEqual(count.input_tokens, self.good.responses.create(**request).usage.input_tokens)

    def test_compressed_requests_are_read(self):
        body = gzip.compress(json.dumps(ask("hello")).encode())
        answer = self.good._client.post(f"{BASE_URL}/chat/completions", content=body, headers={
            "content-encoding": "gzip", "content-type": "application/json", "authorization": "Bearer " + key("good")})
        self.assertEqual(answer.status_code, 200, answer.text)

    def test_chat_streamed_and_not_streamed_are_equal(self):
        whole = self.create(sim(tokens=9))
        self.assertEqual(whole.choices[0].finish_reason, "stop")
        self.assertEqual(whole.usage.completion_tokens, 9)
        self.assertTrue(whole._request_id)
        text, usage = "", None
        for chunk in self.create(sim(tokens=9), stream=True, stream_options={"include_usage": True}):
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            usage = chunk.usage or usage
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(usage, whole.usage)

    def test_reasoning_is_separate(self):
        message = self.create(sim(reasoning_tokens=5, tokens=3)).choices[0].message
        self.assertTrue(message.reasoning_content)
        self.assertTrue(message.content)

    def test_tools_round_trip(self):
        question = ask("please use get_weather now", tools=[WEATHER])
        call = self.good.chat.completions.create(**question)
        self.assertEqual(call.choices[0].finish_reason, "tool_calls")
        message = call.choices[0].message
        self.assertEqual(message.tool_calls[0].function.name, "get_weather")
        self.assertIn("city", json.loads(message.tool_calls[0].function.arguments))
        with self.good.chat.completions.stream(**question) as stream:
            streamed = stream.get_final_completion()
        self.assertEqual(streamed.choices[0].message.tool_calls[0].function.arguments,
                         message.tool_calls[0].function.arguments)
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"}
        question["messages"] += [message, result]
        end = self.good.chat.completions.create(**question)
        self.assertEqual(end.choices[0].finish_reason, "stop")

    def test_structured_output(self):
        answer = self.good.chat.completions.parse(**ask("a person"), response_format=Person)
        self.assertIsInstance(answer.choices[0].message.parsed, Person)

    def test_errors_have_their_classes_and_codes(self):
        for status, code, name, model, max_tokens, script in REFUSALS:
            for stream in (False, True):
                with self.subTest(code=code, stream=stream), self.assertRaises(CLASSES[status]) as caught:
                    client(name).chat.completions.create(
                        **{**ask(sim(**script)), "model": model}, max_tokens=max_tokens, stream=stream)
                self.assertEqual(caught.exception.status_code, status)
                self.assertEqual(caught.exception.code, code)
                self.assertTrue(caught.exception.request_id)
                self.assertEqual(caught.exception.response.headers["x-should-retry"], str(status >= 429).lower())
        with self.assertRaises(openai.BadRequestError) as caught:
            self.create("x", max_tokens=-1)
        self.assertEqual(caught.exception.param, "max_tokens")

    def test_error_within_a_stream_is_raised(self):
        chunks = []
        with self.assertRaises(openai.APIError):
            for chunk in self.create(sim(tokens=20, cut_after_tokens=4), stream=True):
                chunks.append(chunk)
        self.assertGreaterEqual(len(chunks), 4)

    def test_429_of_an_engine_is_retried_after_retry_after(self):
        tag = new_tag()
        begun = time.monotonic()
        script = sim(status=429, status_times=1, headers={"retry-after": "1"}, tag=tag)
        answer = client(retries=2).chat.completions.create(**ask(script))
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual(len(engine_requests(tag)), 2)
        self.assertGreaterEqual(time.monotonic() - begun, 0.95)

    def test_over_the_rate_limit_is_retried_after_retry_after(self):
        running = client("limited").chat.completions.create(
            **ask("x", extra_body={"x_sim": {"tokens": 100000, "token_ms": 10}}), stream=True)
        answers = []

        def answered(response):
            answers.append((response.status_code, time.monotonic()))
            running.close()  # so that a later try is admitted

        with httpx.Client(event_hooks={"response": [answered]}) as connections:
            limited = client("limited", retries=3).with_options(http_client=connections)
            answer = limited.chat.completions.create(**ask("x"))
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual((answers[0][0], answers[-1][0]), (429, 200))
        self.assertGreaterEqual(answers[1][1] - answers[0][1], 0.9)

    def test_closing_a_stream_aborts_the_engine_request(self):
        tag = new_tag()
        with self.create(sim(tokens=100000, token_ms=5, tag=tag), stream=True) as stream:
            next(iter(stream))
        until_aborted(tag)

    def test_completions(self):
        request = {"model": "sim/text", "prompt": "once upon a time", "max_tokens": 9}
        whole = self.good.completions.create(**request)
        self.assertEqual(whole.choices[0].finish_reason, "length")
        self.assertEqual(whole.usage.completion_tokens, 9)
        streamed = "".join(chunk.choices[0].text for chunk in self.good.completions.create(**request, stream=True))
        self.assertEqual(streamed, whole.choices[0].text)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.good.completions.create(model=MODEL, prompt="x")
        self.assertEqual(caught.exception.param, "model")

    def test_embeddings(self):
        answer = self.good.embeddings.create(model="sim/embed", input=["one", "two", "one"])
        self.assertEqual([one.index for one in answer.data], [0, 1, 2])
        self.assertEqual(answer.data[2].embedding, answer.data[0].embedding)
        self.assertIsInstance(answer.data[1].embedding[0], float)
        few = self.good.embeddings.create(model="sim/embed", input="one", dimensions=4, encoding_format="float")
        self.assertEqual(len(few.data[0].embedding), 4)

    def test_embeddings_of_a_chat_model_are_refused(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.good.embeddings.create(model=MODEL, input="x")
        self.assertEqual(caught.exception.param, "model")


class Responses(unittest.TestCase):
    def setUp(self):
        self.good = client()
        self.addCleanup(self.good.close)

    def create(self, content, **more):
        return self.good.responses.create(model=MODEL, input=content, **more)

    def test_streamed_and_not_streamed_are_equal(self):
        whole = self.create(sim(reasoning_tokens=4, tokens=5))
        self.assertEqual(whole.status, "completed")
        self.assertEqual([item.type for item in whole.output], ["reasoning", "message"])
        self.assertEqual(whole.usage.output_tokens, 9)
        self.assertTrue(whole._request_id)
        with self.good.responses.stream(model=MODEL, input=sim(reasoning_tokens=4, tokens=5)) as stream:
            streamed = stream.get_final_response()
        self.assertEqual(streamed.output_text, whole.output_text)
        self.assertEqual(streamed.output[0].summary, whole.output[0].summary)
        self.assertEqual(streamed.usage, whole.usage)

    def test_tools_round_trip(self):
        question = [{"role": "user", "content": "use get_weather"}]
        call = self.create(question, tools=[FLAT])
        (item,) = [one for one in call.output if one.type == "function_call"]
        self.assertIn("city", json.loads(item.arguments))
        output = {"type": "function_call_output", "call_id": item.call_id, "output": "sunny"}
        end = self.create([*question, *call.output, output], tools=[FLAT])
        self.assertTrue(end.output_text)

    def test_structured_output(self):
        answer = self.good.responses.parse(model=MODEL, input="a person", text_format=Person)
        self.assertIsInstance(answer.output_parsed, Person)

    def test_a_response_cut_by_max_output_tokens_is_incomplete(self):
        answer = self.create(sim(tokens=9), max_output_tokens=4)
        self.assertEqual(answer.status, "incomplete")
        self.assertEqual(answer.incomplete_details.reason, "max_output_tokens")

    def test_a_failure_within_a_stream_is_response_failed(self):
        *_, end = self.create(sim(tokens=20, cut_after_tokens=4), stream=True)
        self.assertEqual(end.type, "response.failed")
        self.assertTrue(end.response.error.code)

    def test_errors_have_their_classes_and_codes(self):
        for status, code, name, model, max_tokens, script in REFUSALS:
            with self.subTest(code=code), self.assertRaises(CLASSES[status]) as caught:
                client(name).responses.create(model=model, input=sim(**script), max_output_tokens=max_tokens)
            self.assertEqual(caught.exception.code, code)


if __name__ == "__main__":
    unittest.main(verbosity=2)
