// The AI SDK, two major versions, through every provider that supports Tollgate's APIs.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";

import {
  baseURL, collect, engineRequests, facts, failure, model, newTag, refusals, root, sim, untilEngine,
} from "./support/facts.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const city = z.object({ city: z.string() });

// Providers by name: how a model is made for a key, and their differences.
async function providersOf(version) {
  const of = (name) => import(version === 7 ? `@ai-sdk/${name}` : `ai${version}-${name}`);
  const { createOpenAI } = await of("openai");
  const { createOpenAICompatible } = await of("openai-compatible");
  const { createAnthropic } = await of("anthropic");
  const rows = [
    { name: "openai.chat", make: (key, id) => createOpenAI({ apiKey: key, baseURL }).chat(id),
      reasons: false },
    // Refers to earlier responses as stored unless store is false.
    { name: "openai.responses", providerOptions: { openai: { store: false } },
      make: (key, id) => createOpenAI({ apiKey: key, baseURL }).responses(id) },
    // Requests usage in a stream only when configured to.
    { name: "openai-compatible", countsStreams: false,
      make: (key, id) => createOpenAICompatible(
        { name: "tollgate", apiKey: key, baseURL, supportsStructuredOutputs: true })(id) },
    { name: "anthropic",
      make: (key, id) => createAnthropic({ apiKey: key, baseURL: `${root}/v1` })(id) },
  ];
  if (version === 7) {
    const { createOpenResponses } = await of("open-responses");
    rows.push({
      // Its error schema requires a "param".
      name: "open-responses", readsMessages: false,
      make: (key, id) =>
        createOpenResponses({ name: "tollgate", url: `${baseURL}/responses`, apiKey: key })(id),
    });
  }
  return rows;
}

