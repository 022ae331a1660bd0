import { i18n } from '@lingui/core';
import { Outlet } from '@tanstack/react-router';
import { useEffect, useState, useSyncExternalStore } from 'react';
import { onTitle } from '@/ui/Page';
import css from './frame.module.css';
import { SessionDialogs } from './SessionDialogs';

function useOnline(): boolean {
  return useSyncExternalStore(
    (listener) => {
      window.addEventListener('online', listener);
      window.addEventListener('offline', listener);
      return () => {
        window.removeEventListener('online', listener);
        window.removeEventListener('offline', listener);
      };
    },
    () => navigator.onLine,
  );
}

// The outermost component: announces a new page, shows the offline bar and the dialogs that calls may wait for.
export function Root() {
  const online = useOnline();
  const [title, setTitle] = useState('');
  useEffect(() => onTitle(setTitle), []);
  return (
    <>
      <div className="hidden-text" aria-live="polite">
        {title}
      </div>
      {!online && (
        <div className={css.offline} role="status">
          {i18n.t({ id: 'offline.bar', message: 'You are offline. Data may be out of date. The page reconnects automatically.' })}
        </div>
      )}
      <Outlet />
      <SessionDialogs />
    </>
  );
}
