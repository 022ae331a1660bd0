import { api, unwrap } from '@/api/client';
import { pages } from '@/api/paging';

export function auditQuery(workspace: string, filter: string) {
  return pages(['audit', workspace, filter], (pageToken, signal) =>
    unwrap(api.GET('/admin/v1/workspaces/{workspace}/auditEntries', { params: { path: { workspace }, query: { pageSize: 50, pageToken, filter } }, signal })),
  );
}

export function exportHref(workspace: string, filter: string): string {
  return `/admin/v1/workspaces/${encodeURIComponent(workspace)}/auditEntries:export?filter=${encodeURIComponent(filter)}`;
}

export function verify() {
  return unwrap(api.POST('/admin/v1/auditEntries:verify', { body: {} }));
}
