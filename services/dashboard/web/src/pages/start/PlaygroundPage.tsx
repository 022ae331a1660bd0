import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function PlaygroundPage() {
  return <ApiPage title={i18n.t({ id: 'start.playground.title', message: 'Playground' })} calls={['POST /v1/chat/completions']} />;
}
