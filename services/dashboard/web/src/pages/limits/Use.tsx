// The use of a limit, now and in the last hour.
import { i18n } from '@lingui/core';
import type { Schema } from '@/api/types';
import { count, share } from '@/format/money';
import { clock } from '@/format/time';
import { Spark, UsedBar, useZone } from '@/ui';
import css from './limits.module.css';
import { kindText, modelText } from './words';

export type Use = Schema<'LimitUse'>;

export const inUse = (use: Use) => BigInt(use.limit) - BigInt(use.remaining);
export const isConcurrency = (use: Use) => use.kind === 'LIMIT_KIND_CONCURRENT_REQUESTS';

export function LimitName({ use }: { use: Use }) {
  return (
    <div className={css.two}>
      <span>{kindText(use.kind)}</span>
      <span className={css.under}>{modelText(use.model)}</span>
    </div>
  );
}

export function InUse({ use }: { use: Use }) {
  return (
    <div className={css.used}>
      <UsedBar used={inUse(use)} limit={BigInt(use.limit)} label={kindText(use.kind)} />
      <span className="num">{i18n.t({ id: 'limits.usedOf', message: '{used} of {limit}', values: { used: count(inUse(use)), limit: count(use.limit) } })}</span>
    </div>
  );
}

// Concurrent requests have no total, only a peak.
export function HourText({ use }: { use: Use }) {
  if (!use.hour) return <span title={i18n.t({ id: 'limits.unknownHour', message: 'The rate limiters do not share their counts at the moment.' })}>—</span>;
  const peak = i18n.t({ id: 'limits.peak', message: 'peak {peak}', values: { peak: count(use.hour.peak) } });
  return (
    <span className="num">
      {isConcurrency(use) ? peak : i18n.t({ id: 'limits.usedAndPeak', message: '{used} used, {peak}', values: { used: count(use.hour.used), peak } })}
    </span>
  );
}

export function Hour({ use }: { use: Use }) {
  const zone = useZone();
  if (!use.hour) return <HourText use={use} />;
  const minutes = use.hour.minutes;
  const busiest = minutes.reduce<(typeof minutes)[number] | null>((most, one) => (most && BigInt(most.peak) >= BigInt(one.peak) ? most : one), null);
  return (
    <div className={css.used}>
      <Spark
        label={
          busiest
            ? i18n.t({ id: 'limits.sparkLabel', message: 'Use in each minute of the last hour. Peak: {peak} of {limit} at {time}. Refused: {refused}.', values: { peak: count(busiest.peak), limit: count(use.limit), time: clock(busiest.startTime ?? '', zone), refused: count(use.hour.refused) } })
            : i18n.t({ id: 'limits.sparkNone', message: 'No use in the last hour.' })
        }
        minutes={minutes.map((one) => ({ ago: one.minutesAgo, part: share(BigInt(one.peak), BigInt(use.limit)), marked: one.refused !== '0' }))}
      />
      <HourText use={use} />
    </div>
  );
}

export function Refused({ use }: { use: Use }) {
  if (!use.hour) return <>—</>;
  return <span className={use.hour.refused === '0' ? 'num quiet' : `num ${css.refused}`}>{count(use.hour.refused)}</span>;
}

export function FreeAgain({ use }: { use: Use }) {
  const zone = useZone();
  if (isConcurrency(use)) return <>{i18n.t({ id: 'limits.asTheyEnd', message: 'when requests end' })}</>;
  // At most two minutes ahead, so the time alone is enough.
  return <span className="num">{use.resetTime ? clock(use.resetTime, zone) : i18n.t({ id: 'limits.free', message: 'now' })}</span>;
}
