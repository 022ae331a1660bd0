import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function RequestPage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'usage.request.title', message: 'Request' })} calls={[`GET /admin/v1/workspaces/${workspace}/requests/REQUEST`]} />;
}
