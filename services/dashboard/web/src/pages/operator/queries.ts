import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';
import { idOf, type Schema } from '@/api/types';

export type Workspace = Schema<'Workspace'>;
export type Engine = Schema<'Engine'>;
export type Process = Schema<'Process'>;
export type Payment = Schema<'Payment'>;
export type Adjustment = Schema<'Adjustment'>;
export type DeadLetter = Schema<'DeadLetter'>;
export type Verification = Schema<'LedgerVerification'>;
export type AuditEntry = Schema<'AuditEntry'>;
export type User = Schema<'User'>;
export type Plan = Schema<'Plan'>;
export type LimitValues = Schema<'LimitValues'>;

const PAGE = 50;

// The key prefix of all queries of the area, so that a change can refetch all of them.
export const AREA = 'operator';

const pages = { initialPageParam: '', getNextPageParam: (last: { nextPageToken: string }) => last.nextPageToken || undefined };
const page = (pageToken: string) => ({ pageSize: PAGE, ...(pageToken ? { pageToken } : {}) });

export function workspacePagesQuery() {
  return infiniteQueryOptions({
    queryKey: [AREA, 'workspaces'],
    queryFn: ({ pageParam, signal }) => unwrap(api.GET('/admin/v1/workspaces', { params: { query: page(pageParam) }, signal })),
    ...pages,
  });
}

export function enginesQuery() {
  return queryOptions({
    queryKey: [AREA, 'engines'],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/engines', { params: { query: { pageSize: 200 } }, signal })),
  });
}

export function processesQuery() {
  return queryOptions({
    queryKey: [AREA, 'processes'],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/processes', { signal })),
  });
}

export function catalogQuery() {
  return queryOptions({
    queryKey: [AREA, 'catalog'],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/catalogStatus', { signal })),
  });
}

export function capacityQuery() {
  return queryOptions({
    queryKey: [AREA, 'capacity'],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/models:capacity', { params: { query: { pageSize: 200 } }, signal })),
  });
}

export function catalogModelsQuery() {
  return queryOptions({
    queryKey: [AREA, 'models'],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/models', { params: { query: { pageSize: 200 } }, signal })),
  });
}

// workspace "-": all workspaces.
export function paymentsQuery(workspace: string, state: string) {
  return infiniteQueryOptions({
    queryKey: [AREA, 'payments', workspace, state],
    queryFn: ({ pageParam, signal }) =>
      unwrap(api.GET('/admin/v1/workspaces/{workspace}/payments', { params: { path: { workspace }, query: { ...page(pageParam), ...(state ? { filter: `state = "${state}"` } : {}) } }, signal })),
    ...pages,
  });
}

export function adjustmentsQuery(workspace: string, state: string) {
  return infiniteQueryOptions({
    queryKey: [AREA, 'adjustments', workspace, state],
    queryFn: ({ pageParam, signal }) =>
      unwrap(api.GET('/admin/v1/workspaces/{workspace}/adjustments', { params: { path: { workspace }, query: { ...page(pageParam), ...(state ? { filter: `state = "${state}"` } : {}) } }, signal })),
    ...pages,
  });
}

export function grantsQuery(workspace: string) {
  return queryOptions({
    queryKey: [AREA, 'grants', workspace],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/creditGrants', { params: { path: { workspace }, query: { pageSize: 20 } }, signal })),
  });
}

export function limitsQuery(workspace: string) {
  return queryOptions({
    queryKey: [AREA, 'limits', workspace],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/limits', { params: { path: { workspace } }, signal })),
  });
}

export function plansQuery() {
  return queryOptions({
    queryKey: [AREA, 'plans'],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/plans', { signal })),
  });
}

export function supportSessionsQuery(workspace: string) {
  return queryOptions({
    queryKey: [AREA, 'support', workspace],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/supportSessions', { params: { path: { workspace }, query: { pageSize: 20 } }, signal })),
  });
}

