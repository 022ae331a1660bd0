// Polls for the first request of a key, each second for at most five minutes.
import { i18n } from '@lingui/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { whyRefused } from '@/api/refusals';
import { summaryQuery } from '@/api/workspace';
import { paths } from '@/app/paths';
import { count } from '@/format/money';
import { clock, duration } from '@/format/time';
import { keyQuery } from '@/pages/keys/queries';
import { receiptId, requestsQuery } from '@/pages/usage/requests';
import { Button, LinkButton, Money, Notice, StateChip, useZone } from '@/ui';
import css from './start.module.css';

const EVERY = 1_000;
const AT_MOST = 5 * 60_000;

export function Waiting({ workspace, keyId }: { workspace: string; keyId: string }) {
  const zone = useZone();
  const [round, setRound] = useState(0);
  const [over, setOver] = useState(false);
  const list = useInfiniteQuery({
    ...requestsQuery(workspace, ['first', keyId], () => ({ key: keyId }), 1),
    refetchInterval: (query) => (over || (query.state.data?.pages[0]?.receipts.length ?? 0) > 0 ? false : EVERY),
    refetchIntervalInBackground: true,
  });
  const receipt = list.data?.pages[0]?.receipts[0];
  useEffect(() => {
    setOver(false);
    const timer = setTimeout(() => setOver(true), AT_MOST);
    return () => clearTimeout(timer);
  }, [round]);
  if (receipt) {
    return (
      <div className={css.stack} role="status">
        <div className={css.received}>
          <StateChip tone="ok">{i18n.t({ id: 'start.received', message: 'Received {time}', values: { time: clock(receipt.createTime ?? '', zone) } })}</StateChip>
          <span>{receipt.model}</span>
          <span>{i18n.t({ id: 'start.inOut', message: '{in} input tokens, {out} output tokens', values: { in: count(receipt.tokens?.promptTokens ?? '0'), out: count(receipt.tokens?.completionTokens ?? '0') } })}</span>
          <b>
            <Money usd={receipt.chargedUsd} style="exact" />
          </b>
          {receipt.firstTokenUs !== '0' && <span>{i18n.t({ id: 'start.firstToken', message: 'first token {time}', values: { time: duration(receipt.firstTokenUs) } })}</span>}
        </div>
        <div>
          <LinkButton kind="primary" to={paths.request(workspace, receiptId(receipt))}>
            {i18n.t({ id: 'start.openReceipt', message: 'Open receipt' })}
          </LinkButton>
        </div>
      </div>
    );
  }
  return (
    <div className={css.stack}>
      {over ? (
        <div className={css.wait}>
          <span>{i18n.t({ id: 'start.stopped', message: 'No request arrived within five minutes.' })}</span>
          <Button small onClick={() => setRound(round + 1)}>
            {i18n.t({ id: 'start.waitOn', message: 'Keep waiting' })}
          </Button>
        </div>
      ) : (
        <div className={css.wait} role="status">
          <span className={css.dot} aria-hidden />
          {i18n.t({ id: 'start.waiting', message: 'Waiting for your first request…' })}
        </div>
      )}
      <Refused workspace={workspace} keyId={keyId} on={!over} />
    </div>
  );
}

// A refused request has no receipt. The key counts it, and the workspace counts refusals by cause.
function Refused({ workspace, keyId, on }: { workspace: string; keyId: string; on: boolean }) {
  const key = useQuery({ ...keyQuery(workspace, keyId), refetchInterval: on ? 3 * EVERY : false });
  const came = key.data !== undefined && key.data.requests24h !== '0';
  const summary = useQuery({ ...summaryQuery(workspace), enabled: came, refetchInterval: on ? 5 * EVERY : false });
  if (!came) return null;
  const codes = summary.data?.refusals.slice(0, 3).map((one) => `${whyRefused(one)} (${count(one.count)})`).join(', ');
  return (
    <Notice tone="warn">
      {i18n.t({ id: 'start.refused', message: 'A request with this key arrived but has no receipt. It was refused, or it is still running.' })}{' '}
      {codes && i18n.t({ id: 'start.refusals', message: 'Refused today in this workspace: {codes}.', values: { codes } })}
    </Notice>
  );
}
