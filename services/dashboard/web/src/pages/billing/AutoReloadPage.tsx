import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function AutoReloadPage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'billing.autoReload.title', message: 'Auto-reload' })} calls={[`GET /admin/v1/workspaces/${workspace}/autoReload`]} />;
}
