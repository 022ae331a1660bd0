"""Tollgate in front of llama.cpp's own server: each kind of request, its cost, and the loss of the engine.

llama_test.py TEST-CLUSTER [-v …]. Exits with 77 when the engine is missing (./dev parts llama-server)."""
import json
import pathlib
import sys
import time
import unittest

import tiny_model
import world
from world import wait_for

CHAT, TEXT, MESSAGES, RESPONSES, EMBEDDINGS = (
    "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/v1/embeddings")
# The prompts use words that the tokenizer has seen: the gateway never charges more than a token for each byte that it knows of, and the
# template adds some of its own.
TEXT_IT_KNOWS = ("each Contributor hereby grants to You a perpetual, worldwide, non-exclusive, no-charge, royalty-free, irrevocable "
                 "copyright license to reproduce, prepare Derivative Works of, publicly display, publicly perform, sublicense, and "
                 "distribute the Work and such Derivative Works in Source or Object form. ")
HELLO = [{"role": "user", "content": TEXT_IT_KNOWS}]
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "enum": ["Berlin", "Paris"]}}, "required": ["city"]}}}
# The random model may end its answer or continue.
ENDS = {str(tiny_model.END): 30}
GOES_ON = {str(tiny_model.END): -100}
WINDOW = world.CONTEXT
there = None


def setUpModule():
    global there
    there = world.World(CLUSTER, SERVER)


def tearDownModule():
    there.close()


class Case(unittest.TestCase):
    def setUp(self):
        there.key = there.facts["keys"]["roomy"]

    def ok(self, answer):
        status, body = answer
        self.assertEqual(status, 200, body)
        return body

    def chat(self, **body):
        return self.ok(there.ask(CHAT, **{"model": "tiny/chat", "messages": HELLO, "max_tokens": 20, "logit_bias": GOES_ON} | body))

    def streamed(self, path=CHAT, **body):
        """The events of a whole stream."""
        stream = there.stream(path, **{"model": "tiny/chat", "logit_bias": GOES_ON} | body)
        self.assertEqual(stream.status, 200)
        return list(stream.events())

    def booked(self, answer_id, prompt, completion, cached):
        """cached: None: the caller is not told."""
        receipt = there.receipt(answer_id)
        self.assertEqual((receipt["tokens_prompt"], receipt["tokens_completion"], receipt["estimated"]), (prompt, completion, False), receipt)
        if cached is not None:
            self.assertEqual(receipt["native_tokens_cached"], cached)
        return receipt

    def booked_as_told(self, answer):
        """An answer in the form of OpenAI, or a chunk of it, with usage."""
        usage = answer["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"] if "prompt_tokens_details" in usage else None
        return self.booked(answer["id"], usage["prompt_tokens"], usage.get("completion_tokens", 0), cached)


