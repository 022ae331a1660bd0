import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function TokensPage() {
  return <ApiPage title={i18n.t({ id: 'account.tokens.title', message: 'Access tokens' })} calls={['GET /admin/v1/users/me/tokens']} />;
}
