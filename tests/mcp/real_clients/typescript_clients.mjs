// One MCP client for TypeScript: `node typescript_clients.mjs NAME URL KEY FOLDER`, where FOLDER has node_modules.
// Prints what the runner checks, as JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [name, url, key, folder] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const load = async (module) => import(pathToFileURL(require.resolve(module)));

async function connect() {
  const transport = { requestInit: { headers: { Authorization: `Bearer ${key}` } } };
  const one = { name, version: "1" };
  if (name === "typescript-sdk-1") {
    const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const client = new Client(one);
    await client.connect(new StreamableHTTPClientTransport(new URL(url), transport));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
  const client = new Client(one);
  await client.connect(new StreamableHTTPClientTransport(new URL(url), transport));
  return client;
}

const client = await connect();
const tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
const call = async (tool, args) => (await client.callTool({ name: tool, arguments: args })).structuredContent;

const job = `clients/${name}`;
const kind = `clients-${name}`;
const mine = await call("claim_job", { jobId: job, owner: name, ttlMs: 60000, metadata: { client: name } });
const proof = { jobId: job, leaseId: mine.lease_id };
const kept = await call("heartbeat_job", { ...proof, checkpoint: { step: 1 } });
const released = await call("release_job", { ...proof, outcome: "done", result: { by: name } });
const made = await call("create_task", { type: kind, payload: { n: 1 } });
const taken = await call("claim_task", { type: kind, workerId: name, waitMs: 1000 });
const done = await call("complete_task", { id: taken.id, leaseId: taken.leaseId, result: { by: name } });
await client.close();
console.log(
  JSON.stringify({
    tools,
    job: [mine.status, kept.status, released.status],
    task: [made.status, taken.status, done.status],
  }),
);
