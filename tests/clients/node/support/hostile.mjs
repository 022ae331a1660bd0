// Engine streams that are legal but hostile: one conversation turn, written as server-sent events in
// every form that a reader must accept.

// A small seeded random number generator (mulberry32).
export function makeRandom(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let z = Math.imul(state ^ (state >>> 15), state | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n) => Math.floor(next() * n);
  return { below, one: (list) => list[below(list.length)], chance: (p) => next() < p };
}

const kPieces = [
  "a", " b", "\n", "\r\n", "\t", "  ", "\"", "\\", "\\n", "data: ", "\n\n", "[DONE]", "</think>",
  "é", "漢字", "\u{1F642}", "\u{1F468}\u200D\u{1F4BB}", "\u2028", "\u2029", "\u0000", "\u0001", "\u007f",
  "\uFEFF", "{\"x\":", "event: error\n", ": comment", "e\u0301", "\uFFFD", "null", "0",
];
export const randomText = (random, most) =>
  Array.from({ length: 1 + random.below(most) }, () => random.one(kPieces)).join("");

// The engine's output {reasoning, text, calls}, and how it is written.
export function randomSpeech(random) {
  const calls = Array.from({ length: random.below(4) }, (_, i) => ({
    id: `call_${i}_${random.below(1e9)}`,
    name: `tool_${i}`,
    arguments: JSON.stringify(
      random.chance(0.2) ? {} : { [randomText(random, 2)]: randomText(random, 6), n: [1, null] }),
  }));
  return {
    reasoning: random.chance(0.5) ? randomText(random, 12) : "",
    text: calls.length === 0 || random.chance(0.3) ? randomText(random, 24) : "",
    calls,
  };
}

// Fragments of whole characters, some of them empty.
function fragments(random, text) {
  const characters = [...text];
  const parts = [];
  for (let at = 0; at < characters.length;) {
    const length = random.below(5);
    parts.push(characters.slice(at, at + length).join(""));
    at += length;
  }
  return parts;
}

// The deltas in an order that an engine may use: reasoning, text, then calls, of which the
// arguments may come interleaved.
function deltas(random, speech, reasoningName) {
  const list = [{ role: "assistant", content: random.one(["", null]) }];
  for (const part of fragments(random, speech.reasoning)) list.push({ [reasoningName]: part });
  for (const part of fragments(random, speech.text)) list.push({ content: part });
  const queues = speech.calls.map((call, index) => [
    { index, id: call.id, type: "function", function: { name: call.name, arguments: "" } },
    ...fragments(random, call.arguments).map((part) => ({ index, function: { arguments: part } })),
  ]);
  const interleaved = random.chance(0.5);
  let begun = 0; // calls start in the order of their indexes
  for (;;) {
    const open = queues.filter((queue, i) => queue.length > 0 && i <= begun);
    if (open.length === 0) break;
    const queue = interleaved ? random.one(open) : open[0];
    if (queue === queues[begun]) ++begun;
    list.push({ tool_calls: [queue.shift()] });
  }
  return list;
}

function chunks(random, speech) {
  const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
  const when = random.one(["last", "first", "twice", "never", "always"]);
  const chunk = (choices, more) => ({
    id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "sim/model", choices,
    ...more,
  });
  const list = [];
  if (when === "first") list.push(chunk([], { usage }));
  for (const delta of deltas(random, speech, random.one(["reasoning", "reasoning_content"]))) {
    const more = when === "always" ? { usage } : random.chance(0.2) ? { usage: null } : {};
    list.push(chunk([{ index: 0, delta, logprobs: null, finish_reason: null }], more));
    if (random.chance(0.15)) {
      const empty = random.one([{}, { content: "" }, { content: null }, { tool_calls: [] },
        { content: "", role: "assistant" }, { tool_calls: null, reasoning: null }]);
      list.push(chunk([{ index: 0, delta: empty, finish_reason: random.one([null, undefined]) }]));
    }
    if (random.chance(0.05)) list.push(chunk([]));
  }
  const finish_reason = speech.calls.length > 0 ? random.one(["tool_calls", "stop"]) : "stop";
  list.push(chunk([{ index: 0, delta: random.one([{}, { content: "" }]), finish_reason }]));
  if (when !== "never" && when !== "first") list.push(chunk([], { usage }));
  if (when === "twice") list.push(chunk([], { usage }));
  return list;
}

// Script for the simulated engine with the whole stream.
export function unkindStream(random, speech) {
  const end = random.one(["\n", "\r\n"]);
  const escaped = random.chance(0.3);
  const manyLines = random.chance(0.3);
  const noise = random.chance(0.5);
  const space = random.one([" ", ""]);
  let stream = random.chance(0.1) ? "\uFEFF" : "";
  for (const chunk of chunks(random, speech)) {
    let json = JSON.stringify(chunk, null, manyLines ? 1 : 0);
    if (escaped) {
      json = json.replace(/[\u0080-\uffff]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
    }
    if (noise) {
      stream += random.one(["", `: ping${end}`, `: ping${end}${end}`, `event: message${end}`,
        `id: 7${end}`, `retry: 10${end}`, `unknown${end}`, end]);
    }
    stream += json.split("\n").map((line) => `data:${space}${line}${end}`).join("") + end;
  }
  stream += `data: [DONE]${end}${end}`;
  return { raw_chunks: [stream], split_bytes: random.one([1, 2, 3, 7, 64, 100_000]) };
}
