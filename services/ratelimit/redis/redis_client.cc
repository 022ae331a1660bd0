#include "services/ratelimit/redis/redis_client.h"

#include <openssl/sha.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <future>

#include "common/base/clock.h"
#include "common/observability/log.h"

namespace tollgate::ratelimit {
namespace {

constexpr auto kTick = std::chrono::milliseconds(5);
// Interval of look-ups of the masters, in normal operation and after an error.
constexpr int64_t kLookUpUs = 1'000'000;
constexpr int64_t kLookUpLostUs = 100'000;
constexpr int64_t kGuideTimeoutUs = 300'000;
// Minimum time between two attempts to connect to a server.
constexpr int64_t kReconnectUs = 100'000;
constexpr int kSlots = 16384;
constexpr int kMaxRedirections = 2;
// After this number of look-ups without a live master, the next sentinel or node is asked.
constexpr int kFruitless = 10;

bool IsError(const BasicResult<Reply, std::string>& reply) {
  return reply.ok() && (*reply)->type == REDIS_REPLY_ERROR;
}

bool IsText(const redisReply& reply) {
  return reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS;
}

}  // namespace

RedisScript::RedisScript(std::string text) : source(std::move(text)) {
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(source.data()), source.size(), digest);
  constexpr char kHex[] = "0123456789abcdef";
  for (const unsigned char byte : digest) sha1.append({kHex[byte >> 4], kHex[byte & 15]});
}

struct RedisClient::Call {
  const RedisScript* script;
  std::string key;
  int slot = 0;
  std::vector<std::string> arguments;
  int64_t deadline_us = 0;
  ReplyDone done;
  bool with_source = false;  // the server does not have the script yet
  int redirections = 0;
  Endpoint endpoint;  // where it was sent
};

BasicResult<std::unique_ptr<RedisClient>, std::string> RedisClient::Make(RedisOptions options) {
  std::unique_ptr<RedisClient> client(new RedisClient(std::move(options)));
  if (!client->options_.url.tls) return client;
  boost::system::error_code failed;
  client->tls_.emplace(boost::asio::ssl::context::tls_client);
  client->tls_->set_verify_mode(boost::asio::ssl::verify_peer, failed);
  if (client->options_.authority_file.empty()) {
    client->tls_->set_default_verify_paths(failed);
  } else {
    client->tls_->load_verify_file(client->options_.authority_file, failed);
  }
  if (failed) {
    return Fail{"ratelimit.redis_authority_file " + client->options_.authority_file + ": " +
                failed.message()};
  }
  return client;
}

RedisClient::RedisClient(RedisOptions options) : options_(std::move(options)), timer_(context_) {
  if (options_.url.kind == RedisUrl::Kind::kSingle) masters_ = {options_.url.endpoints.front()};
}

RedisClient::~RedisClient() { Stop(); }

void RedisClient::Start() {
  boost::asio::post(context_, [this] { Tick(); });
  thread_ = std::thread([this] { context_.run(); });
}

void RedisClient::Stop() {
  {
    std::lock_guard lock(mutex_);
    if (stopped_.exchange(true) || !thread_.joinable()) return;
  }
  boost::asio::post(context_, [this] {
    timer_.cancel();
    if (guide_) guide_->Close("stopped");
    for (auto& [name, node] : std::exchange(nodes_, {})) node->Close("stopped");
    guide_.reset();
  });
  thread_.join();
}

void RedisClient::Eval(const RedisScript& script, const std::string& tag,
                       std::vector<std::string> arguments, ReplyDone done) {
  auto call = std::make_shared<Call>(Call{.script = &script,
                                          .key = "tollgate:{" + tag + "}",
                                          .slot = SlotOf(tag),
                                          .arguments = std::move(arguments),
                                          .deadline_us = MonotonicNowUs() + options_.timeout_us,
                                          .done = std::move(done)});
  {
    std::lock_guard lock(mutex_);
    if (!stopped_) return boost::asio::post(context_, [this, call] { Begin(call); });
  }
  call->done(Fail{std::string("the client of Redis has stopped")});
}

void RedisClient::Begin(const CallPtr& call) {
  const auto master = MasterOf(call->slot);
  if (!master || stopped_) {
    lost_ = true;
    return Finish(call, Fail{std::string("no master of Redis is known")});
  }
  Run(call, *master, false);
}

