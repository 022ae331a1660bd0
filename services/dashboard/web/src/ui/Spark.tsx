// The last hour in 60 bars, one per minute, the current one at the right. Height: the peak use of the limit. A minute
// with refusals has a mark above its bar, so that colour is not the only signal.
import css from './states.module.css';

export interface SparkMinute {
  ago: number; // minutes; 0: the current one
  part: number; // of the limit, 0 to 1
  marked: boolean;
}

const MINUTES = 60;
const STEP = 2;
const HEIGHT = 16;
const TOP = 4; // for the marks

export function Spark({ label, minutes }: { label: string; minutes: SparkMinute[] }) {
  return (
    <svg className={css.spark} viewBox={`0 0 ${MINUTES * STEP} ${HEIGHT}`} width={MINUTES * STEP} height={HEIGHT} role="img" aria-label={label}>
      <rect className={css.sparkLine} x={0} y={HEIGHT - 1} width={MINUTES * STEP} height={1} />
      {minutes.map(({ ago, part, marked }) => {
        const height = Math.max(2, Math.round(part * (HEIGHT - TOP)));
        const x = (MINUTES - 1 - ago) * STEP;
        return (
          <g key={ago} data-level={marked ? 'bad' : part >= 0.8 ? 'warn' : 'ok'}>
            <rect x={x} y={HEIGHT - height} width={STEP - 0.5} height={height} />
            {marked && <rect x={x} y={0} width={STEP - 0.5} height={3} />}
          </g>
        );
      })}
    </svg>
  );
}
