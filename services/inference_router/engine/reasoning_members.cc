#include "services/inference_router/engine/reasoning_members.h"

#include <string_view>

#include "common/engines/kinds.h"
#include "common/json/json.h"

namespace tollgate::inference_router {

namespace {

namespace pb = inference::v1;

std::string EffortMember(std::string_view effort) {
  return effort.empty() ? std::string() : R"("reasoning_effort":)" + json::Quoted(effort);
}

// Chat templates use one of two names for the switch.
std::string ByTemplate(const pb::Reasoning& reasoning) {
  std::string members;
  if (reasoning.thinking() != pb::REASONING_SWITCH_UNSPECIFIED &&
      !reasoning.own_template_arguments()) {
    members = reasoning.thinking() == pb::REASONING_SWITCH_ON
                  ? R"("chat_template_kwargs":{"enable_thinking":true,"thinking":true})"
                  : R"("chat_template_kwargs":{"enable_thinking":false,"thinking":false})";
  }
  if (!reasoning.effort().empty()) {
    if (!members.empty()) members += ',';
    members += EffortMember(reasoning.effort());
  }
  return members;
}

// Off is a level. On is the default of every model that can reason.
std::string_view LevelOf(const pb::Reasoning& reasoning) {
  return reasoning.thinking() == pb::REASONING_SWITCH_OFF ? std::string_view("none")
                                                          : reasoning.effort();
}

// Ollama answers 400 to levels other than these.
std::string_view OllamaLevel(std::string_view level) {
  if (level == "minimal") return "low";
  return level == "xhigh" || level == "max" ? "high" : level;
}

}  // namespace

std::string ReasoningMembers(catalog::v1::EngineKind kind, const pb::Reasoning& reasoning) {
  switch (engines::Of(kind).reasoning) {
    case engines::ReasoningControl::kTemplate:
      return ByTemplate(reasoning);
    case engines::ReasoningControl::kOllamaEffort:
      return EffortMember(OllamaLevel(LevelOf(reasoning)));
    case engines::ReasoningControl::kEffort:
      return EffortMember(LevelOf(reasoning));
    case engines::ReasoningControl::kNone:
      return {};
  }
}

}  // namespace tollgate::inference_router
