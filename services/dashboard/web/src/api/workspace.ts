// What many pages ask for, each under one query key, so that a figure is the same wherever it stands.
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

// The first 200, for names and for who may do what; the page of the members has a list of its own.
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

// Whether the person may call a method of the API here; while it is not known: no. Some roles may change only what they
// have made: createdBy is the maker, as the API names it.
export function usePermissions(workspace: string | null): (method: string, createdBy?: string) => boolean {
  const { data } = useQuery(permissionsQuery(workspace));
  const person = useSession()?.user.name.replace('users/', 'user:');
  return (method, createdBy) => {
    const permission = data?.get(method);
    if (!permission) return false;
    return !permission.ownOnly || createdBy === undefined || createdBy === person;
  };
}
