// The plan of a workspace and the limits that apply.
import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { newRequestId } from '@/api/client';
import { idOf, type Schema } from '@/api/types';
import { usePermissions } from '@/api/workspace';
import { Button, Card, Dialog, DialogForm, ErrorState, Facts, RowSkeletons, SelectField, TextField, useFields } from '@/ui';
import { limitText } from './ModelsPage';
import { useChanged } from './parts';
import { limitsQuery, plansQuery, updateLimits } from './queries';

export function LimitsCard({ workspace }: { workspace: string }) {
  const may = usePermissions(null);
  const query = useQuery(limitsQuery(workspace));
  const [editing, setEditing] = useState(false);
  const limits = query.data;
  return (
    <Card
      title={i18n.t({ id: 'operator.limits', message: 'Limits' })}
      subtitle={i18n.t({ id: 'operator.limitsText', message: 'Shared by all API keys of the workspace. Workspace limits replace the limits of the plan.' })}
      actions={may('LimitService/UpdateLimits') && limits && <Button small onClick={() => setEditing(true)}>{i18n.t({ id: 'operator.change', message: 'Change' })}</Button>}
    >
      {!limits && (query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'operator.limitsWhat', message: 'the limits' })} retry={() => void query.refetch()} /> : <RowSkeletons rows={3} />)}
      {limits && (
        <Facts
          facts={[
            { label: i18n.t({ id: 'operator.plan', message: 'Plan' }), value: limits.plan ? idOf(limits.plan) : i18n.t({ id: 'operator.noPlan', message: 'No plan' }) },
            { label: i18n.t({ id: 'operator.ownLimits', message: 'Workspace limits' }), value: limitText(limits.workspaceLimits) },
            { label: i18n.t({ id: 'operator.inForce', message: 'Effective limits' }), value: limitText(limits.effectiveWorkspaceLimits) },
            ...Object.entries(limits.effectiveModelLimits).map(([model, values]) => ({ label: model, value: limitText(values) })),
          ]}
        />
      )}
      <Dialog opened={editing} onClose={() => setEditing(false)} title={i18n.t({ id: 'operator.changeLimits', message: 'Change limits' })}>
        {editing && limits && <LimitsForm workspace={workspace} limits={limits} onClose={() => setEditing(false)} />}
      </Dialog>
    </Card>
  );
}

export const LIMITS = ['requestsPerMinute', 'tokensPerMinute', 'concurrentRequests'] as const;
export const shownLimit = (value: string | undefined) => (value && value !== '0' ? value : '');
export const isWhole = (text: string) => /^\d{0,15}$/.test(text.trim());

export function limitLabel(name: (typeof LIMITS)[number]): string {
  switch (name) {
    case 'requestsPerMinute':
      return i18n.t({ id: 'operator.requestsPerMinute', message: 'Requests per minute' });
    case 'tokensPerMinute':
      return i18n.t({ id: 'operator.tokensPerMinute', message: 'Tokens per minute' });
    case 'concurrentRequests':
      return i18n.t({ id: 'operator.atATime', message: 'Concurrent requests' });
  }
}

function LimitsForm({ workspace, limits, onClose }: { workspace: string; limits: Schema<'Limits'>; onClose: () => void }) {
  const changed = useChanged();
  const plans = useQuery(plansQuery());
  const [requestId] = useState(newRequestId);
  const [wrong, setWrong] = useState(false);
  const own = limits.workspaceLimits;
  const fields = useFields({ plan: limits.plan, requestsPerMinute: shownLimit(own?.requestsPerMinute), tokensPerMinute: shownLimit(own?.tokensPerMinute), concurrentRequests: shownLimit(own?.concurrentRequests) }, async (values) => {
    const whole = LIMITS.every((name) => isWhole(values[name]));
    setWrong(!whole);
    if (!whole) return;
    await updateLimits(workspace, requestId, { plan: values.plan, workspaceLimits: Object.fromEntries(LIMITS.map((name) => [name, values[name].trim() || '0'])) });
    await changed();
    onClose();
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'operator.changeLimits', message: 'Change limits' })} onCancel={onClose}>
      <SelectField
        label={i18n.t({ id: 'operator.plan', message: 'Plan' })}
        clearable
        placeholder={i18n.t({ id: 'operator.noPlan', message: 'No plan' })}
        options={(plans.data?.plans ?? []).map((plan) => ({ value: plan.name, label: idOf(plan.name) }))}
        {...fields.bind('plan')}
      />
      {LIMITS.map((name) => (
        <TextField key={name} label={limitLabel(name)} inputMode="numeric" {...fields.bind(name)} error={wrong && !isWhole(fields.values[name]) ? i18n.t({ id: 'operator.wholeNumber', message: 'Enter a whole number, or leave empty for no limit.' }) : fields.errors[name]} />
      ))}
    </DialogForm>
  );
}
