import { api, unwrap } from '@/api/client';
import { pages } from '@/api/paging';

// query: the start of a name or an email address.
export function memberListQuery(workspace: string, query: string) {
  return pages(['members', workspace, 'list', query], (pageToken, signal) =>
    unwrap(api.GET('/admin/v1/workspaces/{workspace}/members', { params: { path: { workspace }, query: { pageSize: 50, pageToken, query } }, signal })),
  );
}

export function invitationsQuery(workspace: string) {
  return pages(['invitations', workspace], (pageToken, signal) =>
    unwrap(api.GET('/admin/v1/workspaces/{workspace}/invitations', { params: { path: { workspace }, query: { pageSize: 50, pageToken } }, signal })),
  );
}
