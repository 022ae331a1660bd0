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
  { name: 'limits', path: () => `${w}/limits`, title: 'Limits', shown: 'The monthly cap is in Billing.' },
  { name: 'billing', path: () => `${w}/billing`, title: 'Billing', shown: 'What the credit is made of' },
  { name: 'auto-reload', path: () => `${w}/billing/auto-reload`, title: 'Auto-reload', shown: 'Charge the saved card' },
  { name: 'cap', path: () => `${w}/billing/cap`, title: 'Cap and alerts', shown: '50 % of the cap' },
  { name: 'transactions', path: () => `${w}/billing/transactions`, title: 'Transactions', shown: 'Granted credit' },
  { name: 'statements', path: () => `${w}/billing/statements`, title: 'Statements', shown: 'running' },
  { name: 'statement', path: () => `${w}/billing/statements/${new Date().toISOString().slice(0, 7)}`, title: 'Statement ', shown: 'Use by model' },
  { name: 'members', path: () => `${w}/members`, title: 'Members', shown: 'owner@demo.invalid' },
  { name: 'audit', path: () => `${w}/audit`, title: 'Audit log', shown: 'granted credit' },
  { name: 'settings', path: () => `${w}/settings`, title: 'Settings', shown: 'Time zone of reports' },
  { name: 'profile', path: () => '/account/profile', title: 'Profile', shown: 'owner@demo.invalid' },
  { name: 'security', path: () => '/account/security', title: 'Security', shown: 'Second step' },
  { name: 'sessions', path: () => '/account/sessions', title: 'Sessions', shown: 'this one' },
  { name: 'tokens', path: () => '/account/tokens', title: 'Access tokens', shown: 'No tokens yet' },
  { name: 'not-found', path: () => '/nowhere', title: 'There is no such page', shown: 'Go to the start page' },
];

export function keyId(name) {
  return tollgate('key', 'list', '--workspace', workspace).keys.find((key) => key.name === name).key_id;
}
