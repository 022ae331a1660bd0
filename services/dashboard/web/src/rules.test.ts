// Rules that the compiler cannot check; README.md lists them.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('.', import.meta.url));
const files = (readdirSync(root, { recursive: true }) as string[]).filter((name) => /\.(tsx?|css)$/.test(name) && !/\.test\.ts$|gen\.d\.ts$|\.gen\.css$/.test(name));
const sources = new Map(files.map((name) => [name, readFileSync(root + name, 'utf8')]));

// Returns the matching source lines outside the folders in `except`.
function offenders(pattern: RegExp, except: RegExp, kind = /\.tsx?$/): string[] {
  const found: string[] = [];
  for (const [name, text] of sources) {
    if (!kind.test(name) || except.test(name)) continue;
    text.split('\n').forEach((line, index) => {
      if (pattern.test(line) && !/^\s*(\/\/|\*|\/\*)/.test(line)) found.push(`${name}:${index + 1}: ${line.trim()}`);
    });
  }
  return found;
}

describe('the pages', () => {
  it('use Mantine through ui/ only', () => {
    expect(offenders(/from '@mantine\//, /^(ui|theme)\/|^main\.tsx$|^app\/(Palette|Menus)\.tsx$/)).toEqual([]);
  });
  it('format numbers and times in format/ only', () => {
    expect(offenders(/\bIntl\.|toLocale(Date|Time)?String|toFixed\(/, /^format\//)).toEqual([]);
  });
  it('do not convert amounts to floats', () => {
    expect(offenders(/\bNumber\(|parseFloat\(|\bMath\.\w+\([^)]*[uU]sd/, /^format\//)).toEqual([]);
  });
  it('write no style element and no markup from text', () => {
    expect(offenders(/\b(SimpleGrid|AppShell|ColorSchemeScript)\b|<(Grid|Flex)\b|dangerouslySetInnerHTML|innerHTML|<style|\{\{\s*base:/, /^$/)).toEqual([]);
  });
  it('have colours in the tokens only', () => {
    expect(offenders(/#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsl/, /^theme\/|^app\/Logo\.tsx$|^ui\/BarChart\.tsx$|^api\//, /\.(tsx|css)$/)).toEqual([]);
  });
  it('store only language, colours and the last workspace', () => {
    expect(offenders(/localStorage|sessionStorage|indexedDB|document\.cookie/, /^(format\/locale\.ts|app\/places\.ts|main\.tsx)$/)).toEqual([]);
  });
  it('show only text that can be translated', () => {
    expect(offenders(/>\s*[A-Z][a-z]+( [a-z]+)+[.:]?\s*</, /^$/, /\.tsx$/)).toEqual([]);
  });
});

// Reads a .po file: text by id.
function texts(file: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const match of readFileSync(file, 'utf8').matchAll(/^msgid "(.+)"\nmsgstr ((?:".*"\n?)+)/gm)) {
    found.set(match[1]!, match[2]!.replace(/^"|"$|"\n"/gm, '').replace(/\n$/, ''));
  }
  return found;
}

describe('the texts', () => {
  const catalogs = (readdirSync(root, { recursive: true }) as string[]).filter((name) => name.endsWith('en.po'));
  const calls = [...sources].flatMap(([name, text]) =>
    [...text.matchAll(/i18n\.t\(\{\s*id: '([^']+)',\s*message:\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/g)].map((match) => ({ name, id: match[1]!, message: (match[2] ?? match[3] ?? '').replaceAll("\\'", "'") })),
  );
  it('are all in German, with the same values', () => {
    const missing: string[] = [];
    for (const name of catalogs) {
      const german = texts(root + name.replace(/en\.po$/, 'de.po'));
      for (const [id, english] of texts(root + name)) {
        const values = (text: string) => [...text.matchAll(/\{(\w+)[,}]/g)].map((match) => match[1]).filter((value) => value !== 'one' && value !== 'other').sort().join();
        if (!german.get(id)) missing.push(`${name}: ${id}`);
        else if (values(german.get(id)!) !== values(english)) missing.push(`${name}: ${id}: other values`);
      }
    }
    expect(missing).toEqual([]);
  });
  it('are in the catalogs (npm run texts)', () => {
    const known = new Map(catalogs.flatMap((name) => [...texts(root + name)]));
    const stale = calls.filter(({ id, message }) => known.get(id)?.replaceAll('\\"', '"') !== message).map(({ name, id }) => `${name}: ${id}`);
    expect(stale).toEqual([]);
  });
  it('have one meaning per id', () => {
    const seen = new Map<string, string>();
    const twice = calls.filter(({ id, message }) => seen.has(id) && seen.get(id) !== message ? true : (seen.set(id, message), false));
    expect(twice).toEqual([]);
  });
});
