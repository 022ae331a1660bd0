import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function RefundsPage() {
  return <ApiPage title={i18n.t({ id: 'operator.refunds.title', message: 'Refunds to approve' })} calls={['GET /admin/v1/workspaces/WORKSPACE/adjustments']} />;
}