export function deadLettersQuery(showResolved: boolean) {
  return infiniteQueryOptions({
    queryKey: [AREA, 'deadLetters', showResolved],
    queryFn: ({ pageParam, signal }) => unwrap(api.GET('/admin/v1/deadLetters', { params: { query: { ...page(pageParam), showResolved } }, signal })),
    ...pages,
  });
}

export function verificationsQuery() {
  return infiniteQueryOptions({
    queryKey: [AREA, 'verifications'],
    queryFn: ({ pageParam, signal }) => unwrap(api.GET('/admin/v1/ledgerVerifications', { params: { query: page(pageParam) }, signal })),
    ...pages,
  });
}

export interface AuditFilter {
  actor: string;
  action: string;
  subject: string;
}

// The filter in the API's syntax. A text with a quotation mark cannot match.
export function auditFilterText({ actor, action, subject }: AuditFilter): string {
  return Object.entries({ actor, action, subject })
    .filter(([, value]) => value !== '')
    .map(([field, value]) => `${field} = "${value.replaceAll('"', '')}"`)
    .join(' AND ');
}

export function auditQuery(filter: AuditFilter) {
  const text = auditFilterText(filter);
  return infiniteQueryOptions({
    queryKey: [AREA, 'audit', text],
    queryFn: ({ pageParam, signal }) => unwrap(api.GET('/admin/v1/auditEntries', { params: { query: { ...page(pageParam), ...(text ? { filter: text } : {}) } }, signal })),
    ...pages,
  });
}

export function usersQuery() {
  return infiniteQueryOptions({
    queryKey: [AREA, 'users'],
    queryFn: ({ pageParam, signal }) => unwrap(api.GET('/admin/v1/users', { params: { query: page(pageParam) }, signal })),
    ...pages,
  });
}

// Calls that change something.

export function createWorkspace(requestId: string, workspaceId: string, workspace: { displayName: string; reportTimeZone: string }) {
  return unwrap(api.POST('/admin/v1/workspaces', { params: { query: { requestId, ...(workspaceId ? { workspaceId } : {}) } }, body: workspace as never }));
}

export function grantCredit(workspace: string, requestId: string, grant: { amountUsd: string; paid: boolean; reason: string }) {
  return unwrap(api.POST('/admin/v1/workspaces/{workspace}/creditGrants', { params: { path: { workspace }, query: { requestId } }, body: grant as never }));
}

export function createAdjustment(workspace: string, requestId: string, adjustment: Partial<Adjustment>) {
  return unwrap(api.POST('/admin/v1/workspaces/{workspace}/adjustments', { params: { path: { workspace }, query: { requestId } }, body: adjustment as never }));
}

export function decide(adjustment: Adjustment, approve: boolean, requestId: string, reason: string) {
  const [, workspace = '', , id = ''] = adjustment.name.split('/');
  const options = { params: { path: { workspace, adjustment: id } }, body: { requestId, reason } };
  return approve
    ? unwrap(api.POST('/admin/v1/workspaces/{workspace}/adjustments/{adjustment}:approve', options))
    : unwrap(api.POST('/admin/v1/workspaces/{workspace}/adjustments/{adjustment}:reject', options));
}

export function setFrozen(workspace: string, frozen: boolean, requestId: string, reason: string) {
  const options = { params: { path: { workspace } }, body: { requestId, reason } };
  return frozen ? unwrap(api.POST('/admin/v1/workspaces/{workspace}:freeze', options)) : unwrap(api.POST('/admin/v1/workspaces/{workspace}:unfreeze', options));
}

export function updateLimits(workspace: string, requestId: string, limits: { plan: string; workspaceLimits: Partial<LimitValues> }) {
  return unwrap(
    api.PATCH('/admin/v1/workspaces/{workspace}/limits', {
      params: { path: { workspace }, query: { updateMask: 'plan,workspaceLimits', requestId } },
      body: limits as never,
    }),
  );
}

export function updatePlan(plan: string, requestId: string, values: Partial<Plan>) {
  return unwrap(
    api.PATCH('/admin/v1/plans/{plan}', {
      params: { path: { plan }, query: { updateMask: 'workspaceLimits,keyLimits,shadow', requestId } },
      body: values as never,
    }),
  );
}

