// The product as in production: a process for each service, PostgreSQL, Stripe. Money goes through Checkout, and a
// service that is killed is an error on the page that needs it, and on no other, until it is back.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { Cluster } from './cluster.mjs';
import { expect, settled, test } from './fixture.mjs';
import { callsOf, signIn } from './people.mjs';
import { owner as person } from './tollgate.mjs';
import { Stripe, secrets } from './stripe.mjs';

const w = '/w/acme';
let cluster, stripe, folder, call;
const people = {};

test.describe.configure({ mode: 'serial', timeout: 300_000 });

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

// A new person of the workspace, signed in.
async function join(role) {
  const email = `${role}@acme.invalid`;
  const invited = await call('POST', `/admin/v1/workspaces/acme/invitations?requestId=${role}`, { email, role });
  cluster.tollgate('user', 'create', email, '--name', `The ${role}`);
  people[role] = await signIn(cluster.tollgate('user', 'link', email).path, cluster.url);
  const own = await callsOf(people[role], cluster.url);
  await own('POST', '/admin/v1/invitations:accept', { token: new URL(invited.acceptPath, 'http://x').searchParams.get('token') });
}

test.beforeAll(async () => {
  test.setTimeout(300_000);
  stripe = await Stripe.start();
  folder = mkdtempSync(`${tmpdir()}/dashboard-stripe-`);
  for (const [name, text] of Object.entries(secrets)) writeFileSync(`${folder}/${name}`, text, { mode: 0o600 });
  const port = await freePort();
  stripe.webhookUrl = `http://127.0.0.1:${port}/webhooks/stripe`;
  cluster = await Cluster.start({
    billing: [`payments: {provider: stripe, stripe_secret_key_file: ${folder}/key, stripe_webhook_secret_file: ${folder}/webhook, webhook_listen: "127.0.0.1:${port}", success_url: "${stripe.url}/back", stripe_base_url: "${stripe.url}", reload_sweep_seconds: 1}`],
  });
  stripe.back = `${cluster.url}${w}/billing`;
  people.operator = await signIn(cluster.tollgate('operator', 'create', 'operator@acme.invalid', '--name', 'Olga Operator').path, cluster.url);
  call = await callsOf(people.operator, cluster.url);
  await call('POST', '/admin/v1/workspaces?workspaceId=acme&requestId=acme', { displayName: 'Acme Research' });
  for (const role of ['owner', 'viewer']) await join(role);
});
test.afterAll(async () => {
  await cluster?.stop();
  stripe?.stop();
  if (folder) rmSync(folder, { recursive: true });
});

async function open(browser, role, path) {
  const context = await browser.newContext({ storageState: people[role], baseURL: cluster.url });
  const page = await context.newPage();
  await page.goto(path);
  await settled(page);
  return page;
}

// An action that requires a fresh sign-in asks for the password and then continues.
async function confirmed(page, done) {
  const again = page.getByRole('dialog').filter({ hasText: 'Confirm your identity' });
  await expect(again.or(done).first()).toBeVisible();
  if (await again.isVisible()) {
    await again.getByLabel('Password', { exact: true }).fill(person.password);
    await again.getByRole('button', { name: 'Confirm' }).click();
  }
  await expect(done).toBeVisible();
}

