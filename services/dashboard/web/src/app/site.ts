import { useQuery } from '@tanstack/react-query';
import { loadSite, type Site } from '@/api/session';

// The features of the installation, available before sign-in.
export function useSite(): Site | undefined {
  return useQuery({ queryKey: ['site'], queryFn: loadSite, staleTime: Infinity }).data;
}
