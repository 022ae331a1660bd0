import { expect, it } from 'vitest';
import { events, parameterErrors, pieceOf, requestBody } from './chat';

it('events are whole wherever the stream is split', () => {
  const stream = 'data: {"id":"c1","choices":[{"delta":{"content":"Hé"}}]}\r\n\r\n: ping\n\ndata: [DONE]\n\n';
  for (let cut = 0; cut <= stream.length; cut++) {
    const first = events(stream.slice(0, cut));
    const second = events(first.rest + stream.slice(cut));
    expect([...first.data, ...second.data]).toEqual(['{"id":"c1","choices":[{"delta":{"content":"Hé"}}]}', '[DONE]']);
  }
});

it('text, reasoning, usage and errors are told apart', () => {
  expect(pieceOf('{"id":"c","choices":[{"delta":{"reasoning_content":"hm"}}],"usage":null}')).toMatchObject({ id: 'c', reasoning: 'hm', text: undefined });
  expect(pieceOf('{"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":50,"completion_tokens_details":{"reasoning_tokens":40},"cost":2.08e-05}}').usage).toEqual({
    promptTokens: 8, completionTokens: 50, reasoningTokens: 40, cost: '0.0000208',
  });
  expect(pieceOf('{"error":{"message":"gone"}}')).toEqual({ error: 'gone' });
});

it('empty fields are not sent', () => {
  const parameters = { model: 'a/b', system: ' ', maxTokens: '', temperature: '' };
  expect(Object.keys(requestBody(parameters, []))).toEqual(['model', 'messages', 'stream', 'stream_options']);
  expect(requestBody({ ...parameters, system: 'Be short.', maxTokens: '20', temperature: '0.5' }, [{ role: 'user', content: 'Hi' }])).toMatchObject({
    messages: [{ role: 'system', content: 'Be short.' }, { role: 'user', content: 'Hi' }], max_tokens: 20, temperature: 0.5,
  });
  expect(parameterErrors({ ...parameters, maxTokens: 'x', temperature: '2.5' })).toEqual({ maxTokens: true, temperature: true });
});
