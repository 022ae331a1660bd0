import { i18n } from '@lingui/core';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schema } from '@/api/types';
import { usePermissions } from '@/api/workspace';
import { useSearchState } from '@/app/search';
import { count } from '@/format/money';
import { IconShield } from '@/icons';
import { Button, Confirm, Copy, DataTable, EmptyState, Facts, Filters, Form, HrefButton, Notice, Page, SidePanel, TextField, Time, useFields, type Column } from '@/ui';
import css from './operator.module.css';
import { WorkspaceLink } from './parts';
import { auditFilterText, auditQuery, verifyAudit, type AuditEntry, type AuditFilter } from './queries';

const text = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? String(value) : '');
type Verified = Schema<'VerifyAuditEntriesResponse'>;

export default function AuditPage() {
  const may = usePermissions(null);
  const [search, setSearch] = useSearchState((raw) => ({ actor: text(raw.actor), action: text(raw.action), subject: text(raw.subject), open: text(raw.open) }));
  const filter: AuditFilter = { actor: search.actor, action: search.action, subject: search.subject };
  const query = useInfiniteQuery({ ...auditQuery(filter), placeholderData: keepPreviousData });
  const rows = query.data?.pages.flatMap((page) => page.auditEntries);
  const open = rows?.find((entry) => entry.sequence === search.open);
  const filtered = auditFilterText(filter);
  const [verifying, setVerifying] = useState(false);
  const [verified, setVerified] = useState<Verified | null>(null);
  return (
    <Page
      title={i18n.t({ id: 'operator.audit.title', message: 'Audit log' })}
      subtitle={i18n.t({ id: 'operator.auditText', message: 'Changes in all workspaces: who made them, when, and from where. Entries form a hash chain.' })}
      actions={
        <>
          {may('AuditService/VerifyAuditEntries') && <Button icon={IconShield} onClick={() => setVerifying(true)}>{i18n.t({ id: 'operator.verifyAudit', message: 'Verify audit log' })}</Button>}
          {may('AuditService/ExportAuditEntries') && <HrefButton download href={`/admin/v1/auditEntries:export${filtered ? `?filter=${encodeURIComponent(filtered)}` : ''}`}>{i18n.t({ id: 'operator.exportAudit', message: 'Export' })}</HrefButton>}
        </>
      }
    >
      {verified && <VerifiedNotice verified={verified} />}
      <AuditFilters key={filtered} filter={filter} onFilter={(next) => setSearch({ ...next, open: '' })} />
      <DataTable<AuditEntry>
        label={i18n.t({ id: 'operator.audit.title', message: 'Audit log' })}
        what={i18n.t({ id: 'operator.auditWhat', message: 'the audit log' })}
        columns={columns()}
        rows={rows}
        rowKey={(entry) => entry.name}
        onOpen={(entry) => setSearch({ open: entry.sequence })}
        openKey={open?.name ?? null}
        error={query.error}
        retry={() => void query.refetch()}
        busy={query.isPlaceholderData}
        hasMore={query.hasNextPage}
        loadingMore={query.isFetchingNextPage}
        onMore={() => void query.fetchNextPage()}
        empty={
          <EmptyState title={i18n.t({ id: 'operator.noEntries', message: 'No matching entries' })} action={filtered && <Button onClick={() => setSearch({ actor: '', action: '', subject: '' })}>{i18n.t({ id: 'operator.clear', message: 'Clear filter' })}</Button>}>
            {i18n.t({ id: 'operator.noEntriesText', message: 'The search covers the whole log and matches exact values.' })}
          </EmptyState>
        }
      />
      <SidePanel opened={open !== undefined} onClose={() => setSearch({ open: '' })} title={open?.action ?? ''}>
        {open && <EntryPanel entry={open} />}
      </SidePanel>
      <Confirm
        opened={verifying}
        onClose={() => setVerifying(false)}
        title={i18n.t({ id: 'operator.verifyAudit', message: 'Verify audit log' })}
        verb={i18n.t({ id: 'operator.verify', message: 'Verify' })}
        act={async () => setVerified(await verifyAudit())}
      >
        <p>{i18n.t({ id: 'operator.verifyText', message: 'Recomputes the hash of every entry and compares the hashes with the signed checkpoints and the logs of the services.' })}</p>
      </Confirm>
    </Page>
  );
}