for (const [version, ai] of [[5, await import("ai5")], [7, await import("ai")]]) {
  for (const provider of await providersOf(version)) {
    const { name, make, reasons = true, countsStreams = true, readsMessages = true } = provider;
    const label = `ai ${version}, ${name}`;
    const good = make(facts.keys.good, model);
    const once = { model: good, maxRetries: 0, providerOptions: provider.providerOptions };
    // streamText reports errors in the stream; this silences its own report on stderr.
    const stream = (options) => ai.streamText({ ...once, onError: () => {}, ...options });
    const textOf = (parts) => parts.filter((part) => part.type === "text-delta")
      .map((part) => part.text).join("");

    describe(label, { concurrency: 4 }, () => {
      test(`${label}: text, streamed or not`, async () => {
        const prompt = "tell me more";
        const whole = await ai.generateText({ ...once, prompt, system: "be short" });
        assert.equal(whole.finishReason, "stop");
        assert.ok(whole.text.length > 0);
        assert.ok(whole.usage.inputTokens > 0);
        assert.ok(whole.usage.outputTokens > 0);
        const streamed = stream({ prompt, system: "be short" });
        assert.equal((await collect(streamed.textStream)).join(""), whole.text);
        assert.equal(await streamed.finishReason, "stop");
        const usage = await streamed.usage;
        if (!countsStreams) return;
        assert.equal(usage.inputTokens, whole.usage.inputTokens);
        assert.equal(usage.outputTokens, whole.usage.outputTokens);
      });

      test(`${label}: max_tokens reached`, async () => {
        const answer = await ai.generateText(
          { ...once, prompt: sim({ tokens: 9 }), maxOutputTokens: 4 });
        assert.equal(answer.finishReason, "length");
      });

      test(`${label}: reasoning`, async () => {
        const prompt = sim({ reasoning_tokens: 5, tokens: 3 });
        const whole = await ai.generateText({ ...once, prompt });
        assert.equal(whole.usage.outputTokens, 8);
        assert.equal((whole.reasoningText ?? "").length > 0, reasons);
        const streamed = stream({ prompt });
        const parts = await collect(streamed.fullStream);
        assert.equal(parts.filter((part) => part.type === "reasoning-delta")
          .map((part) => part.text).join(""), whole.reasoningText ?? "");
        assert.equal(textOf(parts), whole.text);
        // The reasoning is sent back with the history.
        const next = await ai.generateText({
          ...once,
          messages: [{ role: "user", content: prompt }, ...whole.response.messages,
            { role: "user", content: "go on" }],
        });
        assert.equal(next.finishReason, "stop");
      });

      for (const streamed of [false, true]) {
        test(`${label}: parallel tool calls, round trip, stream ${streamed}`, async () => {
          const asked = [];
          const tool = (called) => ai.tool({
            description: called, inputSchema: city,
            execute: (input) => { asked.push([called, input.city]); return { weather: "fine" }; },
          });
          const options = {
            prompt: "use get_weather and get_time", stopWhen: ai.stepCountIs(3),
            tools: { get_weather: tool("get_weather"), get_time: tool("get_time") },
          };
          const result = streamed
            ? stream(options) : await ai.generateText({ ...once, ...options });
          assert.ok((await result.text).length > 0);
          const steps = await result.steps;
          assert.deepEqual(steps.map((step) => step.finishReason), ["tool-calls", "stop"]);
          assert.deepEqual(asked.map(([called]) => called).sort(), ["get_time", "get_weather"]);
          assert.ok(asked.every(([, input]) => input.length > 0));
        });
      }

      test(`${label}: a forced tool`, async () => {
        const tools = { get_weather: ai.tool({ inputSchema: city }) };
        const toolChoice = { type: "tool", toolName: "get_weather" };
        const answer = await ai.generateText({ ...once, prompt: "x", tools, toolChoice });
        assert.equal(answer.finishReason, "tool-calls");
        assert.deepEqual(answer.toolCalls.map((call) => call.toolName), ["get_weather"]);
        assert.equal(typeof answer.toolCalls[0].input.city, "string");
      });

      test(`${label}: structured output, streamed or not`, async () => {
        const schema = z.object({ name: z.string(), age: z.number().int() });
        const whole = await ai.generateObject({ ...once, schema, prompt: "a person" });
        assert.ok(Number.isInteger(whole.object.age));
        const streamed = ai.streamObject({ ...once, schema, prompt: "a person" });
        for await (const _ of streamed.partialObjectStream);
        assert.deepEqual(await streamed.object, whole.object);
      });

      test(`${label}: errors have status, message and whether to retry`, async () => {
        for (const row of refusals) {
          const options = {
            model: make(row.key, row.model), prompt: sim(row.script), maxRetries: 0,
            maxOutputTokens: row.maxTokens,
          };
          const error = await failure(ai.generateText(options));
          assert.ok(ai.APICallError.isInstance(error), `${row.code}: ${error}`);
          assert.equal(error.statusCode, row.status);
          assert.equal(error.isRetryable, row.status === 429 || row.status >= 500, row.code);
          const { error: sent } = JSON.parse(error.responseBody);
          assert.equal(sent.code, row.code);
          if (readsMessages) assert.equal(error.message, sent.message);
          assert.ok(error.responseHeaders["x-request-id"]);
          const parts = await collect(ai.streamText({ ...options, onError: () => {} }).fullStream);
          const failed = parts.find((part) => part.type === "error");
          assert.equal(failed.error.statusCode, row.status);
        }
      });

      test(`${label}: an error within a stream is in the stream`, async () => {
        const result = stream({ prompt: sim({ tokens: 20, cut_after_tokens: 4 }) });
        const parts = await collect(result.fullStream);
        assert.equal(parts.filter((part) => part.type === "text-delta").length, 4);
        // Version 5 ignores response.failed: only the finish reason shows the failure.
        const end = parts.find((part) => part.type === "finish")?.finishReason;
        assert.notEqual(end, "stop");
        assert.ok(version === 5 && name === "openai.responses"
          ? end === "unknown" : parts.some((part) => part.type === "error"), end);
      });

      test(`${label}: 429 of an engine is retried after Retry-After; 402 is not`, async () => {
        const headers = { "retry-after": "1" };
        const script = { status: 429, status_times: 1, headers, tag: newTag() };
        const begun = Date.now();
        const answer = await ai.generateText({ model: good, prompt: sim(script), maxRetries: 2 });
        assert.equal(answer.finishReason, "stop");
        assert.equal((await engineRequests(script.tag)).length, 2);
        assert.ok(Date.now() - begun >= 950, "Retry-After was one second");
        const error = await failure(
          ai.generateText({ model: make(facts.keys.broke, model), prompt: "x", maxRetries: 2 }));
        assert.ok(ai.APICallError.isInstance(error), "tried once, so not a RetryError");
      });

      test(`${label}: aborting a stream aborts the engine request`, async () => {
        const tag = newTag();
        const controller = new AbortController();
        const result = stream({
          prompt: sim({ tokens: 100_000, token_ms: 5, tag }), abortSignal: controller.signal,
        });
        for await (const part of result.fullStream) {
          if (part.type === "text-delta") controller.abort();
        }
        await untilEngine(tag, (request) => request.aborted);
      });
    });
  }

  const { createOpenAI } = await import(version === 7 ? "@ai-sdk/openai" : "ai5-openai");
  const openai = createOpenAI({ apiKey: facts.keys.good, baseURL });

  // Without `store: false` the client refers to reasoning by its id instead of sending it; version 5 refers to calls, too,
  // which are not stored.
  test(`ai ${version}: tools after sealed reasoning, whatever "store" is`, async () => {
    for (const more of version === 5 ? [{ store: false }] : [{}, { store: false }]) {
      const result = await ai.generateText({
        model: openai.responses(model), maxRetries: 0, stopWhen: ai.stepCountIs(3),
        providerOptions: { openai: { include: ["reasoning.encrypted_content"], ...more } },
        prompt: sim({ reasoning_tokens: 5,
          tool_calls: [{ name: "get_weather", arguments: { city: "Rome" } }] }),
        tools: { get_weather: ai.tool({ inputSchema: city, execute: () => "fine" }) },
      });
      assert.deepEqual(result.steps.map((step) => step.finishReason), ["tool-calls", "stop"]);
      assert.ok(result.steps[0].reasoningText.length > 0);
    }
  });

  test(`ai ${version}: a reference to a response that is not stored is refused, with advice`, async () => {
    const options = { model: openai.responses(model), maxRetries: 0 };
    const first = await ai.generateText({ ...options, prompt: "hello" });
    const messages = [{ role: "user", content: "hello" }, ...first.response.messages,
      { role: "user", content: "go on" }];
    const error = await failure(ai.generateText({ ...options, messages }));
    assert.equal(JSON.parse(error.responseBody).error.param, "input");
    assert.match(error.message, /store: false/);
  });

  test(`ai ${version}: completions`, async () => {
    const answer = await ai.generateText(
      { model: openai.completion("sim/text"), prompt: "once", maxOutputTokens: 5 });
    assert.equal(answer.finishReason, "length");
    assert.ok(answer.text.length > 0);
  });

  test(`ai ${version}: embeddings`, async () => {
    const of = openai.embedding("sim/embed");
    const values = ["one", "two", "one"];
    const many = await ai.embedMany({ model: of, values, maxRetries: 0 });
    assert.equal(many.embeddings.length, 3);
    assert.deepEqual(many.embeddings[2], many.embeddings[0]);
    assert.ok(many.usage.tokens > 0);
    const { embedding } = await ai.embed({ model: of, value: "two", maxRetries: 0 });
    assert.deepEqual(embedding, many.embeddings[1]);
  });

  test(`ai ${version}: embeddings of a chat model are refused`, async () => {
    const error = await failure(ai.embed({ model: openai.embedding(model), value: "x" }));
    assert.equal(error.statusCode, 400);
    assert.equal(JSON.parse(error.responseBody).error.param, "model");
  });
}
