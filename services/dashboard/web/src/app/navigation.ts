// The one list of what the sidebar and Ctrl K show. A page enters it when it is finished. `needs` names methods of the
// API (users/me:permissions): who may call none of them does not see the page.
import { i18n } from '@lingui/core';
import {
  IconHome, IconKey, type Icon,
} from '@/icons';
import { paths } from './paths';

export interface NavigationItem {
  to: string;
  label: string;
  icon: Icon;
  needs?: string[];
}
export interface NavigationGroup {
  label?: string;
  items: NavigationItem[];
}

export function workspaceNavigation(workspace: string): NavigationGroup[] {
  return [
    {
      items: [{ to: paths.home(workspace), label: i18n.t({ id: 'nav.home', message: 'Home' }), icon: IconHome }],
    },
    {
      label: i18n.t({ id: 'nav.use', message: 'Use' }),
      items: [{ to: paths.keys(workspace), label: i18n.t({ id: 'nav.keys', message: 'Keys' }), icon: IconKey, needs: ['KeyService/ListKeys'] }],
    },
    {
      label: i18n.t({ id: 'nav.workspace', message: 'Workspace' }),
      items: [],
    },
  ];
}

export function operatorNavigation(): NavigationGroup[] {
  return [
    { items: [] },
    { label: i18n.t({ id: 'nav.serve', message: 'Serve' }), items: [] },
    { label: i18n.t({ id: 'nav.money', message: 'Money' }), items: [] },
    { label: i18n.t({ id: 'nav.trust', message: 'Trust' }), items: [] },
  ];
}

export function accountNavigation(): NavigationItem[] {
  return [];
}

// Without the pages that the person may not see, and without empty groups.
export function visible(groups: NavigationGroup[], may: (method: string) => boolean): NavigationGroup[] {
  return groups
    .map((group) => ({ ...group, items: group.items.filter((item) => !item.needs || item.needs.some(may)) }))
    .filter((group) => group.items.length > 0);
}
