import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function LedgerPage() {
  return <ApiPage title={i18n.t({ id: 'operator.ledger.title', message: 'Ledger check' })} calls={['GET /admin/v1/ledgerVerifications']} />;
}
