// Addresses, keys and models of the running Tollgate (facts.h; tollgate-test-cluster prints them) and
// access to the simulated engine behind it.
import assert from "node:assert/strict";

export const facts = JSON.parse(process.env.TOLLGATE_FACTS);
export const model = facts.model;
export const root = `http://127.0.0.1:${facts.port}`; // base URL of the Messages clients
export const baseURL = `${root}/v1`; // base URL of all others
const engine = `http://127.0.0.1:${facts.engine_port}`;

// A message with which the simulated engine scripts its answer; tests/support/README.md.
export const sim = (script) => `x_sim:${JSON.stringify(script)}`;

let tags = 0;
// Tags one request, so that it can be looked up at the engine.
export const newTag = () => `node-${process.pid}-${++tags}`;

export async function engineRequests(tag) {
  return (await (await fetch(`${engine}/sim/requests/${tag}`)).json()).requests;
}

// The body of the newest request with this tag, as the engine received it.
export async function engineBody(tag) {
  const { requests } = await (await fetch(`${engine}/sim/bodies/${tag}`)).json();
  return JSON.parse(requests.at(-1).body);
}

// Waits until the engine's only request with this tag satisfies the predicate.
export async function untilEngine(tag, wanted) {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const [request, second] = await engineRequests(tag);
    assert.equal(second, undefined, "the engine got two requests");
    if (request && wanted(request)) return request;
    assert.ok(Date.now() < deadline, `the engine's request stays ${JSON.stringify(request)}`);
    await new Promise((wake) => setTimeout(wake, 5));
  }
}

// The error of a call that must fail.
export async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  assert.fail("the call should have failed");
}

export async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

export const citySchema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

// Ways in which an engine's stream ends after four tokens.
export const breaks = [
  { tokens: 20, cut_after_tokens: 4 },
  { tokens: 20, in_stream_error: "engine's own text", in_stream_error_after: 4 },
];

// Errors of the gateway, and the request that causes each. A `script` is the engine's: its text must
// not reach the client. `overflow`: agents recognize the message as a prompt that is too long
// (decision 32).
export const refusals = [
  { code: "invalid_api_key", status: 401, key: "sk-tollgate-nonsense" },
  { code: "insufficient_credits", status: 402, key: facts.keys.broke },
  { code: "insufficient_credits", status: 402, key: facts.keys.capped },
  { code: "virtual_key_blocked", status: 403, key: facts.keys.disabled },
  { code: "model_blocked", status: 403, key: facts.keys.narrow },
  { code: "model_unavailable", status: 404, model: "sim/none" },
  { code: "model_unavailable", status: 503, model: "sim/suspended" },
  { code: "context_length_exceeded", status: 400, maxTokens: 131_072 },
  { code: "context_length_exceeded", status: 400, script: { status: 500, error_body: {
    object: "error", code: 500, type: "InternalServerError", message:
      "The input (140000 tokens) is longer than the model's context length (131072 tokens).",
  } }, overflow: true },
  { code: "rate_limited", status: 429, script: { status: 429 } },
  { code: "server_error", status: 500, script: { status: 500 } },
  { code: "server_error", status: 502, script: { status: 502 } },
  { code: "service_unavailable", status: 503, script: { status: 503 } },
].map((row) => ({ key: facts.keys.good, model, maxTokens: 100, script: {}, ...row }));
