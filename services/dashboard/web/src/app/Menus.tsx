import { i18n } from '@lingui/core';
import { useMantineColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { signOut, usePerson } from '@/api/session';
import { idOf } from '@/api/types';
import { workspacesQuery } from '@/api/workspace';
import { queryClient } from '@/api/query';
import { locale } from '@/format/locale';
import { IconBuilding, IconChevronDown, IconDeviceLaptop, IconLanguage, IconLogout, IconMoon, IconShield, IconSun, IconUser } from '@/icons';
import { ActionMenu, IconButton, type MenuAction } from '@/ui/Menu';
import css from './frame.module.css';
import { switchLanguage } from './language';
import { accountNavigation } from './navigation';
import { paths } from './paths';

export function WorkspaceSwitcher({ workspace, name, operator }: { workspace: string | null; name: string; operator: boolean }) {
  const person = usePerson();
  const navigate = useNavigate();
  const { data } = useQuery(workspacesQuery());
  const names = new Map(data?.workspaces.map((one) => [one.name, one.displayName]));
  const actions: (MenuAction | 'line')[] = person.memberships.map((one) => ({
    label: names.get(one.workspace) || idOf(one.workspace),
    icon: IconBuilding,
    onClick: () => void navigate({ to: paths.home(idOf(one.workspace)) }),
  }));
  if (person.platform_operator) {
    if (actions.length > 0) actions.push('line');
    actions.push({ label: i18n.t({ id: 'frame.operatorArea', message: 'Operator console' }), icon: IconShield, onClick: () => void navigate({ to: paths.operator }) });
  }
  const shown = operator ? i18n.t({ id: 'frame.operator', message: 'Operator' }) : name;
  if (actions.length === 0) return null;
  return (
    <ActionMenu
      label={i18n.t({ id: 'frame.switch', message: 'Switch workspace' })}
      actions={actions}
      target={
        <button type="button" className={css.switcher} aria-label={i18n.t({ id: 'frame.switchFrom', message: 'Switch workspace (current: {name})', values: { name: shown || workspace || '' } })}>
          <span>{shown || i18n.t({ id: 'frame.choose', message: 'Select a workspace' })}</span>
          <IconChevronDown size={16} stroke={1.6} aria-hidden />
        </button>
      }
    />
  );
}

export function AccountMenu() {
  const person = usePerson();
  const navigate = useNavigate();
  // Without keepTransitions Mantine would write a style element.
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  const scheme = (value: 'light' | 'dark' | 'auto', label: string, icon: MenuAction['icon']): MenuAction => ({
    label: colorScheme === value ? `${label} ✓` : label,
    icon,
    onClick: () => setColorScheme(value),
  });
  const other = locale() === 'de' ? 'en' : 'de';
  return (
    <ActionMenu
      label={i18n.t({ id: 'account.menu', message: 'Account' })}
      target={
        <IconButton label={i18n.t({ id: 'account.menuOf', message: 'Account of {name}', values: { name: person.display_name || idOf(person.name) } })} icon={IconUser} />
      }
      actions={[
        ...accountNavigation().map((item): MenuAction => ({ label: item.label, icon: item.icon, onClick: () => void navigate({ to: item.to }) })),
        scheme('light', i18n.t({ id: 'scheme.light', message: 'Light' }), IconSun),
        scheme('dark', i18n.t({ id: 'scheme.dark', message: 'Dark' }), IconMoon),
        scheme('auto', i18n.t({ id: 'scheme.auto', message: 'System' }), IconDeviceLaptop),
        'line',
        { label: other === 'de' ? 'Deutsch' : 'English', icon: IconLanguage, onClick: () => void switchLanguage(other) },
        'line',
        {
          label: i18n.t({ id: 'account.signOut', message: 'Sign out' }),
          icon: IconLogout,
          onClick: () => void signOut().finally(() => {
            queryClient.clear();
            void navigate({ to: paths.signIn });
          }),
        },
      ]}
    />
  );
}
