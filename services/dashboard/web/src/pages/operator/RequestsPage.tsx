// Finds one request of any workspace by an id from a customer or a log.
import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { asApiError } from '@/api/errors';
import { useSearchState } from '@/app/search';
import { ReceiptView } from '@/pages/usage/ReceiptView';
import { requestQuery } from '@/pages/usage/requests';
import { Button, Card, EmptyState, ErrorState, Filters, Form, Page, RowSkeletons, TextField, useFields } from '@/ui';
import { WorkspaceLink } from './parts';

export default function RequestsPage() {
  const [search, setSearch] = useSearchState((raw) => ({ id: typeof raw.id === 'string' ? raw.id : typeof raw.id === 'number' ? String(raw.id) : '' }));
  return (
    <Page
      title={i18n.t({ id: 'operator.requests.title', message: 'Requests' })}
      subtitle={i18n.t({ id: 'operator.requestsText', message: 'Find a request of any workspace by its ID, by the ID of its response, or by an x-request-id that the gateway generated.' })}
      narrow
    >
      <Find key={search.id} id={search.id} onFind={(id) => setSearch({ id })} />
      {search.id !== '' && <Found id={search.id} />}
    </Page>
  );
}

function Find({ id, onFind }: { id: string; onFind: (id: string) => void }) {
  const fields = useFields({ id }, async (values) => onFind(values.id.trim()));
  return (
    <Form fields={fields} actions={null}>
      <Filters>
        <TextField label={i18n.t({ id: 'operator.requestId', message: 'Request ID' })} mono autoFocus={id === ''} {...fields.bind('id')} />
        <Button type="submit">{i18n.t({ id: 'operator.find', message: 'Find' })}</Button>
      </Filters>
    </Form>
  );
}

function Found({ id }: { id: string }) {
  const found = useQuery({ ...requestQuery('-', id), retry: false });
  if (found.data) {
    const workspace = found.data.name.split('/')[1] ?? '';
    return (
      <Card title={i18n.t({ id: 'operator.workspace.title', message: 'Workspace' })} actions={<WorkspaceLink name={found.data.name} />}>
        <ReceiptView receipt={found.data} workspace={workspace} />
      </Card>
    );
  }
  if (found.error === null) return <Card><RowSkeletons /></Card>;
  return (
    <Card>
      {asApiError(found.error).status === 404 ? (
        <EmptyState title={i18n.t({ id: 'operator.noRequest', message: 'No request with this ID' })}>
          {i18n.t({ id: 'operator.noRequestText', message: 'No workspace has a request with this ID. Refused requests have no receipt. To find an x-request-id that a client chose, search in its workspace.' })}
        </EmptyState>
      ) : (
        <ErrorState error={found.error} what={i18n.t({ id: 'operator.requestWhat', message: 'the request' })} retry={() => void found.refetch()} />
      )}
    </Card>
  );
}
