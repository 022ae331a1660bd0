// Before all tests: an owner with a password, a few keys, and requests that cost something.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { signIn } from './people.mjs';
import { chat, demo, metric, owner, signInLink, tollgate, workspace } from './tollgate.mjs';

export default async function setup() {
  rmSync(process.env.SHOTS, { recursive: true, force: true });
  mkdirSync(process.env.SHOTS, { recursive: true });
  rmSync('expected-reports', { force: true });
  process.env.REPORTS_BEFORE = String(await metric('tollgate_dashboard_csp_reports_total'));
  await save(signInLink(owner.email), 'state.json');
  await save(operatorLink(), 'operator.json');
  for (const name of ['checkout-bot', 'search-rerank', 'support-summaries', 'nightly-evals', 'ide-anna']) {
    const made = tollgate('key', 'create', '--workspace', workspace, '--name', name);
    const calls = { 'checkout-bot': 6, 'search-rerank': 4, 'support-summaries': 2 }[name] ?? 0;
    for (let i = 0; i < calls; i++) await chat(made.secret, demo.models[i % demo.models.length]);
    if (name === 'nightly-evals') tollgate('key', 'disable', made.key_id);
  }
  await chat(demo.api_key, 'demo/none');
}

async function save(link, file) {
  writeFileSync(file, JSON.stringify(await signIn(link)));
}

// A Tollgate that is already running may have the operator of an earlier run.
function operatorLink() {
  try {
    return tollgate('operator', 'create', 'operator@demo.invalid', '--name', 'Olga Operator').path;
  } catch {
    return signInLink('operator@demo.invalid');
  }
}
