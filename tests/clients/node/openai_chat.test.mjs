// The official openai client for Node, two major versions: models, chat, completions, embeddings.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";

import {
  baseURL, breaks, citySchema, collect, engineBody, engineRequests, facts, failure, model, newTag,
  refusals, sim, untilEngine,
} from "./support/facts.mjs";

const ask = (content, more = {}) => ({ model, messages: [{ role: "user", content }], ...more });
const weather = { type: "function", function: { name: "get_weather", parameters: citySchema } };
const clock = { type: "function", function: { name: "get_time", parameters: citySchema } };

for (const name of ["openai6", "openai7"]) {
  const { default: OpenAI } = await import(name);
  const { zodResponseFormat } = await import(`${name}/helpers/zod`);
  const client = (apiKey, more = {}) => new OpenAI({ apiKey, baseURL, maxRetries: 0, ...more });
  const good = client(facts.keys.good);
  const chat = good.chat.completions;

  describe(`${name}`, { concurrency: 4 }, () => {
    test(`${name}: models are listed; there is no endpoint for a single one`, async () => {
      const entries = await collect(good.models.list());
      const entry = entries.find((one) => one.id === model);
      assert.equal(entry.object, "model");
      assert.ok(Number.isInteger(entry.created));
      assert.equal(entry.owned_by, "sim");
      const error = await failure(good.models.retrieve("sim"));
      assert.ok(error instanceof OpenAI.NotFoundError);
      assert.equal(error.code, "not_found");
    });

    test(`${name}: chat, not streamed`, async () => {
      const answer = await chat.create(ask(sim({ tokens: 7 })));
      assert.equal(answer.object, "chat.completion");
      assert.equal(answer.model, model);
      assert.equal(answer.choices[0].finish_reason, "stop");
      assert.ok(answer.choices[0].message.content.length > 0);
      assert.equal(answer.usage.completion_tokens, 7);
      assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + 7);
      assert.ok(answer._request_id);
    });

    test(`${name}: chat, streamed, has the same content`, async () => {
      const whole = await chat.create(ask("tell me more"));
      const chunks = await collect(await chat.create(
        ask("tell me more", { stream: true, stream_options: { include_usage: true } })));
      const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
      assert.equal(text, whole.choices[0].message.content);
      assert.deepEqual(chunks.at(-1).choices, []);
      assert.deepEqual(chunks.at(-1).usage, whole.usage);
      assert.equal(new Set(chunks.map((chunk) => chunk.id + chunk.created + chunk.model)).size, 1);
    });

    test(`${name}: without include_usage no chunk has usage or empty choices`, async () => {
      const chunks = await collect(await chat.create(ask("hello", { stream: true })));
      for (const chunk of chunks) {
        assert.equal(chunk.choices.length, 1);
        assert.ok(chunk.usage === undefined || chunk.usage === null);
      }
    });

    test(`${name}: the stream helper completes, also with several choices`, async () => {
      const runner = chat.stream(ask("with the helper", { n: 3 }));
      const answer = await runner.finalChatCompletion();
      assert.deepEqual(answer.choices.map((choice) => choice.index), [0, 1, 2]);
      for (const choice of answer.choices) {
        assert.equal(choice.message.role, "assistant");
        assert.ok(choice.message.content.length > 0);
        assert.equal(choice.finish_reason, "stop");
      }
    });

    test(`${name}: log probabilities, streamed or not`, async () => {
      const request = ask("how sure", { logprobs: true, top_logprobs: 1, max_tokens: 4 });
      const answer = await chat.create(request);
      assert.equal(answer.choices[0].logprobs.content.length, 4);
      const streamed = await chat.stream(request).finalChatCompletion();
      assert.deepEqual(streamed.choices[0].logprobs.content, answer.choices[0].logprobs.content);
    });

    test(`${name}: reasoning text is separate from the content`, async () => {
      const request = ask(sim({ reasoning_tokens: 5, tokens: 3 }));
      const answer = await chat.create(request);
      const { content, reasoning_content: reasoning } = answer.choices[0].message;
      assert.ok(reasoning.length > 0);
      assert.equal(answer.usage.completion_tokens, 8);
      const deltas = (await collect(await chat.create({ ...request, stream: true })))
        .map((chunk) => chunk.choices[0].delta);
      assert.equal(deltas.map((delta) => delta.reasoning_content ?? "").join(""), reasoning);
      assert.equal(deltas.map((delta) => delta.content ?? "").join(""), content);
      assert.ok(deltas.every((delta) => delta.reasoning === undefined));
    });

    test(`${name}: max_tokens reached within the reasoning leaves an empty content`, async () => {
      const answer = await chat.create(ask(sim({ reasoning_tokens: 9 }), { max_tokens: 4 }));
      assert.equal(answer.choices[0].finish_reason, "length");
      assert.equal(answer.choices[0].message.content, "");
    });

    test(`${name}: tools, round trip, streamed or not`, async () => {
      const question = ask("please use get_weather for me", { tools: [weather] });
      const call = await chat.create(question);
      assert.equal(call.choices[0].finish_reason, "tool_calls");
      const message = call.choices[0].message;
      assert.equal(message.content, null);
      assert.equal(message.tool_calls[0].function.name, "get_weather");
      assert.ok(JSON.parse(message.tool_calls[0].function.arguments).city);
      const streamed = await chat.stream(question).finalChatCompletion();
      assert.deepEqual(streamed.choices[0].message.tool_calls.map((one) => one.function.arguments),
        [message.tool_calls[0].function.arguments]);
      const end = await chat.create({
        ...question,
        messages: [...question.messages, message,
          { role: "tool", tool_call_id: message.tool_calls[0].id, content: "sunny" }],
      });
      assert.equal(end.choices[0].finish_reason, "stop");
      assert.ok(end.choices[0].message.content.length > 0);
    });

    test(`${name}: a forced call ends with tool_calls`, async () => {
      const tool_choice = { type: "function", function: { name: "get_time" } };
      const answer = await chat.create(ask("x", { tools: [weather, clock], tool_choice }));
      assert.equal(answer.choices[0].finish_reason, "tool_calls");
      assert.equal(answer.choices[0].message.tool_calls[0].function.name, "get_time");
    });

    for (const stream of [false, true]) {
      test(`${name}: runTools answers parallel calls, stream ${stream}`, async () => {
        const asked = [];
        const tool = ({ function: { name: called, parameters } }) => ({
          type: "function",
          function: {
            name: called, parameters, description: called, parse: JSON.parse,
            function: ({ city }) => { asked.push([called, city]); return `${city}: fine`; },
          },
        });
        const runner = chat.runTools(
          ask("use get_weather and get_time", { tools: [tool(weather), tool(clock)], stream }));
        assert.ok((await runner.finalContent()).length > 0);
        assert.deepEqual(asked.map(([called]) => called).sort(), ["get_time", "get_weather"]);
        assert.ok(asked.every(([, city]) => city.length > 0));
        assert.deepEqual(runner.messages.map((message) => message.role),
          ["user", "assistant", "tool", "tool", "assistant"]);
      });
    }

    test(`${name}: structured output by the parse helper, streamed or not`, async () => {
      const person = z.object({ name: z.string(), age: z.number().int() });
      const request = ask("a person", { response_format: zodResponseFormat(person, "person") });
      const answer = await chat.parse(request);
      assert.ok(Number.isInteger(answer.choices[0].message.parsed.age));
      const streamed = await chat.stream(request).finalChatCompletion();
      assert.deepEqual(streamed.choices[0].message.parsed, answer.choices[0].message.parsed);
    });

    test(`${name}: request members reach the engine unchanged`, async () => {
      const tag = newTag();
      await chat.create({
        model, temperature: 0.25, top_p: 0.5, seed: 9007199254740991, stop: ["\u2028 stop"],
        top_k: 5, chat_template_kwargs: { enable_thinking: false }, user: "user-1", store: true,
        messages: [
          { role: "developer", content: "be short" },
          { role: "user", content: [{ type: "text", text: "héllo \u{1F642} \t\u007f" }] },
        ],
        x_sim: { tag },
      });
      const body = await engineBody(tag);
      assert.equal(body.temperature, 0.25);
      assert.equal(body.seed, 9007199254740991);
      assert.deepEqual(body.stop, ["\u2028 stop"]);
      assert.equal(body.top_k, 5);
      assert.deepEqual(body.chat_template_kwargs, { enable_thinking: false });
      const content = body.messages[1].content;
      assert.equal(typeof content === "string" ? content : content[0].text, "héllo \u{1F642} \t\u007f");
    });

    test(`${name}: errors have their classes, codes and ids`, async () => {
      const kinds = {
        400: OpenAI.BadRequestError, 401: OpenAI.AuthenticationError, 402: OpenAI.APIError,
        403: OpenAI.PermissionDeniedError, 404: OpenAI.NotFoundError, 429: OpenAI.RateLimitError,
        500: OpenAI.InternalServerError, 502: OpenAI.InternalServerError,
        503: OpenAI.InternalServerError,
      };
      for (const row of refusals) {
        for (const stream of [false, true]) {
          const request = { ...ask(sim(row.script)), model: row.model, max_tokens: row.maxTokens };
          const error = await failure(
            client(row.key).chat.completions.create({ ...request, stream }));
          assert.ok(error instanceof kinds[row.status], `${row.code}: ${error}`);
          assert.equal(error.status, row.status);
          assert.equal(error.code, row.code);
          assert.equal(typeof error.type, "string");
          assert.ok(error.requestID);
          assert.equal(error.headers.get("x-should-retry"), String(row.status >= 429), row.code);
        }
      }
      const error = await failure(chat.create(ask("x", { max_tokens: -1 })));
      assert.equal(error.param, "max_tokens");
    });

    test(`${name}: an error within a stream is raised`, async () => {
      for (const script of breaks) {
        const stream = await chat.create(ask(sim(script), { stream: true }));
        let chunks = 0;
        const error = await failure((async () => {
          for await (const chunk of stream) chunks += chunk.choices.length;
        })());
        assert.ok(chunks >= 4);
        assert.ok(error instanceof OpenAI.APIError, String(error));
        assert.equal(typeof error.code, "string");
        const helper = chat.stream(ask(sim(script)));
        assert.ok(await failure(helper.finalChatCompletion()) instanceof OpenAI.OpenAIError);
      }
    });

    test(`${name}: 429 and 503 of an engine are retried after Retry-After`, async () => {
      for (const status of [429, 503]) {
        const script = { status, status_times: 1, headers: { "retry-after": "1" }, tag: newTag() };
        const begun = Date.now();
        const answer = await client(facts.keys.good, { maxRetries: 2 })
          .chat.completions.create(ask(sim(script)));
        assert.equal(answer.choices[0].finish_reason, "stop");
        assert.equal((await engineRequests(script.tag)).length, 2);
        if (status === 429) assert.ok(Date.now() - begun >= 950, "Retry-After was one second");
      }
    });

    test(`${name}: 400, 402, 403 and 404 are not retried`, async () => {
      for (const row of refusals.filter(({ status }) => [400, 402, 403, 404].includes(status))) {
        let calls = 0;
        const counted = (...args) => (++calls, fetch(...args));
        await failure(client(row.key, { maxRetries: 2, fetch: counted }).chat.completions.create(
          { ...ask(sim(row.script)), model: row.model, max_tokens: row.maxTokens }));
        assert.equal(calls, 1, row.code);
      }
    });

    test(`${name}: a request over the key's rate limit is retried after Retry-After`, async () => {
      const running = await client(facts.keys.limited).chat.completions.create(
        ask("x", { stream: true, x_sim: { tokens: 100000, token_ms: 10 } }));
      const answers = [];
      const watched = async (...args) => {
        const response = await fetch(...args);
        answers.push({ status: response.status, at: Date.now() });
        running.controller.abort();  // so that a later try is admitted
        return response;
      };
      const limited = client(facts.keys.limited, { maxRetries: 3, fetch: watched });
      const answer = await limited.chat.completions.create(ask("x"));
      assert.equal(answer.choices[0].finish_reason, "stop");
      assert.equal(answers[0].status, 429);
      assert.equal(answers.at(-1).status, 200);
      assert.ok(answers[1].at - answers[0].at >= 900, "Retry-After is at least one second");
    });

    test(`${name}: closing a stream aborts the engine request`, async () => {
      const tag = newTag();
      const stream = await chat.create(
        ask(sim({ tokens: 100_000, token_ms: 5, tag }), { stream: true }));
      for await (const chunk of stream) if (chunk.choices[0].delta.content) break;
      await untilEngine(tag, (request) => request.aborted);
    });

    test(`${name}: aborting a call that is not streamed aborts the engine request`, async () => {
      const tag = newTag();
      const controller = new AbortController();
      const call = chat.create(ask(sim({ tokens: 100_000, token_ms: 5, tag })),
        { signal: controller.signal });
      await untilEngine(tag, (request) => request.running);
      controller.abort();
      assert.ok(await failure(call) instanceof OpenAI.APIUserAbortError);
      await untilEngine(tag, (request) => request.aborted);
    });

    test(`${name}: completions, streamed or not`, async () => {
      const request = { model: "sim/text", prompt: "once upon a time", max_tokens: 9 };
      const answer = await good.completions.create(request);
      assert.equal(answer.object, "text_completion");
      assert.ok(answer.choices[0].text.length > 0);
      assert.equal(answer.choices[0].finish_reason, "length");
      assert.equal(answer.usage.completion_tokens, 9);
      const chunks = await collect(await good.completions.create(
        { ...request, stream: true, stream_options: { include_usage: true } }));
      assert.equal(chunks.map((chunk) => chunk.choices[0]?.text ?? "").join(""),
        answer.choices[0].text);
      assert.ok(chunks.every((chunk) => chunk.object === "text_completion"));
      assert.deepEqual(chunks.at(-1).usage, answer.usage);
    });

    test(`${name}: completions, several prompts and choices`, async () => {
      const request = { model: "sim/text", prompt: ["one", "two"], n: 2, max_tokens: 4 };
      const answer = await good.completions.create(request);
      assert.deepEqual(answer.choices.map((choice) => choice.index).sort(), [0, 1, 2, 3]);
      const texts = ["", "", "", ""];
      for await (const chunk of await good.completions.create({ ...request, stream: true })) {
        for (const choice of chunk.choices) texts[choice.index] += choice.text;
      }
      for (const choice of answer.choices) assert.equal(texts[choice.index], choice.text);
    });

    test(`${name}: completions of a chat model are refused`, async () => {
      const error = await failure(good.completions.create({ model, prompt: "x" }));
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.param, "model");
      assert.match(error.message, /\/v1\/chat\/completions/);
    });

    test(`${name}: embeddings, as numbers and, by default, as base64`, async () => {
      const request = { model: "sim/embed", input: ["one", "two", "one"] };
      const bytes = await good.embeddings.create(request); // requests base64 and decodes it
      const numbers = await good.embeddings.create({ ...request, encoding_format: "float" });
      assert.equal(bytes.object, "list");
      assert.deepEqual(bytes.data.map((one) => one.index), [0, 1, 2]);
      for (const [i, { embedding }] of numbers.data.entries()) {
        assert.deepEqual(Array.from(bytes.data[i].embedding), embedding.map(Math.fround));
      }
      assert.deepEqual(numbers.data[2].embedding, numbers.data[0].embedding);
      assert.deepEqual(bytes.usage, numbers.usage);
      assert.equal(bytes.usage.total_tokens, bytes.usage.prompt_tokens);
      const few = await good.embeddings.create({ ...request, input: [[1, 2, 3]], dimensions: 4 });
      assert.equal(few.data[0].embedding.length, 4);
    });

    test(`${name}: embeddings of a chat model are refused`, async () => {
      const error = await failure(good.embeddings.create({ model, input: "x" }));
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.code, "bad_request");
      assert.equal(error.param, "model");
    });
  });
}
