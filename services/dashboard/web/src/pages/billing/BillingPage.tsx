import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function BillingPage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'billing.billing.title', message: 'Billing' })} calls={[`GET /admin/v1/workspaces/${workspace}/balance`, `POST /admin/v1/workspaces/${workspace}/payments`]} />;
}
