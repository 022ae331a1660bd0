// The official openai clients for Node, two major versions, against a running Tollgate.
// Facts about it come in the environment variable TOLLGATE_FACTS (tollgate-test-cluster prints them).
import assert from "node:assert/strict";
import { test } from "node:test";

const facts = JSON.parse(process.env.TOLLGATE_FACTS);
const baseURL = `http://127.0.0.1:${facts.port}/v1`;
const model = facts.model;
const ask = (content, more = {}) => ({ model, messages: [{ role: "user", content }], ...more });
const weather = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

for (const name of ["openai6", "openai7"]) {
  const { default: OpenAI } = await import(name);
  const client = (key, more = {}) => new OpenAI({ apiKey: key, baseURL, maxRetries: 0, ...more });
  const good = client(facts.keys.good);
  const failure = async (promise) => {
    try {
      await promise;
    } catch (error) {
      return error;
    }
    assert.fail("the call should have failed");
  };

  test(`${name}: models are listed`, async () => {
    const ids = [];
    for await (const entry of good.models.list()) ids.push(entry.id);
    assert.ok(ids.includes(model), ids.join());
    assert.equal((await failure(good.models.retrieve("sim"))).status, 404);
  });

  test(`${name}: chat, whole`, async () => {
    const answer = await good.chat.completions.create(ask("hello", { x_sim: { tokens: 7 } }));
    assert.equal(answer.object, "chat.completion");
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.ok(answer.choices[0].message.content.length > 0);
    assert.equal(answer.usage.completion_tokens, 7);
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + 7);
    assert.ok(answer._request_id);
  });

  test(`${name}: chat, streamed, says the same`, async () => {
    const whole = await good.chat.completions.create(ask("tell me more"));
    let text = "";
    let usage = null;
    const stream = await good.chat.completions.create(
      ask("tell me more", { stream: true, stream_options: { include_usage: true } }));
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, whole.choices[0].message.content);
    assert.deepEqual(usage.completion_tokens, whole.usage.completion_tokens);
  });

  test(`${name}: stream helper ends well`, async () => {
    const runner = good.chat.completions.stream(ask("with the helper"));
    const answer = await runner.finalChatCompletion();
    assert.equal(answer.choices[0].message.role, "assistant");
    assert.ok(answer.choices[0].message.content.length > 0);
  });

  test(`${name}: reasoning text is there and apart from the content`, async () => {
    const answer = await good.chat.completions.create(ask("think", { x_sim: { reasoning_tokens: 5, tokens: 3 } }));
    assert.ok(answer.choices[0].message.reasoning_content.length > 0);
    assert.equal(answer.usage.completion_tokens, 8);
  });

  test(`${name}: tools, there and back, whole and streamed`, async () => {
    const question = ask("please use get_weather for me", { tools: [weather] });
    const call = await good.chat.completions.create(question);
    assert.equal(call.choices[0].finish_reason, "tool_calls");
    const message = call.choices[0].message;
    assert.equal(message.tool_calls[0].function.name, "get_weather");
    assert.ok(JSON.parse(message.tool_calls[0].function.arguments).city);
    const streamed = await good.chat.completions.stream(question).finalChatCompletion();
    assert.equal(streamed.choices[0].message.tool_calls[0].function.arguments,
      message.tool_calls[0].function.arguments);
    const end = await good.chat.completions.create({
      ...question,
      messages: [...question.messages, message,
        { role: "tool", tool_call_id: message.tool_calls[0].id, content: "sunny" }],
    });
    assert.equal(end.choices[0].finish_reason, "stop");
    assert.ok(end.choices[0].message.content.length > 0);
  });

  test(`${name}: structured output`, async () => {
    const answer = await good.chat.completions.create(ask("a person", {
      response_format: {
        type: "json_schema",
        json_schema: {
          name: "person",
          schema: { type: "object", properties: { name: { type: "string" }, age: { type: "integer" } } },
        },
      },
    }));
    const person = JSON.parse(answer.choices[0].message.content);
    assert.equal(typeof person.name, "string");
    assert.ok(Number.isInteger(person.age));
  });

  test(`${name}: errors have their classes, codes and ids`, async () => {
    const cases = [
      [client("sk-tollgate-nonsense"), ask("x"), OpenAI.AuthenticationError, 401, "invalid_api_key"],
      [client(facts.keys.broke), ask("x"), OpenAI.APIError, 402, "insufficient_credits"],
      [client(facts.keys.disabled), ask("x"), OpenAI.PermissionDeniedError, 403, "virtual_key_blocked"],
      [client(facts.keys.narrow), ask("x"), OpenAI.PermissionDeniedError, 403, "model_blocked"],
      [good, ask("x", { model: "sim/none" }), OpenAI.NotFoundError, 404, "model_unavailable"],
      [good, ask("x", { max_tokens: -1 }), OpenAI.BadRequestError, 400, "bad_request"],
      [good, ask("x", { x_sim: { status: 503 } }), OpenAI.InternalServerError, 503, "service_unavailable"],
      [good, ask("x", { x_sim: { status: 429 } }), OpenAI.RateLimitError, 429, "rate_limited"],
      [good, ask("x", { max_tokens: 131072 }), OpenAI.BadRequestError, 400, "context_length_exceeded"],
    ];
    for (const [who, request, kind, status, code] of cases) {
      for (const stream of [false, true]) {
        const error = await failure(who.chat.completions.create({ ...request, stream }));
        assert.ok(error instanceof kind, `${code}: ${error}`);
        assert.equal(error.status, status);
        assert.equal(error.code, code);
        assert.ok(error.requestID);
      }
    }
  });

  test(`${name}: an error within a stream is raised`, async () => {
    const stream = await good.chat.completions.create(
      ask("x", { stream: true, x_sim: { tokens: 20, cut_after_tokens: 4 } }));
    let chunks = 0;
    const error = await failure((async () => {
      for await (const chunk of stream) chunks += chunk.choices.length;
    })());
    assert.ok(chunks >= 4);
    assert.ok(error instanceof OpenAI.APIError, String(error));
  });

  test(`${name}: retries wait as long as they are told`, async () => {
    const limited = client(facts.keys.limited, { maxRetries: 2 });
    const running = await client(facts.keys.limited).chat.completions.create(
      ask("x", { stream: true, x_sim: { tokens: 100000, token_ms: 10 } }));
    const begun = Date.now();
    setTimeout(() => running.controller.abort(), 300);
    const answer = await limited.chat.completions.create(ask("x"));
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.ok(Date.now() - begun >= 900, "Retry-After is at least a second");
  });
}
