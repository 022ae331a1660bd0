// Raw bodies and events against the published components (schemas/openai-subset.json) and the
// framing rules of docs/design/wire.md 1.1. Where the published file is stricter than the service
// that it describes, a comment notes it.
import assert from "node:assert/strict";
import { test } from "node:test";

import { citySchema, facts, model, root, sim } from "./support/facts.mjs";
import { bodyOf, checkComponent, checkIds, eventsOf, post } from "./support/wire.mjs";

const tools = [{ type: "function", function: { name: "get_weather", parameters: citySchema } }];
const flatTools = [{ type: "function", name: "get_weather", parameters: citySchema }];
const chatTurns = {
  text: [sim({ tokens: 4 })],
  reasoning: [sim({ reasoning_tokens: 3, tokens: 4 })],
  "only reasoning": [sim({ reasoning_tokens: 9 }), { max_tokens: 3 }],
  tools: ["use get_weather", { tools }],
  logprobs: ["how sure", { logprobs: true, top_logprobs: 2, max_tokens: 3 }],
  "several choices": ["x", { n: 3, max_tokens: 3 }],
  "no output": ["x", { max_tokens: 0 }],
  "cut by an engine without usage": [sim({ usage: "none", tokens: 3 })],
};

// A usage that is not known yet is null, as in the live service (docs/design/wire.md 2.3, 5.2); the
// published file allows objects only.
function withoutNullUsage(object) {
  if (object.response) return { ...object, response: withoutNullUsage(object.response) };
  const { usage, ...rest } = object;
  return usage === null ? rest : object;
}

for (const [name, [content, more = {}]] of Object.entries(chatTurns)) {
  const request = { model, messages: [{ role: "user", content }], ...more };

  test(`wire, chat, ${name}: the body is as published`, async () => {
    checkComponent("CreateChatCompletionResponse",
      await bodyOf(await post("/v1/chat/completions", request)));
  });

  for (const include_usage of [false, true]) {
    test(`wire, chat, ${name}: the chunks are as published, usage ${include_usage}`, async () => {
      const events = await eventsOf(await post("/v1/chat/completions",
        { ...request, stream: true, stream_options: { include_usage } }));
      assert.equal(events.pop().data, "[DONE]");
      assert.ok(events.every(({ event }) => event === undefined));
      const chunks = events.map(({ data }) => data);
      for (const chunk of chunks) {
        checkComponent("CreateChatCompletionStreamResponse", withoutNullUsage(chunk));
      }
      if (include_usage) {
        const last = chunks.pop();
        assert.deepEqual(last.choices, []);
        checkComponent("CompletionUsage", last.usage);
      }
      assert.ok(chunks.every(({ choices, usage }) => choices.length > 0 && !usage));
      const choices = chunks.flatMap((chunk) => chunk.choices);
      for (let index = 0; index < (more.n ?? 1); ++index) {
        const own = choices.filter((choice) => choice.index === index);
        assert.equal(own[0].delta.role, "assistant");
        assert.equal(own[0].delta.content, "");
        assert.equal(own.filter((choice) => choice.finish_reason !== null).length, 1);
        assert.ok(own.at(-1).finish_reason);
        assert.deepEqual(own.at(-1).delta, {});
      }
    });
  }
}

const responseTurns = {
  text: [sim({ tokens: 4 })],
  reasoning: [sim({ reasoning_tokens: 3, tokens: 4 }),
    { reasoning: { effort: "low", summary: "auto" } }],
  "only reasoning": [sim({ reasoning_tokens: 9 }), { max_output_tokens: 3 }],
  "cut text": [sim({ tokens: 9 }), { max_output_tokens: 3 }],
  tools: ["use get_weather", { tools: flatTools }],
  "a chosen tool": ["x",
    { tools: flatTools, tool_choice: { type: "function", name: "get_weather" } }],
  "allowed tools": ["x", { tools: flatTools, tool_choice: { type: "allowed_tools", mode: "required",
    tools: [{ type: "function", name: "get_weather" }] } }],
  "structured output": ["x",
    { text: { format: { type: "json_schema", name: "city", schema: citySchema } } }],
};

