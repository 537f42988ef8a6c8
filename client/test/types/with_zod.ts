// The schemas where zod is there: they are zod's, with all that zod can do. Without zod this is not compiled.
import type { CodingToolDefinition } from 'stitchkit-sandbox-client';
import { z } from 'zod';

export function describe(definition: CodingToolDefinition): string[] {
  const parsed: Record<string, unknown> = definition.input.parse({ path: 'x' });
  const answer = definition.output.safeParse(parsed);
  const schema: z.ZodObject = definition.input.extend({ why: z.string() });
  return [...Object.keys(schema.shape), answer.success ? '' : answer.error.message];
}

// @ts-expect-error -- zod's types, not any
export const wrong = (definition: CodingToolDefinition): number => definition.input;
