import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { usePermissions, workspaceQuery } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useWorkspace } from '@/app/search';
import { Card, ErrorState, Facts, Link, Page, RowSkeletons, Time } from '@/ui';
import { WhoCan } from '@/ui/WhoCan';
import { CloseCard } from './CloseCard';
import { General } from './General';
import { Support } from './Support';
import { Webhooks } from './Webhooks';

export default function SettingsPage() {
  const workspace = useWorkspace();
  const may = usePermissions(workspace);
  const query = useQuery(workspaceQuery(workspace));
  const here = query.data;
  return (
    <Page title={i18n.t({ id: 'settings.title', message: 'Settings' })} narrow>
      <Card title={i18n.t({ id: 'settings.general', message: 'Workspace' })}>
        {here === undefined ? (
          query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'settings.what', message: 'the workspace' })} retry={() => void query.refetch()} /> : <RowSkeletons rows={4} />
        ) : may('WorkspaceService/UpdateWorkspace') ? (
          <General workspace={workspace} here={here} />
        ) : (
          <>
            <Facts
              facts={[
                { label: i18n.t({ id: 'settings.name', message: 'Name' }), value: here.displayName },
                { label: i18n.t({ id: 'settings.zone', message: 'Report time zone' }), value: here.reportTimeZone },
                { label: i18n.t({ id: 'settings.made', message: 'Created' }), value: <Time at={here.createTime} exact /> },
              ]}
            />
            <WhoCan workspace={workspace} roles={['owner', 'admin']} />
          </>
        )}
      </Card>
      {may('AlertService/ListWebhooks') && <Webhooks workspace={workspace} />}
      {may('AlertService/GetAlertSettings') && (
        <Card title={i18n.t({ id: 'settings.notices', message: 'Email alerts' })}>
          <p>
            {i18n.t({ id: 'settings.noticesText', message: 'Choose who receives alerts about low credit, the cap, and paused auto-reload in' })} <Link to={paths.cap(workspace)}>{i18n.t({ id: 'settings.noticesLink', message: 'Billing, Cap and alerts' })}</Link>
          </p>
        </Card>
      )}
      {may('SupportSessionService/ListSupportSessions') && <Support workspace={workspace} mayEnd={may('SupportSessionService/EndSupportSession')} />}
      {here && <CloseCard workspace={workspace} here={here} mayClose={may('WorkspaceService/CloseWorkspace')} />}
    </Page>
  );
}
