// The two kinds of forms that pages have: settings, which show what is stored and save it, and the form of a dialog.
import { i18n } from '@lingui/core';
import { useEffect, useState, type ReactNode } from 'react';
import { newRequestId } from '@/api/client';
import { Button } from './controls';
import { Form, useFields, type FieldErrors, type Fields } from './fields';
import { toast } from './toast';

// stored: what the fields show until they are changed, and again when it changes. save returns what is wrong with fields;
// when nothing is, the toast says `saved`. Each attempt has a request id of its own.
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
  // The verb of the dialog's title.
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
