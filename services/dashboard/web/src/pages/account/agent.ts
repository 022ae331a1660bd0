// A short form of a user agent: "Firefox, Linux", or its beginning. The tooltip has the whole text.
const BROWSERS: [RegExp, string][] = [[/Edg\//, 'Edge'], [/OPR\//, 'Opera'], [/Firefox\//, 'Firefox'], [/Chrom(e|ium)\//, 'Chrome'], [/Safari\//, 'Safari']];
const SYSTEMS: [RegExp, string][] = [[/iPhone|iPad/, 'iOS'], [/Android/, 'Android'], [/Windows/, 'Windows'], [/Mac OS X/, 'macOS'], [/Linux/, 'Linux']];

export function agentText(agent: string): string {
  const find = (known: [RegExp, string][]) => known.find(([pattern]) => pattern.test(agent))?.[1];
  const browser = find(BROWSERS);
  if (browser === undefined) return agent.slice(0, 40) || '—';
  return [browser, find(SYSTEMS)].filter(Boolean).join(', ');
}
