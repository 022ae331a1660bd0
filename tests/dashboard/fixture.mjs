// Every test's page: fails when the content policy refused something, or a script threw.
import { test as base } from '@playwright/test';

export { expect } from '@playwright/test';

export const test = base.extend({
  page: async ({ page }, use) => {
    const problems = [];
    page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error' && /Content Security Policy|Trusted|Minified React/.test(message.text())) problems.push(message.text());
    });
    await page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => console.error(`Content Security Policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
    });
    await use(page);
    base.expect(problems).toEqual([]);
  },
});

// Waits until the page is complete, with its fonts, and has stopped loading.
export async function settled(page) {
  await page.locator('h1').first().waitFor();
  await page.waitForFunction(() => document.fonts.status === 'loaded');
  await base.expect(page.locator('[role="status"][aria-label="Loading"], [aria-busy="true"]')).toHaveCount(0);
  await page.waitForFunction(() => document.getAnimations().every((animation) => animation.playState !== 'running'));
}
