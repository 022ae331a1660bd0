import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapi, { astToString } from 'openapi-typescript';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../../../', import.meta.url));

it('gen.d.ts is what docs/admin-openapi.yaml says (npm run types writes it)', async () => {
  const written = readFileSync(new URL('./gen.d.ts', import.meta.url), 'utf8');
  const types = astToString(await openapi(new URL(`file://${root}docs/admin-openapi.yaml`)));
  const code = (text: string) => text.slice(text.indexOf('export interface paths'));
  expect(code(written)).toBe(code(types));
});

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
