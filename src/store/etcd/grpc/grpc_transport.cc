#include "store/etcd/grpc/grpc_transport.h"

#include "base/alive.h"
#include "store/etcd/etcd_failure.h"
#include "store/etcd/grpc/etcd_rpc.grpc.pb.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace spillway::store {
namespace {

namespace rpc = ::etcdserverpb;

constexpr int kKeepaliveMs = 10'000;
constexpr int kKeepaliveTimeoutMs = 5'000;
constexpr int kReconnectMinMs = 100;
constexpr int kReconnectMaxMs = 2'000;
constexpr Duration kSignInMax = seconds(8);

Revision revision_of(std::int64_t number) {
  return Revision(number < 0 ? 0 : static_cast<std::uint64_t>(number));
}

EtcdFailure failure_of(const grpc::Status& status) {
  return {static_cast<int>(status.error_code()), status.error_message()};
}

Entry entry_of(rpc::KeyValue& kv) {
  return {.key = std::move(*kv.mutable_key()),
          .value = std::make_shared<const std::string>(std::move(*kv.mutable_value())),
          .create_revision = revision_of(kv.create_revision()),
          .mod_revision = revision_of(kv.mod_revision()),
          .version = static_cast<std::uint64_t>(kv.version())};
}

rpc::RangeRequest request_of(const EtcdRange& range) {
  rpc::RangeRequest request;
  request.set_key(range.key);
  request.set_range_end(range.range_end);
  request.set_limit(static_cast<std::int64_t>(range.limit));
  request.set_revision(static_cast<std::int64_t>(range.at.number()));
  request.set_count_only(range.count_only);
  return request;
}

EtcdRangeAnswer answer_of(rpc::RangeResponse& response) {
  EtcdRangeAnswer answer{.present = revision_of(response.header().revision()),
                         .entries = {},
                         .count = static_cast<std::size_t>(response.count())};
  answer.entries.reserve(static_cast<std::size_t>(response.kvs_size()));
  for (rpc::KeyValue& kv : *response.mutable_kvs()) answer.entries.push_back(entry_of(kv));
  return answer;
}

rpc::TxnRequest request_of(const EtcdTxn& txn) {
  rpc::TxnRequest request;
  if (txn.compare != EtcdTxn::Compare::kNothing) {
    rpc::Compare& compare = *request.add_compare();
    compare.set_key(txn.key);
    if (txn.compare == EtcdTxn::Compare::kVersion) {
      compare.set_target(rpc::Compare::VERSION);
      compare.set_version(static_cast<std::int64_t>(txn.compared));
    } else {
      compare.set_target(rpc::Compare::MOD);
      compare.set_mod_revision(static_cast<std::int64_t>(txn.compared));
    }
  }
  if (txn.put) {
    rpc::PutRequest& put = *request.add_success()->mutable_request_put();
    put.set_key(txn.key);
    put.set_value(*txn.put);
    put.set_lease(txn.lease);
  } else {
    rpc::DeleteRangeRequest& removal = *request.add_success()->mutable_request_delete_range();
    removal.set_key(txn.key);
    removal.set_prev_kv(true);
  }
  if (txn.read_otherwise) request.add_failure()->mutable_request_range()->set_key(txn.key);
  return request;
}

EtcdTxnAnswer answer_of(rpc::TxnResponse& response) {
  EtcdTxnAnswer answer{.present = revision_of(response.header().revision()),
                       .succeeded = response.succeeded(),
                       .deleted = 0,
                       .entry = {}};
  for (rpc::ResponseOp& each : *response.mutable_responses()) {
    if (each.has_response_delete_range()) {
      rpc::DeleteRangeResponse& removal = *each.mutable_response_delete_range();
      answer.deleted = static_cast<std::size_t>(removal.deleted());
      if (removal.prev_kvs_size() > 0) answer.entry = entry_of(*removal.mutable_prev_kvs(0));
    } else if (each.has_response_range() && each.response_range().kvs_size() > 0) {
      answer.entry = entry_of(*each.mutable_response_range()->mutable_kvs(0));
    }
  }
  return answer;
}

EtcdWatchMessage message_of(rpc::WatchResponse& response) {
  EtcdWatchMessage message{.canceled = response.canceled(),
                           .compacted = revision_of(response.compact_revision()),
                           .reason = response.cancel_reason(),
                           .fragment = response.fragment(),
                           .events = {}};
  message.events.reserve(static_cast<std::size_t>(response.events_size()));
  for (rpc::Event& event : *response.mutable_events()) {
    rpc::KeyValue& kv = *event.mutable_kv();
    rpc::KeyValue& before = *event.mutable_prev_kv();
    const bool put = event.type() == rpc::Event::PUT;
    message.events.push_back(
        {.key = std::move(*kv.mutable_key()),
         .value = put ? std::make_shared<const std::string>(std::move(*kv.mutable_value())) : nullptr,
         .revision = revision_of(kv.mod_revision()),
         .create_revision = revision_of(put ? kv.create_revision() : before.create_revision()),
         .previous = before.mod_revision() == 0
                         ? nullptr
                         : std::make_shared<const std::string>(std::move(*before.mutable_value()))});
  }
  return message;
}

/// Opens a connection to one member; unary calls and watches have one each, so that a long answer delays no event.
std::shared_ptr<grpc::Channel> channel_to(const EtcdServer& server, const GrpcTransportOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMinMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  const auto credentials = server.secure ? grpc::SslCredentials({.pem_root_certs = options.ca_pem,
                                                                 .pem_private_key = options.key_pem,
                                                                 .pem_cert_chain = options.certificate_pem})
                                         : grpc::InsecureChannelCredentials();
  return grpc::CreateCustomChannel(server.address, credentials, arguments);
}

/// gRPC ends the threads of its callbacks with the last channel that had some; 1.51 can abort in them while it does
/// (grpc_cq_internal_unref). One channel, which leads nowhere, lives as long as the process.
void keep_callback_threads() {
  struct Kept {
    std::unique_ptr<rpc::KV::Stub> stub =
        rpc::KV::NewStub(grpc::CreateChannel("unix:/dev/null/nowhere", grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    rpc::RangeRequest request;
    rpc::RangeResponse response;
  };

  [[maybe_unused]] static const Kept* const kKept = [] {
    auto* kept = new Kept;  // NOLINT: never freed
    kept->stub->async()->Range(&kept->context, &kept->request, &kept->response, [](const grpc::Status&) {});
    return kept;
  }();
}

struct Member {
  std::unique_ptr<rpc::KV::Stub> keys;
  std::unique_ptr<rpc::Watch::Stub> watch;
  std::unique_ptr<rpc::Lease::Stub> leases;
  std::unique_ptr<rpc::Auth::Stub> users;
};

}  // namespace

/// Shared with calls under way in gRPC's threads.
struct GrpcTransport::Impl {
  std::vector<Member> members;
  Poster post;
  Alive::Ref alive;  // set once; tested on the loop alone

  std::mutex mutex;
  std::condition_variable idle;
  std::map<const void*, std::function<void()>> under_way;  // functions that cancel calls under way

  using SignedIn = std::move_only_function<void(const std::optional<EtcdFailure>&)>;

  // Used on the loop alone.
  std::string username;
  std::string password;
  std::string token;               // empty: there is none, or it has expired
  std::vector<SignedIn> sign_ins;  // calls that wait for a token

  /// Runs `act` at once, or when a token was obtained.
  void signed_in(std::size_t member, Duration at_most, SignedIn act) {
    if (username.empty() || !token.empty()) return act(std::nullopt);
    sign_ins.push_back(std::move(act));
    if (sign_ins.size() > 1) return;
    rpc::AuthenticateRequest request;
    request.set_name(username);
    request.set_password(password);
    start_call<rpc::AuthenticateResponse, std::string>(
        std::move(request), at_most,
        [stub = members[member].users.get()](auto& call, auto on_done) {
          stub->async()->Authenticate(&call.context, &call.request, &call.response, std::move(on_done));
        },
        [](rpc::AuthenticateResponse& response) { return response.token(); },
        [this](std::expected<std::string, EtcdFailure> answer) {
          if (answer) token = *std::move(answer);
          const auto failure = answer ? std::nullopt : std::optional(answer.error());
          for (SignedIn& each : std::exchange(sign_ins, {})) each(failure);
        });
  }

  /// `shown`: of the call that failed.
  void on_failure(const EtcdFailure& failure, const std::string& shown) {
    if (is_token_gone(failure) && token == shown) token.clear();
  }

  void enter(const void* what, std::function<void()> cancel) {
    const std::lock_guard lock(mutex);
    under_way.emplace(what, std::move(cancel));
  }

  /// The last that gRPC's thread does with the transport.
  void exit(const void* what) {
    std::map<const void*, std::function<void()>>::node_type gone;
    const std::lock_guard lock(mutex);
    gone = under_way.extract(what);
    idle.notify_all();
  }

  /// gRPC may call back from within: nothing is locked meanwhile.
  void cancel(const void* what) {
    std::function<void()> act;
    {
      const std::lock_guard lock(mutex);
      if (const auto open = under_way.find(what); open != under_way.end()) act = open->second;
    }
    if (act) act();
  }

  void cancel_all() {
    std::vector<std::function<void()>> acts;
    {
      const std::lock_guard lock(mutex);
      for (const auto& [what, act] : under_way) acts.push_back(act);
    }
    for (const auto& act : acts) act();
  }

  void to_loop(std::move_only_function<void()> task) { post(alive.guard(std::move(task))); }

  template <typename Request, typename Response>
  struct Call {
    grpc::ClientContext context;
    Request request;
    Response response;
  };

  /// `start` begins the call; `finish` makes the answer of its response.
  template <typename Response, typename Answer, typename Request>
  void call(std::size_t member, Request request, Duration at_most, auto start, auto finish, Done<Answer> done) {
    signed_in(member, at_most,
              [this, request = std::move(request), at_most, start, finish,
               done = std::move(done)](const std::optional<EtcdFailure>& refused) mutable {
                if (refused) return done(std::unexpected(*refused));
                start_call<Response, Answer>(std::move(request), at_most, start, finish, std::move(done));
              });
  }

  template <typename Response, typename Answer, typename Request>
  void start_call(Request request, Duration at_most, auto start, auto finish, Done<Answer> done) {
    auto made = std::make_shared<Call<Request, Response>>();
    made->request = std::move(request);
    made->context.set_deadline(std::chrono::system_clock::now() + at_most);
    if (!token.empty()) made->context.AddMetadata("token", token);
    enter(made.get(), [weak = std::weak_ptr(made)] {
      if (const auto alive_call = weak.lock()) alive_call->context.TryCancel();
    });
    // gRPC copies the callback: what can only be moved is held apart. It must not be destroyed in gRPC's thread.
    auto shared_done = std::make_shared<Done<Answer>>(std::move(done));
    Call<Request, Response>& asked = *made;
    start(asked, [this, made = std::move(made), shared_done, finish, shown = token](const grpc::Status& status) {
      if (status.ok())
        to_loop(
            [done = std::move(*shared_done), answer = finish(made->response)]() mutable { done(std::move(answer)); });
      else
        to_loop([this, done = std::move(*shared_done), failure = failure_of(status), shown]() mutable {
          on_failure(failure, shown);
          done(std::unexpected(std::move(failure)));
        });
      exit(made.get());
    });
  }
};

namespace {

/// A stream of gRPC: the next message is read when the loop has taken the last one, so that no more than one waits.
/// Holds itself until gRPC is done with it; gRPC is kept from that while a message waits (AddHold).
template <typename Impl>
class Stream final : public grpc::ClientBidiReactor<rpc::WatchRequest, rpc::WatchResponse>,
                     public std::enable_shared_from_this<Stream<Impl>> {
 public:
  /// The receiver of a watch, used on the loop; null once the watch was cancelled.
  struct Listener {
    EtcdTransport::WatchReceiver* receiver = nullptr;
  };

  Stream(Impl& impl, std::shared_ptr<Listener> listener)
      : impl_(impl), listener_(std::move(listener)), shown_(impl.token) {
    if (!shown_.empty()) context_.AddMetadata("token", shown_);
    context_.AddMetadata("hasleader", "true");  // a member without a quorum is not to keep silent
  }

  void begin(rpc::Watch::Stub& stub, Revision from, bool previous) {
    self_ = this->shared_from_this();
    rpc::WatchCreateRequest& create = *request_.mutable_create_request();
    create.set_key(std::string(1, '\0'));
    create.set_range_end(std::string(1, '\0'));
    create.set_start_revision(static_cast<std::int64_t>(from.number()));
    create.set_progress_notify(true);
    create.set_prev_kv(previous);
    create.set_fragment(true);
    stub.async()->Watch(&context_, this);
    this->AddHold();
    StartWrite(&request_);
    StartRead(&response_);
    StartCall();
  }

  /// Cancels the stream; called on the loop.
  void cancel() {
    bool waits = false;
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      waits = std::exchange(waits_, false);
    }
    context_.TryCancel();
    if (waits) this->RemoveHold();
  }

  void OnReadDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      waits_ = ok && !cancelled_;
      ok = waits_;
    }
    if (!ok) return this->RemoveHold();
    impl_.to_loop([self = this->shared_from_this(), message = message_of(response_)]() mutable {
      if (auto* receiver = self->listener_->receiver) receiver->on_watch_message(std::move(message));
      self->read_on();
    });
  }

