import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../../../', import.meta.url));

it('Unset names the optional fields of the protos', () => {
  const folder = `${root}proto/tollgate/admin/v1/`;
  const names = new Set<string>();
  for (const file of readdirSync(folder)) {
    for (const match of readFileSync(folder + file, 'utf8').matchAll(/^\s*optional \S+ (\w+)/gm)) {
      names.add(match[1]!.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()));
    }
  }
  const source = readFileSync(new URL('./types.ts', import.meta.url), 'utf8');
  const declared = [.../type Unset =([^;]*);/.exec(source)![1]!.matchAll(/'(\w+)'/g)].map((match) => match[1]!);
  expect(declared.sort()).toEqual([...names].sort());
});
