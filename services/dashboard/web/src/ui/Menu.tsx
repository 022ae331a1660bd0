import { ActionIcon, Menu } from '@mantine/core';
import type { ComponentProps, ReactNode } from 'react';
import { IconDots, type Icon } from '@/icons';
import css from './controls.module.css';
import { Tip } from './Tip';

const ICON = { size: 18, stroke: 1.6, 'aria-hidden': true, className: css.icon } as const;

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