  void OnDone(const grpc::Status& status) override {
    impl_.to_loop([impl = &impl_, listener = listener_, failure = failure_of(status), shown = shown_] {
      impl->on_failure(failure, shown);
      if (listener->receiver != nullptr) listener->receiver->on_watch_broken(failure);
    });
    const auto self = std::exchange(self_, nullptr);
    impl_.exit(this);
  }

 private:
  /// Reads the next message, unless the stream was cancelled meanwhile; called on the loop.
  void read_on() {
    {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(waits_, false)) return;
    }
    response_.Clear();
    this->StartRead(&response_);
  }

  Impl& impl_;
  std::shared_ptr<Listener> listener_;
  std::string shown_;  // token
  std::mutex mutex_;
  bool waits_ = false;  // a message, for the loop
  bool cancelled_ = false;
  std::shared_ptr<Stream> self_;
  grpc::ClientContext context_;
  rpc::WatchRequest request_;
  rpc::WatchResponse response_;
};

}  // namespace

GrpcTransport::GrpcTransport(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->alive = alive_.ref();
}

GrpcTransport::~GrpcTransport() {
  alive_.end();
  impl_->cancel_all();
  std::unique_lock lock(impl_->mutex);
  impl_->idle.wait(lock, [this] { return impl_->under_way.empty(); });
}

