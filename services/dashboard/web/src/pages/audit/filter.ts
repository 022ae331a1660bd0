export interface AuditFilter {
  actor: string;
  action: string;
  subject: string;
  start: string; // RFC 3339
  end: string; // empty: until now
}

const quoted = (text: string) => `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;

// The filter in the API's syntax.
export function filterText(filter: AuditFilter): string {
  return [
    ...(['actor', 'action', 'subject'] as const).filter((name) => filter[name] !== '').map((name) => `${name} = ${quoted(filter[name])}`),
    `time >= ${quoted(filter.start)}`,
    ...(filter.end ? [`time < ${quoted(filter.end)}`] : []),
  ].join(' AND ');
}
