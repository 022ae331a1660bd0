import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function RequestsPage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'usage.requests.title', message: 'Requests' })} calls={[`GET /admin/v1/workspaces/${workspace}/requests`]} />;
}
