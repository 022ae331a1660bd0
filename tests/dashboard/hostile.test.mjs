// Every name that people, operators and callers can choose is shown as text on every page, never as script or markup.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { expect, settled, test } from './fixture.mjs';
import { callsOf, newPerson } from './people.mjs';
import { pages } from './pages.mjs';
import { chat, demo, tollgate } from './tollgate.mjs';

const MARKUP = '"><img src=x onerror="window.hit=1"><script>window.hit=1</script>';
const NAMES = [MARKUP, "javascript:window.hit=1//'-window.hit-'", 'gnp.exe {{7*7}} ${7*7}', '=cmd|"/c calc"!A1', '\u{1F600}'.repeat(25), '%00%3Cscript%3E&lt;b&gt;'];
const id = `hostile-${Date.now().toString(36)}`;
const w = `/w/${id}`;
const catalog = `${process.env.TOLLGATE_HOME}/config/catalog.yaml`;

// The product reloads a changed file, so it is replaced in one step.
function writeCatalog(text) {
  writeFileSync(`${catalog}.new`, text);
  renameSync(`${catalog}.new`, catalog);
}

let member, operator, key, catalogBefore;

test.beforeAll(async () => {
  tollgate('workspace', 'create', MARKUP, '--id', id);
  tollgate('workspace', 'open', id);
  tollgate('credit', 'add', '--workspace', id, '5', '--reason', MARKUP);
  operator = await newPerson(`${id}-operator@demo.invalid`, MARKUP, { operator: true });
  const operate = await callsOf(operator);
  const invited = await operate('POST', `/admin/v1/workspaces/${id}/invitations?requestId=${id}`, { email: `${id}@demo.invalid`, role: 'owner' });
  member = await newPerson(`${id}@demo.invalid`, MARKUP);
  const call = await callsOf(member);
  await call('POST', '/admin/v1/invitations:accept', { token: new URL(invited.acceptPath, 'http://x').searchParams.get('token') });

  for (const [at, displayName] of NAMES.entries()) {
    const made = await call('POST', `/admin/v1/workspaces/${id}/keys?requestId=${id}-${at}`, { displayName, labels: { hostile: MARKUP } });
    key ??= made;
  }
  await chat(key.secret);
  await chat(key.secret, MARKUP);
  await call('POST', `/admin/v1/workspaces/${id}/keys/${key.key.name.split('/').pop()}:disable`, { reason: MARKUP, requestId: `${id}-disable` });
  await call('POST', `/admin/v1/workspaces/${id}/webhooks?requestId=${id}`, { url: `https://example.com/${encodeURIComponent(MARKUP)}?a='><b>` });
  await call('POST', `/admin/v1/users/me/tokens?requestId=${id}`, { displayName: MARKUP, scopes: ['viewer', `workspaces/${id}`], expireTime: new Date(Date.now() + 86_400_000).toISOString() });
  await call('POST', `/admin/v1/workspaces/${id}/invitations?requestId=${id}-2`, { email: `"<img/src=x>"@${id}.invalid`, role: 'viewer' }).catch(() => {});
  await operate('POST', `/admin/v1/workspaces/${id}/supportSessions?requestId=${id}`, { reason: MARKUP });
  await operate('POST', `/admin/v1/workspaces/${id}:freeze`, { reason: MARKUP, requestId: `${id}-freeze` });
  await operate('POST', `/admin/v1/workspaces/${id}/adjustments?requestId=${id}`, { kind: 'ADJUSTMENT_KIND_CREDIT', amountUsd: '0.01', reason: MARKUP, reference: MARKUP }).catch(() => {});

  catalogBefore = readFileSync(catalog, 'utf8');
  const model = { id: `hostile/${id}`, name: MARKUP, description: MARKUP, context_window: 1000, max_output_tokens: 100, input_usd_per_million: '1', output_usd_per_million: '1', capabilities: ['chat'], documentation_url: 'https://example.com/"><img src=x onerror=window.hit=1>', created: '2026-11-01', pool: 'simulators' };
  writeCatalog(catalogBefore.replace('\npools:', `\n  - ${JSON.stringify(model)}\npools:`));
  await expect.poll(async () => (await call('GET', '/admin/v1/models?pageSize=200')).models.some((one) => one.displayName === MARKUP)).toBe(true);
});

test.afterAll(() => {
  if (catalogBefore) writeCatalog(catalogBefore);
});

