// Queries that several pages share. One query key per call keeps a figure the same on all of them.
import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, unwrap } from './client';
import { useSession } from './session';

export const POLL_FAST = 5_000; // home tiles, running requests, health of engines
export const POLL = 15_000;

export function permissionsQuery(workspace: string | null) {
  return queryOptions({
    queryKey: ['permissions', workspace],
    queryFn: async ({ signal }) => {
      const query = workspace === null ? {} : { parent: `workspaces/${workspace}` };
      const answer = await unwrap(api.GET('/admin/v1/users/me:permissions', { params: { query }, signal }));
      return new Map(answer.permissions.map((one) => [one.method, one]));
    },
    staleTime: 60_000,
  });
}

export function balanceQuery(workspace: string) {
  return queryOptions({
    queryKey: ['balance', workspace],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/balance', { params: { path: { workspace } }, signal })),
  });
}

export function workspaceQuery(workspace: string) {
  return queryOptions({
    queryKey: ['workspace', workspace],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}', { params: { path: { workspace } }, signal })),
    staleTime: 60_000,
  });
}

// The first 200 members, for names and roles. The members page has its own list.
export function membersQuery(workspace: string) {
  return queryOptions({
    queryKey: ['members', workspace, 'names'],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/members', { params: { path: { workspace }, query: { pageSize: 200 } }, signal })),
    staleTime: 60_000,
  });
}

export function workspacesQuery() {
  return queryOptions({
    queryKey: ['workspaces'],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces', { params: { query: { pageSize: 200 } }, signal })),
    staleTime: 60_000,
  });
}

export function meQuery() {
  return queryOptions({
    queryKey: ['me'],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/users/{user}', { params: { path: { user: 'me' } }, signal })),
    staleTime: 60_000,
  });
}

export function summaryQuery(workspace: string) {
  return queryOptions({
    queryKey: ['summary', workspace],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/summary', { params: { path: { workspace } }, signal })),
  });
}

export function modelsQuery() {
  return queryOptions({
    queryKey: ['models'],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/models', { params: { query: { pageSize: 200 } }, signal })),
    staleTime: 60_000,
  });
}

// Whether the person may call a method of the API here; false until the permissions are loaded. Some roles may change
// only their own resources: createdBy is the creator as the API names it.
export function usePermissions(workspace: string | null): (method: string, createdBy?: string) => boolean {
  const { data } = useQuery(permissionsQuery(workspace));
  const person = useSession()?.user.name.replace('users/', 'user:');
  return (method, createdBy) => {
    const permission = data?.get(method);
    if (!permission) return false;
    return !permission.ownOnly || createdBy === undefined || createdBy === person;
  };
}
