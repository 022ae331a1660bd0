// Undocumented requests of agents, and the information that they get besides the answer, through the official clients:
// strings, late system messages, prompts above the window, compressed bodies, fall-back models, limits, receipts, and
// credit that is used up. Decisions 4, 38, 39, 44, 66; docs/design/wire.md 1.2, 2.5, 2.7.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";
import assert from "node:assert/strict";
import { test } from "node:test";
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";

import {
  baseURL, collect, engineBody, engineRequests, facts, failure, model, newTag, root, sim,
} from "./support/facts.mjs";

// Callers by name. ask({turns, apiKey, fetch, ...}) sends turns [role, text] with other members as they are; it returns
// the answer, or the stream.
const callers = {};
for (const name of ["openai6", "openai7"]) {
  const { default: OpenAI } = await import(name);
  const client = (apiKey, fetch) => new OpenAI({ apiKey, baseURL, maxRetries: 0, fetch });
  const messages = (turns) => turns.map(([role, content]) => ({ role, content }));
  const shared = {
    late: ["system", "developer"], limits: (kind, what) => `x-ratelimit-${what}-${kind}`,
    codeOf: (error) => error.code, names: (error, member) => error.param === member,
  };
  callers[`${name} chat`] = {
    ...shared,
    ask: ({ turns, apiKey = facts.keys.good, fetch, ...more }) =>
      client(apiKey, fetch).chat.completions.create({ model, messages: messages(turns), ...more }),
    textOf: (answer) => answer.choices[0].message.content,
    deltaOf: (chunk) => chunk.choices[0]?.delta.content ?? "",
    cut: (answer) => answer.choices[0].finish_reason === "length",
    cutStream: (chunks) => chunks.at(-1).choices[0].finish_reason === "length",
  };
  callers[`${name} responses`] = {
    ...shared,
    ask: ({ turns, apiKey = facts.keys.good, fetch, ...more }) =>
      client(apiKey, fetch).responses.create({ model, input: messages(turns), ...more }),
    textOf: (answer) => answer.output_text,
    deltaOf: (event) => (event.type === "response.output_text.delta" ? event.delta : ""),
    cut: (answer) => answer.incomplete_details.reason === "max_output_tokens",
    cutStream: (events) => events.at(-1).type === "response.incomplete",
  };
}
for (const name of ["anthropic0", "anthropic1"]) {
  const { default: Anthropic } = await import(name);
  callers[name] = {
    late: ["system"], limits: (kind, what) => `anthropic-ratelimit-${kind}-${what}`,
    ask: ({ turns, apiKey = facts.keys.good, fetch, ...more }) =>
      new Anthropic({ apiKey, baseURL: root, maxRetries: 0, fetch }).messages.create({
        model, max_tokens: 1000, messages: turns.map(([role, content]) => ({ role, content })), ...more,
      }),
    textOf: (answer) => answer.content.map((block) => block.text ?? "").join(""),
    deltaOf: (event) => event.delta?.text ?? "",
    cut: (answer) => answer.stop_reason === "max_tokens",
    cutStream: (events) => events.some((event) => event.delta?.stop_reason === "max_tokens"),
    codeOf: (error) => error.error.error.code,
    names: (error, member) => error.error.error.message.includes(`'${member}'`),
  };
}

const codings = { gzip: gzipSync, zstd: zstdCompressSync, br: brotliCompressSync };
const textOf = ({ content }) => (typeof content === "string" ? content : content.map((part) => part.text).join(""));
const get = (path, method = "GET", apiKey = facts.keys.good) =>
  fetch(root + path, { method, headers: apiKey ? { authorization: `Bearer ${apiKey}` } : {} });

// The receipt, once the request is booked.
async function receiptOf(id) {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const answer = await get(`/api/v1/generation?id=${id}`);
    assert.equal(answer.status, 200);
    const { data } = await answer.json();
    if (data.status !== "running") return data;
    assert.ok(Date.now() < deadline, `the request stays ${JSON.stringify(data)}`);
    await new Promise((wake) => setTimeout(wake, 5));
  }
}

