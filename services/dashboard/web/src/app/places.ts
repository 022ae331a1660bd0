// The last used workspace, for the start page.
import { currentSession, type Person } from '@/api/session';
import { idOf } from '@/api/types';
import { paths } from './paths';

const KEY = 'tollgate-workspace';

export function rememberWorkspace(workspace: string): void {
  try {
    localStorage.setItem(KEY, workspace);
  } catch {
    // Without storage, the start page opens the first workspace.
  }
}

export function lastWorkspace(): string | null {
  const own = currentSession()?.user.memberships.map((one) => idOf(one.workspace)) ?? [];
  let kept: string | null = null;
  try {
    kept = localStorage.getItem(KEY);
  } catch {
    kept = null;
  }
  return kept !== null && own.includes(kept) ? kept : (own[0] ?? null);
}

export function startPath(person: Person): string {
  const workspace = lastWorkspace();
  if (workspace) return paths.home(workspace);
  return person.platform_operator ? paths.operator : paths.newWorkspace;
}

// Accepts only paths of this site.
export function safeReturn(path: unknown): string {
  return typeof path === 'string' && /^\/(?![/\\])/.test(path) ? path : '/';
}
