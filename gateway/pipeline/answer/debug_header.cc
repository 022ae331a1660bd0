#include "gateway/pipeline/answer/debug_header.h"

#include <algorithm>

#include "common/http/head_guard.h"

namespace tollgate::gateway {
namespace {

// Formats the choice as a dictionary of RFC 9651.
std::string Text(const inference::v1::EngineChoice& choice) {
  return "engine=\"" + choice.engine_id() + "\", reason=" + choice.reason() +
         ", outstanding-tokens=" + std::to_string(choice.outstanding_tokens()) +
         ", retries=" + std::to_string(choice.retries()) +
         ", waited-ms=" + std::to_string(choice.waited_us() / 1000);
}

}  // namespace

bool MayExplain(const RequestContext& context) {
  const auto& keys = context.worker.options.debug_keys;
  return !keys.empty() &&
         http::EqualsIgnoreCase(context.exchange.request().header(kDebugHeader), "true") &&
         std::ranges::find(keys, context.key->key_id()) != keys.end();
}

void RecordChoice(RequestContext& context, const inference::v1::Event& event) {
  if (!context.explains_choice) return;
  if (event.has_started() && event.started().has_choice()) {
    context.choice = Text(event.started().choice());
  } else if (event.has_end() && event.end().has_choice()) {
    context.choice = Text(event.end().choice());
  }
}

}  // namespace tollgate::gateway
