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

// An icon button with an accessible name and a tooltip. Accepts the properties that a menu gives its target.
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
  // The reason why the item is disabled, shown below the label. The item stays focusable.
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
