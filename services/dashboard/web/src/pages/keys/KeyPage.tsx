import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { idOf } from '@/api/types';
import { POLL } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useParam, useWorkspace } from '@/app/search';
import { count, nanos } from '@/format/money';
import { resolve } from '@/format/range';
import { UsageChart } from '@/pages/usage/UsageChart';
import { Button, Card, Copy, ErrorState, Facts, Link, Money, Page, polling, rangeLabel, RowSkeletons, Tile, Tiles, Time, UsedBar, useZone } from '@/ui';
import { KeyActions } from './KeyActions';
import { KeyEnd, KeyState } from './parts';
import { keyName, keyQuery, type Key } from './queries';

export default function KeyPage() {
  const workspace = useWorkspace();
  const id = useParam('key');
  const zone = useZone();
  const query = useQuery({ ...keyQuery(workspace, id), ...polling(POLL) });
  const item = query.data;
  return (
    <Page
      title={item ? keyName(item) : id}
      back={{ to: paths.keys(workspace), label: i18n.t({ id: 'keys.title', message: 'API keys' }) }}
      actions={item && <KeyActions workspace={workspace} item={item} target={<Button>{i18n.t({ id: 'keys.actions', message: 'Actions' })}</Button>} />}
    >
      {!item && <Card flush>{query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'keys.whatOne', message: 'the API key' })} retry={() => void query.refetch()} /> : <RowSkeletons />}</Card>}
      {item && (
        <>
          <KeyTiles item={item} />
          <UsageChart
            workspace={workspace}
            title={i18n.t({ id: 'keys.costByModel', message: 'Cost per day by model' })}
            period={rangeLabel('30d')}
            asked={{ id: '30d', period: () => resolve({ range: '30d' }, zone, new Date()), zone, interval: 'USAGE_INTERVAL_DAY', groupBy: ['USAGE_GROUP_MODEL'], filter: `key = "${id}"` }}
          />
          <KeyFacts workspace={workspace} item={item} />
        </>
      )}
    </Page>
  );
}

function KeyTiles({ item }: { item: Key }) {
  const spent = nanos(item.monthSpentUsd);
  const quota = nanos(item.monthlyQuotaUsd);
  return (
    <Tiles>
      <Tile
        label={i18n.t({ id: 'keys.spent', message: 'Spent this month' })}
        figure={<Money usd={item.monthSpentUsd} />}
        bar={spent !== null && quota !== null && <UsedBar used={spent} limit={quota} label={i18n.t({ id: 'keys.quotaUsed', message: 'Monthly quota used' })} />}
      >
        {item.monthlyQuotaUsd ? (
          <>
            {i18n.t({ id: 'keys.ofQuota', message: 'of' })} <Money usd={item.monthlyQuotaUsd} /> · {i18n.t({ id: 'keys.monthUtc', message: 'UTC month' })}
          </>
        ) : (
          i18n.t({ id: 'keys.noQuota', message: 'No quota' })
        )}
      </Tile>
      <Tile label={i18n.t({ id: 'keys.requestsTile', message: 'Requests, last 24 hours' })} figure={count(item.requests24h)}>
        {i18n.t({ id: 'keys.refusedToo', message: 'Including refused requests' })}
      </Tile>
      <Tile label={i18n.t({ id: 'keys.lastUsed', message: 'Last used' })} figure={<Time at={item.lastUsedTime} none={i18n.t({ id: 'keys.neverUsed', message: 'Never' })} />} />
    </Tiles>
  );
}

function limit(value: string | undefined): string {
  return value && value !== '0' ? count(value) : i18n.t({ id: 'keys.noLimit', message: 'No limit' });
}

function KeyFacts({ workspace, item }: { workspace: string; item: Key }) {
  const id = idOf(item.name);
  return (
    <Card title={i18n.t({ id: 'keys.settings', message: 'Settings' })}>
      <Facts
        facts={[
          { label: i18n.t({ id: 'keys.state', message: 'Status' }), value: <><KeyState state={item.state} /> {item.stateReason}</> },
          { label: i18n.t({ id: 'keys.key', message: 'API key' }), value: <KeyEnd lastFour={item.lastFour} /> },
          { label: i18n.t({ id: 'keys.id', message: 'Key ID' }), value: <><code>{id}</code> <Copy bare value={id} label={i18n.t({ id: 'keys.copyId', message: 'Copy ID' })} /></> },
          { label: i18n.t({ id: 'keys.madeOn', message: 'Created' }), value: <><Time at={item.createTime} exact /> · {item.createdBy}</> },
          { label: i18n.t({ id: 'keys.expires', message: 'Expires' }), value: <Time at={item.expireTime} exact none={i18n.t({ id: 'keys.neverUsed', message: 'Never' })} /> },
          ...(item.rotatedFrom ? [{ label: i18n.t({ id: 'keys.replaces', message: 'Replaces' }), value: <Link to={paths.key(workspace, idOf(item.rotatedFrom))}>{idOf(item.rotatedFrom)}</Link> }] : []),
          { label: i18n.t({ id: 'keys.models', message: 'Allowed models' }), value: item.allowedModels.length > 0 ? item.allowedModels.join(', ') : i18n.t({ id: 'keys.everyModel', message: 'All models' }) },
          { label: i18n.t({ id: 'keys.addresses', message: 'Allowed IP addresses' }), value: item.allowedAddresses.length > 0 ? item.allowedAddresses.join(', ') : i18n.t({ id: 'keys.everyAddress', message: 'All addresses' }) },
          { label: i18n.t({ id: 'keys.rpm', message: 'Requests per minute' }), value: limit(item.limits?.requestsPerMinute) },
          { label: i18n.t({ id: 'keys.tpm', message: 'Tokens per minute' }), value: limit(item.limits?.tokensPerMinute) },
          { label: i18n.t({ id: 'keys.concurrent', message: 'Concurrent requests' }), value: limit(item.limits?.concurrentRequests) },
        ]}
      />
    </Card>
  );
}
