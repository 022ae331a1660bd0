// What a client assembles equals what the engine sent, in every legal form: characters split
// anywhere, CRLF, data over several lines, comments, empty deltas, usage first, twice or never,
// tool calls interleaved. See docs/design/wire.md 7.4; a stream is reproduced by its number.
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOpenAI } from "@langchain/openai";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenResponses } from "@ai-sdk/open-responses";
import { jsonSchema, streamText, tool } from "ai";
import assert from "node:assert/strict";
import { test } from "node:test";

import { baseURL, collect, facts, model, root, sim } from "./support/facts.mjs";
import { makeRandom, randomSpeech, unkindStream } from "./support/hostile.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const kStreams = Number(process.env.STREAMS ?? 30);
const apiKey = facts.keys.good;
const call = (id, name, text) => ({ id, name, arguments: JSON.parse(text || "{}") });
const names = ["tool_0", "tool_1", "tool_2"];
const anything = { type: "object", additionalProperties: true };

const ofChat = ({ choices: [{ message }] }) => ({
  reasoning: message.reasoning_content ?? "", text: message.content ?? "",
  calls: (message.tool_calls ?? [])
    .map((one) => call(one.id, one.function.name, one.function.arguments)),
});
const ofResponse = ({ output }) => ({
  reasoning: output.filter((item) => item.type === "reasoning")
    .flatMap((item) => item.summary).map((part) => part.text).join(""),
  text: output.filter((item) => item.type === "message")
    .flatMap((item) => item.content).map((part) => part.text).join(""),
  calls: output.filter((item) => item.type === "function_call")
    .map((item) => call(item.call_id, item.name, item.arguments)),
});
const ofMessage = ({ content }) => ({
  reasoning: content.map((block) => block.thinking ?? "").join(""),
  text: content.map((block) => block.text ?? "").join(""),
  calls: content.filter((block) => block.type === "tool_use")
    .map((block) => ({ id: block.id, name: block.name, arguments: block.input })),
});

// Readers by name: from the message that scripts the engine to the client's result.
const readers = {};
for (const name of ["openai6", "openai7"]) {
  const { default: OpenAI } = await import(name);
  const client = new OpenAI({ apiKey, baseURL, maxRetries: 0 });
  const ask = (content) => ({ model, messages: [{ role: "user", content }] });
  readers[`${name} chat, whole`] = async (text) =>
    ofChat(await client.chat.completions.create(ask(text)));
  readers[`${name} chat, stream helper`] = async (text) => {
    const stream = client.chat.completions.stream(ask(text));
    let reasoning = "";
    for await (const chunk of stream) reasoning += chunk.choices[0]?.delta.reasoning_content ?? "";
    // The helper keeps only the last fragment of members unknown to it.
    return { ...ofChat(await stream.finalChatCompletion()), reasoning };
  };
  readers[`${name} responses, whole`] = async (text) =>
    ofResponse(await client.responses.create({ model, input: text }));
  readers[`${name} responses, stream helper`] = async (text) =>
    ofResponse(await client.responses.stream({ model, input: text }).finalResponse());
}
for (const name of ["anthropic0", "anthropic1"]) {
  const { default: Anthropic } = await import(name);
  const client = new Anthropic({ apiKey, baseURL: root, maxRetries: 0 });
  const ask = (content) => ({ model, max_tokens: 20_000, messages: [{ role: "user", content }] });
  readers[`${name}, whole`] = async (text) => ofMessage(await client.messages.create(ask(text)));
  readers[`${name}, stream helper`] = async (text) =>
    ofMessage(await client.messages.stream(ask(text)).finalMessage());
}
const tools = Object.fromEntries(
  names.map((name) => [name, tool({ inputSchema: jsonSchema(anything) })]));
for (const [name, of, reasons] of [
  ["openai.chat", createOpenAI({ apiKey, baseURL }).chat(model), false],
  ["openai.responses", createOpenAI({ apiKey, baseURL }).responses(model), true],
  ["openai-compatible", createOpenAICompatible({ name: "t", apiKey, baseURL })(model), true],
  ["open-responses",
    createOpenResponses({ name: "t", apiKey, url: `${baseURL}/responses` })(model), true],
  ["anthropic", createAnthropic({ apiKey, baseURL })(model), true],
]) {
  readers[`ai ${name}`] = async (prompt, speech) => {
    const result = streamText({ model: of, prompt, tools, maxRetries: 0, onError: () => {} });
    const parts = await collect(result.stream);
    const joined = (type) => parts.filter((part) => part.type === type)
      .map((part) => part.text).join("");
    const calls = parts.filter((part) => part.type === "tool-call")
      .map((part) => ({ id: part.toolCallId, name: part.toolName, arguments: part.input }));
    assert.deepEqual(parts.filter((part) => part.type === "error"), []);
    return { text: joined("text-delta"), calls,
      reasoning: reasons ? joined("reasoning-delta") : speech.reasoning };
  };
}
const chat = { model, apiKey, maxRetries: 0, configuration: { baseURL } };
for (const [name, of] of [
  ["openai", new ChatOpenAI(chat)],
  ["openai responses", new ChatOpenAI({ ...chat, useResponsesApi: true })],
  ["anthropic", new ChatAnthropic({ model, apiKey, maxRetries: 0, anthropicApiUrl: root })],
]) {
  readers[`langchain ${name}`] = async (text, speech) => {
    const sum = (await collect(await of.stream(text))).reduce((all, chunk) => all.concat(chunk));
    return { text: sum.text, reasoning: speech.reasoning, calls: (sum.tool_calls ?? [])
      .map((one) => ({ id: one.id, name: one.name, arguments: one.args })) };
  };
}

for (const [name, read] of Object.entries(readers)) {
  test(`${name}: assembles what the engine sent, ${kStreams} streams`, async () => {
    for (let seed = 1; seed <= kStreams; ++seed) {
      const random = makeRandom(seed);
      const speech = randomSpeech(random);
      const script = unkindStream(random, speech);
      const got = await read(sim(script), speech).catch((error) => {
        throw new Error(`stream ${seed}: ${error}`, { cause: error });
      });
      const calls = speech.calls.map((one) => call(one.id, one.name, one.arguments));
      assert.deepEqual(got, { reasoning: speech.reasoning, text: speech.text, calls },
        `stream ${seed}: ${JSON.stringify(got)}\nis not ${JSON.stringify(speech)}`);
    }
  });
}