const smallCredit = [...facts.small_credit];

for (const [name, caller] of Object.entries(callers)) {
  const { ask } = caller;

  test(`${name}: a NUL comes and goes, a lone surrogate is replaced`, async () => {
    const tag = newTag();
    const turns = [["user", "a\u0000b \ud83d c"], ["assistant", "d\u0000e"],
      ["user", sim({ tag, text: "f\u0000g" })]];
    assert.equal(caller.textOf(await ask({ turns })), "f\u0000g");
    const sent = (await engineBody(tag)).messages.map(textOf);
    assert.deepEqual(sent.slice(0, 2), ["a\u0000b \ufffd c", "d\u0000e"]);
    const chunks = await collect(await ask({ turns, stream: true }));
    assert.equal(chunks.map(caller.deltaOf).join(""), "f\u0000g");
  });

  for (const role of caller.late) {
    test(`${name}: a late ${role} message is folded into a user turn`, async () => {
      const tag = newTag();
      await ask({ turns: [["user", "one"], [role, "two"], ["assistant", "three"], ["user", sim({ tag })]] });
      const { messages } = await engineBody(tag);
      assert.deepEqual(messages.map((message) => message.role), ["user", "assistant", "user"]);
      const { content } = messages[0];
      const texts = Array.isArray(content) ? content.map((part) => part.text) : content.split("\n\n");
      assert.deepEqual(texts, ["one", "two"]);
    });
  }

  test(`${name}: a prompt above the window never reaches the engine`, async () => {
    const tag = newTag();
    const turns = [["user", "word ".repeat(140_000)], ["assistant", "yes"], ["user", sim({ tag })]];
    const error = await failure(ask({ turns }));
    assert.equal(error.status, 400);
    assert.equal(caller.codeOf(error), "context_length_exceeded");
    assert.match(error.message, /maximum context length is 131072 tokens|prompt is too long: 14\d{4} tokens > 131072/);
    assert.deepEqual(await engineRequests(tag), []);
  });

  test(`${name}: the headers of its family tell the limits`, async () => {
    const { response } = await ask({ turns: [["user", "hi"]], apiKey: facts.keys.roomy }).withResponse();
    for (const [kind, limit] of [["requests", 100_000_000], ["tokens", 100_000_000_000]]) {
      assert.equal(response.headers.get(caller.limits(kind, "limit")), String(limit));
      const remaining = Number(response.headers.get(caller.limits(kind, "remaining")));
      assert.ok(remaining > 0 && remaining < limit, `${kind}: ${remaining}`);
      assert.ok(response.headers.get(caller.limits(kind, "reset")));
    }
    const families = [...response.headers.keys()].filter((key) => key.includes("ratelimit"));
    assert.equal(families.length, 6, String(families));
  });

  test(`${name}: the receipt of a stream that is left has its reasoning tokens`, async () => {
    const script = { reasoning_tokens: 7, tokens: 100_000, token_ms: 5 };
    const { data: stream, response } = await ask({ turns: [["user", sim(script)]], stream: true }).withResponse();
    for await (const event of stream) if (caller.deltaOf(event)) break;
    const receipt = await receiptOf(response.headers.get("x-request-id"));
    assert.equal(receipt.status, "cancelled");
    assert.equal(receipt.streamed, true);
    assert.equal(receipt.native_tokens_reasoning, 7);
    assert.ok(receipt.native_tokens_completion > 7 && receipt.native_tokens_completion < 10_000);
  });

  for (const [coding, compress] of Object.entries(codings)) {
    test(`${name}: a body in ${coding} is read`, async () => {
      const tag = newTag();
      const compressed = (url, init) => {
        const headers = new Headers(init.headers);
        headers.set("content-encoding", coding);
        headers.delete("content-length");
        return fetch(url, { ...init, headers, body: compress(Buffer.from(init.body)) });
      };
      const text = "the same ".repeat(200);
      await ask({ turns: [["user", text], ["assistant", "yes"], ["user", sim({ tag })]], fetch: compressed });
      assert.equal(textOf((await engineBody(tag)).messages[0]), text);
    });
  }

  test(`${name}: another model of the list answers, and is named`, async () => {
    for (const stream of [false, true]) {
      const { data, response } = await ask({
        turns: [["user", "hi"]], model: "sim/empty", models: [model], stream,
        provider: { order: ["tollgate"], allow_fallbacks: true },
      }).withResponse();
      assert.equal(response.headers.get("x-tollgate-model"), model);
      const parts = stream ? await collect(data) : [data];
      const named = parts.flatMap((part) => [part.model, part.message?.model, part.response?.model]).filter(Boolean);
      assert.deepEqual([...new Set(named)], [model]);
    }
  });

  test(`${name}: a term that cannot be met is refused by its name`, async () => {
    for (const [member, more] of [
      ["provider.only", { provider: { only: ["elsewhere"] } }],
      ["provider.max_price.completion", { provider: { max_price: { completion: 0.5 } } }],
      ["provider.flavour", { provider: { flavour: "sweet" } }],
      ["models[0]", { models: [5] }],
    ]) {
      const error = await failure(ask({ turns: [["user", "hi"]], ...more }));
      assert.equal(error.status, 400);
      assert.ok(caller.names(error, member), `${member}: ${error.message}`);
    }
  });

  for (const stream of [false, true]) {
    test(`${name}: an answer cut by credit is read, stream ${stream}`, async () => {
      let copy;
      const { data, response } = await ask({
        turns: [["user", sim({ tokens: 3000, token_ms: 1 })]], stream, apiKey: smallCredit.pop(),
        fetch: async (...call) => {
          const answer = await fetch(...call);
          copy = answer.clone().text();
          return answer;
        },
      }).withResponse();
      if (stream) {
        const events = await collect(data);
        assert.ok(caller.cutStream(events), JSON.stringify(events.at(-1)));
        assert.ok(events.map(caller.deltaOf).join("").length > 100);
      } else {
        assert.ok(caller.cut(data), JSON.stringify(data));
        assert.ok(caller.textOf(data).length > 100);
      }
      assert.equal(response.headers.get("x-tollgate-cut-by-credit"), stream ? null : "true");
      assert.equal((await copy).includes("\n: x-tollgate-cut-by-credit: true\n\n"), stream);
    });
  }
}

