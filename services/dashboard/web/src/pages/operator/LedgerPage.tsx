import { i18n } from '@lingui/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { newRequestId } from '@/api/client';
import { idOf } from '@/api/types';
import { POLL, usePermissions } from '@/api/workspace';
import { useSearchState } from '@/app/search';
import { count } from '@/format/money';
import { IconShield } from '@/icons';
import { Button, DataTable, Dialog, DialogForm, EmptyState, Facts, Notice, Page, polling, SidePanel, TextField, Time, useFields, type Column } from '@/ui';
import css from './operator.module.css';
import { useChanged, VerificationState, WorkspaceLink } from './parts';
import { cancelVerification, startVerification, verificationsQuery, type Verification } from './queries';

const LIVE = 1_000;
// The nightly verification gives way to one that a person starts.
const NIGHTLY = 'tollgate-billing';
const running = (one: Verification | undefined) => one?.state === 'LEDGER_VERIFICATION_STATE_RUNNING';

export default function LedgerPage() {
  const may = usePermissions(null);
  const [search, setSearch] = useSearchState((raw) => ({ open: typeof raw.open === 'string' ? raw.open : '' }));
  const [starting, setStarting] = useState(false);
  const live = useInfiniteQuery({
    ...verificationsQuery(),
    ...polling(POLL),
    // Polled each second while a verification runs: its counts show the progress.
    refetchInterval: (query) => (running(query.state.data?.pages[0]?.ledgerVerifications[0]) ? LIVE : POLL),
  });
  const rows = live.data?.pages.flatMap((page) => page.ledgerVerifications);
  const newest = rows?.[0];
  const open = rows?.find((one) => idOf(one.name) === search.open);
  return (
    <Page
      title={i18n.t({ id: 'operator.ledger.title', message: 'Ledger verification' })}
      subtitle={i18n.t({ id: 'operator.ledgerText', message: 'Recomputes every balance, hold, usage record, and sum from the ledger entries. Requests are served as usual meanwhile.' })}
      actions={
        may('LedgerVerificationService/CreateLedgerVerification') && (
          <Button kind="primary" icon={IconShield} disabledReason={running(newest) && newest?.actor !== NIGHTLY ? i18n.t({ id: 'operator.checkRuns', message: 'A verification is running' }) : undefined} onClick={() => setStarting(true)}>
            {i18n.t({ id: 'operator.startCheck', message: 'Verify ledger' })}
          </Button>
        )
      }
    >
      {newest && running(newest) && <Progress verification={newest} />}
      <DataTable<Verification>
        label={i18n.t({ id: 'operator.checks', message: 'Verifications' })}
        what={i18n.t({ id: 'operator.checksWhat', message: 'the verifications' })}
        columns={columns()}
        rows={rows}
        rowKey={(one) => one.name}
        onOpen={(one) => setSearch({ open: idOf(one.name) })}
        openKey={open?.name ?? null}
        error={live.error}
        retry={() => void live.refetch()}
        hasMore={live.hasNextPage}
        loadingMore={live.isFetchingNextPage}
        onMore={() => void live.fetchNextPage()}
        empty={<EmptyState title={i18n.t({ id: 'operator.noChecks', message: 'No verifications yet' })}>{i18n.t({ id: 'operator.noChecksText', message: 'A verification reads the whole ledger and does not block it.' })}</EmptyState>}
      />
      <SidePanel opened={open !== undefined} onClose={() => setSearch({ open: '' })} title={i18n.t({ id: 'operator.check', message: 'Verification' })}>
        {open && <CheckPanel verification={open} />}
      </SidePanel>
      <Dialog opened={starting} onClose={() => setStarting(false)} title={i18n.t({ id: 'operator.startCheck', message: 'Verify ledger' })}>
        {starting && <StartForm onClose={() => setStarting(false)} />}
      </Dialog>
    </Page>
  );
}

