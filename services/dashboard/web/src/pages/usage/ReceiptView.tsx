// The receipt of one request: the charge, its cost breakdown, and the ledger entries.
import { i18n } from '@lingui/core';
import type { ReactNode } from 'react';
import { idOf } from '@/api/types';
import { useKeyNames } from '@/api/names';
import { usePermissions } from '@/api/workspace';
import { paths } from '@/app/paths';
import { count, nanos } from '@/format/money';
import { costOf, difference } from '@/format/price';
import { duration } from '@/format/time';
import { Copy, Facts, Link, Money, Notice, StateChip, Time } from '@/ui';
import { receiptId, type Receipt } from './requests';
import css from './usage.module.css';
import { entryName, outcomeName, outcomeText, outcomeTone, stateName, surfaceName, wholeTime } from './words';

function Id({ value, label }: { value: string; label: string }) {
  return (
    <span className={css.id}>
      <code>{value}</code> <Copy value={value} label={label} bare />
    </span>
  );
}

export function ReceiptView({ receipt, workspace }: { receipt: Receipt; workspace: string }) {
  return (
    <div className={css.parts}>
      <div>
        <div className={css.top}>
          <span className={css.amount}>
            <Money usd={receipt.chargedUsd} style="exact" />
          </span>
          <StateChip tone={outcomeTone(receipt.outcome)}>{receipt.state === 'open' ? stateName('open') : outcomeName(receipt.outcome)}</StateChip>
        </div>
        <span className={css.note}>{outcomeText(receipt.outcome)}</span>
      </div>
      {receipt.cutByCredit && (
        <Notice tone="warn">
          {i18n.t({ id: 'usage.cut', message: 'The response stopped after {tokens} output tokens because the credit ran out.', values: { tokens: count(receipt.tokens?.completionTokens) } })}
        </Notice>
      )}
      {receipt.estimated && <Notice>{i18n.t({ id: 'usage.estimated', message: 'The engine did not report token counts. Tollgate counted the tokens.' })}</Notice>}
      <section>
        <h3>{i18n.t({ id: 'usage.sum', message: 'Cost breakdown' })}</h3>
        <Sum receipt={receipt} />
      </section>
      <section>
        <h3>{i18n.t({ id: 'usage.facts', message: 'Request details' })}</h3>
        <RequestFacts receipt={receipt} workspace={workspace} />
      </section>
      {receipt.entries.length > 0 && (
        <section>
          <h3>{i18n.t({ id: 'usage.posted', message: 'Ledger entries' })}</h3>
          <Entries receipt={receipt} />
        </section>
      )}
    </div>
  );
}

function Sum({ receipt }: { receipt: Receipt }) {
  const { tokens } = receipt;
  const classes = [
    {
      id: 'prompt', name: i18n.t({ id: 'usage.class.prompt', message: 'Input tokens' }), tokens: tokens?.promptTokens ?? '0', rate: receipt.inputUsdPerMillion,
      notes: [
        tokens && tokens.cachedTokens !== '0' && i18n.t({ id: 'usage.ofCached', message: 'including {tokens} cached input tokens', values: { tokens: count(tokens.cachedTokens) } }),
        tokens && tokens.cacheWriteTokens !== '0' && i18n.t({ id: 'usage.ofWritten', message: 'including {tokens} tokens written to the cache', values: { tokens: count(tokens.cacheWriteTokens) } }),
      ],
    },
    {
      id: 'answer', name: i18n.t({ id: 'usage.class.answer', message: 'Output tokens' }), tokens: tokens?.completionTokens ?? '0', rate: receipt.outputUsdPerMillion,
      notes: [tokens && tokens.reasoningTokens !== '0' && i18n.t({ id: 'usage.ofReasoning', message: 'including {tokens} reasoning tokens', values: { tokens: count(tokens.reasoningTokens) } })],
    },
  ];
  const overrun = (nanos(receipt.overrunUsd) ?? 0n) > 0n;
  // Rounding is less than a nano-dollar. A larger difference comes from a later adjustment.
  const beyond = difference(receipt.exactCostUsd, receipt.chargedUsd);
  const rounded = beyond !== null && !overrun && beyond !== '0.00' && nanos(beyond) === 0n;
  const line = (label: ReactNode, amount: ReactNode) => (
    <tr>
      <td colSpan={3}>{label}</td>
      <td>{amount}</td>
    </tr>
  );
  return (
    <table className={css.table}>
      <thead>
        <tr>
          <th scope="col">{i18n.t({ id: 'usage.col.class', message: 'Type' })}</th>
          <th scope="col">{i18n.t({ id: 'usage.col.tokens', message: 'Tokens' })}</th>
          <th scope="col">{i18n.t({ id: 'usage.col.rate', message: '× per 1M' })}</th>
          <th scope="col">{i18n.t({ id: 'usage.col.amount', message: '= Amount' })}</th>
        </tr>
      </thead>
      <tbody>
        {classes.map((one) => (
          <tr key={one.id}>
            <td>
              {one.name}
              {one.notes.filter(Boolean).map((note, index) => (
                <span key={index} className={css.note}>
                  {note}
                </span>
              ))}
            </td>
            <td>{count(one.tokens)}</td>
            <td>
              <Money usd={one.rate} style="rate" />
            </td>
            <td>
              <Money usd={costOf([{ tokens: BigInt(one.tokens), usdPerMillion: one.rate }])} style="exact" />
            </td>
          </tr>
        ))}
        {line(i18n.t({ id: 'usage.exact', message: 'Exact cost' }), <Money usd={receipt.exactCostUsd} style="exact" />)}
        {rounded && line(i18n.t({ id: 'usage.rounded', message: 'Rounded down to nano-USD' }), <Money usd={`-${beyond}`} style="exact" />)}
        {overrun && line(i18n.t({ id: 'usage.overrun', message: 'Overrun, not charged' }), <Money usd={`-${receipt.overrunUsd}`} style="exact" />)}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row" colSpan={3}>
            {i18n.t({ id: 'usage.charged', message: 'Charged' })}
          </th>
          <td>
            <Money usd={receipt.chargedUsd} style="exact" />
          </td>
        </tr>
      </tfoot>
    </table>
  );
}

