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
      return i18n.t({ id: 'members.can.owner', message: 'Full access, including the cap, member roles, and closing the workspace' });
    case 'admin':
      return i18n.t({ id: 'members.can.admin', message: 'Manages API keys, settings, webhooks, and all members except owners and admins' });
    case 'billing':
      return i18n.t({ id: 'members.can.billing', message: 'Manages payments, auto-reload, alerts, and statements; reads everything else' });
    case 'developer':
      return i18n.t({ id: 'members.can.developer', message: 'Manages own API keys; reads models and requests' });
    case 'viewer':
      return i18n.t({ id: 'members.can.viewer', message: 'Reads usage, API keys, and limits; cannot change anything' });
  }
}

// The roles that a role may assign and remove.
export function managed(own: Role | undefined): Role[] {
  if (own === 'owner') return ROLES;
  return own === 'admin' ? ['billing', 'developer', 'viewer'] : [];
}
