import { expect, settled, test } from './fixture.mjs';
import { keyId } from './pages.mjs';
import { owner, signInLink, tollgate, workspace } from './tollgate.mjs';

test.use({ storageState: { cookies: [], origins: [] } });

async function signIn(page, password = owner.password) {
  await page.getByLabel('Email').fill(owner.email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

test('session: a wrong password says so, the right one leads to the page that was wanted', async ({ page }) => {
  await page.goto(`/w/${workspace}/keys`);
  await expect(page).toHaveURL(/\/sign-in\?return=/);
  await signIn(page, 'not the password');
  await expect(page.getByRole('alert')).toBeVisible();
  await expect(page.getByLabel('Email')).toHaveValue(owner.email);
  await signIn(page);
  await expect(page).toHaveURL(new RegExp(`/w/${workspace}/keys$`));
  await page.getByRole('button', { name: /^Account of/ }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await expect(page).toHaveURL(/\/sign-in$/);
  await page.goto(`/w/${workspace}/keys`);
  await expect(page).toHaveURL(/\/sign-in/);
});

test('session: a link signs in once, and leaves nothing in the address', async ({ page }) => {
  const person = `link-${Date.now()}@demo.invalid`;
  tollgate('user', 'create', person);
  const path = signInLink(person);
  const token = new URL(path, 'http://x').searchParams.get('token');
  await page.goto(path);
  await expect(page.getByText('This link signs you in once.')).toBeVisible();
  expect(page.url()).not.toContain(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page).not.toHaveURL(/link/);
  await page.context().clearCookies();
  await page.goto(path);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('alert')).toBeVisible();
});

test('session: when it ends in a form, the form is kept and the call goes on', async ({ page }) => {
  await page.goto(`/w/${workspace}/keys`);
  await signIn(page);
  await page.getByRole('button', { name: 'Create API key' }).click();
  await page.getByLabel('Name').fill('kept-name');
  await page.context().clearCookies();
  await page.getByRole('dialog').getByRole('button', { name: 'Create API key' }).click();
  await expect(page.getByRole('heading', { name: 'Your session ended' })).toBeVisible();
  await signIn(page);
  await expect(page.getByRole('heading', { name: 'API key created' })).toBeVisible();
  await page.getByRole('button', { name: 'I saved the key' }).click();
  await expect(page.getByRole('link', { name: 'kept-name' })).toBeVisible();
});

test('session: colours and language are kept', async ({ page }) => {
  await page.goto('/sign-in');
  await signIn(page);
  await expect(page.locator('h1')).toHaveText('Home');
  await settled(page);
  const account = page.getByRole('button', { name: /^(Account of|Konto von)/ });
  await account.click();
  await page.getByRole('menuitem', { name: 'Dark' }).click();
  await expect(page.locator('html')).toHaveAttribute('data-mantine-color-scheme', 'dark');
  await account.click();
  await page.getByRole('menuitem', { name: 'Deutsch' }).click();
  await expect(page.locator('html')).toHaveAttribute('lang', 'de');
  await page.reload();
  await settled(page);
  await expect(page.locator('html')).toHaveAttribute('data-mantine-color-scheme', 'dark');
  await expect(page.locator('h1')).toHaveText('Übersicht');
});

test('session: Ctrl K finds a page', async ({ page }) => {
  await page.goto('/sign-in');
  await signIn(page);
  await expect(page.locator('h1')).toHaveText('Home');
  await settled(page);
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').getByRole('textbox', { name: 'Search' }).fill('API keys');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(page.locator('h1')).toHaveText('API keys');
});

test('session: Ctrl K finds keys by the beginning of their name and of what they look like', async ({ page }) => {
  await page.goto('/sign-in');
  await signIn(page);
  await expect(page.locator('h1')).toHaveText('Home');
  await settled(page);
  const search = page.getByRole('dialog').getByRole('textbox', { name: 'Search' });
  const found = page.getByRole('dialog').getByRole('button', { name: /checkout-bot/ });
  const id = keyId('checkout-bot');
  // A whole secret may be pasted: only its public part leaves the page.
  for (const typed of ['Checkout', `sk-tollgate-${id}${'x'.repeat(49)}`]) {
    await page.keyboard.press('Control+k');
    const asked = page.waitForRequest((request) => request.url().includes('/keys?'));
    await search.fill(typed);
    await expect(found).toBeVisible();
    expect((await asked).url()).not.toContain('xxx');
    await page.screenshot({ path: `${process.env.SHOTS}/palette-key.png`, animations: 'disabled' });
    await found.click();
    await expect(page.locator('h1')).toHaveText('checkout-bot');
  }
});
