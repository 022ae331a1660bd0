// The official openai client for Node, two major versions, on /v1/responses.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";

import {
  baseURL, citySchema, collect, engineBody, engineRequests, facts, failure, model, newTag, refusals,
  root, sim, untilEngine,
} from "./support/facts.mjs";

const weather = { type: "function", name: "get_weather", parameters: citySchema, strict: false };
const clock = { ...weather, name: "get_time" };
const kinds = (answer) => answer.output.map((item) => item.type);

for (const name of ["openai6", "openai7"]) {
  const { default: OpenAI } = await import(name);
  const { zodTextFormat } = await import(`${name}/helpers/zod`);
  const client = (apiKey, more = {}) => new OpenAI({ apiKey, baseURL, maxRetries: 0, ...more });
  const responses = client(facts.keys.good).responses;
  const ask = (input, more = {}) => ({ model, input, ...more });

  describe(`${name} responses`, { concurrency: 4 }, () => {
    test(`${name} responses: a response that is not streamed`, async () => {
      const answer = await responses.create(
        ask(sim({ tokens: 6 }), { instructions: "be short", metadata: { a: "b" } }));
      assert.equal(answer.object, "response");
      assert.equal(answer.status, "completed");
      assert.equal(answer.model, model);
      assert.deepEqual(kinds(answer), ["message"]);
      assert.ok(answer.output_text.length > 0);
      assert.equal(answer.usage.output_tokens, 6);
      assert.equal(answer.usage.total_tokens, answer.usage.input_tokens + 6);
      assert.equal(answer.instructions, "be short");
      assert.deepEqual(answer.metadata, { a: "b" });
      assert.equal(answer.store, false);
      assert.equal(answer.incomplete_details, null);
      assert.ok(answer._request_id);
    });

    test(`${name} responses: input tokens are counted`, async () => {
      if (responses.inputTokens === undefined) return; // not in the older version
      const request = ask("how long is this?", { instructions: "be short", tools: [weather] });
      const count = await responses.inputTokens.count(request);
      assert.equal(count.object, "response.input_tokens");
      assert.equal(count.input_tokens, (await responses.create(request)).usage.input_tokens);
      const error = await failure(responses.inputTokens.count({ model: "sim/none", input: "x" }));
      assert.equal(error.status, 404);
    });

    test(`${name} responses: the cost is in the usage when asked for`, async () => {
      const headers = { "x-tollgate-include-cost": "true" };
      const whole = await responses.create(ask("hello"), { headers });
      assert.ok(whole.usage.cost > 0);
      const events = await collect(await responses.create(ask("hello", { stream: true }), { headers }));
      assert.deepEqual(events.at(-1).response.usage, whole.usage);
      const receipt = await fetch(`${root}/api/v1/generation?id=${whole.id}`, {
        headers: { authorization: `Bearer ${facts.keys.good}` },
      });
      assert.equal(Number((await receipt.json()).data.total_cost), whole.usage.cost);
    });

    test(`${name} responses: a wrong key is not tried again`, async () => {
      let calls = 0;
      const counted = (...call) => {
        calls += 1;
        return fetch(...call);
      };
      const error = await failure(client("sk-tollgate-nonsense", { maxRetries: 5, fetch: counted }).responses.create(ask("x")));
      assert.equal(error.status, 401);
      assert.equal(error.headers.get("x-should-retry"), "false");
      assert.equal(calls, 1);
    });

    test(`${name} responses: streamed, has the same content`, async () => {
      const input = [{ role: "user", content: [{ type: "input_text", text: "tell me more" }] }];
      const whole = await responses.create(ask(input));
      const events = await collect(await responses.create(ask(input, { stream: true })));
      assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, i) => i));
      assert.equal(events[0].type, "response.created");
      assert.equal(events.at(-1).type, "response.completed");
      const deltas = events.filter((event) => event.type === "response.output_text.delta");
      assert.equal(deltas.map((event) => event.delta).join(""), whole.output_text);
      assert.deepEqual(events.at(-1).response.usage, whole.usage);
    });

    test(`${name} responses: the stream helper gives the final response`, async () => {
      const answer = await responses.stream(ask(sim({ reasoning_tokens: 4, tokens: 5 })))
        .finalResponse();
      assert.deepEqual(kinds(answer), ["reasoning", "message"]);
      assert.ok(answer.output_text.length > 0);
    });

    test(`${name} responses: reasoning is a summary`, async () => {
      const request = ask(
        sim({ reasoning_tokens: 5, tokens: 3 }), { reasoning: { effort: "low" } });
      const answer = await responses.create(request);
      assert.deepEqual(kinds(answer), ["reasoning", "message"]);
      const summary = answer.output[0].summary.map((part) => part.text).join("");
      assert.ok(summary.length > 0);
      assert.equal(answer.usage.output_tokens, 8);
      assert.equal(answer.reasoning.effort, "low");
      const events = await collect(await responses.create({ ...request, stream: true }));
      assert.equal(events.filter((event) => event.type === "response.reasoning_summary_text.delta")
        .map((event) => event.delta).join(""), summary);
    });

    test(`${name} responses: sealed reasoning comes back to the engine`, async () => {
      const question = { role: "user", content: sim({ reasoning_tokens: 5, tokens: 3 }) };
      const include = ["reasoning.encrypted_content"];
      const whole = await responses.create(ask([question], { include, store: false }));
      const streamed = await responses.stream(ask([question], { include, store: false }))
        .finalResponse();
      for (const answer of [whole, streamed]) {
        const [reasoning, message] = answer.output;
        assert.match(reasoning.encrypted_content, /^[A-Za-z0-9.+/=]+$/);
        const tag = newTag();
        await responses.create(ask([question, { ...reasoning, summary: [] }, message,
          { role: "user", content: sim({ tag, tokens: 2 }) }]));
        const kept = (await engineBody(tag)).messages.find((sent) => sent.role === "assistant");
        assert.equal(kept.reasoning_content, reasoning.summary[0].text);
      }
    });

    test(`${name} responses: a response cut by max_output_tokens is incomplete`, async () => {
      for (const [script, items] of [[{ tokens: 9 }, ["message"]],
        [{ reasoning_tokens: 9 }, ["reasoning"]]]) {
        const request = ask(sim(script), { max_output_tokens: 4 });
        const streamed = await responses.stream(request).finalResponse();
        for (const answer of [await responses.create(request), streamed]) {
          assert.equal(answer.status, "incomplete");
          assert.deepEqual(answer.incomplete_details, { reason: "max_output_tokens" });
          assert.deepEqual(kinds(answer), items);
          assert.equal(answer.output.at(-1).status, "incomplete");
        }
      }
    });

    test(`${name} responses: parallel tool calls, round trip, streamed or not`, async () => {
      const question = ask([{ role: "user", content: "use get_weather and get_time" }],
        { tools: [weather, clock] });
      const call = await responses.create(question);
      assert.equal(call.status, "completed");
      const calls = call.output.filter((item) => item.type === "function_call");
      assert.deepEqual(calls.map((item) => item.name).sort(), ["get_time", "get_weather"]);
      for (const item of calls) assert.ok(JSON.parse(item.arguments).city);
      const streamed = await responses.stream(question).finalResponse();
      assert.deepEqual(streamed.output.map((item) => [item.name, item.arguments]),
        call.output.map((item) => [item.name, item.arguments]));
      const end = await responses.create({
        ...question,
        input: [...question.input, ...call.output, ...calls.map(({ call_id, name: called }) => (
          { type: "function_call_output", call_id, output: `${called} is fine` }))],
      });
      assert.deepEqual(kinds(end), ["message"]);
      assert.ok(end.output_text.length > 0);
    });

    test(`${name} responses: the engine gets the conversation in the chat format`, async () => {
      const tag = newTag();
      await responses.create(ask([
        { type: "message", role: "developer", content: "be kind" },
        { type: "message", role: "user", content: "what is it like in Rome?" },
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Rome…" }] },
        { type: "function_call", call_id: "call_1", name: "get_weather",
          arguments: '{"city":"Rome"}' },
        { type: "function_call_output", call_id: "call_1", output: "sunny" },
        { type: "message", role: "user", content: sim({ tag, tokens: 2 }) },
      ], { tools: [weather], temperature: 0.5, max_output_tokens: 50 }));
      const body = await engineBody(tag);
      assert.deepEqual(body.messages.map((message) => message.role).slice(1),
        ["user", "assistant", "tool", "user"]);
      assert.ok(["developer", "system"].includes(body.messages[0].role));
      const [call] = body.messages[2].tool_calls;
      assert.deepEqual([call.id, call.type, call.function],
        ["call_1", "function", { name: "get_weather", arguments: '{"city":"Rome"}' }]);
      assert.equal(body.messages[3].tool_call_id, "call_1");
      assert.equal(body.messages[3].content, "sunny");
      assert.deepEqual(body.tools[0].function.parameters, citySchema);
      assert.equal(body.temperature, 0.5);
    });

    test(`${name} responses: structured output by the helpers`, async () => {
      const person = z.object({ name: z.string(), age: z.number().int() });
      const request = ask("a person", { text: { format: zodTextFormat(person, "person") } });
      const answer = await responses.parse(request);
      assert.ok(Number.isInteger(answer.output_parsed.age));
      const streamed = await responses.stream(request).finalResponse();
      assert.deepEqual(streamed.output_parsed, answer.output_parsed);
    });

    test(`${name} responses: hosted tools are left out`, async () => {
      const tag = newTag();
      await responses.create(ask(sim({ tag, tokens: 2 }),
        { tools: [{ type: "web_search" }, weather], include: ["reasoning.encrypted_content"] }));
      assert.deepEqual((await engineBody(tag)).tools.map((tool) => tool.function.name),
        ["get_weather"]);
    });

    test(`${name} responses: parameters that need stored state are refused by name`, async () => {
      for (const [param, value] of [["previous_response_id", "resp_1"], ["conversation", "conv_1"],
        ["background", true]]) {
        const error = await failure(responses.create(ask("x", { [param]: value })));
        assert.ok(error instanceof OpenAI.BadRequestError);
        assert.equal(error.param, param);
      }
    });

    test(`${name} responses: errors have their classes, codes and ids`, async () => {
      const classes = {
        400: OpenAI.BadRequestError, 401: OpenAI.AuthenticationError, 402: OpenAI.APIError,
        403: OpenAI.PermissionDeniedError, 404: OpenAI.NotFoundError, 429: OpenAI.RateLimitError,
        500: OpenAI.InternalServerError, 502: OpenAI.InternalServerError,
        503: OpenAI.InternalServerError,
      };
      for (const row of refusals) {
        for (const stream of [false, true]) {
          const error = await failure(client(row.key).responses.create({
            model: row.model, input: sim(row.script), max_output_tokens: row.maxTokens, stream,
          }));
          assert.ok(error instanceof classes[row.status], `${row.code}: ${error}`);
          assert.equal(error.status, row.status);
          assert.equal(error.code, row.code);
          assert.ok(error.requestID);
        }
      }
      const error = await failure(responses.create(ask("x", { max_output_tokens: -1 })));
      assert.equal(error.param, "max_output_tokens");
    });

    test(`${name} responses: a failure within a stream is response.failed`, async () => {
      const events = await collect(await responses.create(
        ask(sim({ tokens: 20, cut_after_tokens: 4 }), { stream: true })));
      const end = events.at(-1);
      assert.equal(end.type, "response.failed");
      assert.equal(end.response.status, "failed");
      assert.equal(typeof end.response.error.code, "string");
      assert.equal(typeof end.response.error.message, "string");
      assert.equal(events.filter((event) => event.type === "response.output_text.delta").length, 4);
    });

    test(`${name} responses: 429 of an engine is retried`, async () => {
      const tag = newTag();
      const script = { status: 429, status_times: 1, headers: { "retry-after": "1" }, tag };
      const answer = await client(facts.keys.good, { maxRetries: 2 }).responses.create(
        ask(sim(script)));
      assert.equal(answer.status, "completed");
      assert.equal((await engineRequests(tag)).length, 2);
    });

    test(`${name} responses: closing a stream aborts the engine request`, async () => {
      const tag = newTag();
      const stream = await responses.create(
        ask(sim({ tokens: 100_000, token_ms: 5, tag }), { stream: true }));
      for await (const event of stream) if (event.type === "response.output_text.delta") break;
      await untilEngine(tag, (request) => request.aborted);
    });
  });
}
