import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function PaymentsPage() {
  return <ApiPage title={i18n.t({ id: 'operator.payments.title', message: 'Payments' })} calls={['GET /admin/v1/workspaces/WORKSPACE/payments']} />;
}
