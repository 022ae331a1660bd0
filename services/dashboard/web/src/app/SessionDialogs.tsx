// The dialogs that a call may wait for (api/gate.ts): the session has ended, or a fresh sign-in is required. The page
// below keeps its input.
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { onNeed, type Need } from '@/api/gate';
import { currentSession, forgetSession } from '@/api/session';

const NeedDialog = lazy(() => import('./NeedDialog'));

export function SessionDialogs() {
  const [need, setNeed] = useState<Need | null>(null);
  const done = useRef<(settled: boolean) => void>(() => {});
  useEffect(() => {
    const ask = (what: Need) => () =>
      new Promise<boolean>((resolve) => {
        // Without a session, the sign-in page handles it.
        if (what === 'sign-in' && currentSession() === null) return resolve(false);
        done.current = resolve;
        setNeed(what);
      });
    const removers = [onNeed('sign-in', ask('sign-in')), onNeed('step-up', ask('step-up'))];
    return () => removers.forEach((remove) => remove());
  }, []);
  const finish = (settled: boolean) => {
    const given = need;
    setNeed(null);
    done.current(settled);
    if (!settled && given === 'sign-in') forgetSession();
  };
  if (need === null) return null;
  return (
    <Suspense fallback={null}>
      <NeedDialog need={need} onDone={finish} />
    </Suspense>
  );
}
