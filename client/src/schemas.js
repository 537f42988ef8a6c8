let zod;
let loading;

async function load() {
  try {
    const module = await import('zod');
    zod = module.fromJSONSchema ? module : module.z;
  } catch (error) {
    if (error?.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  }
}

/** Before schemaOf(). zod is an optional peer: nothing happens without it, or with one that reads no JSON Schemas. */
export function loadZod() {
  loading ??= load();
  return loading;
}

/** As a zod schema where there is zod, else the JSON Schema itself. */
export function schemaOf(jsonSchema) {
  return zod?.fromJSONSchema ? zod.fromJSONSchema(jsonSchema) : jsonSchema;
}
