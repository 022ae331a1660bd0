import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function EnginesPage() {
  return <ApiPage title={i18n.t({ id: 'operator.engines.title', message: 'Engines' })} calls={[]} />;
}
