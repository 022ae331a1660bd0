import { i18n } from '@lingui/core';
import { useState } from 'react';
import { api, newRequestId, unwrap } from '@/api/client';
import { idOf, type Schema } from '@/api/types';
import { money, typedAmount } from '@/format/money';
import { AmountField, Button, Dialog, DialogActions, DialogForm, Secret, Segments, useFields } from '@/ui';
import { refreshMoney } from './Payments';

const AMOUNTS = ['25.00', '50.00', '100.00', '250.00'];

// Continues on the provider's page if there is one. Otherwise the payment waits until the operator confirms the transfer.
export function AddCredit({ workspace, opened, onClose }: { workspace: string; opened: boolean; onClose: () => void }) {
  return (
    <Dialog opened={opened} onClose={onClose} title={i18n.t({ id: 'billing.add.title', message: 'Add credit' })}>
      {opened && <AddForm workspace={workspace} onClose={onClose} />}
    </Dialog>
  );
}

function AddForm({ workspace, onClose }: { workspace: string; onClose: () => void }) {
  const [request, setRequest] = useState({ id: newRequestId(), amount: '' });
  const [made, setMade] = useState<Schema<'Payment'> | null>(null);
  const fields = useFields({ amountUsd: AMOUNTS[1]! }, async (values) => {
    const amountUsd = typedAmount(values.amountUsd);
    if (amountUsd === null) {
      return { amountUsd: i18n.t({ id: 'billing.notAmount', message: 'Enter an amount in USD, for example 25.00.' }) };
    }
    // A different amount is a new payment.
    const requestId = request.amount === '' || request.amount === amountUsd ? request.id : newRequestId();
    setRequest({ id: requestId, amount: amountUsd });
    const payment = await unwrap(api.POST('/admin/v1/workspaces/{workspace}/payments', { params: { path: { workspace }, query: { requestId } }, body: { amountUsd } }));
    if (payment.checkoutUrl) location.assign(payment.checkoutUrl);
    else setMade(payment);
    void refreshMoney(workspace);
  });
  if (made) {
    return (
      <>
        <p>{i18n.t({ id: 'billing.add.transfer', message: 'Transfer {amount} with this reference. The credit is added when the operator confirms that the money has arrived.', values: { amount: money(made.amountUsd) } })}</p>
        <Secret value={idOf(made.name)} label={i18n.t({ id: 'billing.add.reference', message: 'Transfer reference' })} />
        <DialogActions>
          <Button kind="primary" onClick={onClose}>
            {i18n.t({ id: 'billing.add.done', message: 'Done' })}
          </Button>
        </DialogActions>
      </>
    );
  }
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'billing.add.verb', message: 'Add credit' })} onCancel={onClose}>
      <Segments
        label={i18n.t({ id: 'billing.add.usual', message: 'Suggested amounts' })}
        value={fields.values.amountUsd}
        options={AMOUNTS.map((value) => ({ value, label: money(value) }))}
        onChange={(value) => fields.set('amountUsd', value)}
      />
      <AmountField label={i18n.t({ id: 'billing.add.amount', message: 'Amount' })} hint={i18n.t({ id: 'billing.add.hint', message: 'In USD, with at most two decimals. If cards are accepted, you continue on the payment provider’s page.' })} autoFocus {...fields.bind('amountUsd')} />
    </DialogForm>
  );
}
