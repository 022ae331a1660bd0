// The official Anthropic client for Node below 1 (x-api-key) and from 1 on (Bearer).
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";

import {
  breaks, citySchema, collect, engineBody, engineRequests, facts, failure, model, newTag, refusals,
  root, sim, untilEngine,
} from "./support/facts.mjs";

const weather = { name: "get_weather", description: "weather", input_schema: citySchema };
const clock = { ...weather, name: "get_time" };
const textOf = (message) => message.content.filter((block) => block.type === "text")
  .map((block) => block.text).join("");

for (const name of ["anthropic0", "anthropic1"]) {
  const { default: Anthropic } = await import(name);
  const { zodOutputFormat } = await import(`${name}/helpers/zod`);
  const client = (apiKey, more = {}) =>
    new Anthropic({ apiKey, baseURL: root, maxRetries: 0, ...more });
  const good = client(facts.keys.good);
  const ask = (content, more = {}) =>
    ({ model, max_tokens: 1000, messages: [{ role: "user", content }], ...more });

  describe(`${name}`, { concurrency: 4 }, () => {
    test(`${name}: models are listed`, async () => {
      const entries = await collect(good.models.list());
      assert.ok(entries.some((entry) => entry.id === model));
    });

    test(`${name}: a message that is not streamed`, async () => {
      const message = await good.messages.create(ask(sim({ tokens: 6 }), {
        system: [{ type: "text", text: "be short", cache_control: { type: "ephemeral" } }],
      }));
      assert.equal(message.type, "message");
      assert.equal(message.role, "assistant");
      assert.equal(message.model, model);
      assert.equal(message.stop_reason, "end_turn");
      assert.equal(message.stop_sequence, null);
      assert.deepEqual(message.content.map((block) => block.type), ["text"]);
      assert.equal(message.usage.output_tokens, 6);
      assert.ok(message.usage.input_tokens > 0);
      assert.equal(message.usage.cache_creation_input_tokens, 0);
      assert.equal(message.usage.cache_read_input_tokens, 0);
      assert.ok(message._request_id);
    });

    test(`${name}: the cost is in the usage when asked for`, async () => {
      const headers = { "x-tollgate-include-cost": "true" };
      const whole = await good.messages.create(ask("hello"), { headers });
      assert.ok(whole.usage.cost > 0);
      const streamed = await good.messages.stream(ask("hello"), { headers }).finalMessage();
      assert.deepEqual(streamed.content, whole.content);
    });

    test(`${name}: a wrong key is not tried again`, async () => {
      const error = await failure(
        client("sk-tollgate-nonsense", { maxRetries: 5 }).messages.create(ask("x")));
      assert.equal(error.status, 401);
      assert.equal(error.headers.get("x-should-retry"), "false");
    });

    test(`${name}: streamed, has the same content`, async () => {
      const whole = await good.messages.create(ask("tell me more"));
      const events = await collect(
        await good.messages.create(ask("tell me more", { stream: true })));
      assert.equal(events[0].type, "message_start");
      assert.equal(events[0].message.usage.cache_creation_input_tokens, 0);
      assert.equal(events[0].message.usage.cache_read_input_tokens, 0);
      assert.equal(events.at(-1).type, "message_stop");
      const message = await good.messages.stream(ask("tell me more")).finalMessage();
      assert.deepEqual(message.content, whole.content);
      assert.equal(message.stop_reason, "end_turn");
      for (const counter of ["input_tokens", "output_tokens"]) {
        assert.equal(message.usage[counter], whole.usage[counter]);
      }
    });

    test(`${name}: thinking comes first, is signed and can be sent back`, async () => {
      const request = ask(sim({ reasoning_tokens: 5, tokens: 3 }),
        { max_tokens: 2000, thinking: { type: "enabled", budget_tokens: 1024 } });
      const whole = await good.messages.create(request);
      const streamed = await good.messages.stream(request).finalMessage();
      for (const message of [whole, streamed]) {
        assert.deepEqual(message.content.map((block) => block.type), ["thinking", "text"]);
        assert.ok(message.content[0].thinking.length > 0);
        assert.equal(typeof message.content[0].signature, "string");
        assert.ok(message.content[0].signature.length > 0);
        assert.equal(message.usage.output_tokens, 8);
      }
      assert.equal(streamed.content[0].thinking, whole.content[0].thinking);
      const next = await good.messages.create({
        ...request,
        messages: [...request.messages, { role: "assistant", content: whole.content },
          { role: "user", content: "go on" }],
      });
      assert.equal(next.stop_reason, "end_turn");
    });

    test(`${name}: max_tokens and stop sequences end a message`, async () => {
      const short = await good.messages.create(ask(sim({ tokens: 9 }), { max_tokens: 4 }));
      assert.equal(short.stop_reason, "max_tokens");
      const thought = await good.messages.create(
        ask(sim({ reasoning_tokens: 9 }), { max_tokens: 4 }));
      assert.equal(thought.stop_reason, "max_tokens");
      assert.deepEqual(thought.content.map((block) => block.type), ["thinking"]);
      const none = await good.messages.create(ask("x", { max_tokens: 0 }));
      assert.equal(none.stop_reason, "max_tokens");
      assert.equal(none.usage.output_tokens, 0);
    });

    test(`${name}: parallel tool calls, round trip, streamed or not`, async () => {
      const question = ask("use get_weather and get_time", { tools: [weather, clock] });
      const call = await good.messages.create(question);
      assert.equal(call.stop_reason, "tool_use");
      const uses = call.content.filter((block) => block.type === "tool_use");
      assert.deepEqual(uses.map((use) => use.name).sort(), ["get_time", "get_weather"]);
      for (const use of uses) assert.equal(typeof use.input.city, "string");
      const streamed = await good.messages.stream(question).finalMessage();
      assert.equal(streamed.stop_reason, "tool_use");
      assert.deepEqual(streamed.content.map((block) => [block.name, block.input]),
        call.content.map((block) => [block.name, block.input]));
      const end = await good.messages.create({
        ...question,
        messages: [...question.messages, { role: "assistant", content: call.content }, {
          role: "user",
          content: uses.map((use) => ({
            type: "tool_result", tool_use_id: use.id, cache_control: { type: "ephemeral" },
            content: [{ type: "text", text: `${use.name} is fine` }],
          })).reverse(),
        }],
      });
      assert.equal(end.stop_reason, "end_turn");
      assert.ok(textOf(end).length > 0);
    });

    for (const stream of [false, true]) {
      test(`${name}: the tool runner completes its loop, stream ${stream}`, async () => {
        const asked = [];
        const tool = (definition) => ({
          ...definition, type: "custom", parse: (input) => input,
          run: (input) => { asked.push(definition.name); return `${input.city}: fine`; },
        });
        const runner = good.beta.messages.toolRunner(
          ask("use get_weather and get_time", { tools: [tool(weather), tool(clock)], stream }));
        const end = await runner.runUntilDone();
        assert.deepEqual(asked.sort(), ["get_time", "get_weather"]);
        assert.equal(end.stop_reason, "end_turn");
      });
    }

    test(`${name}: a chosen tool, any tool, no tool`, async () => {
      const tools = [weather, clock];
      const chosen = await good.messages.create(
        ask("x", { tools, tool_choice: { type: "tool", name: "get_time" } }));
      assert.deepEqual(chosen.content.map((block) => block.name), ["get_time"]);
      assert.equal(chosen.stop_reason, "tool_use");
      const any = await good.messages.create(ask("x", { tools, tool_choice: { type: "any" } }));
      assert.equal(any.stop_reason, "tool_use");
      const none = await good.messages.create(
        ask("use get_time", { tools, tool_choice: { type: "none" } }));
      assert.equal(none.stop_reason, "end_turn");
    });

    test(`${name}: structured output by the parse helper`, async () => {
      const person = z.object({ name: z.string(), age: z.number().int() });
      const message = await good.messages.parse(
        ask("a person", { output_config: { format: zodOutputFormat(person) } }));
      assert.ok(Number.isInteger(message.parsed_output.age));
    });

    test(`${name}: count_tokens equals the input tokens billed`, async () => {
      const request = ask("how long is this?", { system: "be short", tools: [weather] });
      const { max_tokens: _, ...counted } = request;
      const { input_tokens: tokens } = await good.messages.countTokens(counted);
      assert.equal(tokens, (await good.messages.create(request)).usage.input_tokens);
    });

    test(`${name}: the engine gets the conversation in the chat format`, async () => {
      const tag = newTag();
      await good.messages.create({
        ...ask(""), system: [{ type: "text", text: "one" }, { type: "text", text: "two" }],
        tools: [weather], stop_sequences: ["STOP"], metadata: { user_id: "u1" }, temperature: 0.5,
        messages: [
          { role: "user", content: [{ type: "text", text: "what is it like in Rome?" }] },
          { role: "assistant", content: [
            { type: "thinking", thinking: "Rome…", signature: "from elsewhere" },
            { type: "text", text: "let me see" },
            { type: "tool_use", id: "toolu_1", name: "get_weather", input: { city: "Rome" } }] },
          { role: "user", content: [
            { type: "tool_result", tool_use_id: "toolu_1", content: "sunny" },
            { type: "text", text: "and?" }] },
          { role: "assistant", content: "sunny" },
          { role: "user", content: sim({ tag, tokens: 2 }) },
        ],
      });
      const body = await engineBody(tag);
      assert.deepEqual(body.messages.map((message) => message.role),
        ["system", "user", "assistant", "tool", "user", "assistant", "user"]);
      assert.equal(body.messages[0].content, "one\n\ntwo");
      const [call] = body.messages[2].tool_calls;
      assert.deepEqual([call.id, call.function.name, JSON.parse(call.function.arguments)],
        ["toolu_1", "get_weather", { city: "Rome" }]);
      assert.equal(body.messages[3].tool_call_id, "toolu_1");
      assert.equal(body.messages[3].content, "sunny");
      assert.deepEqual(body.tools[0].function.parameters, citySchema);
      assert.deepEqual(body.stop, ["STOP"]);
      assert.equal(body.temperature, 0.5);
    });

    test(`${name}: the beta messages are the same endpoint`, async () => {
      const message = await good.beta.messages.create(
        ask("hello", { betas: ["anything-2026-01-01"] }));
      assert.equal(message.stop_reason, "end_turn");
    });

    test(`${name}: both key headers are accepted`, async () => {
      const bearer = new Anthropic(
        { apiKey: null, authToken: facts.keys.good, baseURL: root, maxRetries: 0 });
      assert.equal((await bearer.messages.create(ask("x"))).stop_reason, "end_turn");
      const header = new Anthropic({
        apiKey: null, authToken: null, baseURL: root, maxRetries: 0,
        defaultHeaders: { "x-api-key": facts.keys.good, authorization: null },
      });
      assert.equal((await header.messages.create(ask("x"))).stop_reason, "end_turn");
    });

    test(`${name}: errors have their classes, types, codes and ids`, async () => {
      const kinds = {
        400: [Anthropic.BadRequestError, "invalid_request_error"],
        401: [Anthropic.AuthenticationError, "authentication_error"],
        402: [Anthropic.PaymentRequiredError ?? Anthropic.APIError, "permission_error"],
        403: [Anthropic.PermissionDeniedError, "permission_error"],
        404: [Anthropic.NotFoundError, "not_found_error"],
        429: [Anthropic.RateLimitError, "rate_limit_error"],
        500: [Anthropic.InternalServerError, "api_error"],
        502: [Anthropic.InternalServerError, "api_error"],
        503: [Anthropic.ServiceUnavailableError ?? Anthropic.InternalServerError,
          "overloaded_error"],
      };
      for (const row of refusals) {
        for (const stream of [false, true]) {
          const request = ask(sim(row.script), { model: row.model, max_tokens: row.maxTokens });
          // The client refuses a large max_tokens without streaming unless a timeout is set.
          const error = await failure(
            client(row.key).messages.create({ ...request, stream }, { timeout: 30_000 }));
          const [kind, usual] = kinds[row.status];
          const type = row.code === "model_unavailable" ? "not_found_error" : usual;
          assert.ok(error instanceof kind, `${row.code}: ${error}`);
          assert.equal(error.status, row.status);
          assert.equal(error.error.type, "error");
          assert.equal(error.error.error.type, type);
          assert.equal(error.error.error.code, row.code);
          assert.equal(error.error.request_id, undefined);
          assert.ok(error.requestID);
        }
      }
      const error = await failure(good.messages.create(
        ask("x", { max_tokens: -1 }), { headers: { "x-request-id": "mine-1" } }));
      assert.equal(error.error.request_id, "mine-1");
      assert.match(error.error.error.message, /max_tokens/);
    });

    test(`${name}: an error within a stream is raised`, async () => {
      for (const script of breaks) {
        const stream = await good.messages.create(ask(sim(script), { stream: true }));
        const seen = [];
        const error = await failure((async () => {
          for await (const event of stream) seen.push(event);
        })());
        assert.equal(seen.filter((event) => event.type === "content_block_delta").length, 4);
        assert.ok(!seen.some((event) => event.type === "message_stop"));
        assert.ok(error instanceof Anthropic.APIError, String(error));
        assert.equal(error.error.type, "error");
        assert.equal(typeof error.error.error.message, "string");
        const helper = good.messages.stream(ask(sim(script)));
        assert.ok(await failure(helper.finalMessage()) instanceof Anthropic.AnthropicError);
      }
    });

    test(`${name}: 429 and 503 of an engine are retried after Retry-After`, async () => {
      for (const status of [429, 503]) {
        const script = { status, status_times: 1, headers: { "retry-after": "1" }, tag: newTag() };
        const begun = Date.now();
        const message = await client(facts.keys.good, { maxRetries: 2 }).messages.create(
          ask(sim(script)));
        assert.equal(message.stop_reason, "end_turn");
        assert.equal((await engineRequests(script.tag)).length, 2);
        if (status === 429) assert.ok(Date.now() - begun >= 950, "Retry-After was one second");
      }
    });

    test(`${name}: 400, 402, 403 and 404 are not retried`, async () => {
      for (const row of refusals.filter(({ status }) => [400, 402, 403, 404].includes(status))) {
        let calls = 0;
        const counted = (...args) => (++calls, fetch(...args));
        await failure(client(row.key, { maxRetries: 2, fetch: counted }).messages.create(
          ask(sim(row.script), { model: row.model, max_tokens: row.maxTokens }),
          { timeout: 30_000 }));
        assert.equal(calls, 1, row.code);
      }
    });

    test(`${name}: closing a stream aborts the engine request`, async () => {
      const tag = newTag();
      const stream = await good.messages.create(
        ask(sim({ tokens: 100_000, token_ms: 5, tag }), { stream: true }));
      for await (const event of stream) if (event.type === "content_block_delta") break;
      await untilEngine(tag, (request) => request.aborted);
    });
  });
}
