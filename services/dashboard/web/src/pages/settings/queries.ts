import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';

export function webhooksQuery(workspace: string) {
  return queryOptions({
    queryKey: ['webhooks', workspace],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/webhooks', { params: { path: { workspace } }, signal })),
  });
}

export function supportSessionsQuery(workspace: string) {
  return queryOptions({
    queryKey: ['supportSessions', workspace],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/supportSessions', { params: { path: { workspace }, query: { pageSize: 5 } }, signal })),
  });
}
