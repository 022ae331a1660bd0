// The running Tollgate: its command line and its public API.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const home = process.env.TOLLGATE_HOME;
export const dashboard = process.env.TOLLGATE_DASHBOARD;
export const demo = JSON.parse(readFileSync(`${home}/demo.json`, 'utf8'));
export const workspace = 'demo';
export const owner = { email: 'owner@demo.invalid', password: 'correct horse battery' };

// Runs the command line; returns its JSON.
export function tollgate(...args) {
  const out = execFileSync(`${process.env.BIN}/tollgate`, ['--json', ...args], { env: { ...process.env, TOLLGATE_ADMIN: `unix:${home}/run/admin.sock` }, encoding: 'utf8' });
  return out.trim() ? JSON.parse(out) : null;
}

export function signInLink(email) {
  return tollgate('user', 'link', email).path;
}

// Makes one chat request; returns its HTTP status.
export async function chat(key, model = demo.models[0], text = 'Hello!') {
  const response = await fetch(`${demo.base_url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, max_tokens: 40, messages: [{ role: 'user', content: text }] }),
  });
  await response.arrayBuffer();
  return response.status;
}

// The value of a metric, all labels together.
export async function metric(name) {
  const { admin } = JSON.parse(readFileSync(`${home}/run/addresses.json`, 'utf8'));
  const text = await (await fetch(`http://${admin}/metrics`)).text();
  return text.split('\n').filter((line) => line.startsWith(name) && !line.startsWith('#')).reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

// Posts to /session/v1/ like the page; returns the cookie of the response.
export async function session(path, body, at = dashboard) {
  const response = await fetch(`${at}/session/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: at },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.headers.getSetCookie()[0];
}
