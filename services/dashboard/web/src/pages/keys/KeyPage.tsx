import { i18n } from '@lingui/core';
import { Page } from '@/ui';

export default function KeyPage() {
  return <Page title={i18n.t({ id: 'keys.key', message: 'Key' })}>{null}</Page>;
}
