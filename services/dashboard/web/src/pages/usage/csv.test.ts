import { expect, it } from 'vitest';
import { csvField, csvName, usageCsv } from './csv';
import type { UsageRow } from './queries';

const row = (fields: Partial<UsageRow>) =>
  ({ startTime: null, model: '', key: '', other: false, requests: '0', freeRequests: '0', tokens: null, costUsd: '0.00', ...fields }) as unknown as UsageRow;

it('text that a spreadsheet would run is quoted as text', () => {
  expect(csvField('=cmd()|calc')).toBe('"\'=cmd()|calc"');
  expect(csvField('+1')).toBe('"\'+1"');
  expect(csvField('@SUM(A1)')).toBe('"\'@SUM(A1)"');
  expect(csvField('-2')).toBe('"\'-2"');
  expect(csvField('\t=1')).toBe('"\'\t=1"');
  expect(csvField('a "b", c')).toBe('"a ""b"", c"');
  expect(csvField('plain name')).toBe('plain name');
});

it('has every row, exact amounts and the total of the server', () => {
  const csv = usageCsv(
    [
      row({ startTime: '2026-09-25T00:00:00Z', model: 'a/b', key: 'k1', requests: '3', costUsd: '0.000000001' }),
      row({ startTime: '2026-09-25T00:00:00Z', other: true, requests: '2', costUsd: '12.5' }),
    ],
    row({ requests: '5', costUsd: '12.500000001' }),
    () => '=evil',
  );
  const lines = csv.split('\r\n');
  expect(lines[1]).toBe('2026-09-25T00:00:00Z,a/b,k1,"\'=evil",3,0,0,0,0,0,0,0.000000001');
  expect(lines[2]).toBe('2026-09-25T00:00:00Z,OTHER,,,2,0,0,0,0,0,0,12.5');
  expect(lines[3]).toBe('TOTAL,,,,5,0,0,0,0,0,0,12.500000001');
});

it('the file name has workspace, period and zone', () => {
  expect(csvName('acme', '2026-09-01', '2026-09-30', 'Europe/Berlin')).toBe('tollgate-usage-acme-2026-09-01-2026-09-30-Europe-Berlin.csv');
});
