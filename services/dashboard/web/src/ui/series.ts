import css from './chart.module.css';

// Colours by series id, stable for the lifetime of the page.
const given = new Map<string, number>();
const CLASSES = [css.s1, css.s2, css.s3, css.s4, css.s5];

export function seriesClass(id: string, taken: readonly string[]): string {
  const inUse = new Set(taken.filter((other) => other !== id).map((other) => given.get(other)));
  let index = given.get(id);
  if (index === undefined || inUse.has(index)) {
    index = CLASSES.findIndex((_, at) => !inUse.has(at));
    if (index < 0) index = 0;
    given.set(id, index);
  }
  return CLASSES[index]!;
}

// Axis ticks: 3 to 5 round steps from 0 to at least top.
export function ticks(top: bigint): bigint[] {
  if (top <= 0n) return [0n, 1n];
  let step = 1n;
  const grow = [2n, 5n, 10n];
  let base = 1n;
  for (let i = 0; top / step >= 4n && top > step * 4n; i++) {
    step = base * grow[i % 3]!;
    if (i % 3 === 2) base *= 10n;
  }
  const lines: bigint[] = [];
  for (let at = 0n; at < top + step; at += step) lines.push(at);
  return lines;
}