export function createSupportSession(workspace: string, requestId: string, reason: string) {
  return unwrap(api.POST('/admin/v1/workspaces/{workspace}/supportSessions', { params: { path: { workspace }, query: { requestId } }, body: { reason } as never }));
}

export function endSupportSession(workspace: string, supportSession: string) {
  return unwrap(api.POST('/admin/v1/workspaces/{workspace}/supportSessions/{supportSession}:end', { params: { path: { workspace, supportSession } }, body: {} as never }));
}

export function setDrained(engine: string, drained: boolean, requestId: string, reason: string) {
  const options = { params: { path: { engine } }, body: { requestId, reason } };
  return drained ? unwrap(api.POST('/admin/v1/engines/{engine}:drain', options)) : unwrap(api.POST('/admin/v1/engines/{engine}:resume', options));
}

const paymentPath = (payment: Payment) => {
  const [, workspace = '', , id = ''] = payment.name.split('/');
  return { path: { workspace, payment: id } };
};

export function confirmPayment(payment: Payment, requestId: string, reference: string) {
  return unwrap(api.POST('/admin/v1/workspaces/{workspace}/payments/{payment}:confirm', { params: paymentPath(payment), body: { requestId, reference } }));
}

// giveUp: ends a payment whose result is unknown.
export function cancelPayment(payment: Payment, requestId: string, reason: string, giveUp = false) {
  return unwrap(api.POST('/admin/v1/workspaces/{workspace}/payments/{payment}:cancel', { params: paymentPath(payment), body: { requestId, reason, ...(giveUp ? { giveUp } : {}) } }));
}

// adopt: the provider's id of a refund that was made there; empty: the provider makes one.
export function refundPayment(payment: Payment, requestId: string, amountUsd: string, reason: string, adopt: string) {
  return unwrap(api.POST('/admin/v1/workspaces/{workspace}/payments/{payment}:refund', { params: paymentPath(payment), body: { requestId, amountUsd, reason, ...(adopt ? { adopt } : {}) } }));
}

export function reconcilePayments(adopt: boolean) {
  return unwrap(api.POST('/admin/v1/payments:reconcile', { body: { adopt } as never }));
}

export function resolveDeadLetter(letter: DeadLetter, retry: boolean, requestId: string, reason: string) {
  const options = { params: { path: { deadLetter: idOf(letter.name) } }, body: { requestId, reason } };
  return retry ? unwrap(api.POST('/admin/v1/deadLetters/{deadLetter}:retry', options)) : unwrap(api.POST('/admin/v1/deadLetters/{deadLetter}:writeOff', options));
}

export function startVerification(requestId: string, workspace: string) {
  return unwrap(api.POST('/admin/v1/ledgerVerifications', { params: { query: { requestId } }, body: (workspace ? { workspace: `workspaces/${workspace}` } : {}) as never }));
}

export function cancelVerification(verification: Verification) {
  return unwrap(api.POST('/admin/v1/ledgerVerifications/{ledgerVerification}:cancel', { params: { path: { ledgerVerification: idOf(verification.name) } }, body: {} as never }));
}

export function verifyAudit() {
  return unwrap(api.POST('/admin/v1/auditEntries:verify', { body: {} as never }));
}

export function createUser(requestId: string, user: { email: string; displayName: string; platformOperator: boolean }) {
  return unwrap(api.POST('/admin/v1/users', { params: { query: { requestId } }, body: user as never }));
}

export function updateUser(user: User, change: Partial<User>, mask: string) {
  return unwrap(api.PATCH('/admin/v1/users/{user}', { params: { path: { user: idOf(user.name) }, query: { updateMask: mask } }, body: change as never }));
}

export function createSignInLink(user: User) {
  return unwrap(api.POST('/admin/v1/users/{user}:createSignInLink', { params: { path: { user: idOf(user.name) } }, body: {} as never }));
}

export function resetTotp(user: User) {
  return unwrap(api.POST('/admin/v1/users/{user}:resetTotp', { params: { path: { user: idOf(user.name) } }, body: {} as never }));
}
