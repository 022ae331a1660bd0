import { i18n } from '@lingui/core';
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { tableProps } from '@/api/paging';
import { idOf, type Schema } from '@/api/types';
import { membersQuery, usePermissions, workspaceQuery } from '@/api/workspace';
import { useSearchState, useWorkspace } from '@/app/search';
import { isZone, parseRange, resolve, type Range } from '@/format/range';
import { UTC } from '@/format/time';
import { IconShield } from '@/icons';
import { Button, Confirm, DataTable, EmptyState, Filters, HrefButton, Page, RangePicker, SelectField, SidePanel, StateChip, TextField, Time, ZoneProvider, type Column } from '@/ui';
import css from './audit.module.css';
import { EntryPanel } from './EntryPanel';
import { filterText } from './filter';
import { auditQuery, exportHref, verify } from './queries';
import { Verified } from './Verified';
import { ACTIONS, actionText, actorText, subjectText, type AuditEntry } from './words';

interface State extends Range {
  actor: string;
  action: string;
  subject: string;
  zone: string;
  open?: string;
}

const text = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? String(value) : '');

function parse(search: Record<string, unknown>): State {
  return {
    ...parseRange(search, '30d'),
    actor: text(search.actor),
    action: text(search.action),
    subject: text(search.subject),
    zone: isZone(search.zone) ? search.zone : UTC,
    open: text(search.open) || undefined,
  };
}

