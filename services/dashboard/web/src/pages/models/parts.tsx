import { i18n } from '@lingui/core';
import { StateChip } from '@/ui';
import { capabilityName, type Model } from './models';
import css from './models.module.css';

export function Serving({ model }: { model: Model }) {
  return model.serving ? (
    <StateChip tone="ok">{i18n.t({ id: 'models.serving', message: 'Available' })}</StateChip>
  ) : (
    <StateChip tone="quiet">{i18n.t({ id: 'models.outOfService', message: 'Out of service' })}</StateChip>
  );
}

export function Capabilities({ model }: { model: Model }) {
  return (
    <span className={css.capabilities}>
      {model.capabilities.map((one) => (
        <span key={one}>{capabilityName(one)}</span>
      ))}
    </span>
  );
}
