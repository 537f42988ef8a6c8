#include "gateway/upstream_call.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stitchkit {
namespace {

bool isIdempotent(std::string_view method) {
  constexpr std::array<std::string_view, 5> kIdempotent{"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};
  return std::find(kIdempotent.begin(), kIdempotent.end(), method) != kIdempotent.end();
}

boost::system::result<UpstreamResponse, ExchangeFailure> onFreshConnection(const UpstreamCall& call,
                                                                           const UpstreamRequest& request,
                                                                           UpstreamPool& pool,
                                                                           const UpstreamSettings& settings) {
  const Rule& rule = *call.admission.rule;
  const std::uint64_t generation = pool.generation();
  auto connection = UpstreamConnection::open(rule.origin, settings, *call.signal, call.deadline);
  if (!connection) {
    return ExchangeFailure{std::move(connection).error()};
  }
  auto response = exchange(**connection, request, rule.maxResponseBytes, *call.signal, call.deadline);
  if (response && response->keepAlive) {
    pool.put(rule.origin, std::move(*connection), generation);
  }
  return response;
}

boost::system::result<UpstreamResponse, ExchangeFailure> send(const UpstreamCall& call, UpstreamPool& pool,
                                                              const UpstreamSettings& settings) {
  const UpstreamRequest request = upstreamRequest(call.request, call.admission);
  const Rule& rule = *call.admission.rule;
  const std::uint64_t generation = pool.generation();
  std::unique_ptr<UpstreamConnection> kept = pool.take(rule.origin);
  if (!kept) {
    return onFreshConnection(call, request, pool, settings);
  }
  auto response = exchange(*kept, request, rule.maxResponseBytes, *call.signal, call.deadline);
  if (!response && response.error().nothingCame && response.error().error.kind == ErrorKind::kInternal &&
      isIdempotent(request.method)) {
    return onFreshConnection(call, request, pool, settings);
  }
  if (response && response->keepAlive) {
    pool.put(rule.origin, std::move(kept), generation);
  }
  return response;
}

// A value that came back, by the rule's word on it. @return false when that ends the request.
bool withoutReflections(UpstreamResponse& response, const Rule& rule, const Redactor& redactor) {
  if (rule.reflection == Reflection::kAllow) {
    return true;
  }
  bool found = redactor.redact(response.body);
  for (HeaderField& field : response.fields) {
    found = redactor.redact(field.value) || found;
  }
  return !found || rule.reflection == Reflection::kRedact;
}

CallResult failed(const UpstreamCall& call, Error error) {
  return {guestResponse(upstreamRefusal(), call.request.method == "HEAD", call.keepAlive),
          GatewayFailure{std::move(error), call.admission.rule->origin.text()}};
}

}  // namespace

CallResult runUpstreamCall(const UpstreamCall& call, UpstreamPool& pool, const UpstreamSettings& settings) {
  auto response = send(call, pool, settings);
  if (!response) {
    return failed(call, std::move(response).error().error);
  }
  if (!withoutReflections(*response, *call.admission.rule, *call.redactor)) {
    return failed(call, Error(ErrorKind::kNetworkDenied, "The upstream sent an injected header back"));
  }
  return {guestResponse(*response, *call.admission.rule, call.request.method == "HEAD", call.keepAlive), {}};
}

}  // namespace stitchkit
