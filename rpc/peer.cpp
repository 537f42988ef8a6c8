#include "rpc/peer.h"

#include <boost/json/parse.hpp>

#include <set>
#include <utility>

#include "rpc/base/limits.h"
#include "rpc/base/log.h"
#include "rpc/base/utf8.h"
#include "schema/openrpc.h"

namespace stitchkit {

namespace json = boost::json;

namespace {

constexpr std::string_view kCancelMethod = "$/cancelRequest";

Error cancelledError() {
  return Error(ErrorKind::kCancelled, "The request was cancelled");
}

Error hostGoneError() {
  return Error(ErrorKind::kUnavailable, "The host does not answer requests any more").withReason("host-gone");
}

ErrorDetail idDetail(const RequestId& id) {
  if (id.is_int64()) {
    return id.get_int64();
  }
  return id.is_string() ? std::string(id.get_string()) : toText(id);
}

Error batchFullError(std::size_t bytes) {
  return Error(ErrorKind::kLimit, "The request was served, but its answer is too large for what the batch has left")
      .withReason("batch")
      .withDetail("bytes", static_cast<std::int64_t>(bytes))
      .withDetail("limit", static_cast<std::int64_t>(limits::kBatchAnswerBytes))
      .withHint("Send requests with large answers by themselves: they are served at once just as well.");
}

// The host's error as an error of ours: its stable name, when it has one, in `reason`.
Error hostError(const json::value& payload) {
  Error error(ErrorKind::kInternal, "The host refused a request of the sidecar");
  const json::object* object = payload.if_object();
  const json::value* data = object != nullptr ? object->if_contains("data") : nullptr;
  const json::value* code = data != nullptr && data->is_object() ? data->get_object().if_contains("code") : nullptr;
  if (code != nullptr && code->is_string()) {
    error.reason.assign(code->get_string().data(), code->get_string().size());
  }
  return error;
}

}  // namespace

// Collects the answers of a batch; sent as one array when the last is there.
struct Peer::Batch {
  std::vector<std::string> answers;  // in the order of the members; "" for one that has none yet
  std::set<std::string> ids;         // of its requests: in flight until the batch is answered
  std::size_t open = 1;              // the members still to be answered, and the reading of the batch itself
  std::size_t bytes = 0;             // of the answers
};

struct Peer::Pending {
  RequestId id;
  bool wantsAnswer = true;
  std::string key;  // "" when it cannot be found by id
  std::shared_ptr<Batch> batch;
  std::size_t batchSlot = 0;
  std::shared_ptr<Cancellation> cancellation = std::make_shared<Cancellation>();
  RequestLabel label;
  std::unique_ptr<Error> failure;  // what it was answered with, once it was
};

struct Peer::Queued {
  RequestMessage request;
  std::shared_ptr<Pending> pending;
};

Peer::Peer(Loop& loop, MessageSink& sink, const MethodTable& methods, PeerOptions options)
    : loop_(loop), sink_(sink), methods_(methods), options_(options) {}

Peer::~Peer() = default;

void Peer::onFrame(FrameEvent event) {
  if (abandoned_) {
    return;
  }
  switch (event.kind) {
    case FrameEvent::Kind::kTooLarge:
      refuse(nullptr,
             Error(ErrorKind::kInvalidRequest, "The message is too large")
                 .withHint("Split it, or start the sidecar with a larger --max-message-bytes."),
             nullptr);
      return;
    case FrameEvent::Kind::kBadHeader:
      refuse(nullptr,
             Error(ErrorKind::kParse, "Neither a JSON line nor a Content-Length header")
                 .withHint("Send one JSON value a line, or Content-Length headers with --framing headers."),
             nullptr);
      return;
    case FrameEvent::Kind::kCutOff:
      refuse(nullptr,
             Error(ErrorKind::kParse, "The input ended inside a message with a Content-Length header")
                 .withHint("Content-Length counts the bytes of the body, all of which have to follow."),
             nullptr);
      return;
    case FrameEvent::Kind::kMessage:
      break;
  }
  Result<Frame> frame = parseFrame(event.text);
  if (!frame) {
    refuse(nullptr, frame.error(), nullptr);
    return;
  }
  std::shared_ptr<Batch> batch = frame->batch ? std::make_shared<Batch>() : nullptr;
  for (Message& message : frame->messages) {
    onMessage(std::move(message), batch);
  }
  if (batch) {
    closeBatch(batch);
  }
}

void Peer::onMessage(Message message, const std::shared_ptr<Batch>& batch) {
  if (auto* request = std::get_if<RequestMessage>(&message)) {
    onRequest(std::move(*request), batch);
  } else if (auto* response = std::get_if<ResponseMessage>(&message)) {
    onResponse(std::move(*response));
  } else {
    const auto& invalid = std::get<InvalidMessage>(message);
    if (!failCall(invalid.id)) {
      refuse(invalid.id, invalid.error, batch);
    }
  }
}

void Peer::onRequest(RequestMessage request, const std::shared_ptr<Batch>& batch) {
  if (!request.id && request.method == kCancelMethod) {
    onCancelNotification(std::move(request.params));
    return;
  }
  if (methods_.find(request.method) == nullptr) {
    if (request.id) {
      refuse(
          *request.id,
          Error(ErrorKind::kMethodNotFound, "There is no method " + excerpt(request.method, limits::kEchoedCharacters))
              .withHint("rpc.discover lists the methods."),
          batch);
    }
    return;
  }
  admit(std::move(request), batch);
}

// A request whose id is in flight is refused and the first goes on: two answers under one id could not be told apart.
void Peer::admit(RequestMessage request, const std::shared_ptr<Batch>& batch) {
  const RequestId id = request.id.value_or(nullptr);
  const bool findable = !id.is_null();
  std::string key = findable ? toText(id) : std::string();
  if (findable && (inFlight_.count(key) != 0 || (batch && !batch->ids.insert(key).second))) {
    refuse(
        nullptr,
        Error(ErrorKind::kInvalidRequest, "A request with this id is still in flight").withDetail("id", idDetail(id)),
        batch);
    return;
  }
  RequestLabel label = RequestLabel::of(request.method, request.params);
  if (inFlight() >= limits::kRequestsInFlight) {
    if (request.id) {
      refuse(
          id,
          Error(ErrorKind::kBusy, "Too many requests are in flight").withHint("Wait for answers before sending more."),
          batch, label);
    }
    return;
  }
  auto pending = std::make_shared<Pending>();
  pending->id = id;
  pending->label = std::move(label);
  pending->wantsAnswer = request.id.has_value();
  pending->key = std::move(key);
  if (batch && pending->wantsAnswer) {
    pending->batch = batch;
    pending->batchSlot = batch->answers.size();
    batch->answers.emplace_back();
    ++batch->open;
  }
  if (findable) {
    inFlight_.emplace(pending->key, pending);
  } else {
    anonymous_.insert(pending);
  }
  mostInFlight_.see(inFlight());
  if (options_.serial) {
    queued_.push_back({std::move(request), std::move(pending)});
    startNextQueued();
  } else {
    start(std::move(request), std::move(pending));
  }
}

void Peer::startNextQueued() {
  while (!serialBusy_ && !queued_.empty()) {
    Queued next = std::move(queued_.front());
    queued_.pop_front();
    serialBusy_ = true;
    start(std::move(next.request), std::move(next.pending));
  }
}

void Peer::start(RequestMessage request, std::shared_ptr<Pending> pending) {
  JsonReply reply = replyFor(pending);
  if (Result<void> admitted = methods_.admit(); !admitted) {
    reply(std::move(admitted).error());
    return;
  }
  Result<json::object> params = OpenRpc::instance().checkParams(request.method, std::move(request.params));
  if (!params) {
    reply(std::move(params).error());
    return;
  }
  (*methods_.find(request.method))(CallContext{pending->cancellation}, std::move(*params), std::move(reply));
}

// The text is made on the thread that answers, so that the loop does not serialise what a worker has read.
JsonReply Peer::replyFor(const std::shared_ptr<Pending>& pending) {
  return JsonReply([weak = weak_from_this(), &loop = loop_, pending](Result<json::value> result) {
    std::string text;
    if (!result) {
      pending->failure = std::make_unique<Error>(result.error());
    }
    if (pending->wantsAnswer) {
      text = result ? resultText(pending->id, std::move(*result)) : errorText(pending->id, result.error());
    }
    auto deliver = [weak, pending, text = std::move(text)]() mutable {
      if (const auto peer = weak.lock()) {
        peer->finish(pending, std::move(text));
      }
    };
    if (loop.onLoop()) {
      deliver();
    } else {
      loop.post(std::move(deliver));
    }
  });
}

void Peer::finish(const std::shared_ptr<Pending>& pending, std::string text) {
  pending->cancellation->clear();
  if (pending->key.empty()) {
    anonymous_.erase(pending);
  } else {
    inFlight_.erase(pending->key);
  }
  if (pending->batch) {
    Batch& batch = *pending->batch;
    if (text.size() > limits::kSmallAnswerBytes && batch.bytes + text.size() > limits::kBatchAnswerBytes) {
      pending->failure = std::make_unique<Error>(batchFullError(text.size()));
      text = errorText(pending->id, *pending->failure);
    }
    batch.bytes += text.size();
    batch.answers[pending->batchSlot] = std::move(text);
    closeBatch(pending->batch);
  } else if (pending->wantsAnswer) {
    sink_.send(std::move(text));
  }
  if (pending->failure) {
    log_.failed(pending->label, *pending->failure);
  } else {
    log_.answered();
  }
  if (options_.serial) {
    serialBusy_ = false;
    // Not from here: a chain of quick requests would grow the stack.
    loop_.post([weak = weak_from_this()] {
      if (const auto peer = weak.lock()) {
        peer->startNextQueued();
      }
    });
  }
  checkIdle();
}

// It never ran, so that it does not hold the serial order.
void Peer::finishUnstarted(const std::shared_ptr<Pending>& pending) {
  const bool busy = serialBusy_;
  pending->failure = std::make_unique<Error>(cancelledError());
  finish(pending, errorText(pending->id, *pending->failure));
  serialBusy_ = busy;
}

void Peer::closeBatch(const std::shared_ptr<Batch>& batch) {
  if (--batch->open != 0 || batch->answers.empty()) {
    return;
  }
  std::string text = "[";
  for (std::string& answer : batch->answers) {
    text += text.size() > 1 ? "," : "";
    text += std::exchange(answer, {});
  }
  text += "]";
  sink_.send(std::move(text));
}

void Peer::refuse(RequestId id, const Error& error, const std::shared_ptr<Batch>& batch, const RequestLabel& label) {
  std::string text = errorText(id, error);
  if (batch) {
    batch->answers.push_back(std::move(text));
  } else {
    sink_.send(std::move(text));
  }
  log_.failed(label, error);
}

QueueState Peer::requests() const {
  return {inFlight(), mostInFlight_.value(), limits::kRequestsInFlight};
}

// Queued: it ends now, unless its method answers a cancelled request in its own way; then, as when it is running, the
// handler is told. Gone or unknown: nothing.
void Peer::onCancelNotification(json::value params) {
  const json::object* object = params.if_object();
  const json::value* id = object != nullptr ? object->if_contains("id") : nullptr;
  if (id == nullptr) {
    return;
  }
  const auto found = inFlight_.find(toText(*id));
  if (found == inFlight_.end()) {
    return;
  }
  const std::shared_ptr<Pending> pending = found->second;
  for (auto queued = queued_.begin(); queued != queued_.end(); ++queued) {
    if (queued->pending == pending && !methods_.answersCancelled(queued->request.method)) {
      queued_.erase(queued);
      finishUnstarted(pending);
      return;
    }
  }
  pending->cancellation->cancel();
}

std::string Peer::callHost(std::string_view method, const json::object& params, CallResult done) {
  if (answersEnded_) {
    loop_.post([done = std::move(done)] { done(hostGoneError()); });
    return {};
  }
  const RequestId id(json::string("sidecar-" + std::to_string(++nextCall_)));
  std::string call = toText(id);
  outgoing_.emplace(call, std::move(done));
  sink_.send(requestText(id, method, params));
  return call;
}

void Peer::notifyHost(std::string_view method, const json::object& params) {
  if (!abandoned_) {
    sink_.send(notificationText(method, params));
  }
}

void Peer::forgetCall(const std::string& call) {
  if (outgoing_.erase(call) != 0 && !abandoned_) {
    sink_.send(notificationText(kCancelMethod, {{"id", json::parse(call)}}));
  }
}

// Whatever it is, it was meant as the answer, and there will be no other. Nothing is answered to it.
bool Peer::failCall(const RequestId& id) {
  const auto found = outgoing_.find(toText(id));
  if (found == outgoing_.end()) {
    return false;
  }
  CallResult done = std::move(found->second);
  outgoing_.erase(found);
  done(Error(ErrorKind::kInternal, "The host's answer is no message").withReason("malformed"));
  return true;
}

void Peer::onResponse(ResponseMessage response) {
  const auto found = outgoing_.find(toText(response.id));
  if (found == outgoing_.end()) {
    logEvent(LogLevel::kDebug, "unknown-answer", {{"message", "an answer to no request of ours is ignored"}});
    return;
  }
  CallResult done = std::move(found->second);
  outgoing_.erase(found);
  if (response.failed) {
    done(hostError(response.payload));
  } else {
    done(std::move(response.payload));
  }
}

void Peer::answersEnded() {
  answersEnded_ = true;
  auto calls = std::exchange(outgoing_, {});
  for (auto& [id, done] : calls) {
    done(hostGoneError());
  }
}

// Requests that never ran end here; those that run are told, and end when their handlers answer.
void Peer::abandon() {
  abandoned_ = true;
  answersEnded();
  for (const Queued& queued : std::exchange(queued_, {})) {
    finishUnstarted(queued.pending);
  }
  std::vector<std::shared_ptr<Pending>> running(anonymous_.begin(), anonymous_.end());
  for (const auto& [key, pending] : inFlight_) {
    running.push_back(pending);
  }
  for (const auto& pending : running) {
    pending->cancellation->cancel();
  }
}

void Peer::whenIdle(std::function<void()> idle) {
  idleActions_.push_back(std::move(idle));
  checkIdle();
}

void Peer::checkIdle() {
  if (inFlight() != 0 || idleActions_.empty()) {
    return;
  }
  auto actions = std::exchange(idleActions_, {});
  for (auto& action : actions) {
    action();
  }
}

}  // namespace stitchkit
