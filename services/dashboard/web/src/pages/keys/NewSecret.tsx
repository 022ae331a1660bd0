// The secret of a new key, shown once.
import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { modelsQuery } from '@/api/workspace';
import { useSite } from '@/app/site';
import { CodeTabs, Notice, Secret } from '@/ui';
import { snippets } from '@/api/snippets';

export function NewSecret({ secret, allowed = [] }: { secret: string; allowed?: readonly string[] }) {
  const site = useSite();
  const { data } = useQuery(modelsQuery());
  const idOfModel = (name: string) => name.replace(/^models\//, '');
  const model = data?.models.find(({ name }) => allowed.length === 0 || allowed.includes(idOfModel(name)) || allowed.includes(`${idOfModel(name).split('/')[0]}/*`));
  if (!secret) {
    return <Notice tone="warn">{i18n.t({ id: 'keys.secretGone', message: 'The response with the secret key was lost, and the key cannot be shown again. Rotate the key to get a new one.' })}</Notice>;
  }
  return (
    <>
      <Notice tone="warn">{i18n.t({ id: 'keys.copyNow', message: 'Copy the key now. Tollgate stores only a hash and cannot show it again.' })}</Notice>
      <Secret value={secret} label={i18n.t({ id: 'keys.secret', message: 'Secret key' })} />
      {site && <CodeTabs label={i18n.t({ id: 'keys.firstCall', message: 'Example request' })} tabs={snippets({ baseUrl: site.base_url || location.origin, secret, model: model ? idOfModel(model.name) : 'MODEL', window: model?.contextWindow ?? '131072' })} />}
    </>
  );
}