function columns(): Column<Verification>[] {
  return [
    { id: 'time', header: i18n.t({ id: 'operator.begun', message: 'Started' }), weight: 1.5, cell: (one) => <Time at={one.createTime} exact /> },
    { id: 'state', header: i18n.t({ id: 'operator.state', message: 'Status' }), weight: 1.3, cell: (one) => <VerificationState state={one.state} /> },
    { id: 'of', header: i18n.t({ id: 'operator.scope', message: 'Scope' }), weight: 1.2, wide: true, cell: (one) => (one.workspace ? <WorkspaceLink name={one.workspace} /> : i18n.t({ id: 'operator.allWorkspaces', message: 'All workspaces' })) },
    { id: 'entries', header: i18n.t({ id: 'operator.entries', message: 'Entries' }), weight: 1, align: 'end', cell: (one) => <span className="num">{count(one.entries)}</span> },
    { id: 'holds', header: i18n.t({ id: 'operator.holds', message: 'Holds' }), weight: 1, align: 'end', wide: true, cell: (one) => <span className="num">{count(one.holds)}</span> },
    { id: 'violations', header: i18n.t({ id: 'operator.violations', message: 'Violations' }), weight: 1, align: 'end', wide: true, cell: (one) => <span className="num">{count(one.violations.length)}</span> },
    { id: 'actor', header: i18n.t({ id: 'operator.by', message: 'By' }), weight: 1.5, wide: true, cell: (one) => one.actor },
  ];
}

function Progress({ verification }: { verification: Verification }) {
  const changed = useChanged();
  return (
    <Notice
      action={
        <Button
          small
          onClick={() => {
            void cancelVerification(verification).then(changed);
          }}
        >
          {i18n.t({ id: 'operator.cancelCheck', message: 'Cancel verification' })}
        </Button>
      }
    >
      <span role="status" className="num">
        {i18n.t({ id: 'operator.progress', message: 'Verification in progress: {entries} entries, {holds} holds, and {records} usage records of {workspaces} workspaces so far.', values: { entries: count(verification.entries), holds: count(verification.holds), records: count(verification.usageRecords), workspaces: count(verification.workspaces) } })}
      </span>
    </Notice>
  );
}

function CheckPanel({ verification }: { verification: Verification }) {
  return (
    <>
      <Facts
        facts={[
          { label: i18n.t({ id: 'operator.state', message: 'Status' }), value: <VerificationState state={verification.state} /> },
          { label: i18n.t({ id: 'operator.scope', message: 'Scope' }), value: verification.workspace ? <WorkspaceLink name={verification.workspace} /> : i18n.t({ id: 'operator.allWorkspaces', message: 'All workspaces' }) },
          { label: i18n.t({ id: 'operator.begun', message: 'Started' }), value: <Time at={verification.createTime} exact /> },
          { label: i18n.t({ id: 'operator.ended', message: 'Ended' }), value: <Time at={verification.endTime} exact /> },
          { label: i18n.t({ id: 'operator.by', message: 'By' }), value: verification.actor },
          { label: i18n.t({ id: 'operator.workspaces.title', message: 'Workspaces' }), value: count(verification.workspaces) },
          { label: i18n.t({ id: 'operator.entries', message: 'Entries' }), value: count(verification.entries) },
          { label: i18n.t({ id: 'operator.holds', message: 'Holds' }), value: count(verification.holds) },
          { label: i18n.t({ id: 'operator.records', message: 'Usage records' }), value: count(verification.usageRecords) },
        ]}
      />
      {verification.violations.length > 0 && (
        <Notice tone="bad">
          <b>{i18n.t({ id: 'operator.violations', message: 'Violations' })}</b>
          <ul className={css.problems}>
            {verification.violations.map((violation, index) => (
              <li key={index}>
                <code>{violation}</code>
              </li>
            ))}
          </ul>
        </Notice>
      )}
    </>
  );
}

function StartForm({ onClose }: { onClose: () => void }) {
  const changed = useChanged();
  const [requestId] = useState(newRequestId);
  const fields = useFields({ workspace: '' }, async ({ workspace }) => {
    await startVerification(requestId, workspace.trim());
    await changed();
    onClose();
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'operator.startCheck', message: 'Verify ledger' })} onCancel={onClose}>
      <TextField label={i18n.t({ id: 'operator.onlyWorkspace', message: 'Workspace ID' })} hint={i18n.t({ id: 'operator.onlyWorkspaceHint', message: 'Leave empty to verify all workspaces.' })} autoFocus mono {...fields.bind('workspace')} />
    </DialogForm>
  );
}
