import { useEffect, useRef, type ReactNode } from 'react';
import { IconArrowLeft } from '@/icons';
import { Link } from './controls';
import css from './Page.module.css';

let titleEnd = 'Tollgate';
let loaded = false;
const heard = new Set<(title: string) => void>();

// What follows a page's own title: "Acme Research · Tollgate".
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
  narrow?: boolean; // reading width
  children: ReactNode;
}

// Every page is one of these: one h1, the window's title, the focus after a change of page.
export function Page({ title, subtitle, actions, back, narrow, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · ${titleEnd}`;
    for (const listener of heard) listener(title);
  }, [title]);
  useEffect(() => {
    // Not for the first page: the browser begins at its top.
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
