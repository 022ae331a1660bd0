import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function FleetPage() {
  return <ApiPage title={i18n.t({ id: 'operator.fleet.title', message: 'Fleet' })} calls={[]} />;
}
