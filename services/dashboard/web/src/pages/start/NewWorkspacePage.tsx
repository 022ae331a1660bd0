import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function NewWorkspacePage() {
  return <ApiPage title={i18n.t({ id: 'start.newWorkspace.title', message: 'New workspace' })} calls={['POST /admin/v1/workspaces']} />;
}
