#include "tests/secrets/secret_world.h"

#include <algorithm>
#include <filesystem>
#include <random>

namespace tollgate::test {
namespace {

namespace fs = std::filesystem;

std::string Random(size_t size, std::string_view digits) {
  static std::mt19937_64 random(std::random_device{}());
  std::string text;
  while (text.size() < size) text += digits[random() % digits.size()];
  return text;
}

EngineSimOptions EngineWith(const std::string& api_key) {
  EngineSimOptions options;
  options.api_key = api_key;
  return options;
}

// Files that the operator (here the test) writes.
bool IsGiven(const fs::path& path) {
  const std::string name = path.filename();
  return name.ends_with(".yaml") || name == "pepper" || name == "login_token";
}

}  // namespace

SecretWorld::SecretWorld(bool all_in_one, testing::TestPostgres* postgres)
    : all_in_one_(all_in_one),
      postgres_(postgres),
      engine_key_("engine-" + Random(32, "abcdefghijkmnpqrstuvwxyz")),
      engine_(EngineWith(engine_key_)) {
  engine_.Start();
  cluster_ = std::make_unique<Cluster>(Options());
}

std::string SecretWorld::NewCanary(const std::string& kind) {
  std::string text = "canary" + std::to_string(++made_) + Random(32, "abcdefghijkmnpqrstuvwxyz");
  canaries_.Add(kind, text);
  return text;
}

std::string SecretWorld::SecretFile(const std::string& kind, const std::string& text) {
  canaries_.Add(kind, text);
  const std::string path = given_.path() + "/" + std::to_string(++made_);
  WriteFile(path, text + "\n");
  return path;
}

ClusterOptions SecretWorld::Options() {
  constexpr char kHex[] = "0123456789abcdef";
  ClusterOptions options;
  options.all_in_one = all_in_one_;
  options.log_level = "debug";
  options.host_settings = {"tracing: {otlp_endpoint: \"" + collector_.address() +
                           "\", sample_ratio: 1, queue_bytes: 33554432}"};
  options.idle_timeout_seconds = 5;
  if (postgres_ != nullptr) {
    for (std::string* url : {&options.auth_sql, &options.billing_sql}) {
      *url =
          postgres_->MakeDatabase("secrets_" + std::string(url == &options.auth_sql ? "a" : "b"));
      *url += "&password=" + NewCanary("password of the database");
    }
  }
  options.catalog = DefaultCatalog({engine_.base_url()});
  const std::string base = "base_url: " + engine_.base_url() + "\n";
  const std::string key_file = SecretFile("API key of an engine", engine_key_);
  options.catalog.insert(options.catalog.find(base) + base.size(),
                         "        api_key: ${file:" + key_file + "}\n");
  canaries_.Add("pepper", "a pepper for tests that is longer than 32 characters");
  canaries_.Add("login token", "login-token-for-tests");
  canaries_.Add("password at the mail server of people", MailBox::password());
  options.auth_settings = {
      "people: {" + mails_.Settings() +
      ", seal_key_file: " + SecretFile("seal key", Random(64, kHex)) + ", oidc: {issuer: \"" +
      echo_.url() + "\", client_id: tollgate, client_secret_file: " +
      SecretFile("client secret of OpenID Connect", NewCanary("client secret")) + "}}"};
  options.gateway_settings = {
      "idempotency_key_file: " + SecretFile("key of kept answers", Random(64, kHex)),
      "reasoning_key_file: " + SecretFile("key of sealed reasoning", Random(64, kHex)),
      "legacy_key_prefixes: [oldbrand_]"};
  options.router_settings = {"cache_salt_key: ${file:" +
                             SecretFile("key of cache salts", NewCanary("cache salt key")) + "}"};
  options.billing_settings = {
      "payments: {provider: stripe, stripe_secret_key_file: " +
          SecretFile("key of Stripe", "sk_test_" + NewCanary("key of Stripe")) +
          ", stripe_webhook_secret_file: " +
          SecretFile("webhook secret of Stripe", "whsec_" + NewCanary("webhook secret of Stripe")) +
          ", webhook_listen: \"127.0.0.1:0\", success_url: \"https://example.test/\", "
          "stripe_base_url: \"" +
          echo_.url() + "\"}",
      "alerts: {webhooks_to_private_addresses: true, smtp_url: \"smtp://" + echo_.address() +
          "\", smtp_user: mailer, smtp_password_file: " +
          SecretFile("password at the mail server", NewCanary("mail password")) +
          ", mail_from: \"a@example.test\", seal_key_file: " +
          SecretFile("seal key of webhooks", Random(64, kHex)) + "}"};
  return options;
}

void SecretWorld::Keep(const HttpResponse& answer) {
  answers_ += "\n--- " + std::to_string(answer.status) + "\n";
  for (const auto& [name, value] : answer.headers) answers_ += name + ": " + value + "\n";
  answers_ += answer.body;
}

HttpResponse SecretWorld::Collect(HttpResponse answer) {
  if (answer.status >= 300) Keep(answer);
  return answer;
}

HttpResponse SecretWorld::CollectAll(HttpResponse answer) {
  Keep(answer);
  return answer;
}

void SecretWorld::CollectMetrics() {
  for (const std::string& name : cluster_->process_names()) {
    for (const char* path : {"/metrics", "/readyz", "/version"}) {
      metrics_ += Http(cluster_->admin_port(name), "GET", path, {}, "", 5'000).body;
    }
  }
}

std::vector<std::string> SecretWorld::Search() {
  std::vector<std::string> found = canaries_.FindIn("an answer", answers_);
  const auto add = [&](const std::string& where, const std::string& text) {
    for (std::string& one : canaries_.FindIn(where, text)) found.push_back(std::move(one));
  };
  add("a metric", metrics_);
  add("a trace", collector_.bytes());
  for (const auto& entry : fs::recursive_directory_iterator(cluster_->dir())) {
    if (entry.is_regular_file() && !IsGiven(entry.path())) {
      add("file " + entry.path().filename().string(), ReadFile(entry.path()));
    }
  }
  if (postgres_ != nullptr) {
    const fs::path folder = fs::path(postgres_->log_file()).parent_path();
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) {
        add("file " + entry.path().filename().string() + " of PostgreSQL", ReadFile(entry.path()));
      }
    }
  }
  return found;
}

}  // namespace tollgate::test
