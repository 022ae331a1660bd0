import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function SettingsPage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'settings.settings.title', message: 'Settings' })} calls={[`PATCH /admin/v1/workspaces/${workspace}`, `GET /admin/v1/workspaces/${workspace}/webhooks`]} />;
}
