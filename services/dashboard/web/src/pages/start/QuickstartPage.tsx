// The first request and its cost on one page: an API key, an example request, and its receipt.
import { i18n } from '@lingui/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { newRequestId } from '@/api/client';
import { idOf } from '@/api/types';
import { modelsQuery, usePermissions } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useWorkspace } from '@/app/search';
import { useSite } from '@/app/site';
import { createKey, keysChanged } from '@/pages/keys/queries';
import { Button, Card, CodeTabs, Failure, Form, LinkButton, Notice, Page, Secret, SelectField, TextButton, TextField, useFields } from '@/ui';
import { snippets } from '@/api/snippets';
import { Waiting } from './Waiting';
import css from './start.module.css';

interface Made {
  key: string;
  secret: string;
}

export default function QuickstartPage() {
  const workspace = useWorkspace();
  const may = usePermissions(workspace);
  // The secret is in this state only, and is lost when the page is left.
  const [made, setMade] = useState<Made | null>(null);
  return (
    <Page title={i18n.t({ id: 'start.quickstart.title', message: 'Quickstart' })} subtitle={i18n.t({ id: 'start.quickstart.about', message: 'Send your first request and see its cost in two minutes.' })}>
      <div className={css.steps}>
        <Card title={i18n.t({ id: 'start.step1', message: '1. Create an API key' })}>
          {made ? (
            <Kept made={made} />
          ) : may('KeyService/CreateKey') ? (
            <CreateKey workspace={workspace} onMade={setMade} />
          ) : (
            <p className={css.quiet}>{i18n.t({ id: 'start.mayNot', message: 'Your role cannot create API keys. Ask an owner or admin of the workspace for a key.' })}</p>
          )}
        </Card>
        <Card title={i18n.t({ id: 'start.step2', message: '2. Send a request' })}>
          <Calls secret={made?.secret ?? ''} />
        </Card>
        <Card title={i18n.t({ id: 'start.step3', message: '3. View the cost' })}>
          {made ? <Waiting workspace={workspace} keyId={made.key} /> : <p className={css.quiet}>{i18n.t({ id: 'start.afterKey', message: 'Your request appears here about a second after its response.' })}</p>}
        </Card>
        {made && (
          <div className={css.links}>
            <LinkButton to={paths.key(workspace, made.key)}>{i18n.t({ id: 'start.setQuota', message: 'Set a monthly quota' })}</LinkButton>
            {may('InvitationService/CreateInvitation') && <LinkButton to={paths.members(workspace)}>{i18n.t({ id: 'start.invite', message: 'Invite your team' })}</LinkButton>}
          </div>
        )}
      </div>
    </Page>
  );
}

function CreateKey({ workspace, onMade }: { workspace: string; onMade: (made: Made) => void }) {
  const client = useQueryClient();
  const [requestId] = useState(newRequestId);
  const fields = useFields({ displayName: i18n.t({ id: 'start.firstKey', message: 'first key' }) }, async ({ displayName }) => {
    const answer = await createKey(workspace, requestId, { displayName: displayName.trim() });
    onMade({ key: idOf(answer.key?.name ?? ''), secret: answer.secret });
    void keysChanged(client, workspace);
  });
  return (
    <Form
      fields={fields}
      actions={
        <>
          <LinkButton kind="plain" to={paths.keys(workspace)} search={{ create: true }}>
            {i18n.t({ id: 'start.moreOptions', message: 'More options' })}
          </LinkButton>
          <Button type="submit" kind="primary" busy={fields.busy}>
            {i18n.t({ id: 'start.createKey', message: 'Create API key' })}
          </Button>
        </>
      }
    >
      <TextField label={i18n.t({ id: 'start.keyName', message: 'Name' })} hint={i18n.t({ id: 'start.keyNameHint', message: 'What uses the key' })} maxLength={100} {...fields.bind('displayName')} />
    </Form>
  );
}

function Kept({ made }: { made: Made }) {
  const [folded, setFolded] = useState(false);
  if (!made.secret) return <Notice tone="warn">{i18n.t({ id: 'start.secretGone', message: 'The response with the secret key was lost, and the key cannot be shown again. Rotate the key to get a new one.' })}</Notice>;
  if (folded) {
    return (
      <p className={css.quiet}>
        {i18n.t({ id: 'start.folded', message: 'The key is hidden. You can show it again until you leave this page.' })} <TextButton onClick={() => setFolded(false)}>{i18n.t({ id: 'start.showAgain', message: 'Show' })}</TextButton>
      </p>
    );
  }
  return (
    <div className={css.stack}>
      <Notice tone="warn">{i18n.t({ id: 'start.copyNow', message: 'Copy the key now. Tollgate stores only a hash and cannot show it again.' })}</Notice>
      <Secret value={made.secret} label={i18n.t({ id: 'start.secret', message: 'Secret key' })} />
      <div>
        <Button onClick={() => setFolded(true)}>{i18n.t({ id: 'start.saved', message: 'I saved the key' })}</Button>
      </div>
    </div>
  );
}

function Calls({ secret }: { secret: string }) {
  const site = useSite();
  const models = useQuery(modelsQuery());
  const [chosen, setChosen] = useState('');
  const serving = (models.data?.models ?? []).filter((one) => one.serving && one.capabilities.includes('chat'));
  const idOfModel = (name: string) => name.replace(/^models\//, '');
  const model = serving.find((one) => idOfModel(one.name) === chosen) ?? serving[0];
  useEffect(() => setChosen(''), [models.data === undefined]);
  if (models.error && !models.data) return <Failure error={models.error} retry={() => void models.refetch()} />;
  if (models.data && !model) return <Notice tone="warn">{i18n.t({ id: 'start.noModel', message: 'No chat model is available. The operator adds models to the catalog.' })}</Notice>;
  if (!model || !site) return null;
  return (
    <div className={css.stack}>
      <div className={css.row}>
        <SelectField label={i18n.t({ id: 'start.model', message: 'Model' })} value={idOfModel(model.name)} options={serving.map((one) => ({ value: idOfModel(one.name), label: idOfModel(one.name) }))} onChange={setChosen} />
      </div>
      <CodeTabs
        label={i18n.t({ id: 'start.calls', message: 'Example request' })}
        tabs={snippets({ baseUrl: site.base_url || location.origin, secret: secret || 'sk-tollgate-…', model: idOfModel(model.name), window: model.contextWindow })}
      />
      {!secret && <p className={css.quiet}>{i18n.t({ id: 'start.keyComes', message: 'The example includes your API key after you create it.' })}</p>}
    </div>
  );
}
