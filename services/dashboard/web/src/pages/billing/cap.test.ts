import { expect, it } from 'vitest';
import { usedOfCap } from './cap';

it('counts what is held against the cap', () => {
  expect(usedOfCap({ monthSpentUsd: '1.5', monthHeldUsd: '0.25' })).toBe(1_750_000_000n);
  expect(usedOfCap({ monthSpentUsd: '1.5' })).toBe(1_500_000_000n);
});
