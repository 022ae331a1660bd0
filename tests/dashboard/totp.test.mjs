import { expect, settled, test } from './fixture.mjs';
import { newPerson } from './people.mjs';
import { owner } from './tollgate.mjs';
import { totp } from './totp.mjs';

test('totp: switched on with a real code, wanted at the sign-in, opened with a recovery code once, switched off', async ({ browser }) => {
  const email = `totp-${Date.now()}@demo.invalid`;
  const context = await browser.newContext({ storageState: await newPerson(email, 'Tom Totp') });
  const page = await context.newPage();
  await page.goto('/account/security');
  await settled(page);
  await page.getByRole('button', { name: 'Turn on' }).click();
  const dialog = page.getByRole('dialog');
  const secret = await dialog.getByLabel('Setup key').textContent();
  await expect(dialog.locator('svg').first()).toBeVisible();
  await dialog.getByLabel('Authentication code').fill('000000');
  await dialog.getByRole('button', { name: 'Turn on' }).click();
  await expect(dialog.getByRole('alert').or(dialog.getByText(/code/i).nth(2))).toBeVisible();
  await dialog.getByLabel('Authentication code').fill(totp(secret, -1));
  await dialog.getByRole('button', { name: 'Turn on' }).click();
  await expect(dialog.getByRole('heading', { name: 'Recovery codes' })).toBeVisible();
  const codes = await dialog.locator('li code').allTextContents();
  expect(new Set(codes).size).toBe(codes.length);
  expect(codes.length).toBeGreaterThanOrEqual(8);
  await page.keyboard.press('Escape');
  await expect(dialog).toBeVisible();
  await dialog.getByRole('button', { name: 'I saved the recovery codes' }).click();
  await expect(page.getByRole('button', { name: 'Turn off' })).toBeVisible();
  const kept = await page.evaluate(() => document.documentElement.outerHTML + location.href + JSON.stringify({ ...localStorage, ...sessionStorage }));
  for (const one of [secret, ...codes]) expect(kept).not.toContain(one);

  const signIn = async () => {
    await context.clearCookies();
    await page.goto('/sign-in');
    await page.getByLabel('Email').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(owner.password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByLabel('Authentication code').waitFor();
  };
  const go = () => page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await signIn();
  await page.getByLabel('Authentication code').fill('000000');
  await go();
  await expect(page.getByRole('alert')).toBeVisible();
  await page.getByLabel('Authentication code').fill(totp(secret));
  await go();
  await expect(page).not.toHaveURL(/sign-in/);

  for (const [code, opens] of [[codes[0], true], [codes[0], false], [codes[1], true]]) {
    await signIn();
    await page.getByRole('button', { name: 'Use a recovery code' }).click();
    await page.getByLabel('Recovery code').fill(code);
    await go();
    if (opens) await expect(page).not.toHaveURL(/sign-in/);
    else await expect(page.getByRole('alert')).toBeVisible();
  }
  await page.goto('/account/security');
  await settled(page);
  await page.getByRole('button', { name: 'Turn off' }).click();
  await dialog.getByRole('button', { name: 'Turn off' }).click();
  await expect(page.getByRole('button', { name: 'Turn on' })).toBeVisible();
  await context.close();
});