// The AI SDK compares every event with a schema.
for (const [name, make] of [
  ["openai-compatible", (settings) => createOpenAICompatible({ name: "t", ...settings })(model)],
  ["openai.responses", (settings) => createOpenAI(settings).responses(model)],
  ["anthropic", (settings) => createAnthropic(settings)(model)],
]) {
  test(`ai ${name}: an answer cut by credit is read`, async () => {
    const errors = [];
    const result = streamText({
      model: make({ baseURL, apiKey: smallCredit.pop() }), prompt: sim({ tokens: 3000, token_ms: 1 }),
      maxRetries: 0, onError: ({ error }) => errors.push(error),
    });
    assert.ok((await result.text).length > 100);
    assert.equal(await result.finishReason, "length");
    assert.deepEqual(errors, []);
  });
}

test("HEAD is answered like GET, without a body", async () => {
  for (const [path, apiKey] of [["/v1/models", ""], ["/openai/v1/models", ""], ["/healthz", ""],
    ["/api/v1/usage", facts.keys.good], ["/api/v1/usage", ""]]) {
    const [whole, head] = [await get(path, "GET", apiKey), await get(path, "HEAD", apiKey)];
    assert.equal(head.status, whole.status, path);
    assert.equal(whole.status, path === "/api/v1/usage" && !apiKey ? 401 : 200, path);
    for (const header of ["content-type", "etag", "cache-control", "x-should-retry"]) {
      assert.equal(head.headers.get(header), whole.headers.get(header), `${path} ${header}`);
    }
    assert.equal(Number(head.headers.get("content-length")) > 0, true, path);
    assert.equal(await head.text(), "");
    assert.ok((await whole.text()).length > 0);
  }
  const unknown = await get("/api/v1/generation?id=chatcmpl-0", "HEAD");
  assert.equal(unknown.status, 404);
});
