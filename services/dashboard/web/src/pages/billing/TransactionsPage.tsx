import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function TransactionsPage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'billing.transactions.title', message: 'Transactions' })} calls={[`GET /admin/v1/workspaces/${workspace}/transactions`]} />;
}