class Answers(Case):
    def test_chat(self):
        answer = self.chat()
        choice = answer["choices"][0]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertTrue(choice["message"]["content"])
        self.assertEqual(answer["usage"]["completion_tokens"], 20)
        self.assertNotIn("timings", answer)
        self.booked_as_told(answer)

    def test_a_natural_end(self):
        answer = self.chat(logit_bias=ENDS, max_tokens=500)
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        self.booked_as_told(answer)

    def test_a_stream_is_the_whole_answer_in_pieces(self):
        body = {"messages": HELLO, "max_tokens": 40, "temperature": 0, "seed": 1}
        whole = self.chat(**body)
        events = self.streamed(**body, stream_options={"include_usage": True})
        self.assertEqual(events[-1], "[DONE]")
        text = "".join(event["choices"][0]["delta"].get("content") or "" for event in events[:-1] if event["choices"])
        self.assertEqual(text, whole["choices"][0]["message"]["content"])
        self.assertEqual(events[-2]["usage"]["completion_tokens"], 40)
        self.assertGreater(len(events), 20, "not streamed")
        self.booked_as_told(events[-2])

    def test_log_probabilities(self):
        answer = self.chat(logprobs=True, top_logprobs=3, max_tokens=5, temperature=0)
        tokens = answer["choices"][0]["logprobs"]["content"]
        self.assertEqual([len(tokens), len(tokens[0]["top_logprobs"])], [5, 3])
        self.booked_as_told(answer)

    def test_several_answers_are_all_charged(self):
        answer = self.chat(n=2, max_tokens=10)
        self.assertEqual(sorted(choice["index"] for choice in answer["choices"]), [0, 1])
        self.assertEqual(answer["usage"]["completion_tokens"], 20)
        self.booked_as_told(answer)

    def test_several_streamed_answers_are_all_charged(self):
        events = self.streamed(messages=HELLO, n=2, max_tokens=10, stream_options={"include_usage": True})
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual(events[-2]["usage"]["completion_tokens"], 20)
        self.booked_as_told(events[-2])

    def test_a_null_is_no_value(self):
        nulls = dict.fromkeys(["n", "stop", "temperature", "top_p", "seed", "tools", "tool_choice", "response_format", "logprobs",
                               "top_logprobs", "presence_penalty", "frequency_penalty", "stream_options"])
        answer = self.chat(**nulls, messages=[{"role": "assistant", "content": None, "tool_calls": None, "refusal": None}, *HELLO])
        self.booked_as_told(answer)

    def test_completions(self):
        answer = self.ok(there.ask(TEXT, model="tiny/text", prompt=TEXT_IT_KNOWS, max_tokens=12, logit_bias=GOES_ON))
        self.assertTrue(answer["choices"][0]["text"])
        self.assertEqual(answer["usage"]["completion_tokens"], 12)
        self.booked_as_told(answer)

    def test_streamed_completions(self):
        events = self.streamed(TEXT, model="tiny/text", prompt=TEXT_IT_KNOWS, max_tokens=12, stream_options={"include_usage": True})
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual(events[-2]["usage"]["completion_tokens"], 12)
        self.booked_as_told(events[-2])

    def test_several_prompts_are_all_charged(self):
        answer = self.ok(there.ask(TEXT, model="tiny/text", prompt=[TEXT_IT_KNOWS, "the Licensor and the Work"], max_tokens=6, logit_bias=GOES_ON))
        self.assertEqual(sorted(choice["index"] for choice in answer["choices"]), [0, 1])
        self.assertEqual(answer["usage"]["completion_tokens"], 12)
        self.booked_as_told(answer)

    def test_messages(self):
        answer = self.ok(there.ask(MESSAGES, model="tiny/chat", messages=HELLO, max_tokens=9))
        usage = answer["usage"]
        self.assertIn(answer["stop_reason"], ("max_tokens", "end_turn"))
        cached = usage.get("cache_read_input_tokens") or 0
        self.booked(answer["id"], usage["input_tokens"] + cached, usage["output_tokens"], cached)

    def test_responses(self):
        answer = self.ok(there.ask(RESPONSES, model="tiny/chat", input=TEXT_IT_KNOWS, max_output_tokens=9))
        self.assertIn(answer["status"], ("incomplete", "completed"))
        usage = answer["usage"]
        self.booked(answer["id"], usage["input_tokens"], usage["output_tokens"], usage["input_tokens_details"]["cached_tokens"])

    def test_embeddings(self):
        answer = self.ok(there.ask(EMBEDDINGS, model="tiny/embed", input=["Hello, engine.", "And you?"]))
        self.assertEqual([len(one["embedding"]) for one in answer["data"]], [tiny_model.WIDTH] * 2)
        self.assertNotEqual(*(one["embedding"] for one in answer["data"]))
        self.booked_as_told(answer | {"id": there.last_id})


