import { i18n } from '@lingui/core';
import { useWorkspace } from '@/app/search';
import { ApiPage } from '@/ui/ApiPage';

export default function MembersPage() {
  const workspace = useWorkspace();
  return <ApiPage title={i18n.t({ id: 'members.members.title', message: 'Members' })} calls={[`GET /admin/v1/workspaces/${workspace}/members`, `POST /admin/v1/workspaces/${workspace}/invitations`]} />;
}