const chat = async (secret) => (await fetch(`http://127.0.0.1:${cluster.facts.port}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }, body: JSON.stringify({ model: 'sim/model', max_tokens: 20, messages: [{ role: 'user', content: 'Hello' }] }) })).status;
const balance = async () => (await call('GET', '/admin/v1/workspaces/acme/balance')).availableUsd;

test('stripe: credit is added on the page of Checkout, and counts exactly once', async ({ browser }) => {
  const page = await open(browser, 'owner', `${w}/billing`);
  await page.getByRole('button', { name: 'Add credit' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Amount', { exact: true }).fill('25.50');
  await dialog.getByRole('button', { name: 'Add credit' }).click();
  await page.getByRole('button', { name: 'Pay $25.50' }).click();
  await expect(page.locator('h1')).toHaveText('Billing');
  const row = page.getByRole('table', { name: 'Payments' }).getByRole('row', { name: /\$25\.50/ });
  await expect(row).toContainText('Paid');
  await expect(page.getByText('$25.50').first()).toBeVisible();
  // Each webhook came twice, and the payment engine has polled as well.
  expect(await balance()).toBe('25.50');
  await page.goto(`${w}/billing/transactions?kind=topup`);
  await settled(page);
  await expect(page.locator('tbody tr')).toHaveCount(1);
  expect(stripe.charges).toBe(1);
  expect(stripe.problems).toEqual([]);
  await page.context().close();
});

test('stripe: a page of Checkout that is left adds nothing', async ({ browser }) => {
  const page = await open(browser, 'owner', `${w}/billing`);
  await page.getByRole('button', { name: 'Add credit' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Amount', { exact: true }).fill('99');
  await dialog.getByRole('button', { name: 'Add credit' }).click();
  await page.getByRole('button', { name: 'Pay $99.00' }).waitFor();
  await page.goBack();
  await settled(page);
  await expect(page.getByRole('table', { name: 'Payments' }).getByRole('row', { name: /\$99\.00/ })).not.toContainText('Paid');
  expect(await balance()).toBe('25.50');
  await page.context().close();
});

test('stripe: a card is saved, and auto-reload charges it once when credit is low', async ({ browser }) => {
  const page = await open(browser, 'owner', `${w}/billing/auto-reload`);
  await page.getByRole('button', { name: 'Add card' }).click();
  await confirmed(page, page.getByRole('button', { name: 'Save card', exact: true }));
  await page.getByRole('button', { name: 'Save card', exact: true }).click();
  await page.locator('h1').waitFor();
  await page.goto(`${w}/billing/auto-reload`);
  await expect(page.getByText('Visa •••• 4242')).toBeVisible();
  await page.getByRole('switch', { name: 'Charge the saved card' }).press('Space');
  await page.getByLabel('When the balance falls below').fill('30');
  await page.getByLabel('Reload amount').fill('30');
  await page.getByLabel('Monthly reload limit').fill('35');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await confirmed(page, page.getByText('Auto-reload saved'));
  // The page updates by itself.
  await expect(page.getByRole('table', { name: 'Payments' }).getByRole('row', { name: /\$30\.00.*Paid/ })).toBeVisible({ timeout: 60_000 });
  expect(await balance()).toBe('55.50');
  expect(stripe.charges).toBe(2);
  expect(stripe.problems).toEqual([]);
  await page.context().close();
});

test('cluster: a key is made and used, its cost is on the pages; a viewer reads and makes none', async ({ browser }) => {
  const page = await open(browser, 'owner', `${w}/keys`);
  await page.getByRole('button', { name: 'Create API key' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('cluster-key');
  await dialog.getByRole('button', { name: 'Create API key' }).click();
  const secret = await dialog.getByLabel('Secret key').textContent();
  expect(await chat(secret)).toBe(200);
  await page.goto(`${w}/requests`);
  await expect(page.locator('tbody tr')).toHaveCount(1);
  const { receipts } = await call('GET', '/admin/v1/workspaces/acme/requests');
  await expect(page.locator('tbody tr data').last()).toHaveAttribute('value', receipts[0].chargedUsd);
  await page.context().close();

  const viewer = await open(browser, 'viewer', `${w}/keys`);
  await expect(viewer.getByRole('link', { name: 'cluster-key' })).toBeVisible();
  await expect(viewer.getByRole('button', { name: 'Create API key' })).toHaveCount(0);
  await expect(viewer.getByRole('link', { name: 'Audit log' })).toHaveCount(0);
  const refused = await (await callsOf(people.viewer, cluster.url))('POST', '/admin/v1/workspaces/acme/keys?requestId=viewer', { displayName: 'no' }).catch(String);
  expect(refused).toContain('403');
  await viewer.context().close();
});

// shown: content that appears again when the service is back, without a reload.
for (const { service, path, shown, role = 'owner' } of [
  { service: 'billing', path: `${w}/billing`, shown: 'Credit breakdown' },
  { service: 'auth', path: `${w}/keys`, shown: 'cluster-key' },
  { service: 'catalog', path: `${w}/models`, shown: 'sim/model' },
]) {
  test(`faults: without ${service} the page says so, and is whole again when it is back`, async ({ browser }) => {
    const page = await open(browser, role, '/account/profile');
    await cluster.kill(service);
    await page.goto(path);
    await expect(page.getByText(/Could not load|not respond|not answer|cannot be reached|unavailable/i).first()).toBeVisible({ timeout: 60_000 });
    await page.screenshot({ path: `${process.env.SHOTS}/fault-${service}.png`, animations: 'disabled' });
    // The user stays signed in.
    await expect(page).not.toHaveURL(/sign-in/);
    await cluster.restart(service);
    await expect(async () => {
      const retry = page.getByRole('button', { name: 'Retry' });
      if (await retry.count()) await retry.first().click();
      await expect(page.getByText(shown).first()).toBeVisible({ timeout: 2_000 });
    }).toPass({ timeout: 60_000 });
    await page.context().close();
  });
}

test('faults: a killed inference router is a process without an answer on the page of operators', async ({ browser }) => {
  const page = await open(browser, 'operator', '/operator/fleet');
  const row = page.getByRole('row', { name: /inference-router/ });
  // On a busy machine one poll may fail; the page polls again.
  await expect(row).toContainText('Ready', { timeout: 60_000 });
  await cluster.kill('inference-router');
  await expect(row).toContainText('No response', { timeout: 60_000 });
  await cluster.restart('inference-router');
  await expect(row).toContainText('Ready', { timeout: 60_000 });
  await page.context().close();
});
