// The error of a failed call. The message is the server's text for people; code checks `reason`.
export interface Violation {
  field: string; // path of the proto field, "key.display_name"
  description: string;
}

interface Detail {
  '@type'?: string;
  reason?: string;
  metadata?: Record<string, string>;
  fieldViolations?: Partial<Violation>[];
}

export class ApiError extends Error {
  constructor(
    readonly status: number, // 0: no response
    message: string,
    readonly reason: string,
    readonly violations: Violation[] = [],
    readonly metadata: Record<string, string> = {},
    readonly requestId = '',
    readonly retryAfterSeconds = 0,
  ) {
    super(message);
    this.name = 'ApiError';
  }

  static async of(response: Response): Promise<ApiError> {
    let body: { message?: string; details?: Detail[]; error?: { message?: string; code?: string } } = {};
    try {
      body = await response.clone().json();
    } catch {
      // Not from the API, for example a proxy's error page.
    }
    const details = Array.isArray(body.details) ? body.details : [];
    const info = details.find((detail) => detail.reason !== undefined);
    return new ApiError(
      response.status,
      body.message ?? body.error?.message ?? '',
      info?.reason ?? body.error?.code ?? '',
      details.flatMap((detail) => detail.fieldViolations ?? []).map((one) => ({ field: one.field ?? '', description: one.description ?? '' })),
      info?.metadata ?? {},
      response.headers.get('x-request-id') ?? '',
      Number.parseInt(response.headers.get('retry-after') ?? '0', 10) || 0,
    );
  }

  static offline(): ApiError {
    return new ApiError(0, '', 'OFFLINE');
  }
}

export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, error instanceof Error ? error.message : '', 'UNKNOWN');
}

// Violations by form field: the last part of the path, in camel case. Violations of other fields are under "".
export function violationsByField(error: unknown, fields: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { field, description } of asApiError(error).violations) {
    const parts = field.split('.').map((part) => part.replace(/\[.*\]$/, '').replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()));
    const name = parts.reverse().find((part) => fields.includes(part)) ?? '';
    found[name] = found[name] ? `${found[name]} ${description}` : description;
  }
  return found;
}
