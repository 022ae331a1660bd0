import { QueryClient } from '@tanstack/react-query';
import { asApiError } from './errors';

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      gcTime: 5 * 60_000,
      refetchOnWindowFocus: true,
      // Retry only errors that may be temporary, not mistakes of the caller.
      retry: (failures, error) => failures < 2 && [0, 429, 503, 504].includes(asApiError(error).status) && asApiError(error).reason !== 'OFFLINE',
      retryDelay: (failures) => Math.min(500 * 2 ** failures, 4_000),
    },
    mutations: { retry: false },
  },
});
