import { describe, expect, it } from 'vitest';
import { changesOf, factsOf } from './changes';
import { filterText } from './filter';

describe('the audit log', () => {
  it('shows before and after of each changed field', () => {
    expect(changesOf('workspace.update', 'name: Acme → Acme Research; zone: UTC → Europe/Berlin')).toEqual([
      { field: 'name', before: 'Acme', after: 'Acme Research' },
      { field: 'zone', before: 'UTC', after: 'Europe/Berlin' },
    ]);
    expect(changesOf('member.update', 'developer to admin')).toEqual([{ field: '', before: 'developer', after: 'admin' }]);
    expect(changesOf('key.create', 'name: a to b')).toEqual([]);
  });
  it('takes a detail for facts only when every part of it is one', () => {
    expect(factsOf('expires: never; models: all')).toEqual([{ label: 'expires', value: 'never' }, { label: 'models', value: 'all' }]);
    expect(factsOf('25 USD: demonstration')).toEqual([]);
  });
  it('quotes what was typed, so that a text cannot widen the filter', () => {
    expect(filterText({ actor: 'a" OR "', action: '', subject: '', start: '2026-11-01T00:00:00Z', end: '' })).toBe(
      'actor = "a\\" OR \\"" AND time >= "2026-11-01T00:00:00Z"',
    );
  });
});