Result<std::unique_ptr<GrpcTransport>> GrpcTransport::create(const GrpcTransportOptions& options, Poster post) {
  keep_callback_threads();
  auto impl = std::make_shared<Impl>();
  impl->post = std::move(post);
  impl->username = options.username;
  impl->password = options.password;
  for (const std::string& url : options.servers) {
    SPILLWAY_TRY(server, parse_etcd_server(url));
    const auto unary = channel_to(server, options);
    impl->members.push_back({rpc::KV::NewStub(unary), rpc::Watch::NewStub(channel_to(server, options)),
                             rpc::Lease::NewStub(unary), rpc::Auth::NewStub(unary)});
  }
  if (impl->members.empty()) return make_error(ErrorCode::kInvalid, "etcd needs at least one server");
  return std::unique_ptr<GrpcTransport>(new GrpcTransport(std::move(impl)));  // NOLINT: private constructor
}

std::size_t GrpcTransport::members() const {
  return impl_->members.size();
}

void GrpcTransport::range(std::size_t member, EtcdRange range, Duration at_most, Done<EtcdRangeAnswer> done) {
  impl_->call<rpc::RangeResponse, EtcdRangeAnswer>(
      member, request_of(range), at_most,
      [stub = impl_->members[member].keys.get()](auto& call, auto on_done) {
        stub->async()->Range(&call.context, &call.request, &call.response, std::move(on_done));
      },
      [](rpc::RangeResponse& response) { return answer_of(response); }, std::move(done));
}

