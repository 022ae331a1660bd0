// LangChain JS: chat models of both providers, the Responses mode, completions, embeddings.
import { ContextOverflowError } from "@langchain/core/errors";
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOpenAI, OpenAI, OpenAIEmbeddings } from "@langchain/openai";
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";

import {
  baseURL, collect, engineRequests, facts, failure, model, newTag, refusals, root, sim, untilEngine,
} from "./support/facts.mjs";

// fetch replaces the network where a test counts the calls.
const openai = (apiKey, more, fetch) => new ChatOpenAI(
  { model, apiKey, maxRetries: 0, configuration: { baseURL, fetch }, ...more });
const providers = {
  "langchain openai": openai,
  "langchain openai responses": (apiKey, more, fetch) =>
    openai(apiKey, { useResponsesApi: true, ...more }, fetch),
  "langchain anthropic": (apiKey, more, fetch) => new ChatAnthropic(
    { model, apiKey, maxRetries: 0, anthropicApiUrl: root, clientOptions: { fetch }, ...more }),
};

const getWeather = tool(
  ({ city }) => `${city}: fine`,
  { name: "get_weather", description: "weather", schema: z.object({ city: z.string() }) });
const getTime = tool(
  ({ city }) => `${city}: noon`,
  { name: "get_time", description: "time", schema: z.object({ city: z.string() }) });

for (const [name, make] of Object.entries(providers)) {
  const good = make(facts.keys.good);

  describe(name, { concurrency: 4 }, () => {
    test(`${name}: text, streamed or not`, async () => {
      const messages = [new SystemMessage("be short"), new HumanMessage("tell me more")];
      const whole = await good.invoke(messages);
      assert.ok(whole instanceof AIMessage);
      assert.ok(whole.text.length > 0);
      assert.ok(whole.usage_metadata.input_tokens > 0);
      const chunks = await collect(await good.stream(messages));
      assert.ok(chunks.length > 3);
      const sum = chunks.reduce((all, chunk) => all.concat(chunk));
      assert.equal(sum.text, whole.text);
      assert.deepEqual([sum.usage_metadata.input_tokens, sum.usage_metadata.output_tokens],
        [whole.usage_metadata.input_tokens, whole.usage_metadata.output_tokens]);
    });

    test(`${name}: parallel tool calls, round trip`, async () => {
      const bound = good.bindTools([getWeather, getTime]);
      const messages = [new HumanMessage("use get_weather and get_time")];
      const call = await bound.invoke(messages);
      assert.deepEqual(call.tool_calls.map((one) => one.name).sort(), ["get_time", "get_weather"]);
      const streamed = (await collect(await bound.stream(messages)))
        .reduce((all, chunk) => all.concat(chunk));
      assert.deepEqual(streamed.tool_calls.map((one) => [one.name, one.args]),
        call.tool_calls.map((one) => [one.name, one.args]));
      const results = [];
      for (const one of call.tool_calls) {
        const result = await (one.name === "get_time" ? getTime : getWeather).invoke(one);
        assert.ok(result instanceof ToolMessage);
        assert.match(result.content, /^\w+: (fine|noon)$/);
        results.push(result);
      }
      const end = await bound.invoke([...messages, call, ...results]);
      assert.equal(end.tool_calls.length, 0);
      assert.ok(end.text.length > 0);
    });

    test(`${name}: structured output`, async () => {
      const person = z.object({ name: z.string(), age: z.number().int() });
      const method = name.includes("openai") ? "jsonSchema" : "functionCalling";
      const answer = await good.withStructuredOutput(person, { name: "person", method })
        .invoke("a person");
      assert.ok(Number.isInteger(answer.age));
    });

    test(`${name}: errors have their status and code`, async () => {
      for (const row of refusals) {
        // The Anthropic client requests a stream when max_tokens is large.
        const streaming = row.maxTokens > 20_000;
        let error = await failure(
          make(row.key, { model: row.model, maxTokens: row.maxTokens, streaming })
            .invoke(sim(row.script)));
        if (row.overflow) assert.ok(ContextOverflowError.isInstance(error), String(error));
        error = ContextOverflowError.isInstance(error) ? error.cause : error;
        assert.equal(error.status, row.status, `${row.code}: ${error}`);
        const body = error.error.error ?? error.error; // the Anthropic client returns the whole body
        assert.equal(body.code, row.code);
      }
    });

    test(`${name}: an error within a stream is raised`, async () => {
      const stream = await good.stream(sim({ tokens: 20, cut_after_tokens: 4 }));
      if (name !== "langchain openai responses") {
        assert.ok(await failure(collect(stream)) instanceof Error);
        return;
      }
      // It ignores response.failed: only the status and the missing usage show the failure.
      const sum = (await collect(stream)).reduce((all, chunk) => all.concat(chunk));
      assert.notEqual(sum.response_metadata.status, "completed");
      assert.equal(sum.usage_metadata, undefined);
    });

    test(`${name}: 429 of an engine is retried; 402 is not`, async () => {
      const tag = newTag();
      const script = { status: 429, status_times: 1, headers: { "retry-after": "1" }, tag };
      const answer = await make(facts.keys.good, { maxRetries: 2 }).invoke(sim(script));
      assert.ok(answer.text.length > 0);
      assert.equal((await engineRequests(tag)).length, 2);
      let calls = 0;
      const counted = (...args) => (++calls, fetch(...args));
      await failure(make(facts.keys.broke, { maxRetries: 6 }, counted).invoke("x"));
      assert.equal(calls, 1);
    });

    test(`${name}: closing a stream aborts the engine request`, async () => {
      const tag = newTag();
      const controller = new AbortController();
      const stream = await good.stream(
        sim({ tokens: 100_000, token_ms: 5, tag }), { signal: controller.signal });
      await failure((async () => {
        for await (const chunk of stream) if (chunk.text) controller.abort();
        throw new Error("the stream ended");
      })());
      await untilEngine(tag, (request) => request.aborted);
    });
  });
}

