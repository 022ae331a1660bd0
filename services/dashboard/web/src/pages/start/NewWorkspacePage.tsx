import { i18n } from '@lingui/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, newRequestId, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import { idOf } from '@/api/types';
import { paths } from '@/app/paths';
import { useSite } from '@/app/site';
import { Button, Card, Form, Notice, Page, TextField, useFields } from '@/ui';

// Creates a workspace where people may do so; otherwise it points to the operator.
export default function NewWorkspacePage() {
  const site = useSite();
  return (
    <Page title={i18n.t({ id: 'start.newWorkspace.title', message: 'New workspace' })} narrow>
      {site?.self_service_workspaces ? (
        <Card>
          <NewWorkspace />
        </Card>
      ) : (
        <Notice>{i18n.t({ id: 'start.newWorkspace.ask', message: 'The operator of this installation creates workspaces. You see a workspace as soon as you are invited to it.' })}</Notice>
      )}
    </Page>
  );
}

function NewWorkspace() {
  const navigate = useNavigate();
  const [requestId] = useState(newRequestId);
  const fields = useFields({ displayName: '' }, async ({ displayName }) => {
    if (displayName.trim() === '') return { displayName: i18n.t({ id: 'start.newWorkspace.noName', message: 'Enter a name.' }) };
    const made = await unwrap(api.POST('/admin/v1/workspaces', { params: { query: { requestId } }, body: { displayName: displayName.trim() } as never }));
    await queryClient.invalidateQueries();
    await navigate({ to: paths.quickstart(idOf(made.name)) });
    return undefined;
  });
  return (
    <Form
      fields={fields}
      actions={
        <Button type="submit" kind="primary" busy={fields.busy}>
          {i18n.t({ id: 'start.newWorkspace.create', message: 'Create workspace' })}
        </Button>
      }
    >
      <TextField label={i18n.t({ id: 'start.newWorkspace.name', message: 'Name' })} hint={i18n.t({ id: 'start.newWorkspace.hint', message: 'A workspace has its own API keys, credit, and members. You become its owner.' })} maxLength={100} autoFocus {...fields.bind('displayName')} />
    </Form>
  );
}