function columns(): Column<AuditEntry>[] {
  return [
    { id: 'time', header: i18n.t({ id: 'operator.time', message: 'Time' }), weight: 1.6, cell: (entry) => <Time at={entry.time} exact /> },
    { id: 'actor', header: i18n.t({ id: 'operator.actor', message: 'Actor' }), weight: 1.6, wide: true, cell: (entry) => entry.actor },
    { id: 'action', header: i18n.t({ id: 'operator.action', message: 'Action' }), weight: 1.5, cell: (entry) => <code>{entry.action}</code> },
    { id: 'subject', header: i18n.t({ id: 'operator.subject', message: 'Subject' }), weight: 1.5, cell: (entry) => entry.subject || '—' },
    { id: 'workspace', header: i18n.t({ id: 'operator.workspace.title', message: 'Workspace' }), weight: 1, wide: true, cell: (entry) => <WorkspaceLink name={entry.workspace} /> },
    { id: 'address', header: i18n.t({ id: 'operator.from', message: 'IP address' }), weight: 1, wide: true, cell: (entry) => entry.address || '—' },
  ];
}

function AuditFilters({ filter, onFilter }: { filter: AuditFilter; onFilter: (filter: AuditFilter) => void }) {
  const fields = useFields(filter, async ({ actor, action, subject }) => onFilter({ actor: actor.trim(), action: action.trim(), subject: subject.trim() }));
  return (
    <Form fields={fields} actions={null}>
      <Filters>
        <TextField label={i18n.t({ id: 'operator.actor', message: 'Actor' })} placeholder="user:…" mono {...fields.bind('actor')} />
        <TextField label={i18n.t({ id: 'operator.action', message: 'Action' })} placeholder="key.create" mono {...fields.bind('action')} />
        <TextField label={i18n.t({ id: 'operator.subject', message: 'Subject' })} mono {...fields.bind('subject')} />
        <Button type="submit">{i18n.t({ id: 'operator.apply', message: 'Apply' })}</Button>
      </Filters>
    </Form>
  );
}

function EntryPanel({ entry }: { entry: AuditEntry }) {
  return (
    <Facts
      facts={[
        { label: i18n.t({ id: 'operator.time', message: 'Time' }), value: <Time at={entry.time} exact /> },
        { label: i18n.t({ id: 'operator.actor', message: 'Actor' }), value: entry.actor },
        { label: i18n.t({ id: 'operator.from', message: 'IP address' }), value: entry.address || '—' },
        { label: i18n.t({ id: 'operator.action', message: 'Action' }), value: <code>{entry.action}</code> },
        { label: i18n.t({ id: 'operator.subject', message: 'Subject' }), value: entry.subject || '—' },
        { label: i18n.t({ id: 'operator.workspace.title', message: 'Workspace' }), value: <WorkspaceLink name={entry.workspace} /> },
        { label: i18n.t({ id: 'operator.detail', message: 'Details' }), value: entry.detail || '—' },
        { label: i18n.t({ id: 'operator.requestId', message: 'Request ID' }), value: entry.requestId ? <code>{entry.requestId}</code> : '—' },
        { label: i18n.t({ id: 'operator.position', message: 'Sequence number' }), value: <span className="num">{count(entry.sequence)}</span> },
        ...(entry.source ? [{ label: i18n.t({ id: 'operator.source', message: 'Source log' }), value: `${entry.source}, ${count(entry.sourceSequence)}` }] : []),
        { label: i18n.t({ id: 'operator.hash', message: 'Hash' }), value: <><code>{entry.hash.slice(0, 16)}…</code> <Copy bare value={entry.hash} label={i18n.t({ id: 'operator.copyHash', message: 'Copy hash' })} /></> },
      ]}
    />
  );
}

function VerifiedNotice({ verified }: { verified: Verified }) {
  if (verified.ok) {
    return (
      <Notice tone="ok">
        {i18n.t({ id: 'operator.auditOk', message: 'Verified: {entries} entries, no gaps, {checkpoints} signed checkpoints checked.', values: { entries: count(verified.sequence), checkpoints: count(verified.checkpoints) } })} <code>{verified.hash.slice(0, 16)}…</code>{' '}
        <Copy bare value={verified.hash} label={i18n.t({ id: 'operator.copyHash', message: 'Copy hash' })} />
      </Notice>
    );
  }
  return (
    <Notice tone="bad" alert>
      <b>{i18n.t({ id: 'operator.auditBroken', message: 'The hash chain is valid only up to entry {sequence}.', values: { sequence: count(verified.sequence) } })}</b> {verified.problem}
      <ul className={css.problems}>
        {verified.sources.filter((source) => source.problem).map((source) => (
          <li key={source.source}>
            {source.source}: {source.problem}
          </li>
        ))}
      </ul>
    </Notice>
  );
}
