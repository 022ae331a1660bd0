import { i18n } from '@lingui/core';
import { encode } from 'uqr';
import css from './account.module.css';

// One path of squares, with the light border that scanners need.
export function Qr({ text }: { text: string }) {
  const { data, size } = encode(text, { ecc: 'M', border: 4 });
  const path = data.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ''))).join('');
  return (
    <svg className={css.qr} viewBox={`0 0 ${size} ${size}`} role="img" aria-label={i18n.t({ id: 'account.totp.qr', message: 'QR code for the authenticator app' })}>
      <path d={path} />
    </svg>
  );
}
