import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { asApiError } from '@/api/errors';
import { paths } from '@/app/paths';
import { useParam, useWorkspace } from '@/app/search';
import { Card, EmptyState, ErrorState, LinkButton, Notice, Page, RowSkeletons } from '@/ui';
import { ReceiptView } from './ReceiptView';
import { requestQuery } from './requests';

// Opened by the request's own id, an x-request-id from an error message, or the id of a response.
export default function RequestPage() {
  const workspace = useWorkspace();
  const request = useParam('request');
  const found = useQuery(requestQuery(workspace, request));
  const missing = found.error !== null && asApiError(found.error).status === 404;
  return (
    <Page title={i18n.t({ id: 'usage.request.title', message: 'Request' })} subtitle={<code>{request}</code>} back={{ to: paths.requests(workspace), label: i18n.t({ id: 'usage.requests.title', message: 'Requests' }) }} narrow>
      {found.data && found.data.matches !== '1' && found.data.matches !== '0' && (
        <Notice>{i18n.t({ id: 'usage.matches', message: '{count, plural, one {# request has this ID.} other {# requests have this ID. The newest is shown.}}', values: { count: found.data.matches } })}</Notice>
      )}
      <Card>
        {found.data ? (
          <ReceiptView receipt={found.data} workspace={workspace} />
        ) : missing ? (
          <EmptyState title={i18n.t({ id: 'usage.noRequest', message: 'No request with this ID' })} action={<LinkButton to={paths.requests(workspace)}>{i18n.t({ id: 'usage.allRequests', message: 'All requests' })}</LinkButton>}>
            {i18n.t({ id: 'usage.noRequestText', message: 'This workspace has no request with this ID. Refused requests have no receipt. A running request gets its receipt when it ends.' })}
          </EmptyState>
        ) : found.error ? (
          <ErrorState error={found.error} what={i18n.t({ id: 'usage.whatRequest', message: 'the request' })} retry={() => void found.refetch()} />
        ) : (
          <RowSkeletons />
        )}
      </Card>
    </Page>
  );
}
