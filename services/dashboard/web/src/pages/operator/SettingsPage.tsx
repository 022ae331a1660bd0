import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { newRequestId } from '@/api/client';
import { idOf } from '@/api/types';
import { usePermissions } from '@/api/workspace';
import { IconPlus } from '@/icons';
import { Button, CheckboxField, DataTable, Dialog, DialogForm, EmptyState, Page, StateChip, TextField, useFields } from '@/ui';
import { isWhole, limitLabel, LIMITS, shownLimit } from './LimitsCard';
import { limitText } from './ModelsPage';
import { useChanged } from './parts';
import { plansQuery, updatePlan, type Plan } from './queries';

export default function SettingsPage() {
  const may = usePermissions(null);
  const query = useQuery(plansQuery());
  const [editing, setEditing] = useState<Plan | 'new' | null>(null);
  const mayEdit = may('LimitService/UpdatePlan');
  return (
    <Page
      title={i18n.t({ id: 'operator.settings.title', message: 'Plans' })}
      subtitle={i18n.t({ id: 'operator.plansText', message: 'Limits that several workspaces share. A workspace’s own limits replace those of its plan.' })}
      actions={mayEdit && <Button kind="primary" icon={IconPlus} onClick={() => setEditing('new')}>{i18n.t({ id: 'operator.createPlan', message: 'Create plan' })}</Button>}
    >
      <DataTable<Plan>
        label={i18n.t({ id: 'operator.settings.title', message: 'Plans' })}
        what={i18n.t({ id: 'operator.plansWhat', message: 'the plans' })}
        columns={[
          { id: 'name', header: i18n.t({ id: 'operator.plan', message: 'Plan' }), weight: 1, cell: (plan) => idOf(plan.name) },
          { id: 'workspace', header: i18n.t({ id: 'operator.perWorkspace', message: 'Per workspace' }), weight: 2, cell: (plan) => limitText(plan.workspaceLimits) },
          { id: 'key', header: i18n.t({ id: 'operator.perKey', message: 'Per API key' }), weight: 2, wide: true, cell: (plan) => limitText(plan.keyLimits) },
          { id: 'shadow', header: i18n.t({ id: 'operator.effect', message: 'Mode' }), weight: 1, wide: true, cell: (plan) => (plan.shadow ? <StateChip tone="quiet">{i18n.t({ id: 'operator.countsOnly', message: 'Shadow' })}</StateChip> : <StateChip tone="ok">{i18n.t({ id: 'operator.refuses', message: 'Enforced' })}</StateChip>) },
        ]}
        rows={query.data?.plans}
        rowKey={(plan) => plan.name}
        onOpen={mayEdit ? setEditing : undefined}
        error={query.error}
        retry={() => void query.refetch()}
        empty={<EmptyState title={i18n.t({ id: 'operator.noPlans', message: 'No plans yet' })}>{i18n.t({ id: 'operator.noPlansText', message: 'Workspaces without a plan and without limits of their own have no limits.' })}</EmptyState>}
      />
      <Dialog opened={editing !== null} onClose={() => setEditing(null)} title={editing === 'new' || editing === null ? i18n.t({ id: 'operator.createPlan', message: 'Create plan' }) : i18n.t({ id: 'operator.changePlan', message: 'Change plan {name}', values: { name: idOf(editing.name) } })}>
        {editing !== null && <PlanForm plan={editing === 'new' ? null : editing} onClose={() => setEditing(null)} />}
      </Dialog>
    </Page>
  );
}

function PlanForm({ plan, onClose }: { plan: Plan | null; onClose: () => void }) {
  const changed = useChanged();
  const [requestId] = useState(newRequestId);
  const [wrong, setWrong] = useState(false);
  const initial = { id: plan ? idOf(plan.name) : '', shadow: plan?.shadow ?? false, ...Object.fromEntries(LIMITS.flatMap((name) => [[`w_${name}`, shownLimit(plan?.workspaceLimits?.[name])], [`k_${name}`, shownLimit(plan?.keyLimits?.[name])]])) } as { id: string; shadow: boolean } & Record<`w_${(typeof LIMITS)[number]}` | `k_${(typeof LIMITS)[number]}`, string>;
  const fields = useFields(initial, async (values) => {
    const bad = LIMITS.some((name) => !isWhole(values[`w_${name}`]) || !isWhole(values[`k_${name}`]));
    setWrong(bad);
    if (bad) return;
    const of = (part: 'w' | 'k') => Object.fromEntries(LIMITS.map((name) => [name, values[`${part}_${name}`].trim() || '0']));
    await updatePlan(values.id.trim(), requestId, { workspaceLimits: of('w') as never, keyLimits: of('k') as never, shadow: values.shadow });
    await changed();
    onClose();
  });
  const field = (part: 'w' | 'k', name: (typeof LIMITS)[number]) => {
    const key = `${part}_${name}` as const;
    const whose = part === 'w' ? i18n.t({ id: 'operator.perWorkspace', message: 'Per workspace' }) : i18n.t({ id: 'operator.perKey', message: 'Per API key' });
    return <TextField key={key} label={`${whose}: ${limitLabel(name)}`} inputMode="numeric" {...fields.bind(key)} error={wrong && !isWhole(fields.values[key]) ? i18n.t({ id: 'operator.wholeNumber', message: 'Enter a whole number, or leave empty for no limit.' }) : fields.errors[key]} />;
  };
  return (
    <DialogForm fields={fields} verb={plan ? i18n.t({ id: 'operator.save', message: 'Save plan' }) : i18n.t({ id: 'operator.createPlan', message: 'Create plan' })} onCancel={onClose}>
      {!plan && <TextField label={i18n.t({ id: 'operator.id', message: 'ID' })} mono autoFocus {...fields.bind('id')} />}
      {LIMITS.map((name) => field('w', name))}
      {LIMITS.map((name) => field('k', name))}
      <CheckboxField label={i18n.t({ id: 'operator.shadow', message: 'Shadow mode: count requests over a limit, but do not refuse them' })} {...fields.bind('shadow')} />
    </DialogForm>
  );
}
