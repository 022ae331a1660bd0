import { i18n } from '@lingui/core';
import { absolute, browserZone, startOfMonth, UTC } from '@/format/time';
import { useNow } from '@/ui';

// The end of the current billing month, which is in UTC, in UTC and in local time.
export function MonthEnd() {
  const end = startOfMonth(useNow(), UTC, 1);
  const utc = absolute(end, UTC, 'minute');
  const here = absolute(end, browserZone(), 'minute');
  return <>{utc === here ? i18n.t({ id: 'billing.resets', message: 'resets {utc}', values: { utc } }) : i18n.t({ id: 'billing.resetsHere', message: 'resets {utc} ({here} your time)', values: { utc, here } })}</>;
}
