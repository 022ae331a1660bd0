// State of a page in the address's search, so that Back, reload and a sent link show the same.
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useCallback } from 'react';

// parse makes the whole state of what stands there, and defaults of the rest. Choosing pushes an entry to the history;
// typing replaces it: { replace: true }.
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

// Of a route below /w/$workspace.
export function useWorkspace(): string {
  return useParam('workspace');
}

export function useParam(name: string): string {
  return (useParams({ strict: false }) as Record<string, string | undefined>)[name] ?? '';
}
