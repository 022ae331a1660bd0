import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, newRequestId, unwrap } from '@/api/client';
import { asApiError } from '@/api/errors';
import { queryClient } from '@/api/query';
import { idOf, type Schema } from '@/api/types';
import { usePermissions } from '@/api/workspace';
import { Button, Card, Confirm, ErrorState, Failure, RowSkeletons, StateChip } from '@/ui';
import css from './billing.module.css';
import { methodsQuery } from './queries';

type Method = Schema<'PaymentMethod'>;

export function Methods({ workspace }: { workspace: string }) {
  const query = useQuery(methodsQuery(workspace));
  const may = usePermissions(workspace);
  const [removing, setRemoving] = useState<Method | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [requestId, setRequestId] = useState(newRequestId);
  const setup = async () => {
    setBusy(true);
    setError(null);
    try {
      const { setupUrl } = await unwrap(api.POST('/admin/v1/workspaces/{workspace}/paymentMethods:setup', { params: { path: { workspace } }, body: { requestId } }));
      location.assign(setupUrl);
    } catch (caught) {
      setError(asApiError(caught));
      setRequestId(newRequestId());
    } finally {
      setBusy(false);
    }
  };
  const choose = async (method: Method) => {
    setBusy(true);
    setError(null);
    try {
      await unwrap(api.POST('/admin/v1/workspaces/{workspace}/paymentMethods/{paymentMethod}:setDefault', { params: { path: { workspace, paymentMethod: idOf(method.name) } }, body: { requestId: newRequestId() } }));
      await queryClient.invalidateQueries({ queryKey: ['paymentMethods', workspace] });
    } catch (caught) {
      setError(asApiError(caught));
    } finally {
      setBusy(false);
    }
  };
  const save = may('PaymentService/SetupPaymentMethod') && (
    <Button small busy={busy} onClick={() => void setup()}>
      {i18n.t({ id: 'billing.methods.save', message: 'Add card' })}
    </Button>
  );
  return (
    <Card title={i18n.t({ id: 'billing.methods', message: 'Payment methods' })} actions={save}>
      {error != null && <Failure error={error} />}
      {query.data === undefined ? (
        query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'billing.methods.what', message: 'the payment methods' })} retry={() => void query.refetch()} /> : <RowSkeletons rows={2} />
      ) : query.data.paymentMethods.length === 0 ? (
        <p className="quiet">{i18n.t({ id: 'billing.methods.none', message: 'No card is saved. Auto-reload requires a card. Card data stays with the payment provider.' })}</p>
      ) : (
        <ul className={css.methods}>
          {query.data.paymentMethods.map((method) => (
            <li key={method.name}>
              <span>{label(method)}</span>
              <span className="quiet">{i18n.t({ id: 'billing.methods.expiry', message: 'expires {expiry}', values: { expiry: method.expiry } })}</span>
              {method.usedByAutoReload && <StateChip tone="info">{i18n.t({ id: 'billing.methods.used', message: 'Used by auto-reload' })}</StateChip>}
              {method.refusedReason && <StateChip tone="bad">{i18n.t({ id: 'billing.methods.refused', message: 'Refused by its issuer' })}</StateChip>}
              {!method.usedByAutoReload && !method.refusedReason && may('PaymentService/SetDefaultPaymentMethod') && (
                <Button small kind="plain" busy={busy} onClick={() => void choose(method)}>
                  {i18n.t({ id: 'billing.methods.choose', message: 'Make default' })}
                </Button>
              )}
              {may('PaymentService/DeletePaymentMethod') && (
                <Button small kind="plain" onClick={() => setRemoving(method)}>
                  {i18n.t({ id: 'billing.methods.remove', message: 'Remove' })}
                </Button>
              )}
            </li>
          ))}
        </ul>
      )}
      <Confirm
        opened={removing !== null}
        onClose={() => setRemoving(null)}
        title={i18n.t({ id: 'billing.methods.removeTitle', message: 'Remove card' })}
        verb={i18n.t({ id: 'billing.methods.removeVerb', message: 'Remove card' })}
        danger
        act={async () => {
          if (removing) await unwrap(api.DELETE('/admin/v1/workspaces/{workspace}/paymentMethods/{paymentMethod}', { params: { path: { workspace, paymentMethod: idOf(removing.name) } } }));
          await queryClient.invalidateQueries({ queryKey: ['paymentMethods', workspace] });
        }}
      >
        {removing && (removing.usedByAutoReload
          ? i18n.t({ id: 'billing.methods.removeUsed', message: 'Auto-reload charges {card}. Without another card, auto-reload pauses.', values: { card: label(removing) } })
          : i18n.t({ id: 'billing.methods.removeText', message: 'This removes {card} here and at the payment provider.', values: { card: label(removing) } }))}
      </Confirm>
    </Card>
  );
}

function label(method: Method): string {
  return `${method.brand.charAt(0).toUpperCase()}${method.brand.slice(1)} •••• ${method.last4}`;
}
