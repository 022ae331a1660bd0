// Buttons, links that look like them, menus, tabs. Pages take these, never Mantine's own: sizes, names and colours are
// decided here once.
import { ActionIcon, Button as MantineButton, Menu, SegmentedControl, Tooltip } from '@mantine/core';
import { Link as RouterLink, useLocation } from '@tanstack/react-router';
import type { ComponentProps, ReactNode, Ref } from 'react';
import { IconDots, type Icon } from '@/icons';
import css from './controls.module.css';

const ICON = { size: 18, stroke: 1.6, 'aria-hidden': true, className: css.icon } as const;

export interface ButtonProps {
  children: ReactNode;
  kind?: 'primary' | 'default' | 'danger' | 'plain';
  icon?: Icon;
  onClick?: () => void;
  type?: 'button' | 'submit';
  busy?: boolean;
  // Why it cannot be used now: it stays focusable and says so.
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
      leftSection={Shown && <Shown {...ICON} />}
      onClick={disabledReason ? (event) => event.preventDefault() : onClick}
    >
      {children}
    </MantineButton>
  );
  return disabledReason ? <Tip text={disabledReason}>{button}</Tip> : button;
}

export function Tip({ text, children }: { text: ReactNode; children: ReactNode }) {
  return (
    <Tooltip label={text} multiline maw={320} withArrow events={{ hover: true, focus: true, touch: true }}>
      {children as React.JSX.Element}
    </Tooltip>
  );
}

interface IconButtonProps extends Omit<ComponentProps<'button'>, 'children' | 'color'> {
  label: string;
  icon: Icon;
}

// An icon alone has an accessible name and a tooltip. Takes what a menu gives its target.
export function IconButton({ label, icon: Shown, ...rest }: IconButtonProps) {
  return (
    <Tip text={label}>
      <ActionIcon variant="subtle" size={32} {...(rest as object)} aria-label={label}>
        <Shown {...ICON} />
      </ActionIcon>
    </Tip>
  );
}

export type Search = Record<string, string | number | boolean | undefined>;
interface LinkProps extends Omit<ComponentProps<'a'>, 'href'> {
  to: string; // a path of app/paths.ts
  search?: Search;
}

// Within the pages; loads the page's code when pointed at.
export function Link({ to, search, children, ...rest }: LinkProps) {
  return (
    <RouterLink to={to} search={search as never} {...(rest as object)}>
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

// A plain link of the browser: downloads, other sites.
export function HrefButton({ href, children, download, kind = 'default' }: { href: string; children: ReactNode; download?: boolean; kind?: ButtonProps['kind'] }) {
  return (
    <MantineButton component="a" href={href} download={download} className={css.linkButton} variant={VARIANTS[kind]} size="sm">
      {children}
    </MantineButton>
  );
}

export interface MenuAction {
  label: string;
  onClick: () => void;
  icon?: Icon;
  danger?: boolean;
  // Shown, focusable and without effect, with the reason below the label.
  disabledReason?: string;
}

export function ActionMenu({ label, actions, target }: { label: string; actions: (MenuAction | 'line')[]; target?: ReactNode }) {
  return (
    <Menu position="bottom-end" width={240} shadow="md">
      <Menu.Target>
        {(target as React.JSX.Element) ?? (
          <ActionIcon variant="subtle" size={28} aria-label={label}>
            <IconDots {...ICON} />
          </ActionIcon>
        )}
      </Menu.Target>
      <Menu.Dropdown>
        {actions.map((action, index) =>
          action === 'line' ? (
            <Menu.Divider key={index} />
          ) : (
            <Menu.Item
              key={action.label}
              className={css.menuItem}
              color={action.danger ? 'red' : undefined}
              leftSection={action.icon && <action.icon {...ICON} />}
              aria-disabled={action.disabledReason ? true : undefined}
              title={action.disabledReason}
              onClick={action.disabledReason ? undefined : action.onClick}
              closeMenuOnClick={!action.disabledReason}
            >
              {action.label}
            </Menu.Item>
          ),
        )}
      </Menu.Dropdown>
    </Menu>
  );
}

export function Segments<T extends string>({ label, value, options, onChange }: {
  label: string; value: T; options: { value: T; label: string }[]; onChange: (value: T) => void;
}) {
  return (
    <SegmentedControl
      aria-label={label}
      className={css.segments}
      size="sm"
      radius="sm"
      value={value}
      data={options}
      onChange={(next) => onChange(next as T)}
      withItemsBorders={false}
    />
  );
}

// Sub-pages as tabs that are links: each has an address.
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
