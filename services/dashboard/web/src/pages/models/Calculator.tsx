// The cost of one request and of many. It is calculated in whole pico-dollars, so it equals the receipt to the last digit.
import { i18n } from '@lingui/core';
import { useState } from 'react';
import { count } from '@/format/money';
import { costOf, typedCount } from '@/format/price';
import { Card, Money, SelectField, TextField } from '@/ui';
import { modelId, type Model } from './models';
import css from './models.module.css';

export function Calculator({ models, fixed }: { models: Model[]; fixed?: Model }) {
  const [chosen, setChosen] = useState('');
  const [input, setInput] = useState('1000');
  const [output, setOutput] = useState('500');
  const [requests, setRequests] = useState('1000');
  const model = fixed ?? models.find((one) => modelId(one) === chosen) ?? models.find((one) => one.serving) ?? models[0];
  if (!model) return null;
  const wrong = i18n.t({ id: 'models.calc.wrong', message: 'Enter a whole number' });
  const [tokensIn, tokensOut, times] = [typedCount(input), typedCount(output), typedCount(requests)];
  const part = (tokens: bigint | null, usdPerMillion: string) => (tokens === null ? null : costOf([{ tokens, usdPerMillion }]));
  const parts = tokensIn === null || tokensOut === null ? null : [{ tokens: tokensIn, usdPerMillion: model.inputUsdPerMillion }, { tokens: tokensOut, usdPerMillion: model.outputUsdPerMillion }];
  const one = parts && costOf(parts);
  const all = parts && times !== null ? costOf(parts, times) : null;
  const tooLong = tokensIn !== null && tokensOut !== null && tokensIn + tokensOut > BigInt(model.contextWindow) && model.contextWindow !== '0';
  return (
    <Card title={i18n.t({ id: 'models.calc.title', message: 'Cost calculator' })} subtitle="USD">
      <div className={css.calculator}>
        {!fixed && (
          <SelectField
            label={i18n.t({ id: 'models.col.model', message: 'Model' })}
            value={modelId(model)}
            options={models.map((each) => ({ value: modelId(each), label: modelId(each) }))}
            onChange={setChosen}
            searchable
          />
        )}
        <TextField label={i18n.t({ id: 'models.calc.in', message: 'Input tokens per request' })} inputMode="numeric" value={input} onChange={setInput} error={tokensIn === null ? wrong : undefined} />
        <TextField label={i18n.t({ id: 'models.calc.out', message: 'Output tokens per request' })} inputMode="numeric" value={output} onChange={setOutput} error={tokensOut === null ? wrong : undefined} />
        <TextField label={i18n.t({ id: 'models.calc.requests', message: 'Requests' })} inputMode="numeric" value={requests} onChange={setRequests} error={times === null ? wrong : undefined} />
      </div>
      <table className={css.sum} aria-live="polite">
        <tbody>
          <tr>
            <td>{i18n.t({ id: 'models.calc.prompt', message: 'Input tokens' })}</td>
            <td>{count(tokensIn)}</td>
            <td>
              × <Money usd={model.inputUsdPerMillion} style="rate" /> / 1M
            </td>
            <td>
              <Money usd={part(tokensIn, model.inputUsdPerMillion)} style="exact" />
            </td>
          </tr>
          <tr>
            <td>{i18n.t({ id: 'models.calc.answer', message: 'Output tokens' })}</td>
            <td>{count(tokensOut)}</td>
            <td>
              × <Money usd={model.outputUsdPerMillion} style="rate" /> / 1M
            </td>
            <td>
              <Money usd={part(tokensOut, model.outputUsdPerMillion)} style="exact" />
            </td>
          </tr>
        </tbody>
        <tfoot>
          <tr>
            <th scope="row" colSpan={3}>
              {i18n.t({ id: 'models.calc.one', message: 'One request' })}
            </th>
            <td>
              <Money usd={one} style="exact" />
            </td>
          </tr>
          <tr>
            <th scope="row" colSpan={3}>
              {i18n.t({ id: 'models.calc.all', message: '{count, plural, one {# request} other {# requests}}', values: { count: times === null ? 0 : String(times) } })}
            </th>
            <td>
              <Money usd={all} style="exact" />
            </td>
          </tr>
        </tfoot>
      </table>
      <p className={css.note}>
        {tooLong
          ? i18n.t({ id: 'models.calc.tooLong', message: 'This exceeds the context window of the model: {tokens} input and output tokens in total.', values: { tokens: count(model.contextWindow) } })
          : i18n.t({ id: 'models.calc.note', message: 'Output tokens include reasoning tokens. Cached input tokens cost as much as other input tokens.' })}
      </p>
    </Card>
  );
}
