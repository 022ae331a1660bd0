// Form rows: a model and its three limits, as text. Empty means no limit.
import { i18n } from '@lingui/core';
import { Button, TextField } from '@/ui';
import css from './limits.module.css';
import type { LimitValues } from './words';

export interface ModelRow {
  model: string;
  requests: string;
  tokens: string;
  concurrent: string;
}

const text = (value: string | undefined) => (value === undefined || value === '0' ? '' : value);
const value = (typed: string) => typed.trim() || '0';

export function rowOf(model: string, limits: LimitValues | null): ModelRow {
  return { model, requests: text(limits?.requestsPerMinute), tokens: text(limits?.tokensPerMinute), concurrent: text(limits?.concurrentRequests) };
}

export function valuesOf(row: ModelRow): LimitValues {
  return { requestsPerMinute: value(row.requests), tokensPerMinute: value(row.tokens), concurrentRequests: value(row.concurrent) };
}

export function ModelRows({ rows, onChange }: { rows: ModelRow[]; onChange: (rows: ModelRow[]) => void }) {
  const set = (index: number, change: Partial<ModelRow>) => onChange(rows.map((row, at) => (at === index ? { ...row, ...change } : row)));
  return (
    <div className={css.stack}>
      {rows.map((row, index) => (
        <div key={index} className={css.row} role="group" aria-label={row.model || i18n.t({ id: 'limits.model', message: 'Model' })}>
          <TextField label={i18n.t({ id: 'limits.model', message: 'Model' })} value={row.model} onChange={(model) => set(index, { model })} mono />
          <ThreeFields row={row} onChange={(change) => set(index, change)} />
          <Button small kind="plain" onClick={() => onChange(rows.filter((_, at) => at !== index))}>
            {i18n.t({ id: 'limits.remove', message: 'Remove' })}
          </Button>
        </div>
      ))}
      <div>
        <Button small onClick={() => onChange([...rows, { model: '', requests: '', tokens: '', concurrent: '' }])}>
          {i18n.t({ id: 'limits.addModel', message: 'Add model' })}
        </Button>
      </div>
    </div>
  );
}

export function ThreeFields({ row, onChange }: { row: ModelRow; onChange: (change: Partial<ModelRow>) => void }) {
  return (
    <>
      <TextField label={i18n.t({ id: 'limits.short.requests', message: 'Requests/min' })} value={row.requests} onChange={(requests) => onChange({ requests })} inputMode="numeric" placeholder="—" />
      <TextField label={i18n.t({ id: 'limits.short.tokens', message: 'Tokens/min' })} value={row.tokens} onChange={(tokens) => onChange({ tokens })} inputMode="numeric" placeholder="—" />
      <TextField label={i18n.t({ id: 'limits.short.concurrent', message: 'Concurrent' })} value={row.concurrent} onChange={(concurrent) => onChange({ concurrent })} inputMode="numeric" placeholder="—" />
    </>
  );
}

export function mapOf(rows: ModelRow[]): Record<string, LimitValues> {
  return Object.fromEntries(rows.filter((row) => row.model.trim() !== '').map((row) => [row.model.trim(), valuesOf(row)]));
}
