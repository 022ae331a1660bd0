// Shared by both tabs of Usage: the tabs, the period with its time zone, and the filters by key and model.
import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useKeyNames } from '@/api/names';
import { modelsQuery, usePermissions, workspaceQuery } from '@/api/workspace';
import { paths } from '@/app/paths';
import { isZone, parseRange, type Range, type RangeName } from '@/format/range';
import { IconX } from '@/icons';
import { LinkTabs, RangePicker, SelectField, useZone } from '@/ui';
import css from './usage.module.css';

export interface Asked extends Range {
  zone?: string; // unset: the workspace's
  key?: string;
  model?: string;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : typeof value === 'number' ? String(value) : undefined;
}

export function parseAsked(search: Record<string, unknown>, fallback: RangeName): Asked {
  return { ...parseRange(search, fallback), zone: isZone(search.zone) ? search.zone : undefined, key: text(search.key), model: text(search.model) };
}

export function UsageTabs({ workspace }: { workspace: string }) {
  const may = usePermissions(workspace);
  if (!may('UsageService/ListRequests')) return null;
  return (
    <LinkTabs
      label={i18n.t({ id: 'usage.tabs', message: 'Views of usage' })}
      tabs={[
        { to: paths.usage(workspace), label: i18n.t({ id: 'usage.tab.usage', message: 'Over time' }) },
        { to: paths.requests(workspace), label: i18n.t({ id: 'usage.requests.title', message: 'Requests' }) },
      ]}
    />
  );
}

export function PeriodPicker({ workspace, asked, set }: { workspace: string; asked: Asked; set: (change: Partial<Asked>) => void }) {
  const shown = useZone();
  const report = useQuery(workspaceQuery(workspace)).data?.reportTimeZone || 'UTC';
  return (
    <div className={css.period}>
      <RangePicker
      value={asked}
      onChange={(range) => set({ from: undefined, to: undefined, ...range })}
      zone={asked.zone ?? shown}
      onZone={(zone) => set({ zone })}
      reportZone={report}
      />
    </div>
  );
}

// The options of both fields are loaded on focus or hover, because a view makes at most three calls.
export function ModelSelect({ value, onChange }: { value: string | undefined; onChange: (model: string | undefined) => void }) {
  const [looked, setLooked] = useState(false);
  const { data } = useQuery({ ...modelsQuery(), enabled: looked });
  const ids = [...new Set([...(value ? [value] : []), ...(data?.models.map((one) => one.name.replace(/^models\//, '')) ?? [])])];
  return (
    <div className={css.pick}>
    <SelectField
      label={i18n.t({ id: 'usage.filter.model', message: 'Model' })}
      value={value ?? ''}
      options={[{ value: '', label: i18n.t({ id: 'usage.filter.allModels', message: 'All models' }) }, ...ids.map((id) => ({ value: id, label: id }))]}
      onChange={(model) => onChange(model || undefined)}
      onLook={() => setLooked(true)}
      searchable
    />
    </div>
  );
}

export function KeySelect({ workspace, value, onChange }: { workspace: string; value: string | undefined; onChange: (key: string | undefined) => void }) {
  const [looked, setLooked] = useState(false);
  const { keys, find } = useKeyNames(workspace, looked || value !== undefined);
  const unknown = value && !find(value) ? [{ value, label: value }] : [];
  const taken = new Map<string, number>();
  for (const { name } of keys) taken.set(name, (taken.get(name) ?? 0) + 1);
  return (
    <div className={css.pick}>
    <SelectField
      label={i18n.t({ id: 'usage.filter.key', message: 'API key' })}
      value={value ?? ''}
      options={[
        { value: '', label: i18n.t({ id: 'usage.filter.allKeys', message: 'All API keys' }) },
        ...unknown,
        ...keys.map(({ id, name }) => ({ value: id, label: (taken.get(name) ?? 0) > 1 ? `${name} (${id})` : name })),
      ]}
      onChange={(key) => onChange(key || undefined)}
      onLook={() => setLooked(true)}
      searchable
    />
    </div>
  );
}

// The active filters; each can be removed.
export function Chips({ chips, onClear }: { chips: { label: string; value: string; onRemove: () => void }[]; onClear: () => void }) {
  if (chips.length === 0) return null;
  return (
    <div className={css.chips}>
      {chips.map(({ label, value, onRemove }) => (
        <button key={label} type="button" onClick={onRemove} aria-label={i18n.t({ id: 'usage.removeFilter', message: 'Remove filter {label}: {value}', values: { label, value } })}>
          <span>{label}</span> {value} <IconX size={14} stroke={1.6} aria-hidden />
        </button>
      ))}
      {chips.length > 1 && (
        <button type="button" onClick={onClear}>
          {i18n.t({ id: 'usage.clearFilters', message: 'Clear filters' })}
        </button>
      )}
    </div>
  );
}
