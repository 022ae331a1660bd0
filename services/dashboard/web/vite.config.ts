import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';
import { licenses } from './scripts/licenses.ts';

// ./dev web sets the build folder; the default is the same.
const outDir = process.env.TOLLGATE_WEB_OUT ?? fileURLToPath(new URL('../../../build/web', import.meta.url));

// Preloads the text font, before the style sheet that names it is parsed.
const preloadFont: Plugin = {
  name: 'preload-font',
  transformIndexHtml: {
    order: 'post',
    handler: (_, { bundle }) => {
      const font = Object.keys(bundle ?? {}).find((name) => /inter-latin-wght-normal-.*\.woff2$/.test(name));
      return font ? [{ tag: 'link', attrs: { rel: 'preload', href: `/${font}`, as: 'font', type: 'font/woff2', crossorigin: '' }, injectTo: 'head' }] : [];
    },
  },
};

const dashboard = `http://127.0.0.1:${process.env.TOLLGATE_DASHBOARD_PORT ?? 8081}`;

export default defineConfig({
  plugins: [react(), preloadFont, licenses(fileURLToPath(new URL('.', import.meta.url)))],
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  build: {
    outDir,
    emptyOutDir: true,
    // The content policy forbids data: addresses.
    assetsInlineLimit: 0,
    manifest: 'manifest.json',
    target: 'es2022',
  },
  // Proxies to `./dev run` with the browser's Host, because changes must come from the same origin.
  server: { proxy: Object.fromEntries(['/admin/', '/session/', '/playground/'].map((path) => [path, { target: dashboard, changeOrigin: false }])) },
  test: { environment: 'node', include: ['src/**/*.test.ts', 'scripts/**/*.test.ts'] },
});
