import { i18n } from '@lingui/core';
import type { Schema } from '@/api/types';
import { count } from '@/format/money';
import { Code, Notice, Time } from '@/ui';

// The result of a verification, and how to repeat it on the command line.
export function Verified({ found, at }: { found: Schema<'VerifyAuditEntriesResponse'>; at: string }) {
  const problems = [found.problem, ...found.sources.map((one) => one.problem && `${one.source}: ${one.problem}`)].filter(Boolean);
  if (!found.ok || problems.length > 0) {
    return (
      <Notice tone="bad" alert>
        {i18n.t({ id: 'audit.broken', message: 'The hash chain is broken after entry {number}: {problem}. The export still works.', values: { number: count(found.sequence), problem: problems.join('; ') || '—' } })}
      </Notice>
    );
  }
  return (
    <Notice tone="ok">
      {i18n.t({ id: 'audit.verified', message: 'Verified: {entries, plural, one {# entry} other {# entries}}, no gaps, {checkpoints, plural, one {# signed checkpoint} other {# signed checkpoints}} checked.', values: { entries: parseInt(found.sequence, 10), checkpoints: parseInt(found.checkpoints, 10) } })}{' '}
      <Time at={at} exact />
      <Code label={i18n.t({ id: 'audit.hash', message: 'Hash' })} text={`tollgate audit verify\n${found.hash}`} />
    </Notice>
  );
}
