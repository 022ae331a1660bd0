// Every address and its page. A page is loaded on first use. Pages keep filters, range and zone in the query string
// (app/search.ts), so the routes here accept any query string.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect, type AnyRoute } from '@tanstack/react-router';
import { currentSession } from '@/api/session';
import { RowSkeletons } from '@/ui/states';
import { AuthFrame } from './AuthFrame';
import { NotFound, PageError } from './errors';
import { paths } from './paths';
import { Root } from './Root';

type PageModule = Promise<{ default: () => React.ReactNode }>;

const root = createRootRoute({ component: Root, notFoundComponent: NotFound });
const auth = createRoute({ getParentRoute: () => root, id: 'auth', component: AuthFrame });
const frame = createRoute({
  getParentRoute: () => root,
  id: 'frame',
  beforeLoad: ({ location }) => {
    if (!currentSession()) throw redirect({ to: paths.signIn, search: (location.pathname === '/' ? {} : { return: location.href }) as never });
  },
  component: lazyRouteComponent(() => import('./Shell'), 'Shell'),
});

function page(parent: AnyRoute, path: string, load: () => PageModule): AnyRoute {
  return createRoute({ getParentRoute: () => parent, path, component: lazyRouteComponent(load) });
}

const signedOut: [string, () => PageModule][] = [
  ['/sign-in', () => import('@/pages/auth/SignInPage')],
  ['/forgot-password', () => import('@/pages/auth/ForgotPasswordPage')],
  ['/link', () => import('@/pages/auth/LinkPage')],
  ['/invitation', () => import('@/pages/auth/InvitationPage')],
  ['/reset-password', () => import('@/pages/auth/ResetPasswordPage')],
];

const signedIn: [string, () => PageModule][] = [
  ['/', () => import('@/pages/start/StartPage')],
  ['/paid', () => import('@/pages/start/PaidPage')],
  ['/new-workspace', () => import('@/pages/start/NewWorkspacePage')],
  ['/w/$workspace', () => import('@/pages/home/HomePage')],
  ['/w/$workspace/quickstart', () => import('@/pages/start/QuickstartPage')],
  ['/w/$workspace/playground', () => import('@/pages/start/PlaygroundPage')],
  ['/w/$workspace/keys', () => import('@/pages/keys/KeysPage')],
  ['/w/$workspace/keys/$key', () => import('@/pages/keys/KeyPage')],
  ['/w/$workspace/usage', () => import('@/pages/usage/UsagePage')],
  ['/w/$workspace/requests', () => import('@/pages/usage/RequestsPage')],
  ['/w/$workspace/requests/$request', () => import('@/pages/usage/RequestPage')],
  ['/w/$workspace/models', () => import('@/pages/models/ModelsPage')],
  ['/w/$workspace/models/$namespace/$model', () => import('@/pages/models/ModelPage')],
  ['/w/$workspace/limits', () => import('@/pages/limits/LimitsPage')],
  ['/w/$workspace/billing', () => import('@/pages/billing/BillingPage')],
  ['/w/$workspace/billing/auto-reload', () => import('@/pages/billing/AutoReloadPage')],
  ['/w/$workspace/billing/cap', () => import('@/pages/billing/CapPage')],
  ['/w/$workspace/billing/transactions', () => import('@/pages/billing/TransactionsPage')],
  ['/w/$workspace/billing/statements', () => import('@/pages/billing/StatementsPage')],
  ['/w/$workspace/billing/statements/$month', () => import('@/pages/billing/StatementPage')],
  ['/w/$workspace/members', () => import('@/pages/members/MembersPage')],
  ['/w/$workspace/audit', () => import('@/pages/audit/AuditPage')],
  ['/w/$workspace/settings', () => import('@/pages/settings/SettingsPage')],
  ['/account/profile', () => import('@/pages/account/ProfilePage')],
  ['/account/security', () => import('@/pages/account/SecurityPage')],
  ['/account/sessions', () => import('@/pages/account/SessionsPage')],
  ['/account/tokens', () => import('@/pages/account/TokensPage')],
  ['/operator', () => import('@/pages/operator/OverviewPage')],
  ['/operator/workspaces', () => import('@/pages/operator/WorkspacesPage')],
  ['/operator/workspaces/$workspace', () => import('@/pages/operator/WorkspacePage')],
  ['/operator/requests', () => import('@/pages/operator/RequestsPage')],
  ['/operator/engines', () => import('@/pages/operator/EnginesPage')],
  ['/operator/models', () => import('@/pages/operator/ModelsPage')],
  ['/operator/fleet', () => import('@/pages/operator/FleetPage')],
  ['/operator/payments', () => import('@/pages/operator/PaymentsPage')],
  ['/operator/refunds', () => import('@/pages/operator/RefundsPage')],
  ['/operator/settlements', () => import('@/pages/operator/SettlementsPage')],
  ['/operator/ledger', () => import('@/pages/operator/LedgerPage')],
  ['/operator/audit', () => import('@/pages/operator/AuditPage')],
  ['/operator/people', () => import('@/pages/operator/PeoplePage')],
  ['/operator/settings', () => import('@/pages/operator/SettingsPage')],
];

export const router = createRouter({
  routeTree: root.addChildren([
    auth.addChildren(signedOut.map(([path, load]) => page(auth, path, load))),
    frame.addChildren(signedIn.map(([path, load]) => page(frame, path, load))),
  ]),
  defaultPreload: 'intent',
  defaultPreloadDelay: 50,
  defaultPendingMs: 300,
  defaultPendingMinMs: 200,
  defaultPendingComponent: RowSkeletons,
  defaultErrorComponent: PageError,
  scrollRestoration: true,
});
