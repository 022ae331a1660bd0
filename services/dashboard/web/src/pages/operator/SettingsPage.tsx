import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function SettingsPage() {
  return <ApiPage title={i18n.t({ id: 'operator.settings.title', message: 'Settings' })} calls={['GET /admin/v1/plans']} />;
}
