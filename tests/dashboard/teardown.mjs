// Writes a contact sheet of all screenshots.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { metric } from './tollgate.mjs';

export default async function teardown() {
  const names = readdirSync(process.env.SHOTS).filter((name) => name.endsWith('.png')).sort();
  const figures = names.map((name) => `<figure><figcaption>${name}</figcaption><a href="${name}"><img src="${name}" loading="lazy"></a></figure>`);
  writeFileSync(`${process.env.SHOTS}/index.html`, `<!doctype html><meta charset="utf-8"><title>Dashboard</title><style>body{font:13px sans-serif;display:flex;flex-wrap:wrap;gap:16px}figure{margin:0}img{width:420px;border:1px solid #999}</style>${figures.join('\n')}`);
  // Reports of the refused frame of csrf.test.mjs are expected.
  const expected = existsSync('expected-reports') ? Number(readFileSync('expected-reports', 'utf8')) : 0;
  const reports = (await metric('tollgate_dashboard_csp_reports_total')) - Number(process.env.REPORTS_BEFORE) - expected;
  if (reports > 0) throw new Error(`browsers reported ${reports} violations of the content policy`);
}
