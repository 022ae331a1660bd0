#include <grpcpp/grpcpp.h>

#include "common/base/try.h"
#include "services/people/oidc/oidc.h"
#include "services/people/rpc/people_rpc.h"
#include "tollgate/auth/v1/session.grpc.pb.h"

namespace tollgate::people {
namespace {

namespace v1 = tollgate::auth::v1;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

Browser BrowserOf(const v1::Client& client) {
  return {
      .address = client.address(), .user_agent = client.user_agent(), .cookie = client.cookie()};
}
void Fill(const NewSession& session, v1::NewSession& out) {
  out.set_cookie(session.cookie);
  out.set_expire_time_us(session.expires_us);
}
template <typename Response>
AdminResult<void> FillSignedIn(const AdminResult<SignedIn>& result, Response& response) {
  if (!result) return Fail{result.error()};
  if (!result->challenge.empty()) {
    response.set_challenge(result->challenge);
  } else {
    Fill(result->session, *response.mutable_session());
  }
  return {};
}
template <typename Response>
AdminResult<void> FillSession(const AdminResult<NewSession>& result, Response& response) {
  if (!result) return Fail{result.error()};
  Fill(*result, *response.mutable_session());
  return {};
}
Fail<admin::Failure> NoOidc() {
  return admin::Precondition("OIDC_OFF",
                             "no OpenID Connect provider is configured (auth.people.oidc)");
}

class SessionRpc : public v1::SessionService::CallbackService {
 public:
  explicit SessionRpc(const PeopleSlot& people) : people_(people) {}

