import { expect, settled, test } from './fixture.mjs';
import { chat, workspace } from './tollgate.mjs';

const keys = `/w/${workspace}/keys`;

// The first Tab skips the navigation; a key is made with the keyboard alone; its secret is shown once.
test('keys: create, use, rotate, disable and revoke one', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto(keys);
  await settled(page);
  await page.keyboard.press('Tab');
  await expect(page.locator(':focus')).toHaveText('Skip to content');

  const create = page.getByRole('button', { name: 'Create API key' });
  await create.focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByLabel('Name')).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(dialog.getByText('Enter a name.')).toBeVisible();
  await page.keyboard.type('browser-test');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'API key created' })).toBeVisible();
  const secret = await dialog.getByLabel('Secret key').textContent();
  expect(secret).toMatch(/^sk-/);
  await page.keyboard.press('Escape');
  await expect(dialog).toBeVisible();
  await dialog.getByRole('button', { name: 'Copy', exact: true }).click();
  await expect(dialog.getByRole('button', { name: 'Copied' })).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(secret);
  await expect(dialog.getByRole('tabpanel')).toContainText(secret);
  expect(await chat(secret)).toBe(200);
  await page.screenshot({ path: `${process.env.SHOTS}/key-created.png`, animations: 'disabled' });
  await dialog.getByRole('button', { name: 'I saved the key' }).click();
  await expect(dialog).toBeHidden();
  await expect(create).toBeFocused();

  // The secret is gone: not in the page, its address or its storage.
  const kept = await page.evaluate(() => document.documentElement.outerHTML + location.href + JSON.stringify({ ...localStorage, ...sessionStorage }));
  expect(kept).not.toContain(secret);

  const row = page.getByRole('row', { name: /browser-test/ });
  await expect(row).toContainText('Active');
  const menu = async (item) => {
    await page.getByRole('button', { name: 'Actions for browser-test' }).first().click();
    await page.getByRole('menuitem', { name: item }).click();
  };

  // Disabling does not ask for confirmation, since it can be undone.
  await menu('Disable');
  await expect(row).toContainText('Disabled');
  expect(await chat(secret)).toBe(403);
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(row).toContainText('Active');
  expect(await chat(secret)).toBe(200);

  await page.goto(`${keys}?query=browser-test`);
  await settled(page);
  await menu('Rotate');
  await dialog.getByRole('button', { name: 'Rotate key' }).click();
  const next = await dialog.getByLabel('Secret key').textContent();
  expect(next).not.toBe(secret);
  expect(await chat(next)).toBe(200);
  expect(await chat(secret)).toBe(200);
  await dialog.getByRole('button', { name: 'I saved the key' }).click();
  await expect(page.getByRole('row', { name: /browser-test/ })).toHaveCount(2);

  // Revoking is final, so the name must be typed, and the focus starts on Cancel.
  await menu('Revoke');
  await expect(dialog.getByRole('button', { name: 'Cancel' })).toBeFocused();
  const revoke = dialog.getByRole('button', { name: 'Revoke key' });
  await revoke.click({ force: true });
  await expect(dialog).toBeVisible();
  await dialog.getByLabel('Type browser-test to confirm').fill('browser-test');
  await page.screenshot({ path: `${process.env.SHOTS}/key-revoke.png`, animations: 'disabled' });
  await revoke.click();
  await expect(dialog).toBeHidden();
  await expect(page.getByRole('row', { name: /browser-test.*Revoked/ })).toHaveCount(1);
  await expect.poll(() => chat(next)).toBe(401);
});

test('keys: an error of the server stands next to its field, and the text is kept', async ({ page }) => {
  await page.goto(`${keys}?create=true`);
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('bad-address');
  await dialog.getByRole('button', { name: 'More options' }).click();
  await dialog.getByLabel('Allowed IP addresses').fill('nowhere');
  await page.keyboard.press('Enter');
  await dialog.getByRole('button', { name: 'Create API key' }).click();
  await expect(dialog.getByText(/address/i).nth(1)).toBeVisible();
  await expect(dialog.getByLabel('Name')).toHaveValue('bad-address');
  await expect(page.getByRole('heading', { name: 'API key created' })).toHaveCount(0);
});

test('keys: rows are reached with J and K, and the list asks at most three times', async ({ page }) => {
  const calls = [];
  page.on('request', (request) => {
    if (request.url().includes('/keys')) calls.push(request.url());
  });
  await page.goto(keys);
  await settled(page);
  expect(calls.filter((url) => url.includes('/admin/v1/')).length).toBeLessThanOrEqual(3);
  await page.locator('[data-row-link]').first().focus();
  const rowOf = () => page.locator(':focus').getAttribute('href');
  const first = await rowOf();
  await page.keyboard.press('j');
  expect(await rowOf()).not.toBe(first);
  await page.keyboard.press('k');
  expect(await rowOf()).toBe(first);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`${first}$`));
  await expect(page.locator('h1')).toBeFocused();
});

test('keys: hostile names are text', async ({ page }) => {
  const { tollgate } = await import('./tollgate.mjs');
  for (const name of ['<img src=x onerror=alert(1)>', '"><script>alert(1)</script>', '%00&lt;b&gt;.txt', '=cmd()']) {
    tollgate('key', 'create', '--workspace', workspace, '--name', name);
    await page.goto(`${keys}?query=${encodeURIComponent(name)}`);
    await expect(page.getByRole('link', { name })).toBeVisible();
  }
});
