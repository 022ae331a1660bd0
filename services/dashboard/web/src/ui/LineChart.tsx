// Lines over time, drawn by uPlot, which is loaded with the page. Values are plain numbers: milliseconds, counts, shares
// of a cap. Missing points are gaps.
import { i18n } from '@lingui/core';
import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useWidth } from './BarChart';
import css from './chart.module.css';
import { seriesClass } from './series';
import { TextButton } from './states';

export interface Line {
  id: string;
  name: string;
  points: (number | null)[];
  dashed?: boolean;
}
interface LineChartProps {
  label: string;
  times: number[]; // seconds since 1970, ascending
  lines: Line[];
  format: (value: number) => string;
  formatTime: (seconds: number) => string;
  formatAxisTime: (seconds: number) => string;
  height?: number;
}

function colorOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function LineChart(props: LineChartProps) {
  const [asTable, setAsTable] = useState(false);
  const ids = props.lines.map((line) => line.id);
  return (
    <figure className={css.chart} aria-label={props.label} style={{ margin: 0 }}>
      <div className={css.head}>
        <ul className={css.legend}>
          {props.lines.map((line) => (
            <li key={line.id}>
              <i className={seriesClass(line.id, ids)} /> {line.name}
            </li>
          ))}
        </ul>
        <span className={css.switch}>
          <TextButton onClick={() => setAsTable(!asTable)}>
            {asTable ? i18n.t({ id: 'chart.asChart', message: 'Chart' }) : i18n.t({ id: 'chart.asTable', message: 'Table' })}
          </TextButton>
        </span>
      </div>
      {asTable ? <LineTable {...props} /> : <Plot {...props} />}
    </figure>
  );
}

function LineTable({ times, lines, format, formatTime, label }: LineChartProps) {
  return (
    <div className={css.tableWrap} tabIndex={0} role="group" aria-label={label}>
      <table className={css.table}>
        <thead>
          <tr>
            <th scope="col">{i18n.t({ id: 'chart.time', message: 'Time' })}</th>
            {lines.map((line) => (
              <th scope="col" key={line.id}>
                {line.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((time, index) => (
            <tr key={time}>
              <th scope="row">{formatTime(time)}</th>
              {lines.map((line) => (
                <td key={line.id}>{line.points[index] == null ? '—' : format(line.points[index])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Plot({ times, lines, format, formatTime, formatAxisTime, label, height = 220 }: LineChartProps) {
  const [box, width] = useWidth();
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const ids = lines.map((line) => line.id);
  // Redrawn on every change: the colours are read from the tokens of the current scheme.
  const scheme = document.documentElement.getAttribute('data-mantine-color-scheme');
  useEffect(() => {
    const parent = box.current;
    if (!parent || width === 0 || times.length === 0) return;
    const probe = document.createElement('i');
    parent.append(probe);
    const strokes = ids.map((id) => {
      probe.className = seriesClass(id, ids);
      return getComputedStyle(probe).backgroundColor;
    });
    probe.remove();
    const axis = { stroke: colorOf('--text-3'), grid: { stroke: colorOf('--line'), width: 1 }, ticks: { show: false }, font: `11px ${colorOf('--font')}` };
    const drawn = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        cursor: { y: false, points: { size: 6 } },
        scales: { x: { time: true }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [
          { ...axis, values: (_, splits) => splits.map(formatAxisTime), grid: { show: false } },
          { ...axis, size: 60, values: (_, splits) => splits.map(format) },
        ],
        series: [{}, ...lines.map((line, index) => ({ label: line.name, stroke: strokes[index], width: 2, dash: line.dashed ? [6, 4] : undefined, spanGaps: false, points: { show: times.length === 1 } }))],
        hooks: { setCursor: [(self) => setAt(self.cursor.idx ?? null)] },
      },
      [times, ...lines.map((line) => line.points)] as uPlot.AlignedData,
      parent,
    );
    plot.current = drawn;
    return () => drawn.destroy();
    // eslint-disable-next-line
  }, [width, height, times, lines, scheme]);
  const left = at === null || !plot.current ? 0 : plot.current.valToPos(times[at]!, 'x') + 60;
  return (
    <div
      ref={box}
      className={css.plot}
      style={{ height }}
      role="img"
      aria-label={label}
      tabIndex={0}
      onKeyDown={(event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step === undefined || !plot.current) return;
        event.preventDefault();
        const next = Math.max(0, Math.min(times.length - 1, (at ?? (step > 0 ? -1 : times.length)) + step));
        plot.current.setCursor({ left: plot.current.valToPos(times[next]!, 'x'), top: 10 });
      }}
      onBlur={() => setAt(null)}
    >
      {at !== null && times[at] !== undefined && (
        <div className={css.tip} role="status" style={left > width / 2 ? { right: width - left + 12 } : { left: left + 12 }}>
          <div className={css.total}>{formatTime(times[at])}</div>
          {lines.map((line) => (
            <div key={line.id}>
              <i className={seriesClass(line.id, ids)} />
              <span className={css.name}>{line.name}</span>
              <b>{line.points[at] == null ? '—' : format(line.points[at])}</b>
            </div>
          ))}
        </div>
      )}
    </div>
  );
}
