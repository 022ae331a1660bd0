// Sign-in with an OpenID Connect provider: code flow with PKCE (RFC 7636), state, nonce and the
// issuer check (RFC 9207). Blocks on calls of the provider.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "common/base/clock.h"
#include "services/people/sign_in/sign_in.h"

namespace tollgate::people {

struct OidcOptions {
  std::string issuer;
  std::string client_id;
  std::string client_secret;
  std::string seal_key;  // 32 bytes; seals the state that the browser keeps between start and end
};

class Oidc {
 public:
  Oidc(OidcOptions options, const Clock& clock);
  ~Oidc();

  struct Started {
    std::string url;
    std::string flow;
  };
  // step_up: the provider must authenticate the person again.
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
  // OIDC_NOT_FRESH: for a step-up, the provider did not authenticate the person again or does not
  // say when it did.
  AdminResult<Finished> Finish(const Answer& answer);

  // Aborts running calls of the provider.
  void Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tollgate::people
