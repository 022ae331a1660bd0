// The two kinds of forms: settings, which show and save stored values, and forms in dialogs.
import { i18n } from '@lingui/core';
import { useEffect, useState, type ReactNode } from 'react';
import { newRequestId } from '@/api/client';
import { Button } from './controls';
import { Form, useFields, type FieldErrors, type Fields } from './fields';
import { toast } from './toast';

// stored: the initial values; the fields show new ones when it changes. save returns errors by field; without errors, the
// toast shows `saved`. Each attempt has its own request id.
export function useSettings<V extends object>(stored: V, save: (values: V, requestId: string) => Promise<FieldErrors<V> | void>, saved: string): Fields<V> {
  const [requestId, setRequestId] = useState(newRequestId);
  const fields = useFields(stored, async (values) => {
    try {
      const wrong = await save(values, requestId);
      if (wrong) return wrong;
      toast(saved);
    } finally {
      setRequestId(newRequestId());
    }
  });
  useEffect(fields.reset, [JSON.stringify(stored)]);
  return fields;
}

export function SettingsForm<V extends object>({ fields, children }: { fields: Fields<V>; children: ReactNode }) {
  return (
    <Form
      fields={fields}
      actions={
        <>
          {fields.changed && !fields.busy && <Button onClick={fields.reset}>{i18n.t({ id: 'form.discard', message: 'Discard changes' })}</Button>}
          <Button type="submit" kind="primary" busy={fields.busy} disabledReason={fields.changed ? undefined : i18n.t({ id: 'form.unchanged', message: 'No changes to save' })}>
            {i18n.t({ id: 'form.save', message: 'Save' })}
          </Button>
        </>
      }
    >
      {children}
    </Form>
  );
}

interface DialogFormProps<V extends object> {
  fields: Fields<V>;
  // The same verb as in the dialog's title.
  verb: string;
  onCancel: () => void;
  danger?: boolean;
  disabledReason?: string;
  children: ReactNode;
}

export function DialogForm<V extends object>({ fields, verb, onCancel, danger, disabledReason, children }: DialogFormProps<V>) {
  return (
    <Form
      fields={fields}
      actions={
        <>
          <Button onClick={onCancel}>{i18n.t({ id: 'action.cancel', message: 'Cancel' })}</Button>
          <Button type="submit" kind={danger ? 'danger' : 'primary'} busy={fields.busy} disabledReason={disabledReason}>
            {verb}
          </Button>
        </>
      }
    >
      {children}
    </Form>
  );
}
