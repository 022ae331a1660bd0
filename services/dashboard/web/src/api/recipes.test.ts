import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import recipes from './recipes.gen.json';
import { snippets } from './snippets';

const docs = readFileSync(new URL('../../../../../docs/clients.md', import.meta.url), 'utf8');
const NAMES = ['curl', 'openai-python', 'openai-node', 'anthropic-python', 'ai-sdk-compatible', 'claude-code-settings', 'claude-code', 'codex-settings', 'codex'];

it('recipes.gen.json has the blocks of docs/clients.md (vitest run -u writes it)', async () => {
  const found = new Map([...docs.matchAll(/^```\w+ recipe=([\w-]+)\n([\s\S]*?)\n```$/gm)].map((match) => [match[1]!, match[2]!]));
  await expect(`${JSON.stringify(Object.fromEntries(NAMES.map((name) => [name, found.get(name)])), null, 2)}\n`).toMatchFileSnapshot('./recipes.gen.json');
  expect(Object.keys(recipes)).toEqual(NAMES);
});

it('snippets have address, key, model and window inside, and nothing left to fill in', () => {
  for (const { name, text } of snippets({ baseUrl: 'https://api.example.com/', secret: 'sk-tollgate-x', model: 'a/b', window: '4096' })) {
    expect(text, name).toContain('https://api.example.com');
    expect(text, name).toContain('sk-tollgate-x');
    expect(text, name).toContain('a/b');
    expect(text, name).not.toMatch(/TOLLGATE_(URL|MODEL)|environ|process\.env|131072/);
    expect(text.replaceAll('TOLLGATE_API_KEY="sk-tollgate-x"', '').replaceAll('env_key = "TOLLGATE_API_KEY"', ''), name).not.toContain('TOLLGATE_API_KEY');
  }
});

it('a call is a line to paste', () => {
  const [curl, python] = snippets({ baseUrl: 'http://h:1', secret: 's', model: 'a/b', window: '1' });
  expect(curl!.text).toContain(`-d '{"model": "a/b", "messages": [{"role": "user", "content": "Hello!"}]}'`);
  expect(python!.text).toContain('client = OpenAI(base_url="http://h:1/v1", api_key="s")');
});
