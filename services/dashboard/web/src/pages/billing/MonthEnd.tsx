import { i18n } from '@lingui/core';
import { absolute, browserZone, startOfMonth, UTC } from '@/format/time';
import { useNow } from '@/ui';

// Months of money are in UTC: when the running one ends, there and here.
export function MonthEnd() {
  const end = startOfMonth(useNow(), UTC, 1);
  const utc = absolute(end, UTC, 'minute');
  const here = absolute(end, browserZone(), 'minute');
  return <>{utc === here ? i18n.t({ id: 'billing.resets', message: 'resets {utc}', values: { utc } }) : i18n.t({ id: 'billing.resetsHere', message: 'resets {utc} ({here} your time)', values: { utc, here } })}</>;
}
