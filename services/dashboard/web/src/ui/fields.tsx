// Form fields. useFields holds their text and shows the server's errors at their fields.
import { PasswordInput, Textarea, TextInput } from '@mantine/core';
import { useRef, useState, type FormEvent, type ReactNode } from 'react';
import { violationsByField, asApiError, type ApiError } from '@/api/errors';
import css from './fields.module.css';
import { Failure } from './states';

const CLASSES = { label: css.label, description: css.hint, error: css.error };

export type FieldErrors<V extends object> = Partial<Record<keyof V | '', string>>;

export interface Fields<V extends object> {
  values: V;
  errors: FieldErrors<V>;
  failure: ApiError | null; // an error that concerns no field
  busy: boolean;
  changed: boolean; // differs from the initial values
  set: <K extends keyof V>(name: K, value: V[K]) => void;
  // For a field: <TextField label=… {...fields.bind('name')} />
  bind: <K extends keyof V>(name: K) => { name: string; value: V[K]; onChange: (value: V[K]) => void; error?: string };
  // Runs submit, once at a time. Its ApiError becomes errors of fields, and the first of them is focused.
  onSubmit: (event?: FormEvent<HTMLFormElement>) => void;
  reset: () => void;
}

// submit returns errors by field, undefined on success, or throws an ApiError.
export function useFields<V extends object>(initial: V, submit: (values: V) => Promise<FieldErrors<V> | void>): Fields<V> {
  const [values, setValues] = useState(initial);
  const [errors, setErrors] = useState<FieldErrors<V>>({});
  const [failure, setFailure] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const running = useRef(false);
  const set: Fields<V>['set'] = (name, value) => {
    setValues((old) => ({ ...old, [name]: value }));
    setErrors((old) => ({ ...old, [name]: undefined }));
  };
  const run = async (form: HTMLFormElement | null) => {
    if (running.current) return;
    running.current = true;
    setBusy(true);
    setFailure(null);
    setErrors({});
    const show = (found: FieldErrors<V>) => {
      setErrors(found);
      const first = Object.keys(found).find((name) => name !== '' && found[name as keyof V]);
      if (first) setTimeout(() => (form?.elements.namedItem(first) as HTMLElement | null)?.focus?.());
      return first !== undefined;
    };
    try {
      const wrong = await submit(values);
      if (wrong) show(wrong);
    } catch (error) {
      const found = violationsByField(error, Object.keys(values)) as FieldErrors<V>;
      if (!show(found) || found['']) setFailure(asApiError(error));
    } finally {
      running.current = false;
      setBusy(false);
    }
  };
  return {
    values, errors, failure, busy, set,
    changed: JSON.stringify(values) !== JSON.stringify(initial),
    bind: (name) => ({
      name: String(name),
      value: values[name],
      onChange: (value) => set(name, value),
      error: errors[name],
    }),
    onSubmit: (event) => {
      event?.preventDefault();
      // A form in a dialog must not also submit the form of the page below.
      event?.stopPropagation();
      void run(event?.currentTarget ?? null);
    },
    reset: () => {
      setValues(initial);
      setErrors({});
      setFailure(null);
    },
  };
}

export function Form<V extends object>({ fields, children, actions }: { fields: Fields<V>; children: ReactNode; actions: ReactNode }) {
  return (
    <form className={css.form} onSubmit={fields.onSubmit} noValidate>
      {children}
      {fields.failure && <Failure error={fields.failure} />}
      <div className={css.actions}>{actions}</div>
    </form>
  );
}

export interface FieldProps<T> {
  label: ReactNode;
  name?: string;
  value: T;
  onChange: (value: T) => void;
  hint?: ReactNode;
  error?: ReactNode;
  disabled?: boolean;
  autoFocus?: boolean;
  required?: boolean;
}
interface TextProps extends FieldProps<string> {
  placeholder?: string;
  autoComplete?: string;
  type?: 'text' | 'email' | 'search' | 'date' | 'url';
  inputMode?: 'decimal' | 'numeric' | 'text';
  mono?: boolean;
  maxLength?: number;
}

export function common<T>({ label, name, hint, error, disabled, autoFocus }: FieldProps<T>) {
  return { label, name, description: hint, error, disabled, classNames: CLASSES, 'data-autofocus': autoFocus || undefined, size: 'sm' as const };
}

export function TextField(props: TextProps) {
  return (
    <TextInput
      {...common(props)}
      value={props.value}
      onChange={(event) => props.onChange(event.currentTarget.value)}
      placeholder={props.placeholder}
      autoComplete={props.autoComplete ?? 'off'}
      type={props.type ?? 'text'}
      inputMode={props.inputMode}
      maxLength={props.maxLength}
      aria-required={props.required}
      className={props.mono ? css.mono : undefined}
      spellCheck={props.mono ? false : undefined}
    />
  );
}

// An amount stays text, so that the server's value is sent back unchanged.
export function AmountField(props: TextProps) {
  return <TextInput {...common(props)} value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)} leftSection="$" inputMode="decimal" autoComplete="off" placeholder={props.placeholder} />;
}

export function PasswordField(props: TextProps & { toggleLabel: string }) {
  return (
    <PasswordInput
      {...common(props)}
      value={props.value}
      onChange={(event) => props.onChange(event.currentTarget.value)}
      autoComplete={props.autoComplete ?? 'off'}
      visibilityToggleButtonProps={{ 'aria-label': props.toggleLabel }}
    />
  );
}

export function TextareaField(props: TextProps & { rows?: number }) {
  return (
    <Textarea {...common(props)} value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)} rows={props.rows ?? 3} placeholder={props.placeholder} className={props.mono ? css.mono : undefined} />
  );
}
