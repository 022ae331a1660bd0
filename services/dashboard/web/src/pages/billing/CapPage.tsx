import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function CapPage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'billing.cap.title', message: 'Cap and alerts' })} calls={[`GET /admin/v1/workspaces/${workspace}/cap`, `GET /admin/v1/workspaces/${workspace}/alertSettings`]} />;
}
