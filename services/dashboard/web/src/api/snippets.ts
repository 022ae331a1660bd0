// The tested recipes of docs/clients.md with address, key, model and context window filled in.
import type { CodeTab } from '@/ui';
import recipes from './recipes.gen.json';

export interface Inside {
  baseUrl: string;
  secret: string;
  model: string;
  window: string; // tokens
}

function filled(recipe: string, { baseUrl, secret, model, window }: Inside): string {
  const base = baseUrl.replace(/\/+$/, '');
  const values: Record<string, string> = { TOLLGATE_URL: base, TOLLGATE_API_KEY: secret, TOLLGATE_MODEL: model };
  return (
    recipe
      // Single quotes around curl's JSON avoid escapes.
      .replace(/"(\{\\".*\})"/, (_, json: string) => `'${json.replaceAll('\\"', '"')}'`)
      .replaceAll('os.environ["TOLLGATE_URL"] + "/v1"', `"${base}/v1"`)
      .replace(/os\.environ\["(TOLLGATE_\w+)"\]/g, (_, name: string) => `"${values[name]}"`)
      .replace(/^import os\n/m, '')
      .replaceAll('`${process.env.TOLLGATE_URL}/v1`', `"${base}/v1"`)
      .replace(/process\.env\.(TOLLGATE_\w+)/g, (_, name: string) => `"${values[name]}"`)
      .replace(/\$(TOLLGATE_\w+)/g, (_, name: string) => values[name] ?? '')
      .replaceAll('131072', window)
  );
}

export function snippets(inside: Inside): CodeTab[] {
  const text = (...names: (keyof typeof recipes)[]) => names.map((name) => filled(recipes[name], inside)).join('\n\n');
  return [
    { name: 'curl', text: text('curl') },
    { name: 'Python', text: `# pip install openai\n${text('openai-python')}` },
    { name: 'JavaScript', text: `// npm install openai\n${text('openai-node')}` },
    { name: 'Anthropic', text: `# pip install anthropic\n${text('anthropic-python')}` },
    { name: 'AI SDK', text: `// npm install ai @ai-sdk/openai-compatible\n${text('ai-sdk-compatible')}` },
    { name: 'Claude Code', text: `# npm install -g @anthropic-ai/claude-code\n${text('claude-code-settings', 'claude-code')}` },
    { name: 'Codex', text: `# npm install -g @openai/codex\nexport TOLLGATE_API_KEY="${inside.secret}"\n${text('codex-settings', 'codex')}` },
  ];
}
