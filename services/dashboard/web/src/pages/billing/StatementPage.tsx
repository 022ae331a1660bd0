import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import type { Schema } from '@/api/types';
import { workspaceQuery } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useParam, useWorkspace } from '@/app/search';
import { count } from '@/format/money';
import { IconPrinter } from '@/icons';
import { Button, Card, DataTable, EmptyState, ErrorState, HrefButton, Money, Notice, Page, RowSkeletons, Time, type Column } from '@/ui';
import css from './billing.module.css';
import { monthText } from './month';
import { statementHref, statementQuery } from './queries';
import { movementName } from './words';

type Line = Schema<'StatementLine'>;

export default function StatementPage() {
  const workspace = useWorkspace();
  const month = useParam('month');
  const query = useQuery(statementQuery(workspace, month));
  const { data: here } = useQuery(workspaceQuery(workspace));
  const statement = query.data;
  return (
    <Page
      title={i18n.t({ id: 'billing.statement.title', message: 'Statement {month}', values: { month: monthText(month) } })}
      subtitle={i18n.t({ id: 'billing.statement.subtitle', message: '{workspace} · UTC month · amounts in USD', values: { workspace: here?.displayName || workspace } })}
      back={{ to: paths.statements(workspace), label: i18n.t({ id: 'billing.statements.title', message: 'Statements' }) }}
      actions={
        <>
          <HrefButton href={statementHref(workspace, month, 'PDF')} download>
            PDF
          </HrefButton>
          <HrefButton href={statementHref(workspace, month, 'CSV')} download>
            CSV
          </HrefButton>
          <Button icon={IconPrinter} onClick={() => window.print()}>
            {i18n.t({ id: 'billing.statement.print', message: 'Print' })}
          </Button>
        </>
      }
    >
      {statement === undefined ? (
        query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'billing.statement.what', message: 'the statement' })} retry={() => void query.refetch()} /> : <RowSkeletons />
      ) : (
        <>
          {statement.preliminaryTime && (
            <Notice>
              {i18n.t({ id: 'billing.statement.preliminary', message: 'This month has not ended. The figures are preliminary, as of' })} <Time at={statement.preliminaryTime} exact />
            </Notice>
          )}
          {statement.number && <p className="quiet">{i18n.t({ id: 'billing.statement.number', message: 'Number {number}', values: { number: statement.number } })}</p>}
          <div className={css.two}>
            <Card title={i18n.t({ id: 'billing.statement.sum', message: 'Summary' })}>
              <Amounts rows={sums(statement)} />
            </Card>
            <Card title={i18n.t({ id: 'billing.statement.movements', message: 'Balance changes' })}>
              {statement.movements.length === 0 ? (
                <p className="quiet">{i18n.t({ id: 'billing.statement.noMovements', message: 'No balance changes in this month.' })}</p>
              ) : (
                <table className={css.lines}>
                  <tbody>
                    {statement.movements.map((line) => (
                      <tr key={line.item}>
                        <th scope="row">{movementName(line.item)}</th>
                        <td><Money usd={line.amountUsd} style="exact" plus /></td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              )}
            </Card>
          </div>
          <Owed statement={statement} />
          <h2>{i18n.t({ id: 'billing.statement.byModel', message: 'Usage by model' })}</h2>
          <Usage lines={statement.usageByModel} total={statement.usedUsd} item={i18n.t({ id: 'billing.statement.model', message: 'Model' })} />
          <h2>{i18n.t({ id: 'billing.statement.byKey', message: 'Usage by API key' })}</h2>
          <Usage lines={statement.usageByKey} total={statement.usedUsd} item={i18n.t({ id: 'billing.statement.key', message: 'API key' })} />
        </>
      )}
    </Page>
  );
}

function sums(statement: Schema<'Statement'>): [string, string][] {
  const minus = (usd: string) => (usd === '0.00' ? usd : `-${usd}`);
  return [
    [i18n.t({ id: 'billing.column.opening', message: 'Opening' }), statement.openingUsd],
    [i18n.t({ id: 'billing.column.added', message: 'Added' }), statement.addedUsd],
    [i18n.t({ id: 'billing.column.removed', message: 'Removed' }), minus(statement.removedUsd)],
    [i18n.t({ id: 'billing.column.used', message: 'Used' }), minus(statement.usedUsd)],
    [i18n.t({ id: 'billing.column.closing', message: 'Closing' }), statement.closingUsd],
  ];
}

// What chargebacks took beyond the credit, in the months in which something is owed.
function Owed({ statement }: { statement: Schema<'Statement'> }) {
  const { openingReceivableUsd, receivableMovements, closingReceivableUsd } = statement;
  if (openingReceivableUsd === '0.00' && receivableMovements.length === 0) return null;
  return (
    <Card title={i18n.t({ id: 'billing.statement.owed', message: 'Amount owed after disputes' })}>
      <Amounts
        rows={[
          [i18n.t({ id: 'billing.statement.owedAtStart', message: 'Owed at the start' }), openingReceivableUsd],
          ...receivableMovements.map((line): [string, string] => [movementName(line.item), line.amountUsd]),
          [i18n.t({ id: 'billing.statement.owedAtEnd', message: 'Owed at the end' }), closingReceivableUsd],
        ]}
      />
    </Card>
  );
}

function Amounts({ rows }: { rows: [string, string][] }) {
  return (
    <table className={css.sum}>
      <tbody>
        {rows.map(([label, usd]) => (
          <tr key={label}>
            <th scope="row">{label}</th>
            <td><Money usd={usd} style="exact" /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Usage({ lines, total, item }: { lines: Line[]; total: string; item: string }) {
  const columns: Column<Line>[] = [
    { id: 'item', header: item, cell: (line) => line.item, weight: 2.4, total: i18n.t({ id: 'billing.statement.total', message: 'Total' }) },
    { id: 'requests', header: i18n.t({ id: 'billing.column.requests', message: 'Requests' }), cell: (line) => count(line.requests), align: 'end', weight: 1.1, total: '' },
    { id: 'amount', header: i18n.t({ id: 'billing.column.amount', message: 'Amount' }), cell: (line) => <Money usd={line.amountUsd} style="row" />, align: 'end', weight: 1.5, total: <Money usd={total} style="row" /> },
  ];
  return <DataTable label={item} what={item} columns={columns} rows={lines} rowKey={(line) => line.item} empty={<EmptyState title={i18n.t({ id: 'billing.statement.noUse', message: 'No requests in this month' })} />} />;
}
