// Writes licenses.txt into the build: the licence of each package in it, fonts included.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';

const FONTS = ['@fontsource-variable/inter', '@fontsource/jetbrains-mono'];

export function licenses(root: string): Plugin {
  return {
    name: 'licenses',
    generateBundle(_, bundle) {
      const packages = new Set(FONTS);
      for (const part of Object.values(bundle)) {
        if (part.type !== 'chunk') continue;
        for (const id of part.moduleIds) {
          const match = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id.slice(id.lastIndexOf('node_modules')));
          if (match) packages.add(match[1]!);
        }
      }
      const texts = [...packages].sort().map((name) => {
        const folder = join(root, 'node_modules', name);
        if (!existsSync(folder)) return this.error(`the licence of ${name} was not found`);
        const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string; license: string };
        const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
        return `${name} ${version} (${license})\n\n${file ? readFileSync(join(folder, file), 'utf8').trim() : ''}\n`;
      });
      this.emitFile({ type: 'asset', fileName: 'licenses.txt', source: texts.join(`\n${'-'.repeat(80)}\n\n`) });
    },
  };
}