void GrpcTransport::txn(std::size_t member, EtcdTxn txn, Duration at_most, Done<EtcdTxnAnswer> done) {
  impl_->call<rpc::TxnResponse, EtcdTxnAnswer>(
      member, request_of(txn), at_most,
      [stub = impl_->members[member].keys.get()](auto& call, auto on_done) {
        stub->async()->Txn(&call.context, &call.request, &call.response, std::move(on_done));
      },
      [](rpc::TxnResponse& response) { return answer_of(response); }, std::move(done));
}

void GrpcTransport::compact(std::size_t member, Revision revision, Duration at_most, Done<Revision> done) {
  rpc::CompactionRequest request;
  request.set_revision(static_cast<std::int64_t>(revision.number()));
  impl_->call<rpc::CompactionResponse, Revision>(
      member, std::move(request), at_most,
      [stub = impl_->members[member].keys.get()](auto& call, auto on_done) {
        stub->async()->Compact(&call.context, &call.request, &call.response, std::move(on_done));
      },
      [revision](rpc::CompactionResponse&) { return revision; }, std::move(done));
}

void GrpcTransport::grant(std::size_t member, Duration life, Duration at_most, Done<EtcdLease> done) {
  rpc::LeaseGrantRequest request;
  request.set_ttl(std::chrono::duration_cast<std::chrono::seconds>(life).count());
  impl_->call<rpc::LeaseGrantResponse, EtcdLease>(
      member, std::move(request), at_most,
      [stub = impl_->members[member].leases.get()](auto& call, auto on_done) {
        stub->async()->LeaseGrant(&call.context, &call.request, &call.response, std::move(on_done));
      },
      [](rpc::LeaseGrantResponse& response) { return EtcdLease{.id = response.id(), .life = seconds(response.ttl())}; },
      std::move(done));
}

