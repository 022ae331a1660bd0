#include "services/inference_router/run/run_context.h"

#include <algorithm>

#include "common/base/crypto.h"

namespace tollgate::inference_router {
namespace {

// Expected output of an answer when its caller allows more, in tokens.
constexpr int64_t kUsualOutput = 512;
// As in TokenMeter: used to estimate a prompt when the gateway sends only its upper bound.
constexpr int64_t kBoundPerToken = 4;

RequestWork WorkOf(const inference::v1::GenerateRequest& request) {
  RequestWork work;
  work.prompt = request.prompt_tokens_estimate() > 0
                    ? request.prompt_tokens_estimate()
                    : request.prompt_tokens_bound() / kBoundPerToken;
  work.prompt = std::max<int64_t>(work.prompt, 1);
  if (request.kind() == inference::v1::REQUEST_KIND_EMBEDDING) return work;
  const int64_t each = request.max_tokens() > 0
                           ? std::min<int64_t>(request.max_tokens(), kUsualOutput)
                           : kUsualOutput;
  work.output = each * std::max(request.samples(), 1);
  return work;
}

// Hash of everything that separates entries in an engine's cache. Keyed, so that no caller can
// construct colliding prompts.
uint64_t PrefixSeed(const inference::v1::GenerateRequest& request, const Route& route) {
  static const uint64_t key = HashBytes(1, RandomBytes(32));
  const uint64_t seed = HashBytes(key, request.model());
  if (route.shared_cache) return seed;
  return HashBytes(HashBytes(seed, request.workspace_id()), request.cache_salt());
}

// Hash of a session. Its name is valid only in its workspace, even where the caches are shared.
uint64_t SessionHash(const inference::v1::GenerateRequest& request) {
  if (request.session().empty()) return 0;
  static const uint64_t key = HashBytes(2, RandomBytes(32));
  const uint64_t seed = HashBytes(HashBytes(key, request.model()), request.workspace_id());
  return std::max<uint64_t>(HashBytes(seed, request.session()), 1);
}

}  // namespace

void RunContext::NoteChoice(const Selection& selection) {
  if (!request.explain_choice()) return;
  inference::v1::EngineChoice& made = choice.emplace();
  made.set_engine_id(selection.engine->id());
  made.set_reason(std::string(NameOf(selection.reason)));
  made.set_outstanding_tokens(selection.outstanding);
  made.set_retries(tries);
  made.set_waited_us(waited_us);
}

void RunContext::SetNeed() {
  need.work = WorkOf(request);
  if (route->prefixes == nullptr) return;
  prefix = PrefixChain(PrefixSeed(request, *route), PromptBytes(request.members_json()));
  need.prefix = &prefix;
  need.prefixes = route->prefixes.get();
  need.session = SessionHash(request);
}

int64_t RunContext::UnseenTokens() const {
  const int64_t per_choice = request.max_tokens() > 0 ? request.max_tokens()
                             : route != nullptr       ? route->context_window
                                                      : 0;
  return (request.samples() - request.choices()) * per_choice;
}

}  // namespace tollgate::inference_router
