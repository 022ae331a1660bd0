#include "services/auth/rpc/limit_use.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/admin/requests.h"
#include "common/base/clock.h"

namespace tollgate::auth {
namespace {

namespace av = admin::v1;
using grpc::ServerUnaryReactor;

// Asks the limiter for each set of limits, all at once; the last answer ends the call.
class UseQuestions : public std::enable_shared_from_this<UseQuestions> {
 public:
  UseQuestions(ServerUnaryReactor* reactor, av::LimitUsage& response)
      : reactor_(reactor), response_(response) {}

  // model: "" for all.
  void Add(const std::string& workspace, const std::string& model, const Effective& effective) {
    if (IsNone(effective.limits)) return;
    ratelimit::v1::PeekRequest question;
    question.set_workspace_id(workspace);
    question.set_model(model);
    auto& limits = model.empty() ? *question.mutable_workspace_limits()
                                 : *question.mutable_workspace_model_limits();
    limits.set_requests_per_minute(effective.limits.requests_per_minute);
    limits.set_tokens_per_minute(effective.limits.tokens_per_minute);
    limits.set_concurrent_requests(effective.limits.concurrent_requests);
    questions_.push_back(std::move(question));
  }
  void Ask(const Peers& peers) {
    if (questions_.empty()) return reactor_->Finish(grpc::Status::OK);
    if (!peers.peek) {
      return reactor_->Finish(admin::ToStatus(
          admin::Precondition("LIMITER_UNKNOWN",
                              "targets.ratelimit is not set in the configuration of auth")
              .error));
    }
    answers_.resize(questions_.size());
    waiting_ = questions_.size();
    for (size_t i = 0; i < questions_.size(); ++i) {
      peers.peek(questions_[i],
                 [self = shared_from_this(), i](const Result<ratelimit::v1::PeekResponse>& answer) {
                   self->Take(i, answer);
                 });
    }
  }

 private:
  void Take(size_t index, const Result<ratelimit::v1::PeekResponse>& answer) {
    const std::lock_guard lock(mutex_);
    if (answer) {
      answers_[index] = *answer;
    } else {
      failure_ = answer.error();
    }
    if (--waiting_ > 0) return;
    if (failure_) return reactor_->Finish(admin::ToStatus(admin::FromError(*failure_)));
    for (size_t i = 0; i < questions_.size(); ++i) {
      const std::string& model = questions_[i].model();
      AddUse(model, av::LIMIT_KIND_REQUESTS_PER_MINUTE, answers_[i].requests());
      AddUse(model, av::LIMIT_KIND_TOKENS_PER_MINUTE, answers_[i].tokens());
      AddUse(model, av::LIMIT_KIND_CONCURRENT_REQUESTS, answers_[i].concurrency());
    }
    MarkFirst();
    reactor_->Finish(grpc::Status::OK);
  }
  void AddUse(const std::string& model, av::LimitKind kind,
              const ratelimit::v1::LimitStatus& status) {
    if (status.limit() == 0) return;
    av::LimitUse& use = *response_.add_uses();
    use.set_model(model);
    use.set_kind(kind);
    use.set_limit(status.limit());
    use.set_remaining(status.remaining());
    if (kind != av::LIMIT_KIND_CONCURRENT_REQUESTS && status.reset_ms() > 0) {
      *use.mutable_reset_time() =
          admin::ToTimestamp(SystemClock::Get().WallUs() + status.reset_ms() * 1000);
    }
  }
  void MarkFirst() {
    av::LimitUse* first = nullptr;
    const auto part = [](const av::LimitUse& use) {
      return static_cast<double>(use.remaining()) / static_cast<double>(use.limit());
    };
    for (av::LimitUse& use : *response_.mutable_uses()) {
      if (use.remaining() < use.limit() && (first == nullptr || part(use) < part(*first))) {
        first = &use;
      }
    }
    if (first != nullptr) first->set_binds_first(true);
  }

  ServerUnaryReactor* const reactor_;
  av::LimitUsage& response_;
  std::vector<ratelimit::v1::PeekRequest> questions_;
  std::mutex mutex_;
  std::vector<ratelimit::v1::PeekResponse> answers_;
  size_t waiting_ = 0;
  std::optional<Error> failure_;
};

}  // namespace

void AskForUse(const Peers& peers, const std::string& workspace,
               const AuthStore::WorkspaceLimits& limits, ServerUnaryReactor* reactor,
               av::LimitUsage& response) {
  const auto questions = std::make_shared<UseQuestions>(reactor, response);
  const auto add = [&](const std::string& model, const Effective& effective) {
    if (!(effective.of_plan && limits.plan_shadow)) questions->Add(workspace, model, effective);
  };
  add("", Choose(limits.limits, limits.of_plan.workspace));
  for (const auto& [model, effective] :
       Choose(limits.model_limits, limits.of_plan.workspace_models)) {
    add(model, effective);
  }
  questions->Ask(peers);
}

}  // namespace tollgate::auth
