import { i18n } from '@lingui/core';
import { useState } from 'react';
import { RANGES, type Range, type RangeName } from '@/format/range';
import { browserZone, UTC, zoneName } from '@/format/time';
import { SelectField } from './choices';
import { Button } from './controls';
import { Dialog } from './Dialog';
import { TextField, useFields } from './fields';
import { DialogForm } from './forms';
import { ActionMenu } from './Menu';

export function rangeLabel(name: RangeName): string {
  switch (name) {
    case 'today':
      return i18n.t({ id: 'range.today', message: 'Today' });
    case '24h':
      return i18n.t({ id: 'range.24h', message: 'Last 24 hours' });
    case '7d':
      return i18n.t({ id: 'range.7d', message: 'Last 7 days' });
    case '30d':
      return i18n.t({ id: 'range.30d', message: 'Last 30 days' });
    case 'month':
      return i18n.t({ id: 'range.month', message: 'This month' });
    case 'last-month':
      return i18n.t({ id: 'range.lastMonth', message: 'Last month' });
    case 'custom':
      return i18n.t({ id: 'range.custom', message: 'Custom…' });
  }
}

interface RangePickerProps {
  value: Range;
  onChange: (range: Range) => void;
  zone: string;
  onZone: (zone: string) => void;
  reportZone: string; // the workspace's
}

// The range and the time zone that the whole page uses.
export function RangePicker({ value, onChange, zone, onZone, reportZone }: RangePickerProps) {
  const [custom, setCustom] = useState(false);
  const zones = [...new Set([UTC, reportZone, browserZone(), zone])];
  return (
    <>
      <SelectField
        label={i18n.t({ id: 'range.label', message: 'Period' })}
        value={value.range}
        options={RANGES.map((name) => ({ value: name, label: name === 'custom' && value.from && value.to ? `${value.from} – ${value.to}` : rangeLabel(name) }))}
        onChange={(name) => (name === 'custom' ? setCustom(true) : onChange({ range: name as RangeName }))}
      />
      <ActionMenu
        label={i18n.t({ id: 'range.zone', message: 'Time zone' })}
        target={<Button>{`${zoneName(zone)} ▾`}</Button>}
        actions={zones.map((one) => ({ label: one === zoneName(one) ? one : `${one} (${zoneName(one)})`, onClick: () => onZone(one) }))}
      />
      <Dialog opened={custom} onClose={() => setCustom(false)} title={i18n.t({ id: 'range.customTitle', message: 'Custom period' })}>
        {custom && (
          <CustomRange
            value={value}
            onDone={(range) => {
              setCustom(false);
              if (range) onChange(range);
            }}
          />
        )}
      </Dialog>
    </>
  );
}

function CustomRange({ value, onDone }: { value: Range; onDone: (range: Range | null) => void }) {
  const fields = useFields({ from: value.from ?? '', to: value.to ?? '' }, async (typed) => {
    const missing = i18n.t({ id: 'range.dateMissing', message: 'Select a date.' });
    if (!typed.from || !typed.to) return { from: typed.from ? undefined : missing, to: typed.to ? undefined : missing };
    if (typed.to < typed.from) return { to: i18n.t({ id: 'range.order', message: 'The end date is before the start date.' }) };
    onDone({ range: 'custom', ...typed });
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'range.apply', message: 'Apply' })} onCancel={() => onDone(null)}>
      <TextField label={i18n.t({ id: 'range.from', message: 'Start date' })} type="date" {...fields.bind('from')} />
      <TextField label={i18n.t({ id: 'range.to', message: 'End date' })} type="date" {...fields.bind('to')} />
    </DialogForm>
  );
}
