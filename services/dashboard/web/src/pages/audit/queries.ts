import { api, unwrap } from '@/api/client';
import { pages } from '@/api/paging';

export interface AuditFilter {
  actor: string;
  action: string;
  subject: string;
  start: string; // RFC 3339
  end: string; // empty: until now
}

const quoted = (text: string) => `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;

// As the API takes it.
export function filterText(filter: AuditFilter): string {
  return [
    ...(['actor', 'action', 'subject'] as const).filter((name) => filter[name] !== '').map((name) => `${name} = ${quoted(filter[name])}`),
    `time >= ${quoted(filter.start)}`,
    ...(filter.end ? [`time < ${quoted(filter.end)}`] : []),
  ].join(' AND ');
}

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
