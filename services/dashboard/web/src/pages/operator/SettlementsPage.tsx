import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function SettlementsPage() {
  return <ApiPage title={i18n.t({ id: 'operator.settlements.title', message: 'Settlements waiting' })} calls={['GET /admin/v1/deadLetters']} />;
}
