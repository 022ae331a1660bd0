// A client of the public API as its types are generated from docs/openapi.yaml; generated.test.mjs compiles and runs it.
import createClient from "openapi-fetch";

import type { components, paths } from "./public.js";

type Answer = components["schemas"]["ChatCompletion"];

export function connect(baseUrl: string, key: string) {
  return createClient<paths, "application/json">({ baseUrl, headers: { authorization: `Bearer ${key}` } });
}
type Client = ReturnType<typeof connect>;

export async function models(client: Client): Promise<string[]> {
  const { data, error } = await client.GET("/v1/models");
  if (error) throw new Error(error.error.message);
  return data.data.map((model) => `${model.id} ${model.pricing.currency} ${model.context_window}`);
}

export async function chat(client: Client, model: string, content: string): Promise<Answer> {
  const { data, error } = await client.POST("/v1/chat/completions", {
    params: { header: { "Idempotency-Key": crypto.randomUUID() } },
    body: { model, messages: [{ role: "user", content }], max_completion_tokens: 100 },
  });
  if (error) throw new Error(`${error.error.code}: ${error.error.message}`);
  return data;
}

// The deltas of a streamed answer; each event is of the type that the document gives.
export async function streamed(client: Client, model: string, content: string): Promise<string> {
  const { data, error } = await client.POST("/v1/chat/completions", {
    body: { model, messages: [{ role: "user", content }], stream: true },
    parseAs: "text",
  });
  if (error) throw new Error(error.error.message);
  let text = "";
  for (const line of (data as unknown as string).split("\n")) {
    if (!line.startsWith("data: {")) continue;
    const event: components["schemas"]["ChatCompletionChunk"] = JSON.parse(line.slice(6));
    if ("error" in event) throw new Error(event.error.message);
    text += event.choices[0]?.delta.content ?? "";
  }
  return text;
}

export async function message(client: Client, model: string, content: string) {
  const { data, error } = await client.POST("/v1/messages", {
    body: { model, max_tokens: 100, messages: [{ role: "user", content }] },
  });
  if (error) throw new Error(error.error.message);
  return { text: data.content.map((block) => (block.type === "text" ? block.text : "")).join(""), usage: data.usage };
}

export async function respond(client: Client, model: string, input: string): Promise<string> {
  const { data, error } = await client.POST("/v1/responses", { body: { model, input } });
  if (error) throw new Error(error.error.message);
  return data.output
    .flatMap((item) => (item.type === "message" ? item.content : []))
    .map((part) => (part.type === "output_text" ? part.text : ""))
    .join("");
}

export async function embed(client: Client, input: string[]): Promise<number[][]> {
  const { data, error } = await client.POST("/v1/embeddings", { body: { model: "sim/embed", input } });
  if (error) throw new Error(error.error.message);
  return data.data.map(({ embedding }) => {
    if (typeof embedding === "string") throw new Error("base64 was not asked for");
    return embedding;
  });
}

export async function usage(client: Client) {
  const { data, error } = await client.GET("/api/v1/usage", { params: { query: { range: "24h" } } });
  if (error) throw new Error(error.error.message);
  return data;
}

// What a call with a wrong key returns: the typed error and the status.
export async function refusal(client: Client, model: string) {
  const { error, response } = await client.POST("/v1/chat/completions", {
    body: { model, messages: [{ role: "user", content: "x" }] },
  });
  return { status: response.status, code: error?.error.code, type: error?.error.type };
}

// What the types must refuse; the compiler reports each line that it does not refuse.
export function wrong(client: Client) {
  return [
    // @ts-expect-error: messages are required
    () => client.POST("/v1/chat/completions", { body: { model: "x" } }),
    // @ts-expect-error: no such role
    () => client.POST("/v1/chat/completions", { body: { model: "x", messages: [{ role: "robot" }] } }),
    // @ts-expect-error: no such range
    () => client.GET("/api/v1/usage", { params: { query: { range: "1y" } } }),
    // @ts-expect-error: no such path
    () => client.GET("/v1/nothing"),
    // @ts-expect-error: no such member
    (answer: Answer) => answer.choices[0]?.message.thoughts,
  ];
}
