// docs/openapi.yaml and docs/admin-openapi.yaml pass a strict validator, and TypeScript clients whose types are
// generated from them compile and call the product.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

import { facts, model, root, sim } from "./support/facts.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const documents = process.env.TOLLGATE_DOCS;
const tools = join(here, "../../node_modules");
const run = promisify(execFile);

// A tool of the installed packages; it may not leave this machine either.
async function tool(path, ...args) {
  const guard = join(here, "support/loopback_only.mjs");
  const env = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  try {
    return (await run(process.execPath, ["--import", guard, join(tools, path), ...args], { env, cwd: here })).stdout;
  } catch (error) {
    assert.fail(`${path} ${args.join(" ")}\n${error.stdout}${error.stderr}`);
  }
}

const lint = (file) =>
  tool("@redocly/cli/bin/cli.js", "lint", file, "--config", join(here, "generated/redocly.yaml"), "--format=stylish");

describe("OpenAPI documents", { concurrency: 1 }, () => {
  let folder;
  let publicClient;
  let adminClient;

  before(async () => {
    // Within the folder of the packages, where imports are resolved.
    folder = await mkdtemp(join(here, "compiled-"));
    await cp(join(here, "generated"), folder, { recursive: true });
    for (const [document, name] of [["openapi.yaml", "public"], ["admin-openapi.yaml", "admin"]]) {
      await tool("openapi-typescript/bin/cli.js", join(documents, document), "-o", join(folder, `${name}.d.ts`));
    }
    await tool("typescript/bin/tsc", "-p", folder);
    const load = (name) => import(pathToFileURL(join(folder, "out", `${name}.js`)));
    publicClient = await load("public_client");
    adminClient = await load("admin_client");
  });
  after(() => rm(folder, { recursive: true, force: true }));

  test("a strict validator finds nothing, and finds what is wrong", async () => {
    for (const name of ["openapi.yaml", "admin-openapi.yaml"]) await lint(join(documents, name));
    const text = await readFile(join(documents, "openapi.yaml"), "utf8");
    const { writeFile } = await import("node:fs/promises");
    const broken = [
      [/required: \[model, messages\]/, "required: [model, messages, no_such_member]"],
      [/"#\/components\/schemas\/ModelList"/, '"#/components/schemas/NoSuchSchema"'],
      [/operationId: listModels\n/, "operationId: createMessage\n"],
    ];
    for (const [index, [from, to]] of broken.entries()) {
      assert.match(text, from);
      const file = join(folder, `broken-${index}.yaml`);
      await writeFile(file, text.replace(from, to));
      await assert.rejects(lint(file), undefined, `${to} was not found`);
    }
  });

  test("public client: models, chat, stream, messages, responses, embeddings, usage, an error", async () => {
    const client = publicClient.connect(root, facts.keys.good);
    const models = await publicClient.models(client);
    assert.ok(models.some((line) => line.startsWith(`${model} USD `)), models.join());
    const answer = await publicClient.chat(client, model, sim({ tokens: 9 }));
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.equal(answer.usage.completion_tokens, 9);
    assert.equal(await publicClient.streamed(client, model, sim({ tokens: 9 })), answer.choices[0].message.content);
    const message = await publicClient.message(client, model, sim({ tokens: 9 }));
    assert.equal(message.text, answer.choices[0].message.content);
    assert.equal(message.usage.output_tokens, 9);
    assert.equal(await publicClient.respond(client, model, sim({ tokens: 9 })), message.text);
    const vectors = await publicClient.embed(client, ["one", "two"]);
    assert.equal(vectors.length, 2);
    assert.equal(typeof vectors[1][0], "number");
    const report = await publicClient.usage(client);
    assert.ok(report.totals.requests >= 1);
    assert.match(report.balance.available, /^\d+(\.\d+)?$/);
    assert.deepEqual(await publicClient.refusal(publicClient.connect(root, "sk-tollgate-nonsense"), model),
      { status: 401, code: "invalid_api_key", type: "authentication_error" });
    assert.deepEqual(await publicClient.refusal(client, "sim/none"),
      { status: 404, code: "model_unavailable", type: "not_found_error" });
  });

  test("admin client: makes a key with which the public client works", async () => {
    const token = (await readFile(join(facts.dir, "login_token"), "utf8")).trim();
    const client = adminClient.connect(`http://127.0.0.1:${facts.dashboard_port}`, token);
    const { made, found } = await adminClient.makeKey(client, facts.workspaces.good, "generated client");
    assert.ok(found);
    const models = await publicClient.models(publicClient.connect(root, made.secret));
    assert.ok(models.length > 0);
    const answer = await publicClient.chat(publicClient.connect(root, made.secret), model, sim({ tokens: 2 }));
    assert.equal(answer.usage.completion_tokens, 2);
    assert.deepEqual(await adminClient.refusal(client), { status: 404, code: 5 });
  });
});
