import { useEffect, useRef, type ReactNode } from 'react';
import { IconArrowLeft } from '@/icons';
import { Link } from './controls';
import css from './Page.module.css';

let titleEnd = 'Tollgate';
let loaded = false;
const heard = new Set<(title: string) => void>();

// The end of the window title, after the page's own: "Acme Research · Tollgate".
export function setTitleEnd(end: string): void {
  titleEnd = end;
}
export function onTitle(listener: (title: string) => void): () => void {
  heard.add(listener);
  return () => heard.delete(listener);
}

interface PageProps {
  title: string;
  subtitle?: ReactNode;
  actions?: ReactNode;
  back?: { to: string; label: string };
  narrow?: boolean; // limits the width for reading
  children: ReactNode;
}

// The root of every page. Sets the h1 and the window title, and moves the focus after navigation.
export function Page({ title, subtitle, actions, back, narrow, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · ${titleEnd}`;
    for (const listener of heard) listener(title);
  }, [title]);
  useEffect(() => {
    // The first page keeps the browser's initial focus.
    if (loaded && document.querySelector('[aria-modal="true"]') === null) heading.current?.focus({ preventScroll: true });
    loaded = true;
  }, []);
  return (
    <div className={`${css.page} ${narrow ? css.narrow : ''}`}>
      <header className={css.head}>
        <div className={css.titles}>
          {back && (
            <Link to={back.to} className={css.back}>
              <IconArrowLeft size={15} stroke={1.6} aria-hidden />
              {back.label}
            </Link>
          )}
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {subtitle && <div className={css.subtitle}>{subtitle}</div>}
        </div>
        {actions && <div className={css.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export function Filters({ children }: { children: ReactNode }) {
  return <div className={css.filters}>{children}</div>;
}
