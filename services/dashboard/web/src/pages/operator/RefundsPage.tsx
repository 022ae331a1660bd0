import { i18n } from '@lingui/core';
import { useSearchState } from '@/app/search';
import { EmptyState, Filters, Page, Segments } from '@/ui';
import { AdjustmentTable } from './Adjustments';

export default function RefundsPage() {
  const [search, setSearch] = useSearchState((raw) => ({ all: raw.all === true, open: typeof raw.open === 'string' ? raw.open : '' }));
  return (
    <Page title={i18n.t({ id: 'operator.refunds.title', message: 'Approvals' })} subtitle={i18n.t({ id: 'operator.refundsText', message: 'Refunds and adjustments above the configured amount require approval by a second operator. Amounts in USD.' })}>
      <Filters>
        <Segments
          label={i18n.t({ id: 'operator.show', message: 'Show' })}
          value={search.all ? 'all' : 'pending'}
          options={[
            { value: 'pending', label: i18n.t({ id: 'operator.waiting', message: 'Pending' }) },
            { value: 'all', label: i18n.t({ id: 'operator.all', message: 'All' }) },
          ]}
          onChange={(value) => setSearch({ all: value === 'all' ? true : (undefined as never), open: '' })}
        />
      </Filters>
      <AdjustmentTable
        workspace="-"
        state={search.all ? '' : 'PENDING_APPROVAL'}
        open={search.open}
        onOpen={(open) => setSearch({ open })}
        empty={<EmptyState title={search.all ? i18n.t({ id: 'operator.noCorrections', message: 'No adjustments yet' }) : i18n.t({ id: 'operator.nothingWaits', message: 'No pending approvals' })} />}
      />
    </Page>
  );
}
