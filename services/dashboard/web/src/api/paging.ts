// Lists of the API with page tokens, for useInfiniteQuery and DataTable.
import { infiniteQueryOptions, type UseInfiniteQueryResult, type InfiniteData } from '@tanstack/react-query';

interface PageOf {
  nextPageToken: string;
}

export function pages<P extends PageOf>(queryKey: readonly unknown[], load: (pageToken: string, signal: AbortSignal) => Promise<P>) {
  return infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam, signal }) => load(pageParam, signal),
    initialPageParam: '',
    getNextPageParam: (last: P) => last.nextPageToken || undefined,
  });
}

// The properties to spread into <DataTable>.
export function tableProps<P, T>(query: UseInfiniteQueryResult<InfiniteData<P>>, rowsOf: (page: P) => T[]) {
  return {
    rows: query.data?.pages.flatMap(rowsOf),
    error: query.error,
    retry: () => void query.refetch(),
    busy: query.isPlaceholderData && query.isFetching,
    hasMore: query.hasNextPage,
    loadingMore: query.isFetchingNextPage,
    onMore: () => void query.fetchNextPage(),
  };
}
