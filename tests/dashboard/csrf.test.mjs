// Pages of other origins cannot act for the signed-in user, cannot read data, and cannot show our pages in a frame.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { expect, settled, test } from './fixture.mjs';
import { callsOf } from './people.mjs';
import { dashboard, metric, workspace } from './tollgate.mjs';

const keys = `/admin/v1/workspaces/${workspace}/keys`;
let server, port;
const reports = () => metric('tollgate_dashboard_csp_reports_total');

// A foreign site: on another port it is another origin, and as "localhost" another site as well.
test.beforeAll(async () => {
  server = createServer((request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>foreign</title><h1>foreign</h1>');
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  port = server.address().port;
});
test.afterAll(() => server.close());

const countKeys = async () => (await (await callsOf('state.json'))('GET', `${keys}?pageSize=200&query=forged`)).keys.length;

for (const [what, host] of [['of another port, which gets the cookies', '127.0.0.1'], ['of another site', 'localhost']]) {
  test(`csrf: forms and calls of a page ${what} change nothing and read nothing`, async ({ page }) => {
    await page.goto(`/w/${workspace}/keys`);
    await settled(page);
    await page.goto(`http://${host}:${port}/`);
    const seen = [];
    page.on('response', async (response) => {
      if (response.url().startsWith(dashboard) && response.request().method() !== 'OPTIONS') seen.push({ url: response.url(), status: response.status() });
    });
    // Calls with cookies: simple requests, and requests with a preflight.
    const read = await page.evaluate(async ({ dashboard, keys }) => {
      const attempt = (path, init) => fetch(dashboard + path, { credentials: 'include', ...init }).then(async (response) => response.type === 'opaque' ? 'opaque' : await response.text(), () => 'refused');
      const body = JSON.stringify({ displayName: 'forged' });
      return Promise.all([
        attempt(`${keys}?requestId=forged-1`, { method: 'POST', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body }),
        attempt(`${keys}?requestId=forged-2`, { method: 'POST', headers: { 'content-type': 'application/json' }, body }),
        attempt(`${keys}?requestId=forged-3`, { method: 'POST', headers: { 'content-type': 'text/plain' }, body }),
        attempt('/session/v1/signOut', { method: 'POST', mode: 'no-cors', body: '{}' }),
        attempt('/session/v1/session'),
        attempt('/admin/v1/users/me'),
        attempt('/playground/v1/chat/completions', { method: 'POST', mode: 'no-cors', body: '{}' }),
      ]);
    }, { dashboard, keys });
    for (const answer of read) expect(['refused', 'opaque']).toContain(answer);
    // A form that posts to the dashboard.
    for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      await page.goto(`http://${host}:${port}/`);
      const answer = page.waitForResponse((response) => response.url().includes('requestId=forged-form'));
      await page.evaluate(({ action, enctype }) => {
        const form = Object.assign(document.createElement('form'), { method: 'post', action, enctype });
        form.append(Object.assign(document.createElement('input'), { name: '{"displayName":"forged","x":"', value: '"}' }));
        document.body.append(form);
        form.submit();
      }, { action: `${dashboard}${keys}?requestId=forged-form`, enctype });
      expect((await answer).status(), enctype).toBeGreaterThanOrEqual(400);
      await page.waitForURL(/requestId=forged-form/); // else the next page interrupts this one
    }
    for (const { url, status } of seen.filter(({ url }) => url.includes('forged') || url.includes('signOut') || url.includes('playground'))) expect(status, url).toBeGreaterThanOrEqual(400);
    expect(await countKeys()).toBe(0);
    // Still signed in: the other site has not ended the session.
    await page.goto(`/w/${workspace}/keys`);
    await expect(page.locator('h1')).toHaveText('API keys');
  });
}

test('csrf: a foreign page shows ours in no frame, and holds no window of ours', async ({ context }) => {
  // The refused frame is reported: the last check of the run expects it.
  const page = await context.newPage();
  const before = await reports();
  await page.goto(`http://127.0.0.1:${port}/`);
  const frame = await page.evaluate(async (url) => {
    const one = Object.assign(document.createElement('iframe'), { src: url });
    const loaded = new Promise((done) => one.addEventListener('load', done));
    document.body.append(one);
    await loaded;
    return one.contentDocument === null;
  }, `${dashboard}/w/${workspace}`);
  expect(frame).toBe(true);
  for (const one of page.frames().slice(1)) expect(one.url()).toMatch(/^chrome-error:/);
  await expect.poll(reports).toBeGreaterThan(before);
  writeFileSync('expected-reports', String((await reports()) - before));
  const [other] = await Promise.all([page.waitForEvent('popup'), page.evaluate((url) => { window.other = window.open(url); }, `${dashboard}/w/${workspace}`)]);
  await other.locator('h1').waitFor();
  expect(await other.evaluate(() => window.opener)).toBe(null);
  await expect.poll(() => page.evaluate(() => window.other.closed)).toBe(true);
});

test('csrf: a change wants the token of the session and our own origin', async ({ page, context }) => {
  await page.goto(`/w/${workspace}/keys`);
  await settled(page);
  const change = (headers) => page.evaluate(async ({ keys, headers }) => (await fetch(`${keys}?requestId=forged-4`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: '{"displayName":"forged"}' })).status, { keys, headers });
  expect(await change({})).toBe(403);
  expect(await change({ 'x-csrf-token': 'x'.repeat(43) })).toBe(403);
  const [cookie] = await context.cookies(dashboard);
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Lax', path: '/' });
  const headers = { cookie: `${cookie.name}=${cookie.value}`, 'content-type': 'application/json' };
  const { csrf_token: token } = await (await fetch(`${dashboard}/session/v1/session`, { headers })).json();
  for (const origin of ['https://example.com', `${dashboard}.example.com`, 'null', dashboard.replace(/\d+$/, '1')]) {
    const response = await fetch(`${dashboard}${keys}?requestId=forged-5`, { method: 'POST', headers: { ...headers, origin, 'x-csrf-token': token }, body: '{"displayName":"forged"}' });
    expect(response.status, origin).toBe(403);
  }
  expect(await countKeys()).toBe(0);
});

test('csrf: every answer tells browsers to be strict', async ({ request }) => {
  for (const path of ['/', '/sign-in', `/w/${workspace}`]) {
    const headers = (await request.get(path)).headers();
    const policy = Object.fromEntries(headers['content-security-policy'].split('; ').map((one) => one.split(/ (.*)/s).slice(0, 2)));
    expect(policy).toMatchObject({ 'default-src': "'none'", 'script-src': "'self'", 'style-src': "'self'", 'connect-src': "'self'", 'frame-ancestors': "'none'", 'base-uri': "'none'", 'form-action': "'self'", 'require-trusted-types-for': "'script'" });
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY', 'referrer-policy': 'no-referrer', 'cross-origin-opener-policy': 'same-origin', 'cross-origin-resource-policy': 'same-origin' });
    expect(headers['cache-control']).toContain('no-cache');
  }
  for (const path of ['/admin/v1/users/me', '/session/v1/session', '/admin/v1/nothing']) {
    const headers = (await request.get(path)).headers();
    expect(headers, path).toMatchObject({ 'x-content-type-options': 'nosniff', 'content-type': expect.stringContaining('application/json'), 'cache-control': 'no-store', 'cross-origin-resource-policy': 'same-origin' });
    expect(headers['access-control-allow-origin'], path).toBeUndefined();
  }
});
