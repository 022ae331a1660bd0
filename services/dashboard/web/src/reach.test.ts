// Every method of the admin API that a person needs is called by a page, and every page is led to by another one. What no
// page calls stands here with the reason.
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
  KeyService_ImportKeys: 'a migration from another system, by a program (docs/operations.md)',
  KeyService_ReportLeakedKey: 'for programs that search for leaked keys',
  LedgerService_OpenWallet: 'the first credit or payment opens it; by itself for programs',
  LedgerService_RepairClock: 'repair of a ledger with the command line beside the log of the fault',
};

const root = fileURLToPath(new URL('.', import.meta.url));
const sources = (readdirSync(root, { recursive: true }) as string[]).filter((name) => /\.tsx?$/.test(name) && !/\.test\.ts$|gen\.d\.ts$/.test(name)).map((name) => ({ name, text: readFileSync(root + name, 'utf8') }));
const all = sources.map(({ text }) => text).join('\n');

// METHOD path → operation.
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

// Through the typed client; or as the address of a download, with its parts put in.
function isCalled(method: string, path: string): boolean {
  if (all.includes(`api.${method}('${path}'`)) return true;
  if (method !== 'GET') return false;
  const pattern = path.split(/\{\w+\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('\\$\\{[^}]+\\}');
  return new RegExp('`' + pattern + '[`?$]').test(all);
}

describe('the pages', () => {
  it('call every method, but those that no person needs there', () => {
    const methods = operations();
    expect(methods.size).toBeGreaterThan(100);
    const called = new Set([...methods].filter(([call]) => isCalled(...(call.split(' ') as [string, string]))).map(([, id]) => id.replace(/_\d+$/, '')));
    const missing = new Set([...methods.values()].map((id) => id.replace(/_\d+$/, '')).filter((id) => !called.has(id)));
    expect([...missing].filter((id) => !(id in NO_PAGE))).toEqual([]);
    expect(Object.keys(NO_PAGE).filter((id) => !missing.has(id))).toEqual([]);
  });
  it('are led to, each by the navigation or another page', () => {
    for (const name of Object.keys(paths)) {
      const links = sources.filter((source) => source.name !== 'app/paths.ts' && new RegExp(`paths\\.${name}\\b`).test(source.text));
      expect(links.map((source) => source.name), name).not.toEqual([]);
    }
  });
});
