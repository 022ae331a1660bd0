import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';

export function limitsQuery(workspace: string) {
  return queryOptions({
    queryKey: ['limits', workspace],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/limits', { params: { path: { workspace } }, signal })),
  });
}

export function limitUsageQuery(workspace: string) {
  return queryOptions({
    queryKey: ['limits', workspace, 'usage'],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/limits:usage', { params: { path: { workspace } }, signal })),
  });
}

// Usage of the last hour of the active keys with limits, in the order of limitedKeysQuery.
export function keyLimitUsageQuery(workspace: string) {
  return queryOptions({
    queryKey: ['limits', workspace, 'keys'],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/keys:limitUsage', { params: { path: { workspace }, query: { pageSize: 200 } }, signal })),
  });
}

// Usage of one key, by minute.
export function oneKeyLimitUsageQuery(workspace: string, key: string) {
  return queryOptions({
    queryKey: ['limits', workspace, 'keys', key],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/keys/{key}/limits:usage', { params: { path: { workspace, key } }, signal })),
  });
}

// Active keys with their own limits.
export function limitedKeysQuery(workspace: string) {
  return queryOptions({
    queryKey: ['keys', workspace, 'limits'],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/keys', { params: { path: { workspace }, query: { pageSize: 200, filter: 'state = "ACTIVE"' } }, signal })),
  });
}

export function keyModelLimitsQuery(workspace: string, key: string) {
  return queryOptions({
    queryKey: ['keyModelLimits', workspace, key],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/keys/{key}/modelLimits', { params: { path: { workspace, key } }, signal })),
  });
}

export function plansQuery() {
  return queryOptions({ queryKey: ['plans'], queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/plans', { signal })) });
}
