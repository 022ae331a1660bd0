// A client of the admin API as its types are generated from docs/admin-openapi.yaml.
import createClient from "openapi-fetch";

import type { paths } from "./admin.js";

export function connect(baseUrl: string, token: string) {
  return createClient<paths, "application/json">({ baseUrl, headers: { authorization: `Bearer ${token}` } });
}
type Client = ReturnType<typeof connect>;

// Makes a key, finds it in the list, and returns it with its secret.
export async function makeKey(client: Client, workspace: string, displayName: string) {
  const made = await client.POST("/admin/v1/workspaces/{workspace}/keys", {
    params: { path: { workspace }, query: { requestId: crypto.randomUUID() } },
    body: { displayName },
  });
  if (made.error) throw new Error(made.error.message);
  const listed = await client.GET("/admin/v1/workspaces/{workspace}/keys", { params: { path: { workspace } } });
  if (listed.error) throw new Error(listed.error.message);
  return { made: made.data, found: (listed.data.keys ?? []).some((key) => key.displayName === displayName) };
}

export async function refusal(client: Client) {
  const { error, response } = await client.GET("/admin/v1/workspaces/{workspace}", {
    params: { path: { workspace: "ws-none" } },
  });
  return { status: response.status, code: error?.code };
}
