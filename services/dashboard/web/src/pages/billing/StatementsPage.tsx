import { i18n } from '@lingui/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { tableProps } from '@/api/paging';
import { idOf, type Schema } from '@/api/types';
import { paths } from '@/app/paths';
import { useWorkspace } from '@/app/search';
import { DataTable, EmptyState, Money, type Column } from '@/ui';
import css from './billing.module.css';
import { BillingFrame } from './BillingFrame';
import { monthText } from './month';
import { statementHref, statementsQuery } from './queries';

type Statement = Schema<'Statement'>;

export default function StatementsPage() {
  const workspace = useWorkspace();
  const query = useInfiniteQuery(statementsQuery(workspace));
  const minus = (usd: string) => (usd === '0.00' ? usd : `-${usd}`);
  const columns: Column<Statement>[] = [
    { id: 'month', header: i18n.t({ id: 'billing.column.month', message: 'Month' }), cell: (one) => monthText(idOf(one.name)) + (one.preliminaryTime ? ` · ${i18n.t({ id: 'billing.statement.running', message: 'in progress' })}` : ''), weight: 2 },
    { id: 'opening', header: i18n.t({ id: 'billing.column.opening', message: 'Opening' }), cell: (one) => <Money usd={one.openingUsd} />, align: 'end', wide: true },
    { id: 'added', header: i18n.t({ id: 'billing.column.added', message: 'Added' }), cell: (one) => <Money usd={one.addedUsd} plus />, align: 'end', wide: true },
    { id: 'removed', header: i18n.t({ id: 'billing.column.removed', message: 'Removed' }), cell: (one) => <Money usd={minus(one.removedUsd)} />, align: 'end', wide: true },
    { id: 'used', header: i18n.t({ id: 'billing.column.used', message: 'Used' }), cell: (one) => <Money usd={minus(one.usedUsd)} />, align: 'end' },
    { id: 'closing', header: i18n.t({ id: 'billing.column.closing', message: 'Closing' }), cell: (one) => <Money usd={one.closingUsd} />, align: 'end' },
    {
      id: 'download',
      header: i18n.t({ id: 'billing.column.download', message: 'Download' }),
      align: 'end',
      wide: true,
      cell: (one) => {
        const month = idOf(one.name);
        return (
          <span className={css.link}>
            {(['PDF', 'CSV'] as const).map((format) => (
              <a key={format} href={statementHref(workspace, month, format)} download aria-label={i18n.t({ id: 'billing.statement.download', message: 'Statement of {month} as {format}', values: { month: monthText(month), format } })}>
                {format}
              </a>
            ))}
          </span>
        );
      },
    },
  ];
  return (
    <BillingFrame workspace={workspace} title={i18n.t({ id: 'billing.statements.title', message: 'Statements' })}>
      <DataTable
        label={i18n.t({ id: 'billing.statements.title', message: 'Statements' })}
        what={i18n.t({ id: 'billing.statements.what', message: 'the statements' })}
        columns={columns}
        rowKey={(one) => idOf(one.name)}
        rowLink={(one) => paths.statement(workspace, idOf(one.name))}
        empty={<EmptyState title={i18n.t({ id: 'billing.statements.none', message: 'No statements yet' })}>{i18n.t({ id: 'billing.statements.noneText', message: 'Each UTC month has a statement, starting with the month of the first credit.' })}</EmptyState>}
        {...tableProps(query, (page) => page.statements)}
      />
    </BillingFrame>
  );
}
