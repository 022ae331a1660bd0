import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function OverviewPage() {
  return <ApiPage title={i18n.t({ id: 'operator.overview.title', message: 'Overview' })} calls={['GET /admin/v1/workspaces', 'GET /admin/v1/deadLetters']} />;
}
