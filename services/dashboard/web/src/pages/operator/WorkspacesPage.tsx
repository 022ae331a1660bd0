import { i18n } from '@lingui/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { newRequestId } from '@/api/client';
import { idOf } from '@/api/types';
import { usePermissions } from '@/api/workspace';
import { paths } from '@/app/paths';
import { IconPlus } from '@/icons';
import { Button, DataTable, Dialog, DialogForm, EmptyState, Filters, Form, Page, StateChip, TextField, Time, useFields, type Column } from '@/ui';
import { useChanged } from './parts';
import { createWorkspace, workspacePagesQuery, type Workspace } from './queries';

export default function WorkspacesPage() {
  const may = usePermissions(null);
  const [creating, setCreating] = useState(false);
  const query = useInfiniteQuery(workspacePagesQuery());
  const rows = query.data?.pages.flatMap((page) => page.workspaces);
  return (
    <Page
      title={i18n.t({ id: 'operator.workspaces.title', message: 'Workspaces' })}
      subtitle={i18n.t({ id: 'operator.workspacesText', message: 'A workspace owns API keys and credit. Newest first.' })}
      actions={may('WorkspaceService/CreateWorkspace') && <Button kind="primary" icon={IconPlus} onClick={() => setCreating(true)}>{i18n.t({ id: 'operator.createWorkspace', message: 'Create workspace' })}</Button>}
    >
      <GoTo />
      <DataTable<Workspace>
        label={i18n.t({ id: 'operator.workspaces.title', message: 'Workspaces' })}
        what={i18n.t({ id: 'operator.workspacesWhat', message: 'the workspaces' })}
        columns={columns()}
        rows={rows}
        rowKey={(workspace) => workspace.name}
        rowLink={(workspace) => paths.operatorWorkspace(idOf(workspace.name))}
        error={query.error}
        retry={() => void query.refetch()}
        hasMore={query.hasNextPage}
        loadingMore={query.isFetchingNextPage}
        onMore={() => void query.fetchNextPage()}
        empty={<EmptyState title={i18n.t({ id: 'operator.noWorkspaces', message: 'No workspaces yet' })}>{i18n.t({ id: 'operator.noWorkspacesText', message: 'A workspace owns the API keys and the credit of one customer or team.' })}</EmptyState>}
      />
      <Dialog opened={creating} onClose={() => setCreating(false)} title={i18n.t({ id: 'operator.createWorkspace', message: 'Create workspace' })}>
        {creating && <CreateForm onClose={() => setCreating(false)} />}
      </Dialog>
    </Page>
  );
}

export function WorkspaceState({ workspace }: { workspace: Workspace }) {
  if (workspace.state === 'WORKSPACE_STATE_CLOSED') return <StateChip tone="quiet">{i18n.t({ id: 'operator.wsClosed', message: 'Closed' })}</StateChip>;
  if (workspace.state === 'WORKSPACE_STATE_CLOSING') return <StateChip tone="warn">{i18n.t({ id: 'operator.wsClosing', message: 'Closing' })}</StateChip>;
  if (workspace.demonstration) return <StateChip tone="info">{i18n.t({ id: 'operator.wsDemonstration', message: 'Demonstration' })}</StateChip>;
  return <StateChip tone="ok">{i18n.t({ id: 'operator.wsActive', message: 'Active' })}</StateChip>;
}

function columns(): Column<Workspace>[] {
  return [
    { id: 'name', header: i18n.t({ id: 'operator.name', message: 'Name' }), weight: 2, cell: (workspace) => workspace.displayName || idOf(workspace.name) },
    { id: 'id', header: i18n.t({ id: 'operator.id', message: 'ID' }), weight: 1.5, wide: true, cell: (workspace) => <code>{idOf(workspace.name)}</code> },
    { id: 'state', header: i18n.t({ id: 'operator.state', message: 'Status' }), weight: 1.2, cell: (workspace) => <WorkspaceState workspace={workspace} /> },
    { id: 'zone', header: i18n.t({ id: 'operator.zone', message: 'Report time zone' }), weight: 1.2, wide: true, cell: (workspace) => workspace.reportTimeZone },
    { id: 'created', header: i18n.t({ id: 'operator.created', message: 'Created' }), weight: 1.2, cell: (workspace) => <Time at={workspace.createTime} /> },
  ];
}

// The API finds a workspace only by its id; the list has no search.
function GoTo() {
  const navigate = useNavigate();
  const fields = useFields({ id: '' }, async ({ id }) => {
    if (id.trim() !== '') await navigate({ to: paths.operatorWorkspace(id.trim()) });
  });
  return (
    <Form fields={fields} actions={null}>
      <Filters>
        <TextField label={i18n.t({ id: 'operator.workspaceId', message: 'Workspace ID' })} mono placeholder="acme" {...fields.bind('id')} />
        <Button type="submit">{i18n.t({ id: 'operator.open', message: 'Open' })}</Button>
      </Filters>
    </Form>
  );
}

function CreateForm({ onClose }: { onClose: () => void }) {
  const changed = useChanged();
  const navigate = useNavigate();
  const [requestId] = useState(newRequestId);
  const fields = useFields({ displayName: '', workspaceId: '', reportTimeZone: 'UTC' }, async (values) => {
    const made = await createWorkspace(requestId, values.workspaceId.trim(), { displayName: values.displayName.trim(), reportTimeZone: values.reportTimeZone.trim() });
    await changed();
    onClose();
    await navigate({ to: paths.operatorWorkspace(idOf(made.name)) });
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'operator.createWorkspace', message: 'Create workspace' })} onCancel={onClose}>
      <TextField label={i18n.t({ id: 'operator.name', message: 'Name' })} autoFocus maxLength={100} {...fields.bind('displayName')} />
      <TextField label={i18n.t({ id: 'operator.id', message: 'ID' })} mono hint={i18n.t({ id: 'operator.idHint', message: 'Lowercase letters, digits, and hyphens. Leave empty to generate an ID. It cannot be changed later.' })} {...fields.bind('workspaceId')} />
      <TextField label={i18n.t({ id: 'operator.zone', message: 'Report time zone' })} hint={i18n.t({ id: 'operator.zoneHint', message: 'Time zone of the days in reports, for example Europe/Berlin' })} {...fields.bind('reportTimeZone')} />
    </DialogForm>
  );
}
