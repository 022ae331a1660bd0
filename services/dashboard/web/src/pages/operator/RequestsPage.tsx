import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function RequestsPage() {
  return <ApiPage title={i18n.t({ id: 'operator.requests.title', message: 'Requests of all workspaces' })} calls={['GET /admin/v1/workspaces/-/requests/REQUEST']} />;
}
