// The five states of a panel (loading, empty, empty by filter, failed, not allowed), and small parts of pages.
import { i18n } from '@lingui/core';
import type { ReactNode } from 'react';
import { asApiError } from '@/api/errors';
import { share } from '@/format/money';
import { IconAlertTriangle, IconCircleCheck, IconInfoCircle } from '@/icons';
import { Copy } from './Copy';
import { Button } from './controls';
import css from './states.module.css';

export type Tone = 'info' | 'ok' | 'warn' | 'bad';
const SIGNS = { info: IconInfoCircle, ok: IconCircleCheck, warn: IconAlertTriangle, bad: IconAlertTriangle };

export function Notice({ tone = 'info', children, action, alert }: { tone?: Tone; children: ReactNode; action?: ReactNode; alert?: boolean }) {
  const Sign = SIGNS[tone];
  return (
    <div className={`${css.notice} ${css[tone]}`} role={alert ? 'alert' : undefined}>
      <Sign size={18} stroke={1.6} aria-hidden />
      <div className={css.text}>{children}</div>
      {action && <div className={css.action}>{action}</div>}
    </div>
  );
}

export function TextButton({ children, onClick }: { children: ReactNode; onClick: () => void }) {
  return (
    <button type="button" className={css.plainButton} onClick={onClick}>
      {children}
    </button>
  );
}

// Describes an error in one sentence.
export function errorText(error: unknown): string {
  const { status, reason, message } = asApiError(error);
  if (reason === 'OFFLINE') return i18n.t({ id: 'error.offline', message: 'Could not reach the dashboard. Check your connection.' });
  if (status === 503 || status === 504) return message || i18n.t({ id: 'error.unavailable', message: 'A Tollgate service is unavailable. Try again.' });
  if (status === 403 && reason === '') return i18n.t({ id: 'error.forbidden', message: 'Your role does not allow this action.' });
  return message || i18n.t({ id: 'error.unknown', message: 'Something went wrong on this page.' });
}

function RequestId({ id }: { id: string }) {
  if (!id) return null;
  return (
    <span className={css.request}>
      {i18n.t({ id: 'error.requestId', message: 'Request ID' })} <code>{id}</code> <Copy value={id} label={i18n.t({ id: 'error.copyId', message: 'Copy request ID' })} bare />
    </span>
  );
}

// An error inside a form or a dialog.
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <Notice tone="bad" alert action={retry && <TextButton onClick={retry}>{i18n.t({ id: 'action.retry', message: 'Retry' })}</TextButton>}>
      {errorText(error)}
      <RequestId id={asApiError(error).requestId} />
    </Notice>
  );
}

// Replaces a panel's content. what: "the API keys".
export function ErrorState({ error, what, retry }: { error: unknown; what: string; retry?: () => void }) {
  return (
    <div className={css.empty} role="alert">
      <h2>{i18n.t({ id: 'error.title', message: 'Could not load {what}', values: { what } })}</h2>
      <p>
        {errorText(error)}
        <RequestId id={asApiError(error).requestId} />
      </p>
      {retry && <Button onClick={retry}>{i18n.t({ id: 'action.retry', message: 'Retry' })}</Button>}
    </div>
  );
}

export function EmptyState({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className={css.empty}>
      <h2>{title}</h2>
      <p>{children}</p>
      {action}
    </div>
  );
}

export function Skeleton({ width = '100%', height = 14 }: { width?: number | string; height?: number }) {
  return <span className={css.skeleton} style={{ width, height }} aria-hidden />;
}

export function RowSkeletons({ rows = 6 }: { rows?: number }) {
  return (
    <div className={css.rows} role="status" aria-label={i18n.t({ id: 'state.loading', message: 'Loading' })}>
      {Array.from({ length: rows }, (_, index) => (
        <Skeleton key={index} width={`${92 - ((index * 17) % 40)}%`} />
      ))}
    </div>
  );
}

export function Tiles({ children }: { children: ReactNode }) {
  return <div className={css.tiles}>{children}</div>;
}

// One figure. While loading it shows a skeleton of the same height, so that the layout does not shift.
export function Tile({ label, figure, bar, children, loading, error, retry }: {
  label: ReactNode; figure: ReactNode; bar?: ReactNode; children?: ReactNode; loading?: boolean; error?: unknown; retry?: () => void;
}) {
  return (
    <section className={css.tile}>
      <h2 className={css.label}>{label}</h2>
      <div className={css.figure}>{loading ? <Skeleton width={120} height={32} /> : error ? '—' : figure}</div>
      {!loading && !error && bar}
      <div className={css.under}>
        {loading ? <Skeleton width="70%" height={16} /> : error ? <>{errorText(error)} {retry && <TextButton onClick={retry}>{i18n.t({ id: 'action.retry', message: 'Retry' })}</TextButton>}</> : children}
      </div>
    </section>
  );
}

// The used share of a limit. Orange from 80 %, red at the limit.
export function UsedBar({ used, limit, label }: { used: bigint; limit: bigint; label: string }) {
  const part = share(used, limit);
  const percent = Math.round(part * 100);
  return (
    <div className={css.bar} role="meter" aria-label={label} aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100} data-level={part >= 1 ? 'bad' : part >= 0.8 ? 'warn' : 'ok'}>
      <i style={{ width: `${part * 100}%` }} />
    </div>
  );
}

export function StateChip({ tone, children }: { tone: Tone | 'quiet'; children: ReactNode }) {
  return <span className={`${css.chip} ${css[tone]}`}>{children}</span>;
}

export function Card({ title, subtitle, actions, children, flush }: {
  title?: ReactNode; subtitle?: ReactNode; actions?: ReactNode; children: ReactNode; flush?: boolean;
}) {
  return (
    <section className={css.card}>
      {title && (
        <div className={css.cardHead}>
          <h2>{title}</h2>
          {subtitle && <p>{subtitle}</p>}
          {actions && <div>{actions}</div>}
        </div>
      )}
      <div className={flush ? undefined : css.cardBody}>{children}</div>
    </section>
  );
}

export function Facts({ facts }: { facts: { label: ReactNode; value: ReactNode }[] }) {
  return (
    <dl className={css.facts}>
      {facts.map(({ label, value }, index) => (
        <FactRow key={index} label={label} value={value} />
      ))}
    </dl>
  );
}

function FactRow({ label, value }: { label: ReactNode; value: ReactNode }) {
  return (
    <>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </>
  );
}
