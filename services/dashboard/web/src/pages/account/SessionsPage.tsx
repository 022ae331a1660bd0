import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function SessionsPage() {
  return <ApiPage title={i18n.t({ id: 'account.sessions.title', message: 'Sessions' })} calls={['GET /admin/v1/users/me/sessions']} />;
}
