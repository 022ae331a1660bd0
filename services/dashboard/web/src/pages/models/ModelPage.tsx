import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { modelsQuery, usePermissions } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useParam, useWorkspace } from '@/app/search';
import { count } from '@/format/money';
import { Card, Copy, EmptyState, ErrorState, Facts, LinkButton, Money, Notice, Page, RowSkeletons, Time } from '@/ui';
import { Calculator } from './Calculator';
import { modelId, type Model } from './models';
import { Capabilities, Serving } from './parts';
import css from './models.module.css';

export default function ModelPage() {
  const workspace = useWorkspace();
  const [namespace, name] = [useParam('namespace'), useParam('model')];
  const id = `${namespace}/${name}`;
  const models = useQuery(modelsQuery());
  const model = models.data?.models.find((one) => modelId(one) === id);
  const may = usePermissions(workspace);
  return (
    <Page
      title={model?.displayName || id}
      back={{ to: paths.models(workspace), label: i18n.t({ id: 'models.models.title', message: 'Models' }) }}
      subtitle={
        <span className={css.id}>
          <code>{id}</code> <Copy value={id} label={i18n.t({ id: 'models.copy', message: 'Copy model ID' })} bare />
        </span>
      }
      actions={
        model?.serving && (
          <>
            {model.capabilities.includes('chat') && may('KeyService/CreateKey') && (
              <LinkButton to={paths.playground(workspace)} search={{ model: id }}>
                {i18n.t({ id: 'models.try', message: 'Try in playground' })}
              </LinkButton>
            )}
            {may('UsageService/QueryUsage') && (
              <LinkButton to={paths.usage(workspace)} search={{ model: id, by: 'key' }}>
                {i18n.t({ id: 'models.usage', message: 'Usage' })}
              </LinkButton>
            )}
          </>
        )
      }
    >
      {model ? (
        <>
          {!model.serving && <Notice tone="warn">{i18n.t({ id: 'models.stopped', message: 'The operator took this model out of service. Requests for it are refused.' })}</Notice>}
          {model.description && <p className={css.text}>{model.description}</p>}
          <Card>
            <ModelFacts model={model} />
          </Card>
          <Calculator models={[model]} fixed={model} />
        </>
      ) : (
        <Card>
          {models.data ? (
            <EmptyState title={i18n.t({ id: 'models.unknown', message: 'Model not found' })} action={<LinkButton to={paths.models(workspace)}>{i18n.t({ id: 'models.all', message: 'All models' })}</LinkButton>}>
              {i18n.t({ id: 'models.unknownText', message: 'The catalog does not contain this model.' })}
            </EmptyState>
          ) : models.error ? (
            <ErrorState error={models.error} what={i18n.t({ id: 'models.what', message: 'the models' })} retry={() => void models.refetch()} />
          ) : (
            <RowSkeletons />
          )}
        </Card>
      )}
    </Page>
  );
}

function ModelFacts({ model }: { model: Model }) {
  const perMillion = i18n.t({ id: 'models.perMillion', message: 'per million tokens' });
  return (
    <Facts
      facts={[
        { label: i18n.t({ id: 'models.col.state', message: 'Status' }), value: <Serving model={model} /> },
        { label: i18n.t({ id: 'models.priceIn', message: 'Input price' }), value: <><Money usd={model.inputUsdPerMillion} style="rate" /> {perMillion}</> },
        { label: i18n.t({ id: 'models.priceOut', message: 'Output price' }), value: <><Money usd={model.outputUsdPerMillion} style="rate" /> {perMillion}</> },
        { label: i18n.t({ id: 'models.contextWindow', message: 'Context window' }), value: i18n.t({ id: 'models.tokens', message: '{tokens} tokens', values: { tokens: count(model.contextWindow) } }) },
        { label: i18n.t({ id: 'models.maxOutput', message: 'Max output tokens' }), value: i18n.t({ id: 'models.tokens', message: '{tokens} tokens', values: { tokens: count(model.maxOutputTokens) } }) },
        { label: i18n.t({ id: 'models.col.can', message: 'Capabilities' }), value: <Capabilities model={model} /> },
        { label: i18n.t({ id: 'models.since', message: 'Added to the catalog' }), value: <Time at={model.createTime} exact /> },
        ...(model.workspace ? [{ label: i18n.t({ id: 'models.private', message: 'Private' }), value: i18n.t({ id: 'models.privateText', message: 'Only visible to this workspace' }) }] : []),
        ...(/^https?:\/\//.test(model.documentationUrl)
          ? [{ label: i18n.t({ id: 'models.docs', message: 'Documentation' }), value: <a href={model.documentationUrl} rel="noreferrer" target="_blank">{model.documentationUrl}</a> }]
          : []),
      ]}
    />
  );
}
