import { i18n } from '@lingui/core';
import { ApiPage } from '@/ui/ApiPage';

export default function ModelPage() {
  return <ApiPage title={i18n.t({ id: 'models.model.title', message: 'Model' })} calls={['GET /admin/v1/models/MODEL']} />;
}
