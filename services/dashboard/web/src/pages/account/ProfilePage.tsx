import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function ProfilePage() {
  return <ApiPage title={i18n.t({ id: 'account.profile.title', message: 'Profile' })} calls={['GET /admin/v1/users/me', 'PATCH /admin/v1/users/me']} />;
}