std::unique_ptr<EtcdTransport::WatchStream> GrpcTransport::watch(std::size_t member, Revision from, bool previous,
                                                                 WatchReceiver& receiver) {
  using OwnStream = Stream<Impl>;

  struct Handle final : WatchStream {
    std::shared_ptr<Impl> impl;
    std::shared_ptr<OwnStream::Listener> listener = std::make_shared<OwnStream::Listener>();
    std::shared_ptr<const void*> stream = std::make_shared<const void*>(nullptr);

    ~Handle() override {
      listener->receiver = nullptr;
      impl->cancel(*stream);
    }
  };

  auto handle = std::make_unique<Handle>();
  handle->impl = impl_;
  handle->listener->receiver = &receiver;
  impl_->signed_in(member, kSignInMax,
                   [impl = impl_.get(), member, from, previous, listener = handle->listener,
                    stream = handle->stream](const std::optional<EtcdFailure>& refused) {
                     if (listener->receiver == nullptr) return;  // the watch was cancelled
                     if (refused) return listener->receiver->on_watch_broken(*refused);
                     const auto begun = std::make_shared<OwnStream>(*impl, listener);
                     *stream = begun.get();
                     impl->enter(begun.get(), [weak = std::weak_ptr(begun)] {
                       if (const auto open = weak.lock()) open->cancel();
                     });
                     begun->begin(*impl->members[member].watch, from, previous);
                   });
  return handle;
}

Instant GrpcTransport::now() const {
  return Instant(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

void GrpcTransport::after(Duration time, std::move_only_function<void()> task) {
  struct Timer {
    grpc::Alarm alarm;
    std::move_only_function<void()> task;
  };

  if (time <= Duration::zero()) return impl_->to_loop(std::move(task));
  auto timer = std::make_shared<Timer>();
  timer->task = std::move(task);
  // The alarm owns its callback until it fires, which therefore must not hold the timer.
  impl_->enter(timer.get(), [timer] { timer->alarm.Cancel(); });
  timer->alarm.Set(std::chrono::system_clock::now() + time, [impl = impl_.get(), own = timer.get()](bool due) {
    if (due) impl->to_loop(std::move(own->task));
    own->task = nullptr;  // cancelled: the loop waits for this call
    impl->exit(own);
  });
}

Result<EtcdServer> parse_etcd_server(std::string_view url) {
  const bool secure = url.starts_with("https://");
  const auto refused = [&] {
    return make_error(ErrorCode::kInvalid, "'{}' is no etcd server; expected http://HOST:PORT or https://HOST:PORT",
                      url);
  };
  if (!secure && !url.starts_with("http://")) return refused();
  std::string_view address = url.substr(secure ? 8 : 7);
  if (address.ends_with('/')) address.remove_suffix(1);
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == address.size() ||
      address.find_first_of("/?#@ ") != std::string_view::npos ||
      address.substr(colon + 1).find_first_not_of("0123456789") != std::string_view::npos)
    return refused();
  return EtcdServer{secure, std::string(address)};
}

}  // namespace spillway::store
