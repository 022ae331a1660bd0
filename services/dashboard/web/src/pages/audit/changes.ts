// Parses the changes in an entry's detail: "name: a → b; zone: UTC → Europe/Berlin", or "developer to admin" for a member.
export interface Change {
  field: string;
  before: string;
  after: string;
}

export function changesOf(action: string, detail: string): Change[] {
  const role = /^(\w+) to (\w+)$/.exec(detail);
  if (action === 'member.update' && role) return [{ field: '', before: role[1]!, after: role[2]! }];
  if (!detail.includes(' → ')) return [];
  return detail.split('; ').flatMap((part) => {
    const match = /^([^:]+): (.*) → (.*)$/.exec(part);
    return match ? [{ field: match[1]!, before: match[2]!, after: match[3]! }] : [];
  });
}

// Parses the facts of a new resource: "expires: never; models: all".
export function factsOf(detail: string): { label: string; value: string }[] {
  if (detail.includes(' → ')) return [];
  const parts = detail.split('; ').map((part) => /^([a-z ]{2,20}): (.*)$/.exec(part));
  return parts.length > 1 && parts.every((part) => part !== null) ? parts.map((part) => ({ label: part![1]!, value: part![2]! })) : [];
}
