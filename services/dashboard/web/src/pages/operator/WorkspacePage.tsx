import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function WorkspacePage() {
  return <ApiPage title={i18n.t({ id: 'operator.workspace.title', message: 'Workspace' })} calls={['GET /admin/v1/workspaces/WORKSPACE']} />;
}
