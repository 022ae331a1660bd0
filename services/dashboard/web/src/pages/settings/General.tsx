import { i18n } from '@lingui/core';
import { api, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import type { Schema } from '@/api/types';
import { workspaceQuery } from '@/api/workspace';
import { isZone } from '@/format/range';
import { zones } from '@/format/zones';
import { SelectField, SettingsForm, TextField, useSettings } from '@/ui';

export function General({ workspace, here }: { workspace: string; here: Schema<'Workspace'> }) {
  const stored = { displayName: here.displayName, reportTimeZone: here.reportTimeZone };
  const save = async (values: typeof stored, requestId: string) => {
    if (!isZone(values.reportTimeZone)) return { reportTimeZone: i18n.t({ id: 'settings.badZone', message: 'Select a time zone from the list.' }) };
    const saved = await unwrap(
      api.PATCH('/admin/v1/workspaces/{workspace}', { params: { path: { workspace }, query: { requestId, updateMask: 'displayName,reportTimeZone' } }, body: { ...values, displayName: values.displayName.trim(), etag: here.etag } }),
    );
    queryClient.setQueryData(workspaceQuery(workspace).queryKey, saved);
    void queryClient.invalidateQueries({ queryKey: ['workspaces'] });
  };
  const fields = useSettings(stored, save, i18n.t({ id: 'settings.saved', message: 'Settings saved' }));
  return (
    <SettingsForm fields={fields}>
      <TextField label={i18n.t({ id: 'settings.name', message: 'Name' })} maxLength={100} {...fields.bind('displayName')} />
      <SelectField
        label={i18n.t({ id: 'settings.zone', message: 'Report time zone' })}
        hint={i18n.t({ id: 'settings.zoneHint', message: 'Sets the days of usage reports. Billing months are in UTC.' })}
        options={zones(here.reportTimeZone).map((zone) => ({ value: zone, label: zone }))}
        searchable
        {...fields.bind('reportTimeZone')}
      />
    </SettingsForm>
  );
}
