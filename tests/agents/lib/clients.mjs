// How each client is started headless against a stdio server and a mock model.
// Every entry: { pkg, bin, api, setup(c) -> {cmd, env}, transcripts(c) -> [files] }
// c: { dir, home, work, base (http://127.0.0.1:PORT), server: [cmd, ...args], prompt, opt, pkgs, node }
import fs from 'node:fs';
import path from 'node:path';

const put = (file, text) => { fs.mkdirSync(path.dirname(file), { recursive: true }); fs.writeFileSync(file, typeof text === 'string' ? text : JSON.stringify(text, null, 2)); return file; };
const root = (c, pkg) => (pkg === 'clients' ? path.join(c.here, '..', 'clients') : path.join(c.pkgs, pkg)); // clients/ is pinned by its lock file
const bin = (c, pkg, name) => path.join(root(c, pkg), 'node_modules', '.bin', name);
function walk(dir, keep, out = []) {
  let es; try { es = fs.readdirSync(dir, { withFileTypes: true }); } catch { return out; }
  for (const e of es) { const p = path.join(dir, e.name); if (e.isDirectory()) walk(p, keep, out); else if (keep(p)) out.push(p); }
  return out;
}
const std = (c) => ({ command: c.server[0], args: c.server.slice(1), env: { HARNESS_CFG_ENV: 'from-config', ...(c.opt.server_env ? JSON.parse(c.opt.server_env) : {}) } });
export const NAME = 'box'; // the name under which the server is attached

