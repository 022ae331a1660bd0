// Names of API keys, for lists that have only ids.
import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, unwrap } from './client';
import { idOf, type Schema } from './types';

export interface NamedKey {
  id: string;
  name: string;
  state: Schema<'Key'>['state'];
}

// The newest 200 keys, and in a larger workspace also the keys with the highest spend.
export function keyNamesQuery(workspace: string) {
  return queryOptions({
    queryKey: ['keys', workspace, 'names'],
    queryFn: async ({ signal }) => {
      const list = async (query: { pageSize?: number; view?: 'KEY_VIEW_TOP_SPENT' }) =>
        unwrap(api.GET('/admin/v1/workspaces/{workspace}/keys', { params: { path: { workspace }, query }, signal }));
      const newest = await list({ pageSize: 200 });
      const keys = newest.nextPageToken === '' ? newest.keys : [...newest.keys, ...(await list({ view: 'KEY_VIEW_TOP_SPENT' })).keys];
      const known = new Map<string, NamedKey>();
      for (const key of keys) known.set(idOf(key.name), { id: idOf(key.name), name: key.displayName || idOf(key.name), state: key.state });
      return known;
    },
    staleTime: 60_000,
  });
}

export function namesIn(known: Map<string, NamedKey> | undefined): (id: string) => string {
  return (id) => known?.get(idOf(id))?.name ?? idOf(id);
}

// wanted: false avoids the call while no name is shown.
export function useKeyNames(workspace: string, wanted = true): { nameOf: (id: string) => string; keys: NamedKey[]; find: (id: string) => NamedKey | undefined } {
  const { data } = useQuery({ ...keyNamesQuery(workspace), enabled: wanted });
  return {
    nameOf: namesIn(data),
    keys: [...(data?.values() ?? [])],
    find: (id) => data?.get(idOf(id)),
  };
}
