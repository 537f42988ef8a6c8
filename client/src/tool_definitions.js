const METHOD_PREFIX = 'coding.';
const NO_TOOLS = ['coding.create', 'coding.delete'];
const REFERENCE_PREFIX = '#/components/schemas/';

// A copy in which each reference is replaced by what it refers to; no schema of a tool refers to itself.
function selfContained(schema, schemas) {
  if (Array.isArray(schema)) return schema.map((item) => selfContained(item, schemas));
  if (schema === null || typeof schema !== 'object') return schema;
  if (typeof schema.$ref === 'string') {
    return selfContained(schemas[schema.$ref.slice(REFERENCE_PREFIX.length)], schemas);
  }
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, selfContained(value, schemas)]));
}

function has(tool, { executables, artifacts }) {
  if (tool === 'run_command') return Object.keys(executables ?? {}).length > 0;
  if (artifacts === 'none') return tool !== 'read_output' && tool !== 'search_output';
  return tool !== 'search_output' || typeof artifacts !== 'object' || Boolean(artifacts.search);
}

// What only the toolset knows.
function fit(tool, properties, { executables, limits }, defaults) {
  const maxReadBytes = limits?.maxReadBytes ?? defaults.maxReadBytes;
  const maxSearchResults = limits?.maxSearchResults ?? defaults.maxSearchResults;
  if (tool === 'run_command') {
    properties.executable.enum = Object.keys(executables);
  } else if (tool === 'read_file' || tool === 'read_output') {
    properties.maxBytes.default = maxReadBytes;
  } else if (tool === 'search_output') {
    Object.assign(properties.maxMatches, { maximum: maxSearchResults, default: Math.min(20, maxSearchResults) });
  }
}

function defaultsOf(schema) {
  return Object.fromEntries(Object.entries(schema.properties).map(([name, value]) => [name, value.default]));
}

/**
 * The tools of a toolset with these options, as the sidecar's `coding.create` describes them (a test compares the two),
 * from its OpenRPC document: so that a host has them at once.
 */
export function toolDefinitions(document, options) {
  const { schemas } = document.components;
  const defaults = defaultsOf(schemas.ToolLimits);
  const tools = document.methods.filter(({ name }) => name.startsWith(METHOD_PREFIX) && !NO_TOOLS.includes(name));
  return tools.flatMap((method) => {
    const name = method.name.slice(METHOD_PREFIX.length);
    if (!has(name, options)) return [];
    const inputSchema = selfContained(method.params.find((param) => param.name === 'input').schema, schemas);
    fit(name, inputSchema.properties, options, defaults);
    return {
      name,
      method: method.name,
      description: method.description,
      identity: { serviceName: 'coding', action: name.replaceAll('_', '-'), method: 'POST' },
      inputSchema,
      outputSchema: selfContained(method.result.schema, schemas),
      transports: ['AGENT'],
    };
  });
}
