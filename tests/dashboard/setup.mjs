// Before all tests: an owner with a password, a few keys, and requests that cost something.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { chat, demo, owner, session, signInLink, tollgate, workspace } from './tollgate.mjs';

export default async function setup() {
  rmSync(process.env.SHOTS, { recursive: true, force: true });
  mkdirSync(process.env.SHOTS, { recursive: true });
  await signIn(signInLink(owner.email), 'state.json');
  await signIn(tollgate('operator', 'create', 'operator@demo.invalid', '--name', 'Olga Operator').path, 'operator.json');
  for (const name of ['checkout-bot', 'search-rerank', 'support-summaries', 'nightly-evals', 'ide-anna']) {
    const made = tollgate('key', 'create', '--workspace', workspace, '--name', name);
    const calls = { 'checkout-bot': 6, 'search-rerank': 4, 'support-summaries': 2 }[name] ?? 0;
    for (let i = 0; i < calls; i++) await chat(made.secret, demo.models[i % demo.models.length]);
    if (name === 'nightly-evals') tollgate('key', 'disable', made.key_id);
  }
  await chat(demo.api_key, 'demo/none');
}

// With a password; the cookie goes into the file.
async function signIn(link, file) {
  const token = new URL(link, 'http://x').searchParams.get('token');
  const cookie = await session('link', { token, new_password: owner.password });
  const [name, value] = cookie.split(';')[0].split(/=(.*)/s);
  const { hostname } = new URL(process.env.TOLLGATE_DASHBOARD);
  writeFileSync(file, JSON.stringify({ cookies: [{ name, value, domain: hostname, path: '/', expires: -1, httpOnly: true, secure: false, sameSite: 'Lax' }], origins: [] }));
}
