import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';
import { idOf, type Schema } from '@/api/types';

export type Receipt = Schema<'Receipt'>;

export const OUTCOMES = ['completed', 'failed_before_output', 'failed_mid_stream', 'client_gone', 'recovered'] as const;

export interface RequestFilter {
  key?: string;
  model?: string;
  outcome?: string;
  start?: Date;
  end?: Date;
  clientRequestId?: string;
}

// Quotes a text for a filter of the API.
export function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`;
}

export function filterText({ key, model, outcome, start, end, clientRequestId }: RequestFilter): string {
  const terms = [
    key && `key = ${quoted(key)}`,
    model && `model = ${quoted(model)}`,
    outcome && `outcome = ${quoted(outcome)}`,
    clientRequestId && `client_request_id = ${quoted(clientRequestId)}`,
    start && `create_time >= "${start.toISOString()}"`,
    end && `create_time < "${end.toISOString()}"`,
  ];
  return terms.filter(Boolean).join(' AND ');
}

// id: the cache key of the filter. what: returns the filter at the time of the call. A page token belongs to one filter
// text, so further pages repeat that text.
export function requestsQuery(workspace: string, id: unknown, what: () => RequestFilter, pageSize = 50) {
  return infiniteQueryOptions({
    queryKey: ['requests', workspace, 'list', id, pageSize],
    queryFn: async ({ pageParam, signal }) => {
      const filter = pageParam?.filter ?? filterText(what());
      const query = { pageSize, filter, ...(pageParam ? { pageToken: pageParam.token } : {}) };
      const page = await unwrap(api.GET('/admin/v1/workspaces/{workspace}/requests', { params: { path: { workspace }, query }, signal }));
      return { ...page, filter };
    },
    initialPageParam: null as { token: string; filter: string } | null,
    getNextPageParam: (last) => (last.nextPageToken ? { token: last.nextPageToken, filter: last.filter } : undefined),
  });
}

// Finds a request by its own id, an x-request-id or the id of a response.
export function requestQuery(workspace: string, request: string) {
  return queryOptions({
    queryKey: ['requests', workspace, 'one', request],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/requests/{request}', { params: { path: { workspace, request } }, signal })),
    enabled: request !== '',
  });
}

export function receiptId(receipt: Receipt): string {
  return idOf(receipt.name);
}
