import { Outlet } from '@tanstack/react-router';
import { Logo } from './Logo';
import css from './frame.module.css';

export function AuthFrame() {
  return (
    <main className={css.auth}>
      <div className={css.authBrand}>
        <Logo size={28} /> Tollgate
      </div>
      <div className={css.authCard}>
        <Outlet />
      </div>
    </main>
  );
}
