import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function StatementsPage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'billing.statements.title', message: 'Statements' })} calls={[`GET /admin/v1/workspaces/${workspace}/statements`]} />;
}
