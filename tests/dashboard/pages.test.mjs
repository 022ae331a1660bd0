import AxeBuilder from '@axe-core/playwright';
import { expect, settled, test } from './fixture.mjs';
import { pages } from './pages.mjs';

const WCAG = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
// 320 px: as at 400 % zoom.
const WIDTHS = [390, 768, 1280, 320];

// Each page by itself: the two workers share them.
test.describe.configure({ mode: 'parallel' });

async function open(page, one) {
  await page.goto(one.path());
  await expect(page.getByText(one.shown).first()).toBeVisible();
  await settled(page);
}

const literal = (title) => title.source ?? title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

// Elements whose text is cut without an ellipsis, and whether the page scrolls sideways.
function misfits() {
  const found = [];
  if (document.documentElement.scrollWidth > window.innerWidth) {
    const wide = [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > window.innerWidth);
    found.push(`sideways: ${document.documentElement.scrollWidth}`, ...wide.map((one) => one.outerHTML.slice(0, 120)));
  }
  for (const element of document.querySelectorAll('h1, h2, td, th, button, a, dd, p, label')) {
    const style = getComputedStyle(element);
    const cut = style.overflowX !== 'visible' && style.textOverflow !== 'ellipsis' && element.scrollWidth > element.clientWidth + 1;
    if (cut && element.clientWidth > 1) found.push(`${element.tagName} ${element.textContent.slice(0, 40)}`);
  }
  return found;
}

for (const one of pages) {
  test.describe(one.name, () => {
    if (one.signedOut) test.use({ storageState: { cookies: [], origins: [] } });
    if (one.operator) test.use({ storageState: 'operator.json' });
    for (const scheme of ['light', 'dark']) {
      test(`${one.name}, ${scheme}: accessible, in three widths`, async ({ page }) => {
        await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
        // Loaded once, on a phone; then the window grows and shrinks.
        for (const width of WIDTHS) {
          await page.setViewportSize({ width, height: width < 768 ? 844 : 800 });
          if (width === WIDTHS[0]) await open(page, one);
          await settled(page);
          // The layout may need a moment to react to the new width.
          await expect.poll(() => page.evaluate(misfits), `${width} px`).toEqual([]);
          if (width > 320) await page.screenshot({ path: `${process.env.SHOTS}/${one.name}-${scheme}-${width}.png`, animations: 'disabled', caret: 'hide' });
        }
        await page.setViewportSize({ width: 1280, height: 800 });
        await expect(page).toHaveTitle(new RegExp(`^${literal(one.title)} · .*Tollgate$`));
        await expect(page.locator('h1')).toHaveCount(1);
        // Mantine's dialogs have a <header>: two rules of good practice, not of WCAG, which are not in these tags.
        const { violations } = await new AxeBuilder({ page }).withTags(WCAG).analyze();
        expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`)).toEqual([]);
      });
    }
    test(`${one.name}: in German, and when colours are forced`, async ({ page }) => {
      await page.addInitScript(() => localStorage.setItem('tollgate-language', 'de'));
      await page.goto(one.path());
      await settled(page);
      await expect(page.locator('html')).toHaveAttribute('lang', 'de');
      expect(await page.evaluate(misfits)).toEqual([]);
      await page.screenshot({ path: `${process.env.SHOTS}/${one.name}-german.png`, animations: 'disabled', caret: 'hide' });
      await page.emulateMedia({ forcedColors: 'active' });
      await page.screenshot({ path: `${process.env.SHOTS}/${one.name}-forced.png`, animations: 'disabled', caret: 'hide' });
    });
  });
}
