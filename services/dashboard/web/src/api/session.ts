// /session/v1/: the signed-in person. One store for the whole page. Every change sends its CSRF token.
import { useSyncExternalStore } from 'react';
import { ApiError } from './errors';

export type Role = 'owner' | 'admin' | 'billing' | 'developer' | 'viewer';

export interface Person {
  name: string; // users/{user}
  display_name: string;
  platform_operator: boolean;
  memberships: { workspace: string; role: Role }[];
}

export interface Session {
  state: 'SIGNED_IN' | 'SIGNED_OUT';
  csrf_token: string;
  signed_in_us: number;
  user: Person;
}

export interface Site {
  base_url: string; // the gateway's API
  version: string;
  oidc: boolean;
  mail: boolean; // password resets and invitations are sent by email
  self_service_workspaces: boolean;
}

export type SignInState = { state: 'SIGNED_IN' } | { state: 'SECOND_STEP'; challenge: string };

let session: Session | null = null;
const listeners = new Set<() => void>();

function publish(next: Session | null): void {
  session = next;
  for (const listener of listeners) listener();
}

export function currentSession(): Session | null {
  return session;
}

// Null if signed out or not loaded yet.
export function useSession(): Session | null {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, currentSession);
}

// The signed-in person. Use it only inside the frame, which requires a session.
export function usePerson(): Person {
  const found = useSession();
  if (!found) throw new Error('nobody is signed in');
  return found.user;
}

async function request(path: string, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`/session/v1/${path}`, { credentials: 'same-origin', cache: 'no-store', ...init });
  } catch {
    throw ApiError.offline();
  }
  if (!response.ok) throw await ApiError.of(response);
  return response;
}

export async function loadSession(): Promise<Session | null> {
  const loaded = (await (await request('session')).json()) as Session;
  publish(loaded.state === 'SIGNED_IN' ? loaded : null);
  return session;
}

export async function loadSite(): Promise<Site> {
  return (await (await request('site')).json()) as Site;
}

// Posts JSON, and reloads the session if the call created a new one.
export async function postSession<T = SignInState>(path: string, body: Record<string, string> = {}): Promise<T> {
  const response = await request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(session ? { 'x-csrf-token': session.csrf_token } : {}) },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as T & { state?: string };
  if (answer.state === 'SIGNED_IN') await loadSession();
  return answer;
}

export async function signOut(): Promise<void> {
  try {
    await postSession('signOut');
  } finally {
    publish(null);
  }
}

export function forgetSession(): void {
  publish(null);
}