for (const [name, [input, more = {}]] of Object.entries(responseTurns)) {
  test(`wire, responses, ${name}: the body is as published`, async () => {
    const body = await bodyOf(await post("/v1/responses", { model, input, ...more }));
    checkComponent("Response", body);
    for (const key of ["completed_at", "incomplete_details", "max_output_tokens", "max_tool_calls",
      "previous_response_id", "safety_identifier", "prompt_cache_key", "presence_penalty",
      "frequency_penalty", "top_logprobs", "reasoning", "text", "truncation", "store", "background",
      "service_tier", "usage"]) {
      assert.ok(key in body, `${key} is asked for by Open Responses`);
    }
  });

  test(`wire, responses, ${name}: the events are as published`, async () => {
    const events = await eventsOf(
      await post("/v1/responses", { model, input, ...more, stream: true }));
    assert.equal(events.pop().data, "[DONE]");
    events.forEach(({ event, data }, number) => {
      assert.equal(event, data.type);
      assert.equal(data.sequence_number, number);
      checkComponent("ResponseStreamEvent", withoutNullUsage(data));
    });
    const announced = events.filter(({ event }) => event === "response.output_item.done")
      .map(({ data }) => data.item);
    assert.deepEqual(events.at(-1).data.response.output, announced);
  });
}

test("wire, responses: a failure within a stream is response.failed, as published", async () => {
  const events = await eventsOf(await post("/v1/responses",
    { model, input: sim({ tokens: 9, cut_after_tokens: 3 }), stream: true }));
  assert.equal(events.pop().data, "[DONE]");
  const { event, data } = events.at(-1);
  assert.equal(event, "response.failed");
  assert.equal(data.response.usage, null);
  // The codes of the published file are those of the original service; clients accept any string.
  const { error, ...rest } = data.response;
  assert.deepEqual(Object.keys(error).sort(), ["code", "message"]);
  checkComponent("ResponseFailedEvent",
    withoutNullUsage({ ...data, response: { ...rest, error: null } }));
});

// The published file allows no null for a finish_reason that is not yet set, nor for the first token
// of a text, which has no probability; the service sends null.
function withoutGaps(completion) {
  const choices = completion.choices.map(({ finish_reason, logprobs, ...rest }) => ({
    ...rest, finish_reason: finish_reason ?? "stop",
    logprobs: logprobs && {
      ...logprobs,
      token_logprobs: logprobs.token_logprobs.map((one) => one ?? 0),
      top_logprobs: logprobs.top_logprobs.map((one) => one ?? {}),
    },
  }));
  return { ...completion, choices };
}

test("wire, completions: bodies and chunks are as published", async () => {
  for (const more of [{}, { logprobs: 2 }, { n: 2, prompt: ["one", "two"] }]) {
    const request = { model: "sim/text", prompt: "once", max_tokens: 4, ...more };
    checkComponent("CreateCompletionResponse",
      withoutGaps(await bodyOf(await post("/v1/completions", request))));
    const events = await eventsOf(await post("/v1/completions",
      { ...request, stream: true, stream_options: { include_usage: true } }));
    assert.equal(events.pop().data, "[DONE]");
    checkComponent("CompletionUsage", events.at(-1).data.usage);
    for (const { data } of events) {
      checkComponent("CreateCompletionResponse", withoutNullUsage(withoutGaps(data)));
    }
  }
});

