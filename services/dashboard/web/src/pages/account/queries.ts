import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';

const me = { path: { user: 'me' } };

export function sessionsQuery() {
  return queryOptions({ queryKey: ['sessions'], queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/users/{user}/sessions', { params: me, signal })) });
}

export function tokensQuery() {
  return queryOptions({ queryKey: ['tokens'], queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/users/{user}/tokens', { params: me, signal })) });
}
