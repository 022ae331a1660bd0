import { i18n } from '@lingui/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { newRequestId } from '@/api/client';
import { modelsQuery } from '@/api/workspace';
import { typedAmount } from '@/format/money';
import { dayStart } from '@/format/range';
import { AmountField, Button, Dialog, DialogActions, DialogForm, EntriesField, ManyField, TextButton, TextField, useFields, useZone } from '@/ui';
import { NewSecret } from './NewSecret';
import { createKey, keysChanged, type Key } from './queries';

interface CreateKeyProps {
  workspace: string;
  opened: boolean;
  onClose: (made: Key | null) => void;
}

export default function CreateKeyDialog({ workspace, opened, onClose }: CreateKeyProps) {
  // The secret is in this state only, and is lost when the dialog closes.
  const [made, setMade] = useState<{ key: Key; secret: string } | null>(null);
  const close = () => {
    onClose(made?.key ?? null);
    setMade(null);
  };
  return (
    <Dialog
      opened={opened}
      onClose={close}
      locked={made !== null}
      wide={made !== null}
      title={made ? i18n.t({ id: 'keys.created', message: 'API key created' }) : i18n.t({ id: 'keys.create', message: 'Create API key' })}
    >
      {made ? (
        <>
          <NewSecret secret={made.secret} allowed={made.key.allowedModels} />
          <DialogActions>
            <Button kind="primary" onClick={close}>
              {i18n.t({ id: 'keys.saved', message: 'I saved the key' })}
            </Button>
          </DialogActions>
        </>
      ) : (
        opened && <CreateForm workspace={workspace} onMade={setMade} onCancel={close} />
      )}
    </Dialog>
  );
}

const EMPTY = { displayName: '', monthlyQuotaUsd: '', allowedModels: [] as string[], expireTime: '', allowedAddresses: [] as string[], requestsPerMinute: '', tokensPerMinute: '', concurrentRequests: '' };

function CreateForm({ workspace, onMade, onCancel }: { workspace: string; onMade: (made: { key: Key; secret: string }) => void; onCancel: () => void }) {
  const client = useQueryClient();
  const zone = useZone();
  const [requestId] = useState(newRequestId);
  const [more, setMore] = useState(false);
  const models = useQuery({ ...modelsQuery(), enabled: more });
  const fields = useFields(EMPTY, async (values) => {
    const wrong: Partial<Record<keyof typeof EMPTY, string>> = {};
    const whole = (name: 'requestsPerMinute' | 'tokensPerMinute' | 'concurrentRequests') => {
      if (values[name] !== '' && !/^\d{1,15}$/.test(values[name])) wrong[name] = i18n.t({ id: 'keys.wholeNumber', message: 'Enter a whole number, or leave empty for no limit.' });
      return values[name] || '0';
    };
    const quota = values.monthlyQuotaUsd === '' ? undefined : typedAmount(values.monthlyQuotaUsd);
    const expires = values.expireTime === '' ? undefined : dayStart(values.expireTime, zone, 1);
    if (values.displayName.trim() === '') wrong.displayName = i18n.t({ id: 'keys.nameMissing', message: 'Enter a name.' });
    if (quota === null) wrong.monthlyQuotaUsd = i18n.t({ id: 'keys.notAmount', message: 'Enter an amount, for example 25 or 0.50.' });
    const limits = { requestsPerMinute: whole('requestsPerMinute'), tokensPerMinute: whole('tokensPerMinute'), concurrentRequests: whole('concurrentRequests') };
    if (Object.keys(wrong).length > 0) return wrong;
    const answer = await createKey(workspace, requestId, {
      displayName: values.displayName.trim(),
      allowedModels: values.allowedModels,
      allowedAddresses: values.allowedAddresses,
      limits,
      ...(quota ? { monthlyQuotaUsd: quota } : {}),
      ...(expires ? { expireTime: expires.toISOString() } : {}),
    } as Partial<Key>);
    await keysChanged(client, workspace);
    onMade({ key: answer.key as Key, secret: answer.secret });
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'keys.create', message: 'Create API key' })} onCancel={onCancel}>
      <TextField label={i18n.t({ id: 'keys.name', message: 'Name' })} hint={i18n.t({ id: 'keys.nameHint', message: 'What uses the key, for example checkout-bot' })} autoFocus required maxLength={100} {...fields.bind('displayName')} />
      {more ? (
        <>
          <AmountField label={i18n.t({ id: 'keys.quota', message: 'Monthly quota' })} hint={i18n.t({ id: 'keys.quotaHint', message: 'USD per UTC month. Leave empty for no quota.' })} {...fields.bind('monthlyQuotaUsd')} />
          <ManyField
            label={i18n.t({ id: 'keys.models', message: 'Allowed models' })}
            hint={i18n.t({ id: 'keys.modelsHint', message: 'Leave empty to allow all models.' })}
            options={(models.data?.models ?? []).map((one) => ({ value: one.name.replace(/^models\//, ''), label: one.name.replace(/^models\//, '') }))}
            {...fields.bind('allowedModels')}
          />
          <TextField label={i18n.t({ id: 'keys.lastDay', message: 'Expiration date' })} hint={i18n.t({ id: 'keys.lastDayHint', message: 'The key expires at the end of this day ({zone}). Leave empty for no expiration.', values: { zone } })} type="date" {...fields.bind('expireTime')} />
          <EntriesField label={i18n.t({ id: 'keys.addresses', message: 'Allowed IP addresses' })} hint={i18n.t({ id: 'keys.addressesHint', message: 'IP addresses or networks, for example 192.0.2.7 or 2001:db8::/32. Leave empty to allow all addresses.' })} {...fields.bind('allowedAddresses')} />
          <TextField label={i18n.t({ id: 'keys.rpm', message: 'Requests per minute' })} inputMode="numeric" {...fields.bind('requestsPerMinute')} />
          <TextField label={i18n.t({ id: 'keys.tpm', message: 'Tokens per minute' })} inputMode="numeric" {...fields.bind('tokensPerMinute')} />
          <TextField label={i18n.t({ id: 'keys.concurrent', message: 'Concurrent requests' })} inputMode="numeric" {...fields.bind('concurrentRequests')} />
        </>
      ) : (
        <div>
          <TextButton onClick={() => setMore(true)}>{i18n.t({ id: 'keys.more', message: 'More options' })}</TextButton>
        </div>
      )}
    </DialogForm>
  );
}
