import type { components } from './gen';

// A response has every field, except unset fields that the protos mark `optional`. types.test.ts compares this list with
// the protos.
export type Unset =
  | 'availableUsd'
  | 'capUsd'
  | 'daysLeft'
  | 'firstTokenP50Us'
  | 'firstTokenP95Us'
  | 'monthlyQuotaUsd'
  | 'monthSpentUsd'
  | 'runningRequests'
  | 'weekSpentUsd';

// A response with all fields required. `readonly` and null are kept.
export type Answer<T> = T extends (infer U)[]
  ? Answer<U>[]
  : T extends object
    ? { [K in keyof T as K extends Unset ? never : K]-?: Answer<Exclude<T[K], undefined>> } & {
        [K in keyof T as K extends Unset ? K : never]?: T[K];
      }
    : T;

type Schemas = components['schemas'];
// Schema<'Key'> is a key as in a response.
export type Schema<Name extends keyof Schemas> = Answer<Schemas[Name]>;

// The last part of a resource's name.
export function idOf(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}
