// Ledger adjustments of one or all workspaces, with the second person's decision.
import { i18n } from '@lingui/core';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { idOf } from '@/api/types';
import { usePerson } from '@/api/session';
import { POLL, usePermissions } from '@/api/workspace';
import { Button, Copy, DataTable, Facts, Money, polling, SidePanel, Time, type Column } from '@/ui';
import css from './operator.module.css';
import { AdjustmentState, adjustmentKindName, ReasonDialog, WorkspaceLink } from './parts';
import { adjustmentsQuery, decide, type Adjustment } from './queries';

export function AdjustmentTable({ workspace, state, open, onOpen, empty }: { workspace: string; state: string; open: string; onOpen: (name: string) => void; empty: React.ReactNode }) {
  const query = useInfiniteQuery({ ...adjustmentsQuery(workspace, state), ...polling(POLL), placeholderData: keepPreviousData });
  const rows = query.data?.pages.flatMap((page) => page.adjustments);
  const shown = rows?.find((one) => one.name === open);
  return (
    <>
      <DataTable<Adjustment>
        label={i18n.t({ id: 'operator.corrections', message: 'Adjustments' })}
        what={i18n.t({ id: 'operator.correctionsWhat', message: 'the adjustments' })}
        columns={columns(workspace === '-')}
        rows={rows}
        rowKey={(one) => one.name}
        onOpen={(one) => onOpen(one.name)}
        openKey={shown?.name ?? null}
        error={query.error}
        retry={() => void query.refetch()}
        busy={query.isPlaceholderData}
        hasMore={query.hasNextPage}
        loadingMore={query.isFetchingNextPage}
        onMore={() => void query.fetchNextPage()}
        empty={empty}
      />
      <SidePanel opened={shown !== undefined} onClose={() => onOpen('')} title={shown ? adjustmentKindName(shown.kind) : ''}>
        {shown && <AdjustmentPanel adjustment={shown} onDone={() => onOpen('')} />}
      </SidePanel>
    </>
  );
}

function columns(all: boolean): Column<Adjustment>[] {
  return [
    { id: 'kind', header: i18n.t({ id: 'operator.kind', message: 'Kind' }), weight: 1, cell: (one) => adjustmentKindName(one.kind) },
    ...(all ? [{ id: 'workspace', header: i18n.t({ id: 'operator.workspace.title', message: 'Workspace' }), weight: 1.1, wide: true, cell: (one: Adjustment) => <WorkspaceLink name={one.name} /> }] : []),
    { id: 'state', header: i18n.t({ id: 'operator.state', message: 'Status' }), weight: 1.2, cell: (one) => <AdjustmentState state={one.state} /> },
    { id: 'reason', header: i18n.t({ id: 'operator.reasonColumn', message: 'Reason' }), weight: 2, wide: true, cell: (one) => one.reason },
    { id: 'time', header: i18n.t({ id: 'operator.asked', message: 'Requested' }), weight: 1.5, wide: true, cell: (one) => <Time at={one.createTime} exact /> },
    { id: 'amount', header: i18n.t({ id: 'operator.amount', message: 'Amount' }), weight: 0.9, align: 'end', cell: (one) => <Money usd={one.amountUsd} /> },
  ];
}

function AdjustmentPanel({ adjustment, onDone }: { adjustment: Adjustment; onDone: () => void }) {
  const may = usePermissions(null);
  const person = usePerson();
  const [act, setAct] = useState<'approve' | 'reject' | null>(null);
  const own = adjustment.actor === person.name.replace('users/', 'user:');
  const pending = adjustment.state === 'ADJUSTMENT_STATE_PENDING_APPROVAL';
  const ownReason = own ? i18n.t({ id: 'operator.ownRequest', message: 'You requested this adjustment. Another operator must decide.' }) : undefined;
  return (
    <>
      <Facts
        facts={[
          { label: i18n.t({ id: 'operator.amount', message: 'Amount' }), value: <Money usd={adjustment.amountUsd} style="exact" /> },
          { label: i18n.t({ id: 'operator.state', message: 'Status' }), value: <AdjustmentState state={adjustment.state} /> },
          { label: i18n.t({ id: 'operator.workspace.title', message: 'Workspace' }), value: <WorkspaceLink name={adjustment.name} /> },
          { label: i18n.t({ id: 'operator.reasonColumn', message: 'Reason' }), value: adjustment.reason },
          { label: i18n.t({ id: 'operator.reference', message: 'Reference' }), value: adjustment.reference || '—' },
          { label: i18n.t({ id: 'operator.askedBy', message: 'Requested by' }), value: adjustment.actor },
          { label: i18n.t({ id: 'operator.asked', message: 'Requested' }), value: <Time at={adjustment.createTime} exact /> },
          { label: i18n.t({ id: 'operator.decidedBy', message: 'Decided by' }), value: adjustment.decidedBy ? <>{adjustment.decidedBy} · <Time at={adjustment.decideTime} exact /></> : '—' },
          { label: i18n.t({ id: 'operator.id', message: 'ID' }), value: <><code>{idOf(adjustment.name)}</code> <Copy bare value={idOf(adjustment.name)} label={i18n.t({ id: 'operator.copyId', message: 'Copy ID' })} /></> },
        ]}
      />
      {pending && may('AdjustmentService/ApproveAdjustment') && (
        <div className={css.row}>
          <Button kind="primary" disabledReason={ownReason} onClick={() => setAct('approve')}>{i18n.t({ id: 'operator.approve', message: 'Approve' })}</Button>
          <Button disabledReason={ownReason} onClick={() => setAct('reject')}>{i18n.t({ id: 'operator.reject', message: 'Reject' })}</Button>
        </div>
      )}
      <ReasonDialog
        opened={act === 'approve'}
        onClose={() => setAct(null)}
        title={i18n.t({ id: 'operator.approve', message: 'Approve' })}
        verb={i18n.t({ id: 'operator.approve', message: 'Approve' })}
        optional
        act={async (reason, requestId) => {
          await decide(adjustment, true, requestId, reason);
          onDone();
        }}
      >
        <p>
          {i18n.t({ id: 'operator.approveText', message: 'This amount is posted to the ledger immediately and cannot be changed later:' })} <Money usd={adjustment.amountUsd} />
        </p>
      </ReasonDialog>
      <ReasonDialog
        opened={act === 'reject'}
        onClose={() => setAct(null)}
        danger
        title={i18n.t({ id: 'operator.reject', message: 'Reject' })}
        verb={i18n.t({ id: 'operator.reject', message: 'Reject' })}
        optional
        act={async (reason, requestId) => {
          await decide(adjustment, false, requestId, reason);
          onDone();
        }}
      >
        <p>{i18n.t({ id: 'operator.rejectText', message: 'No credit is moved. The ledger keeps the adjustment as rejected.' })}</p>
      </ReasonDialog>
    </>
  );
}
