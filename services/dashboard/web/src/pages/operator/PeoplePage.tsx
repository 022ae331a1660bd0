import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function PeoplePage() {
  return <ApiPage title={i18n.t({ id: 'operator.people.title', message: 'People' })} calls={['GET /admin/v1/users']} />;
}
