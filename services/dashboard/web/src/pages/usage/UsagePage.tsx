import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function UsagePage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'usage.usage.title', message: 'Usage' })} calls={[`GET /admin/v1/workspaces/${workspace}/usage:query`]} />;
}
