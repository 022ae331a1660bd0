import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { idOf } from '@/api/types';
import { balanceQuery, POLL, usePermissions, workspaceQuery } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useParam, useSearchState } from '@/app/search';
import { nanos } from '@/format/money';
import { ActionMenu, Button, Card, Copy, EmptyState, ErrorState, Facts, LinkButton, Money, Notice, Page, polling, RowSkeletons, Segments, Tile, Tiles, Time, UsedBar, type MenuAction } from '@/ui';
import { AdjustmentTable } from './Adjustments';
import { LimitsCard } from './LimitsCard';
import { ReasonDialog } from './parts';
import { AdjustmentDialog, GrantDialog, GrantTable } from './money';
import { setFrozen } from './queries';
import { SupportCard, SupportDialog } from './SupportCard';
import { WorkspaceState } from './WorkspacesPage';

const TABS = ['corrections', 'grants', 'limits', 'support'] as const;
type Tab = (typeof TABS)[number];

export default function WorkspacePage() {
  const workspace = useParam('workspace');
  const may = usePermissions(null);
  const [search, setSearch] = useSearchState((raw) => ({ tab: TABS.find((tab) => tab === raw.tab) ?? ('corrections' as Tab), open: typeof raw.open === 'string' ? raw.open : '' }));
  const [act, setAct] = useState<'grant' | 'correct' | 'freeze' | 'unfreeze' | 'support' | null>(null);
  const details = useQuery(workspaceQuery(workspace));
  const balance = useQuery({ ...balanceQuery(workspace), ...polling(POLL) });
  const frozen = balance.data !== undefined && balance.data.frozen !== 'FREEZE_REASON_UNSPECIFIED';
  const close = () => setAct(null);
  const menu: MenuAction[] = [];
  if (may('AdjustmentService/CreateAdjustment')) menu.push({ label: i18n.t({ id: 'operator.correctMenu', message: 'Create adjustment…' }), onClick: () => setAct('correct') });
  if (may('LedgerService/FreezeWorkspace')) menu.push(frozen ? { label: i18n.t({ id: 'operator.unfreezeMenu', message: 'Unfreeze…' }), onClick: () => setAct('unfreeze') } : { label: i18n.t({ id: 'operator.freezeMenu', message: 'Freeze…' }), danger: true, onClick: () => setAct('freeze') });
  return (
    <Page
      title={details.data?.displayName || workspace}
      back={{ to: paths.operatorWorkspaces, label: i18n.t({ id: 'operator.workspaces.title', message: 'Workspaces' }) }}
      actions={
        <>
          {may('SupportSessionService/CreateSupportSession') && <Button onClick={() => setAct('support')}>{i18n.t({ id: 'operator.viewAsSupport', message: 'View as support' })}</Button>}
          {may('AdjustmentService/CreateCreditGrant') && <Button kind="primary" onClick={() => setAct('grant')}>{i18n.t({ id: 'operator.grant', message: 'Grant credit' })}</Button>}
          {menu.length > 0 && <ActionMenu label={i18n.t({ id: 'operator.actions', message: 'Actions' })} actions={menu} target={<Button>{i18n.t({ id: 'operator.actions', message: 'Actions' })}</Button>} />}
        </>
      }
    >
      {frozen && <FrozenNotice reason={balance.data.frozen} />}
      {!details.data && details.error && <Card flush><ErrorState error={details.error} what={i18n.t({ id: 'operator.workspaceWhat', message: 'the workspace' })} retry={() => void details.refetch()} /></Card>}
      <Money3 workspace={workspace} />
      <Card title={i18n.t({ id: 'operator.workspace.title', message: 'Workspace' })} actions={<LinkButton small to={paths.operatorAudit} search={{ subject: workspace }}>{i18n.t({ id: 'operator.itsAudit', message: 'View audit log' })}</LinkButton>}>
        {!details.data && !details.error && <RowSkeletons rows={3} />}
        {details.data && (
          <Facts
            facts={[
              { label: i18n.t({ id: 'operator.state', message: 'Status' }), value: <WorkspaceState workspace={details.data} /> },
              { label: i18n.t({ id: 'operator.id', message: 'ID' }), value: <><code>{idOf(details.data.name)}</code> <Copy bare value={idOf(details.data.name)} label={i18n.t({ id: 'operator.copyId', message: 'Copy ID' })} /></> },
              { label: i18n.t({ id: 'operator.zone', message: 'Report time zone' }), value: details.data.reportTimeZone },
              { label: i18n.t({ id: 'operator.created', message: 'Created' }), value: <Time at={details.data.createTime} exact /> },
              ...(details.data.closeTime ? [{ label: i18n.t({ id: 'operator.closes', message: 'Closes on' }), value: <Time at={details.data.closeTime} exact /> }] : []),
            ]}
          />
        )}
      </Card>
      <Segments
        label={i18n.t({ id: 'operator.parts', message: 'Sections' })}
        value={search.tab}
        options={[
          { value: 'corrections', label: i18n.t({ id: 'operator.corrections', message: 'Adjustments' }) },
          { value: 'grants', label: i18n.t({ id: 'operator.grants', message: 'Credit grants' }) },
          { value: 'limits', label: i18n.t({ id: 'operator.limits', message: 'Limits' }) },
          { value: 'support', label: i18n.t({ id: 'operator.support', message: 'Support' }) },
        ]}
        onChange={(tab) => setSearch({ tab, open: '' })}
      />
      {search.tab === 'corrections' && <AdjustmentTable workspace={workspace} state="" open={search.open} onOpen={(open) => setSearch({ open })} empty={<EmptyState title={i18n.t({ id: 'operator.noCorrections', message: 'No adjustments yet' })} />} />}
      {search.tab === 'grants' && <GrantTable workspace={workspace} />}
      {search.tab === 'limits' && <LimitsCard workspace={workspace} />}
      {search.tab === 'support' && <SupportCard workspace={workspace} />}
      <GrantDialog workspace={workspace} opened={act === 'grant'} onClose={close} />
      <AdjustmentDialog workspace={workspace} opened={act === 'correct'} onClose={close} />
      <SupportDialog workspace={workspace} opened={act === 'support'} onClose={close} />
      <ReasonDialog
        opened={act === 'freeze'}
        onClose={close}
        danger
        title={i18n.t({ id: 'operator.freezeTitle', message: 'Freeze {workspace}', values: { workspace } })}
        verb={i18n.t({ id: 'operator.freeze', message: 'Freeze workspace' })}
        act={(reason, requestId) => setFrozen(workspace, true, requestId, reason)}
      >
        <p>{i18n.t({ id: 'operator.freezeText', message: 'New requests fail with 402 insufficient_credits until the workspace is unfrozen. Running requests complete and are charged.' })}</p>
      </ReasonDialog>
      <ReasonDialog
        opened={act === 'unfreeze'}
        onClose={close}
        title={i18n.t({ id: 'operator.unfreezeTitle', message: 'Unfreeze {workspace}', values: { workspace } })}
        verb={i18n.t({ id: 'operator.unfreeze', message: 'Unfreeze workspace' })}
        act={(reason, requestId) => setFrozen(workspace, false, requestId, reason)}
      >
        <p>{i18n.t({ id: 'operator.unfreezeText', message: 'The workspace can spend its credit again immediately.' })}</p>
      </ReasonDialog>
    </Page>
  );
}

