// Stacked bars per time bucket; the current bucket is hatched. Values are integers (nano-dollars, counts), so that the
// tooltip, the table and the headline agree to the last digit.
import { i18n } from '@lingui/core';
import { scaleBand, scaleLinear } from '@visx/scale';
import { useEffect, useId, useRef, useState, type KeyboardEvent } from 'react';
import { share } from '@/format/money';
import css from './chart.module.css';
import { TextButton } from './states';
import { seriesClass, ticks } from './series';

export interface BarSeries {
  id: string;
  name: string;
  other?: boolean;
}
export interface Bucket {
  id: string;
  axis: string; // "Aug 7"
  name: string; // in the tooltip: "Aug 7, until 14:05"
  values: Record<string, bigint>; // by series
  running?: boolean;
}
interface BarChartProps {
  label: string;
  series: BarSeries[]; // bottom to top
  buckets: Bucket[];
  format: (value: bigint) => string;
  formatAxis: (value: bigint) => string;
  height?: number;
  onPick?: (bucket: Bucket) => void;
}

const PAD = { top: 8, right: 4, bottom: 22, left: 52 };

export function BarChart(props: BarChartProps) {
  const { series, buckets, label, format, height = 220 } = props;
  const [asTable, setAsTable] = useState(false);
  const ids = series.filter((one) => !one.other).map((one) => one.id);
  const classOf = (one: BarSeries) => (one.other ? css.other! : seriesClass(one.id, ids));
  const legend = [...series].reverse();
  return (
    <figure className={css.chart} aria-label={label} style={{ margin: 0 }}>
      <div className={css.head}>
        <ul className={css.legend}>
          {legend.map((one) => (
            <li key={one.id}>
              <i className={classOf(one)} /> {one.name}
            </li>
          ))}
        </ul>
        <span className={css.switch}>
          <TextButton onClick={() => setAsTable(!asTable)}>
            {asTable ? i18n.t({ id: 'chart.asChart', message: 'Chart' }) : i18n.t({ id: 'chart.asTable', message: 'Table' })}
          </TextButton>
        </span>
      </div>
      {asTable ? <BarTable {...props} legend={legend} total={total} format={format} /> : <Bars {...props} height={height} buckets={buckets} classOf={classOf} legend={legend} />}
    </figure>
  );
}

function total(bucket: Bucket): bigint {
  return Object.values(bucket.values).reduce((sum, value) => sum + value, 0n);
}

