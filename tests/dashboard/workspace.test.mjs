import { expect, settled, test } from './fixture.mjs';
import { owner, session, tollgate, workspace } from './tollgate.mjs';

const w = `/w/${workspace}`;

// No part of a secret is left in the page, its address or its storage.
async function gone(page, secret) {
  const kept = await page.evaluate(() => document.documentElement.outerHTML + location.href + JSON.stringify({ ...localStorage, ...sessionStorage }));
  expect(kept).not.toContain(secret);
}

test('credit: a request for a transfer, confirmed, is in the balance to the last digit', async ({ page, request }) => {
  await page.goto(`${w}/billing`);
  await settled(page);
  await page.getByRole('button', { name: 'Add credit' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Amount', { exact: true }).fill('12,5');
  await dialog.getByRole('button', { name: 'Add credit' }).click();
  await expect(dialog.getByText('Enter an amount in USD')).toBeVisible();
  await dialog.getByLabel('Amount', { exact: true }).fill('37.25');
  await dialog.getByRole('button', { name: 'Add credit' }).click();
  const reference = await dialog.getByLabel('Transfer reference').textContent();
  await dialog.getByRole('button', { name: 'Done' }).click();
  const row = page.getByRole('table', { name: 'Payments' }).getByRole('row', { name: /\$37\.25/ });
  await expect(row).toContainText('Awaiting transfer');

  tollgate('payment', 'confirm', '--workspace', workspace, reference);
  await page.reload();
  await expect(row).toContainText('Paid');
  const balance = await (await request.get(`/admin/v1/workspaces/${workspace}/balance`)).json();
  const sum = page.getByRole('table').filter({ hasText: 'Held for running requests' });
  await expect(sum.getByRole('row', { name: /^Paid/ }).locator('data')).toHaveAttribute('value', balance.paidUsd);
  await expect(sum.getByRole('row', { name: /^Available/ }).locator('data')).toHaveAttribute('value', balance.availableUsd);
  await page.goto(`${w}/billing/transactions?kind=topup`);
  await expect(page.locator('tbody tr').first().locator('data').last()).toHaveAttribute('value', balance.availableUsd);
});

test('members: an invitation, its link shown once, accepted, role changed, removed; the last owner stays', async ({ page }) => {
  await page.goto(`${w}/members`);
  await settled(page);
  await page.getByRole('button', { name: 'Invite member' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Email').fill('guest@demo.invalid');
  await dialog.getByRole('button', { name: 'Invite member' }).click();
  const link = await dialog.getByLabel('Invitation link').textContent();
  await page.keyboard.press('Escape');
  await expect(dialog).toBeVisible();
  await dialog.getByRole('button', { name: 'Done' }).click();
  await expect(page.getByRole('row', { name: /guest@demo\.invalid/ })).toBeVisible();
  const token = /token=([^&]+)$/.exec(link)[1];
  await gone(page, token);
  await session('invitation', { token, display_name: 'Grace Guest', password: owner.password });

  await page.goto(`${w}/members?query=Grace`);
  const row = page.getByRole('row', { name: /Grace Guest/ });
  await expect(row).toContainText('Developer');
  const menu = async (name, item) => {
    await page.getByRole('button', { name: `Actions for ${name}` }).click();
    await page.getByRole('menuitem', { name: item }).click();
  };
  await menu('Grace Guest', 'Change role');
  await dialog.getByRole('combobox', { name: 'Role' }).or(dialog.getByRole('textbox', { name: 'Role' })).click();
  await page.getByRole('option', { name: 'Viewer' }).click();
  await dialog.getByRole('button', { name: 'Change role' }).click();
  await expect(row).toContainText('Viewer');
  await menu('Grace Guest', 'Remove member');
  await dialog.getByLabel('Type Grace Guest to confirm').fill('Grace Guest');
  await dialog.getByRole('button', { name: 'Remove member' }).click();
  await expect(page.getByText('No members match “Grace”')).toBeVisible();

  await page.goto(`${w}/members`);
  await settled(page);
  await menu('Demonstration owner', 'Leave workspace');
  await dialog.getByLabel(`Type ${workspace} to confirm`).fill(workspace);
  await dialog.getByRole('button', { name: 'Leave workspace' }).click();
  await expect(dialog.getByRole('alert')).toContainText('owner');
  await dialog.getByRole('button', { name: 'Cancel' }).click();

  // Each of these is a sentence of the audit log, with before and after.
  await page.goto(`${w}/audit?action=member.update`);
  await page.locator('tbody tr').first().click();
  await expect(dialog.getByRole('row', { name: 'role developer viewer' })).toBeVisible();
});

test('settings: a workspace with credit is not closed, and the page says why', async ({ page }) => {
  await page.goto(`${w}/settings`);
  await settled(page);
  await page.getByRole('button', { name: 'Close workspace' }).click();
  const dialog = page.getByRole('dialog').filter({ hasText: 'Close workspace' });
  await dialog.getByLabel('Type Demonstration to confirm').fill('Demonstration');
  await dialog.getByRole('button', { name: 'Close workspace' }).click();
  const again = page.getByRole('dialog').filter({ hasText: 'Confirm your identity' });
  await expect(again.or(dialog.getByRole('alert'))).toBeVisible();
  if (await again.isVisible()) {
    await again.getByLabel('Password', { exact: true }).fill(owner.password);
    await again.getByRole('button', { name: 'Confirm' }).click();
  }
  await expect(dialog.getByRole('alert')).toContainText('a balance of exactly zero');
});
