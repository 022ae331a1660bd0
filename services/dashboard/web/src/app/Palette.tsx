// Ctrl K: finds the pages that the person may see, API keys by the start of their name or public part, and a request by
// its id.
import { i18n } from '@lingui/core';
import { Spotlight, spotlight, type SpotlightActionData } from '@mantine/spotlight';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { api, unwrap } from '@/api/client';
import { idOf } from '@/api/types';
import { usePermissions } from '@/api/workspace';
import { IconKey, IconSearch } from '@/icons';
import { accountNavigation, type NavigationGroup } from './navigation';
import { paths } from './paths';

const REQUEST = /^(req_[0-9A-Za-z]+|[0-9a-f]{32}|(chatcmpl|msg|resp)[-_][0-9A-Za-z]+)$/;
// "sk-brand-" and the typed start of the key's public part. The rest is secret and is not sent.
const KEY = /^sk-[0-9a-z]+-([0-9A-Za-z]{1,12})/;
const MOST_KEYS = 8;

// Searches on the server, by the start of the name, of the public part and of the last four characters.
function useFoundKeys(workspace: string | null, typed: string) {
  const may = usePermissions(workspace);
  const [settled] = useDebouncedValue(typed, 150);
  const query = KEY.exec(settled)?.[1] ?? settled;
  const enabled = workspace !== null && query.length > 1 && query.length <= 100 && may('KeyService/ListKeys');
  const { data } = useQuery({
    queryKey: ['keys', workspace, 'found', query],
    queryFn: ({ signal }) => unwrap(api.GET('/admin/v1/workspaces/{workspace}/keys', { params: { path: { workspace: workspace ?? '' }, query: { query, pageSize: MOST_KEYS } }, signal })),
    enabled,
    placeholderData: keepPreviousData,
  });
  return enabled ? (data?.keys ?? []) : [];
}

export default function Palette({ workspace, groups, onClose }: { workspace: string | null; groups: NavigationGroup[]; onClose: () => void }) {
  const navigate = useNavigate();
  const [typed, setTyped] = useState('');
  useEffect(() => spotlight.open(), []);
  const text = typed.trim();
  const keys = useFoundKeys(workspace, text);
  const actions: SpotlightActionData[] = [...groups.flatMap((group) => group.items.map((item) => ({ ...item, group: group.label }))), ...accountNavigation()].map((item) => ({
    id: item.to,
    label: item.label,
    description: 'group' in item ? (item.group as string | undefined) : undefined,
    leftSection: <item.icon size={18} stroke={1.6} aria-hidden />,
    onClick: () => void navigate({ to: item.to }),
  }));
  for (const key of workspace ? keys : []) {
    const id = idOf(key.name);
    actions.push({
      id: key.name,
      label: key.displayName || id,
      description: i18n.t({ id: 'palette.key', message: 'API key {id}, sk-…{lastFour}', values: { id, lastFour: key.lastFour } }),
      keywords: typed, // found by the server
      leftSection: <IconKey size={18} stroke={1.6} aria-hidden />,
      onClick: () => void navigate({ to: paths.key(workspace ?? '', id) }),
    });
  }
  if (workspace && REQUEST.test(text)) {
    actions.unshift({ id: 'request', label: i18n.t({ id: 'palette.request', message: 'Open request {request}', values: { request: text } }), keywords: typed, onClick: () => void navigate({ to: paths.request(workspace, text) }) });
  }
  return (
    <Spotlight
      actions={actions}
      query={typed}
      onQueryChange={setTyped}
      onSpotlightClose={onClose}
      lockScroll={false}
      shortcut={null}
      highlightQuery
      nothingFound={i18n.t({ id: 'palette.nothing', message: 'No results' })}
      searchProps={{ leftSection: <IconSearch size={18} stroke={1.6} aria-hidden />, placeholder: i18n.t({ id: 'palette.hint', message: 'Search for a page, API key, or request ID' }), 'aria-label': i18n.t({ id: 'frame.search', message: 'Search' }) }}
      transitionProps={{ transition: 'fade', duration: 120 }}
    />
  );
}
