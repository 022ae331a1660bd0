// The Limits page shows the limits and their use in the last hour: as many requests as were made, as many refusals as
// callers got, as many tokens as the ledger booked.
import { expect, settled, test } from './fixture.mjs';
import { callsOf, newPerson } from './people.mjs';
import { chat, demo, tollgate } from './tollgate.mjs';

const id = `hour-${Date.now().toString(36)}`;
const model = demo.models[0];
const got = { 200: 0, 429: 0 };
let member, key;

test.describe.configure({ mode: 'serial' });
test.beforeAll(async () => {
  tollgate('workspace', 'create', 'Hour', '--id', id);
  tollgate('workspace', 'open', id);
  tollgate('credit', 'add', '--workspace', id, '5', '--granted', '--reason', 'granted');
  const operate = await callsOf('operator.json');
  await operate('PATCH', `/admin/v1/workspaces/${id}/limits?requestId=${id}`, {
    workspaceLimits: { requestsPerMinute: '1000', concurrentRequests: '50' },
    modelLimits: { [model]: { tokensPerMinute: '1000000' } },
  });
  const invited = await operate('POST', `/admin/v1/workspaces/${id}/invitations?requestId=${id}`, { email: `${id}@demo.invalid`, role: 'owner' });
  member = await newPerson(`${id}@demo.invalid`, 'Lina Limits');
  await (await callsOf(member))('POST', '/admin/v1/invitations:accept', { token: new URL(invited.acceptPath, 'http://x').searchParams.get('token') });
  const made = await (await callsOf(member))('POST', `/admin/v1/workspaces/${id}/keys?requestId=${id}`, { displayName: 'limited', limits: { requestsPerMinute: '3' } });
  key = made.key.name.split('/').at(-1);
  tollgate('key', 'create', '--workspace', id, '--name', 'free');
  for (let call = 0; call < 40 && (got[200] < 3 || got[429] < 2); call += 1) {
    const status = await chat(made.secret, model, `Count to ${call}.`);
    got[status] += 1;
    if (status === 429 && got[200] < 3) await new Promise((next) => setTimeout(next, 1000));
  }
  expect(got[200]).toBeGreaterThanOrEqual(3);
  expect(got[429]).toBeGreaterThanOrEqual(2);
  await expect.poll(() => tollgate('balance', id).open_holds).toBe(0);
});
test.use({ storageState: async ({}, use) => use(member) });

test('limits: the last hour of the workspace and its models, to the token', async ({ page }) => {
  const calls = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith(`/admin/v1/workspaces/${id}/`)) calls.push(pathname);
  });
  await page.goto(`/w/${id}/limits`);
  const table = page.getByRole('table', { name: 'Workspace and models' });
  await settled(page);
  const requests = table.getByRole('row', { name: /Requests per minute/ });
  await expect(requests).toContainText('of 1,000');
  await expect(requests).toContainText(`${got[200]} used, peak `);
  await expect(requests.locator('td').nth(3)).toHaveText('0');
  await expect(requests.getByRole('img')).toHaveAttribute('aria-label', /^Use in each minute of the last hour\. Peak: \d of 1,000 at .*\. Refused: 0\.$/);
  await expect(table.getByRole('row', { name: /Concurrent requests/ })).toContainText('peak 1');
  const since = new Date(Date.now() - 3_600_000).toISOString();
  const [used] = tollgate('usage', id, '--interval', 'none', '--since', since, '--group-by', 'model').usage.filter((one) => one.model === model);
  const tokens = (used.prompt_tokens + used.completion_tokens).toLocaleString('en-US');
  await expect(table.getByRole('row', { name: new RegExp(`Tokens per minute.*${model}`) })).toContainText(`${tokens} used, peak `);
  expect(new Set(calls.filter((path) => /limit|keys/.test(path))).size).toBeLessThanOrEqual(3);
});

test('limits: the last hour of a key, refusals included', async ({ page }) => {
  await page.goto(`/w/${id}/limits`);
  await settled(page);
  const row = page.getByRole('table', { name: 'API keys' }).getByRole('row', { name: /^limited/ });
  await expect(row.locator('td').nth(1)).toContainText('3');
  await expect(row.locator('td').nth(1)).toContainText(`${got[429]} refused`);
  await expect(page.getByRole('table', { name: 'API keys' }).getByRole('row', { name: /^free/ }).locator('td').nth(1)).toHaveText('None');
  await row.getByText('limited').click();
  const panel = page.getByRole('dialog', { name: 'limited' });
  await expect(panel).toContainText(`${got[200]} used, peak 3`);
  await expect(panel).toContainText(`${got[429]} requests were refused in the last hour.`);
  await expect(page).toHaveURL(new RegExp(`key=${key}`));
  await settled(page);
  await page.screenshot({ path: `${process.env.SHOTS}/limits-key.png`, animations: 'disabled' });
});
