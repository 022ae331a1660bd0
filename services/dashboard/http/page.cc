#include "services/dashboard/http/page.h"

namespace tollgate::dashboard {
namespace {

constexpr std::string_view kPage = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tollgate</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<main>
<h1>Tollgate</h1>
<p class="lead">An inference gateway. The pages of this dashboard are not here: build them with
<code>./dev web</code> and name the folder, <code>build/web</code>, as
<code>dashboard.web_folder</code> in the configuration.</p>

<section>
<h2>Call the API</h2>
<p>Official OpenAI clients work unchanged: set the base URL to <code>%BASE%/v1</code> and use a
virtual key as the API key.</p>
<pre><code>curl %BASE%/v1/chat/completions \
  -H "Authorization: Bearer $TOLLGATE_API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"model": "MODEL", "messages": [{"role": "user", "content": "Hello"}]}'</code></pre>
<p>The models and their prices: <code>GET %BASE%/v1/models</code>.</p>
</section>

<section>
<h2>Run it</h2>
<p>Keys, credit, spend caps and the ledger, on the command line:</p>
<pre><code>tollgate workspace create
tollgate key create
tollgate credit add
tollgate cap set
tollgate balance
tollgate verify-ledger</code></pre>
</section>

<section>
<h2>Admin API</h2>
<p>The same over HTTP, under <code>/admin/v1/</code>, for people who are signed in, and with
<code>Authorization: Bearer TOKEN</code>. Amounts are decimal text in USD.</p>
<pre><code>curl $DASHBOARD/admin/v1/workspaces -H "Authorization: Bearer $TOKEN"</code></pre>
<p>Every method is in <code>docs/admin-openapi.yaml</code>.</p>
</section>
</main>
</body>
</html>
)html";

constexpr std::string_view kCss =
    R"css(:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.6 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 3rem 1.25rem; }
h1 { font-size: 2rem; margin: 0; letter-spacing: -0.02em; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 0.5rem; }
.lead { font-size: 1.15rem; opacity: 0.8; margin: 0.25rem 0 0; }
code { font: 0.9em ui-monospace, monospace; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 8px; }
pre { padding: 1rem; overflow-x: auto; }
)css";

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string PageHtml(std::string_view base_url) {
  while (base_url.ends_with('/')) base_url.remove_suffix(1);
  const std::string base = base_url.empty() ? "https://GATEWAY" : EscapeHtml(base_url);
  constexpr std::string_view kPlaceholder = "%BASE%";
  std::string out;
  std::string_view rest = kPage;
  while (true) {
    const size_t at = rest.find(kPlaceholder);
    out += rest.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += base;
    rest.remove_prefix(at + kPlaceholder.size());
  }
}

std::string_view PageCss() { return kCss; }

void AddSecurityHeaders(http::Headers& headers) {
  headers.emplace_back("content-security-policy",
                       "default-src 'none'; style-src 'self'; frame-ancestors 'none'; "
                       "base-uri 'none'; form-action 'none'");
  headers.emplace_back("x-frame-options", "DENY");
  headers.emplace_back("referrer-policy", "no-referrer");
  headers.emplace_back("cross-origin-opener-policy", "same-origin");
  headers.emplace_back("cache-control", "no-store");
}

}  // namespace tollgate::dashboard