function FrozenNotice({ reason }: { reason: string }) {
  const why =
    reason === 'FREEZE_REASON_DISPUTE'
      ? i18n.t({ id: 'operator.frozenDispute', message: 'A chargeback exceeded its credit.' })
      : reason === 'FREEZE_REASON_FAILED_CHECK'
        ? i18n.t({ id: 'operator.frozenCheck', message: 'Its ledger entries failed a check. Verify the ledger before you unfreeze the workspace.' })
        : i18n.t({ id: 'operator.frozenOperator', message: 'An operator froze it.' });
  return (
    <Notice tone="bad">
      <b>{i18n.t({ id: 'operator.frozen', message: 'This workspace is frozen. New requests are refused.' })}</b> {why}
    </Notice>
  );
}

function Money3({ workspace }: { workspace: string }) {
  const balance = useQuery({ ...balanceQuery(workspace), ...polling(POLL) });
  const data = balance.data;
  const spent = nanos(data?.monthSpentUsd);
  const cap = nanos(data?.capUsd);
  const common = { loading: balance.isPending, error: balance.isLoadingError && balance.error, retry: () => void balance.refetch() };
  return (
    <Tiles>
      <Tile {...common} label={i18n.t({ id: 'operator.available', message: 'Available credit' })} figure={<Money usd={data?.availableUsd} style="available" />}>
        {i18n.t({ id: 'operator.paid', message: 'Paid' })} <Money usd={data?.paidUsd} /> · {i18n.t({ id: 'operator.granted', message: 'Granted' })} <Money usd={data?.grantedUsd} />
      </Tile>
      <Tile
        {...common}
        label={i18n.t({ id: 'operator.monthSpent', message: 'Spent this month' })}
        figure={<Money usd={data?.monthSpentUsd} />}
        bar={spent !== null && cap !== null && <UsedBar used={spent} limit={cap} label={i18n.t({ id: 'operator.capUsed', message: 'Monthly cap used' })} />}
      >
        {data?.capUsd ? <>{i18n.t({ id: 'operator.ofCap', message: 'Monthly cap' })} <Money usd={data.capUsd} /></> : i18n.t({ id: 'operator.noCap', message: 'No monthly cap' })}
      </Tile>
      <Tile {...common} label={i18n.t({ id: 'operator.held', message: 'Held' })} figure={<Money usd={data?.heldUsd} />}>
        {i18n.t({ id: 'operator.heldFor', message: '{count, plural, one {for # running request} other {for # running requests}}', values: { count: parseInt(data?.openHolds ?? '0', 10) } })}
      </Tile>
      {nanos(data?.receivableUsd) !== 0n && (
        <Tile {...common} label={i18n.t({ id: 'operator.owed', message: 'Amount owed' })} figure={<Money usd={data?.receivableUsd} />}>
          {i18n.t({ id: 'operator.owedText', message: 'The next credit pays it first' })}
        </Tile>
      )}
    </Tiles>
  );
}

