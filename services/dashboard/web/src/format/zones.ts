// All time zones by their IANA names, UTC first. more: one that must be among them.
export function zones(more: string): string[] {
  const known = Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC' && zone !== more);
  return [...new Set(['UTC', more]), ...known];
}
