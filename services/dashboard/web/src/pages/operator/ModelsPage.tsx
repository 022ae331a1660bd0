import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function ModelsPage() {
  return <ApiPage title={i18n.t({ id: 'operator.models.title', message: 'Models' })} calls={['GET /admin/v1/models']} />;
}