  ServerUnaryReactor* SignIn(CallbackServerContext* context, const v1::SignInRequest* request,
                             v1::SignInResponse* response) override {
    return Serve(context, &People::slow, [=](People& people) {
      return FillSignedIn(people.sign_in().ByPassword(request->email(), request->password(),
                                                      BrowserOf(request->client())),
                          *response);
    });
  }
  ServerUnaryReactor* SignInSecondStep(CallbackServerContext* context,
                                       const v1::SignInSecondStepRequest* request,
                                       v1::SignInSecondStepResponse* response) override {
    return Serve(context, &People::workers, [=](People& people) {
      return FillSession(
          people.sign_in().SecondStep(request->challenge(), request->code(),
                                      request->recovery_code(), BrowserOf(request->client())),
          *response);
    });
  }
  ServerUnaryReactor* SignInByLink(CallbackServerContext* context,
                                   const v1::SignInByLinkRequest* request,
                                   v1::SignInByLinkResponse* response) override {
    return Serve(context, &People::slow, [=](People& people) {
      return FillSignedIn(people.sign_in().ByLink(request->token(), request->new_password(),
                                                  BrowserOf(request->client())),
                          *response);
    });
  }
  ServerUnaryReactor* SignInByInvitation(CallbackServerContext* context,
                                         const v1::SignInByInvitationRequest* request,
                                         v1::SignInByInvitationResponse* response) override {
    return Serve(context, &People::slow, [=](People& people) {
      return FillSession(
          people.sign_in().ByInvitation(request->token(), request->display_name(),
                                        request->password(), BrowserOf(request->client())),
          *response);
    });
  }
  ServerUnaryReactor* RequestPasswordReset(CallbackServerContext* context,
                                           const v1::RequestPasswordResetRequest* request,
                                           v1::RequestPasswordResetResponse*) override {
    return Serve(context, &People::workers, [=](People& people) {
      return people.sign_in().RequestPasswordReset(request->email(), BrowserOf(request->client()));
    });
  }
  ServerUnaryReactor* ResetPassword(CallbackServerContext* context,
                                    const v1::ResetPasswordRequest* request,
                                    v1::ResetPasswordResponse* response) override {
    return Serve(context, &People::slow, [=](People& people) {
      return FillSignedIn(people.sign_in().ResetPassword(request->token(), request->new_password(),
                                                         BrowserOf(request->client())),
                          *response);
    });
  }
  ServerUnaryReactor* StartOidc(CallbackServerContext* context, const v1::StartOidcRequest* request,
                                v1::StartOidcResponse* response) override {
    return Serve(context, &People::provider, [=](People& people) -> AdminResult<void> {
      if (people.oidc() == nullptr) return NoOidc();
      TRY(people.sign_in().TakeOidcTry(BrowserOf(request->client())));
      TRY(auto started, people.oidc()->Start(request->redirect_uri(), request->return_path(),
                                             request->step_up()));
      response->set_url(started.url);
      response->set_flow(started.flow);
      return {};
    });
  }
  ServerUnaryReactor* FinishOidc(CallbackServerContext* context,
                                 const v1::FinishOidcRequest* request,
                                 v1::FinishOidcResponse* response) override {
    return Serve(context, &People::provider, [=](People& people) -> AdminResult<void> {
      if (people.oidc() == nullptr) return NoOidc();
      const Browser browser = BrowserOf(request->client());
      TRY(people.sign_in().TakeOidcTry(browser));
      TRY(auto finished, people.oidc()->Finish({.flow = request->flow(),
                                                .state = request->state(),
                                                .code = request->code(),
                                                .iss = request->iss(),
                                                .redirect_uri = request->redirect_uri()}));
      response->set_return_path(finished.return_path);
      return FillSession(people.sign_in().ByOidc(finished.person, finished.step_up, browser),
                         *response);
    });
  }
  ServerUnaryReactor* SignOut(CallbackServerContext* context, const v1::SignOutRequest* request,
                              v1::SignOutResponse*) override {
    return Serve(context, &People::workers, [=](People& people) {
      return people.sign_in().SignOut(request->cookie(), BrowserOf(request->client()));
    });
  }
  ServerUnaryReactor* DescribeSignIn(CallbackServerContext* context,
                                     const v1::DescribeSignInRequest*,
                                     v1::DescribeSignInResponse* response) override {
    return Serve(context, &People::workers, [=](People& people) {
      response->set_oidc(people.oidc() != nullptr);
      response->set_mail(people.sends_mail());
      response->set_self_service_workspaces(people.self_service());
      return AdminResult<void>{};
    });
  }
  ServerUnaryReactor* Resolve(CallbackServerContext* context, const v1::ResolveRequest* request,
                              v1::ResolveResponse* response) override {
    return Serve(context, &People::workers, [=](People& people) -> AdminResult<void> {
      const Browser browser = BrowserOf(request->client());
      const std::string& token = request->token();
      TRY(auto identity, token.empty() ? people.sign_in().ResolveCookie(request->cookie(), browser)
                         : token.starts_with(kSupportPrefix)
                             ? people.support().Use(token, browser.address, request->use())
                             : people.sign_in().ResolveToken(token, browser));
      if (!identity) return {};
      *response->mutable_identity() = *std::move(identity);
      if (request->token().empty()) response->set_csrf_token(CsrfToken(request->cookie()));
      return {};
    });
  }
  ServerUnaryReactor* Reauthenticate(CallbackServerContext* context,
                                     const v1::ReauthenticateRequest* request,
                                     v1::ReauthenticateResponse* response) override {
    return Serve(context, &People::slow, [=](People& people) {
      return FillSession(
          people.sign_in().Reauthenticate(request->cookie(), request->password(), request->code(),
                                          BrowserOf(request->client())),
          *response);
    });
  }
  ServerUnaryReactor* SetPassword(CallbackServerContext* context,
                                  const v1::SetPasswordRequest* request,
                                  v1::SetPasswordResponse* response) override {
    return Serve(context, &People::slow, [=](People& people) {
      return FillSession(
          people.sign_in().SetPassword(request->cookie(), request->current_password(),
                                       request->new_password(), BrowserOf(request->client())),
          *response);
    });
  }
  ServerUnaryReactor* StartTotp(CallbackServerContext* context, const v1::StartTotpRequest* request,
                                v1::StartTotpResponse* response) override {
    return Serve(context, &People::workers, [=](People& people) -> AdminResult<void> {
      TRY(auto started, people.sign_in().StartTotp(request->cookie()));
      response->set_secret(started.secret);
      response->set_uri(started.uri);
      return {};
    });
  }
  ServerUnaryReactor* ConfirmTotp(CallbackServerContext* context,
                                  const v1::ConfirmTotpRequest* request,
                                  v1::ConfirmTotpResponse* response) override {
    return Serve(context, &People::workers, [=](People& people) -> AdminResult<void> {
      TRY(auto codes, people.sign_in().ConfirmTotp(request->cookie(), request->code(),
                                                   BrowserOf(request->client())));
      for (const std::string& code : codes) response->add_recovery_codes(code);
      return {};
    });
  }
  ServerUnaryReactor* DisableTotp(CallbackServerContext* context,
                                  const v1::DisableTotpRequest* request,
                                  v1::DisableTotpResponse*) override {
    return Serve(context, &People::workers, [=](People& people) {
      return people.sign_in().DisableTotp(request->cookie(), BrowserOf(request->client()));
    });
  }

 private:
  template <typename Fn>
  ServerUnaryReactor* Serve(CallbackServerContext* context, ThreadPool& (People::*pool)(), Fn fn) {
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    OnPeople{people_, pool}.Run(context, admin::Call(reactor), std::move(fn));
    return reactor;
  }

  const PeopleSlot& people_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSessionRpc(const PeopleSlot& people) {
  return std::make_unique<SessionRpc>(people);
}

}  // namespace tollgate::people
