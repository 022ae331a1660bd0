import { readFileSync, statSync } from 'node:fs';
import { expect, test } from './fixture.mjs';

const web = process.env.WEB;
const manifest = JSON.parse(readFileSync(`${web}/manifest.json`, 'utf8'));
const size = (file) => {
  try {
    return statSync(`${web}/${file}.br`).size;
  } catch {
    return statSync(`${web}/${file}`).size;
  }
};

// The files of a chunk and of all that it imports at once.
function filesOf(name, seen = new Set()) {
  const chunk = manifest[name];
  for (const file of [chunk.file, ...(chunk.css ?? [])]) seen.add(file);
  for (const other of chunk.imports ?? []) if (!seen.has(manifest[other].file)) filesOf(other, seen);
  return seen;
}
const sum = (files) => [...files].reduce((total, file) => total + size(file), 0) / 1024;

test('budget: the first page is at most 250 KB, its font included', async ({ page }) => {
  const font = Object.values(manifest).find(({ src }) => src?.endsWith('inter-latin-wght-normal.woff2')).file;
  const first = new Set([...filesOf('index.html'), ...filesOf('src/pages/auth/SignInPage.tsx'), font]);
  const kilobytes = sum(first);
  console.log(`first page: ${kilobytes.toFixed(1)} KB in ${first.size} files`);
  expect(kilobytes).toBeLessThanOrEqual(250);
  // A real browser requests no other files.
  const asked = [];
  page.on('response', (response) => {
    if (response.url().includes('/assets/')) asked.push(new URL(response.url()).pathname.slice(1));
  });
  await page.context().clearCookies();
  await page.goto('/sign-in');
  await page.getByLabel('Email').waitFor();
  await page.waitForFunction(() => document.fonts.status === 'loaded');
  expect(sum(new Set(asked))).toBeLessThanOrEqual(250);
});

test('budget: every other page adds at most 80 KB to the frame', () => {
  const first = filesOf('src/app/Shell.tsx', filesOf('index.html'));
  expect(sum(first)).toBeLessThanOrEqual(220);
  for (const [name, chunk] of Object.entries(manifest)) {
    if (!chunk.isDynamicEntry || !name.startsWith('src/pages/')) continue;
    const more = [...filesOf(name)].filter((file) => !first.has(file));
    expect(sum(more), name).toBeLessThanOrEqual(80);
  }
});
