import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';

export function newestRequestsQuery(workspace: string, count: number) {
  return queryOptions({
    queryKey: ['requests', workspace, 'newest', count],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/requests', { params: { path: { workspace }, query: { pageSize: count } }, signal })),
  });
}
