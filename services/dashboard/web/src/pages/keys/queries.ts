import { infiniteQueryOptions, queryOptions, type QueryClient } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';
import { idOf, type Schema } from '@/api/types';

export type Key = Schema<'Key'>;

// The views of the list: all keys, keys of one state, or keys by spend.
export const VIEWS = ['all', 'active', 'disabled', 'revoked', 'top'] as const;
export type View = (typeof VIEWS)[number];

export interface KeyFilter {
  view: View;
  query: string;
}

const PAGE = 100;

function request({ view, query }: KeyFilter, pageToken: string) {
  if (view === 'top') return { view: 'KEY_VIEW_TOP_SPENT' as const };
  return {
    pageSize: PAGE,
    ...(pageToken ? { pageToken } : {}),
    ...(query ? { query } : {}),
    ...(view === 'all' ? {} : { filter: `state = "${view.toUpperCase()}"` }),
  };
}

export function keysQuery(workspace: string, filter: KeyFilter) {
  return infiniteQueryOptions({
    queryKey: ['keys', workspace, 'list', filter],
    queryFn: ({ pageParam, signal }) =>
      unwrap(api.GET('/admin/v1/workspaces/{workspace}/keys', { params: { path: { workspace }, query: request(filter, pageParam) }, signal })),
    initialPageParam: '',
    getNextPageParam: (last) => last.nextPageToken || undefined,
  });
}

export function keyQuery(workspace: string, key: string) {
  return queryOptions({
    queryKey: ['keys', workspace, 'one', key],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/keys/{key}', { params: { path: { workspace, key } }, signal })),
  });
}

const path = (workspace: string, key: string) => ({ params: { path: { workspace, key } } });

export function createKey(workspace: string, requestId: string, key: Partial<Key>) {
  return unwrap(api.POST('/admin/v1/workspaces/{workspace}/keys', { params: { path: { workspace }, query: { requestId } }, body: key as never }));
}

export function rotateKey(workspace: string, key: string, requestId: string, overlapSeconds: number) {
  return unwrap(api.POST('/admin/v1/workspaces/{workspace}/keys/{key}:rotate', { ...path(workspace, key), body: { requestId, overlap: `${overlapSeconds}s` } }));
}

export function disableKey(workspace: string, key: string, requestId: string) {
  return unwrap(api.POST('/admin/v1/workspaces/{workspace}/keys/{key}:disable', { ...path(workspace, key), body: { requestId } }));
}

export function enableKey(workspace: string, key: string, requestId: string) {
  return unwrap(api.POST('/admin/v1/workspaces/{workspace}/keys/{key}:enable', { ...path(workspace, key), body: { requestId } }));
}

export function revokeKey(workspace: string, key: string, requestId: string) {
  return unwrap(api.POST('/admin/v1/workspaces/{workspace}/keys/{key}:revoke', { ...path(workspace, key), body: { requestId } }));
}

export function updateKey(workspace: string, key: string, change: Partial<Key>, mask: string[]) {
  return unwrap(
    api.PATCH('/admin/v1/workspaces/{workspace}/keys/{key}', {
      params: { path: { workspace, key }, query: { updateMask: mask.join(',') } },
      body: change as never,
    }),
  );
}

// Refetches the lists and the key after a change.
export function keysChanged(client: QueryClient, workspace: string): Promise<void> {
  return client.invalidateQueries({ queryKey: ['keys', workspace] });
}

export function keyName(key: Key): string {
  return key.displayName || idOf(key.name);
}
