// Signed-in people who call the admin API like the pages.
import { readFileSync } from 'node:fs';
import { dashboard, owner, session, signInLink, tollgate } from './tollgate.mjs';

// The cookie of an answer, as a browser keeps it.
export function storageState(cookie) {
  const [name, value] = cookie.split(';')[0].split(/=(.*)/s);
  return { cookies: [{ name, value, domain: new URL(dashboard).hostname, path: '/', expires: -1, httpOnly: true, secure: false, sameSite: 'Lax' }], origins: [] };
}

// Signs in with a one-time link and sets the password of all tests.
export async function signIn(link, at = dashboard) {
  const token = new URL(link, 'http://x').searchParams.get('token');
  return storageState(await session('link', { token, new_password: owner.password }, at));
}

// Creates a person; with operator: true an operator of the platform.
export async function newPerson(email, name, { operator = false } = {}) {
  const made = operator ? tollgate('operator', 'create', email, '--name', name).path : (tollgate('user', 'create', email, '--name', name), signInLink(email));
  return signIn(made);
}

// A busy machine may refuse the first calls with 503.
async function csrfToken(at, headers) {
  for (let tries = 1; ; ++tries) {
    const response = await fetch(`${at}/session/v1/session`, { headers });
    if (response.ok) return (await response.json()).csrf_token;
    if (tries === 60) throw new Error(`the session of ${at}: ${response.status} ${await response.text()}`);
    await new Promise((resolve) => { setTimeout(resolve, 1000); });
  }
}

// Calls with the session of a storage state, or of a file with one. Throws when the server refuses.
export async function callsOf(state, at = dashboard) {
  const { cookies: [{ name, value }] } = typeof state === 'string' ? JSON.parse(readFileSync(state, 'utf8')) : state;
  const headers = { cookie: `${name}=${value}`, origin: at, 'content-type': 'application/json' };
  const csrf_token = await csrfToken(at, headers);
  return async (method, path, body) => {
    const response = await fetch(`${at}${path}`, { method, headers: { ...headers, 'x-csrf-token': csrf_token }, body: body && JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  };
}