function BarTable({ legend, buckets, format, label }: BarChartProps & { legend: BarSeries[]; total: (bucket: Bucket) => bigint }) {
  return (
    <div className={css.tableWrap} tabIndex={0} role="group" aria-label={label}>
      <table className={css.table}>
        <thead>
          <tr>
            <th scope="col">{i18n.t({ id: 'chart.time', message: 'Time' })}</th>
            {legend.map((one) => (
              <th scope="col" key={one.id}>
                {one.name}
              </th>
            ))}
            <th scope="col">{i18n.t({ id: 'chart.total', message: 'Total' })}</th>
          </tr>
        </thead>
        <tbody>
          {buckets.map((bucket) => (
            <tr key={bucket.id}>
              <th scope="row">{bucket.name}</th>
              {legend.map((one) => (
                <td key={one.id}>{format(bucket.values[one.id] ?? 0n)}</td>
              ))}
              <td>{format(total(bucket))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// Tracks the width of an element.
export function useWidth(): [React.RefObject<HTMLDivElement | null>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!box.current) return;
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}

function Bars({ series, buckets, label, format, formatAxis, height, onPick, classOf, legend }: BarChartProps & { height: number; classOf: (one: BarSeries) => string; legend: BarSeries[] }) {
  const [box, width] = useWidth();
  const [at, setAt] = useState<number | null>(null);
  const hatch = useId();
  const top = buckets.reduce((most, bucket) => (total(bucket) > most ? total(bucket) : most), 0n);
  const lines = ticks(top);
  const most = lines.at(-1)!;
  const y = scaleLinear({ domain: [0, 1], range: [height - PAD.bottom, PAD.top] });
  const x = scaleBand({ domain: buckets.map((bucket) => bucket.id), range: [PAD.left, Math.max(width - PAD.right, PAD.left + 1)], paddingInner: 0.24, paddingOuter: 0.1 });
  const every = Math.max(1, Math.ceil(buckets.length / Math.max(1, Math.floor((width - PAD.left) / 64))));
  const chosen = at === null ? undefined : buckets[at];
  const onKeyDown = (event: KeyboardEvent) => {
    const last = buckets.length - 1;
    const next = { ArrowRight: Math.min(last, (at ?? -1) + 1), ArrowLeft: Math.max(0, (at ?? last + 1) - 1), Home: 0, End: last }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      setAt(next);
    } else if (event.key === 'Enter' && chosen) onPick?.(chosen);
    else if (event.key === 'Escape') setAt(null);
  };
  return (
    <div ref={box} className={css.plot} style={{ height }}>
      {width > 0 && (
        <svg height={height} viewBox={`0 0 ${width} ${height}`} tabIndex={0} role="img" aria-label={label} onKeyDown={onKeyDown} onBlur={() => setAt(null)} onMouseLeave={() => setAt(null)}>
          <defs>
            <pattern id={hatch} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <rect width="6" height="6" fill="#000" />
              <rect width="3" height="6" fill="#fff" />
            </pattern>
            <mask id={`${hatch}-mask`} maskContentUnits="userSpaceOnUse">
              <rect width={width} height={height} fill={`url(#${hatch})`} />
            </mask>
          </defs>
          {lines.map((line) => (
            <g key={String(line)}>
              <line className={css.grid} x1={PAD.left} x2={width - PAD.right} y1={y(share(line, most))} y2={y(share(line, most))} />
              <text className={css.axis} x={PAD.left - 8} y={y(share(line, most))} dy="0.32em" textAnchor="end">
                {formatAxis(line)}
              </text>
            </g>
          ))}
          {buckets.map((bucket, index) => {
            const left = x(bucket.id) ?? 0;
            let sum = 0n;
            return (
              <g key={bucket.id} onMouseEnter={() => setAt(index)} onClick={() => onPick?.(bucket)} data-bucket={bucket.id}>
                <rect x={left - x.step() * 0.12} width={x.step()} y={PAD.top} height={height - PAD.top - PAD.bottom} className={css.cursor} style={at === index ? undefined : { opacity: 0 }} />
                <g mask={bucket.running ? `url(#${hatch}-mask)` : undefined}>
                  {series.map((one) => {
                    const value = bucket.values[one.id] ?? 0n;
                    if (value <= 0n) return null;
                    const bottom = y(share(sum, most));
                    sum += value;
                    const upper = y(share(sum, most));
                    return <rect key={one.id} className={`${classOf(one)} ${css.bar}`} x={left} width={Math.max(x.bandwidth(), 1)} y={upper} height={Math.max(bottom - upper, 0.5)} />;
                  })}
                </g>
                {(buckets.length - 1 - index) % every === 0 && (
                  <text className={css.axis} x={Math.min(left + x.bandwidth() / 2, width - PAD.right)} y={height - 6} textAnchor={index === buckets.length - 1 ? 'end' : 'middle'}>
                    {bucket.axis}
                  </text>
                )}
              </g>
            );
          })}
        </svg>
      )}
      {chosen && (
        <div className={css.tip} role="status" style={(x(chosen.id) ?? 0) > width / 2 ? { right: width - (x(chosen.id) ?? 0) + 8 } : { left: (x(chosen.id) ?? 0) + x.bandwidth() + 8 }}>
          <div className={css.total}>
            <span>{chosen.name}</span>
            <b>{format(total(chosen))}</b>
          </div>
          {legend.map((one) => (
            <div key={one.id}>
              <i className={classOf(one)} />
              <span className={css.name}>{one.name}</span>
              <b>{format(chosen.values[one.id] ?? 0n)}</b>
            </div>
          ))}
        </div>
      )}
    </div>
  );
}
