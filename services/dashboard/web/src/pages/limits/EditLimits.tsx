import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, newRequestId, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import { idOf, type Schema } from '@/api/types';
import { DialogForm, SelectField, toast, useFields } from '@/ui';
import css from './limits.module.css';
import { mapOf, ModelRows, rowOf, ThreeFields, valuesOf } from './ModelRows';
import { limitsQuery, plansQuery } from './queries';

// For operators of the platform.
export function EditLimits({ workspace, limits, onClose }: { workspace: string; limits: Schema<'Limits'>; onClose: () => void }) {
  const [requestId] = useState(newRequestId);
  const { data: plans } = useQuery(plansQuery());
  const fields = useFields(
    { plan: limits.plan, own: rowOf('', limits.workspaceLimits), modelLimits: Object.entries(limits.modelLimits).map(([model, values]) => rowOf(model, values)) },
    async (values) => {
      const saved = await unwrap(
        api.PATCH('/admin/v1/workspaces/{workspace}/limits', {
          params: { path: { workspace }, query: { requestId, updateMask: 'plan,workspaceLimits,modelLimits' } },
          body: { plan: values.plan, workspaceLimits: valuesOf(values.own), modelLimits: mapOf(values.modelLimits) },
        }),
      );
      queryClient.setQueryData(limitsQuery(workspace).queryKey, saved);
      await queryClient.invalidateQueries({ queryKey: ['limits', workspace] });
      toast(i18n.t({ id: 'limits.saved', message: 'Limits changed' }));
      onClose();
    },
  );
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'limits.edit', message: 'Change limits' })} onCancel={onClose}>
      <SelectField
        label={i18n.t({ id: 'limits.planLabel', message: 'Plan' })}
        hint={i18n.t({ id: 'limits.planHint', message: 'The limits of the plan apply where the workspace has no limits of its own.' })}
        options={[{ value: '', label: i18n.t({ id: 'limits.planNone', message: 'No plan' }) }, ...(plans?.plans ?? []).map((plan) => ({ value: plan.name, label: idOf(plan.name) }))]}
        {...fields.bind('plan')}
      />
      <h3 className={css.part}>{i18n.t({ id: 'limits.ofAll', message: 'All models together' })}</h3>
      <div className={css.three}>
        <ThreeFields row={fields.values.own} onChange={(change) => fields.set('own', { ...fields.values.own, ...change })} />
      </div>
      <h3 className={css.part}>{i18n.t({ id: 'limits.ofModels', message: 'Individual models' })}</h3>
      <ModelRows rows={fields.values.modelLimits} onChange={(rows) => fields.set('modelLimits', rows)} />
    </DialogForm>
  );
}
