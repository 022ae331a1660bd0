#include "services/billing/payments/stripe_client.h"

#include <utility>

#include "common/base/id.h"

namespace tollgate::billing::payments {

using http::Form;
using http::HttpAnswer;
using http::HttpCall;
using Kind = ProviderError::Kind;

Fail<ProviderError> UnusableAnswer(std::string code) {
  return Fail{ProviderError{Kind::kUnknown, std::move(code), "unusable answer from Stripe"}};
}

ProviderError StripeClient::ErrorOf(const StripeAnswer& answer, bool keyed) {
  const json::Value error = answer.body.root().Find("error");
  ProviderError result;
  result.code = TextOf(error.Find("code"));
  const std::string type = TextOf(error.Find("type"));
  if (result.code.empty()) result.code = type;
  if (result.code.empty()) result.code = "http_" + std::to_string(answer.status);
  result.message = "Stripe answered " + std::to_string(answer.status) + " " + type;
  const int status = answer.status;
  result.kept = keyed && status >= 500 && status != 503;
  if (status == 401 || status == 403 || status == 429) {
    result.kind = Kind::kNotDone;  // wrong or restricted key, or rate-limited
  } else if (status >= 500 || status == 408 || status == 409 || status < 400 ||
             type == "idempotency_error") {
    result.kind = Kind::kUnknown;
  } else {
    result.kind = Kind::kRefused;
  }
  return result;
}

ProviderResult<StripeAnswer> StripeClient::Create(const std::string& path, const Form& form,
                                                  const std::string& key) {
  auto answer = Post(path, form, key);
  if (answer.ok() || !answer.error().kept) return answer;
  return Post(path, form, key + "-" + Id::New().ToHex());
}

ProviderResult<StripeAnswer> StripeClient::Successful(ProviderResult<StripeAnswer> answer,
                                                      bool keyed) {
  if (answer.ok() && (answer->status < 200 || answer->status >= 300)) {
    return Fail{ErrorOf(*answer, keyed)};
  }
  return answer;
}

ProviderResult<StripeAnswer> StripeClient::Call(const std::string& method, const std::string& path,
                                                const Form& form,
                                                const std::string& idempotency_key) {
  if (aborted_) return Fail{ProviderError{Kind::kNotDone, "stopping", "the process is stopping"}};
  HttpCall call;
  call.abort = &aborted_;
  call.method = method;
  call.url = options_.base_url + path;
  call.bearer = options_.secret_key;
  call.headers.emplace_back("Stripe-Version", kStripeVersion);
  if (!idempotency_key.empty()) call.headers.emplace_back("Idempotency-Key", idempotency_key);
  call.form = form;
  call.connect_timeout_ms = options_.connect_timeout_ms;
  call.timeout_ms = options_.timeout_ms;
  HttpAnswer answer = http::Send(call);
  if (answer.outcome == HttpAnswer::Outcome::kNotSent) {
    return Fail{ProviderError{Kind::kNotDone, "unreachable", answer.error}};
  }
  if (answer.outcome == HttpAnswer::Outcome::kLost) {
    return Fail{ProviderError{Kind::kUnknown, "no_answer", answer.error}};
  }
  auto body = json::Document::Parse(std::move(answer.body));
  if (!body.ok()) {
    if (answer.status == 429) {
      return Fail{ProviderError{Kind::kNotDone, "http_429", "too many calls"}};
    }
    return UnusableAnswer("http_" + std::to_string(answer.status));
  }
  return StripeAnswer{answer.status, std::move(*body)};
}

}  // namespace tollgate::billing::payments
