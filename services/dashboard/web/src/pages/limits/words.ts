import { i18n } from '@lingui/core';
import type { Schema } from '@/api/types';
import { count } from '@/format/money';

export type LimitValues = Schema<'LimitValues'>;

export function kindText(kind: Schema<'LimitUse'>['kind']): string {
  switch (kind) {
    case 'LIMIT_KIND_REQUESTS_PER_MINUTE':
      return i18n.t({ id: 'limits.requests', message: 'Requests per minute' });
    case 'LIMIT_KIND_TOKENS_PER_MINUTE':
      return i18n.t({ id: 'limits.tokens', message: 'Tokens per minute' });
    default:
      return i18n.t({ id: 'limits.concurrent', message: 'Concurrent requests' });
  }
}

export function modelText(model: string): string {
  return model || i18n.t({ id: 'limits.allModels', message: 'all models' });
}

// 0 means no limit.
export function limitText(value: string | undefined): string {
  return value === undefined || value === '0' ? i18n.t({ id: 'limits.none', message: 'None' }) : count(value);
}
