import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';
import { pages } from '@/api/paging';

const at = (workspace: string) => ({ path: { workspace } });

// origin: CUSTOMER or AUTO_RELOAD; empty: all.
export function paymentsQuery(workspace: string, origin = '') {
  return pages(['payments', workspace, origin], (pageToken, signal) =>
    unwrap(
      api.GET('/admin/v1/workspaces/{workspace}/payments', {
        params: { ...at(workspace), query: { pageSize: 20, pageToken, ...(origin ? { filter: `origin = "${origin}"` } : {}) } },
        signal,
      }),
    ),
  );
}

export function methodsQuery(workspace: string) {
  return queryOptions({
    queryKey: ['paymentMethods', workspace],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/paymentMethods', { params: at(workspace), signal })),
  });
}

export function autoReloadQuery(workspace: string) {
  return queryOptions({
    queryKey: ['autoReload', workspace],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/autoReload', { params: at(workspace), signal })),
  });
}

export function capQuery(workspace: string) {
  return queryOptions({
    queryKey: ['cap', workspace],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/cap', { params: at(workspace), signal })),
  });
}

export function alertsQuery(workspace: string) {
  return queryOptions({
    queryKey: ['alertSettings', workspace],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/alertSettings', { params: at(workspace), signal })),
  });
}

export function transactionsQuery(workspace: string, filter: string) {
  return pages(['transactions', workspace, filter], (pageToken, signal) =>
    unwrap(api.GET('/admin/v1/workspaces/{workspace}/transactions', { params: { ...at(workspace), query: { pageSize: 50, pageToken, filter } }, signal })),
  );
}

export function statementsQuery(workspace: string) {
  return pages(['statements', workspace], (pageToken, signal) =>
    unwrap(api.GET('/admin/v1/workspaces/{workspace}/statements', { params: { ...at(workspace), query: { pageSize: 24, pageToken } }, signal })),
  );
}

export function statementQuery(workspace: string, statement: string) {
  return queryOptions({
    queryKey: ['statement', workspace, statement],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/statements/{statement}', { params: { path: { workspace, statement } }, signal })),
  });
}

// Downloads are plain links, because the browser sends the cookie.
export function statementHref(workspace: string, month: string, format: 'PDF' | 'CSV'): string {
  return `/admin/v1/workspaces/${encodeURIComponent(workspace)}/statements/${encodeURIComponent(month)}:download?format=STATEMENT_FORMAT_${format}`;
}
