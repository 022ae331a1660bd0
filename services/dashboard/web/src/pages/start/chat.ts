// One streamed response of the gateway, through the dashboard's own address.
import { ApiError } from '@/api/errors';
import { fromNumber } from '@/format/money';

export interface Turn {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

export interface Parameters {
  model: string;
  system: string;
  maxTokens: string; // empty: the model's default
  temperature: string;
}

export interface Usage {
  promptTokens: number;
  completionTokens: number;
  reasoningTokens: number;
  cost: string; // USD, as posted
}

export interface Piece {
  id?: string; // of the response
  text?: string;
  reasoning?: string;
  finish?: string;
  usage?: Usage;
  error?: string;
}

// The request body; "View code" shows it too.
export function requestBody({ model, system, maxTokens, temperature }: Parameters, turns: readonly Turn[]): Record<string, unknown> {
  return {
    model,
    messages: [...(system.trim() ? [{ role: 'system', content: system.trim() }] : []), ...turns.map(({ role, content }) => ({ role, content }))],
    stream: true,
    stream_options: { include_usage: true },
    ...(maxTokens.trim() ? { max_tokens: parseInt(maxTokens, 10) } : {}),
    ...(temperature.trim() ? { temperature: JSON.parse(temperature.trim()) as number } : {}),
  };
}

export function parameterErrors({ maxTokens, temperature }: Parameters): { maxTokens: boolean; temperature: boolean } {
  return { maxTokens: !/^\s*(\d{1,9})?\s*$/.test(maxTokens), temperature: !/^\s*((0|1)(\.\d{1,3})?|2(\.0{1,3})?)?\s*$/.test(temperature) };
}

interface Chunk {
  id?: string;
  choices?: { delta?: { content?: string | null; reasoning_content?: string | null }; finish_reason?: string | null }[];
  usage?: { prompt_tokens?: number; completion_tokens?: number; completion_tokens_details?: { reasoning_tokens?: number }; cost?: number } | null;
  error?: { message?: string };
}

export function pieceOf(data: string): Piece {
  const chunk = JSON.parse(data) as Chunk;
  if (chunk.error) return { error: chunk.error.message ?? '' };
  const choice = chunk.choices?.[0];
  return {
    id: chunk.id,
    text: choice?.delta?.content ?? undefined,
    reasoning: choice?.delta?.reasoning_content ?? undefined,
    finish: choice?.finish_reason ?? undefined,
    usage: chunk.usage
      ? {
          promptTokens: chunk.usage.prompt_tokens ?? 0,
          completionTokens: chunk.usage.completion_tokens ?? 0,
          reasoningTokens: chunk.usage.completion_tokens_details?.reasoning_tokens ?? 0,
          cost: chunk.usage.cost === undefined ? '' : fromNumber(chunk.usage.cost),
        }
      : undefined,
  };
}

// Splits a stream into the data of its events. An incomplete event waits for the next chunk.
export function events(buffer: string): { data: string[]; rest: string } {
  const lines = buffer.split(/\r?\n/);
  const rest = lines.pop() ?? '';
  return { data: lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trim()), rest };
}

export async function ask(secret: string, body: Record<string, unknown>, signal: AbortSignal, onPiece: (piece: Piece) => void): Promise<void> {
  const response = await fetch('/playground/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'x-tollgate-include-cost': 'true' },
    body: JSON.stringify(body),
    credentials: 'same-origin',
    signal,
  });
  if (!response.ok) throw await ApiError.of(response);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const { data, rest } = events(buffer + value);
    buffer = rest;
    for (const one of data) if (one !== '[DONE]') onPiece(pieceOf(one));
  }
}
