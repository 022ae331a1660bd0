// A chat with a model, the cost of each response, and the code for the same request.
import { i18n } from '@lingui/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { balanceQuery, modelsQuery, usePermissions } from '@/api/workspace';
import { useSearchState, useWorkspace } from '@/app/search';
import { useSite } from '@/app/site';
import { Button, Card, Code, Dialog, EmptyState, Notice, Page, SelectField, TextareaField, TextField } from '@/ui';
import { MessageView, type Message } from './Answer';
import { ask, parameterErrors, requestBody, type Parameters, type Turn } from './chat';
import { usePlaygroundKey } from './playgroundKey';
import css from './start.module.css';

function parse(search: Record<string, unknown>): { model: string } {
  return { model: typeof search.model === 'string' ? search.model : '' };
}

// The messages that are sent with the next one: without failed responses.
function turnsOf(messages: readonly Message[]): Turn[] {
  return messages.filter((one) => one.state !== 'failed' && one.content !== '').map(({ role, content }) => ({ role, content }));
}

export default function PlaygroundPage() {
  const workspace = useWorkspace();
  const may = usePermissions(workspace);
  const title = i18n.t({ id: 'start.playground.title', message: 'Playground' });
  return (
    <Page title={title} subtitle={i18n.t({ id: 'start.playground.about', message: 'Requests are charged like all others. They use a temporary API key, which is revoked when you leave this page.' })}>
      {may('KeyService/CreateKey') ? <Playground workspace={workspace} /> : <Card><EmptyState title={title}>{i18n.t({ id: 'start.mayNot', message: 'Your role cannot create API keys. Ask an owner or admin of the workspace for a key.' })}</EmptyState></Card>}
    </Page>
  );
}

function useTalk(workspace: string) {
  const client = useQueryClient();
  const secret = usePlaygroundKey(workspace);
  const [messages, setMessages] = useState<Message[]>([]);
  const [running, setRunning] = useState(false);
  const stop = useRef<AbortController | null>(null);
  const next = useRef(0);
  useEffect(() => () => stop.current?.abort(), []);
  const change = (key: number, update: (old: Message) => Partial<Message>) => setMessages((old) => old.map((one) => (one.key === key ? { ...one, ...update(one) } : one)));
  const send = async (parameters: Parameters, text: string) => {
    const question: Message = { key: next.current++, role: 'user', content: text };
    const key = next.current++;
    const turns = turnsOf([...messages, question]);
    setMessages((old) => [...old, question, { key, role: 'assistant', content: '', model: parameters.model, state: 'running' }]);
    setRunning(true);
    const abort = new AbortController();
    stop.current = abort;
    try {
      const made = await secret();
      const asked = performance.now();
      await ask(made, requestBody(parameters, turns), abort.signal, (piece) => {
        if (piece.error !== undefined) throw new Error(piece.error);
        change(key, (old) => ({
          id: piece.id ?? old.id,
          content: old.content + (piece.text ?? ''),
          reasoning: (old.reasoning ?? '') + (piece.reasoning ?? ''),
          finish: piece.finish ?? old.finish,
          usage: piece.usage ?? old.usage,
          firstTokenUs: old.firstTokenUs ?? (piece.text || piece.reasoning ? Math.round((performance.now() - asked) * 1000) : undefined),
        }));
      });
      change(key, () => ({ state: 'done' }));
    } catch (error) {
      change(key, () => (abort.signal.aborted ? { state: 'stopped' } : { state: 'failed', error }));
    } finally {
      setRunning(false);
      void client.invalidateQueries({ queryKey: balanceQuery(workspace).queryKey });
    }
  };
  return { messages, running, send, stop: () => stop.current?.abort(), clear: () => setMessages([]) };
}

