// A view makes at most three calls for its data, besides the calls of the frame on every page.
import { expect, settled, test } from './fixture.mjs';
import { workspace } from './tollgate.mjs';

const frame = new Set([`/admin/v1/workspaces/${workspace}`, '/admin/v1/workspaces', `/admin/v1/workspaces/${workspace}/balance`, '/admin/v1/users/me', '/admin/v1/users/me:permissions']);

for (const view of ['', '/usage', '/usage?by=key', '/requests', '/keys', '/limits']) {
  test(`calls: ${view || 'home'} makes at most three`, async ({ page }) => {
    const calls = [];
    page.on('request', (request) => {
      const { pathname } = new URL(request.url());
      if (pathname.startsWith('/admin/v1/') && !frame.has(pathname)) calls.push(request.url());
    });
    await page.goto(`/w/${workspace}${view}`);
    await expect.poll(() => calls.length, { timeout: 30_000 }).toBeGreaterThan(0);
    await settled(page);
    await page.waitForLoadState('networkidle');
    expect(calls.length, calls.join('\n')).toBeLessThanOrEqual(3);
  });
}

test('calls: the models and keys to filter by come when one looks at the fields', async ({ page }) => {
  await page.goto(`/w/${workspace}/usage`);
  await settled(page);
  await page.getByRole('combobox', { name: 'Model' }).or(page.getByLabel('Model', { exact: true })).first().click();
  await expect(page.getByRole('option', { name: 'demo/sim-large' })).toBeVisible();
  await page.keyboard.press('Escape');
  await page.getByLabel('API key', { exact: true }).first().click();
  await page.getByRole('option', { name: 'checkout-bot' }).click();
  await expect(page).toHaveURL(/key=/);
  await expect(page.getByRole('button', { name: 'Remove filter API key: checkout-bot' })).toBeVisible();
});