// The hostile markup is an element only if the page has rendered it as markup.
async function harmless(page, where) {
  const found = await page.evaluate(() => ({
    hit: window.hit,
    elements: [...document.querySelectorAll('img[src="x"], script:not([src]), [onerror]')].map((element) => element.outerHTML),
    links: [...document.querySelectorAll('a[href], form[action]')].map((element) => element.getAttribute('href') ?? element.getAttribute('action')).filter((href) => /^\s*(javascript|data|vbscript):/i.test(href)),
  }));
  expect(found, where).toEqual({ hit: undefined, elements: [], links: [] });
}

// Opens each page of the list with the hostile workspace in the place of the other one.
async function openAll(context, list, seen) {
  const page = await context.newPage();
  const refused = [];
  page.on('console', (message) => /Content Security Policy|TrustedHTML|TrustedScript/.test(message.text()) && refused.push(message.text()));
  page.on('dialog', (dialog) => refused.push(dialog.message()));
  for (const path of list) {
    await page.goto(path);
    await settled(page);
    await harmless(page, path);
    if (await page.getByText(MARKUP, { exact: false }).count()) seen.add(path);
  }
  expect(refused).toEqual([]);
  return page;
}

test('hostile: names of people, keys, models and reasons are text on every page of a workspace', async ({ browser }) => {
  test.setTimeout(240_000);
  const context = await browser.newContext({ storageState: member });
  const keyId = key.key.name.split('/').pop();
  const paths = pages.filter((one) => !one.signedOut && !one.operator && one.path().startsWith('/w/demo') && !one.name.startsWith('model')).map((one) => one.path().replace('/w/demo', w).replace(/keys\/[^?]+$/, `keys/${keyId}`));
  const seen = new Set();
  const page = await openAll(context, [...new Set(paths), `${w}/models`, `${w}/models/hostile/${id}`, '/account/profile', '/account/security', '/account/sessions', '/account/tokens'], seen);
  // The hostile names are shown.
  for (const path of [`${w}/keys`, `${w}/keys/${keyId}`, `${w}/members`, `${w}/models`, `${w}/models/hostile/${id}`, `${w}/audit`, '/account/tokens', w]) expect([...seen], path).toContain(path);
  // A file that a spreadsheet opens begins no cell with a formula.
  const csv = await (await context.request.get(`/admin/v1/workspaces/${id}/auditEntries:export`)).text();
  expect(csv).toContain('window.hit');
  expect(csv).not.toMatch(/(^|,)"?=cmd/m);
  await context.close();
});

test('hostile: names are text on the pages of operators', async ({ browser }) => {
  test.setTimeout(240_000);
  const context = await browser.newContext({ storageState: operator });
  const seen = new Set();
  const paths = [...new Set(pages.filter((one) => one.operator).map((one) => one.path().replace('/operator/workspaces/demo', `/operator/workspaces/${id}`))), `/operator/workspaces/${id}?tab=grants`, `/operator/workspaces/${id}?tab=support`, `/operator/audit?subject=${id}`];
  await openAll(context, paths, seen);
  for (const path of [`/operator/workspaces/${id}`, `/operator/workspaces/${id}?tab=support`, '/operator/workspaces', '/operator/people']) expect([...seen], path).toContain(path);
  await context.close();
});

test('hostile: an address is text, and leads to no other site', async ({ page, context }) => {
  const text = encodeURIComponent(MARKUP);
  for (const path of [`/w/demo/keys?query=${text}`, `/w/demo/keys/${text}`, `/w/${text}`, `/w/demo/requests?id=${text}`, `/w/demo/requests/${text}`, `/w/demo/models/${text}/${text}`, `/w/demo/usage?model=${text}&key=${text}&zone=${text}&range=${text}`, `/w/demo/audit?subject=${text}&actor=${text}`, `/w/demo/billing/statements/${text}`, `/nowhere/${encodeURIComponent('"><script>window.hit=1</script>').replaceAll('.', '%2E')}/x`, `/link#token=${text}`, `/sign-in?failed=${text}`]) {
    await page.goto(path);
    await settled(page);
    await harmless(page, path);
  }
  for (const bad of ['javascript:window.hit=1', '//example.com/', 'https://example.com/', '/\\example.com', '\\\\example.com']) {
    await context.clearCookies();
    await page.goto(`/sign-in?return=${encodeURIComponent(bad)}`);
    await page.getByLabel('Email').fill('owner@demo.invalid');
    await page.getByLabel('Password', { exact: true }).fill('correct horse battery');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await expect(page.locator('h1')).not.toHaveText('Sign in');
    expect(new URL(page.url()).origin, bad).toBe(process.env.TOLLGATE_DASHBOARD);
    await harmless(page, bad);
  }
});
