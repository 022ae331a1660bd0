// The actions of a key, for the menu in the list and for the key's own page.
import { i18n } from '@lingui/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { newRequestId } from '@/api/client';
import { asApiError } from '@/api/errors';
import { idOf } from '@/api/types';
import { usePermissions } from '@/api/workspace';
import { count } from '@/format/money';
import { IconBan, IconCircleCheck, IconRefresh, IconTrash } from '@/icons';
import { ActionMenu, Button, Confirm, Dialog, DialogActions, DialogForm, errorText, SelectField, Time, toast, useFields, type MenuAction } from '@/ui';
import { NewSecret } from './NewSecret';
import { disableKey, enableKey, keyName, keysChanged, revokeKey, rotateKey, type Key } from './queries';

type Act = 'rotate' | 'revoke' | null;

export function KeyActions({ workspace, item, target }: { workspace: string; item: Key; target?: React.ReactNode }) {
  const client = useQueryClient();
  const may = usePermissions(workspace);
  const [act, setAct] = useState<Act>(null);
  const id = idOf(item.name);
  const name = keyName(item);
  const revoked = item.state === 'KEY_STATE_REVOKED' ? i18n.t({ id: 'keys.revokedFinal', message: 'A revoked key cannot be changed' }) : undefined;
  // Disabling can be undone, so it asks no question.
  const setEnabled = async (enabled: boolean) => {
    try {
      await (enabled ? enableKey : disableKey)(workspace, id, newRequestId());
      await keysChanged(client, workspace);
      if (enabled) toast(i18n.t({ id: 'keys.enabledDone', message: '{name} is enabled.', values: { name } }));
      else toast(i18n.t({ id: 'keys.disabledDone', message: '{name} is disabled. New requests fail with 403 virtual_key_blocked.', values: { name } }), () => void setEnabled(true));
    } catch (error) {
      toast(errorText(asApiError(error)));
    }
  };
  const actions: (MenuAction | 'line')[] = [];
  if (may('KeyService/RotateKey', item.createdBy)) {
    actions.push({ label: i18n.t({ id: 'keys.rotateMenu', message: 'Rotate…' }), icon: IconRefresh, onClick: () => setAct('rotate'), disabledReason: revoked });
  }
  if (item.state === 'KEY_STATE_DISABLED') {
    if (may('KeyService/EnableKey')) actions.push({ label: i18n.t({ id: 'keys.enable', message: 'Enable' }), icon: IconCircleCheck, onClick: () => void setEnabled(true) });
  } else if (may('KeyService/DisableKey')) {
    actions.push({ label: i18n.t({ id: 'keys.disable', message: 'Disable' }), icon: IconBan, onClick: () => void setEnabled(false), disabledReason: revoked });
  }
  if (may('KeyService/RevokeKey', item.createdBy)) {
    actions.push('line', { label: i18n.t({ id: 'keys.revokeMenu', message: 'Revoke…' }), icon: IconTrash, danger: true, onClick: () => setAct('revoke'), disabledReason: revoked });
  }
  if (actions.length === 0) return null;
  return (
    <>
      <ActionMenu label={i18n.t({ id: 'keys.actionsOf', message: 'Actions for {name}', values: { name } })} actions={actions} target={target} />
      <RevokeDialog workspace={workspace} item={item} opened={act === 'revoke'} onClose={() => setAct(null)} />
      <RotateDialog workspace={workspace} item={item} opened={act === 'rotate'} onClose={() => setAct(null)} />
    </>
  );
}

interface ActProps {
  workspace: string;
  item: Key;
  opened: boolean;
  onClose: () => void;
}

function RevokeDialog({ workspace, item, opened, onClose }: ActProps) {
  const client = useQueryClient();
  const [requestId] = useState(newRequestId);
  const name = keyName(item);
  return (
    <Confirm
      opened={opened}
      onClose={onClose}
      danger
      typed={name}
      title={i18n.t({ id: 'keys.revokeTitle', message: 'Revoke {name}', values: { name } })}
      verb={i18n.t({ id: 'keys.revoke', message: 'Revoke key' })}
      act={async () => {
        await revokeKey(workspace, idOf(item.name), requestId);
        await keysChanged(client, workspace);
      }}
    >
      <p>
        {i18n.t({ id: 'keys.lastRequest', message: 'Last request:' })} <Time at={item.lastUsedTime} none={i18n.t({ id: 'keys.never', message: 'never' })} /> ·{' '}
        {i18n.t({ id: 'keys.requests24h', message: '{count} in the last 24 hours', values: { count: count(item.requests24h) } })}
      </p>
      <p>{i18n.t({ id: 'keys.revokeText', message: 'Requests with this key will fail with 401 invalid_api_key. This cannot be undone. To test the effect, disable the key first.' })}</p>
    </Confirm>
  );
}

const HOUR = 3600;
const OVERLAPS = [0, HOUR, 24 * HOUR, 7 * 24 * HOUR, 30 * 24 * HOUR];

function overlapName(seconds: number): string {
  if (seconds === 0) return i18n.t({ id: 'keys.overlapNone', message: 'No overlap: the old key stops working immediately' });
  if (seconds === HOUR) return i18n.t({ id: 'keys.overlapHour', message: '1 hour' });
  return i18n.t({ id: 'keys.overlapDays', message: '{days, plural, one {# day} other {# days}}', values: { days: seconds / (24 * HOUR) } });
}

function RotateDialog({ workspace, item, opened, onClose }: ActProps) {
  const [done, setDone] = useState<{ secret: string; ends: string | null } | null>(null);
  const close = () => {
    setDone(null);
    onClose();
  };
  const title = done ? i18n.t({ id: 'keys.rotated', message: 'Key rotated' }) : i18n.t({ id: 'keys.rotateTitle', message: 'Rotate {name}', values: { name: keyName(item) } });
  return (
    <Dialog opened={opened} onClose={close} title={title} locked={done !== null} wide={done !== null}>
      {opened && !done && <RotateForm workspace={workspace} item={item} onDone={setDone} onCancel={close} />}
      {done && (
        <>
          <NewSecret secret={done.secret} allowed={item.allowedModels} />
          <p>
            {i18n.t({ id: 'keys.oldEnds', message: 'The old key expires:' })} <Time at={done.ends} exact />
          </p>
          <DialogActions>
            <Button kind="primary" onClick={close}>
              {i18n.t({ id: 'keys.saved', message: 'I saved the key' })}
            </Button>
          </DialogActions>
        </>
      )}
    </Dialog>
  );
}

function RotateForm({ workspace, item, onDone, onCancel }: Omit<ActProps, 'opened' | 'onClose'> & { onDone: (done: { secret: string; ends: string | null }) => void; onCancel: () => void }) {
  const client = useQueryClient();
  const [requestId] = useState(newRequestId);
  const fields = useFields({ overlap: String(24 * HOUR) }, async ({ overlap }) => {
    const answer = await rotateKey(workspace, idOf(item.name), requestId, parseInt(overlap, 10));
    await keysChanged(client, workspace);
    onDone({ secret: answer.secret, ends: answer.rotated?.expireTime ?? null });
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'keys.rotate', message: 'Rotate key' })} onCancel={onCancel}>
      <p>{i18n.t({ id: 'keys.rotateText', message: 'This creates a new key with the same settings. The old key keeps working during the overlap period, so that you can update your applications.' })}</p>
      <SelectField label={i18n.t({ id: 'keys.overlap', message: 'Overlap period' })} options={OVERLAPS.map((seconds) => ({ value: String(seconds), label: overlapName(seconds) }))} {...fields.bind('overlap')} />
    </DialogForm>
  );
}
