import { useQuery } from '@tanstack/react-query';
import { loadSite, type Site } from '@/api/session';

// What the installation offers, known before anybody signs in.
export function useSite(): Site | undefined {
  return useQuery({ queryKey: ['site'], queryFn: loadSite, staleTime: Infinity }).data;
}
