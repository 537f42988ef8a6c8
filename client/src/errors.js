/** HTTP statuses as the stitchkit runtime gives them to its own codes, and the nearest for the others. */
const STATUS = {
  PARSE_ERROR: 400,
  INVALID_REQUEST: 400,
  METHOD_NOT_FOUND: 404,
  VALIDATION_ERROR: 400,
  INTERNAL_SERVER_ERROR: 500,
  CANCELLED: 499,
  SANDBOX_UNAVAILABLE: 503,
  SANDBOX_BUSY: 409,
  SANDBOX_STOPPED: 409,
  SANDBOX_STATE_MISMATCH: 409,
  SANDBOX_NETWORK_DENIED: 403,
  SANDBOX_LIMIT: 413,
  SANDBOX_PATH: 400,
  BAD_REQUEST: 400,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  CONFLICT: 409,
  SANDBOX_INSUFFICIENT: 503,
  SPILL_REFERENCE_UNKNOWN: 404,
};

// By this mark, which is the same in all copies of the runtime, it knows its own errors; others reach a model only as
// INTERNAL_SERVER_ERROR.
const APP_ERROR = Symbol.for('stitchkit.AppError');

export class SandboxError extends Error {
  constructor(code, message, { details, hint, reason, incident, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'SandboxError';
    this.code = code;
    this.status = STATUS[code] ?? 500;
    // Where details are shown they stand in the message's place.
    this.details = { message, ...details };
    if (hint !== undefined) this.hint = hint;
    if (reason !== undefined) this.reason = reason;
    if (incident !== undefined) this.incident = incident;
    Object.defineProperty(this, APP_ERROR, { value: true });
  }

  toJSON() {
    const { code, message, details, hint } = this;
    return { error: { code, message, details, ...(hint !== undefined && { hint }) } };
  }
}

/** The `error` member of a response as an exception. */
export function fromWire(error) {
  const { code, details, hint, reason, incident } = error.data ?? {};
  const known = Object.hasOwn(STATUS, code) ? code : 'INTERNAL_SERVER_ERROR';
  return new SandboxError(known, error.message, { details, hint, reason, incident });
}

/** For each of many who are told the same. */
export function copyOf(error) {
  return new SandboxError(error.code, error.message, error);
}

/** For what a caller of this package has got wrong. */
export function invalid(message, hint) {
  return new SandboxError('VALIDATION_ERROR', message, { hint });
}