function Playground({ workspace }: { workspace: string }) {
  const [{ model: chosen }, set] = useSearchState(parse);
  const models = useQuery(modelsQuery());
  const talk = useTalk(workspace);
  const [text, setText] = useState('');
  const [typed, setTyped] = useState({ system: '', maxTokens: '', temperature: '' });
  const [code, setCode] = useState(false);
  const end = useRef<HTMLDivElement>(null);
  const ids = (models.data?.models ?? []).filter((one) => one.serving && one.capabilities.includes('chat')).map((one) => one.name.replace(/^models\//, ''));
  const model = ids.includes(chosen) ? chosen : (ids[0] ?? '');
  const parameters: Parameters = { ...typed, model };
  const wrong = parameterErrors(parameters);
  const ready = model !== '' && text.trim() !== '' && !wrong.maxTokens && !wrong.temperature;
  const submit = () => {
    if (talk.running || !ready) return;
    setText('');
    void talk.send(parameters, text.trim());
  };
  useEffect(() => {
    if (talk.messages.length > 0) end.current?.scrollIntoView({ block: 'end' });
  }, [talk.messages.length]);
  if (models.data && ids.length === 0) return <Notice tone="warn">{i18n.t({ id: 'start.noModel', message: 'No chat model is available. The operator adds models to the catalog.' })}</Notice>;
  return (
    <div className={css.room}>
      <div className={css.talk}>
        {talk.messages.length === 0 ? (
          <Card>
            <EmptyState title={i18n.t({ id: 'start.askSomething', message: 'Start a conversation' })}>{i18n.t({ id: 'start.askText', message: 'The response is streamed. Its tokens and cost appear below it.' })}</EmptyState>
          </Card>
        ) : (
          talk.messages.map((message) => <MessageView key={message.key} message={message} workspace={workspace} />)
        )}
        <form
          className={css.send}
          onSubmit={(event) => {
            event.preventDefault();
            submit();
          }}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing && event.target instanceof HTMLTextAreaElement) {
              event.preventDefault();
              submit();
            }
          }}
        >
          <TextareaField label={i18n.t({ id: 'start.message', message: 'Message' })} hint={i18n.t({ id: 'start.messageHint', message: 'Press Enter to send, Shift+Enter for a new line' })} value={text} onChange={setText} rows={3} />
          <div className={css.buttons}>
            {talk.running ? (
              <Button onClick={talk.stop}>{i18n.t({ id: 'start.stop', message: 'Stop' })}</Button>
            ) : (
              <Button type="submit" kind="primary" disabledReason={ready ? undefined : i18n.t({ id: 'start.writeFirst', message: 'Enter a message first' })}>
                {i18n.t({ id: 'start.send', message: 'Send' })}
              </Button>
            )}
            <Button onClick={() => setCode(true)}>{i18n.t({ id: 'start.viewCode', message: 'View code' })}</Button>
            {talk.messages.length > 0 && !talk.running && (
              <Button kind="plain" onClick={talk.clear}>
                {i18n.t({ id: 'start.newTalk', message: 'New chat' })}
              </Button>
            )}
          </div>
          <div ref={end} />
        </form>
      </div>
      <Card title={i18n.t({ id: 'start.parameters', message: 'Parameters' })}>
        <div className={css.side}>
          <SelectField label={i18n.t({ id: 'start.model', message: 'Model' })} value={model} options={ids.map((id) => ({ value: id, label: id }))} onChange={(next) => set({ model: next })} searchable />
          <TextareaField label={i18n.t({ id: 'start.system', message: 'System message' })} value={typed.system} onChange={(system) => setTyped({ ...typed, system })} rows={3} />
          <TextField label={i18n.t({ id: 'start.maxTokens', message: 'Max output tokens' })} inputMode="numeric" value={typed.maxTokens} onChange={(maxTokens) => setTyped({ ...typed, maxTokens })} error={wrong.maxTokens ? i18n.t({ id: 'start.wholeNumber', message: 'Enter a whole number, or leave empty' }) : undefined} />
          <TextField label={i18n.t({ id: 'start.temperature', message: 'Temperature' })} inputMode="decimal" value={typed.temperature} onChange={(temperature) => setTyped({ ...typed, temperature })} error={wrong.temperature ? i18n.t({ id: 'start.zeroToTwo', message: 'Enter a number from 0 to 2, or leave empty' }) : undefined} />
        </div>
      </Card>
      <CodeDialog opened={code} onClose={() => setCode(false)} body={requestBody(wrong.maxTokens || wrong.temperature ? { ...parameters, maxTokens: '', temperature: '' } : parameters, [...turnsOf(talk.messages), ...(text.trim() ? [{ role: 'user' as const, content: text.trim() }] : [])])} />
    </div>
  );
}

// The same request for a terminal, without the API key, which ends with the page.
function CodeDialog({ opened, onClose, body }: { opened: boolean; onClose: () => void; body: Record<string, unknown> }) {
  const site = useSite();
  const base = (site?.base_url || location.origin).replace(/\/+$/, '');
  const quoted = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  const text = `export TOLLGATE_API_KEY=sk-tollgate-...\ncurl -N ${base}/v1/chat/completions \\\n  -H "Authorization: Bearer $TOLLGATE_API_KEY" \\\n  -H "Content-Type: application/json" \\\n  -H "x-tollgate-include-cost: true" \\\n  -d '${quoted}'`;
  return (
    <Dialog opened={opened} onClose={onClose} title={i18n.t({ id: 'start.viewCode', message: 'View code' })} wide>
      <p className={css.quiet}>{i18n.t({ id: 'start.codeText', message: 'The next request as a curl command. Use your own API key.' })}</p>
      <Code label="curl" text={text} />
    </Dialog>
  );
}
