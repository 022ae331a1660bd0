// Ctrl K: the pages that the person may see, and a request by its id.
import { i18n } from '@lingui/core';
import { Spotlight, spotlight, type SpotlightActionData } from '@mantine/spotlight';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { IconSearch } from '@/icons';
import { accountNavigation, type NavigationGroup } from './navigation';
import { paths } from './paths';

const REQUEST = /^(req_[0-9A-Za-z]+|[0-9a-f]{32}|(chatcmpl|msg|resp)[-_][0-9A-Za-z]+)$/;

export default function Palette({ workspace, groups, onClose }: { workspace: string | null; groups: NavigationGroup[]; onClose: () => void }) {
  const navigate = useNavigate();
  const [typed, setTyped] = useState('');
  useEffect(() => spotlight.open(), []);
  const actions: SpotlightActionData[] = [...groups.flatMap((group) => group.items.map((item) => ({ ...item, group: group.label }))), ...accountNavigation()].map((item) => ({
    id: item.to,
    label: item.label,
    description: 'group' in item ? (item.group as string | undefined) : undefined,
    leftSection: <item.icon size={18} stroke={1.6} aria-hidden />,
    onClick: () => void navigate({ to: item.to }),
  }));
  const request = typed.trim();
  if (workspace && REQUEST.test(request)) {
    actions.unshift({ id: 'request', label: i18n.t({ id: 'palette.request', message: 'Open request {request}', values: { request } }), keywords: request, onClick: () => void navigate({ to: paths.request(workspace, request) }) });
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
      nothingFound={i18n.t({ id: 'palette.nothing', message: 'Nothing found' })}
      searchProps={{ leftSection: <IconSearch size={18} stroke={1.6} aria-hidden />, placeholder: i18n.t({ id: 'palette.hint', message: 'A page, or a request id' }), 'aria-label': i18n.t({ id: 'frame.search', message: 'Search' }) }}
      transitionProps={{ transition: 'fade', duration: 120 }}
    />
  );
}
