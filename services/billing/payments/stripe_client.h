// Calls of Stripe's API: form in, JSON out, with the errors of a ProviderResult.
#pragma once

#include <atomic>
#include <string>

#include "common/base/try.h"
#include "common/http/http_call.h"
#include "common/json/json.h"
#include "services/billing/payments/provider.h"
#include "services/billing/payments/stripe_json.h"
#include "services/billing/payments/stripe_provider.h"

namespace tollgate::billing::payments {

// An incomplete answer is treated as no answer.
Fail<ProviderError> UnusableAnswer(std::string code);

struct StripeAnswer {
  int status = 0;
  json::Document body;
};

class StripeClient {
 public:
  explicit StripeClient(StripeOptions options) : options_(std::move(options)) {}

  ProviderResult<StripeAnswer> Get(const std::string& path, const http::Form& form) {
    return Successful(Call("GET", path, form, ""), false);
  }
  ProviderResult<StripeAnswer> Post(const std::string& path, const http::Form& form,
                                    const std::string& key) {
    return Successful(Call("POST", path, form, key), !key.empty());
  }
  // Creates what only its answer makes known. So another key does no harm after an error that the
  // provider would repeat for a day.
  ProviderResult<StripeAnswer> Create(const std::string& path, const http::Form& form,
                                      const std::string& key);
  // Returns an answer with any status if its body is JSON.
  ProviderResult<StripeAnswer> Call(const std::string& method, const std::string& path,
                                    const http::Form& form, const std::string& idempotency_key);
  // Reads all pages of a list.
  template <typename Each>
  ProviderResult<void> ForEach(const std::string& path, const http::Form& form, Each each) {
    std::string after;
    do {
      http::Form page = form;
      page.emplace_back("limit", "100");
      if (!after.empty()) page.emplace_back("starting_after", after);
      TRY(auto answer, Get(path, page));
      const json::Value root = answer.body.root();
      if (!root.Find("data").is_array()) return UnusableAnswer("list_without_data");
      after.clear();
      for (const json::Value one : root.Find("data")) {
        after = TextOf(one.Find("id"));
        each(one);
      }
      const json::Value more = root.Find("has_more");
      if (!more.is_bool() || !more.boolean()) after.clear();
    } while (!after.empty());
    return {};
  }

  // keyed: the call had an idempotency key.
  static ProviderError ErrorOf(const StripeAnswer& answer, bool keyed);
  const StripeOptions& options() const { return options_; }
  // Ends running calls and refuses further ones.
  void Abort() { aborted_ = true; }

 private:
  static ProviderResult<StripeAnswer> Successful(ProviderResult<StripeAnswer> answer, bool keyed);

  const StripeOptions options_;
  std::atomic<bool> aborted_ = false;
};

}  // namespace tollgate::billing::payments
