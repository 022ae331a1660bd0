// Actions of operators through their pages; the ledger, the limiter and the audit log must have them.
import { expect, settled, test } from './fixture.mjs';
import { callsOf, newPerson } from './people.mjs';
import { chat, owner, tollgate } from './tollgate.mjs';

const id = `acme-${Date.now().toString(36)}`;
const where = `/operator/workspaces/${id}`;
let first, second;

test.describe.configure({ mode: 'serial' });
test.beforeAll(async () => {
  first = await newPerson(`${id}-1@demo.invalid`, 'Otto First', { operator: true });
  second = await newPerson(`${id}-2@demo.invalid`, 'Berta Second', { operator: true });
});

const as = async (browser, state) => (await browser.newContext({ storageState: state })).newPage();
const balance = () => tollgate('balance', id);

// An action that requires a fresh sign-in asks for the password and then continues.
async function confirmed(page, done) {
  const again = page.getByRole('dialog').filter({ hasText: 'Confirm your identity' });
  await expect(again.or(done).first()).toBeVisible();
  if (await again.isVisible()) {
    await again.getByLabel('Password', { exact: true }).fill(owner.password);
    await again.getByRole('button', { name: 'Confirm' }).click();
  }
  await expect(done).toBeVisible();
}

test('operator: a workspace is made, gets credit, and serves', async ({ browser }) => {
  const page = await as(browser, first);
  await page.goto('/operator/workspaces');
  await settled(page);
  await page.getByRole('button', { name: 'Create workspace' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('Acme Research');
  await dialog.getByLabel('ID', { exact: true }).fill(id);
  await dialog.getByRole('button', { name: 'Create workspace' }).click();
  await expect(page).toHaveURL(new RegExp(`${where}$`));
  await expect(page.locator('h1')).toHaveText('Acme Research');

  await page.getByRole('button', { name: 'Grant credit' }).click();
  await dialog.getByLabel('Amount').fill('99.123456789');
  await dialog.getByLabel('Reason (recorded in the ledger)').fill('Contract 17');
  await dialog.getByText('Payment received outside').click();
  await dialog.getByRole('button', { name: 'Grant credit' }).click();
  await confirmed(page, page.locator('data[value="99.123456789"]').first());
  expect(balance()).toMatchObject({ available_usd: '99.123456789' });
  expect(await chat(tollgate('key', 'create', '--workspace', id, '--name', 'first').secret)).toBe(200);
  await page.context().close();
});

test('operator: limits are set, and the limiter keeps them', async ({ browser }) => {
  const page = await as(browser, first);
  await page.goto(`${where}?tab=limits`);
  await settled(page);
  await page.getByRole('button', { name: 'Change' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Requests per minute').fill('two');
  await dialog.getByRole('button', { name: 'Change limits' }).click();
  await expect(dialog.getByText('Enter a whole number')).toBeVisible();
  await dialog.getByLabel('Requests per minute').fill('2');
  await dialog.getByRole('button', { name: 'Change limits' }).click();
  await expect(dialog).toBeHidden();
  const limits = await (await callsOf(first))('GET', `/admin/v1/workspaces/${id}/limits`);
  expect(limits.effectiveWorkspaceLimits.requestsPerMinute).toBe('2');
  const { secret } = tollgate('key', 'create', '--workspace', id, '--name', 'limited');
  await expect.poll(() => chat(secret)).toBe(429);
  await page.getByRole('button', { name: 'Change' }).click();
  await dialog.getByLabel('Requests per minute').fill('');
  await dialog.getByRole('button', { name: 'Change limits' }).click();
  await expect(dialog).toBeHidden();
  await expect.poll(() => chat(secret)).toBe(200);
  await page.context().close();
});

test('operator: frozen, a workspace is refused; unfrozen, it spends again', async ({ browser }) => {
  const page = await as(browser, first);
  const { secret } = tollgate('key', 'create', '--workspace', id, '--name', 'frozen');
  await page.goto(where);
  await settled(page);
  const choose = async (item) => {
    await page.getByRole('button', { name: 'Actions', exact: true }).click();
    await page.getByRole('menuitem', { name: item }).click();
  };
  const dialog = page.getByRole('dialog');
  await choose('Freeze…');
  await dialog.getByRole('button', { name: 'Freeze workspace' }).click();
  await expect(dialog.getByText('Enter a reason')).toBeVisible();
  await dialog.getByLabel('Reason (recorded in the ledger)').fill('looks stolen');
  await dialog.getByRole('button', { name: 'Freeze workspace' }).click();
  await confirmed(page, page.getByText('This workspace is frozen. New requests are refused.'));
  expect(await chat(secret)).toBe(402);
  await choose('Unfreeze…');
  await dialog.getByLabel('Reason (recorded in the ledger)').fill('owner called');
  await dialog.getByRole('button', { name: 'Unfreeze workspace' }).click();
  await expect(page.getByText('This workspace is frozen. New requests are refused.')).toBeHidden();
  expect(await chat(secret)).toBe(200);
  await page.context().close();
});

test('operator: a large refund waits for a second operator, and is posted once', async ({ browser }) => {
  // One operator may make credit of 100 USD a day alone.
  const grant = (call, requestId) => call('POST', `/admin/v1/workspaces/${id}/creditGrants?requestId=${id}-${requestId}`, { amountUsd: '80', paid: true });
  await expect(grant(await callsOf(first), 'own')).rejects.toThrow(/one person may make/);
  await grant(await callsOf(second), 'other');
  const page = await as(browser, first);
  await page.goto(where);
  await settled(page);
  await page.getByRole('button', { name: 'Actions', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Create adjustment…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Amount').fill('150');
  await dialog.getByLabel('Reason (recorded in the ledger)').fill('half of contract 17');
  const before = balance();
  await dialog.getByRole('button', { name: 'Create adjustment' }).click();
  await confirmed(page, page.getByText('Another operator must approve this adjustment.'));
  expect(balance().paid_usd ?? balance().available_usd).toBe(before.paid_usd ?? before.available_usd);

  // The requester cannot approve: neither with the button nor by a direct call.
  await page.goto('/operator/refunds');
  await page.getByRole('row', { name: /half of contract 17/ }).click();
  await expect(page.getByRole('button', { name: 'Approve' })).toHaveAttribute('aria-disabled', 'true');
  const call = await callsOf(first);
  const pending = (await call('GET', `/admin/v1/workspaces/${id}/adjustments`)).adjustments[0];
  await expect(call('POST', `/admin/v1/${pending.name}:approve`, { requestId: `${id}-self` })).rejects.toThrow(/403|another operator/);

  const other = await as(browser, second);
  await other.goto('/operator/refunds');
  await other.getByRole('row', { name: /half of contract 17/ }).click();
  await other.getByRole('button', { name: 'Approve' }).click();
  const question = other.getByRole('dialog').filter({ hasText: 'posted to the ledger immediately' });
  await question.getByRole('button', { name: 'Approve' }).click();
  await confirmed(other, other.getByText('No pending approvals'));
  const posted = tollgate('transactions', '--workspace', id).transactions.filter((one) => /refund/i.test(one.kind) && /half of contract 17/.test(one.memo));
  expect(posted.map((one) => one.amount_usd)).toEqual(['150']);
  await page.context().close();
  await other.context().close();
});

test('operator: a view as support reads, changes nothing, and is in the audit log of the workspace', async ({ browser }) => {
  const page = await as(browser, first);
  await page.goto(where);
  await settled(page);
  await page.getByRole('button', { name: 'View as support' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Reason (visible to the owners of the workspace)').fill('Ticket 4711');
  await dialog.getByRole('button', { name: 'View', exact: true }).click();
  await confirmed(page, page.getByText('You are viewing Acme Research as support. Access is read-only and logged.'));
  await expect(page.locator('h1')).toHaveText('Home');
  await page.getByRole('link', { name: 'API keys', exact: true }).click();
  await expect(page.getByRole('link', { name: 'limited' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Create API key' })).toHaveCount(0);
  await page.getByRole('button', { name: 'End session' }).click();
  await expect(page.getByText('as support. Access is read-only')).toBeHidden();
  const { auditEntries } = await (await callsOf(first))('GET', `/admin/v1/workspaces/${id}/auditEntries?pageSize=200`);
  const text = auditEntries.map((one) => JSON.stringify(one)).filter((one) => one.includes('support'));
  expect(text.some((one) => one.includes('Ticket 4711'))).toBe(true);
  await page.context().close();
});

test('operator: a person of a workspace sees none of these pages', async ({ page, request }) => {
  await page.goto('/operator/workspaces');
  await settled(page);
  await expect(page.getByText('Acme Research')).toHaveCount(0);
  expect((await request.get('/admin/v1/processes')).status()).toBe(403);
  // The same response as for a workspace that does not exist.
  const foreign = await request.get(`/admin/v1/workspaces/${id}/balance`);
  expect(foreign.ok()).toBe(false);
  expect(foreign.status()).toBe((await request.get('/admin/v1/workspaces/nothing-like-this/balance')).status());
});
