import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function AuditPage() {
  return <ApiPage title={i18n.t({ id: 'operator.audit.title', message: 'Audit log' })} calls={['GET /admin/v1/auditEntries']} />;
}
