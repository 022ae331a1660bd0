import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function AuditPage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'audit.audit.title', message: 'Audit log' })} calls={[`GET /admin/v1/workspaces/${workspace}/auditEntries`]} />;
}
