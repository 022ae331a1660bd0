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
  { name: 'not-found', path: () => '/nowhere', title: 'There is no such page', shown: 'Go to the start page' },
];

export function keyId(name) {
  return tollgate('key', 'list', '--workspace', workspace).keys.find((key) => key.name === name).key_id;
}
