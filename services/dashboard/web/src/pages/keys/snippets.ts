// Calls to paste, with address, key and model already inside; the recipes of docs/clients.md.
import type { CodeTab } from '@/ui';

export function snippets(baseUrl: string, key: string, model: string): CodeTab[] {
  const base = baseUrl.replace(/\/+$/, '');
  return [
    {
      name: 'curl',
      text: `curl ${base}/v1/chat/completions \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello!"}]}'`,
    },
    {
      name: 'Python',
      text: `from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key="${key}")
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello!"}],
)
print(answer.choices[0].message.content)`,
    },
    {
      name: 'JavaScript',
      text: `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${base}/v1", apiKey: "${key}" });
const answer = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello!" }],
});
console.log(answer.choices[0].message.content);`,
    },
    {
      name: 'Anthropic',
      text: `from anthropic import Anthropic

client = Anthropic(base_url="${base}", api_key="${key}")
message = client.messages.create(
    model="${model}",
    max_tokens=256,
    messages=[{"role": "user", "content": "Hello!"}],
)
print(message.content[0].text)`,
    },
    {
      name: 'Claude Code',
      text: `export ANTHROPIC_BASE_URL="${base}"
export ANTHROPIC_API_KEY="${key}"
export ANTHROPIC_MODEL="${model}"
export ANTHROPIC_DEFAULT_HAIKU_MODEL="${model}"
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
claude`,
    },
    {
      name: 'Codex',
      text: `mkdir -p ~/.codex
cat > ~/.codex/config.toml <<END
model = "${model}"
model_provider = "tollgate"

[model_providers.tollgate]
name = "Tollgate"
base_url = "${base}/v1"
env_key = "TOLLGATE_API_KEY"
wire_api = "responses"
END
export TOLLGATE_API_KEY="${key}"
codex`,
    },
  ];
}
