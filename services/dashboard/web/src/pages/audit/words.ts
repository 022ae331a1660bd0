// One sentence per entry: actor, action, subject. Unknown actions are shown by name.
import { i18n } from '@lingui/core';
import type { Schema } from '@/api/types';

export type AuditEntry = Schema<'AuditEntry'>;

export const ACTIONS = [
  'key.create', 'key.update', 'key.rotate', 'key.disable', 'key.enable', 'key.revoke', 'member.update', 'member.delete', 'invitation.create', 'invitation.accept', 'invitation.delete',
  'workspace.update', 'workspace.limits', 'workspace.close', 'workspace.reopen', 'cap.update', 'alert_settings.update', 'auto_reload.update', 'payment.create', 'payment.confirm', 'payment.refund', 'credit.grant',
  'webhook.create', 'webhook.delete', 'support_session.create', 'support_session.use', 'support_session.end',
] as const;

export function actionText(action: string): string {
  switch (action) {
    case 'key.create': return i18n.t({ id: 'audit.did.keyCreate', message: 'created the API key' });
    case 'key.update': return i18n.t({ id: 'audit.did.keyUpdate', message: 'changed the API key' });
    case 'key.rotate': return i18n.t({ id: 'audit.did.keyRotate', message: 'rotated the API key' });
    case 'key.disable': return i18n.t({ id: 'audit.did.keyDisable', message: 'disabled the API key' });
    case 'key.enable': return i18n.t({ id: 'audit.did.keyEnable', message: 'enabled the API key' });
    case 'key.revoke': return i18n.t({ id: 'audit.did.keyRevoke', message: 'revoked the API key' });
    case 'key.import': return i18n.t({ id: 'audit.did.keyImport', message: 'imported the API key' });
    case 'key.model_limits': return i18n.t({ id: 'audit.did.keyLimits', message: 'changed the limits of the API key' });
    case 'member.update': return i18n.t({ id: 'audit.did.memberUpdate', message: 'changed the role of' });
    case 'member.delete': return i18n.t({ id: 'audit.did.memberDelete', message: 'removed the member' });
    case 'invitation.create': return i18n.t({ id: 'audit.did.invite', message: 'created the invitation' });
    case 'invitation.accept': return i18n.t({ id: 'audit.did.accept', message: 'accepted an invitation' });
    case 'invitation.delete': return i18n.t({ id: 'audit.did.withdraw', message: 'withdrew the invitation' });
    case 'user.create': return i18n.t({ id: 'audit.did.userCreate', message: 'created the account' });
    case 'workspace.create': return i18n.t({ id: 'audit.did.workspaceCreate', message: 'created the workspace' });
    case 'workspace.update': return i18n.t({ id: 'audit.did.workspaceUpdate', message: 'changed the workspace' });
    case 'workspace.limits': return i18n.t({ id: 'audit.did.limits', message: 'changed the limits of the workspace' });
    case 'workspace.close': return i18n.t({ id: 'audit.did.close', message: 'scheduled the closing of the workspace' });
    case 'workspace.closed': return i18n.t({ id: 'audit.did.closed', message: 'closed the workspace' });
    case 'workspace.close_put_off': return i18n.t({ id: 'audit.did.putOff', message: 'postponed the closing of the workspace' });
    case 'workspace.reopen': return i18n.t({ id: 'audit.did.reopen', message: 'reopened the workspace' });
    case 'workspace.freeze': return i18n.t({ id: 'audit.did.freeze', message: 'froze the workspace' });
    case 'workspace.unfreeze': return i18n.t({ id: 'audit.did.unfreeze', message: 'unfroze the workspace' });
    case 'wallet.open': return i18n.t({ id: 'audit.did.wallet', message: 'opened the wallet of' });
    case 'cap.update': return i18n.t({ id: 'audit.did.cap', message: 'changed the monthly cap of' });
    case 'alert_settings.update': return i18n.t({ id: 'audit.did.alerts', message: 'changed the alerts of' });
    case 'auto_reload.update': return i18n.t({ id: 'audit.did.reload', message: 'changed auto-reload of' });
    case 'auto_reload.resume': return i18n.t({ id: 'audit.did.resume', message: 'resumed auto-reload of' });
    case 'payment.create': return i18n.t({ id: 'audit.did.payment', message: 'started the payment' });
    case 'payment.confirm': return i18n.t({ id: 'audit.did.confirm', message: 'confirmed the payment' });
    case 'payment.cancel': return i18n.t({ id: 'audit.did.cancel', message: 'cancelled the payment' });
    case 'payment.refund': return i18n.t({ id: 'audit.did.refund', message: 'refunded the payment' });
    case 'payment_method.setup': return i18n.t({ id: 'audit.did.setup', message: 'started to add a card' });
    case 'payment_method.delete': return i18n.t({ id: 'audit.did.card', message: 'removed the card' });
    case 'credit.grant': return i18n.t({ id: 'audit.did.grant', message: 'granted credit' });
    case 'credit.add': return i18n.t({ id: 'audit.did.credit', message: 'added credit' });
    case 'adjustment.create': return i18n.t({ id: 'audit.did.adjust', message: 'requested the adjustment' });
    case 'adjustment.approve': return i18n.t({ id: 'audit.did.approve', message: 'approved the adjustment' });
    case 'adjustment.reject': return i18n.t({ id: 'audit.did.reject', message: 'rejected the adjustment' });
    case 'webhook.create': return i18n.t({ id: 'audit.did.webhook', message: 'created the webhook' });
    case 'webhook.delete': return i18n.t({ id: 'audit.did.webhookDelete', message: 'deleted the webhook' });
    case 'support_session.create': return i18n.t({ id: 'audit.did.support', message: 'started the support session' });
    case 'support_session.use': return i18n.t({ id: 'audit.did.supportUse', message: 'viewed the workspace in the support session' });
    case 'support_session.end': return i18n.t({ id: 'audit.did.supportEnd', message: 'ended the support session' });
    default: return action;
  }
}

// user:ID is a person, token:ID a program of that person. names: the members.
export function actorText(actor: string, names: Map<string, string>): string {
  const at = actor.indexOf(':');
  const [kind, id] = at < 0 ? ['', actor] : [actor.slice(0, at), actor.slice(at + 1)];
  switch (kind) {
    case 'user': return names.get(id) ?? i18n.t({ id: 'audit.actor.user', message: 'User {id}', values: { id: id.slice(0, 8) } });
    case 'token': return i18n.t({ id: 'audit.actor.token', message: 'Token {id}', values: { id: id.slice(0, 8) } });
    case 'policy': return i18n.t({ id: 'audit.actor.policy', message: 'Policy {id}', values: { id } });
    case 'support': return i18n.t({ id: 'audit.actor.support', message: 'Support {id}', values: { id: id.slice(0, 8) } });
    case 'cert':
    case 'local': return i18n.t({ id: 'audit.actor.operator', message: 'Operator {id}', values: { id } });
    default: return actor;
  }
}

// Empty if the actor is also the subject.
export function subjectText(entry: AuditEntry, names: Map<string, string>): string {
  if (entry.subject === entry.actor) return '';
  const person = /^user:(.+)$/.exec(entry.subject);
  if (person) return names.get(person[1]!) ?? person[1]!.slice(0, 8);
  const other = /^\w+[:/]([0-9a-f]{32})$/.exec(entry.subject);
  if (other) return other[1]!.slice(0, 12);
  return /^[0-9a-f]{32}$/.test(entry.subject) ? entry.subject.slice(0, 12) : entry.subject;
}
