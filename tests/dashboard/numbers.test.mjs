// Nothing on a page is invented: each number of home, usage, requests and billing is the one that the ledger tells the command
// line, to the last digit, and the parts add up to it.
import { expect, settled, test } from './fixture.mjs';
import { callsOf, newPerson } from './people.mjs';
import { chat, demo, tollgate } from './tollgate.mjs';

const id = `numbers-${Date.now().toString(36)}`;
const w = `/w/${id}`;
let member;

// Billionths of a dollar.
function nano(usd) {
  const [, sign, whole, part = ''] = /^(-?)(\d+)(?:\.(\d{1,12}))?$/.exec(usd);
  return BigInt(`${sign}${whole}${part.padEnd(9, '0').slice(0, 9)}`);
}
const sum = (values) => values.reduce((total, value) => total + value, 0n);

test.beforeAll(async () => {
  tollgate('workspace', 'create', 'Numbers', '--id', id);
  tollgate('workspace', 'open', id);
  tollgate('credit', 'add', '--workspace', id, '7.123456789', '--granted', '--reason', 'granted');
  tollgate('credit', 'add', '--workspace', id, '3.000000001', '--reason', 'paid');
  tollgate('cap', 'set', '--workspace', id, '5');
  const operate = await callsOf('operator.json');
  const invited = await operate('POST', `/admin/v1/workspaces/${id}/invitations?requestId=${id}`, { email: `${id}@demo.invalid`, role: 'owner' });
  member = await newPerson(`${id}@demo.invalid`, 'Nora Numbers');
  await (await callsOf(member))('POST', '/admin/v1/invitations:accept', { token: new URL(invited.acceptPath, 'http://x').searchParams.get('token') });
  for (const name of ['one', 'two']) {
    const { secret } = tollgate('key', 'create', '--workspace', id, '--name', name);
    for (const model of demo.models) for (let n = 0; n < (name === 'one' ? 2 : 1); n += 1) expect(await chat(secret, model, `Count to ${n}.`)).toBe(200);
    expect(await chat(secret, 'demo/none')).toBe(404);
  }
  await expect.poll(() => tollgate('balance', id).open_holds).toBe(0);
});

test('numbers: home, usage, requests and billing show what the ledger says', async ({ browser }) => {
  test.setTimeout(240_000);
  const context = await browser.newContext({ storageState: member });
  const page = await context.newPage();
  const ledger = tollgate('balance', id);
  const since = new Date(Date.now() - 86_400_000).toISOString();
  const usage = tollgate('usage', id, '--interval', 'none', '--since', since, '--group-by', 'model').usage;
  const total = usage.find((one) => one.model === null);
  const calls = 3 * demo.models.length;
  expect(total.requests).toBe(calls);
  expect(nano(total.cost_usd)).toBe(nano(ledger.month_spent_usd));

  const tile = (label) => page.locator('section').filter({ has: page.getByRole('heading', { name: label }) });
  const amount = async (locator) => nano(await locator.getAttribute('value'));
  await page.goto(w);
  await settled(page);
  expect(await amount(tile('Available credit').locator('data'))).toBe(nano(ledger.available_usd));
  expect(await amount(tile(/^Spent in/).locator('data').first())).toBe(nano(ledger.month_spent_usd));
  await expect(tile(/^Spent in/)).toContainText('of $5.00 cap');
  await expect(tile('Requests today').locator('div').first()).toHaveText(String(calls));
  // Each key has requested a missing model once.
  await expect(tile('Refused or failed today')).toContainText('2 model_unavailable', { timeout: 30_000 });

  await page.goto(`${w}/usage?range=24h`);
  await settled(page);
  expect(await amount(tile('Cost').locator('data').first())).toBe(nano(total.cost_usd));
  const table = page.getByRole('table', { name: 'Usage by model' });
  for (const one of usage.filter(({ model }) => model !== null)) {
    const row = table.getByRole('row', { name: new RegExp(one.model) });
    expect(await amount(row.locator('data'))).toBe(nano(one.cost_usd));
    await expect(row).toContainText(one.prompt_tokens.toLocaleString('en-US'));
    await expect(row).toContainText(one.completion_tokens.toLocaleString('en-US'));
  }
  expect(await amount(table.getByRole('row', { name: /^Total/ }).locator('data'))).toBe(nano(total.cost_usd));
  await page.goto(`${w}/usage?range=24h&by=key`);
  await settled(page);
  const byKey = page.getByRole('table', { name: 'Usage by API key' }).locator('tbody tr:not(:last-child) data');
  const rows = page.getByRole('table', { name: 'Usage by API key' });
  expect(await amount(rows.getByRole('row', { name: /^one/ }).locator('data')) + (await amount(rows.getByRole('row', { name: /^two/ }).locator('data')))).toBe(nano(total.cost_usd));
  expect(await byKey.count()).toBeGreaterThan(0);

  await page.goto(`${w}/requests`);
  await settled(page);
  const shown = await page.locator('tbody tr data').evaluateAll((all) => all.map((one) => one.value));
  expect(shown).toHaveLength(calls);
  expect(sum(shown.map(nano))).toBe(nano(total.cost_usd));

  await page.goto(`${w}/billing`);
  await settled(page);
  const made = page.getByRole('table').filter({ hasText: 'Held for running requests' });
  expect(await amount(made.getByRole('row', { name: /^Paid/ }).locator('data'))).toBe(nano(ledger.paid_usd));
  expect(await amount(made.getByRole('row', { name: /^Granted/ }).locator('data'))).toBe(nano(ledger.granted_usd));
  expect(await amount(made.getByRole('row', { name: /^Available/ }).locator('data'))).toBe(nano(ledger.available_usd));
  await page.goto(`${w}/billing/transactions`);
  await settled(page);
  const newest = tollgate('transactions', '--workspace', id).transactions[0];
  expect(nano(newest.balance_usd)).toBe(nano(ledger.available_usd));
  expect(await amount(page.locator('tbody tr').first().locator('data').last())).toBe(nano(newest.balance_usd));

  // The statement of the month closes with the balance.
  await page.goto(`${w}/billing/statements/${ledger.month}`);
  await settled(page);
  const values = (await page.locator('data').evaluateAll((all) => all.map((one) => one.value))).map(nano);
  expect(values).toContain(nano(ledger.available_usd));
  expect(values.map((one) => (one < 0n ? -one : one))).toContain(nano(total.cost_usd));
  await context.close();
});
