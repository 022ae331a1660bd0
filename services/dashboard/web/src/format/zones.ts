// All IANA time zones, UTC first. more: a zone that must be in the list.
export function zones(more: string): string[] {
  const known = Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC' && zone !== more);
  return [...new Set(['UTC', more]), ...known];
}