export const clients = {
  claude: {
    pkg: 'claude', bin: 'claude', api: 'anthropic',
    setup(c) {
      const cfg = put(path.join(c.dir, 'mcp.json'), { mcpServers: { [NAME]: { type: 'stdio', ...std(c), ...(c.opt.claude_server ? JSON.parse(c.opt.claude_server) : {}) } } });
      return {
        cmd: [bin(c, 'claude', 'claude'), '-p', c.prompt, '--mcp-config', cfg, '--strict-mcp-config', '--allowedTools', `mcp__${NAME}`,
          '--output-format', 'stream-json', '--verbose', '--model', 'claude-sonnet-4-5', ...(c.opt.claude_args ? JSON.parse(c.opt.claude_args) : [])],
        env: { ANTHROPIC_BASE_URL: c.base, ANTHROPIC_API_KEY: 'sk-test-dummy', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
      };
    },
    transcripts: (c) => walk(path.join(c.home, '.claude', 'projects'), (p) => p.endsWith('.jsonl')),
  },
  codex: {
    pkg: 'codex', bin: 'codex', api: 'responses',
    setup(c) {
      const s = std(c), q = JSON.stringify;
      put(path.join(c.home, '.codex', 'config.toml'), `model = ${q(c.opt.codex_model ?? 'mock-model')}
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.mock]
name = "mock"
base_url = ${q(c.base + '/v1')}
env_key = "MOCK_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[mcp_servers.${NAME}]
command = ${q(s.command)}
args = ${q(s.args)}
env = { ${Object.entries(s.env).map(([k, v]) => k + ' = ' + q(v)).join(', ')} }
${c.opt.codex_server ?? ''}
`);
      return { cmd: [bin(c, 'codex', 'codex'), 'exec', '--json', '--skip-git-repo-check', '-C', c.work, ...(c.opt.codex_args ? JSON.parse(c.opt.codex_args) : []), c.prompt], env: { MOCK_API_KEY: 'sk-test-dummy' } };
    },
    transcripts: (c) => walk(path.join(c.home, '.codex', 'sessions'), (p) => p.endsWith('.jsonl')),
  },
  gemini: {
    pkg: 'gemini', bin: 'gemini', api: 'gemini',
    setup(c) {
      put(path.join(c.home, '.gemini', 'settings.json'), {
        security: { auth: { selectedType: 'gemini-api-key' } }, privacy: { usageStatisticsEnabled: false }, telemetry: { enabled: false },
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
        mcpServers: { [NAME]: { ...std(c), trust: true, ...(c.opt.gemini_server ? JSON.parse(c.opt.gemini_server) : {}) } },
      });
      return {
        cmd: [bin(c, 'gemini', 'gemini'), '-p', c.prompt, '-m', 'gemini-2.5-flash', '--approval-mode', 'yolo', '--skip-trust', '-o', 'stream-json'],
        env: { GEMINI_API_KEY: 'sk-test-dummy', GOOGLE_GEMINI_BASE_URL: c.base, GEMINI_CLI_TRUST_WORKSPACE: 'true' },
      };
    },
    transcripts: (c) => walk(path.join(c.home, '.gemini', 'tmp'), (p) => /chats\/.*\.jsonl?$/.test(p)),
  },
  opencode: {
    pkg: 'opencode', bin: 'opencode', api: 'chat',
    setup(c) {
      const s = std(c);
      put(path.join(c.work, 'opencode.json'), {
        $schema: 'https://opencode.ai/config.json', autoupdate: false, share: 'disabled', model: 'mock/mock-model', small_model: 'mock/mock-model',
        enabled_providers: ['mock'], permission: 'allow',
        provider: { mock: { npm: '@ai-sdk/openai-compatible', name: 'mock', options: { baseURL: c.base + '/v1', apiKey: 'sk-test-dummy' }, models: { 'mock-model': { name: 'mock', tool_call: true, limit: { context: 100000, output: 4000 } } } } },
        mcp: { [NAME]: { type: 'local', command: [s.command, ...s.args], enabled: true, environment: s.env, ...(c.opt.opencode_server ? JSON.parse(c.opt.opencode_server) : {}) } },
      });
      return {
        cmd: [bin(c, 'opencode', 'opencode'), 'run', '--format', 'json', '--print-logs', '--log-level', 'INFO', c.prompt],
        env: { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1', OPENCODE_DISABLE_DEFAULT_PLUGINS: '1' },
      };
    },
    transcripts: (c) => walk(path.join(c.home, '.local', 'share', 'opencode'), (p) => /storage\/|\.db$/.test(p)),
  },
  qwen: {
    pkg: 'qwen', bin: 'qwen', api: 'chat',
    setup(c) {
      put(path.join(c.home, '.qwen', 'settings.json'), {
        security: { auth: { selectedType: 'openai' } }, privacy: { usageStatisticsEnabled: false }, telemetry: { enabled: false }, general: { enableAutoUpdate: false },
        model: { name: 'mock-model' },
        mcpServers: { [NAME]: { ...std(c), trust: true, ...(c.opt.qwen_server ? JSON.parse(c.opt.qwen_server) : {}) } },
      });
      return {
        cmd: [bin(c, 'qwen', 'qwen'), '-p', c.prompt, '--auth-type', 'openai', '--model', 'mock-model', '--approval-mode', 'yolo', '-o', 'stream-json'],
        env: { OPENAI_API_KEY: 'sk-test-dummy', OPENAI_BASE_URL: c.base + '/v1', OPENAI_MODEL: 'mock-model' },
      };
    },
    transcripts: (c) => walk(path.join(c.home, '.qwen'), (p) => /chats\/.*\.jsonl?$/.test(p)),
  },
  // ---- clients without a model
  mcporter: {
    pkg: 'mcporter', bin: 'mcporter', api: null,
    setup(c) {
      const cfg = put(path.join(c.dir, 'mcporter.json'), { mcpServers: { [NAME]: std(c) }, imports: [] });
      const m = bin(c, 'mcporter', 'mcporter');
      return { steps: [
        ['list', [m, '--config', cfg, 'list', NAME, '--schema', '--json']],
        ['call', [m, '--config', cfg, 'call', `${NAME}.pytest`, '--args', '{"args":["-q"]}', '--output', 'json']],
        ['invented', [m, '--config', cfg, 'call', `${NAME}.run_tests`, '--args', '{}', '--output', 'json']],
        ['badargs', [m, '--config', cfg, 'call', `${NAME}.read_file`, '--args', '{"file":"a.txt"}', '--output', 'json']],
      ], env: {} };
    },
    transcripts: () => [],
  },
  inspector: {
    pkg: 'clients', bin: 'mcp-inspector', api: null,
    setup(c) {
      const i = [bin(c, 'clients', 'mcp-inspector'), '--cli'];
      const cfg = put(path.join(c.dir, 'inspector.json'), { mcpServers: { [NAME]: { type: 'stdio', ...std(c) } } });
      const s = ['--config', cfg, '--server', NAME];
      return { steps: [
        ['list', [...i, ...s, '--method', 'tools/list']],
        ['call', [...i, ...s, '--method', 'tools/call', '--tool-name', 'pytest', '--tool-arg', 'args=["-q"]']],
        ['invented', [...i, ...s, '--method', 'tools/call', '--tool-name', 'run_tests']],
        ['badargs', [...i, ...s, '--method', 'tools/call', '--tool-name', 'read_file', '--tool-arg', 'file=a.txt']],
        ['strict', [...i, ...s, '--method', 'tools/list', '--strict']],
        ['modern', [...i, ...s, '--protocol-era', 'modern', '--method', 'tools/list']],
        ['load', [...i, ...s, '--method', 'tools/call', '--tool-name', 'read_file', '--tool-arg', 'path=a.txt', '--load', '--load-requests', '40', '--load-concurrency', '8', '--load-duration', '30', '--format', 'json']],
      ], env: {} };
    },
    transcripts: () => [],
  },
  sdk: {
    pkg: 'clients', bin: null, api: null,
    setup(c) { return { cmd: [c.node, path.join(c.here, 'sdk-client.mjs'), root(c, 'clients'), ...c.server], env: {} }; },
    transcripts: () => [],
  },
  sdk2: {
    pkg: 'clients', bin: null, api: null,
    setup(c) { return { cmd: [c.node, path.join(c.here, 'sdk2-client.mjs'), root(c, 'clients'), ...c.server], env: {} }; },
    transcripts: () => [],
  },
};
