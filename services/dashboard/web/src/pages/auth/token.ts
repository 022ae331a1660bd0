import { useState } from 'react';

// The one-time secret of a link. It is in the fragment of the address, which browsers do not send, and is removed from
// the address immediately.
export function useLinkToken(): string {
  const [token] = useState(() => new URLSearchParams(location.hash.slice(1)).get('token') ?? '');
  if (location.hash) history.replaceState(history.state, '', location.pathname);
  return token;
}
