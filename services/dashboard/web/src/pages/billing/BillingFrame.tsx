import { i18n } from '@lingui/core';
import type { ReactNode } from 'react';
import { usePermissions } from '@/api/workspace';
import { paths } from '@/app/paths';
import { LinkTabs, Page } from '@/ui';

interface BillingFrameProps {
  workspace: string;
  title: string;
  actions?: ReactNode;
  children: ReactNode;
}

// The billing tabs that the person may see.
export function BillingFrame({ workspace, title, actions, children }: BillingFrameProps) {
  const may = usePermissions(workspace);
  const tabs = [
    { to: paths.billing(workspace), label: i18n.t({ id: 'billing.tab.balance', message: 'Balance' }) },
    ...(may('PaymentService/GetAutoReload') ? [{ to: paths.autoReload(workspace), label: i18n.t({ id: 'billing.tab.autoReload', message: 'Auto-reload' }) }] : []),
    { to: paths.cap(workspace), label: i18n.t({ id: 'billing.tab.cap', message: 'Cap and alerts' }) },
    ...(may('LedgerService/ListTransactions') ? [{ to: paths.transactions(workspace), label: i18n.t({ id: 'billing.tab.transactions', message: 'Transactions' }) }] : []),
    ...(may('StatementService/ListStatements') ? [{ to: paths.statements(workspace), label: i18n.t({ id: 'billing.tab.statements', message: 'Statements' }) }] : []),
  ];
  return (
    <Page title={title} subtitle={i18n.t({ id: 'billing.subtitle', message: 'Amounts in USD. Months and times in UTC.' })} actions={actions}>
      <LinkTabs label={i18n.t({ id: 'billing.tabs', message: 'Billing' })} tabs={tabs} />
      {children}
    </Page>
  );
}
