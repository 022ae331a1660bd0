// A certified OpenID Connect provider on a free port of this machine, for oidc_test.cc. Whoever comes to sign in is the
// account that the test has set with POST /test/account; nothing else is made up. Prints its port as JSON.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

// Packages are in the build folder, not next to this file.
const require = createRequire(join(process.argv[2], 'package.json'));
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));

let account = null;
// Whether it follows prompt and max_age; some providers do not.
let asksAgain = true;
let provider = null;

const server = createServer(async (request, response) => {
  const url = new URL(request.url, 'http://provider');
  if (request.method === 'POST' && url.pathname === '/test/account') {
    let text = '';
    for await (const chunk of request) text += chunk;
    account = JSON.parse(text);
    response.end('{}');
    return;
  }
  if (request.method === 'POST' && url.pathname === '/test/never-ask-again') {
    asksAgain = false;
    response.end('{}');
    return;
  }
  if (url.pathname === '/auth' && !asksAgain) {
    url.searchParams.delete('prompt');
    url.searchParams.delete('max_age');
    request.url = url.pathname + url.search;
  }
  if (url.pathname.startsWith('/interaction/')) {
    const details = await provider.interactionDetails(request, response);
    const result = account === null
      ? { error: 'access_denied', error_description: 'the person refused' }
      : { login: { accountId: account.sub, remember: false } };
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
    return;
  }
  provider.callback()(request, response);
});

server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [{
      client_id: 'tollgate',
      client_secret: 'secret of the client: with / and +',
      redirect_uris: [process.argv[3]],
      token_endpoint_auth_method: 'client_secret_basic',
    }],
    pkce: { required: () => true },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    conformIdTokenClaims: false,
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: () => ({ sub, email: account.email, email_verified: account.email_verified, name: account.name }),
    }),
    // The client is our own: consent is not requested.
    loadExistingGrant: async (context) => {
      const grant = new context.oidc.provider.Grant({
        clientId: context.oidc.client.clientId, accountId: context.oidc.session.accountId,
      });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
    cookies: { keys: ['a key of the test'] },
  });
  console.log(JSON.stringify({ port }));
});
