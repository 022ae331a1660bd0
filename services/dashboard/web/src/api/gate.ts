// A call may wait until the person signs in again or confirms with a fresh sign-in. Dialogs of the frame register here.
// Concurrent calls wait for the same dialog.
export type Need = 'sign-in' | 'step-up';

type Ask = () => Promise<boolean>;
const askers: Partial<Record<Need, Ask>> = {};
const running: Partial<Record<Need, Promise<boolean>>> = {};

export function onNeed(need: Need, ask: Ask): () => void {
  askers[need] = ask;
  return () => {
    if (askers[need] === ask) delete askers[need];
  };
}

// False: no dialog is registered, or the person cancelled.
export function settle(need: Need): Promise<boolean> {
  const waiting = running[need];
  if (waiting) return waiting;
  const ask = askers[need];
  if (!ask) return Promise.resolve(false);
  const asked = ask().finally(() => delete running[need]);
  running[need] = asked;
  return asked;
}