export default function AuditPage() {
  const workspace = useWorkspace();
  const may = usePermissions(null);
  const [state, set] = useSearchState(parse);
  const [verifying, setVerifying] = useState(false);
  const [verified, setVerified] = useState<{ found: Schema<'VerifyAuditEntriesResponse'>; at: string } | null>(null);
  const { data: here } = useQuery(workspaceQuery(workspace));
  const { data: members } = useQuery(membersQuery(workspace));
  const names = useMemo(() => new Map(members?.members.map((one) => [idOf(one.name), one.displayName || one.email])), [members]);
  const filter = useMemo(() => {
    const { start, end } = resolve({ range: state.range, from: state.from, to: state.to }, state.zone, new Date());
    const past = state.range === 'custom' || state.range === 'last-month';
    return filterText({ actor: state.actor, action: state.action, subject: state.subject, start: start.toISOString(), end: past ? end.toISOString() : '' });
  }, [state.range, state.from, state.to, state.zone, state.actor, state.action, state.subject]);
  const query = useInfiniteQuery({ ...auditQuery(workspace, filter), placeholderData: keepPreviousData });
  const table = tableProps(query, (page) => page.auditEntries);
  const opened = table.rows?.find((one) => one.sequence === state.open);
  const filtered = state.actor !== '' || state.action !== '' || state.subject !== '';
  const clear = () => set({ actor: '', action: '', subject: '' });
  const columns: Column<AuditEntry>[] = [
    { id: 'time', header: i18n.t({ id: 'audit.column.time', message: 'Time' }), weight: 1.5, cell: (one) => <span className={css.wrap}><Time at={one.time} exact /></span> },
    {
      id: 'what',
      header: i18n.t({ id: 'audit.column.what', message: 'Event' }),
      weight: 4,
      cell: (one) => (
        <span className={css.wrap} title={one.action}>
          <strong>{actorText(one.actor, names)}</strong> {actionText(one.action)} <strong>{subjectText(one, names)}</strong> <span className="quiet">{one.detail}</span>
        </span>
      ),
    },
    { id: 'address', header: i18n.t({ id: 'audit.column.address', message: 'IP address' }), weight: 1, wide: true, cell: (one) => one.address || '—' },
  ];
  return (
    <ZoneProvider zone={state.zone}>
      <Page
        title={i18n.t({ id: 'audit.title', message: 'Audit log' })}
        subtitle={i18n.t({ id: 'audit.subtitle', message: 'Changes in this workspace: who made them, when, and from where. Entries form a hash chain and are never changed.' })}
        actions={
          <>
            {may('AuditService/VerifyAuditEntries') && (
              <Button icon={IconShield} onClick={() => setVerifying(true)}>
                {i18n.t({ id: 'audit.verify', message: 'Verify' })}
              </Button>
            )}
            <HrefButton href={exportHref(workspace, filter)} download>
              {i18n.t({ id: 'audit.export', message: 'Export' })}
            </HrefButton>
          </>
        }
      >
        {verified ? <Verified {...verified} /> : !may('AuditService/VerifyAuditEntries') && <p className="quiet"><StateChip tone="quiet">{i18n.t({ id: 'audit.chained', message: 'Hash chain' })}</StateChip> {i18n.t({ id: 'audit.chainedText', message: 'The operator can verify the chain. Each entry shows its hash, and the export includes all hashes.' })}</p>}
        <Filters>
          <RangePicker value={state} onChange={(range) => set({ range: range.range, from: range.from, to: range.to, open: undefined })} zone={state.zone} onZone={(zone) => set({ zone })} reportZone={here?.reportTimeZone || UTC} />
          <SelectField
            label={i18n.t({ id: 'audit.filter.actor', message: 'Actor' })}
            value={state.actor}
            options={[
              { value: '', label: i18n.t({ id: 'audit.filter.anybody', message: 'All actors' }) },
              ...[...names].map(([id, name]) => ({ value: `user:${id}`, label: name })),
              ...(state.actor && !names.has(state.actor.replace('user:', '')) ? [{ value: state.actor, label: actorText(state.actor, names) }] : []),
            ]}
            onChange={(actor) => set({ actor, open: undefined })}
          />
          <SelectField
            label={i18n.t({ id: 'audit.filter.action', message: 'Action' })}
            value={state.action}
            options={[{ value: '', label: i18n.t({ id: 'audit.filter.anything', message: 'All actions' }) }, ...ACTIONS.map((action) => ({ value: action, label: actionText(action) }))]}
            onChange={(action) => set({ action, open: undefined })}
          />
          <SubjectFilter key={state.subject} value={state.subject} onDone={(subject) => set({ subject, open: undefined })} />
        </Filters>
        <DataTable
          label={i18n.t({ id: 'audit.title', message: 'Audit log' })}
          what={i18n.t({ id: 'audit.what', message: 'the audit log' })}
          columns={columns}
          rowKey={(one) => one.sequence}
          onOpen={(one) => set({ open: one.sequence })}
          openKey={state.open}
          empty={
            <EmptyState title={i18n.t({ id: 'audit.none', message: 'No entries in this period' })} action={filtered && <Button onClick={clear}>{i18n.t({ id: 'audit.clear', message: 'Clear filters' })}</Button>}>
              {filtered ? i18n.t({ id: 'audit.noMatch', message: 'No entry in this period matches all filters.' }) : i18n.t({ id: 'audit.noneText', message: 'Changes to API keys, members, billing, and settings appear here.' })}
            </EmptyState>
          }
          {...table}
        />
        <SidePanel opened={opened !== undefined} onClose={() => set({ open: undefined })} title={i18n.t({ id: 'audit.entry', message: 'Entry {number}', values: { number: opened?.sequence ?? '' } })}>
          {opened && <EntryPanel entry={opened} names={names} onActor={() => set({ actor: opened.actor, open: undefined })} onSubject={() => set({ subject: opened.subject, open: undefined })} />}
        </SidePanel>
        <Confirm opened={verifying} onClose={() => setVerifying(false)} title={i18n.t({ id: 'audit.verifyTitle', message: 'Verify audit log' })} verb={i18n.t({ id: 'audit.verify', message: 'Verify' })} act={async () => setVerified({ found: await verify(), at: new Date().toISOString() })}>
          {i18n.t({ id: 'audit.verifyText', message: 'Recomputes the hash of every entry in this installation and compares the hashes with the signed checkpoints and the logs of the services.' })}
        </Confirm>
      </Page>
    </ZoneProvider>
  );
}

// The API compares the whole subject, so the filter applies on Enter.
function SubjectFilter({ value, onDone }: { value: string; onDone: (subject: string) => void }) {
  const [typed, setTyped] = useState(value);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onDone(typed.trim());
      }}
    >
      <TextField label={i18n.t({ id: 'audit.filter.subject', message: 'Subject' })} type="search" placeholder={i18n.t({ id: 'audit.filter.subjectHint', message: 'API key ID, then Enter' })} value={typed} onChange={setTyped} />
    </form>
  );
}
