import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function QuickstartPage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'start.quickstart.title', message: 'Quickstart' })} calls={[`POST /admin/v1/workspaces/${workspace}/keys`]} />;
}
