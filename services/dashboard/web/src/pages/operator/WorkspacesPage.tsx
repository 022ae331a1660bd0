import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function WorkspacesPage() {
  return <ApiPage title={i18n.t({ id: 'operator.workspaces.title', message: 'Workspaces' })} calls={['GET /admin/v1/workspaces']} />;
}
