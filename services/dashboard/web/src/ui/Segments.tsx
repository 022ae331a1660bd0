import { SegmentedControl } from '@mantine/core';
import css from './controls.module.css';

export function Segments<T extends string>({ label, value, options, onChange }: {
  label: string; value: T; options: { value: T; label: string }[]; onChange: (value: T) => void;
}) {
  return (
    <SegmentedControl
      aria-label={label}
      className={css.segments}
      size="sm"
      radius="sm"
      value={value}
      data={options}
      onChange={(next) => onChange(next as T)}
      withItemsBorders={false}
    />
  );
}
