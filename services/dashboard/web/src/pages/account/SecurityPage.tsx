import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function SecurityPage() {
  return <ApiPage title={i18n.t({ id: 'account.security.title', message: 'Security' })} calls={['POST /session/v1/password', 'POST /session/v1/totp/start']} />;
}
