// Two things that a call may wait for: that the person signs in again, and that a fresh sign-in is given. Dialogs of the
// frame register here; calls ask. Many calls at once wait for one dialog.
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

// False: there is nobody to ask, or the person gave up.
export function settle(need: Need): Promise<boolean> {
  const waiting = running[need];
  if (waiting) return waiting;
  const ask = askers[need];
  if (!ask) return Promise.resolve(false);
  const asked = ask().finally(() => delete running[need]);
  running[need] = asked;
  return asked;
}
