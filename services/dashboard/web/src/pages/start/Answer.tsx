import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { paths } from '@/app/paths';
import { count } from '@/format/money';
import { duration } from '@/format/time';
import { requestQuery } from '@/pages/usage/requests';
import { Copy, Failure, Link, Money, Notice } from '@/ui';
import type { Usage } from './chat';
import css from './start.module.css';

export interface Message {
  key: number;
  role: 'user' | 'assistant';
  content: string;
  model?: string;
  reasoning?: string;
  state?: 'running' | 'done' | 'stopped' | 'failed';
  id?: string; // of the response
  finish?: string;
  usage?: Usage;
  firstTokenUs?: number;
  error?: unknown;
}

export function MessageView({ message, workspace }: { message: Message; workspace: string }) {
  const { role, content, reasoning, state } = message;
  return (
    <article className={css.turn} data-role={role}>
      <div className={css.who}>
        {role === 'user' ? i18n.t({ id: 'start.you', message: 'You' }) : message.model}
        {role === 'assistant' && content && state !== 'running' && <Copy value={content} label={i18n.t({ id: 'start.copyAnswer', message: 'Copy response' })} bare />}
      </div>
      {reasoning && (
        <details className={css.reasoning} open={state === 'running' && !content}>
          <summary>{i18n.t({ id: 'start.reasoning', message: 'Reasoning' })}</summary>
          <div className={css.text}>{reasoning}</div>
        </details>
      )}
      {content && <div className={css.text}>{content}</div>}
      {state === 'running' && !content && !reasoning && (
        <div className={css.wait}>
          <span className={css.dot} aria-hidden />
          {i18n.t({ id: 'start.asking', message: 'Waiting for the first token…' })}
        </div>
      )}
      {state === 'failed' && <Failure error={message.error} />}
      {message.finish === 'length' && <Notice>{i18n.t({ id: 'start.cutByLength', message: 'The response reached the maximum number of output tokens.' })}</Notice>}
      {role === 'assistant' && state !== 'running' && message.id && <Under message={message} workspace={workspace} />}
    </article>
  );
}

// Tokens and cost. For a stopped response they appear in its receipt a moment later.
function Under({ message, workspace }: { message: Message; workspace: string }) {
  const { usage, id = '', state } = message;
  const receipt = useQuery({ ...requestQuery(workspace, id), enabled: !usage && id !== '', retry: 5, retryDelay: 1_000 });
  const found = receipt.data;
  const tokens = usage
    ? { in: count(usage.promptTokens), out: count(usage.completionTokens), reasoning: usage.reasoningTokens }
    : found && { in: count(found.tokens?.promptTokens ?? '0'), out: count(found.tokens?.completionTokens ?? '0'), reasoning: 0 };
  const cost = usage?.cost || found?.chargedUsd;
  return (
    <div className={css.under}>
      {state === 'stopped' && <span>{i18n.t({ id: 'start.stoppedByYou', message: 'Stopped' })}</span>}
      {tokens && <span>{i18n.t({ id: 'start.inOut', message: '{in} input tokens, {out} output tokens', values: { in: tokens.in, out: tokens.out } })}</span>}
      {tokens && tokens.reasoning > 0 && <span>{i18n.t({ id: 'start.ofReasoning', message: 'including {tokens} reasoning tokens', values: { tokens: count(tokens.reasoning) } })}</span>}
      {message.firstTokenUs !== undefined && <span>{i18n.t({ id: 'start.firstToken', message: 'first token {time}', values: { time: duration(message.firstTokenUs) } })}</span>}
      {cost && (
        <b>
          <Money usd={cost} style="exact" />
        </b>
      )}
      <Link to={paths.request(workspace, id)}>{i18n.t({ id: 'start.receipt', message: 'Receipt' })}</Link>
    </div>
  );
}