void RedisClient::Run(const CallPtr& call, const Endpoint& endpoint, bool asking) {
  const ConnectionPtr node = Node(endpoint);
  // Commands are not queued for a connection in progress: the caller has a local share and gains
  // nothing by waiting.
  if (!node || !node->ready()) {
    return Finish(call, Fail{"Redis at " + endpoint.ToString() + " is not connected"});
  }
  call->endpoint = endpoint;
  if (asking) node->Send({"ASKING"}, call->deadline_us, [](auto) {});
  Command command = {call->with_source ? "EVAL" : "EVALSHA",
                     call->with_source ? call->script->source : call->script->sha1, "1", call->key,
                     node->server_id()};
  command.insert(command.end(), call->arguments.begin(), call->arguments.end());
  node->Send(command, call->deadline_us,
             [this, call](auto reply) { OnReply(call, std::move(reply)); });
}

void RedisClient::OnReply(const CallPtr& call, BasicResult<Reply, std::string> reply) {
  if (!IsError(reply) || stopped_) return Finish(call, std::move(reply));
  const std::string text((*reply)->str, (*reply)->len);
  if (text.starts_with("NOSCRIPT") && !call->with_source) {
    call->with_source = true;
    return Run(call, call->endpoint, false);
  }
  const bool moved = text.starts_with("MOVED ");
  if ((moved || text.starts_with("ASK ")) && call->redirections++ < kMaxRedirections) {
    lost_ = lost_ || moved;
    // "MOVED slot host:port". An empty host means the host that answered.
    std::string address = text.substr(text.rfind(' ') + 1);
    if (address.starts_with(":")) address.insert(0, call->endpoint.host);
    if (const auto endpoint = ParseEndpoint(address, "6379")) return Run(call, *endpoint, !moved);
  }
  if (text.starts_with("READONLY") || text.starts_with("MASTERDOWN")) {
    // The server has stopped being a master since the connection was made.
    if (const auto found = nodes_.find(call->endpoint.ToString()); found != nodes_.end()) {
      const ConnectionPtr node = found->second;
      boost::asio::post(context_, [node, text] { node->Close(text); });
    }
    lost_ = true;
  }
  if (text.starts_with("CLUSTERDOWN") || text.starts_with("TRYAGAIN")) lost_ = true;
  Finish(call, Fail{"Redis at " + call->endpoint.ToString() + " answered: " + text});
}

void RedisClient::Finish(const CallPtr& call, BasicResult<Reply, std::string> reply) {
  healthy_ = reply.ok();
  call->done(std::move(reply));
}

std::optional<Endpoint> RedisClient::MasterOf(int slot) const {
  if (masters_.empty()) return std::nullopt;
  if (slots_.empty()) return masters_.front();
  const int16_t index = slots_[static_cast<size_t>(slot)];
  if (index < 0) return std::nullopt;
  return masters_[static_cast<size_t>(index)];
}

std::vector<Command> RedisClient::Handshake() const {
  std::vector<Command> commands;
  if (!options_.password.empty()) {
    commands.push_back(options_.user.empty() ? Command{"AUTH", options_.password}
                                             : Command{"AUTH", options_.user, options_.password});
  }
  if (options_.url.database > 0) {
    commands.push_back({"SELECT", std::to_string(options_.url.database)});
  }
  return commands;
}

// The connection to this server, which may not be ready yet. Null if it was lost a moment ago.
RedisClient::ConnectionPtr RedisClient::Node(const Endpoint& endpoint) {
  const std::string name = endpoint.ToString();
  ConnectionPtr& node = nodes_[name];
  if (node && !node->closed()) return node;
  int64_t& opened_us = opened_us_[name];
  if (opened_us != 0 && MonotonicNowUs() - opened_us < kReconnectUs) return nullptr;
  opened_us = MonotonicNowUs();
  node = std::make_shared<RedisConnection>(
      context_,
      RedisConnection::Options{.endpoint = endpoint,
                               .tls = tls_ ? &*tls_ : nullptr,
                               .handshake = Handshake(),
                               .identify = true,
                               .only_master = options_.url.kind != RedisUrl::Kind::kCluster,
                               .hang_us = 4 * options_.timeout_us},
      [this](const std::string& reason) {
        lost_ = true;
        if (!stopped_) log::Warn("connection to Redis closed", {{"reason", reason}});
      });
  node->Open();
  return node;
}

void RedisClient::Tick() {
  if (stopped_) return;
  const int64_t now_us = MonotonicNowUs();
  const auto nodes = nodes_;
  for (const auto& [name, node] : nodes) {
    if (node) node->Tick(now_us);
  }
  if (const ConnectionPtr guide = guide_) guide->Tick(now_us);
  if (!asked_ && now_us - asked_us_ >= (lost_ ? kLookUpLostUs : kLookUpUs)) {
    asked_us_ = now_us;
    lost_ = false;
    if (options_.url.kind != RedisUrl::Kind::kSingle) Discover();
    // Reopens lost connections before a call needs them.
    bool ready = !masters_.empty();
    for (const Endpoint& master : masters_) {
      const ConnectionPtr node = Node(master);
      ready = ready && node && node->ready();
    }
    fruitless_ = ready ? 0 : fruitless_ + 1;
    if (!ready) lost_ = true;
    // The sentinel or node may be cut off from the others: ask another one.
    if (fruitless_ % kFruitless == kFruitless - 1 && guide_)
      guide_->Close("it names no live master");
  }
  timer_.expires_after(kTick);
  timer_.async_wait([this](const auto& failed) {
    if (!failed) Tick();
  });
}

