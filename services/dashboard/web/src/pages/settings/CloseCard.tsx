import { i18n } from '@lingui/core';
import { useState } from 'react';
import { api, newRequestId, unwrap } from '@/api/client';
import { ApiError, asApiError } from '@/api/errors';
import { queryClient } from '@/api/query';
import type { Schema } from '@/api/types';
import { workspaceQuery } from '@/api/workspace';
import { paths } from '@/app/paths';
import { Button, Card, Confirm, Link, Notice, Time } from '@/ui';
import { WhoCan } from '@/ui/WhoCan';
import css from './settings.module.css';

// Closing takes effect after seven days and can be cancelled until then.
export function CloseCard({ workspace, here, mayClose }: { workspace: string; here: Schema<'Workspace'>; mayClose: boolean }) {
  const [dialog, setDialog] = useState<{ kind: 'close' | 'reopen'; requestId: string } | null>(null);
  const closing = here.state === 'WORKSPACE_STATE_CLOSING';
  const act = async () => {
    if (!dialog) return;
    const call = { params: { path: { workspace } }, body: { requestId: dialog.requestId } };
    try {
      const saved = await unwrap(dialog.kind === 'close' ? api.POST('/admin/v1/workspaces/{workspace}:close', call) : api.POST('/admin/v1/workspaces/{workspace}:reopen', call));
      queryClient.setQueryData(workspaceQuery(workspace).queryKey, saved);
    } catch (caught) {
      const error = asApiError(caught);
      if (error.reason !== 'BALANCE_NOT_ZERO') throw error;
      throw new ApiError(error.status, i18n.t({ id: 'settings.notZero', message: 'A workspace can be closed only with a balance of exactly zero. Spend the remaining credit or ask the operator for a refund, wait for running requests, and pay any amount owed.' }), error.reason, [], {}, error.requestId);
    }
  };
  return (
    <Card title={i18n.t({ id: 'settings.close', message: 'Close workspace' })}>
      <div className={css.stack}>
        {closing ? (
          <Notice
            tone="warn"
            action={
              mayClose && (
                <Button small onClick={() => setDialog({ kind: 'reopen', requestId: newRequestId() })}>
                  {i18n.t({ id: 'settings.reopen', message: 'Keep open' })}
                </Button>
              )
            }
          >
            {i18n.t({ id: 'settings.closing', message: 'This workspace closes on' })} <Time at={here.closeTime} exact />. {i18n.t({ id: 'settings.closingText', message: 'Its API keys work until then.' })}
          </Notice>
        ) : here.state === 'WORKSPACE_STATE_CLOSED' ? (
          <Notice>
            {i18n.t({ id: 'settings.closed', message: 'This workspace was closed on' })} <Time at={here.closeTime} exact />
          </Notice>
        ) : (
          <>
            <p>{i18n.t({ id: 'settings.closeText', message: 'After seven days, all API keys are revoked permanently. Until then, an owner can keep the workspace open. Statements and the audit log remain available.' })}</p>
            {mayClose ? (
              <div>
                <Button kind="danger" onClick={() => setDialog({ kind: 'close', requestId: newRequestId() })}>
                  {i18n.t({ id: 'settings.close', message: 'Close workspace' })}
                </Button>
              </div>
            ) : (
              <WhoCan workspace={workspace} roles={['owner']} />
            )}
          </>
        )}
      </div>
      <Confirm
        opened={dialog !== null}
        onClose={() => setDialog(null)}
        title={dialog?.kind === 'reopen' ? i18n.t({ id: 'settings.reopenTitle', message: 'Keep workspace open' }) : i18n.t({ id: 'settings.close', message: 'Close workspace' })}
        verb={dialog?.kind === 'reopen' ? i18n.t({ id: 'settings.reopen', message: 'Keep open' }) : i18n.t({ id: 'settings.close', message: 'Close workspace' })}
        danger={dialog?.kind === 'close'}
        typed={dialog?.kind === 'close' ? here.displayName || workspace : undefined}
        act={act}
      >
        {dialog?.kind === 'reopen' ? (
          i18n.t({ id: 'settings.reopenText', message: 'The workspace stays open. Its API keys keep working.' })
        ) : (
          <div className={css.stack}>
            <p>{i18n.t({ id: 'settings.closeConfirm', message: 'In seven days, all API keys of {name} are revoked and all requests fail. Confirm with your password.', values: { name: here.displayName || workspace } })}</p>
            <p>
              {i18n.t({ id: 'settings.mustBeZero', message: 'The balance must be zero.' })} <Link to={paths.billing(workspace)}>{i18n.t({ id: 'settings.toBilling', message: 'Open billing' })}</Link>
            </p>
          </div>
        )}
      </Confirm>
    </Card>
  );
}
