import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: '.',
  testMatch: '*.test.mjs',
  outputDir: '../results',
  // One Tollgate for all tests; the tests of a file run one after the other.
  fullyParallel: false,
  workers: 2,
  retries: 0,
  forbidOnly: true,
  // The machine may be busy with other work.
  timeout: 240_000,
  expect: { timeout: 60_000 },
  reporter: [['list']],
  globalSetup: './setup.mjs',
  globalTeardown: './teardown.mjs',
  use: {
    baseURL: process.env.TOLLGATE_DASHBOARD,
    storageState: 'state.json',
    locale: 'en-US',
    timezoneId: 'UTC',
    viewport: { width: 1280, height: 800 },
    deviceScaleFactor: 1,
    contextOptions: { reducedMotion: 'reduce' },
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell',
      args: [
        ...(process.getuid() === 0 ? ['--no-sandbox'] : []),
        '--font-render-hinting=none', '--disable-lcd-text', '--force-color-profile=srgb', '--hide-scrollbars', '--disable-gpu', '--disable-dev-shm-usage',
      ],
    },
  },
});
