// What wants a decision or an action, most urgent first, each with its one way to act. Nothing wrong: nothing is shown.
import { i18n } from '@lingui/core';
import type { ReactNode } from 'react';
import { idOf, type Schema } from '@/api/types';
import { paths } from '@/app/paths';
import { Link, Money, Notice, Time, type Tone } from '@/ui';

type Attention = Schema<'SummaryAttention'>;
type Summary = Schema<'Summary'>;

interface Line {
  tone: Tone;
  text: ReactNode;
  action?: ReactNode;
}

function line(workspace: string, one: Attention, summary: Summary): Line | null {
  const name = one.displayName || idOf(one.subject);
  switch (one.kind) {
    case 'ATTENTION_KIND_FROZEN':
      return {
        tone: 'bad',
        text: i18n.t({ id: 'home.frozen', message: 'This workspace is frozen: new requests get 402 insufficient_credits. Ask the operator of this installation.' }),
      };
    case 'ATTENTION_KIND_LOW_BALANCE':
      return {
        tone: 'bad',
        text: (
          <>
            <b>{i18n.t({ id: 'home.low', message: 'Credit is low:' })} <Money usd={summary.availableUsd} style="available" />.</b>{' '}
            {summary.daysLeft !== undefined && i18n.t({ id: 'home.lasts', message: '{days, plural, =0 {It lasts less than a day} one {It lasts about # day} other {It lasts about # days}} at the pace of the last seven days.', values: { days: summary.daysLeft } })}
          </>
        ),
        action: <Link to={paths.billing(workspace)}>{i18n.t({ id: 'home.addCredit', message: 'Add credit' })}</Link>,
      };
    case 'ATTENTION_KIND_AUTO_RELOAD':
      return {
        tone: 'bad',
        text: <><b>{i18n.t({ id: 'home.autoReload', message: 'Auto-reload does not work.' })}</b> {one.detail}</>,
        action: <Link to={paths.autoReload(workspace)}>{i18n.t({ id: 'home.seeAutoReload', message: 'See auto-reload' })}</Link>,
      };
    case 'ATTENTION_KIND_CAP':
      return {
        tone: one.percent >= 100 ? 'bad' : 'warn',
        text: <b>{i18n.t({ id: 'home.cap', message: '{percent} % of this month’s cap is used.', values: { percent: one.percent } })}</b>,
        action: <Link to={paths.cap(workspace)}>{i18n.t({ id: 'home.seeCap', message: 'See the cap' })}</Link>,
      };
    case 'ATTENTION_KIND_KEY_EXPIRES':
      return {
        tone: 'warn',
        text: (
          <>
            <b>{i18n.t({ id: 'home.expires', message: 'Key {name} expires', values: { name } })} <Time at={one.time} exact />.</b> {i18n.t({ id: 'home.rotateBefore', message: 'Rotate it before, so that requests keep running.' })}
          </>
        ),
        action: <Link to={paths.key(workspace, idOf(one.subject))}>{i18n.t({ id: 'home.seeKey', message: 'Open the key' })}</Link>,
      };
    case 'ATTENTION_KIND_ENGINES_DOWN':
      return {
        tone: one.down >= one.engines ? 'bad' : 'warn',
        text: <b>{i18n.t({ id: 'home.engines', message: '{name}: {down} of {engines} engines take no requests.', values: { name: one.displayName || one.subject.replace(/^models\//, ''), down: one.down, engines: one.engines } })}</b>,
        action: <Link to={paths.model(workspace, one.subject.replace(/^models\//, ''))}>{i18n.t({ id: 'home.seeModel', message: 'See the model' })}</Link>,
      };
    default:
      return null;
  }
}

export function AttentionList({ workspace, summary }: { workspace: string; summary: Summary }) {
  const lines = summary.attention.map((one) => line(workspace, one, summary)).filter((one) => one !== null);
  return lines.slice(0, 3).map((one, index) => (
    <Notice key={index} tone={one.tone} action={one.action}>
      {one.text}
    </Notice>
  ));
}