test("langchain openai: reasoning is shown", async () => {
  const answer = await providers["langchain openai responses"](facts.keys.good).invoke(
    sim({ reasoning_tokens: 5, tokens: 3 }));
  assert.ok(answer.contentBlocks.some((block) => block.type === "reasoning" && block.reasoning));
});

test("langchain anthropic: thinking is shown and sent back", async () => {
  const good = providers["langchain anthropic"](facts.keys.good);
  const question = new HumanMessage(sim({ reasoning_tokens: 5, tokens: 3 }));
  const answer = await good.invoke([question]);
  assert.deepEqual(answer.content.map((block) => block.type), ["thinking", "text"]);
  const next = await good.invoke([question, answer, new HumanMessage("go on")]);
  assert.ok(next.text.length > 0);
});

test("langchain: completions", async () => {
  const text = new OpenAI(
    { model: "sim/text", apiKey: facts.keys.good, maxTokens: 5, configuration: { baseURL } });
  assert.ok((await text.invoke("once")).length > 0);
  assert.ok((await collect(await text.stream("once"))).join("").length > 0);
});

test("langchain: embeddings", async () => {
  const embeddings = new OpenAIEmbeddings(
    { model: "sim/embed", apiKey: facts.keys.good, maxRetries: 0, configuration: { baseURL } });
  const [one, two, again] = await embeddings.embedDocuments(["one", "two", "one"]);
  assert.deepEqual(again, one);
  assert.deepEqual(await embeddings.embedQuery("two"), two);
});

test("langchain: embeddings of a chat model are refused", async () => {
  const error = await failure(new OpenAIEmbeddings(
    { model, apiKey: facts.keys.good, maxRetries: 0, configuration: { baseURL } }).embedQuery("x"));
  assert.equal(error.status, 400);
  assert.equal(error.param, "model");
});