void RedisClient::Discover() {
  if (!guide_ || guide_->closed()) {
    // Sentinels do not have the password of Redis's users; nodes of a cluster do.
    const bool sentinel = options_.url.kind == RedisUrl::Kind::kSentinel;
    std::vector<Endpoint> known = options_.url.endpoints;
    if (!sentinel) known.insert(known.end(), masters_.begin(), masters_.end());
    guide_ = std::make_shared<RedisConnection>(
        context_,
        RedisConnection::Options{.endpoint = known[next_guide_++ % known.size()],
                                 .tls = tls_ ? &*tls_ : nullptr,
                                 .handshake = sentinel ? std::vector<Command>() : Handshake(),
                                 .hang_us = 0,
                                 .open_us = kGuideTimeoutUs},
        [this](const std::string&) { lost_ = true; });
    guide_->Open();
  }
  const bool sentinel = options_.url.kind == RedisUrl::Kind::kSentinel;
  asked_ = true;
  guide_->Send(sentinel ? Command{"SENTINEL", "get-master-addr-by-name", options_.url.master_name}
                        : Command{"CLUSTER", "SLOTS"},
               MonotonicNowUs() + kGuideTimeoutUs,
               [this, sentinel](BasicResult<Reply, std::string> reply) {
                 asked_ = false;
                 if (stopped_) return;
                 if (!reply || (*reply)->type != REDIS_REPLY_ARRAY) {
                   // Ask the next one.
                   lost_ = true;
                   boost::asio::post(context_, [guide = guide_] {
                     if (guide) guide->Close("it does not know the masters");
                   });
                   return;
                 }
                 sentinel ? OnSentinel(**reply) : OnSlots(**reply);
               });
}

void RedisClient::OnSentinel(const redisReply& reply) {
  if (reply.elements != 2 || !IsText(*reply.element[0]) || !IsText(*reply.element[1])) return;
  SetMasters({{reply.element[0]->str, reply.element[1]->str}});
}

// Reply: a list of first slot, last slot, master, replicas…; each node is host, port, id…
void RedisClient::OnSlots(const redisReply& reply) {
  std::vector<Endpoint> masters;
  std::vector<int16_t> slots(kSlots, -1);
  for (size_t i = 0; i < reply.elements; ++i) {
    const redisReply& range = *reply.element[i];
    if (range.type != REDIS_REPLY_ARRAY || range.elements < 3) continue;
    const redisReply& node = *range.element[2];
    if (node.type != REDIS_REPLY_ARRAY || node.elements < 2) continue;
    const int64_t first = std::max<int64_t>(range.element[0]->integer, 0);
    const int64_t last = std::min<int64_t>(range.element[1]->integer, kSlots - 1);
    std::string host = IsText(*node.element[0]) ? node.element[0]->str : "";
    if (host.empty() && guide_) host = guide_->endpoint().host;
    const Endpoint endpoint{std::move(host), std::to_string(node.element[1]->integer)};
    auto place = std::find(masters.begin(), masters.end(), endpoint);
    if (place == masters.end()) place = masters.insert(place, endpoint);
    for (int64_t slot = first; slot <= last; ++slot) {
      slots[static_cast<size_t>(slot)] = static_cast<int16_t>(place - masters.begin());
    }
  }
  if (masters.empty()) return;
  slots_ = std::move(slots);
  SetMasters(std::move(masters));
}

void RedisClient::SetMasters(std::vector<Endpoint> masters) {
  if (masters == masters_) return;
  std::string text;
  for (const Endpoint& master : masters) text += (text.empty() ? "" : " ") + master.ToString();
  log::Info("masters of Redis", {{"addresses", text}});
  masters_ = std::move(masters);
  // Commands must not reach a server that has stopped being a master.
  std::erase_if(nodes_, [&](const auto& entry) {
    const ConnectionPtr node = entry.second;
    const bool gone =
        !node || std::find(masters_.begin(), masters_.end(), node->endpoint()) == masters_.end();
    if (gone && node) {
      boost::asio::post(context_, [node] { node->Close("it is not a master any more"); });
    }
    return gone;
  });
  for (const Endpoint& master : masters_) (void)Node(master);
}

}  // namespace tollgate::ratelimit
