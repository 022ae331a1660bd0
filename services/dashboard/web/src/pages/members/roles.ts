import { i18n } from '@lingui/core';
import type { Role } from '@/api/session';

export const ROLES: Role[] = ['owner', 'admin', 'billing', 'developer', 'viewer'];

export function roleName(role: string): string {
  switch (role) {
    case 'owner':
      return i18n.t({ id: 'members.role.owner', message: 'Owner' });
    case 'admin':
      return i18n.t({ id: 'members.role.admin', message: 'Admin' });
    case 'billing':
      return i18n.t({ id: 'members.role.billing', message: 'Billing' });
    case 'developer':
      return i18n.t({ id: 'members.role.developer', message: 'Developer' });
    case 'viewer':
      return i18n.t({ id: 'members.role.viewer', message: 'Viewer' });
    default:
      return role;
  }
}

export function roleText(role: Role): string {
  switch (role) {
    case 'owner':
      return i18n.t({ id: 'members.can.owner', message: 'Everything, also the cap, members’ roles and closing the workspace' });
    case 'admin':
      return i18n.t({ id: 'members.can.admin', message: 'Keys, settings, webhooks; developers, billing and viewers' });
    case 'billing':
      return i18n.t({ id: 'members.can.billing', message: 'Payments, auto-reload, alerts and statements; reads the rest' });
    case 'developer':
      return i18n.t({ id: 'members.can.developer', message: 'Own keys, models and single requests' });
    case 'viewer':
      return i18n.t({ id: 'members.can.viewer', message: 'Reads use, keys and limits; changes nothing' });
  }
}

// Roles that a role may give to others and take from them.
export function managed(own: Role | undefined): Role[] {
  if (own === 'owner') return ROLES;
  return own === 'admin' ? ['billing', 'developer', 'viewer'] : [];
}
