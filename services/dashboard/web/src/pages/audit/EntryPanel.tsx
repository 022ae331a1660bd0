import { i18n } from '@lingui/core';
import { Copy, Facts, TextButton, Time } from '@/ui';
import css from './audit.module.css';
import { changesOf, factsOf } from './changes';
import { actionText, actorText, subjectText, type AuditEntry } from './words';

export function EntryPanel({ entry, names, onActor, onSubject }: { entry: AuditEntry; names: Map<string, string>; onActor: () => void; onSubject: () => void }) {
  const changes = changesOf(entry.action, entry.detail);
  const facts = factsOf(entry.detail);
  return (
    <>
      <p>
        <strong>{actorText(entry.actor, names)}</strong> {actionText(entry.action)} <strong>{subjectText(entry, names)}</strong>
      </p>
      {changes.length > 0 && (
        <table className={css.changes}>
          <thead>
            <tr>
              <th scope="col">{i18n.t({ id: 'audit.field', message: 'Field' })}</th>
              <th scope="col">{i18n.t({ id: 'audit.before', message: 'Before' })}</th>
              <th scope="col">{i18n.t({ id: 'audit.after', message: 'After' })}</th>
            </tr>
          </thead>
          <tbody>
            {changes.map((change) => (
              <tr key={change.field}>
                <th scope="row">{change.field || i18n.t({ id: 'audit.role', message: 'role' })}</th>
                <td>{change.before || '—'}</td>
                <td>{change.after || '—'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {facts.length > 0 && <Facts facts={facts} />}
      <Facts
        facts={[
          { label: i18n.t({ id: 'audit.column.time', message: 'Time' }), value: <Time at={entry.time} exact /> },
          { label: i18n.t({ id: 'audit.filter.actor', message: 'Actor' }), value: <><code>{entry.actor}</code> <TextButton onClick={onActor}>{i18n.t({ id: 'audit.onlyThis', message: 'Filter by this' })}</TextButton></> },
          { label: i18n.t({ id: 'audit.column.address', message: 'IP address' }), value: entry.address || '—' },
          { label: i18n.t({ id: 'audit.filter.action', message: 'Action' }), value: <code>{entry.action}</code> },
          { label: i18n.t({ id: 'audit.filter.subject', message: 'Subject' }), value: <><code>{entry.subject || '—'}</code> {entry.subject && <TextButton onClick={onSubject}>{i18n.t({ id: 'audit.onlyThis', message: 'Filter by this' })}</TextButton>}</> },
          ...(changes.length === 0 && facts.length === 0 ? [{ label: i18n.t({ id: 'audit.detail', message: 'Details' }), value: entry.detail || '—' }] : []),
          { label: i18n.t({ id: 'audit.request', message: 'Request ID' }), value: <code>{entry.requestId || '—'}</code> },
          ...(entry.source ? [{ label: i18n.t({ id: 'audit.source', message: 'Source log' }), value: `${entry.source}, ${entry.sourceSequence}` }] : []),
          { label: i18n.t({ id: 'audit.hash', message: 'Hash' }), value: <><code className={css.hash}>{entry.hash}</code> <Copy value={entry.hash} label={i18n.t({ id: 'audit.copyHash', message: 'Copy hash' })} bare /></> },
        ]}
      />
    </>
  );
}
