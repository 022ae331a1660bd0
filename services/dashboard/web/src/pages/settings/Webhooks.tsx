import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, newRequestId, unwrap } from '@/api/client';
import { asApiError } from '@/api/errors';
import { queryClient } from '@/api/query';
import { idOf, type Schema } from '@/api/types';
import { usePermissions } from '@/api/workspace';
import { Button, Card, Confirm, Dialog, DialogActions, DialogForm, ErrorState, errorText, Notice, RowSkeletons, Secret, StateChip, TextField, Time, useFields, type Tone } from '@/ui';
import { webhooksQuery } from './queries';
import css from './settings.module.css';

type Webhook = Schema<'Webhook'>;

export function Webhooks({ workspace }: { workspace: string }) {
  const query = useQuery(webhooksQuery(workspace));
  const may = usePermissions(workspace);
  const [adding, setAdding] = useState(false);
  const [secret, setSecret] = useState('');
  const [deleting, setDeleting] = useState<Webhook | null>(null);
  const close = () => {
    setAdding(false);
    setSecret('');
  };
  const refresh = () => queryClient.invalidateQueries({ queryKey: ['webhooks', workspace] });
  return (
    <Card
      title={i18n.t({ id: 'settings.webhooks', message: 'Webhooks' })}
      subtitle={i18n.t({ id: 'settings.webhooks.sub', message: 'Signed notifications about billing, up to 10 webhooks' })}
      actions={
        may('AlertService/CreateWebhook') && (
          <Button small onClick={() => setAdding(true)}>
            {i18n.t({ id: 'settings.webhook.add', message: 'Add webhook' })}
          </Button>
        )
      }
    >
      {query.data === undefined ? (
        query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'settings.webhooks.what', message: 'the webhooks' })} retry={() => void query.refetch()} /> : <RowSkeletons rows={2} />
      ) : query.data.webhooks.length === 0 ? (
        <p className="quiet">{i18n.t({ id: 'settings.webhooks.none', message: 'No webhooks yet. Tollgate sends a POST request with JSON when credit is low, the cap is near, or auto-reload pauses.' })}</p>
      ) : (
        <ul className={css.list}>
          {query.data.webhooks.map((one) => (
            <Row key={one.name} workspace={workspace} webhook={one} mayTest={may('AlertService/TestWebhook')} onDelete={may('AlertService/DeleteWebhook') ? () => setDeleting(one) : undefined} />
          ))}
        </ul>
      )}
      <Dialog opened={adding} onClose={close} title={secret ? i18n.t({ id: 'settings.webhook.added', message: 'Webhook added' }) : i18n.t({ id: 'settings.webhook.add', message: 'Add webhook' })} locked={secret !== ''}>
        {secret ? (
          <>
            <Notice tone="warn">{i18n.t({ id: 'settings.webhook.secretText', message: 'Copy the signing secret now. It cannot be shown again. Use it to verify the tollgate-signature header.' })}</Notice>
            <Secret value={secret} label={i18n.t({ id: 'settings.webhook.secret', message: 'Signing secret' })} />
            <DialogActions>
              <Button kind="primary" onClick={close}>
                {i18n.t({ id: 'settings.done', message: 'Done' })}
              </Button>
            </DialogActions>
          </>
        ) : (
          adding && (
            <AddForm
              workspace={workspace}
              onClose={close}
              onAdded={(made) => {
                void refresh();
                if (made) setSecret(made);
                else close();
              }}
            />
          )
        )}
      </Dialog>
      <Confirm
        opened={deleting !== null}
        onClose={() => setDeleting(null)}
        title={i18n.t({ id: 'settings.webhook.delete', message: 'Delete webhook' })}
        verb={i18n.t({ id: 'settings.webhook.delete', message: 'Delete webhook' })}
        danger
        act={async () => {
          if (deleting) await unwrap(api.DELETE('/admin/v1/workspaces/{workspace}/webhooks/{webhook}', { params: { path: { workspace, webhook: idOf(deleting.name) } } }));
          await refresh();
        }}
      >
        {i18n.t({ id: 'settings.webhook.deleteText', message: '{url} receives no more notifications. Pending notifications are discarded.', values: { url: deleting?.url ?? '' } })}
      </Confirm>
    </Card>
  );
}

function Row({ workspace, webhook, mayTest, onDelete }: { workspace: string; webhook: Webhook; mayTest: boolean; onDelete?: () => void }) {
  const [busy, setBusy] = useState(false);
  const [result, setResult] = useState<[Tone, string] | null>(null);
  const test = async () => {
    setBusy(true);
    setResult(null);
    try {
      const found = await unwrap(api.POST('/admin/v1/workspaces/{workspace}/webhooks/{webhook}:test', { params: { path: { workspace, webhook: idOf(webhook.name) } }, body: {} }));
      setResult(found.delivered ? ['ok', i18n.t({ id: 'settings.webhook.delivered', message: 'Delivered: {result}', values: { result: found.result } })] : ['bad', i18n.t({ id: 'settings.webhook.failed', message: 'Not delivered: {result}', values: { result: found.result } })]);
    } catch (caught) {
      setResult(['bad', errorText(asApiError(caught))]);
    } finally {
      setBusy(false);
    }
  };
  return (
    <li>
      <div>
        <code>{webhook.url}</code>
        <p className="quiet">
          <Time at={webhook.createTime} exact />
        </p>
        <span role="status">{result && <StateChip tone={result[0]}>{result[1]}</StateChip>}</span>
      </div>
      {mayTest && (
        <Button small busy={busy} onClick={() => void test()}>
          {i18n.t({ id: 'settings.webhook.test', message: 'Send test' })}
        </Button>
      )}
      {onDelete && (
        <Button small kind="plain" onClick={onDelete}>
          {i18n.t({ id: 'settings.delete', message: 'Delete' })}
        </Button>
      )}
    </li>
  );
}

function AddForm({ workspace, onClose, onAdded }: { workspace: string; onClose: () => void; onAdded: (secret: string) => void }) {
  const [requestId] = useState(newRequestId);
  const fields = useFields({ url: 'https://' }, async ({ url }) => {
    const made = await unwrap(api.POST('/admin/v1/workspaces/{workspace}/webhooks', { params: { path: { workspace }, query: { requestId } }, body: { url: url.trim() } }));
    onAdded(made.signingSecret);
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'settings.webhook.add', message: 'Add webhook' })} onCancel={onClose}>
      <TextField label={i18n.t({ id: 'settings.webhook.url', message: 'URL' })} hint={i18n.t({ id: 'settings.webhook.urlHint', message: 'HTTPS, on the public internet' })} type="url" autoFocus {...fields.bind('url')} />
    </DialogForm>
  );
}
