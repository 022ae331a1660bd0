import { expect, it } from 'vitest';
import { costOf, difference, typedCount } from './price';

it('tokens times prices are exact to the pico-dollar', () => {
  expect(costOf([{ tokens: 12n, usdPerMillion: '0.6' }, { tokens: 95n, usdPerMillion: '2.4' }])).toBe('0.0002352');
  expect(costOf([{ tokens: 1n, usdPerMillion: '0.000001' }])).toBe('0.000000000001');
  expect(costOf([{ tokens: 999_999_999_999_999n, usdPerMillion: '0.600000' }], 1_000_000n)).toBe('599999999999999.40');
  expect(costOf([{ tokens: 0n, usdPerMillion: '3' }])).toBe('0.00');
});

it('an invalid price gives no cost', () => {
  expect(costOf([{ tokens: 1n, usdPerMillion: '' }])).toBeNull();
  expect(costOf([{ tokens: 1n, usdPerMillion: '-1' }])).toBeNull();
});

it('the difference of cost and charge is exact', () => {
  expect(difference('0.000000001999', '0.000000001')).toBe('0.000000000999');
  expect(difference('0.0002352', '0.0002352')).toBe('0.00');
  expect(difference('0.1', '0.2')).toBeNull();
});

it('typed counts are parsed with and without separators', () => {
  expect(typedCount('1,000,000')).toBe(1_000_000n);
  expect(typedCount(' 1.000 ')).toBe(1_000n);
  expect(typedCount('')).toBeNull();
  expect(typedCount('1.5')).toBeNull();
  expect(typedCount('12k')).toBeNull();
});
