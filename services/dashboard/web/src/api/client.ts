// The admin API, typed from docs/admin-openapi.yaml. unwrap() returns the response or throws an ApiError.
import createClient from 'openapi-fetch';
import { ApiError } from './errors';
import { settle } from './gate';
import type { paths } from './gen';
import { currentSession } from './session';
import { forgetSupport, supportSecret } from './support';
import type { Answer } from './types';

const SAFE = new Set(['GET', 'HEAD']);

async function send(request: Request): Promise<Response> {
  const headers = new Headers(request.headers);
  const session = currentSession();
  if (session && !SAFE.has(request.method)) headers.set('x-csrf-token', session.csrf_token);
  const support = supportSecret(request.method, request.url);
  if (support) headers.set('authorization', `Bearer ${support}`);
  try {
    return await fetch(new Request(request.clone(), { headers, credentials: 'same-origin' }));
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw ApiError.offline();
  }
}

// If the session has ended or a fresh sign-in is required, the person is asked, and the same call is sent again. That is
// safe: changes carry a request id.
async function guarded(request: Request): Promise<Response> {
  let response = await send(request);
  if (!response.ok) {
    const error = await ApiError.of(response);
    // The support session is over: continue with the person's own rights.
    if (error.status === 401 && supportSecret(request.method, request.url)) {
      forgetSupport();
      return guarded(request);
    }
    const need = error.status === 401 ? 'sign-in' : error.reason === 'STEP_UP_REQUIRED' ? 'step-up' : null;
    if (need === null || !(await settle(need))) throw error;
    response = await send(request);
    if (!response.ok) throw await ApiError.of(response);
  }
  return response;
}

export const api = createClient<paths>({ baseUrl: location.origin, fetch: guarded });

export async function unwrap<T>(call: Promise<{ data?: T }>): Promise<Answer<T>> {
  return (await call).data as Answer<T>;
}

// The request id of a call that moves money or creates a secret. It is created with the dialog, so that a repeated click
// sends the same call.
export function newRequestId(): string {
  // randomUUID does not exist over plain http.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
