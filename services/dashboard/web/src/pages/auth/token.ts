import { useState } from 'react';

// The one-time secret of a link. It stands behind the # of the address, which browsers send to nobody, and is taken out of
// the address at once.
export function useLinkToken(): string {
  const [token] = useState(() => new URLSearchParams(location.hash.slice(1)).get('token') ?? '');
  if (location.hash) history.replaceState(history.state, '', location.pathname);
  return token;
}
