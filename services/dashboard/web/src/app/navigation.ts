// The entries of the sidebar and of Ctrl K. A page is added when it is finished. `needs` names methods of the API
// (users/me:permissions): a person who may not call any of them does not see the page.
import { i18n } from '@lingui/core';
import {
  IconBox, IconBuilding, IconCash, IconChartBar, IconGauge, IconHome, IconKey, IconList, IconMessage, IconReceipt, IconScale, IconServer, IconSettings, IconShield, IconTerminal, IconUsers, IconUser, IconDeviceLaptop, type Icon,
} from '@/icons';
import { paths } from './paths';

export interface NavigationItem {
  to: string;
  label: string;
  icon: Icon;
  needs?: string[];
  also?: string; // another address that belongs to the page
}
export interface NavigationGroup {
  label?: string;
  items: NavigationItem[];
}

export function workspaceNavigation(workspace: string): NavigationGroup[] {
  return [
    {
      items: [
        { to: paths.home(workspace), label: i18n.t({ id: 'nav.home', message: 'Home' }), icon: IconHome },
        { to: paths.quickstart(workspace), label: i18n.t({ id: 'nav.quickstart', message: 'Quickstart' }), icon: IconTerminal, needs: ['KeyService/CreateKey'] },
        { to: paths.playground(workspace), label: i18n.t({ id: 'nav.playground', message: 'Playground' }), icon: IconMessage, needs: ['KeyService/CreateKey'] },
      ],
    },
    {
      label: i18n.t({ id: 'nav.use', message: 'API' }),
      items: [
        { to: paths.keys(workspace), label: i18n.t({ id: 'nav.keys', message: 'API keys' }), icon: IconKey, needs: ['KeyService/ListKeys'] },
        { to: paths.usage(workspace), label: i18n.t({ id: 'nav.usage', message: 'Usage' }), icon: IconChartBar, needs: ['UsageService/QueryUsage'], also: paths.requests(workspace) },
        { to: paths.models(workspace), label: i18n.t({ id: 'nav.models', message: 'Models' }), icon: IconBox, needs: ['ModelService/ListModels'] },
        { to: paths.limits(workspace), label: i18n.t({ id: 'nav.limits', message: 'Limits' }), icon: IconGauge, needs: ['LimitService/GetLimits'] },
      ],
    },
    {
      label: i18n.t({ id: 'nav.workspace', message: 'Workspace' }),
      items: [
        { to: paths.billing(workspace), label: i18n.t({ id: 'nav.billing', message: 'Billing' }), icon: IconCash, needs: ['LedgerService/GetBalance'] },
        { to: paths.members(workspace), label: i18n.t({ id: 'nav.members', message: 'Members' }), icon: IconUsers, needs: ['MemberService/ListMembers'] },
        { to: paths.audit(workspace), label: i18n.t({ id: 'nav.audit', message: 'Audit log' }), icon: IconList, needs: ['AuditService/ListAuditEntries'] },
        { to: paths.settings(workspace), label: i18n.t({ id: 'nav.settings', message: 'Settings' }), icon: IconSettings, needs: ['WorkspaceService/UpdateWorkspace', 'AlertService/ListWebhooks'] },
      ],
    },
  ];
}

export function operatorNavigation(): NavigationGroup[] {
  return [
    {
      items: [
        { to: paths.operator, label: i18n.t({ id: 'nav.overview', message: 'Overview' }), icon: IconGauge, needs: ['EngineService/ListEngines'] },
        { to: paths.operatorWorkspaces, label: i18n.t({ id: 'nav.workspaces', message: 'Workspaces' }), icon: IconBuilding, needs: ['LedgerService/FreezeWorkspace'] },
      ],
    },
    {
      label: i18n.t({ id: 'nav.serve', message: 'Serving' }),
      items: [
        { to: paths.operatorRequests, label: i18n.t({ id: 'nav.requests', message: 'Requests' }), icon: IconReceipt, needs: ['EngineService/ListEngines'] },
        { to: paths.operatorEngines, label: i18n.t({ id: 'nav.engines', message: 'Engines' }), icon: IconServer, needs: ['EngineService/ListEngines'] },
        { to: paths.operatorModels, label: i18n.t({ id: 'nav.catalog', message: 'Models' }), icon: IconBox, needs: ['CatalogStatusService/GetCatalogStatus'] },
        { to: paths.operatorFleet, label: i18n.t({ id: 'nav.fleet', message: 'Processes' }), icon: IconTerminal, needs: ['ProcessService/ListProcesses'] },
      ],
    },
    {
      label: i18n.t({ id: 'nav.money', message: 'Billing' }),
      items: [
        { to: paths.operatorPayments, label: i18n.t({ id: 'nav.payments', message: 'Payments' }), icon: IconCash, needs: ['PaymentService/ConfirmPayment'] },
        { to: paths.operatorRefunds, label: i18n.t({ id: 'nav.refunds', message: 'Approvals' }), icon: IconReceipt, needs: ['AdjustmentService/ApproveAdjustment'] },
        { to: paths.operatorSettlements, label: i18n.t({ id: 'nav.settlements', message: 'Failed settlements' }), icon: IconScale, needs: ['DeadLetterService/ListDeadLetters'] },
        { to: paths.operatorLedger, label: i18n.t({ id: 'nav.ledger', message: 'Ledger verification' }), icon: IconShield, needs: ['LedgerVerificationService/ListLedgerVerifications'] },
      ],
    },
    {
      label: i18n.t({ id: 'nav.trust', message: 'Administration' }),
      items: [
        { to: paths.operatorAudit, label: i18n.t({ id: 'nav.audit', message: 'Audit log' }), icon: IconList, needs: ['AuditService/VerifyAuditEntries'] },
        { to: paths.operatorPeople, label: i18n.t({ id: 'nav.people', message: 'Users' }), icon: IconUsers, needs: ['UserService/ListUsers'] },
        { to: paths.operatorSettings, label: i18n.t({ id: 'nav.plans', message: 'Plans' }), icon: IconSettings, needs: ['LimitService/ListPlans'] },
      ],
    },
  ];
}

export function accountNavigation(): NavigationItem[] {
  return [
    { to: paths.profile, label: i18n.t({ id: 'nav.profile', message: 'Profile' }), icon: IconUser },
    { to: paths.security, label: i18n.t({ id: 'nav.security', message: 'Security' }), icon: IconShield },
    { to: paths.sessions, label: i18n.t({ id: 'nav.sessions', message: 'Sessions' }), icon: IconDeviceLaptop },
    { to: paths.tokens, label: i18n.t({ id: 'nav.tokens', message: 'Access tokens' }), icon: IconTerminal },
  ];
}

// Removes the pages that the person may not see, and empty groups.
export function visible(groups: NavigationGroup[], may: (method: string) => boolean): NavigationGroup[] {
  return groups
    .map((group) => ({ ...group, items: group.items.filter((item) => !item.needs || item.needs.some(may)) }))
    .filter((group) => group.items.length > 0);
}
