// What needs attention, most urgent first, each with a link to act. Shows nothing when all is well.
import { i18n } from '@lingui/core';
import type { ReactNode } from 'react';
import { idOf, type Schema } from '@/api/types';
import { paths } from '@/app/paths';
import { pauseText } from '@/pages/billing/pause';
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
        text: i18n.t({ id: 'home.frozen', message: 'This workspace is frozen. New requests fail with 402 insufficient_credits. Contact the operator of this installation.' }),
      };
    case 'ATTENTION_KIND_LOW_BALANCE':
      return {
        tone: 'bad',
        text: (
          <>
            <b>{i18n.t({ id: 'home.low', message: 'Credit is low:' })} <Money usd={summary.availableUsd} style="available" />.</b>{' '}
            {summary.daysLeft !== undefined && i18n.t({ id: 'home.lasts', message: 'At the rate of the last seven days, it lasts {days, plural, =0 {less than a day} one {about # day} other {about # days}}.', values: { days: summary.daysLeft } })}
          </>
        ),
        action: <Link to={paths.billing(workspace)}>{i18n.t({ id: 'home.addCredit', message: 'Add credit' })}</Link>,
      };
    case 'ATTENTION_KIND_AUTO_RELOAD':
      return {
        tone: 'bad',
        text: <><b>{i18n.t({ id: 'home.autoReload', message: 'Auto-reload is not working.' })}</b> {one.detail === 'declined' ? i18n.t({ id: 'home.declined', message: 'The card was declined; the charge is tried again.' }) : pauseText(one.detail)}</>,
        action: <Link to={paths.autoReload(workspace)}>{i18n.t({ id: 'home.seeAutoReload', message: 'View auto-reload' })}</Link>,
      };
    case 'ATTENTION_KIND_CAP':
      return {
        tone: one.percent >= 100 ? 'bad' : 'warn',
        text: <b>{i18n.t({ id: 'home.cap', message: '{percent}% of this month’s cap is used.', values: { percent: one.percent } })}</b>,
        action: <Link to={paths.cap(workspace)}>{i18n.t({ id: 'home.seeCap', message: 'View cap' })}</Link>,
      };
    case 'ATTENTION_KIND_KEY_EXPIRES':
      return {
        tone: 'warn',
        text: (
          <>
            <b>{i18n.t({ id: 'home.expires', message: 'API key {name} expires', values: { name } })} <Time at={one.time} exact />.</b> {i18n.t({ id: 'home.rotateBefore', message: 'Rotate the key before then, or its requests will fail.' })}
          </>
        ),
        action: <Link to={paths.key(workspace, idOf(one.subject))}>{i18n.t({ id: 'home.seeKey', message: 'View API key' })}</Link>,
      };
    case 'ATTENTION_KIND_ENGINES_DOWN':
      return {
        tone: one.down >= one.engines ? 'bad' : 'warn',
        text: <b>{i18n.t({ id: 'home.engines', message: '{name}: {down} of {engines} engines do not accept requests.', values: { name: one.displayName || one.subject.replace(/^models\//, ''), down: one.down, engines: one.engines } })}</b>,
        action: <Link to={paths.model(workspace, one.subject.replace(/^models\//, ''))}>{i18n.t({ id: 'home.seeModel', message: 'View model' })}</Link>,
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
