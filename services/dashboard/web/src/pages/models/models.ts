import { i18n } from '@lingui/core';
import type { Schema } from '@/api/types';

export type Model = Schema<'Model'>;

// The model's name in requests: "namespace/model".
export function modelId(model: Pick<Model, 'name'>): string {
  return model.name.replace(/^models\//, '');
}

export function capabilityName(capability: string): string {
  switch (capability) {
    case 'chat':
      return i18n.t({ id: 'models.cap.chat', message: 'Chat' });
    case 'completion':
      return i18n.t({ id: 'models.cap.completion', message: 'Completion' });
    case 'embedding':
      return i18n.t({ id: 'models.cap.embedding', message: 'Embedding' });
    case 'vision':
      return i18n.t({ id: 'models.cap.vision', message: 'Images' });
    case 'tools':
      return i18n.t({ id: 'models.cap.tools', message: 'Tools' });
    case 'reasoning':
      return i18n.t({ id: 'models.cap.reasoning', message: 'Reasoning' });
    default:
      return capability;
  }
}