class Structure(Case):
    def test_a_schema_is_obeyed(self):
        schema = {"type": "object", "additionalProperties": False, "required": ["kind", "sure"],
                  "properties": {"kind": {"enum": ["cat", "dog"]}, "sure": {"type": "boolean"}}}
        for stream in (False, True):
            form = {"type": "json_schema", "json_schema": {"name": "animal", "strict": True, "schema": schema}}
            more = {"response_format": form, "max_tokens": 1000, "logit_bias": {}, "temperature": 0}
            if stream:
                events = self.streamed(messages=HELLO, **more)
                text = "".join(event["choices"][0]["delta"].get("content") or "" for event in events[:-1])
            else:
                events = self.chat(**more)
                text = events["choices"][0]["message"]["content"]
            self.assertTrue(text.startswith("{"), events)
            read = json.loads(text)
            self.assertEqual(set(read), {"kind", "sure"})
            self.assertIn(read["kind"], ("cat", "dog"))

    def called(self, **body):
        return {"tools": [WEATHER], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 200, "messages": HELLO,
                "logit_bias": {str(tiny_model.TOOL_CALL): 50, str(tiny_model.END): 100}} | body

    def test_a_tool_is_called(self):
        answer = self.chat(**self.called())
        choice = answer["choices"][0]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        function = choice["message"]["tool_calls"][0]["function"]
        self.assertEqual(function["name"], "get_weather")
        self.assertIn(json.loads(function["arguments"])["city"], ("Berlin", "Paris"))
        self.booked_as_told(answer)

    def test_a_tool_is_called_in_a_stream(self):
        events = self.streamed(**self.called(), stream_options={"include_usage": True})
        pieces = [call for event in events[:-1] if event["choices"] for call in event["choices"][0]["delta"].get("tool_calls", [])]
        self.assertEqual([call["function"]["name"] for call in pieces if call["function"].get("name")], ["get_weather"])
        arguments = "".join(call["function"].get("arguments", "") for call in pieces)
        self.assertIn(json.loads(arguments)["city"], ("Berlin", "Paris"))
        self.assertIn("tool_calls", [event["choices"][0]["finish_reason"] for event in events[:-1] if event["choices"]])
        self.booked_as_told(events[-2])

    def test_a_conversation_goes_on_after_a_call(self):
        first = self.chat(**self.called())["choices"][0]["message"]
        messages = [*HELLO, first, {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "rain"}]
        self.booked_as_told(self.chat(messages=messages, tools=[WEATHER]))

    def test_a_call_that_was_cut_is_the_requests_fault(self):
        call = {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Ber'}}
        before = there.usage()
        messages = [*HELLO, {"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "a", "content": "?"}]
        status, body = there.ask(CHAT, model="tiny/chat", messages=messages, tools=[WEATHER])
        self.assertEqual((status, body["error"]["code"]), (400, "bad_request"), body)
        self.assertEqual(there.usage(), before)

    def test_reasoning_of_earlier_turns_reaches_the_template(self):
        def prompt(**member):
            messages = [*HELLO, {"role": "assistant", "content": "Hello.", **member}, *HELLO]
            return self.chat(messages=messages, max_tokens=1)["usage"]["prompt_tokens"]
        thoughts = "the licensor grants the licensee a licence of the work"
        bare = prompt()
        self.assertGreater(prompt(reasoning_content=thoughts), bare)
        self.assertEqual(prompt(reasoning=thoughts), prompt(reasoning_content=thoughts))

    def test_arguments_of_the_template_reach_it(self):
        bare = self.chat(max_tokens=1)["usage"]["prompt_tokens"]
        without = self.chat(max_tokens=1, chat_template_kwargs={"enable_thinking": False})["usage"]["prompt_tokens"]
        self.assertGreater(without, bare)
        self.assertEqual(self.chat(max_tokens=1, reasoning_effort="none")["usage"]["prompt_tokens"], without)


class Counting(Case):
    def counted(self, **body):
        return self.ok(there.ask(MESSAGES + "/count_tokens", model="tiny/chat", **body))["input_tokens"]

    def test_what_is_counted_is_what_is_billed(self):
        tool = {"name": "get_weather", "description": "The weather.", "input_schema": WEATHER["function"]["parameters"]}
        talk = [*HELLO, {"role": "assistant", "content": [{"type": "thinking", "thinking": "a greeting", "signature": ""},
                                                         {"type": "text", "text": "Hello."},
                                                         {"type": "tool_use", "id": "toolu_1", "name": "get_weather",
                                                          "input": {"city": "Paris"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}]}]
        for body in ({"messages": HELLO}, {"messages": HELLO, "system": "Be brief. " * 40}, {"messages": HELLO, "tools": [tool]},
                     {"messages": talk, "tools": [tool], "system": "Ünïcödé ☃ 🦙"},
                     {"messages": HELLO, "thinking": {"type": "disabled"}}):
            with self.subTest(body=list(body)):
                counted = self.counted(**body)
                answer = self.ok(there.ask(MESSAGES, model="tiny/chat", max_tokens=1, **body))
                self.assertEqual(there.receipt(answer["id"])["tokens_prompt"], counted)

    def test_prompts_of_responses_are_counted_the_same(self):
        body = {"model": "tiny/chat", "input": "How many tokens is this?", "instructions": "Count."}
        counted = self.ok(there.ask(RESPONSES + "/input_tokens", **body))["input_tokens"]
        answer = self.ok(there.ask(RESPONSES, max_output_tokens=1, **body))
        self.assertEqual(answer["usage"]["input_tokens"], counted)

    def test_no_output_is_counted_and_free(self):
        before = there.usage()
        answer = self.chat(max_tokens=0)
        self.assertEqual(answer["usage"]["completion_tokens"], 0)
        self.assertEqual(answer["usage"]["prompt_tokens"], self.chat(max_tokens=1)["usage"]["prompt_tokens"])
        self.assertEqual(there.usage()[1] - before[1], 1)

    def test_the_engine_and_the_ledger_count_the_same_tokens(self):
        engine, ledger, shown = there.chat.tokens(), there.usage(), there.metric("engine_output_tokens_total", "chat")
        self.chat(messages=[{"role": "user", "content": "count me " * 50}], max_tokens=33)
        self.chat(messages=[{"role": "user", "content": "count me " * 60}], max_tokens=7)
        self.chat(n=2, max_tokens=11)
        self.streamed(messages=HELLO, max_tokens=55)
        self.streamed(messages=HELLO, max_tokens=300, logit_bias=ENDS)
        self.streamed(TEXT, model="tiny/text", prompt=TEXT_IT_KNOWS, max_tokens=9)
        self.ok(there.ask(TEXT, model="tiny/text", prompt=["the Licensor and the Work", TEXT_IT_KNOWS], max_tokens=4))
        self.ok(there.ask(MESSAGES, model="tiny/chat", messages=HELLO, max_tokens=21))
        self.ok(there.ask(RESPONSES, model="tiny/chat", input="Hello!", max_output_tokens=13))
        grown = [after - before for before, after in zip(engine, there.chat.tokens())]
        booked = [after - before for before, after in zip(ledger, there.usage())]
        self.assertEqual(booked, grown, "prompt without cache, output")
        self.assertEqual(there.metric("engine_output_tokens_total", "chat") - shown, grown[1])

    def test_the_second_of_two_prompts_is_mostly_cached(self):
        text = "".join(f"Clause {number} of the licence. " for number in range(40))
        for end in ("First?", "Second?"):
            before = there.chat.tokens()[0]
            answer = self.chat(messages=[{"role": "user", "content": text + end}], max_tokens=2)
            usage = answer["usage"]
            cached = usage["prompt_tokens_details"]["cached_tokens"]
            self.assertEqual(there.chat.tokens()[0] - before, usage["prompt_tokens"] - cached)
            self.booked_as_told(answer)
        self.assertGreater(cached, usage["prompt_tokens"] * 3 // 4)


class TooLong(Case):
    LONG = [{"role": "user", "content": "longer " * 3 * WINDOW}]

    def refused(self, answer, limit):
        status, body = answer
        self.assertEqual((status, body["error"]["code"]), (400, "context_length_exceeded"), body)
        self.assertIn(f"maximum context length is {limit} tokens", body["error"]["message"])

    def test_above_the_window_of_the_catalog(self):
        before = there.usage()
        self.refused(there.ask(CHAT, model="tiny/chat", messages=self.LONG), WINDOW)
        self.assertEqual(there.usage(), before)

    def test_above_the_window_of_the_engine_alone(self):
        before = there.usage()
        window = there.chat.window()
        self.refused(there.ask(CHAT, model="tiny/wide", messages=self.LONG), window)
        stream = there.stream(CHAT, model="tiny/wide", messages=self.LONG)
        self.assertEqual(stream.status, 400)
        self.refused((stream.status, json.loads(stream.answer.read())), window)
        self.assertEqual(there.usage(), before)

    def test_an_embedding_above_the_engines_batch(self):
        before = there.usage()
        status, body = there.ask(EMBEDDINGS, model="tiny/embed", input="longer " * 1000)
        self.assertEqual((status, body["error"]["code"]), (400, "context_length_exceeded"), body)
        self.assertEqual(there.usage(), before)

    def test_an_answer_that_fills_the_window_ends_by_length(self):
        window = there.chat.window()
        answer = self.chat(model="tiny/wide", max_tokens=None)
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")
        self.assertLessEqual(answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"], window + 1)
        self.booked_as_told(answer)


class Leaving(Case):
    """A caller who leaves."""

    def test_the_engine_stops_within_half_a_second(self):
        times = []
        for _ in range(5):
            made, ledger = there.chat.tokens()[1], there.usage()[1]
            stream = there.stream(CHAT, model="tiny/chat", messages=HELLO, max_tokens=3500, logit_bias=GOES_ON)
            events = stream.events()
            chunk = next(event for event in events if event["choices"][0]["delta"].get("content"))
            self.assertEqual(there.chat.running(), 1)
            stream.leave()
            left = time.monotonic()
            wait_for("the engine's abort", lambda: there.chat.running() == 0)
            times.append(time.monotonic() - left)
            receipt = there.receipt(chunk["id"])
            self.assertEqual(receipt["status"], "cancelled")
            self.assertGreater(receipt["tokens_completion"], 0)
            self.assertLess(receipt["tokens_completion"], 3500)
            booked, of_engine = there.usage()[1] - ledger, there.chat.tokens()[1] - made
            print(f"LEFT seconds={times[-1]:.3f} booked={booked} engine={of_engine}")
            self.assertLessEqual(booked, of_engine, "more was booked than was made")
        self.assertLess(min(times), 0.5, times)  # other work delays some

    def test_an_answer_that_is_not_streamed_is_given_up_too(self):
        times = []
        for _ in range(3):
            body = {"model": "tiny/chat", "messages": HELLO, "max_tokens": 3500, "logit_bias": GOES_ON}
            stream = world.Asked(there.port, CHAT, body, there.auth())
            wait_for("the engine's work", lambda: there.chat.running() == 1)
            stream.leave()
            left = time.monotonic()
            wait_for("the engine's abort", lambda: there.chat.running() == 0)
            times.append(time.monotonic() - left)
        self.assertLess(min(times), 0.5, times)  # other work delays some


class Load(Case):
    def test_what_waits_at_the_engine_is_known(self):
        """Callers that bypass Tollgate; the engine works on two requests at a time."""
        self.assertEqual(there.metric("engine_queue", "chat"), 0)
        body = {"messages": HELLO, "max_tokens": 3500, "logit_bias": GOES_ON, "stream": True}
        others = []
        try:
            def waiting():
                if len(others) < 200:
                    others.append(world.Asked(there.chat.port, CHAT, body, there.chat.headers))
                return there.metric("engine_queue", "chat") > 0
            wait_for("the queue at the engine", waiting)
            self.assertEqual(there.metric("engine_reported_running", "chat"), 2)
        finally:
            for other in others:
                other.leave()
        wait_for("the end of the queue", lambda: there.metric("engine_queue", "chat") == 0)


class Pool(Case):
    """Two engines, one of which is stopped."""

    def begin(self):
        """A stream that has its first output, and its engine."""
        before = [engine.running() for engine in there.pair]
        stream = there.stream(CHAT, model="tiny/pair", messages=HELLO, max_tokens=3500, logit_bias=GOES_ON)
        events = stream.events()
        first = next(event for event in events if event["choices"][0]["delta"].get("content"))
        after = [engine.running() for engine in there.pair]
        return stream, events, first, next(i for i in (0, 1) if after[i] > before[i])

    def test_requests_are_spread_and_a_lost_engine_costs_only_its_own(self):
        streams = [self.begin() for _ in range(2)]
        self.assertEqual(sorted(engine for *_, engine in streams), [0, 1])
        (_, cut, first, dead), (_, whole, _, _) = streams
        there.pair[dead].kill()
        end = list(cut)
        self.assertIn("error", end[-1])
        receipt = there.receipt(first["id"])
        self.assertEqual(receipt["status"], "interrupted")
        self.assertGreater(receipt["tokens_completion"], 0)
        for _ in range(4):
            answer = self.ok(there.ask(CHAT, model="tiny/pair", messages=HELLO, max_tokens=3))
            self.booked_as_told(answer)
        self.assertEqual(list(whole)[-1], "[DONE]", "the other engine's answer was not whole")
        there.pair[dead].start()
        # Waits until it has its full share again (router.slow_start_seconds).
        wait_for("the engine's return", lambda: there.metric("engine_weight", ("one", "two")[dead]) == 1)
        streams = [self.begin() for _ in range(2)]
        self.assertEqual(sorted(engine for *_, engine in streams), [0, 1])
        for stream, *_ in streams:
            stream.leave()


if __name__ == "__main__":
    CLUSTER, SERVER = sys.argv.pop(1), world.program()
    if SERVER is None:
        print("NOT RUN: the tests of a real engine: llama.cpp's server is missing; get it with ./dev parts llama-server", file=sys.stderr)
        sys.exit(77)
    unittest.main()
