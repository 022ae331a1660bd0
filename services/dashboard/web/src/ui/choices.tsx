// Fields with a list of options.
import { Checkbox, MultiSelect, Select, Switch, TagsInput } from '@mantine/core';
import { common, type FieldProps } from './fields';

export interface Option {
  value: string;
  label: string;
}

// onLook: called on focus or hover, to load the options.
export function SelectField(props: FieldProps<string> & { options: Option[]; searchable?: boolean; placeholder?: string; clearable?: boolean; onLook?: () => void }) {
  return (
    <Select
      {...common(props)}
      value={props.value === '' && props.clearable ? null : props.value}
      data={props.options}
      onChange={(value) => props.onChange(value ?? '')}
      searchable={props.searchable}
      clearable={props.clearable}
      placeholder={props.placeholder}
      allowDeselect={false}
      onFocus={props.onLook}
      onPointerEnter={props.onLook}
      checkIconPosition="right"
    />
  );
}

export function ManyField(props: FieldProps<string[]> & { options: Option[]; placeholder?: string }) {
  return (
    <MultiSelect {...common(props)} value={props.value} data={props.options} onChange={props.onChange} placeholder={props.value.length > 0 ? undefined : props.placeholder} searchable clearable={false} hidePickedOptions />
  );
}

// A list of free entries: addresses, scopes.
export function EntriesField(props: FieldProps<string[]> & { placeholder?: string }) {
  return <TagsInput {...common(props)} value={props.value} onChange={props.onChange} placeholder={props.value.length > 0 ? undefined : props.placeholder} splitChars={[',', ' ', '\n']} acceptValueOnBlur />;
}

export function CheckboxField(props: FieldProps<boolean>) {
  return <Checkbox {...common(props)} checked={props.value} onChange={(event) => props.onChange(event.currentTarget.checked)} />;
}

export function SwitchField(props: FieldProps<boolean>) {
  return <Switch {...common(props)} checked={props.value} onChange={(event) => props.onChange(event.currentTarget.checked)} withThumbIndicator={false} />;
}
