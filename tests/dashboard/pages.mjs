// The pages that are finished. shown: a text that is there when the page has its data.
import { tollgate, workspace } from './tollgate.mjs';

const w = `/w/${workspace}`;

export const pages = [
  { name: 'sign-in', path: () => '/sign-in', title: 'Sign in', shown: 'Forgot your password?', signedOut: true },
  { name: 'forgot-password', path: () => '/forgot-password', title: 'Forgot your password', shown: 'Back to the sign-in', signedOut: true },
  { name: 'link', path: () => '/link#token=x', title: 'Sign in', shown: 'This link signs you in once.', signedOut: true },
  { name: 'invitation', path: () => '/invitation#token=x', title: 'Accept the invitation', shown: 'Make the account', signedOut: true },
  { name: 'reset-password', path: () => '/reset-password#token=x', title: 'New password', shown: 'Set the password', signedOut: true },
  { name: 'home', path: () => w, title: 'Home', shown: 'Newest requests' },
  { name: 'keys', path: () => `${w}/keys`, title: 'Keys', shown: 'checkout-bot' },
  { name: 'keys-empty', path: () => `${w}/keys?query=nothing-like-this`, title: 'Keys', shown: 'No keys match' },
  { name: 'key', path: () => `${w}/keys/${keyId('checkout-bot')}`, title: 'checkout-bot', shown: 'Every model' },
  { name: 'create-key', path: () => `${w}/keys?create=true`, title: 'Keys', shown: 'More options' },
  { name: 'operator-overview', path: () => '/operator', title: 'Overview', shown: 'Engines up', operator: true },
  { name: 'operator-workspaces', path: () => '/operator/workspaces', title: 'Workspaces', shown: 'Demonstration', operator: true },
  { name: 'operator-workspace', path: () => `/operator/workspaces/${workspace}`, title: 'Demonstration', shown: 'Available credit', operator: true },
  { name: 'operator-limits', path: () => `/operator/workspaces/${workspace}?tab=limits`, title: 'Demonstration', shown: 'In force', operator: true },
  { name: 'operator-engines', path: () => '/operator/engines', title: 'Engines', shown: 'sim-1', operator: true },
  { name: 'operator-engine', path: () => '/operator/engines?open=sim-1', title: 'Engines', shown: 'Drain engine', operator: true },
  { name: 'operator-models', path: () => '/operator/models', title: 'Models', shown: 'demo/sim-large', operator: true },
  { name: 'operator-fleet', path: () => '/operator/fleet', title: 'Processes', shown: 'allinone', operator: true },
  { name: 'operator-payments', path: () => '/operator/payments', title: 'Payments', shown: 'No payments to confirm', operator: true },
  { name: 'operator-refunds', path: () => '/operator/refunds', title: 'Refunds to approve', shown: 'Nothing waits for approval', operator: true },
  { name: 'operator-settlements', path: () => '/operator/settlements', title: 'Settlements waiting', shown: 'No settlements wait', operator: true },
  { name: 'operator-ledger', path: () => '/operator/ledger', title: 'Ledger check', shown: 'Not checked yet', operator: true },
  { name: 'operator-audit', path: () => '/operator/audit', title: 'Audit log', shown: 'workspace.create', operator: true },
  { name: 'operator-people', path: () => '/operator/people', title: 'People', shown: 'Olga Operator', operator: true },
  { name: 'operator-plans', path: () => '/operator/settings', title: 'Plans', shown: 'No plans yet', operator: true },
  { name: 'usage', path: () => `${w}/usage`, title: 'Usage', shown: 'Cost by model' },
  { name: 'usage-keys', path: () => `${w}/usage?by=key&range=24h&zone=Asia%2FKolkata`, title: 'Usage', shown: 'search-rerank' },
  { name: 'usage-none', path: () => `${w}/usage?range=custom&from=2026-01-01&to=2026-01-02`, title: 'Usage', shown: 'No requests between' },
  { name: 'requests', path: () => `${w}/requests`, title: 'Requests', shown: 'checkout-bot' },
  { name: 'requests-search', path: () => `${w}/requests?id=nothing-like-this`, title: 'Requests', shown: 'No request with this id' },
  { name: 'request-unknown', path: () => `${w}/requests/nothing-like-this`, title: 'Request', shown: 'No request with this id' },
  { name: 'models', path: () => `${w}/models`, title: 'Models', shown: 'What would it cost?' },
  { name: 'model', path: () => `${w}/models/demo/sim-large`, title: 'Simulated Large (no real model)', shown: 'Context window' },
  { name: 'quickstart', path: () => `${w}/quickstart`, title: 'Quickstart', shown: '3. See what it cost' },
  { name: 'playground', path: () => `${w}/playground`, title: 'Playground', shown: 'Ask something' },
  { name: 'not-found', path: () => '/nowhere', title: 'There is no such page', shown: 'Go to the start page' },
];

export function keyId(name) {
  return tollgate('key', 'list', '--workspace', workspace).keys.find((key) => key.name === name).key_id;
}
