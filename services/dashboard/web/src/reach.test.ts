// Every method of the admin API that people need is called by a page, and every page is linked from another one. The
// exceptions are listed here with a reason.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { paths } from './app/paths';

const LISTED = 'the list carries all that its page shows';
const NO_PAGE: Record<string, string> = {
  AdjustmentService_GetCreditGrant: LISTED,
  AdjustmentService_GetAdjustment: LISTED,
  AuditService_GetAuditEntry: LISTED,
  DeadLetterService_GetDeadLetter: LISTED,
  EngineService_GetEngine: LISTED,
  LedgerService_GetTransaction: LISTED,
  LedgerVerificationService_GetLedgerVerification: LISTED,
  LimitService_GetPlan: LISTED,
  MemberService_GetMember: LISTED,
  ModelService_GetModel: LISTED,
  PaymentService_GetPayment: LISTED,
  KeyService_ImportKeys: 'used by programs for a migration from another system (docs/operations.md)',
  KeyService_ReportLeakedKey: 'used by programs that search for leaked keys',
  LedgerService_OpenWallet: 'the first credit or payment opens the wallet; only programs call it',
  LedgerService_RepairClock: 'a ledger is repaired with the command line, together with the log of the fault',
};

const root = fileURLToPath(new URL('.', import.meta.url));
const sources = (readdirSync(root, { recursive: true }) as string[]).filter((name) => /\.tsx?$/.test(name) && !/\.test\.ts$|gen\.d\.ts$/.test(name)).map((name) => ({ name, text: readFileSync(root + name, 'utf8') }));
const all = sources.map(({ text }) => text).join('\n');

// Operation by "METHOD path".
function operations(): Map<string, string> {
  const found = new Map<string, string>();
  let path = '';
  let method = '';
  for (const line of readFileSync(new URL('../../../../docs/admin-openapi.yaml', import.meta.url), 'utf8').split('\n')) {
    path = /^ {2}(\/admin\S+):$/.exec(line)?.[1] ?? path;
    method = /^ {4}(get|post|patch|delete|put):$/.exec(line)?.[1]?.toUpperCase() ?? method;
    const id = /^ {6}operationId: "(\w+?)"$/.exec(line)?.[1];
    if (id) found.set(`${method} ${path}`, id);
  }
  return found;
}

// Calls through the typed client, and addresses of downloads with their parts filled in.
function isCalled(method: string, path: string): boolean {
  if (all.includes(`api.${method}('${path}'`)) return true;
  if (method !== 'GET') return false;
  const pattern = path.split(/\{\w+\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('\\$\\{[^}]+\\}');
  return new RegExp('`' + pattern + '[`?$]').test(all);
}

describe('the pages', () => {
  it('call every method except those that no person needs there', () => {
    const methods = operations();
    expect(methods.size).toBeGreaterThan(100);
    const called = new Set([...methods].filter(([call]) => isCalled(...(call.split(' ') as [string, string]))).map(([, id]) => id.replace(/_\d+$/, '')));
    const missing = new Set([...methods.values()].map((id) => id.replace(/_\d+$/, '')).filter((id) => !called.has(id)));
    expect([...missing].filter((id) => !(id in NO_PAGE))).toEqual([]);
    expect(Object.keys(NO_PAGE).filter((id) => !missing.has(id))).toEqual([]);
  });
  it('are each linked from the navigation or another page', () => {
    for (const name of Object.keys(paths)) {
      const links = sources.filter((source) => source.name !== 'app/paths.ts' && new RegExp(`paths\\.${name}\\b`).test(source.text));
      expect(links.map((source) => source.name), name).not.toEqual([]);
    }
  });
});
