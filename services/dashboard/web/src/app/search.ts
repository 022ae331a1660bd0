// Page state in the query string of the address, so that Back, reload and shared links show the same.
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useCallback } from 'react';

// parse returns the whole state, with defaults for missing values. A choice pushes a history entry; typing replaces it
// ({ replace: true }).
export function useSearchState<T extends object>(parse: (search: Record<string, unknown>) => T): [T, (change: Partial<T>, how?: { replace?: boolean }) => void] {
  const search = useSearch({ strict: false }) as Record<string, unknown>;
  const navigate = useNavigate();
  const set = useCallback(
    (change: Partial<T>, how?: { replace?: boolean }) => {
      void navigate({
        to: '.',
        search: ((old: Record<string, unknown>) => {
          const next: Record<string, unknown> = { ...old, ...change };
          for (const key of Object.keys(next)) if (next[key] === undefined || next[key] === '') delete next[key];
          return next;
        }) as never,
        replace: how?.replace ?? false,
        resetScroll: false,
      });
    },
    [navigate],
  );
  return [parse(search), set];
}

// The workspace of a route below /w/$workspace.
export function useWorkspace(): string {
  return useParam('workspace');
}

export function useParam(name: string): string {
  return (useParams({ strict: false }) as Record<string, string | undefined>)[name] ?? '';
}
