// The frame of all pages that require a signed-in person.
import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { Outlet, useLocation, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useState } from 'react';
import { useSession } from '@/api/session';
import { balanceQuery, POLL, usePermissions, workspaceQuery } from '@/api/workspace';
import { nanos } from '@/format/money';
import { IconMenu, IconSearch, IconX } from '@/icons';
import { Link } from '@/ui/controls';
import { IconButton } from '@/ui/Menu';
import { Money } from '@/ui/Money';
import { polling } from '@/ui/polling';
import { setTitleEnd } from '@/ui/Page';
import { RowSkeletons } from '@/ui/states';
import { ZoneProvider } from '@/ui/Time';
import { Toasts } from '@/ui/Toasts';
import { DemonstrationBand, SupportBand } from './Bands';
import { AccountMenu, WorkspaceSwitcher } from './Menus';
import css from './frame.module.css';
import { Logo } from './Logo';
import { operatorNavigation, visible, workspaceNavigation, type NavigationGroup } from './navigation';
import { paths } from './paths';
import { lastWorkspace, rememberWorkspace } from './places';

const Palette = lazy(() => import('./Palette'));

export function Shell() {
  const session = useSession();
  const { pathname } = useLocation();
  const navigate = useNavigate();
  // The person signed out, or the session ended and the person did not sign in again.
  useEffect(() => {
    if (!session) void navigate({ to: paths.signIn, replace: true });
  }, [session === null]);
  if (!session) return null;
  return <SignedIn pathname={pathname} />;
}

function SignedIn({ pathname }: { pathname: string }) {
  const inWorkspace = /^\/w\/([^/]+)/.exec(pathname)?.[1];
  const named = inWorkspace ? decodeURIComponent(inWorkspace) : null;
  const operator = pathname.startsWith('/operator');
  const workspace = operator ? null : (named ?? lastWorkspace());
  useEffect(() => {
    if (named) rememberWorkspace(named);
  }, [named]);
  const may = usePermissions(workspace);
  const groups = visible(operator ? operatorNavigation() : workspace ? workspaceNavigation(workspace) : [], may);
  const details = useQuery({ ...workspaceQuery(workspace ?? ''), enabled: workspace !== null });
  const name = details.data?.displayName || workspace || '';
  setTitleEnd(operator ? `${i18n.t({ id: 'frame.operator', message: 'Operator' })} · Tollgate` : name ? `${name} · Tollgate` : 'Tollgate');
  const [menu, setMenu] = useState(false);
  const [palette, setPalette] = useState(false);
  useEffect(() => setMenu(false), [pathname]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        setPalette(true);
      }
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  return (
    <div className={css.shell} data-operator={operator}>
      <a href="#content" className={css.skip}>
        {i18n.t({ id: 'frame.skip', message: 'Skip to content' })}
      </a>
      <Sidebar groups={groups} pathname={pathname} opened={menu} operator={operator} workspace={workspace} />
      <header className={css.bar}>
        <div className={css.menuButton}>
          <IconButton label={i18n.t({ id: 'frame.menu', message: 'Menu' })} icon={menu ? IconX : IconMenu} aria-expanded={menu} onClick={() => setMenu(!menu)} />
        </div>
        <WorkspaceSwitcher workspace={workspace} name={name} operator={operator} />
        <div className={css.right}>
          <button type="button" className={css.search} onClick={() => setPalette(true)} aria-label={i18n.t({ id: 'frame.search', message: 'Search' })} aria-keyshortcuts="Control+K">
            <IconSearch size={16} stroke={1.6} aria-hidden />
            <span>{i18n.t({ id: 'frame.search', message: 'Search' })}</span>
            <kbd>Ctrl K</kbd>
          </button>
          <AccountMenu />
        </div>
      </header>
      <main id="content" className={css.main} tabIndex={-1}>
        <ZoneProvider zone={details.data?.reportTimeZone || 'UTC'}>
          <SupportBand workspace={workspace} name={name} />
          {named && details.data?.demonstration && <DemonstrationBand />}
          <Suspense fallback={<RowSkeletons />}>
            <Outlet />
          </Suspense>
        </ZoneProvider>
      </main>
      <Toasts />
      {palette && (
        <Suspense fallback={null}>
          <Palette workspace={workspace} groups={groups} onClose={() => setPalette(false)} />
        </Suspense>
      )}
    </div>
  );
}

function Sidebar({ groups, pathname, opened, operator, workspace }: { groups: NavigationGroup[]; pathname: string; opened: boolean; operator: boolean; workspace: string | null }) {
  const all = groups.flatMap((group) => group.items.flatMap(({ to, also }) => [to, ...(also ? [also] : [])].map((address) => ({ to, address }))));
  // The longest address that is a prefix of the page's.
  const current = all.filter(({ address }) => pathname === address || pathname.startsWith(`${address}/`)).sort((a, b) => b.address.length - a.address.length)[0]?.to;
  return (
    <nav className={css.side} data-opened={opened} aria-label={i18n.t({ id: 'frame.navigation', message: 'Pages' })}>
      <Link to="/" className={css.brand}>
        <Logo size={22} /> Tollgate
        {operator && <span className={css.badge}>{i18n.t({ id: 'frame.operator', message: 'Operator' })}</span>}
      </Link>
      {groups.map((group, index) => (
        <div key={index} className={css.group} role="group" aria-label={group.label}>
          {group.label && <div className={css.groupName}>{group.label}</div>}
          {group.items.map(({ to, label, icon: Shown }) => (
            <Link key={to} to={to} className={css.item} aria-current={to === current ? 'page' : undefined}>
              <Shown size={18} stroke={1.6} aria-hidden />
              {label}
            </Link>
          ))}
        </div>
      ))}
      {!operator && workspace && <Credit workspace={workspace} />}
    </nav>
  );
}

// The available credit, visible on every page.
function Credit({ workspace }: { workspace: string }) {
  const { data } = useQuery({ ...balanceQuery(workspace), ...polling(POLL) });
  if (!data) return null;
  const available = nanos(data.availableUsd);
  return (
    <div className={css.foot}>
      {i18n.t({ id: 'frame.credit', message: 'Available credit' })}
      <span className={css.credit} data-low={available !== null && available <= 0n}>
        <Money usd={data.availableUsd} style="available" />
      </span>
    </div>
  );
}
