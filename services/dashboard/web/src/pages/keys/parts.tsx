import { i18n } from '@lingui/core';
import { StateChip, type Tone } from '@/ui';
import type { Key } from './queries';

type State = Key['state'];

export function stateName(state: State): string {
  switch (state) {
    case 'KEY_STATE_ACTIVE':
      return i18n.t({ id: 'keys.active', message: 'Active' });
    case 'KEY_STATE_DISABLED':
      return i18n.t({ id: 'keys.disabled', message: 'Disabled' });
    case 'KEY_STATE_REVOKED':
      return i18n.t({ id: 'keys.revoked', message: 'Revoked' });
    case 'KEY_STATE_EXPIRED':
      return i18n.t({ id: 'keys.expired', message: 'Expired' });
    default:
      return '—';
  }
}

const TONES: Record<State, Tone | 'quiet'> = {
  KEY_STATE_UNSPECIFIED: 'quiet',
  KEY_STATE_ACTIVE: 'ok',
  KEY_STATE_DISABLED: 'quiet',
  KEY_STATE_REVOKED: 'quiet',
  KEY_STATE_EXPIRED: 'warn',
};

export function KeyState({ state }: { state: State }) {
  return <StateChip tone={TONES[state]}>{stateName(state)}</StateChip>;
}

// The last characters of the secret.
export function KeyEnd({ lastFour }: { lastFour: string }) {
  return lastFour ? <span className="mono">sk-…{lastFour}</span> : <>—</>;
}