test("wire, embeddings: both formats are as published", async () => {
  for (const more of [{}, { input: ["a", "b"] }, { input: [1, 2] }, { dimensions: 3 }]) {
    const request = { model: "sim/embed", input: "once", ...more };
    const body = await bodyOf(await post("/v1/embeddings", request));
    checkComponent("CreateEmbeddingResponse", body);
    const { data } = await bodyOf(
      await post("/v1/embeddings", { ...request, encoding_format: "base64" }));
    for (const [i, { embedding }] of data.entries()) {
      const bytes = Buffer.from(embedding, "base64"); // little-endian float32 (docs/design/wire.md 4)
      const numbers = body.data[i].embedding.map((_, at) => bytes.readFloatLE(4 * at));
      assert.equal(bytes.length, 4 * numbers.length);
      assert.deepEqual(numbers, body.data[i].embedding.map(Math.fround));
    }
  }
});

test("wire, models: the list is as published, at both addresses", async () => {
  for (const path of ["/v1/models", "/openai/v1/models"]) {
    checkComponent("ListModelsResponse", await bodyOf(await fetch(root + path)));
  }
});

test("wire, messages: each event has its name, and there is no [DONE]", async () => {
  const events = await eventsOf(await post("/v1/messages", {
    model, max_tokens: 100, stream: true,
    messages: [{ role: "user", content: sim({ reasoning_tokens: 3, tokens: 3 }) }],
  }));
  for (const { event, data } of events) assert.equal(event, data.type);
  const kinds = events.map(({ event }) => event).filter((event) => event !== "ping");
  assert.deepEqual(kinds, ["message_start",
    "content_block_start", ...Array(4).fill("content_block_delta"), "content_block_stop",
    "content_block_start", ...Array(3).fill("content_block_delta"), "content_block_stop",
    "message_delta", "message_stop"]);
});

test("wire: every endpoint's refusal is JSON with a request id, never a stream", async () => {
  const messages = [{ role: "user", content: "x" }];
  for (const [path, body] of [
    ["/v1/chat/completions", { messages }], ["/v1/completions", { prompt: "x" }],
    ["/v1/embeddings", { input: "x" }], ["/v1/responses", { input: "x" }],
    ["/v1/messages", { messages, max_tokens: 5 }], ["/v1/messages/count_tokens", { messages }],
  ]) {
    const answer = await post(path, { model: "sim/none", stream: true, ...body });
    assert.equal(answer.status, 404, path);
    assert.equal(answer.headers.get("content-type"), "application/json");
    checkIds(answer);
    const refusal = await answer.json();
    assert.equal(refusal.error.code, "model_unavailable");
    assert.equal(refusal.type, path.startsWith("/v1/messages") ? "error" : undefined);
  }
});

test("wire, usage: the report of a key grows by exactly the charge of each request", async () => {
  const authorization = `Bearer ${facts.keys.narrow}`;
  const report = async (query) =>
    bodyOf(await fetch(`${root}/api/v1/usage${query}`, { headers: { authorization } }));
  const before = await report("?range=24h");
  const { usage } = await bodyOf(await post(
    "/v1/completions", { model: "sim/text", prompt: "once upon a time", max_tokens: 7 },
    { authorization }));
  let after;
  const deadline = Date.now() + 60_000; // it may lag by a second (decision 29)
  do {
    after = await report("?range=24h");
  } while (after.totals.requests === before.totals.requests && Date.now() < deadline);
  assert.equal(after.totals.requests, before.totals.requests + 1);
  assert.equal(after.totals.input_tokens - before.totals.input_tokens, usage.prompt_tokens);
  assert.equal(after.totals.output_tokens - before.totals.output_tokens, 7);
  // 1 and 3 USD per million tokens; amounts are decimal strings.
  const microUsd = (text) => Math.round(Number(text) * 1e6);
  const cost = usage.prompt_tokens + 3 * 7;
  assert.equal(microUsd(after.totals.cost) - microUsd(before.totals.cost), cost);
  assert.equal(microUsd(before.balance.total) - microUsd(after.balance.total), cost);
  assert.equal(after.buckets.reduce((sum, bucket) => sum + bucket.requests, 0),
    after.totals.requests);
  const wrong = await fetch(`${root}/api/v1/usage?range=century`, { headers: { authorization } });
  assert.equal(wrong.status, 400);
  assert.equal((await wrong.json()).error.param, "range");
});
