import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { idOf } from '@/api/types';
import { POLL } from '@/api/workspace';
import { DataTable, EmptyState, Freshness, Notice, Page, polling, Time } from '@/ui';
import { ProcessState } from './parts';
import { processesQuery, type Process } from './queries';

export default function FleetPage() {
  const query = useQuery({ ...processesQuery(), ...polling(POLL) });
  const rows = query.data?.processes;
  const versions = new Set(rows?.filter((process) => process.answers).map((process) => process.version));
  return (
    <Page title={i18n.t({ id: 'operator.fleet.title', message: 'Processes' })} subtitle={<Freshness query={query} />}>
      {versions.size > 1 && (
        <Notice tone="warn">{i18n.t({ id: 'operator.versions', message: 'Processes run different versions: {versions}', values: { versions: [...versions].join(', ') } })}</Notice>
      )}
      <DataTable<Process>
        label={i18n.t({ id: 'operator.fleet.title', message: 'Processes' })}
        what={i18n.t({ id: 'operator.fleetWhat', message: 'the processes' })}
        columns={[
          { id: 'service', header: i18n.t({ id: 'operator.service', message: 'Service' }), weight: 1.3, cell: (process) => process.service },
          { id: 'state', header: i18n.t({ id: 'operator.state', message: 'Status' }), weight: 1.1, cell: (process) => <ProcessState process={process} /> },
          { id: 'notReady', header: i18n.t({ id: 'operator.notReady', message: 'Not ready' }), weight: 1.6, wide: true, cell: (process) => process.notReady.join(', ') || '—' },
          { id: 'address', header: i18n.t({ id: 'operator.address', message: 'Address' }), weight: 1.6, wide: true, cell: (process) => (process.address ? <code>{process.address}</code> : i18n.t({ id: 'operator.itself', message: 'this dashboard' })) },
          { id: 'id', header: i18n.t({ id: 'operator.process', message: 'Process' }), weight: 1.1, wide: true, cell: (process) => (process.name ? <code>{idOf(process.name)}</code> : '—') },
          { id: 'version', header: i18n.t({ id: 'operator.version', message: 'Version' }), weight: 1.1, wide: true, cell: (process) => process.version || '—' },
          { id: 'start', header: i18n.t({ id: 'operator.started', message: 'Started' }), weight: 1, cell: (process) => <Time at={process.startTime} /> },
        ]}
        rows={rows}
        rowKey={(process) => `${process.service} ${process.address} ${process.name}`}
        error={query.error}
        retry={() => void query.refetch()}
        empty={<EmptyState title={i18n.t({ id: 'operator.noProcesses', message: 'No processes' })} />}
      />
    </Page>
  );
}
