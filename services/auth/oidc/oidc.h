// Sign-in with an OpenID Connect provider: the code flow with PKCE (RFC 7636), state, nonce and the
// issuer's check (RFC 9207). Blocks on calls of the provider.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "common/base/clock.h"
#include "services/auth/people/sign_in.h"

namespace tollgate::auth {

struct OidcOptions {
  std::string issuer;
  std::string client_id;
  std::string client_secret;
  std::string seal_key;  // 32 bytes: what a browser keeps between start and end is sealed with it
};

class Oidc {
 public:
  Oidc(OidcOptions options, const Clock& clock);
  ~Oidc();

  struct Started {
    std::string url;
    std::string flow;
  };
  // step_up: the provider must ask the person again.
  AdminResult<Started> Start(const std::string& redirect_uri, const std::string& return_path,
                             bool step_up);

  struct Answer {
    std::string flow;
    std::string state;
    std::string code;
    std::string iss;
    std::string redirect_uri;
  };
  struct Finished {
    OidcPerson person;
    std::string return_path;
    bool step_up = false;
  };
  // OIDC_NOT_FRESH: a step-up for which the provider did not ask the person again, or does not say
  // when it did.
  AdminResult<Finished> Finish(const Answer& answer);

  // Ends calls that wait for the provider.
  void Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tollgate::auth