function RequestFacts({ receipt, workspace }: { receipt: Receipt; workspace: string }) {
  const { nameOf } = useKeyNames(workspace);
  const may = usePermissions(workspace);
  const granted = nanos(receipt.chargedGrantedUsd) ?? 0n;
  const facts: { label: string; value: ReactNode }[] = [
    { label: i18n.t({ id: 'usage.fact.model', message: 'Model' }), value: <Link to={paths.model(workspace, receipt.model)}>{receipt.model}</Link> },
    { label: i18n.t({ id: 'usage.fact.key', message: 'API key' }), value: may('KeyService/GetKey') ? <Link to={paths.key(workspace, receipt.key)}>{nameOf(receipt.key)}</Link> : nameOf(receipt.key) },
    { label: i18n.t({ id: 'usage.fact.started', message: 'Started' }), value: <Time at={receipt.createTime} exact /> },
    { label: i18n.t({ id: 'usage.fact.ended', message: 'Ended' }), value: <Time at={receipt.closeTime} exact /> },
    { label: i18n.t({ id: 'usage.fact.took', message: 'Duration' }), value: <span className="num">{duration(wholeTime(receipt))}</span> },
    { label: i18n.t({ id: 'usage.fact.firstToken', message: 'Time to first token' }), value: <span className="num">{duration(receipt.firstTokenUs)}</span> },
    { label: i18n.t({ id: 'usage.fact.endpoint', message: 'Endpoint' }), value: <><code>{surfaceName(receipt.surface)}</code>{receipt.streamed ? `, ${i18n.t({ id: 'usage.streamed', message: 'streamed' })}` : ''}</> },
    { label: i18n.t({ id: 'usage.fact.engine', message: 'Engine' }), value: receipt.engine || '—' },
    { label: i18n.t({ id: 'usage.fact.state', message: 'Status' }), value: stateName(receipt.state) },
    {
      label: i18n.t({ id: 'usage.fact.hold', message: 'Hold' }),
      value: (
        <>
          <Money usd={receipt.holdUsd} style="exact" />
          {receipt.firstHoldUsd !== receipt.holdUsd && <> ({i18n.t({ id: 'usage.firstHold', message: 'initially' })} <Money usd={receipt.firstHoldUsd} style="exact" />)</>}
        </>
      ),
    },
    ...(granted > 0n ? [{ label: i18n.t({ id: 'usage.fact.granted', message: 'Charged to granted credit' }), value: <Money usd={receipt.chargedGrantedUsd} style="exact" /> }] : []),
    { label: i18n.t({ id: 'usage.fact.id', message: 'Request ID' }), value: <Id value={receiptId(receipt)} label={i18n.t({ id: 'usage.copyId', message: 'Copy ID' })} /> },
    { label: 'x-request-id', value: receipt.clientRequestId ? <Id value={receipt.clientRequestId} label={i18n.t({ id: 'usage.copyRequestId', message: 'Copy x-request-id' })} /> : '—' },
  ];
  return <Facts facts={facts} />;
}

function Entries({ receipt }: { receipt: Receipt }) {
  return (
    <table className={css.table}>
      <thead>
        <tr>
          <th scope="col">{i18n.t({ id: 'usage.col.entry', message: 'Entry' })}</th>
          <th scope="col">{i18n.t({ id: 'usage.col.accounts', message: 'From → to' })}</th>
          <th scope="col">{i18n.t({ id: 'usage.col.value', message: 'Amount' })}</th>
        </tr>
      </thead>
      <tbody>
        {receipt.entries.map((entry) => (
          <tr key={entry.transaction}>
            <td>
              {entryName(entry.kind)} <span className={css.inline}>#{idOf(entry.transaction)}</span>
              <span className={css.note}>
                <Time at={entry.createTime} exact />
                {entry.memo && ` · ${entry.memo}`}
              </span>
            </td>
            <td>{`${entry.debitAccount} → ${entry.creditAccount}`}</td>
            <td>
              <Money usd={entry.amountUsd} style="exact" />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
