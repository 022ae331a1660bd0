import { i18n } from '@lingui/core';
import { Page } from '@/ui';

export default function KeysPage() {
  return <Page title={i18n.t({ id: 'keys.keys', message: 'Keys' })}>{null}</Page>;
}
