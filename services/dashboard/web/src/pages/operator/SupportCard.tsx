// Support sessions: viewing a workspace as its owner, read-only and recorded in its audit log.
import { i18n } from '@lingui/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { newRequestId } from '@/api/client';
import { beginSupport } from '@/api/support';
import { idOf, type Schema } from '@/api/types';
import { usePermissions } from '@/api/workspace';
import { paths } from '@/app/paths';
import { count } from '@/format/money';
import { asDate } from '@/format/time';
import { Button, DataTable, Dialog, DialogForm, EmptyState, TextField, Time, useFields, useNow } from '@/ui';
import { AREA, createSupportSession, endSupportSession, supportSessionsQuery } from './queries';

export function SupportCard({ workspace }: { workspace: string }) {
  const may = usePermissions(null);
  const client = useQueryClient();
  const now = useNow();
  const query = useQuery(supportSessionsQuery(workspace));
  const runs = (session: Schema<'SupportSession'>) => (asDate(session.expireTime) ?? now) > now;
  const end = async (name: string) => {
    await endSupportSession(workspace, idOf(name));
    await client.invalidateQueries({ queryKey: [AREA, 'support', workspace] });
  };
  return (
    <DataTable<Schema<'SupportSession'>>
      label={i18n.t({ id: 'operator.supportSessions', message: 'Support sessions' })}
      what={i18n.t({ id: 'operator.supportWhat', message: 'the support sessions' })}
      columns={[
        { id: 'time', header: i18n.t({ id: 'operator.begun', message: 'Started' }), weight: 1.4, cell: (session) => <Time at={session.createTime} exact /> },
        { id: 'actor', header: i18n.t({ id: 'operator.by', message: 'By' }), weight: 1.4, wide: true, cell: (session) => session.actor },
        { id: 'reason', header: i18n.t({ id: 'operator.reasonColumn', message: 'Reason' }), weight: 2, cell: (session) => session.reason },
        { id: 'uses', header: i18n.t({ id: 'operator.calls', message: 'Calls' }), weight: 0.7, align: 'end', wide: true, cell: (session) => <span className="num">{count(session.useCount)}</span> },
        { id: 'ends', header: i18n.t({ id: 'operator.ends', message: 'Ends' }), weight: 1.4, wide: true, cell: (session) => <Time at={session.expireTime} exact /> },
        { id: 'end', header: i18n.t({ id: 'operator.actions', message: 'Actions' }), headerHidden: true, weight: 0.8, align: 'end', cell: (session) => runs(session) && may('SupportSessionService/EndSupportSession') && <Button small onClick={() => void end(session.name)}>{i18n.t({ id: 'operator.endNow', message: 'End' })}</Button> },
      ]}
      rows={query.data?.supportSessions}
      rowKey={(session) => session.name}
      error={query.error}
      retry={() => void query.refetch()}
      empty={<EmptyState title={i18n.t({ id: 'operator.noSupport', message: 'No support sessions yet' })}>{i18n.t({ id: 'operator.noSupportText', message: 'Owners and admins of the workspace see all support sessions and can end them.' })}</EmptyState>}
    />
  );
}

export function SupportDialog({ workspace, opened, onClose }: { workspace: string; opened: boolean; onClose: () => void }) {
  return (
    <Dialog opened={opened} onClose={onClose} title={i18n.t({ id: 'operator.viewAsSupport', message: 'View as support' })}>
      {opened && <SupportForm workspace={workspace} onClose={onClose} />}
    </Dialog>
  );
}

function SupportForm({ workspace, onClose }: { workspace: string; onClose: () => void }) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const [requestId] = useState(newRequestId);
  const fields = useFields({ reason: '' }, async ({ reason }) => {
    const made = await createSupportSession(workspace, requestId, reason.trim());
    onClose();
    if (!made.supportSession) return;
    // The secret is in memory only: a reload ends the view, not the session.
    beginSupport({ workspace, session: idOf(made.supportSession.name), secret: made.secret, ends: made.supportSession.expireTime });
    client.clear();
    await navigate({ to: paths.home(workspace) });
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'operator.view', message: 'View' })} onCancel={onClose}>
      <p>{i18n.t({ id: 'operator.supportText', message: 'You see what the owner sees, for one hour at most, and cannot change anything. The workspace’s audit log records every request.' })}</p>
      <TextField label={i18n.t({ id: 'operator.supportReason', message: 'Reason (visible to the owners of the workspace)' })} autoFocus maxLength={500} {...fields.bind('reason')} />
    </DialogForm>
  );
}
