// A support session: an operator views one workspace as its owner. Its secret is kept in memory only, and is sent with
// reads of that workspace instead of the person's own rights.
import { useSyncExternalStore } from 'react';

export interface Support {
  workspace: string;
  session: string;
  secret: string;
  ends: string | null;
}

let support: Support | null = null;
const listeners = new Set<() => void>();

function publish(next: Support | null): void {
  support = next;
  for (const listener of listeners) listener();
}

export function beginSupport(next: Support): void {
  publish(next);
}
export function forgetSupport(): void {
  publish(null);
}

export function useSupport(): Support | null {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => support,
  );
}

// The secret for a read of this address. Null: use the person's own session.
export function supportSecret(method: string, address: string): string | null {
  if (!support || method !== 'GET') return null;
  const url = new URL(address);
  const name = `workspaces/${support.workspace}`;
  const ofWorkspace = url.pathname === `/admin/v1/${name}` || url.pathname.startsWith(`/admin/v1/${name}/`);
  return ofWorkspace || url.searchParams.get('parent') === name ? support.secret : null;
}
