// The secret of a new key: once, here.
import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { idOf } from '@/api/types';
import { modelsQuery } from '@/api/workspace';
import { useSite } from '@/app/site';
import { CodeTabs, Notice, Secret } from '@/ui';
import { snippets } from './snippets';

export function NewSecret({ secret, allowed = [] }: { secret: string; allowed?: readonly string[] }) {
  const site = useSite();
  const { data } = useQuery(modelsQuery());
  const ids = data?.models.map((one) => one.name.replace(/^models\//, '')) ?? [];
  const model = ids.find((id) => allowed.length === 0 || allowed.includes(id) || allowed.includes(`${id.split('/')[0]}/*`)) ?? idOf('MODEL');
  if (!secret) {
    return <Notice tone="warn">{i18n.t({ id: 'keys.secretGone', message: 'The answer with the secret was lost, and it is not shown twice. Rotate the key to get a new one.' })}</Notice>;
  }
  return (
    <>
      <Notice tone="warn">{i18n.t({ id: 'keys.copyNow', message: 'Copy it now. Tollgate keeps only a hash and cannot show it again.' })}</Notice>
      <Secret value={secret} label={i18n.t({ id: 'keys.secret', message: 'Secret of the key' })} />
      {site && <CodeTabs label={i18n.t({ id: 'keys.firstCall', message: 'First call' })} tabs={snippets(site.base_url || location.origin, secret, model)} />}
    </>
  );
}
