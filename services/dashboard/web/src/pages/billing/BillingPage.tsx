import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schema } from '@/api/types';
import { balanceQuery, POLL, usePermissions } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useWorkspace } from '@/app/search';
import { money, nanos } from '@/format/money';
import { IconPlus } from '@/icons';
import { Button, Card, ErrorState, Freshness, Link, Money, Notice, polling, RowSkeletons, Tile, Tiles, UsedBar } from '@/ui';
import { WhoCan } from '@/ui/WhoCan';
import { AddCredit } from './AddCredit';
import css from './billing.module.css';
import { BillingFrame } from './BillingFrame';
import { usedOfCap } from './cap';
import { Methods } from './Methods';
import { MonthEnd } from './MonthEnd';
import { Payments } from './Payments';

export default function BillingPage() {
  const workspace = useWorkspace();
  const may = usePermissions(workspace);
  const [adding, setAdding] = useState(false);
  const query = useQuery({ ...balanceQuery(workspace), ...polling(POLL) });
  const balance = query.data;
  const state = { loading: query.isPending, error: balance ? undefined : query.error, retry: () => void query.refetch() };
  const canAdd = may('PaymentService/CreatePayment');
  return (
    <BillingFrame
      workspace={workspace}
      title={i18n.t({ id: 'billing.title', message: 'Billing' })}
      actions={
        canAdd && (
          <Button kind="primary" icon={IconPlus} onClick={() => setAdding(true)}>
            {i18n.t({ id: 'billing.add.verb', message: 'Add credit' })}
          </Button>
        )
      }
    >
      {balance && <Warnings balance={balance} />}
      <Tiles>
        <Tile label={i18n.t({ id: 'billing.available', message: 'Available credit' })} figure={<Money usd={balance?.availableUsd} style="available" />} {...state}>
          {balance &&
            i18n.t({
              id: 'billing.onHold',
              message: '{held} held for {count, plural, one {# running request} other {# running requests}}',
              values: { held: money(balance.heldUsd, 'exact'), count: parseInt(balance.openHolds, 10) },
            })}
        </Tile>
        <Tile
          label={i18n.t({ id: 'billing.spent', message: 'Spent this month' })}
          figure={<Money usd={balance?.monthSpentUsd} />}
          bar={balance?.capUsd != null && <UsedBar used={usedOfCap(balance)} limit={nanos(balance.capUsd) ?? 0n} label={i18n.t({ id: 'billing.capUsed', message: 'Cap used (spent and held)' })} />}
          {...state}
        >
          {balance?.capUsd != null ? (
            <>
              {i18n.t({ id: 'billing.ofCap', message: 'of {cap}', values: { cap: money(balance.capUsd) } })} · <MonthEnd />
            </>
          ) : (
            <Link to={paths.cap(workspace)}>{i18n.t({ id: 'billing.noCap', message: 'No monthly cap' })}</Link>
          )}
        </Tile>
      </Tiles>
      <div className={css.two}>
        <Card title={i18n.t({ id: 'billing.makeUp', message: 'Credit breakdown' })} subtitle={<Freshness query={query} />}>
          {balance ? <MakeUp balance={balance} /> : query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'billing.balance.what', message: 'the balance' })} retry={state.retry} /> : <RowSkeletons rows={4} />}
        </Card>
        {may('PaymentService/ListPaymentMethods') && <Methods workspace={workspace} />}
      </div>
      {may('PaymentService/ListPayments') && (
        <>
          <h2>{i18n.t({ id: 'billing.payments', message: 'Payments' })}</h2>
          <Payments workspace={workspace} />
        </>
      )}
      {!canAdd && <WhoCan workspace={workspace} roles={['owner', 'billing']} />}
      <AddCredit workspace={workspace} opened={adding} onClose={() => setAdding(false)} />
    </BillingFrame>
  );
}

// Exact amounts, so that the lines add up to the last one.
function MakeUp({ balance }: { balance: Schema<'Balance'> }) {
  const minus = (usd: string) => (nanos(usd) === 0n ? usd : `-${usd}`);
  return (
    <table className={css.sum}>
      <tbody>
        <tr>
          <th scope="row">{i18n.t({ id: 'billing.paid', message: 'Paid' })}</th>
          <td><Money usd={balance.paidUsd} style="exact" /></td>
        </tr>
        <tr>
          <th scope="row">{i18n.t({ id: 'billing.granted', message: 'Granted' })}</th>
          <td><Money usd={balance.grantedUsd} style="exact" /></td>
        </tr>
        <tr>
          <th scope="row">{i18n.t({ id: 'billing.held', message: 'Held for running requests' })}</th>
          <td><Money usd={minus(balance.heldUsd)} style="exact" /></td>
        </tr>
        <tr>
          <th scope="row">{i18n.t({ id: 'billing.available', message: 'Available credit' })}</th>
          <td><Money usd={balance.availableUsd} style="exact" /></td>
        </tr>
      </tbody>
    </table>
  );
}

function Warnings({ balance }: { balance: Schema<'Balance'> }) {
  const owed = nanos(balance.receivableUsd) ?? 0n;
  return (
    <>
      {balance.frozen === 'FREEZE_REASON_OPERATOR' && <Notice tone="bad">{i18n.t({ id: 'billing.frozen.operator', message: 'An operator froze this workspace. New requests fail with 402. Running requests complete and are charged.' })}</Notice>}
      {balance.frozen === 'FREEZE_REASON_DISPUTE' && <Notice tone="bad">{i18n.t({ id: 'billing.frozen.dispute', message: 'This workspace is frozen because its credit did not cover a disputed payment. New requests fail with 402.' })}</Notice>}
      {balance.frozen === 'FREEZE_REASON_FAILED_CHECK' && <Notice tone="bad">{i18n.t({ id: 'billing.frozen.check', message: 'This workspace is frozen because its ledger failed a check. The operator has been notified.' })}</Notice>}
      {owed > 0n && <Notice tone="warn">{i18n.t({ id: 'billing.owed', message: 'A disputed payment exceeded your credit by {amount}. The next credit pays this amount first.', values: { amount: money(balance.receivableUsd, 'exact') } })}</Notice>}
      {!balance.walletOpen && <Notice tone="warn">{i18n.t({ id: 'billing.noWallet', message: 'This workspace has no wallet yet. An operator must open one.' })}</Notice>}
    </>
  );
}
