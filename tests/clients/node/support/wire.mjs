// Raw responses, without a client library.
import Ajv from "ajv";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { facts, root } from "./facts.mjs";

const published = JSON.parse(
  readFileSync(new URL("../../schemas/openai-subset.json", import.meta.url), "utf8"));
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
ajv.addSchema({ $id: "published", ...published });

// Fails unless the value is an instance of the published component.
export function checkComponent(name, value) {
  const validate = ajv.getSchema(`published#/$defs/${name}`);
  assert.ok(validate, `there is no component ${name}`);
  if (!validate(value)) {
    const problems = validate.errors.slice(0, 8).map((one) => `${one.instancePath} ${one.message}`);
    assert.fail(`not a ${name}: ${problems.join("; ")}\n${JSON.stringify(value)}`);
  }
}

export const post = (path, body, headers = {}) => fetch(root + path, {
  method: "POST", body: JSON.stringify(body),
  headers: {
    "content-type": "application/json", authorization: `Bearer ${facts.keys.good}`, ...headers,
  },
});

// The events of a stream as {event, data}. Framing of docs/design/wire.md 1.1: LF only, one line
// of data, each event ended by an empty line.
export async function eventsOf(answer) {
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get("content-type"), /^text\/event-stream/);
  assert.equal(answer.headers.get("cache-control"), "no-cache");
  assert.equal(answer.headers.get("x-accel-buffering"), "no");
  checkIds(answer);
  const text = await answer.text();
  assert.ok(!text.includes("\r"));
  assert.ok(text.endsWith("\n\n"));
  return text.slice(0, -2).split("\n\n").filter((block) => !block.startsWith(":")).map((block) => {
    const lines = block.split("\n");
    const event = lines.length === 2 ? /^event: (\S+)$/.exec(lines.shift())[1] : undefined;
    assert.equal(lines.length, 1, block);
    assert.ok(lines[0].startsWith("data: "), block);
    const data = lines[0].slice("data: ".length);
    return { event, data: data === "[DONE]" ? data : JSON.parse(data) };
  });
}

export function checkIds(answer) {
  assert.ok(answer.headers.get("x-request-id"));
  assert.equal(answer.headers.get("request-id"), answer.headers.get("x-request-id"));
}

export async function bodyOf(answer) {
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-type"), "application/json");
  checkIds(answer);
  return answer.json();
}
