import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function StatementPage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'billing.statement.title', message: 'Statement' })} calls={[`GET /admin/v1/workspaces/${workspace}/statements/MONTH`]} />;
}
