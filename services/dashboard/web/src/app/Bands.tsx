// The notices above the pages of a workspace: demonstration data, support session.
import { i18n } from '@lingui/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { api } from '@/api/client';
import { forgetSupport, useSupport } from '@/api/support';
import { Time } from '@/ui/Time';
import { TextButton } from '@/ui/states';
import css from './Bands.module.css';
import { paths } from './paths';

export function DemonstrationBand() {
  return <div className={css.demonstration}>{i18n.t({ id: 'frame.demonstration', message: 'Demonstration data. Usage is recorded in the ledger but never billed.' })}</div>;
}

export function SupportBand({ workspace, name }: { workspace: string | null; name: string }) {
  const support = useSupport();
  const client = useQueryClient();
  const navigate = useNavigate();
  if (!support || support.workspace !== workspace) return null;
  const leave = async () => {
    forgetSupport();
    client.clear();
    await navigate({ to: paths.operatorWorkspace(support.workspace) });
    // If this call fails, the session expires by itself.
    await api
      .POST('/admin/v1/workspaces/{workspace}/supportSessions/{supportSession}:end', { params: { path: { workspace: support.workspace, supportSession: support.session } }, body: {} as never })
      .catch(() => undefined);
  };
  return (
    <div className={css.support} role="status">
      {i18n.t({ id: 'frame.support', message: 'You are viewing {name} as support. Access is read-only and logged.', values: { name } })} {i18n.t({ id: 'frame.supportEnds', message: 'The session ends' })} <Time at={support.ends} exact />.{' '}
      <TextButton onClick={() => void leave()}>{i18n.t({ id: 'frame.leave', message: 'End session' })}</TextButton>
    </div>
  );
}
