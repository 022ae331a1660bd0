import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function LimitsPage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'limits.limits.title', message: 'Limits' })} calls={[`GET /admin/v1/workspaces/${workspace}/limits`, `GET /admin/v1/workspaces/${workspace}/limits:usage`]} />;
}
