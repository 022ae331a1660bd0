"""Undocumented requests of agents, and the information that they get besides the answer, through the official clients:
strings, late system messages, prompts above the window, compressed bodies, fall-back models, limits, receipts, credit
that is used up. Decisions 4, 38, 39, 44, 66; docs/design/wire.md 1.2, 2.5, 2.7."""
import gzip
import json
import time
import unittest
import urllib.request

from facts import BASE_URL, ENGINE, FACTS, MODEL, ROOT, engine_requests, key, new_tag, sim
import anthropic
import httpx2
import openai
import zstandard

CODINGS = {"gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress}
SMALL_CREDIT = iter(FACTS["small_credit"])


def engine_messages(tag):
    with urllib.request.urlopen(f"{ENGINE}/sim/bodies/{tag}") as answer:
        return json.loads(json.load(answer)["requests"][-1]["body"])["messages"]


def texts_of(message):
    content = message["content"]
    return content.split("\n\n") if isinstance(content, str) else [part["text"] for part in content]


def receipt_of(request_id):
    """The receipt, once the request is booked."""
    deadline = time.monotonic() + 60
    while True:
        request = urllib.request.Request(f"{ROOT}/api/v1/generation?id={request_id}",
                                         headers={"authorization": "Bearer " + key("good")})
        with urllib.request.urlopen(request) as answer:
            receipt = json.load(answer)["data"]
        if receipt["status"] != "running":
            return receipt
        assert time.monotonic() < deadline, f"the request stays {receipt}"
        time.sleep(0.005)


class Cases:
    """The same cases for each client. `ask` sends turns (role, text), with other members in `body`."""

    def client(self, name="good", **more):
        client = self.module_client(api_key=key(name), base_url=self.base_url, max_retries=0, timeout=30, **more)
        self.addCleanup(client.close)
        return client

    def setUp(self):
        self.good = self.client()

    def call(self, endpoint, *turns, stream=False, body=None, **options):
        messages = [{"role": role, "content": text} for role, text in turns]
        return endpoint.create(**{**self.members(messages), **options}, stream=stream, extra_body=body or {})

    def ask(self, *turns, client=None, **options):
        return self.call(self.endpoint(client or self.good), *turns, **options)

    def ask_raw(self, *turns, client=None, **options):
        """Also with the headers."""
        return self.call(self.endpoint(client or self.good).with_raw_response, *turns, **options)

    def test_a_nul_comes_and_goes_and_a_lone_surrogate_is_replaced(self):
        # The clients write UTF-8, which has no lone surrogates: such a text is built by hand.
        tag = new_tag()
        turns = [("user", "a\0b"), ("assistant", "d\0e"), ("user", sim(tag=tag, text="f\0g"))]
        self.assertEqual(self.text(self.ask(*turns)), "f\0g")
        self.assertEqual([texts_of(message) for message in engine_messages(tag)[:2]], [["a\0b"], ["d\0e"]])
        self.assertEqual("".join(map(self.delta, self.ask(*turns, stream=True))), "f\0g")
        tag = new_tag()
        members = self.members([{"role": "user", "content": "half \ud83d"}, {"role": "assistant", "content": "yes"},
                                {"role": "user", "content": sim(tag=tag)}])
        request = urllib.request.Request(self.url, json.dumps(members).encode(),
                                         {"content-type": "application/json", "authorization": "Bearer " + key("good")})
        with urllib.request.urlopen(request) as answer:
            self.assertEqual(answer.status, 200)
        self.assertEqual(texts_of(engine_messages(tag)[0]), ["half \ufffd"])

    def test_a_late_system_message_is_folded_into_a_user_turn(self):
        for role in self.late:
            tag = new_tag()
            self.ask(("user", "one"), (role, "two"), ("assistant", "three"), ("user", sim(tag=tag)))
            messages = engine_messages(tag)
            self.assertEqual([message["role"] for message in messages], ["user", "assistant", "user"])
            self.assertEqual(texts_of(messages[0]), ["one", "two"])

    def test_a_prompt_above_the_window_never_reaches_the_engine(self):
        tag = new_tag()
        with self.assertRaises(self.bad_request) as caught:
            self.ask(("user", "word " * 140_000), ("assistant", "yes"), ("user", sim(tag=tag)))
        self.assertEqual(self.error(caught.exception)["code"], "context_length_exceeded")
        self.assertEqual(engine_requests(tag), [])

    def test_the_headers_of_its_family_tell_the_limits(self):
        headers = self.ask_raw(("user", "hi"), client=self.client("roomy")).headers
        for kind, limit in (("requests", 100_000_000), ("tokens", 100_000_000_000)):
            self.assertEqual(headers[self.limits.format(kind=kind, what="limit")], str(limit))
            self.assertIn(int(headers[self.limits.format(kind=kind, what="remaining")]), range(1, limit))
            self.assertTrue(headers[self.limits.format(kind=kind, what="reset")])
        self.assertEqual(len([name for name in headers if "ratelimit" in name]), 6)

    def test_the_receipt_of_a_stream_that_is_left_has_its_reasoning_tokens(self):
        stream = self.ask(("user", sim(reasoning_tokens=7, tokens=100_000, token_ms=5)), stream=True)
        with stream:
            next(event for event in stream if self.delta(event))
        receipt = receipt_of(stream.response.headers["x-request-id"])
        self.assertEqual((receipt["status"], receipt["native_tokens_reasoning"]), ("cancelled", 7))
        self.assertIn(receipt["native_tokens_completion"], range(8, 10_000))

    def test_compressed_bodies_are_read(self):
        for coding, compress in CODINGS.items():
            tag, text = new_tag(), "the same " * 200

            def send(request, coding=coding, compress=compress):
                body = compress(request.read())
                request.headers["content-encoding"] = coding
                request.headers["content-length"] = str(len(body))
                request.stream = self.stream_class(body)

            with self.subTest(coding=coding):
                client = self.client(http_client=self.http_client(event_hooks={"request": [send]}))
                self.ask(("user", text), ("assistant", "yes"), ("user", sim(tag=tag)), client=client)
                self.assertEqual(texts_of(engine_messages(tag)[0]), [text])

    def test_another_model_of_the_list_answers_and_is_named(self):
        answer = self.ask_raw(("user", "hi"), model="sim/empty", body={
            "models": [MODEL], "provider": {"order": ["tollgate"], "allow_fallbacks": True}})
        self.assertEqual(answer.headers["x-tollgate-model"], MODEL)
        self.assertEqual(answer.parse().model, MODEL)

    def test_a_term_that_cannot_be_met_is_refused_by_its_name(self):
        for member, body in (("provider.only", {"provider": {"only": ["elsewhere"]}}), ("models[0]", {"models": [5]})):
            with self.subTest(member=member), self.assertRaises(self.bad_request) as caught:
                self.ask(("user", "hi"), body=body)
            self.assertIn(f"'{member}'", self.error(caught.exception)["message"])

    def test_an_answer_cut_by_credit_is_read(self):
        script = ("user", sim(tokens=3000, token_ms=1))
        answer = self.ask_raw(script, client=self.client(next(SMALL_CREDIT)))
        self.assertEqual(answer.headers["x-tollgate-cut-by-credit"], "true")
        self.assertTrue(self.cut(answer.parse()))
        stream = self.ask(script, client=self.client(next(SMALL_CREDIT)), stream=True)
        events = list(stream)
        self.assertGreater(len("".join(map(self.delta, events))), 100)
        self.assertTrue(any(map(self.cut_event, events)), events[-1])
        self.assertNotIn("x-tollgate-cut-by-credit", stream.response.headers)


class OpenAi(Cases):
    stream_class = httpx2.ByteStream
    module_client, http_client, bad_request = openai.OpenAI, openai.DefaultHttpxClient, openai.BadRequestError
    base_url, late, limits = BASE_URL, ("system", "developer"), "x-ratelimit-{what}-{kind}"

    def error(self, exception):
        return exception.body


class ChatTest(OpenAi, unittest.TestCase):
    url = BASE_URL + "/chat/completions"

    def endpoint(self, client):
        return client.chat.completions

    def members(self, messages):
        return {"model": MODEL, "messages": messages}

    def text(self, answer):
        return answer.choices[0].message.content

    def delta(self, chunk):
        return chunk.choices[0].delta.content or ""

    def cut(self, answer):
        return answer.choices[0].finish_reason == "length"

    cut_event = cut


class ResponsesTest(OpenAi, unittest.TestCase):
    url = BASE_URL + "/responses"

    def endpoint(self, client):
        return client.responses

    def members(self, messages):
        return {"model": MODEL, "input": messages}

    def text(self, answer):
        return answer.output_text

    def delta(self, event):
        return event.delta if event.type == "response.output_text.delta" else ""

    def cut(self, answer):
        return answer.incomplete_details.reason == "max_output_tokens"

    def cut_event(self, event):
        return event.type == "response.incomplete"


class AnthropicTest(Cases, unittest.TestCase):
    stream_class = httpx2.ByteStream
    module_client, http_client = anthropic.Anthropic, anthropic.DefaultHttpxClient
    bad_request = anthropic.BadRequestError
    base_url, url, late, limits = ROOT, ROOT + "/v1/messages", ("system",), "anthropic-ratelimit-{kind}-{what}"

    def endpoint(self, client):
        return client.messages

    def members(self, messages):
        return {"model": MODEL, "max_tokens": 1000, "messages": messages}

    def error(self, exception):
        return exception.body["error"]

    def text(self, answer):
        return "".join(block.text for block in answer.content if block.type == "text")

    def delta(self, event):
        return event.delta.text if event.type == "content_block_delta" and event.delta.type == "text_delta" else ""

    def cut(self, answer):
        return answer.stop_reason == "max_tokens"

    def cut_event(self, event):
        return event.type == "message_delta" and event.delta.stop_reason == "max_tokens"


if __name__ == "__main__":
    unittest.main(verbosity=2)
