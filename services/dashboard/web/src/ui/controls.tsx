// Buttons, links that look like buttons, and tabs. Pages use these instead of Mantine's: sizes, names and colours are
// decided here.
import { Button as MantineButton } from '@mantine/core';
import { Link as RouterLink, useLocation } from '@tanstack/react-router';
import { lazy, Suspense, type ComponentProps, type ReactNode, type Ref } from 'react';
import type { Icon } from '@/icons';
import css from './controls.module.css';

const Tip = lazy(() => import('./Tip'));

const ICON = { size: 18, stroke: 1.6, 'aria-hidden': true, className: css.icon } as const;

export interface ButtonProps {
  children: ReactNode;
  kind?: 'primary' | 'default' | 'danger' | 'plain';
  icon?: Icon;
  onClick?: () => void;
  type?: 'button' | 'submit';
  busy?: boolean;
  // The reason why the button is disabled. It stays focusable and shows the reason.
  disabledReason?: string;
  small?: boolean;
  wide?: boolean;
  ref?: Ref<HTMLButtonElement>;
  autoFocus?: boolean;
}

const VARIANTS = { primary: 'filled', danger: 'filled', default: 'default', plain: 'subtle' } as const;

export function Button({ children, kind = 'default', icon: Shown, onClick, type = 'button', busy, disabledReason, small, wide, ref, autoFocus }: ButtonProps) {
  const button = (
    <MantineButton
      ref={ref}
      type={type}
      variant={VARIANTS[kind]}
      color={kind === 'danger' ? 'red' : 'teal'}
      size={small ? 'compact-sm' : 'sm'}
      fullWidth={wide}
      loading={busy}
      data-autofocus={autoFocus || undefined}
      aria-disabled={disabledReason ? true : undefined}
      className={disabledReason ? css.off : undefined}
      leftSection={Shown && <Shown {...ICON} />}
      onClick={disabledReason ? (event) => event.preventDefault() : onClick}
    >
      {children}
    </MantineButton>
  );
  if (!disabledReason) return button;
  return (
    <Suspense fallback={button}>
      <Tip text={disabledReason}>{button}</Tip>
    </Suspense>
  );
}

export type Search = Record<string, string | number | boolean | undefined>;
interface LinkProps extends Omit<ComponentProps<'a'>, 'href'> {
  to: string; // a path of app/paths.ts
  search?: Search;
}

// A link to another page. Hovering loads the page's code.
export function Link({ to, search, children, ...rest }: LinkProps) {
  return (
    // Exact, because the address of a workspace's home is a prefix of all its pages.
    <RouterLink to={to} search={search as never} activeOptions={{ exact: true, includeSearch: false }} {...(rest as object)}>
      {children}
    </RouterLink>
  );
}

export function LinkButton({ to, search, children, kind = 'default', icon: Shown, small }: LinkProps & Pick<ButtonProps, 'kind' | 'icon' | 'small'>) {
  return (
    <MantineButton
      component={RouterLink as unknown as 'a'}
      {...({ to, search } as object)}
      className={css.linkButton}
      variant={VARIANTS[kind]}
      size={small ? 'compact-sm' : 'sm'}
      leftSection={Shown && <Shown {...ICON} />}
    >
      {children}
    </MantineButton>
  );
}

// A plain link, for downloads and other sites.
export function HrefButton({ href, children, download, kind = 'default' }: { href: string; children: ReactNode; download?: boolean; kind?: ButtonProps['kind'] }) {
  return (
    <MantineButton component="a" href={href} download={download} className={css.linkButton} variant={VARIANTS[kind]} size="sm">
      {children}
    </MantineButton>
  );
}

// Tabs that are links: each sub-page has an address.
export function LinkTabs({ label, tabs }: { label: string; tabs: { to: string; label: string }[] }) {
  const { pathname } = useLocation();
  return (
    <nav className={css.tabs} aria-label={label}>
      {tabs.map((tab) => (
        <Link key={tab.to} to={tab.to} className={css.tab} data-active={pathname === tab.to} aria-current={pathname === tab.to ? 'page' : undefined}>
          {tab.label}
        </Link>
      ))}
    </nav>
  );
}
