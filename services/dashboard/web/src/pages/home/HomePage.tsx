import { i18n } from '@lingui/core';
import { Page } from '@/ui';

export default function HomePage() {
  return <Page title={i18n.t({ id: 'home.home', message: 'Home' })}>{null}</Page>;
}
