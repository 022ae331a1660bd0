// The API key of the playground. It is revoked when the page is left, and expires within an hour.
import { useEffect, useRef } from 'react';
import { newRequestId } from '@/api/client';
import { currentSession } from '@/api/session';
import { idOf } from '@/api/types';
import { createKey } from '@/pages/keys/queries';

const HOUR = 3_600_000;
const SPARE = 5 * 60_000;

interface Held {
  id: string;
  secret: string;
  until: number;
}

// keepalive: the call is sent even while the page closes.
function revoke(workspace: string, id: string): void {
  const token = currentSession()?.csrf_token;
  if (!token) return;
  void fetch(`/admin/v1/workspaces/${encodeURIComponent(workspace)}/keys/${encodeURIComponent(id)}:revoke`, {
    method: 'POST',
    keepalive: true,
    credentials: 'same-origin',
    headers: { 'content-type': 'application/json', 'x-csrf-token': token },
    body: JSON.stringify({ requestId: newRequestId() }),
  }).catch(() => {
    // The key expires by itself.
  });
}

// Returns a function that gives the secret. The key is created with the first message.
export function usePlaygroundKey(workspace: string): () => Promise<string> {
  const held = useRef<Held | null>(null);
  const making = useRef<Promise<Held> | null>(null);
  useEffect(() => {
    let left = false;
    const leave = () => {
      if (held.current) revoke(workspace, held.current.id);
      held.current = null;
    };
    window.addEventListener('pagehide', leave);
    return () => {
      window.removeEventListener('pagehide', leave);
      if (left) return;
      left = true;
      void making.current?.then(leave, () => undefined);
      leave();
    };
  }, [workspace]);
  return async () => {
    if (held.current && held.current.until - SPARE > Date.now()) return held.current.secret;
    const until = Date.now() + HOUR;
    making.current ??= createKey(workspace, newRequestId(), { displayName: 'Playground', expireTime: new Date(until).toISOString(), labels: { made_by: 'playground' } })
      .then((answer) => (held.current = { id: idOf(answer.key?.name ?? ''), secret: answer.secret, until }))
      .finally(() => {
        making.current = null;
      });
    return (await making.current).secret;
  };
}
